// Dates as programs write them.
#pragma once

#include <optional>
#include <string_view>

#include "unshuffle/tables/column_code.hpp"

namespace unshuffle {

/// Days since 1970-01-01, a time of day as a part of one; none: the cell is no date in this order.
[[nodiscard]] std::optional<double> parse_date(std::string_view cell, DateOrder order);

/// The order in which all cells are dates, where there is one: by the year in front, by points, or by a number
/// above 12. `unknown`: day and month may be either; none: some cells are no dates, or there are none.
[[nodiscard]] std::optional<DateOrder> date_order_of(const Column& column);

}  // namespace unshuffle
