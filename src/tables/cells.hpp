// What single cells of other people's tables mean.
#pragma once

#include <optional>
#include <string_view>

namespace unshuffle {

/// NA, NaN, null, an empty cell and others that stand for a value nobody knows, whatever the column holds.
[[nodiscard]] bool is_missing(std::string_view cell);

/// Among numbers also a dash, "none" and the like, which may be levels of a category.
[[nodiscard]] bool is_missing_number(std::string_view cell);

/// TRUE, yes and the like, in any case and several languages; none: anything else. 0 and 1 are numbers already.
[[nodiscard]] std::optional<bool> truth_value(std::string_view cell);

/// An error value of a spreadsheet, such as #N/A or #DIV/0!.
[[nodiscard]] bool is_spreadsheet_error(std::string_view cell);

/// "Total", "Grand total", "Sum" and the like, in any case.
[[nodiscard]] bool says_total(std::string_view cell);

}  // namespace unshuffle
