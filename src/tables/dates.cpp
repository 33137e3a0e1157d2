#include "tables/dates.hpp"

#include <array>
#include <charconv>
#include <chrono>

#include "tables/cells.hpp"

namespace unshuffle {
namespace {

/// Digits at the beginning of the text, which they are taken from; none: there are none, or more than four.
std::optional<int> take_digits(std::string_view& text) {
  int value = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  const auto count = static_cast<std::size_t>(end - text.data());
  if (failure != std::errc{} || text.starts_with('-') || count > 4) return std::nullopt;
  text.remove_prefix(count);
  return value;
}

/// 10:30, 10:30:15, 10:30:15.5 or 10:30:15Z as a part of the day.
std::optional<double> time_of_day(std::string_view text) {
  constexpr std::array<double, 3> seconds{3600, 60, 1};
  double sum = 0;
  std::size_t part = 0;
  for (; part < seconds.size(); ++part) {
    const auto value = take_digits(text);
    if (!value || *value > (part == 0 ? 24 : 60)) return std::nullopt;
    sum += seconds[part] * *value;
    if (!text.starts_with(':')) break;
    text.remove_prefix(1);
  }
  if (part == 0) return std::nullopt;
  double fraction = 0;
  if (text.starts_with('.')) {
    const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), fraction);
    if (failure != std::errc{}) return std::nullopt;
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  }
  if (text == "Z" || text == "+00:00") text = {};
  constexpr double day = 86400;
  return text.empty() ? std::optional((sum + fraction) / day) : std::nullopt;
}

/// A year of two digits is the one from 1969 to 2068, as POSIX has it.
int whole_year(int year, std::size_t digits) {
  if (digits > 2) return year;
  return year + (year < 69 ? 2000 : 1900);
}

/// Three numbers with the same sign between them, and what follows.
struct DateParts {
  std::array<int, 3> numbers{};
  std::array<std::size_t, 3> digits{};
  char separator = 0;
  std::string_view rest{};
};

std::optional<DateParts> parts_of(std::string_view cell) {
  DateParts parts;
  for (std::size_t at = 0; at < parts.numbers.size(); ++at) {
    const std::size_t before = cell.size();
    const auto number = take_digits(cell);
    if (!number) return std::nullopt;
    parts.numbers[at] = *number;
    parts.digits[at] = before - cell.size();
    if (at == 2) break;
    const char separator = cell.empty() ? '\0' : cell.front();
    if ((separator != '-' && separator != '/' && separator != '.') || (at == 1 && separator != parts.separator))
      return std::nullopt;
    parts.separator = separator;
    cell.remove_prefix(1);
  }
  parts.rest = cell;
  return parts;
}

}  // namespace

std::optional<double> parse_date(std::string_view cell, DateOrder order) {
  const auto parts = parts_of(cell);
  if (!parts || order == DateOrder::unknown) return std::nullopt;
  const std::size_t year = order == DateOrder::year_first ? 0 : 2;
  const std::size_t month = order == DateOrder::month_first ? 0 : 1;
  const std::size_t day = 3 - year - month;
  if (parts->digits[year] != 4 && (order == DateOrder::year_first || parts->digits[year] != 2)) return std::nullopt;
  if (parts->digits[month] > 2 || parts->digits[day] > 2) return std::nullopt;
  const std::chrono::year_month_day date{std::chrono::year(whole_year(parts->numbers[year], parts->digits[year])),
                                         std::chrono::month(static_cast<unsigned>(parts->numbers[month])),
                                         std::chrono::day(static_cast<unsigned>(parts->numbers[day]))};
  if (!date.ok()) return std::nullopt;
  const double days = static_cast<double>(std::chrono::sys_days(date).time_since_epoch().count());
  if (parts->rest.empty()) return days;
  if (!parts->rest.starts_with(' ') && !parts->rest.starts_with('T')) return std::nullopt;
  const auto time = time_of_day(parts->rest.substr(1));
  return time ? std::optional(days + *time) : std::nullopt;
}

std::optional<DateOrder> date_order_of(const Column& column) {
  constexpr std::array orders{DateOrder::year_first, DateOrder::day_first, DateOrder::month_first};
  std::array<bool, orders.size()> possible{true, true, true};
  bool any = false, points = true;
  for (const std::string& cell : column.text) {
    if (is_missing_number(cell)) continue;
    any = true;
    for (std::size_t k = 0; k < orders.size(); ++k) possible[k] = possible[k] && parse_date(cell, orders[k]);
    if (!possible[0] && !possible[1] && !possible[2]) return std::nullopt;
    points = points && cell.find('.') < cell.find(' ');
  }
  if (!any) return std::nullopt;
  if (possible[1] && possible[2] && !points) return DateOrder::unknown;
  for (std::size_t k = 0; k < orders.size(); ++k)
    if (possible[k]) return orders[k];
  return std::nullopt;
}

}  // namespace unshuffle
