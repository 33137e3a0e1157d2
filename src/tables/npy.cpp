#include "unshuffle/tables/npy.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <optional>
#include <string_view>

#include "core/text.hpp"
#include "unshuffle/core/error.hpp"

namespace unshuffle {
namespace {

/// What the header says: a Python dictionary such as {'descr': '<f8', 'fortran_order': False, 'shape': (3, 2), }.
struct Header {
  std::optional<std::string> type{};
  std::optional<bool> column_by_column{};
  std::optional<std::vector<std::uint64_t>> shape{};
};

/// The few Python literals that such a dictionary is made of.
class HeaderReader {
 public:
  HeaderReader(std::string_view text, const std::string& source) : rest_(text), source_(source) {}

  Header read() {
    Header header;
    expect('{');
    while (!take('}')) {
      const std::string key = quoted();
      expect(':');
      if (key == "descr" && !header.type)
        header.type = type();
      else if (key == "fortran_order" && !header.column_by_column)
        header.column_by_column = truth();
      else if (key == "shape" && !header.shape)
        header.shape = shape();
      else
        refuse(fmt::format("the header has an unexpected \"{}\"", key));
      if (!take(',')) {
        expect('}');
        break;
      }
    }
    skip_space();
    if (!rest_.empty()) refuse("unexpected text after the header's dictionary");
    if (!header.type || !header.column_by_column || !header.shape)
      refuse("the header must contain descr, fortran_order and shape");
    return header;
  }

 private:
  [[noreturn]] void refuse(const std::string& what) const { throw BadData(fmt::format("{}: {}", source_, what)); }

  void skip_space() {
    const std::size_t space = rest_.find_first_not_of(" \t\n");
    rest_.remove_prefix(std::min(space, rest_.size()));
  }
  bool take(char wanted) {
    skip_space();
    if (rest_.empty() || rest_.front() != wanted) return false;
    rest_.remove_prefix(1);
    return true;
  }
  void expect(char wanted) {
    if (!take(wanted)) refuse(fmt::format("the header lacks a '{}'", wanted));
  }
  std::string quoted() {
    const char quote = take('"') ? '"' : '\'';
    if (quote == '\'') expect('\'');
    const std::size_t end = rest_.find(quote);
    if (end == std::string_view::npos) refuse("unterminated quote in the header");
    std::string text(rest_.substr(0, end));
    rest_.remove_prefix(end + 1);
    return text;
  }
  std::string type() {
    skip_space();
    if (rest_.starts_with('[')) refuse("arrays with named fields are not supported; save one array per table");
    return quoted();
  }
  bool truth() {
    skip_space();
    for (const auto& [word, value] : {std::pair{std::string_view("True"), true}, {"False", false}}) {
      if (!rest_.starts_with(word)) continue;
      rest_.remove_prefix(word.size());
      return value;
    }
    refuse("fortran_order must be True or False");
  }
  std::vector<std::uint64_t> shape() {
    std::vector<std::uint64_t> sizes;
    expect('(');
    while (!take(')')) {
      skip_space();
      std::uint64_t size = 0;
      const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), size);
      if (error != std::errc()) refuse("shape must be a tuple of sizes");
      rest_.remove_prefix(std::size_t(end - rest_.data()));
      sizes.push_back(size);
      if (!take(',')) {
        expect(')');
        break;
      }
    }
    return sizes;
  }

  std::string_view rest_;
  const std::string& source_;
};

template <class Number>
Number number_at(const char* bytes, bool swapped) {
  char own[sizeof(Number)];
  std::memcpy(own, bytes, sizeof own);
  if (swapped) std::reverse(own, own + sizeof own);
  Number value;
  std::memcpy(&value, own, sizeof value);
  return value;
}

/// One element as a double; nothing when a double cannot hold it.
using Decoder = std::optional<double> (*)(const char* bytes, bool swapped);

template <class Number>
std::optional<double> decoded(const char* bytes, bool swapped) {
  const auto value = number_at<Number>(bytes, swapped);
  if constexpr (std::is_integral_v<Number> && sizeof(Number) == 8) {
    constexpr auto largest = Number{1} << 53U;  // beyond which a double skips integers
    if (value > largest || (std::is_signed_v<Number> && value < -largest)) return std::nullopt;
  }
  return static_cast<double>(value);
}

struct Element {
  std::size_t size;
  Decoder decode;
  bool swapped;
};

