// FCS files byte by byte, for contents the library's own writer never produces.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace unshuffle::cytometry {

struct FcsBuilder {
  std::map<std::string, std::string> keywords{{"$DATATYPE", "I"}, {"$BYTEORD", "1,2,3,4"}, {"$MODE", "L"}};
  std::vector<std::uint8_t> bytes{};
  std::string supplement{};
  bool header_data_offsets = true;
  int end_shift = 0;  ///< Added to the end of DATA, in the header and in TEXT.
  int channels = 0;

  FcsBuilder& channel(const std::string& name, int bits, const std::string& range) {
    const std::string prefix = fmt::format("$P{}", ++channels);
    keywords[prefix + "N"] = name;
    keywords[prefix + "B"] = std::to_string(bits);
    keywords[prefix + "R"] = range;
    keywords["$PAR"] = std::to_string(channels);
    return *this;
  }

  /// Little-endian.
  FcsBuilder& number(std::uint64_t value, int count) {
    for (int at = 0; at < count; ++at) bytes.push_back(static_cast<std::uint8_t>(value >> (8 * at)));
    return *this;
  }

  [[nodiscard]] std::string content() const {
    // Offsets have a fixed width, so that the second pass has the length of the first.
    const std::size_t text_size = text(0).size();
    const std::size_t begin = 58 + text_size;
    const std::size_t end = begin + bytes.size() - 1 + static_cast<std::size_t>(end_shift);
    std::string out = fmt::format("FCS3.0    {:>8}{:>8}{:>8}{:>8}{:>8}{:>8}", 58, begin - 1,
                                  header_data_offsets ? begin : 0, header_data_offsets ? end : 0, 0, 0);
    out += text(begin);
    out.append(bytes.begin(), bytes.end());
    return out + supplement;
  }

 private:
  [[nodiscard]] std::string text(std::size_t begin) const {
    std::string out = "/";
    const auto add = [&](const std::string& name, const std::string& value) {
      out += name + "/";
      for (const char c : value) out += c == '/' ? std::string("//") : std::string(1, c);
      out += "/";
    };
    for (const auto& [name, value] : keywords) add(name, value);
    const std::size_t end = begin + bytes.size();
    add("$BEGINDATA", fmt::format("{:08}", begin));
    add("$ENDDATA", fmt::format("{:08}", begin + bytes.size() - 1 + static_cast<std::size_t>(end_shift)));
    if (!supplement.empty()) {
      add("$BEGINSTEXT", fmt::format("{:08}", end));
      add("$ENDSTEXT", fmt::format("{:08}", end + supplement.size() - 1));
    }
    return out;
  }
};

}  // namespace unshuffle::cytometry
