// Gromov-Wasserstein alignment of two point sets in different spaces: pairs of points should be as far apart on one
// side as their partners are on the other.
#pragma once

#include <string>
#include <vector>

#include "core/random.hpp"
#include "links/linked.hpp"
#include "unshuffle/core/types.hpp"

namespace unshuffle {

/// Σ_ik (|u_i - u_k|² - |v_i - v_k|²)² / n² of rows linked in order, in O(n) per pair of columns.
[[nodiscard]] double gromov_wasserstein_cost(const MatrixRef& u, const MatrixRef& v);

/// Sliced alignment (Vayer et al. 2019): rows of both sides are projected on a random direction, the narrower side
/// padded with zeros, and matched in ascending or descending order, whichever distorts distances less. Of all
/// directions tried, the matching of least full cost. Equally many rows; returns the row of v for each row of u.
[[nodiscard]] std::vector<Index> sliced_alignment(const MatrixRef& u, const MatrixRef& v, int slices,
                                                  RandomStream random);

struct SoftAlignment {
  Matrix plan;
  int iterations = 0;
  bool converged = false;
  std::string message;
};

/// Entropic alignment (Peyré, Cuturi & Solomon 2016): the quadratic cost is linearised at the plan, transport at
/// `epsilon` (in the unit of that linear cost) gives the next plan, until plans repeat. Equal weights; starts from the
/// product of the weights.
[[nodiscard]] SoftAlignment entropic_alignment(const MatrixRef& u, const MatrixRef& v, double epsilon,
                                               int max_iterations = 200);

struct Alignment {
  Links links;  ///< Rows of u and of v.
  int iterations = 0;
  bool converged = false;
  std::string message;
};

/// One-to-one links from the entropic alignment of the point clouds scaled to equal size; `epsilon` is relative to the
/// largest linearised cost of the first plan.
[[nodiscard]] Alignment aligned(const MatrixRef& u, const MatrixRef& v, double epsilon);

/// The response side: x and y side by side.
[[nodiscard]] Matrix response_columns(const Problem& problem);

/// The gradient of the entropic objective's quadratic part at a plan of equal weights, n×m; squared distances between
/// the rows of u and of v are never formed.
[[nodiscard]] Matrix linearised_cost(const MatrixRef& u, const MatrixRef& v, const MatrixRef& plan);

}  // namespace unshuffle