Element element_of(const std::string& type, const std::string& source) {
  static const std::pair<const char*, std::pair<std::size_t, Decoder>> kinds[] = {
      {"f8", {8, decoded<double>}},        {"f4", {4, decoded<float>}},         {"i8", {8, decoded<std::int64_t>}},
      {"i4", {4, decoded<std::int32_t>}},  {"i2", {2, decoded<std::int16_t>}},  {"i1", {1, decoded<std::int8_t>}},
      {"u8", {8, decoded<std::uint64_t>}}, {"u4", {4, decoded<std::uint32_t>}}, {"u2", {2, decoded<std::uint16_t>}},
      {"u1", {1, decoded<std::uint8_t>}},  {"b1", {1, decoded<std::uint8_t>}}};
  const bool ordered = !type.empty() && std::string_view("<>|=").find(type.front()) != std::string_view::npos;
  const bool big = ordered && type.front() == '>';
  for (const auto& [name, kind] : kinds) {
    if (!ordered || type.substr(1) != name) continue;
    return {kind.first, kind.second, big != (std::endian::native == std::endian::big)};
  }
  throw BadData(fmt::format("{}: holds elements of type \"{}\"; float64, float32, integers and booleans are supported",
                            source, type));
}

std::uint64_t little_endian(std::string_view bytes) {
  std::uint64_t value = 0;
  for (std::size_t k = bytes.size(); k-- > 0;) value = value << 8U | std::uint8_t(bytes[k]);
  return value;
}

/// The header's text, and where the numbers begin.
std::pair<std::string_view, std::size_t> header_text(std::string_view bytes, const std::string& source) {
  constexpr std::string_view magic = "\x93NUMPY";
  if (!bytes.starts_with(magic) || bytes.size() < magic.size() + 2)
    throw BadData(fmt::format("{}: this is not a .npy file", source));
  const int version = std::uint8_t(bytes[magic.size()]);
  if (version < 1 || version > 3)
    throw BadData(fmt::format("{}: has .npy format version {}; 1 to 3 are supported", source, version));
  const std::size_t length_bytes = version == 1 ? 2 : 4, begin = magic.size() + 2 + length_bytes;
  const std::uint64_t length =
      bytes.size() < begin ? bytes.size() : little_endian(bytes.substr(magic.size() + 2, length_bytes));
  if (bytes.size() < begin || length > bytes.size() - begin)
    throw BadData(fmt::format("{}: ends within its header", source));
  return {bytes.substr(begin, length), begin + length};
}

/// Throws unless `bytes` are just what an array of this shape takes.
void require_size(const std::vector<std::uint64_t>& shape, std::size_t element, std::size_t bytes,
                  const std::string& source) {
  if (shape.empty() || shape.size() > 2)
    throw BadData(fmt::format("{}: has {} dimensions; 1 or 2 were expected", source, shape.size()));
  const std::uint64_t rows = shape.front(), columns = shape.size() == 2 ? shape.back() : 1;
  if (rows == 0 || columns == 0) throw BadData(fmt::format("{}: holds no numbers", source));
  const std::uint64_t held = bytes / element;
  if (bytes % element != 0 || columns > held || held % columns != 0 || held / columns != rows) {
    throw BadData(fmt::format("{}: declares {} x {} numbers of {} bytes, but {} bytes follow", source, rows, columns,
                              element, bytes));
  }
}

}  // namespace

Table parse_npy(const std::string& bytes, const std::string& source) {
  const auto [text, begin] = header_text(bytes, source);
  const Header header = HeaderReader(text, source).read();
  const Element element = element_of(*header.type, source);
  require_size(*header.shape, element.size, bytes.size() - begin, source);
  const bool matrix = header.shape->size() == 2;
  const auto rows = Index(header.shape->front()), columns = matrix ? Index(header.shape->back()) : 1;
  const std::string name = as_utf8(std::filesystem::path(source).stem().string());
  Table table{.source = source, .columns = {}, .rows = rows};
  for (Index k = 0; k < columns; ++k) {
    Column column{.name = matrix ? fmt::format("{}{}", name, k + 1) : name};
    column.holds_numbers = true;
    column.numbers.resize(std::size_t(rows));
    for (Index row = 0; row < rows; ++row) {
      const Index place = *header.column_by_column ? k * rows + row : row * columns + k;
      const std::optional<double> value =
          element.decode(bytes.data() + begin + std::size_t(place) * element.size, element.swapped);
      if (!value || !std::isfinite(*value)) {
        throw BadData(fmt::format("{}: row {} of column \"{}\" is {}; a finite number was expected", source, row,
                                  column.name, value ? fmt::format("{}", *value) : "an integer beyond 2^53"));
      }
      column.numbers[std::size_t(row)] = *value;
    }
    table.columns.push_back(std::move(column));
  }
  return table;
}

Table read_npy(const std::string& path) { return parse_npy(read_file(path), path); }

}  // namespace unshuffle
