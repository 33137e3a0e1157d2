#include "unshuffle/cytometry/fcs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cctype>
#include <cmath>
#include <cstdint>

#include "core/text.hpp"
#include "cytometry/fcs_text.hpp"
#include "unshuffle/core/error.hpp"
#include "unshuffle/tables/table.hpp"

namespace unshuffle::cytometry {
namespace {

enum class NumberType { integer, single_precision, double_precision };

struct Layout {
  NumberType type = NumberType::integer;
  bool big_endian = false;
  std::size_t event_bytes = 0;
};

struct DataPlace {
  std::size_t begin = 0;
  Index events = 0;
};

NumberType number_type(const Keywords& keywords, const std::string& source) {
  const std::string type = required(keywords, "$DATATYPE", source);
  if (type == "I") return NumberType::integer;
  if (type == "F") return NumberType::single_precision;
  if (type == "D") return NumberType::double_precision;
  throw BadData(fmt::format("{}: $DATATYPE = \"{}\"; I, F or D was expected (numbers written as text, A, are not read)",
                            source, type));
}

/// 1,2,3,4 (least byte first) or 4,3,2,1, of any length; the mixed orders of old machines are rejected.
bool is_big_endian(const Keywords& keywords, const std::string& source) {
  const std::string order = required(keywords, "$BYTEORD", source);
  const std::vector<std::string> parts = split_at_commas(order);
  bool ascending = parts.size() <= 8;
  bool descending = parts.size() <= 8;
  for (std::size_t at = 0; at < parts.size(); ++at) {
    ascending = ascending && parts[at] == std::to_string(at + 1);
    descending = descending && parts[at] == std::to_string(parts.size() - at);
  }
  if (ascending || descending) return !ascending;
  throw BadData(
      fmt::format("{}: $BYTEORD = \"{}\"; 1,2,3,4 or 4,3,2,1 was expected (mixed orders are not read)", source, order));
}

double number_in(const std::string& keyword, const std::string& value, const std::string& source) {
  if (const auto number = to_number(value)) return *number;
  throw BadData(fmt::format("{}: {} = \"{}\"; a number was expected", source, keyword, value));
}

int read_bits(const Keywords& keywords, const std::string& keyword, NumberType type, const std::string& source) {
  const std::string value = required(keywords, keyword, source);
  const double bits = number_in(keyword, value, source);
  const auto refuse = [&](std::string_view expected) {
    throw BadData(fmt::format("{}: {} = \"{}\"; {} was expected", source, keyword, value, expected));
  };
  if (type == NumberType::single_precision && bits != 32) refuse("32 for $DATATYPE F");
  if (type == NumberType::double_precision && bits != 64) refuse("64 for $DATATYPE D");
  const bool whole_bytes = bits >= 8 && bits <= 64 && std::fmod(bits, 8) == 0;
  if (!whole_bytes) refuse("a multiple of 8 up to 64 (values that share bytes are not read)");
  return static_cast<int>(bits);
}

/// $PnE and $PnG: how the stored number came from the amplifier.
void read_amplifier(FcsChannel& channel, Index at, const Keywords& keywords, NumberType type, const std::string& source,
                    std::vector<std::string>& notes) {
  const std::string keyword = channel_keyword(at, 'E');
  if (const auto value = value_of(keywords, keyword)) {
    const std::vector<std::string> parts = split_at_commas(*value);
    if (parts.size() != 2) {
      throw BadData(fmt::format("{}: {} = \"{}\"; two numbers were expected, as in 0,0", source, keyword, *value));
    }
    channel.decades = number_in(keyword, parts[0], source);
    channel.offset = number_in(keyword, parts[1], source);
  }
  if (const auto value = value_of(keywords, channel_keyword(at, 'G'))) {
    channel.gain = number_in(channel_keyword(at, 'G'), *value, source);
  }
  if (channel.decades != 0 && type != NumberType::integer) {
    notes.push_back(
        fmt::format("{}: {} claims a logarithmic scale, but by $DATATYPE the values are linear; they are read "
                    "unchanged",
                    source, keyword));
    channel.decades = channel.offset = 0;
  }
  if (channel.decades < 0) {
    throw BadData(fmt::format("{}: {} = {} decades; at least 0 was expected", source, keyword, channel.decades));
  }
  // 4,0 is what many programs write for 4,1: the logarithm never reaches 0.
  if (channel.decades > 0 && channel.offset == 0) channel.offset = 1;
  if (channel.decades > 0 && !(channel.range > 0)) {
    throw BadData(fmt::format("{}: {} is logarithmic and needs a range $P{}R above 0; it is {}", source, keyword,
                              at + 1, channel.range));
  }
  if (!(channel.gain > 0)) {
    notes.push_back(fmt::format("{}: $P{}G = {} is not a valid gain; 1 is used", source, at + 1, channel.gain));
    channel.gain = 1;
  }
}

void refuse_own_type(Index at, const Keywords& keywords, const std::string& source) {
  const std::string keyword = fmt::format("$P{}DATATYPE", at + 1);
  const auto own = value_of(keywords, keyword);
  if (!own || *own == required(keywords, "$DATATYPE", source)) return;
  throw BadData(fmt::format("{}: {} = \"{}\" differs from $DATATYPE; one type for all channels was expected", source,
                            keyword, *own));
}

FcsChannel read_channel(Index at, const Keywords& keywords, NumberType type, const std::string& source,
                        std::vector<std::string>& notes) {
  refuse_own_type(at, keywords, source);
  FcsChannel channel;
  channel.name = as_utf8(value_of(keywords, channel_keyword(at, 'N')).value_or(fmt::format("P{}", at + 1)));
  channel.label = as_utf8(value_of(keywords, channel_keyword(at, 'S')).value_or(""));
  channel.bits = read_bits(keywords, channel_keyword(at, 'B'), type, source);
  const std::string range = channel_keyword(at, 'R');
  channel.range = number_in(range, required(keywords, range, source), source);
  read_amplifier(channel, at, keywords, type, source, notes);
  return channel;
}

/// A file with more channels than keywords fails at the first channel it does not describe.
std::vector<FcsChannel> read_channels(const Keywords& keywords, NumberType type, const std::string& source,
                                      std::vector<std::string>& notes) {
  (void)required(keywords, "$PAR", source);
  const auto count = *whole_number(keywords, "$PAR", source);
  if (count == 0) throw BadData(fmt::format("{}: $PAR = 0; at least one channel was expected", source));
  std::vector<FcsChannel> channels;
  for (std::uint64_t at = 0; at < count; ++at) {
    channels.push_back(read_channel(static_cast<Index>(at), keywords, type, source, notes));
  }
  return channels;
}

void require_list_mode(const Keywords& keywords, const std::string& source) {
  const std::string mode = value_of(keywords, "$MODE").value_or("L");
  if (mode == "L") return;
  throw BadData(
      fmt::format("{}: $MODE = \"{}\"; L (one row per event) was expected, histograms are not read", source, mode));
}

/// Bytes a segment claims, both ends counted.
std::uint64_t length_of(const Segment& segment) {
  return segment.end >= segment.begin ? segment.end - segment.begin + 1 : 0;
}

/// HEADER and TEXT may both locate DATA. HEADER's eight digits do not suffice for large files, which have 0 there. If
/// they disagree, the one that fits the number of events is used.
Segment choose_data(const FcsText& text, std::uint64_t expected_bytes, const std::string& source,
                    std::vector<std::string>& notes) {
  const Segment header = text.data;
  const Segment declared{whole_number(text.keywords, "$BEGINDATA", source).value_or(0),
                         whole_number(text.keywords, "$ENDDATA", source).value_or(0)};
  const bool header_usable = header.begin > 0 && header.end > header.begin;
  const bool text_usable = declared.begin > 0 && declared.end > declared.begin;
  if (!header_usable && !text_usable) {
    throw BadData(
        fmt::format("{}: neither the header ({}, {}) nor $BEGINDATA, $ENDDATA ({}, {}) say where the events "
                    "are",
                    source, header.begin, header.end, declared.begin, declared.end));
  }
  if (!text_usable) return header;
  if (!header_usable) return declared;
  if (header.begin == declared.begin && header.end == declared.end) return header;
  const bool text_fits_better = length_of(declared) == expected_bytes && length_of(header) != expected_bytes;
  notes.push_back(fmt::format("{}: the header says the events are at bytes {} to {}, TEXT says {} to {}; {} is used",
                              source, header.begin, header.end, declared.begin, declared.end,
                              text_fits_better ? "TEXT" : "the header"));
  return text_fits_better ? declared : header;
}

/// The number of events present. The end of DATA is off by one in many files, so one byte more or less is tolerated as
/// long as the file holds all events of $TOT; anything else is an error or a note.
DataPlace locate_data(const FcsText& text, std::size_t event_bytes, std::size_t file_bytes, const std::string& source,
                      std::vector<std::string>& notes) {
  const auto total = whole_number(text.keywords, "$TOT", source);
  const bool countable = total && *total <= file_bytes / event_bytes;
  const std::uint64_t expected = countable ? *total * event_bytes : 0;
  const Segment data = choose_data(text, expected, source, notes);
  const std::uint64_t in_file = data.begin < file_bytes ? file_bytes - data.begin : 0;
  const std::uint64_t length = std::min(length_of(data), in_file);
  const auto place = [&](std::uint64_t events) {
    return DataPlace{static_cast<std::size_t>(data.begin), static_cast<Index>(events)};
  };
  if (!total) {
    notes.push_back(
        fmt::format("{}: $TOT is missing; {} bytes of events make {} of them", source, length, length / event_bytes));
    return place(length / event_bytes);
  }
  if (!countable || expected > in_file || expected > length + 1) {
    throw BadData(
        fmt::format("{}: $TOT promises {} events of {} bytes, DATA has {} bytes; the file is cut short or "
                    "$TOT is wrong",
                    source, *total, event_bytes, length));
  }
  if (expected + 1 < length) {
    notes.push_back(fmt::format("{}: {} bytes follow the last of the {} events that $TOT promises; they are not read",
                                source, length - expected, *total));
  }
  return place(*total);
}

std::uint64_t read_unsigned(const unsigned char* bytes, int count, bool big_endian) {
  std::uint64_t value = 0;
  for (int at = 0; at < count; ++at) value = (value << 8U) | bytes[big_endian ? at : count - 1 - at];
  return value;
}

/// Bits above the range hold no data: a 10-bit converter may leave anything in the upper six bits of its word.
std::uint64_t mask_of(const FcsChannel& channel) {
  const std::uint64_t all = channel.bits == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << channel.bits) - 1;
  if (!(channel.range > 1) || channel.range >= static_cast<double>(all)) return all;
  const auto largest = static_cast<std::uint64_t>(std::ceil(channel.range)) - 1;
  return all & ((std::uint64_t{1} << std::bit_width(largest)) - 1);
}

double stored_value(const unsigned char* bytes, const FcsChannel& channel, const Layout& layout, std::uint64_t mask) {
  const std::uint64_t bits = read_unsigned(bytes, channel.bits / 8, layout.big_endian);
  switch (layout.type) {
    case NumberType::single_precision:
      return std::bit_cast<float>(static_cast<std::uint32_t>(bits));
    case NumberType::double_precision:
      return std::bit_cast<double>(bits);
    case NumberType::integer:
      break;
  }
  return static_cast<double>(bits & mask);
}

/// Undoes the amplifier: v = f₂·10^(f₁·stored/range) for f₁ decades from f₂, else stored/gain.
double linear_value(double stored, const FcsChannel& channel) {
  if (channel.decades > 0) return channel.offset * std::pow(10.0, channel.decades * stored / channel.range);
  return stored / channel.gain;
}

Matrix read_events(const unsigned char* data, Index events, const std::vector<FcsChannel>& channels,
                   const Layout& layout) {
  Matrix values(events, static_cast<Index>(channels.size()));
  std::size_t offset = 0;
  for (std::size_t at = 0; at < channels.size(); ++at) {
    const FcsChannel& channel = channels[at];
    const std::uint64_t mask = mask_of(channel);
    for (Index event = 0; event < events; ++event) {
      const unsigned char* bytes = data + static_cast<std::size_t>(event) * layout.event_bytes + offset;
      values(event, static_cast<Index>(at)) = linear_value(stored_value(bytes, channel, layout, mask), channel);
    }
    offset += static_cast<std::size_t>(channel.bits) / 8;
  }
  return values;
}

void note_further_data_sets(FcsFile& file) {
  const auto next = value_of(file.keywords, "$NEXTDATA");
  if (!next || to_number(*next).value_or(0) == 0) return;
  file.notes.push_back(
      fmt::format("{}: $NEXTDATA = {}: the file holds further data sets; the first is read", file.source, *next));
}

}  // namespace

