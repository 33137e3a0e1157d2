// Spillover: every detector also sees some light of the dyes meant for the others.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "unshuffle/core/export.hpp"
#include "unshuffle/cytometry/fcs.hpp"

namespace unshuffle {
namespace cytometry UNSHUFFLE_EXPORT {

/// A measured event is  m = t·S  with t the dyes' signals and S one row per dye, one column per detector.
struct Spillover {
  std::vector<std::string> dyes;
  std::vector<std::string> detectors;  ///< Names of channels.
  Matrix matrix;                       ///< dyes × detectors.
};

/// The file's own matrix ($SPILLOVER, SPILL, SPILLOVER, $SPILL, $COMP or COMP, in this order); dyes are named after
/// their detectors.
[[nodiscard]] std::optional<Spillover> spillover_of(const FcsFile& file);

/// Events × dyes: t = m·S⁺, least squares where there are more detectors than dyes. Throws BadData when a detector is
/// not a channel or the matrix cannot be inverted.
[[nodiscard]] Matrix unmixed(const FcsFile& file, const Spillover& spillover);

/// Undoes the file's own spillover in place; throws BadData when the file has none.
void compensate(FcsFile& file);

}  // namespace cytometry
}  // namespace unshuffle
