#include "starts/ransac.hpp"

#include <Eigen/Eigenvalues>
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numbers>
#include <numeric>

namespace unshuffle {

namespace {

// Squared thresholds are spread²·2^-e and spread²·1.5·2^-e, e = 0 .. 63: the exponent and the first bit of the mantissa
// of |r|²/spread² determine between which two of them a residual falls, without a logarithm.
constexpr int levels = 128;

double squared_threshold(int level) { return std::ldexp(level % 2 == 0 ? 1.0 : 0.75, -(level / 2)); }

/// The last level whose threshold is at least the square root of `squared`; negative when none is.
int level_of(double squared) {
  const auto bits = std::bit_cast<std::uint64_t>(squared);
  const auto steps = static_cast<std::int64_t>(bits >> 51U) - (std::int64_t{1023} << 1U);
  return static_cast<int>(std::clamp<std::int64_t>(-steps - 1, -1, levels - 1));
}

/// Number of residuals below each threshold.
using Counts = std::array<double, levels>;

Vector sizes(const Matrix& residual) { return residual.rowwise().norm(); }

Counts counts_below(const Matrix& residual, double spread) {
  std::array<int, levels> histogram{};
  const double unit = 1 / (spread * spread);
  for (Index i = 0; i < residual.rows(); ++i) {
    const int level = level_of(residual.row(i).squaredNorm() * unit);
    if (level >= 0) ++histogram[std::size_t(level)];
  }
  Counts counts{};
  double running = 0;
  for (int l = levels - 1; l >= 0; --l) counts[std::size_t(l)] = running += histogram[std::size_t(l)];
  return counts;
}

double divergence(double share, double chance) {
  const double inside = share > 0 ? share * std::log(share / chance) : 0;
  const double outside = share < 1 ? (1 - share) * std::log((1 - share) / (1 - chance)) : 0;
  return inside + outside;
}

/// Rows linked in the given order, and the same rows linked at random.
struct Scene {
  const Model& model;
  LinkedRows rows;
  LinkedRows background;
  double spread;     ///< Of y.
  double spent;      ///< Rows needed to solve for w.
  double uncounted;  ///< Exact agreements by chance that the background may miss: one when responses repeat.

  struct Verdict {
    double score = -std::numeric_limits<double>::infinity();
    double threshold = 0;
    double chance = 1;  ///< α at the threshold.
    double right = 0;   ///< Estimated share of rows linked rightly.
  };

