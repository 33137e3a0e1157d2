#include <fmt/format.h>

#include <bit>
#include <cstdint>

#include "unshuffle/core/error.hpp"
#include "unshuffle/cytometry/fcs.hpp"
#include "unshuffle/tables/table.hpp"

namespace unshuffle::cytometry {
namespace {

constexpr char delimiter = '\f';                  // Rarely part of a value, and common in files of instruments.
constexpr std::size_t text_begin = 58;            // Right after the HEADER.
constexpr std::size_t longest_file = 99'999'999;  // Limit of eight digits.

void append_escaped(std::string& out, std::string_view part) {
  for (const char c : part) {
    if (c == delimiter) out += delimiter;
    out += c;
  }
  out += delimiter;
}

/// FCS does not allow empty values; a keyword without one is omitted.
void append_keyword(std::string& out, std::string_view name, std::string_view value) {
  if (value.empty()) return;
  if (value.front() == delimiter) {
    throw InvalidInput(
        fmt::format("the value of {} begins with a form feed, which an FCS file cannot represent", name));
  }
  append_escaped(out, name);
  append_escaped(out, value);
}

std::string keyword_text(const FcsFile& file) {
  std::string text(1, delimiter);
  append_keyword(text, "$BYTEORD", "1,2,3,4");
  append_keyword(text, "$DATATYPE", "F");
  append_keyword(text, "$MODE", "L");
  append_keyword(text, "$NEXTDATA", "0");
  append_keyword(text, "$PAR", std::to_string(file.channels.size()));
  append_keyword(text, "$TOT", std::to_string(file.events.rows()));
  for (const char* segment : {"$BEGINANALYSIS", "$ENDANALYSIS", "$BEGINSTEXT", "$ENDSTEXT"}) {
    append_keyword(text, segment, "0");
  }
  for (std::size_t at = 0; at < file.channels.size(); ++at) {
    const FcsChannel& channel = file.channels[at];
    const std::string prefix = fmt::format("$P{}", at + 1);
    std::string range;
    append_number(range, channel.range);
    append_keyword(text, prefix + "N", channel.name);
    append_keyword(text, prefix + "S", channel.label);
    append_keyword(text, prefix + "B", "32");
    append_keyword(text, prefix + "R", range);
    append_keyword(text, prefix + "E", "0,0");
  }
  for (const auto& [name, value] : file.keywords) {
    if (!name.starts_with('$')) append_keyword(text, name, value);
  }
  return text;
}

std::string data_offsets(std::size_t begin, std::size_t end) {
  std::string text;
  append_keyword(text, "$BEGINDATA", fmt::format("{:08}", begin));
  append_keyword(text, "$ENDDATA", fmt::format("{:08}", end));
  return text;
}

void append_float(std::string& out, float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  for (unsigned shift = 0; shift < 32; shift += 8) out += static_cast<char>((bits >> shift) & 0xFFU);
}

}  // namespace

std::string to_fcs(const FcsFile& file) {
  if (file.events.cols() != static_cast<Index>(file.channels.size())) {
    throw InvalidInput(
        fmt::format("{} channels are described and the events have {}", file.channels.size(), file.events.cols()));
  }
  std::string text = keyword_text(file);
  // The offsets have eight digits each, so the length of TEXT is known before their values are.
  const std::size_t data_begin = text_begin + text.size() + data_offsets(0, 0).size();
  const std::size_t data_end = data_begin + 4 * static_cast<std::size_t>(file.events.size()) - 1;
  if (data_end > longest_file) {
    throw InvalidInput(fmt::format("{} events of {} channels need {} bytes; an FCS file may have {}",
                                   file.events.rows(), file.events.cols(), data_end, longest_file));
  }
  text += data_offsets(data_begin, data_end);
  std::string out =
      fmt::format("FCS3.1    {:>8}{:>8}{:>8}{:>8}{:>8}{:>8}", text_begin, data_begin - 1, data_begin, data_end, 0, 0);
  out += text;
  for (Index event = 0; event < file.events.rows(); ++event) {
    for (Index channel = 0; channel < file.events.cols(); ++channel) {
      append_float(out, static_cast<float>(file.events(event, channel)));
    }
  }
  return out;
}

}  // namespace unshuffle::cytometry
