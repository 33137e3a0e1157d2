#include "cytometry/fcs_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>

#include "unshuffle/core/error.hpp"

namespace unshuffle::cytometry {
namespace {

using Notes = std::vector<std::string>;

constexpr std::size_t header_size = 58;

std::string upper(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(), [](unsigned char c) { return std::toupper(c); });
  return out;
}

std::optional<std::uint64_t> to_whole(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || failure != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

/// One of the six offsets of the HEADER, eight characters each. Blank, 0 and -1 all mean "look into TEXT".
std::uint64_t header_offset(std::string_view content, std::size_t at, const std::string& source) {
  const std::string_view field = trimmed(content.substr(at, 8));
  if (field.empty() || field == "-1") return 0;
  const auto value = to_whole(field);
  if (!value) throw BadData(fmt::format("{}: byte {} of the FCS header: an offset was expected", source, at));
  return *value;
}

std::string read_version(std::string_view content, const std::string& source) {
  if (content.size() < header_size || content.substr(0, 3) != "FCS") {
    throw BadData(
        fmt::format("{}: this is not an FCS file; it must begin with FCS2.0, FCS3.0 or FCS3.1 and a header of "
                    "{} bytes",
                    source, header_size));
  }
  std::string version(trimmed(content.substr(0, 6)));
  for (const char* known : {"FCS2.0", "FCS3.0", "FCS3.1", "FCS3.2"}) {
    if (version == known) return version;
  }
  throw BadData(fmt::format("{}: the file declares version \"{}\"; FCS2.0, FCS3.0, FCS3.1 or FCS3.2 was expected",
                            source, std::string(content.substr(3, 3))));
}

std::string_view segment_bytes(std::string_view content, Segment segment, std::string_view what,
                               const std::string& source) {
  if (segment.begin == 0 || segment.begin >= content.size() || segment.end < segment.begin ||
      segment.end > content.size()) {
    throw BadData(fmt::format("{}: {} is declared at bytes {} to {}; the file has {} bytes", source, what,
                              segment.begin, segment.end, content.size()));
  }
  return content.substr(segment.begin, segment.end - segment.begin + 1);
}

struct Tokens {
  std::vector<std::string> parts;
  bool closed = true;  ///< The last part ended with a delimiter.
};

enum class Doubled { is_escape, is_empty_value };

/// TEXT is delimiter, keyword, delimiter, value, ...; inside a keyword or value the delimiter is written twice. Some
/// programs write empty values instead, which the standard forbids because the two look alike.
Tokens split(std::string_view text, char delimiter, Doubled doubled) {
  Tokens tokens;
  std::string part;
  bool open = false;
  for (std::size_t at = 1; at < text.size(); ++at) {
    if (text[at] != delimiter) {
      part += text[at];
      open = true;
    } else if (doubled == Doubled::is_escape && at + 1 < text.size() && text[at + 1] == delimiter) {
      part += delimiter;
      open = true;
      ++at;
    } else {
      tokens.parts.push_back(std::move(part));
      part.clear();
      open = false;
    }
  }
  const bool only_padding = part.find_first_not_of(std::string_view(" \r\n\t\0", 5)) == std::string::npos;
  if (open && !only_padding) {
    tokens.parts.push_back(std::move(part));
    tokens.closed = false;
  }
  return tokens;
}

/// An unpaired last part that no delimiter closes is a byte or two too many in the segment's end.
Keywords pair_up(Tokens tokens) {
  if (tokens.parts.size() % 2 == 1 && !tokens.closed) tokens.parts.pop_back();
  Keywords keywords;
  for (std::size_t at = 0; at + 1 < tokens.parts.size(); at += 2) {
    keywords.try_emplace(upper(trimmed(tokens.parts[at])), std::move(tokens.parts[at + 1]));
  }
  return keywords;
}

/// Whether the keywords describe a data set, as they do when the delimiters were understood.
bool plausible(const Keywords& keywords) {
  const auto channels = value_of(keywords, "$PAR");
  if (!channels || !value_of(keywords, "$DATATYPE") || !value_of(keywords, "$BYTEORD")) return false;
  const auto count = to_whole(*channels);
  if (!count || *count > keywords.size()) return false;
  for (std::uint64_t channel = 0; channel < *count; ++channel) {
    const auto at = static_cast<Index>(channel);
    if (!value_of(keywords, channel_keyword(at, 'B')) || !value_of(keywords, channel_keyword(at, 'R'))) return false;
  }
  return true;
}

Keywords parse_text(std::string_view text, const std::string& source, Notes& notes) {
  Keywords escaped = pair_up(split(text, text.front(), Doubled::is_escape));
  if (plausible(escaped)) return escaped;
  Keywords with_empty = pair_up(split(text, text.front(), Doubled::is_empty_value));
  if (!plausible(with_empty)) return escaped;
  notes.push_back(
      fmt::format("{}: TEXT has empty values, which FCS does not allow; two delimiters in a row were read "
                  "as one",
                  source));
  return with_empty;
}

void add_supplement(Keywords& keywords, std::string_view content, char delimiter, const std::string& source,
                    Notes& notes) {
  const Segment segment{whole_number(keywords, "$BEGINSTEXT", source).value_or(0),
                        whole_number(keywords, "$ENDSTEXT", source).value_or(0)};
  if (segment.begin == 0 || segment.end <= segment.begin) return;
  // Some instruments store other data there, such as a ZIP archive of settings.
  if (segment.end > content.size() || content[segment.begin] != delimiter) {
    notes.push_back(
        fmt::format("{}: bytes {} to {} are declared as supplemental TEXT but hold no keywords; they are not "
                    "read",
                    source, segment.begin, segment.end));
    return;
  }
  const std::string_view text = segment_bytes(content, segment, "supplemental TEXT", source);
  // Keywords of the primary segment win; the standard forbids repeating them.
  keywords.merge(pair_up(split(text, delimiter, Doubled::is_escape)));
}

}  // namespace

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view blank(" \t\r\n\0", 5);
  const auto first = text.find_first_not_of(blank);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(blank) - first + 1);
}

