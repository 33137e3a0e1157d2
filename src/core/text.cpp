#include "core/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <iterator>

namespace unshuffle {
namespace {

/// Bytes of the character that the text begins with; 0: these are no UTF-8 (RFC 3629, which knows no surrogates and no
/// longer forms than needed).
std::size_t character_size(std::string_view text) {
  const auto byte = [&](std::size_t at) { return at < text.size() ? static_cast<unsigned char>(text[at]) : 0U; };
  const auto follows = [&](std::size_t at) { return (byte(at) & 0xC0U) == 0x80U; };
  const unsigned first = byte(0), second = byte(1);
  if (first < 0x80) return 1;
  if (first >= 0xC2 && first <= 0xDF) return follows(1) ? 2 : 0;
  if (first >= 0xE0 && first <= 0xEF) {
    const bool shortest = first != 0xE0 || second >= 0xA0, no_surrogate = first != 0xED || second < 0xA0;
    return follows(1) && follows(2) && shortest && no_surrogate ? 3 : 0;
  }
  if (first >= 0xF0 && first <= 0xF4) {
    const bool shortest = first != 0xF0 || second >= 0x90, in_range = first != 0xF4 || second < 0x90;
    return follows(1) && follows(2) && follows(3) && shortest && in_range ? 4 : 0;
  }
  return 0;
}

/// Of ASCII and of Latin-1, which terminals obey too.
bool is_control(std::string_view character) {
  const auto first = static_cast<unsigned char>(character.front());
  if (character.size() == 2) return first == 0xC2 && static_cast<unsigned char>(character[1]) < 0xA0;
  return character.size() == 1 && (first < 0x20 || first == 0x7F);
}

/// Letters to insert, remove, replace or swap with the next one (restricted Damerau-Levenshtein distance).
std::size_t letters_apart(std::string_view a, std::string_view b) {
  const std::size_t width = b.size() + 1;
  std::vector<std::size_t> table((a.size() + 1) * width);
  const auto at = [&](std::size_t i, std::size_t j) -> std::size_t& { return table[i * width + j]; };
  for (std::size_t i = 0; i <= a.size(); ++i) at(i, 0) = i;
  for (std::size_t j = 0; j <= b.size(); ++j) at(0, j) = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = at(i - 1, j - 1) + (a[i - 1] == b[j - 1] ? 0 : 1);
      at(i, j) = std::min({at(i - 1, j) + 1, at(i, j - 1) + 1, replaced});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) at(i, j) = std::min(at(i, j), at(i - 2, j - 2) + 1);
    }
  }
  return table.back();
}

std::string in_lower_case(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return lower;
}

}  // namespace

std::optional<double> parse_number(std::string_view text) {
  if (text.starts_with('+') && !text.starts_with("+-")) text.remove_prefix(1);
  double value = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || end != text.data() + text.size()) return std::nullopt;
  // from_chars says "out of range" for 1e400 and 1e-400 alike; strtod tells infinity from zero.
  if (failure == std::errc::result_out_of_range) value = std::strtod(std::string(text).c_str(), nullptr);
  return std::isfinite(value) ? std::optional(value) : std::nullopt;
}

std::optional<std::string> nearest(std::string_view word, const std::vector<std::string>& candidates) {
  std::optional<std::string> best;
  // Of a word of one letter nothing would be left.
  std::size_t fewest = std::min(word.size(), 1 + std::max<std::size_t>(1, word.size() / 4));
  const std::string lower = in_lower_case(word);
  for (const std::string& candidate : candidates) {
    const std::size_t apart = letters_apart(lower, in_lower_case(candidate));
    if (apart >= fewest) continue;
    fewest = apart;
    best = candidate;
  }
  return best;
}

std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates) {
  const std::optional<std::string> meant = nearest(word, candidates);
  return meant ? fmt::format("; did you mean {}?", *meant) : "";
}

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const std::size_t size = character_size(text);
    if (size == 0) return false;
    text.remove_prefix(size);
  }
  return true;
}

std::string as_utf8(std::string_view text) {
  if (is_utf8(text)) return std::string(text);
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x80) {
      out += c;
    } else {
      out += static_cast<char>(0xC0U | (byte >> 6U));
      out += static_cast<char>(0x80U | (byte & 0x3FU));
    }
  }
  return out;
}

std::string printable(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::size_t size = std::max<std::size_t>(character_size(text), 1);
    const std::string_view character = text.substr(0, size);
    const bool broken = character_size(text) == 0;
    if (character == "\n" || (!broken && !is_control(character))) {
      out += character;
    } else {
      for (const char c : character)
        fmt::format_to(std::back_inserter(out), "\\x{:02x}", static_cast<unsigned char>(c));
    }
    text.remove_prefix(size);
  }
  return out;
}

std::string file_name_for(std::string_view name) {
  constexpr std::size_t longest = 200;  // file systems allow 255 bytes, and an extension follows
  std::string made;
  for (const char c : as_utf8(name)) {
    const auto byte = static_cast<unsigned char>(c);
    made += c == '/' || c == '\\' || byte < 0x20 || byte == 0x7F ? '_' : c;
  }
  if (made.size() > longest) {
    made.resize(longest);
    while (!is_utf8(made)) made.pop_back();
  }
  if (made.starts_with('.')) made.front() = '_';  // no hidden file, and neither this folder nor the one above it
  return made.empty() ? "_" : made;
}

}  // namespace unshuffle
