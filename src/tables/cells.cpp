#include "tables/cells.hpp"

#include <algorithm>
#include <array>

namespace unshuffle {
namespace {

using namespace std::string_view_literals;

/// Compares with a word in lower case.
bool is_word(std::string_view cell, std::string_view word) {
  return std::equal(cell.begin(), cell.end(), word.begin(), word.end(),
                    [](char a, char b) { return (a >= 'A' && a <= 'Z' ? static_cast<char>(a - 'A' + 'a') : a) == b; });
}

template <std::size_t count>
bool is_one_of(std::string_view cell, const std::array<std::string_view, count>& words) {
  return std::any_of(words.begin(), words.end(), [&](std::string_view word) { return is_word(cell, word); });
}

constexpr std::array missing_words{"na"sv, "nan"sv, "n/a"sv, "null"sv, "."sv, "<na>"sv, "-nan"sv, "1.#qnan"sv, "nat"sv};
constexpr std::array missing_number_words{"-"sv, "--"sv, "?"sv, "none"sv, "nil"sv, "missing"sv, "n.a."sv};
constexpr std::array spreadsheet_errors{"#n/a"sv,  "#null!"sv, "#div/0!"sv, "#value!"sv,
                                        "#ref!"sv, "#name?"sv, "#num!"sv};
// In English, German, Dutch, French, Spanish, Portuguese, Italian, the Scandinavian languages and Polish.
constexpr std::array true_words{"true"sv, "yes"sv,        "t"sv,   "y"sv,         "wahr"sv, "ja"sv,
                                "waar"sv, "vrai"sv,       "oui"sv, "verdadero"sv, "si"sv,   "sí"sv,
                                "sÍ"sv,   "verdadeiro"sv, "sim"sv, "vero"sv,      "sì"sv,   "sÌ"sv,
                                "sann"sv, "sand"sv,       "tak"sv, "prawda"sv};
constexpr std::array false_words{"false"sv,  "no"sv,    "f"sv,   "n"sv,     "falsch"sv, "nein"sv,  "onwaar"sv,
                                 "nee"sv,    "faux"sv,  "non"sv, "falso"sv, "não"sv,    "nÃo"sv,   "nao"sv,
                                 "falskt"sv, "falsk"sv, "nej"sv, "nei"sv,   "nie"sv,    "fałsz"sv, "faŁsz"sv};

constexpr std::array total_words{"total"sv,  "totals"sv,      "grand total"sv, "sum"sv,  "subtotal"sv, "summe"sv,
                                 "gesamt"sv, "gesamtsumme"sv, "somme"sv,       "suma"sv, "totale"sv,   "totaal"sv};

}  // namespace

bool says_total(std::string_view cell) {
  while (cell.ends_with(':') || cell.ends_with(' ')) cell.remove_suffix(1);
  return is_one_of(cell, total_words);
}

bool is_missing(std::string_view cell) {
  return cell.empty() || is_one_of(cell, missing_words) || is_spreadsheet_error(cell);
}

bool is_missing_number(std::string_view cell) { return is_missing(cell) || is_one_of(cell, missing_number_words); }

std::optional<bool> truth_value(std::string_view cell) {
  if (is_one_of(cell, true_words)) return true;
  if (is_one_of(cell, false_words)) return false;
  return std::nullopt;
}

bool is_spreadsheet_error(std::string_view cell) { return is_one_of(cell, spreadsheet_errors); }

}  // namespace unshuffle