std::optional<double> to_number(std::string_view text) {
  text = trimmed(text);
  if (!text.empty() && text.front() == '+') text.remove_prefix(1);
  double value = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || failure != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return std::isfinite(value) ? std::optional(value) : std::nullopt;
}

std::vector<std::string> split_at_commas(std::string_view text) {
  std::vector<std::string> parts;
  for (;;) {
    const auto comma = text.find(',');
    parts.emplace_back(trimmed(text.substr(0, comma)));
    if (comma == std::string_view::npos) return parts;
    text.remove_prefix(comma + 1);
  }
}

std::string channel_keyword(Index channel, char letter) { return fmt::format("$P{}{}", channel + 1, letter); }

std::optional<std::string> value_of(const Keywords& keywords, const std::string& name) {
  const auto found = keywords.find(name);
  if (found == keywords.end()) return std::nullopt;
  const std::string_view value = trimmed(found->second);
  if (value.empty()) return std::nullopt;
  return std::string(value);
}

std::string required(const Keywords& keywords, const std::string& name, const std::string& source) {
  if (auto value = value_of(keywords, name)) return *value;
  throw BadData(fmt::format("{}: the keyword {} is missing", source, name));
}

std::optional<std::uint64_t> whole_number(const Keywords& keywords, const std::string& name,
                                          const std::string& source) {
  const auto value = value_of(keywords, name);
  if (!value) return std::nullopt;
  if (const auto number = to_whole(*value)) return number;
  throw BadData(fmt::format("{}: {} = \"{}\"; a whole number of at least 0 was expected", source, name, *value));
}

FcsText read_text(std::string_view content, const std::string& source, Notes& notes) {
  FcsText text;
  text.version = read_version(content, source);
  const Segment primary{header_offset(content, 10, source), header_offset(content, 18, source)};
  text.data = {header_offset(content, 26, source), header_offset(content, 34, source)};
  const std::string_view bytes = segment_bytes(content, primary, "TEXT", source);
  text.keywords = parse_text(bytes, source, notes);
  add_supplement(text.keywords, content, bytes.front(), source, notes);
  return text;
}

}  // namespace unshuffle::cytometry