Index FcsFile::find(const std::string& name) const {
  const auto found =
      std::find_if(channels.begin(), channels.end(), [&](const FcsChannel& channel) { return channel.name == name; });
  return found == channels.end() ? -1 : found - channels.begin();
}

Index FcsFile::channel(const std::string& name) const {
  const Index at = find(name);
  if (at >= 0) return at;
  std::vector<std::string> names;
  for (const FcsChannel& channel : channels) names.push_back(channel.name);
  throw BadData(
      fmt::format("{}: there is no channel \"{}\"; the channels are {}", source, name, fmt::join(names, ", ")));
}

FcsFile parse_fcs(std::string_view content, const std::string& source) {
  FcsFile file;
  file.source = source;
  FcsText text = read_text(content, source, file.notes);
  file.version = text.version;
  require_list_mode(text.keywords, source);
  Layout layout;
  layout.type = number_type(text.keywords, source);
  layout.big_endian = is_big_endian(text.keywords, source);
  file.channels = read_channels(text.keywords, layout.type, source, file.notes);
  for (const FcsChannel& channel : file.channels) layout.event_bytes += static_cast<std::size_t>(channel.bits) / 8;
  const DataPlace place = locate_data(text, layout.event_bytes, content.size(), source, file.notes);
  file.keywords = std::move(text.keywords);
  const auto* data = reinterpret_cast<const unsigned char*>(content.data()) + place.begin;
  file.events = read_events(data, place.events, file.channels, layout);
  note_further_data_sets(file);
  return file;
}

FcsFile read_fcs(const std::string& path) { return parse_fcs(read_file(path), path); }

bool has_fcs_extension(std::string_view path) {
  constexpr std::string_view extension = ".fcs";
  if (path.size() < extension.size()) return false;
  const std::string_view end = path.substr(path.size() - extension.size());
  return std::equal(end.begin(), end.end(), extension.begin(),
                    [](unsigned char a, char b) { return std::tolower(a) == b; });
}

}  // namespace unshuffle::cytometry
