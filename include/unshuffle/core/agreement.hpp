// Processes that work on one problem must have the same input: they compare it before they start.
#pragma once

#include <string>
#include <vector>

#include "unshuffle/core/error.hpp"
#include "unshuffle/core/export.hpp"
#include "unshuffle/core/team.hpp"

namespace unshuffle UNSHUFFLE_EXPORT {

/// Something that all processes must have in common.
struct Common {
  std::string name;   ///< As shown to users: `--epsilon`, `values of z`.
  std::string value;  ///< Verbatim if short, else a digest.
};

/// Thrown in every process, so that all can exit cleanly and one of them can report why.
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