  // α(t) is counted where at least `enough` background residuals fall below t; further down it falls like t^o, the
  // volume of a ball in o outputs, because the background has a smooth density at zero. Values that repeat, as rounded
  // ones do, add an atom to it: a line through such values agrees exactly with every row that has them. The rows a
  // hypothesis was solved from agree with it by construction, so `spent` of them are not counted.
  [[nodiscard]] Verdict judge(const VectorRef& w) const {
    const Counts observed = counts_below(residuals(model, rows, w), spread);
    const Counts chance = counts_below(residuals(model, background, w), spread);
    const auto total = static_cast<double>(rows.size());
    const double half_outputs = static_cast<double>(rows.y.cols()) / 2;
    const double enough = std::clamp(0.05 * total, 4.0, 100.0);
    Verdict best;
    double right = 0;
    const double atom = (chance[levels - 1] + uncounted) / total;
    double smooth = 1 - atom;
    for (int l = 0; l < levels; ++l) {
      const double counted = chance[std::size_t(l)];
      smooth = counted >= enough
                   ? std::max(0.0, counted / total - atom)
                   : smooth * std::pow(squared_threshold(l) / squared_threshold(std::max(l - 1, 0)), half_outputs);
      const double alpha = smooth + atom;
      const double share = (observed[std::size_t(l)] - spent) / total;
      if (alpha >= 1 || share <= alpha) continue;
      const double score = total * divergence(share, alpha);
      if (score > best.score) best = {score, spread * std::sqrt(squared_threshold(l)), alpha, 0};
      right = std::max(right, (share - alpha) / (1 - alpha));
    }
    best.right = right;
    return best;
  }
};

double response_spread(const Matrix& y) {
  const Matrix centred = y.rowwise() - y.colwise().mean();
  return std::max(std::sqrt(centred.squaredNorm() / double(y.rows())), std::numeric_limits<double>::min());
}

bool has_repeated_rows(const Matrix& y) {
  std::vector<Index> order(static_cast<std::size_t>(y.rows()));
  std::iota(order.begin(), order.end(), Index{0});
  const auto before = [&](Index a, Index b) {
    return std::lexicographical_compare(y.row(a).begin(), y.row(a).end(), y.row(b).begin(), y.row(b).end());
  };
  std::sort(order.begin(), order.end(), before);
  return std::adjacent_find(order.begin(), order.end(), [&](Index a, Index b) { return !before(a, b); }) != order.end();
}

Scene make_scene(const Model& model, const LinkedRows& rows, Index count, Index sample, RandomStream& random) {
  const std::vector<Index> chosen = sample_rows(rows.size(), count, random);
  // A cyclic shift of a random order pairs every row with another one.
  std::vector<Index> order = sample_rows(Index(chosen.size()), Index(chosen.size()), random);
  shuffle(order, random);
  std::vector<Index> other(chosen.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    other[std::size_t(order[i])] = chosen[std::size_t(order[(i + 1) % order.size()])];
  }
  Scene scene{model, subset(rows, chosen), {}, response_spread(rows.y), double(sample), 0};
  if (has_repeated_rows(scene.rows.y)) scene.uncounted = 1;
  scene.background = scene.rows;
  scene.background.z = subset(rows, other).z;
  return scene;
}

Vector inliers(const Model& model, const LinkedRows& rows, const VectorRef& w, double threshold) {
  return (sizes(residuals(model, rows, w)).array() <= threshold).cast<double>();
}

/// Least squares on the inliers until the score no longer rises.
Scene::Verdict polish(const Scene& scene, Scene::Verdict verdict, Vector& w, int rounds) {
  for (int round = 0; round < rounds; ++round) {
    const Vector use = inliers(scene.model, scene.rows, w, verdict.threshold);
    const Vector refitted = least_squares(scene.model, scene.rows, w, use, 10).parameters;
    const Scene::Verdict again = scene.judge(refitted);
    if (!(again.score > verdict.score)) break;
    w = refitted;
    verdict = again;
  }
  return verdict;
}

double samples_needed(double inlier_share, Index sample, double certainty) {
  const double all_inliers = std::pow(std::clamp(inlier_share, 0.0, 1.0), double(sample));
  return all_inliers >= 1 ? 1 : std::log(1 - certainty) / std::log1p(-std::max(all_inliers, 1e-300));
}

// Rows linked rightly have residuals N(0, σ²), a share q of all; y_i of a row linked wrongly is any other row's, so its
// density d_i does not depend on z_i. EM on (w, σ, q): every row counts with its probability of being linked rightly,
//   π_i = q φ(r_i; σ) / (q φ(r_i; σ) + (1-q) d_i),
// so no hard threshold cuts the residuals and the refit uses all the information in the good rows. For one output and
// an additive model d_i is the density of t = y - g(x) at t_i, which makes this the likelihood of the mixture (Slawski
// et al. 2021) and w consistent; otherwise it is the background's density near zero, the same for all rows.
struct Mixture {
  Vector parameters;
  double right;
  double noise_sd;
  Matrix matrix;  ///< Σ π_i JᵢᵀJᵢ.
};

double flat_density(const Scene::Verdict& verdict, double outputs) {
  const double ball = std::pow(std::numbers::pi, outputs / 2) / std::tgamma(outputs / 2 + 1);
  return verdict.chance / (ball * std::pow(verdict.threshold, outputs));
}

/// Density of the given numbers at each of them: a histogram smoothed by a Gaussian kernel of Silverman's width.
Vector density_at(const Vector& t) {
  constexpr int bins = 1024;
  std::vector<double> sorted(t.begin(), t.end());
  const auto rank = [&](double share) {
    const auto at = sorted.begin() + std::ptrdiff_t(share * double(sorted.size() - 1));
    std::nth_element(sorted.begin(), at, sorted.end());
    return *at;
  };
  const double sd = std::sqrt((t.array() - t.mean()).square().mean());
  const double quartiles = (rank(0.75) - rank(0.25)) / 1.34;
  const double width = 0.9 * (quartiles > 0 ? std::min(sd, quartiles) : sd) * std::pow(double(t.size()), -0.2);
  // The far tails share the outermost bins: no right link is there.
  const double low = std::max(t.minCoeff(), rank(0.5) - 8 * sd) - 3 * width;
  const double step = (std::min(t.maxCoeff(), rank(0.5) + 8 * sd) + 3 * width - low) / bins;
  const auto bin_of = [&](double value) { return Index(std::clamp((value - low) / step, 0.0, bins - 1.0)); };
  Vector histogram = Vector::Zero(bins);
  for (const double value : t) histogram(bin_of(value)) += 1;
  Vector density = Vector::Zero(bins);
  const auto reach = static_cast<Index>(std::ceil(4 * width / step)) + 1;
  for (Index shift = -reach; shift <= reach; ++shift) {
    const double at = double(shift) * step / width;
    const double kernel = std::exp(-at * at / 2) / (width * std::sqrt(2 * std::numbers::pi) * double(t.size()));
    const Index size = bins - std::min<Index>(bins, std::abs(shift));
    density.segment(std::max<Index>(0, shift), size) += kernel * histogram.segment(std::max<Index>(0, -shift), size);
  }
  return t.unaryExpr([&](double value) { return density(bin_of(value)); });
}

Vector wrong_link_density(const Model& model, const LinkedRows& rows, const VectorRef& w, double flat) {
  const AdditiveModel* additive = model.additive();
  if (additive == nullptr || rows.y.cols() > 1) return Vector::Constant(rows.size(), flat);
  if (rows.x.cols() == 0) return density_at(rows.y.col(0));
  return density_at(rows.y.col(0) - additive->part(Side::response, rows.x, w).col(0));
}

Vector probabilities(const Mixture& mixture, const Vector& density, const Matrix& residual) {
  const double variance = mixture.noise_sd * mixture.noise_sd;
  const double outputs = static_cast<double>(residual.cols());
  const double height = mixture.right * std::pow(2 * std::numbers::pi * variance, -outputs / 2);
  const Eigen::ArrayXd right = height * (-residual.rowwise().squaredNorm().array() / (2 * variance)).exp();
  return right / (right + (1 - mixture.right) * density.array() + std::numeric_limits<double>::min());
}

void refine(Mixture& mixture, const Model& model, const LinkedRows& rows, double flat, int rounds) {
  const auto outputs = static_cast<double>(rows.y.cols());
  Vector density;
  for (int round = 0; round < rounds; ++round) {
    if (round == 0 || rows.x.cols() > 0) density = wrong_link_density(model, rows, mixture.parameters, flat);
    const Vector weight = probabilities(mixture, density, residuals(model, rows, mixture.parameters));
    const double mass = weight.sum();
    if (!(mass * outputs > double(mixture.parameters.size()))) return;
    const LeastSquares refit = least_squares(model, rows, mixture.parameters, weight, 1);
    const Vector moved = refit.parameters - mixture.parameters;
    const double step = moved.dot(refit.matrix * moved);
    mixture.parameters = refit.parameters;
    mixture.matrix = refit.matrix;
    mixture.right = std::clamp(mass / double(rows.size()), 1e-9, 1 - 1e-9);
    const double variance = refit.squares / (mass * outputs - double(mixture.parameters.size()));
    if (!(variance > 0)) return;
    const double before = mixture.noise_sd;
    mixture.noise_sd = std::sqrt(variance);
    // Converged at a hundredth of a standard error.
    if (step < 1e-4 * variance && std::abs(mixture.noise_sd - before) < 1e-3 * before) return;
  }
}

/// σ²(Σ JᵀJ)⁻¹, or empty when the inliers do not determine every direction.
Matrix covariance_of(const Matrix& normal_matrix, double noise_sd) {
  const Vector scale = normal_matrix.diagonal().cwiseSqrt();
  if (!(scale.minCoeff() > 0) || !(noise_sd > 0)) return {};
  const Vector inverse = scale.cwiseInverse();
  const Eigen::SelfAdjointEigenSolver<Matrix> eigen(inverse.asDiagonal() * normal_matrix * inverse.asDiagonal());
  if (!(eigen.eigenvalues()(0) > 1e-12)) return {};
  const Matrix root = noise_sd * (inverse.asDiagonal() * eigen.eigenvectors() *
                                  eigen.eigenvalues().cwiseSqrt().cwiseInverse().asDiagonal());
  return root * root.transpose();
}

}  // namespace

Consensus ransac(const Model& bound, const LinkedRows& rows, RandomStream random, const RansacOptions& options) {
  const Index p = bound.parameters();
  const Index sample = std::min(rows.size(), rows_that_determine(p, rows.y.cols()));
  const Scene scene = make_scene(bound, rows, options.rows, sample, random);

  Consensus best;
  best.parameters = least_squares(bound, scene.rows, Vector::Zero(p)).parameters;
  Scene::Verdict verdict = polish(scene, scene.judge(best.parameters), best.parameters, 10);
  const auto enough = [&] {
    return std::min<double>(options.max_samples, samples_needed(verdict.right, sample, options.certainty));
  };
  for (best.samples = 0; best.samples < enough(); ++best.samples) {
    const LinkedRows few = subset(scene.rows, sample_rows(scene.rows.size(), sample, random));
    Vector start = Vector::Zero(p);
    if (!bound.linear_in_parameters()) start = start.unaryExpr([&](double) { return random.normal(); });
    Vector w = least_squares(bound, few, start, {}, 20).parameters;
    Scene::Verdict judged = scene.judge(w);
    if (!(judged.score > verdict.score)) continue;
    judged = polish(scene, judged, w, 10);
    verdict = judged;
    best.parameters = w;
  }
  const double trials = std::log(double(levels)) + std::log(double(best.samples + 1)) +
                        double(sample) * std::log(double(scene.rows.size()));
  best.score = verdict.score - trials;
  best.threshold = verdict.threshold;

  Mixture mixture{best.parameters, std::clamp(verdict.right, 1e-3, 1 - 1e-3), verdict.threshold / 2, {}};
  const double flat = flat_density(verdict, double(rows.y.cols()));
  refine(mixture, bound, scene.rows, flat, 50);
  if (scene.rows.size() < rows.size()) refine(mixture, bound, rows, flat, 10);
  best.parameters = mixture.parameters;
  best.inlier_share = mixture.right;
  best.noise_sd = mixture.noise_sd;
  if (mixture.matrix.size() > 0) best.covariance = covariance_of(mixture.matrix, mixture.noise_sd);
  return best;
}

}  // namespace unshuffle
