// Options of a fit as those of its evaluations.
#pragma once

#include "unshuffle/fitted/fit.hpp"

namespace unshuffle {

/// Of evaluations on so many rows, where they are more than a Problem holds.
[[nodiscard]] EvaluatorOptions evaluator_options(const FitOptions& options, double responses, double features);

}  // namespace unshuffle
