// Whether the data distinguishes the answer from other solutions, and if not, why.
#pragma once

#include <string>
#include <vector>

#include "likelihood/calibration.hpp"
#include "likelihood/search.hpp"
#include "unshuffle/verdict/verdict.hpp"

namespace unshuffle {

/// A linear map of the features under which their distribution does not change, as far as the rows can tell; it maps
/// the answer to parameters that predict other values with the same distribution.
struct Symmetry {
  std::string name;  ///< "exchange of z1 and z2", "sign of z3".
  Vector parameters;
};

/// Exchanges of feature columns with the same distribution and sign changes (around the mean) of symmetric ones that
/// leave the distribution of the predictions at w where they are. For one output and models linear in w; else empty.
[[nodiscard]] std::vector<Symmetry> symmetries_of(const Problem& problem, const Model& bound, const Vector& w);

/// Feature columns that are jointly Gaussian as far as skewness and kurtosis tell (Mardia 1970): their coefficients can
/// be rotated into each other.
[[nodiscard]] std::vector<Index> gaussian_columns(const Matrix& z);

/// Of a search and its calibrated answer, whose covariance is empty when the likelihood is not curved there.
[[nodiscard]] Identifiability judge(const SearchResult& found, const std::vector<Symmetry>& symmetries,
                                    const Problem& problem, const Model& bound, const Calibrated& answer);

/// The verdict of a method after what holds for all of them: columns that depend on each other determine nothing, few
/// rows little.
[[nodiscard]] Identifiability qualified(Identifiability said, const Problem& problem, const Model& bound);

/// Whether that agreement is too little to believe the links that the likelihood takes to be right.
[[nodiscard]] bool contradicts(double agreement);

}  // namespace unshuffle
