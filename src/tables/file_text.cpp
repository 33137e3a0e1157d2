#include "tables/file_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <optional>

#include "core/text.hpp"
#include "tables/compression.hpp"
#include "unshuffle/core/error.hpp"

namespace unshuffle {
namespace {

using namespace std::string_view_literals;

/// A kind of file that is no text, how it begins, and what to do about it.
struct OtherKind {
  std::string_view mark;
  std::string_view is;
  std::string_view advice;
};

constexpr std::string_view with_python = "read it in Python and fit it with the Python package, or save it as CSV";
constexpr std::string_view save_as_csv = "save it as CSV";
constexpr std::string_view decompress = "decompress it first";

constexpr std::array other_kinds{
    OtherKind{"PAR1"sv, "a Parquet file", with_python},
    OtherKind{"ARROW1"sv, "an Arrow file", with_python},
    OtherKind{"FEA1"sv, "a Feather file", with_python},
    OtherKind{"\xff\xff\xff\xff"sv, "an Arrow stream", with_python},
    OtherKind{"\x89HDF"sv, "an HDF5 file", with_python},
    OtherKind{"\x80\x04\x95"sv, "a pickled object", with_python},
    OtherKind{"\xd0\xcf\x11\xe0"sv, "an old Excel workbook", save_as_csv},
    OtherKind{"RDX3\n"sv, "an R workspace", "save the table with write.csv(table, row.names = FALSE)"},
    OtherKind{"RDX2\n"sv, "an R workspace", "save the table with write.csv(table, row.names = FALSE)"},
    OtherKind{"X\n\0\0\0"sv, "an R object", "save it with write.csv(table, row.names = FALSE)"},
    OtherKind{"<stata_dta>"sv, "a Stata file", "save it as CSV (export delimited)"},
    OtherKind{"$FL2"sv, "an SPSS file", save_as_csv},
    OtherKind{"SQLite format 3"sv, "an SQLite database", "export the table as CSV"},
    OtherKind{"\x93NUMPY"sv, "a NumPy array", "give it a name that ends in .npy"},
    OtherKind{"FCS2.0"sv, "an FCS file", "give it a name that ends in .fcs"},
    OtherKind{"FCS3."sv, "an FCS file", "give it a name that ends in .fcs"},
    OtherKind{"$FL3"sv, "an SPSS file", save_as_csv},
    OtherKind{"* * * * * * "sv, "an SPSS portable file", save_as_csv},
    OtherKind{"\0\0\0\0\0\0\0\0\0\0\0\0\xc2\xea\x81\x60"sv, "a SAS table", save_as_csv},
    OtherKind{"HEADER RECORD*******"sv, "a SAS transport file", save_as_csv},
    OtherKind{"MATLAB 5.0"sv, "a MATLAB file", "save the table with writetable"},
    OtherKind{"Obj\x01"sv, "an Avro file", with_python},
    OtherKind{"s\2\1"sv, "a Stata file", "save it as CSV (export delimited)"},
    OtherKind{"r\2\1"sv, "a Stata file", "save it as CSV (export delimited)"},
    OtherKind{"RDA3\n"sv, "an R workspace", "save the table with write.csv(table, row.names = FALSE)"},
    OtherKind{"7z\xbc\xaf"sv, "a 7-Zip archive", decompress},
    OtherKind{"Rar!"sv, "a RAR archive", decompress},
    OtherKind{"{\""sv, "JSON", "save it as CSV, or read it in Python and fit it with the Python package"},
    OtherKind{"{\n"sv, "JSON", "save it as CSV, or read it in Python and fit it with the Python package"},
    OtherKind{"[{"sv, "JSON", "save it as CSV, or read it in Python and fit it with the Python package"},
    OtherKind{"[\n"sv, "JSON", "save it as CSV, or read it in Python and fit it with the Python package"},
    OtherKind{"<?xml"sv, "XML", save_as_csv},
    OtherKind{"%PDF"sv, "a PDF", save_as_csv},
    OtherKind{"BZh"sv, "compressed with bzip2", decompress},
    OtherKind{"\xfd\x37zXZ"sv, "compressed with xz", decompress},
    OtherKind{"<!DOCTYPE html"sv, "an HTML page", "download the table itself"},
    OtherKind{"<html"sv, "an HTML page", "download the table itself"},
};

/// Zip archives are told apart by what they hold; the names of their files stand in plain bytes.
OtherKind kind_of_zip(std::string_view bytes) {
  const auto holds = [&](std::string_view name) { return bytes.find(name) != std::string_view::npos; };
  if (holds("xl/workbook")) return {"", "an Excel workbook", save_as_csv};
  if (holds("opendocument.spreadsheet")) return {"", "an OpenDocument spreadsheet", save_as_csv};
  return {"", "a zip archive", "unpack it first"};
}

std::optional<OtherKind> other_kind_of(std::string_view bytes) {
  if (bytes.starts_with("PK\x03\x04")) return kind_of_zip(bytes);
  const auto found = std::find_if(other_kinds.begin(), other_kinds.end(),
                                  [&](const OtherKind& kind) { return bytes.starts_with(kind.mark); });
  return found == other_kinds.end() ? std::nullopt : std::optional(*found);
}

void append_utf8(std::string& out, std::uint32_t code) {
  const auto byte = [&](std::uint32_t value) { out += static_cast<char>(value); };
  const auto following = [&](unsigned shift) { byte(0x80U | ((code >> shift) & 0x3FU)); };
  if (code < 0x80) {
    byte(code);
  } else if (code < 0x800) {
    byte(0xC0U | (code >> 6));
    following(0);
  } else if (code < 0x10000) {
    byte(0xE0U | (code >> 12));
    following(6);
    following(0);
  } else {
    byte(0xF0U | (code >> 18));
    following(12);
    following(6);
    following(0);
  }
}

enum class Utf16 { none, little_endian, big_endian };

/// By the byte order mark, or by the zeros beside the first two characters if they are ASCII.
Utf16 utf16_order(std::string_view bytes) {
  if (bytes.starts_with("\xFF\xFE")) return Utf16::little_endian;
  if (bytes.starts_with("\xFE\xFF")) return Utf16::big_endian;
  if (bytes.size() < 4 || bytes.size() % 2 != 0) return Utf16::none;
  const bool first = bytes[0] == 0, second = bytes[1] == 0, third = bytes[2] == 0, fourth = bytes[3] == 0;
  if (!first && second && !third && fourth) return Utf16::little_endian;
  return first && !second && third && !fourth ? Utf16::big_endian : Utf16::none;
}

std::string from_utf16(std::string_view bytes, Utf16 order, const std::string& source) {
  if (bytes.size() % 2 != 0) throw BadData(fmt::format("{}: the UTF-16 text ends in half a character", source));
  const auto unit = [&](std::size_t at) {
    const auto low = static_cast<unsigned char>(bytes[at + (order == Utf16::little_endian ? 0 : 1)]);
    const auto high = static_cast<unsigned char>(bytes[at + (order == Utf16::little_endian ? 1 : 0)]);
    return static_cast<std::uint32_t>(high) << 8 | low;
  };
  constexpr std::uint32_t replacement = 0xFFFD, mark = 0xFEFF;
  std::string text;
  text.reserve(bytes.size() / 2);
  for (std::size_t at = 0; at < bytes.size(); at += 2) {
    std::uint32_t code = unit(at);
    if (at == 0 && code == mark) continue;
    if (code >= 0xD800 && code < 0xE000) {
      const std::uint32_t next = at + 2 < bytes.size() ? unit(at + 2) : 0;
      const bool pair = code < 0xDC00 && next >= 0xDC00 && next < 0xE000;
      code = pair ? 0x10000 + ((code - 0xD800) << 10) + (next - 0xDC00) : replacement;
      if (pair) at += 2;
    }
    append_utf8(text, code);
  }
  return text;
}

/// Characters 0x80 to 0x9F of Windows-1252, which Excel writes; Latin-1 has control characters there. 0: unused.
constexpr std::array<std::uint16_t, 32> windows_characters{
    0x20AC, 0,      0x201A, 0x0192, 0x201E, 0x2026, 0x2020, 0x2021, 0x02C6, 0x2030, 0x0160,
    0x2039, 0x0152, 0,      0x017D, 0,      0,      0x2018, 0x2019, 0x201C, 0x201D, 0x2022,
    0x2013, 0x2014, 0x02DC, 0x2122, 0x0161, 0x203A, 0x0153, 0,      0x017E, 0x0178};

FileText from_single_bytes(std::string_view bytes) {
  FileText text;
  bool windows = false;
  text.converted.reserve(bytes.size() + bytes.size() / 8);
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    const bool special = byte >= 0x80 && byte < 0xA0;
    windows = windows || special;
    const std::uint32_t code = special ? windows_characters[byte - 0x80U] : byte;
    append_utf8(text.converted, special && code == 0 ? 0xFFFD : code);
  }
  text.undone.emplace_back(windows ? "Windows-1252" : "Latin-1");
  return text;
}

/// Most files are; eight bytes at a time, so that it costs next to nothing.
bool is_ascii(std::string_view bytes) {
  constexpr std::uint64_t high_bits = 0x8080808080808080;
  std::uint64_t all = 0, word = 0;
  for (; bytes.size() >= sizeof word; bytes.remove_prefix(sizeof word)) {
    std::memcpy(&word, bytes.data(), sizeof word);
    all |= word;
  }
  word = 0;
  std::memcpy(&word, bytes.data(), bytes.size());
  return ((all | word) & high_bits) == 0;
}

FileText decoded(std::string_view bytes, const std::string& source) {
  constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";
  if (bytes.starts_with(byte_order_mark)) bytes.remove_prefix(byte_order_mark.size());
  if (const Utf16 order = utf16_order(bytes); order != Utf16::none)
    return {from_utf16(bytes, order, source), {}, {"UTF-16"}};
  if (!is_ascii(bytes) && !is_utf8(bytes)) return from_single_bytes(bytes);
  return {{}, bytes, {}};
}

}  // namespace

bool is_compressed(std::string_view bytes) { return bytes.starts_with(gzip_mark) || bytes.starts_with(zstd_mark); }

FileText text_of_file(std::string_view bytes, const std::string& source) {
  if (is_compressed(bytes)) {
    const bool gzip = bytes.starts_with(gzip_mark);
    const std::string expanded = gzip ? from_gzip(bytes, source) : from_zstd(bytes, source);
    if (is_compressed(expanded)) throw BadData(fmt::format("{}: is compressed twice; decompress it first", source));
    FileText text = text_of_file(expanded, source);
    if (text.converted.empty()) text.converted = text.unchanged;
    text.unchanged = {};
    text.undone.insert(text.undone.begin(), gzip ? "gzip" : "zstd");
    return text;
  }
  if (const auto kind = other_kind_of(bytes))
    throw BadData(fmt::format("{} is {}; {}", source, kind->is, kind->advice));
  return decoded(bytes, source);
}

}  // namespace unshuffle
