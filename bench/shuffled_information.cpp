// How well fully shuffled coefficients can be determined at all: the bound of docs/believing.md.
//
// For every draw of `simulate gamma` (n = 50,000, noise variance 0.1) the information about (intercept, w, log σ²) that
// the responses hold when nothing is known of the links is the mean Hessian of the likelihood at the truth. An estimate
// that reaches the bound of Cramér and Rao errs by N(0, information⁻¹), which says how far its test error lies above
// the oracle's: by d·E[zzᵀ]d/σ² for an error d of the coefficients. Parameters that are known are left out of the
// information.
//
// Usage: bench_shuffled_information [DRAWS]
#include <fmt/format.h>

#include <Eigen/Eigenvalues>
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>

#include "core/gram.hpp"
#include "core/in_parallel.hpp"
#include "likelihood/bootstrap.hpp"
#include "likelihood/likelihood.hpp"
#include "unshuffle/model/linear.hpp"
#include "unshuffle/tables/simulate.hpp"

namespace {

using namespace unshuffle;

constexpr double noise_variance = 0.1;
constexpr double tolerated = 0.05;

struct Unknown {
  const char* name;
  bool intercept, noise;
  std::vector<double> excess{};
  double share = 0;
};

Matrix information_at_truth(const Problem& problem, const Model& bound, const Vector& w) {
  constexpr std::size_t samples = 6;
  Vector theta(w.size() + 1);
  theta << w, std::log(2 * noise_variance);
  LikelihoodOptions options;
  options.evaluator.tolerance = options.evaluator.accuracy = 1e-7;
  std::array<Matrix, samples> hessians;
  in_parallel(samples, [&](std::size_t k) {
    RandomStream random(99, k);
    const Links links = random_links(problem, random);
    const Problem drawn =
        drawn_from(problem, bound, w, Matrix::Constant(1, 1, std::sqrt(noise_variance)), links, random);
    hessians[k] = LinkLikelihood(drawn, bound, options).information(theta);
  });
  Matrix mean = Matrix::Zero(theta.size(), theta.size());
  for (const Matrix& hessian : hessians) mean += hessian / double(samples);
  return mean;
}

/// Errors drawn from the bound, as excess over the oracle's test error.
void draw_excess(const Matrix& information, const Matrix& products, Unknown& unknown) {
  constexpr int count = 1000;
  constexpr double least = 5;  // curvature below which the sampled information is not told from none
  const Index last = information.rows() - 1;
  std::vector<Index> open, coefficients;
  for (Index k = unknown.intercept ? 0 : 1; k < last + (unknown.noise ? 1 : 0); ++k) open.push_back(k);
  for (const Index k : open) {
    if (k < last) coefficients.push_back(k);
  }
  const Matrix part = information(open, open);
  const Eigen::SelfAdjointEigenSolver<Matrix> eigen(part);
  const Vector scale = eigen.eigenvalues().cwiseMax(least).cwiseSqrt().cwiseInverse();
  const Matrix square = products(coefficients, coefficients);
  RandomStream random(1, 0);
  int within = 0;
  for (int t = 0; t < count; ++t) {
    const Vector normal = Vector::NullaryExpr(scale.size(), [&] { return random.normal(); });
    const Vector error = (eigen.eigenvectors() * scale.cwiseProduct(normal)).head(square.rows());
    unknown.excess.push_back(error.dot(square * error) / noise_variance);
    within += unknown.excess.back() <= tolerated ? 1 : 0;
  }
  unknown.share += double(within) / count;
}

}  // namespace

int main(int count, char** arguments) {
  const int draws = count > 1 ? std::atoi(arguments[1]) : 100;
  std::array<Unknown, 4> unknowns{{{"nothing but the coefficients", false, false},
                                   {"noise", false, true},
                                   {"intercept", true, false},
                                   {"intercept and noise", true, true}}};
  for (int seed = 0; seed < draws; ++seed) {
    SimulateOptions options;
    options.design = Design::gamma;
    options.rows = 50000;
    options.noise = noise_variance;
    options.seed = std::uint64_t(seed);
    const Simulation sample = simulate(options);
    const Problem problem = completed(sample.problem);
    const auto bound = Linear(true).bound_to(problem);
    Vector w(5);
    w << 0, sample.coefficients;
    Matrix rows(problem.features(), 5);
    rows << Vector::Ones(problem.features()), problem.z;
    const Matrix products = gram(rows) / double(rows.rows());
    const Matrix information = information_at_truth(problem, *bound, w);
    for (Unknown& unknown : unknowns) draw_excess(information, products, unknown);
  }
  fmt::print("estimated beside the coefficients | at most {} x oracle | median\n", 1 + tolerated);
  for (Unknown& unknown : unknowns) {
    auto middle = unknown.excess.begin() + long(unknown.excess.size() / 2);
    std::nth_element(unknown.excess.begin(), middle, unknown.excess.end());
    fmt::print("{} | {:.1f} % | {:.4f}\n", unknown.name, 100 * unknown.share / draws, 1 + *middle);
  }
  return 0;
}
