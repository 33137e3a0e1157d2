#include "tables/numbers.hpp"

#include <algorithm>
#include <array>
#include <cctype>

#include "core/text.hpp"
#include "tables/cells.hpp"

namespace unshuffle {
namespace {

using namespace std::string_view_literals;

/// Longer ones before those they contain.
constexpr std::array units{"US$"sv, "A$"sv,  "C$"sv,  "R$"sv,  "$"sv,  "€"sv,   "£"sv,   "¥"sv,
                           "₹"sv,   "₽"sv, "₩"sv,   "zł"sv,  "Kč"sv, "CHF"sv, "USD"sv, "EUR"sv,
                           "GBP"sv, "SEK"sv, "NOK"sv, "DKK"sv, "kr"sv, "%"sv};

std::string_view trimmed(std::string_view text) {
  constexpr std::array spaces{" "sv, "\xC2\xA0"sv, "\xE2\x80\xAF"sv};
  for (bool again = true; again;) {
    again = false;
    for (const std::string_view space : spaces) {
      if (text.starts_with(space))
        text.remove_prefix(space.size());
      else if (text.ends_with(space))
        text.remove_suffix(space.size());
      else
        continue;
      again = true;
    }
  }
  return text;
}

/// An amount of money or a share, in its parts.
struct Amount {
  bool negative = false;
  std::string_view digits;
};

/// -$5, $-5, $ 5, 5 $, ($5): a unit in front or behind, a minus or the parentheses of accountants.
std::optional<Amount> amount_of(std::string_view cell, std::string_view unit) {
  Amount amount{false, trimmed(cell)};
  const auto take_sign = [&] {
    if (!amount.digits.starts_with('-') || amount.negative) return;
    amount.negative = true;
    amount.digits = trimmed(amount.digits.substr(1));
  };
  if (amount.digits.size() > 2 && amount.digits.starts_with('(') && amount.digits.ends_with(')'))
    amount = {true, trimmed(amount.digits.substr(1, amount.digits.size() - 2))};
  take_sign();
  if (amount.digits.starts_with(unit)) {
    amount.digits = trimmed(amount.digits.substr(unit.size()));
    take_sign();
  } else if (amount.digits.ends_with(unit)) {
    amount.digits = trimmed(amount.digits.substr(0, amount.digits.size() - unit.size()));
  } else {
    return std::nullopt;
  }
  const bool number = !amount.digits.empty() && (std::isdigit(static_cast<unsigned char>(amount.digits.front())) != 0 ||
                                                 amount.digits.front() == '.' || amount.digits.front() == ',');
  return number ? std::optional(amount) : std::nullopt;
}

/// Written without a unit as well.
bool is_zero(std::string_view cell) { return cell.find_first_not_of("0.,") == std::string_view::npos; }

/// The digits before the decimal separator, in groups of three if they are separated at all. Appends them without
/// separators and returns what follows; none: they are grouped in another way.
std::optional<std::string_view> append_whole_part(std::string& plain, std::string_view text, char thousands) {
  const auto digits_at = [&](std::size_t at) {
    std::size_t count = 0;
    while (at + count < text.size() && std::isdigit(static_cast<unsigned char>(text[at + count])) != 0) ++count;
    return count;
  };
  std::size_t at = digits_at(0);
  plain += text.substr(0, at);
  if (thousands == 0 || at >= text.size() || text[at] != thousands) return text.substr(at);
  if (at == 0 || at > 3) return std::nullopt;
  while (at < text.size() && text[at] == thousands) {
    if (digits_at(at + 1) != 3) return std::nullopt;
    plain += text.substr(at + 1, 3);
    at += 4;
  }
  return text.substr(at);
}

/// Unbroken spaces, which French and Swiss programs put between groups of digits, as plain ones.
std::string with_plain_spaces(std::string_view text) {
  std::string plain(text);
  for (const std::string_view space : {"\xC2\xA0", "\xE2\x80\xAF", "\xE2\x80\x89"}) {
    for (auto at = plain.find(space); at != std::string::npos; at = plain.find(space))
      plain.replace(at, space.size(), " ");
  }
  return plain;
}

/// Whether every cell that is not missing is a number in this format, and there is one.
bool writes_numbers(const Column& column, const TextFormat& format) {
  bool any = false;
  for (const std::string& cell : column.text) {
    if (is_missing_number(cell)) continue;
    if (!parse_number(without_unit(cell, column.unit), format)) return false;
    any = true;
  }
  return any;
}

}  // namespace

std::string unit_of(const Column& column) {
  std::string_view found;
  for (const std::string& cell : column.text) {
    if (is_missing_number(cell) || is_zero(cell)) continue;
    if (found.empty()) {
      const auto unit =
          std::find_if(units.begin(), units.end(), [&](auto one) { return amount_of(cell, one).has_value(); });
      if (unit == units.end()) return {};
      found = *unit;
    } else if (!amount_of(cell, found)) {
      return {};
    }
  }
  return std::string(found);
}

std::string without_unit(std::string_view cell, std::string_view unit) {
  const auto amount = unit.empty() ? std::nullopt : amount_of(cell, unit);
  if (!amount) return std::string(cell);
  return (amount->negative ? "-" : "") + std::string(amount->digits);
}

std::optional<double> number_in(const Table& table, const Column& column, std::string_view cell) {
  return column.unit.empty() ? parse_number(cell, table.format)
                             : parse_number(without_unit(cell, column.unit), table.format);
}

std::optional<double> parse_number(std::string_view text, const TextFormat& format) {
  if (format.decimal == '.' && format.thousands == 0) return parse_number(text);
  const std::string spaced = format.thousands == ' ' ? with_plain_spaces(text) : std::string(text);
  std::string_view left(spaced);
  std::string plain;
  if (left.starts_with('-')) plain = "-";
  if (left.starts_with('-') || left.starts_with('+')) left.remove_prefix(1);
  if (left.starts_with('-') || left.starts_with('+')) return std::nullopt;  // +-1 is no number
  const auto rest = append_whole_part(plain, left, format.thousands);
  if (!rest) return std::nullopt;
  left = *rest;
  if (left.starts_with(format.decimal)) {
    plain += '.';
    left.remove_prefix(1);
  }
  if (left.find_first_of(".,+' ") == 0) return std::nullopt;
  plain += left;
  return parse_number(plain);
}

std::optional<TextFormat> number_format_of(const Table& table) {
  struct Candidate {
    char decimal, thousands;
  };
  constexpr std::array<Candidate, 6> candidates{
      {{',', '.'}, {'.', ','}, {'.', ' '}, {'.', '\''}, {',', ' '}, {',', '\''}}};
  std::array<Index, candidates.size()> columns{};
  for (const Column& column : table.columns) {
    if (column.numeric()) continue;
    for (std::size_t k = 0; k < candidates.size(); ++k) {
      TextFormat format = table.format;
      format.decimal = candidates[k].decimal;
      format.thousands = candidates[k].thousands;
      if (!writes_numbers(column, table.format) && writes_numbers(column, format)) ++columns[k];
    }
  }
  const auto best = std::max_element(columns.begin(), columns.end());
  if (*best == 0) return std::nullopt;
  // 1,234 is one or a thousand. Programs separate by semicolons where the comma is the decimal separator.
  const bool ambiguous = columns[0] == *best && columns[1] == *best;
  if (ambiguous && table.format.delimiter != ';') return std::nullopt;
  TextFormat format = table.format;
  format.decimal = candidates[static_cast<std::size_t>(best - columns.begin())].decimal;
  format.thousands = candidates[static_cast<std::size_t>(best - columns.begin())].thousands;
  return format;
}

}  // namespace unshuffle
