// Processes that work on one problem must have been given the same one: they compare notes before they begin.
#pragma once

#include <string>
#include <vector>

#include "unshuffle/core/error.hpp"
#include "unshuffle/core/export.hpp"
#include "unshuffle/core/team.hpp"

namespace UNSHUFFLE_EXPORT unshuffle {

/// Something that all processes must have in common.
struct Common {
  std::string name;   ///< As a reader knows it: `--epsilon`, `values of z`.
  std::string value;  ///< Itself where it is short, else a digest.
};

/// Thrown in every process alike, so that all can end in good order and one of them can say why.
class Disagreement : public InvalidInput {
 public:
  using InvalidInput::InvalidInput;
};

/// Every process calls it. Throws Disagreement naming the processes that differ from the leader, and in what. What only
/// some of them have differs too, and so does another version of this library.
void require_agreement(Team& team, std::vector<Common> own);

/// Whether all processes have the same value; every process calls it.
[[nodiscard]] bool all_have(Team& team, const std::string& value);

}  // namespace unshuffle
