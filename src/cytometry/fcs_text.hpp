// HEADER and TEXT of an FCS file: the locations of its segments and its keywords.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "unshuffle/cytometry/fcs.hpp"

namespace unshuffle::cytometry {

/// First and last byte, both inclusive, as FCS files count; 0, 0: not given.
struct Segment {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

struct FcsText {
  std::string version;
  Segment data;  ///< From the HEADER.
  Keywords keywords;
};

/// Reads HEADER, TEXT and supplemental TEXT; adds deviations from the standard to `notes`.
[[nodiscard]] FcsText read_text(std::string_view content, const std::string& source, std::vector<std::string>& notes);

/// A keyword as a whole number of at least 0, if it is there; BadData when it is something else.
[[nodiscard]] std::optional<std::uint64_t> whole_number(const Keywords& keywords, const std::string& name,
                                                        const std::string& source);

/// The value of a keyword without surrounding blanks, if it is there and not blank.
[[nodiscard]] std::optional<std::string> value_of(const Keywords& keywords, const std::string& name);

/// As value_of; BadData naming the keyword when it is missing.
[[nodiscard]] std::string required(const Keywords& keywords, const std::string& name, const std::string& source);

/// $P3N and its like.
[[nodiscard]] std::string channel_keyword(Index channel, char letter);

[[nodiscard]] std::string_view trimmed(std::string_view text);

/// The whole of `text` as a finite number.
[[nodiscard]] std::optional<double> to_number(std::string_view text);

/// The parts between commas, without blanks around them.
[[nodiscard]] std::vector<std::string> split_at_commas(std::string_view text);

}  // namespace unshuffle::cytometry
