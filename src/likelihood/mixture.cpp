#include "likelihood/mixture.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/random.hpp"
#include "likelihood/kernel_density.hpp"
#include "likelihood/mixture_sums.hpp"
#include "likelihood/wrong_links.hpp"
#include "starts/ransac.hpp"
#include "unshuffle/core/stop.hpp"

namespace unshuffle {

// The model is that of mixture_sums.hpp. The response of a wrong link belongs to some other row, so y_i is drawn from
// the distribution of responses given no features, q(y_i - g(x_i)): a kernel estimate of the density of t = y - g(x;
// w), the part of y that x does not explain (Slawski, Diao & Ben-David 2021 use the marginal of y, the case without x).
// With r_i = y_i - f_i and φ the normal density,
//   E:  π_i = (1-α) φ_σ(r_i) / ((1-α) φ_σ(r_i) + α q_i)
//   M:  w by least squares with weights π,   σ² = Σ π|r|² / (o Σπ),   α = 1 - mean π, at most what is allowed.
// q is fixed during a round of EM and re-estimated when coefficients of x have moved it. docs/mathematics.md §6.
namespace {

class Mixture {
 public:
  Mixture(const Model& bound, const CandidateLinks& links, const MixtureOptions& options)
      : bound_(bound),
        links_(links),
        options_(options),
        weights_(links.weights_or_one()),
        outputs_(static_cast<double>(links.rows.y.cols())),
        limits_{options.known_noise_variance,
                std::max(least_noise_variance(links.rows.y), options.least_noise_variance), options.largest_rate} {}

  MixtureFit run(const Vector& start) {
    fit_.parameters = start;
    const Matrix r = residuals(bound_, links_.rows, start);
    // The noise is estimated from the better half; half of the links are assumed right.
    std::vector<double> squares(std::size_t(r.rows()));
    for (Index i = 0; i < r.rows(); ++i) squares[std::size_t(i)] = r.row(i).squaredNorm();
    std::nth_element(squares.begin(), squares.begin() + long(squares.size() / 2), squares.end());
    belief_ = limited({squares[squares.size() / 2] / outputs_, 0.5}, limits_);
    const int rounds = links_.rows.x.cols() > 0 && bound_.additive() != nullptr ? 4 : 1;
    for (int round = 0; round < rounds; ++round) {
      renew_density();
      iterate();
    }
    finish();
    return fit_;
  }

 private:
  void renew_density() {
    Matrix t = links_.rows.y;
    if (links_.rows.x.cols() > 0 && bound_.additive() != nullptr) {
      t -= bound_.additive()->part(Side::response, links_.rows.x, fit_.parameters);
    }
    log_other_ = KernelDensity(t, options_.seed).log_at(t);
  }

  /// Posterior of every link; returns the log-likelihood.
  double expect(const Matrix& r) {
    expected_ = expect_links(at(r), belief_);
    return expected_.log_likelihood;
  }
  [[nodiscard]] LinkedResiduals at(const Matrix& r) const { return {r, log_other_, weights_, links_.known}; }

  void maximise() {
    const Vector weights = expected_.probability.cwiseProduct(weights_);
    const LeastSquares solved = least_squares(bound_, links_.rows, fit_.parameters, weights, 5);
    fit_.parameters = solved.parameters;
    const Index open = links_.open();
    belief_ = maximised({.numbers = outputs_ * weights.sum(),
                         .squares = solved.squares,
                         .open = weights_.tail(open).sum(),
                         .open_right = weights.tail(open).sum()},
                        limits_);
  }

  void iterate() {
    double last = expect(residuals(bound_, links_.rows, fit_.parameters));
    fit_.converged = false;
    for (int step = 0; step < options_.max_iterations && !fit_.converged; ++step) {
      stop_if_asked();
      maximise();
      fit_.log_likelihood = expect(residuals(bound_, links_.rows, fit_.parameters));
      ++fit_.iterations;
      fit_.converged = std::abs(fit_.log_likelihood - last) <= options_.tolerance * double(links_.rows.size());
      last = fit_.log_likelihood;
    }
  }

  void finish() {
    const Matrix r = residuals(bound_, links_.rows, fit_.parameters);
    const MixtureSums sums =
        mixture_sums(at(r), linked_jacobian(bound_, links_.rows, fit_.parameters), expected_, belief_);
    const MixtureCovariance covariance = mixture_covariance(sums, belief_, options_.rate_variance);
    fit_.noise_variance = belief_.noise_variance;
    fit_.mismatch_rate = belief_.mismatch_rate;
    fit_.rate_is_limited = belief_.rate_is_limited;
    fit_.model_covariance = covariance.model;
    fit_.covariance = covariance.sandwich;
    fit_.gain = fit_.log_likelihood - weights_.dot(log_other_);
    fit_.link_probability = judged_links(r);
  }

  /// Residuals of fitted rows are smaller than the noise, and so is the maximum-likelihood variance. Links are judged
  /// by the unbiased one; otherwise too many right links in the tails would be called wrong.
  [[nodiscard]] Vector judged_links(const Matrix& r) const {
    LinkBelief unbiased = belief_;
    const double numbers = outputs_ * expected_.probability.cwiseProduct(weights_).sum();
    const double freedom = numbers - double(fit_.parameters.size());
    if (!belief_.noise_is_given && freedom > 0) unbiased.noise_variance *= numbers / freedom;
    return expect_links(at(r), unbiased).probability;
  }

  const Model& bound_;
  const CandidateLinks& links_;
  const MixtureOptions& options_;
  Vector weights_;
  Vector log_other_;
  Expectation expected_;
  double outputs_;
  BeliefLimits limits_;
  LimitedBelief belief_;
  MixtureFit fit_;
};

/// With a share of the rows linked at random, least squares finds about 1 - share of the slope: undo that.
Vector stretched(const Model& bound, const LinkedRows& rows, const Vector& w, double factor) {
  LinkedRows wanted = rows;
  const Matrix f = predict_pairs(bound, rows.x, rows.z, w);
  const Eigen::RowVectorXd mean = f.colwise().mean();
  wanted.y = (factor * (f.rowwise() - mean)).rowwise() + rows.y.colwise().mean();
  return least_squares(bound, wanted, w).parameters;
}

/// Least squares on the half that fits best, again and again (concentration steps of least trimmed squares).
Vector concentrated(const Model& bound, const LinkedRows& rows, Vector w) {
  const Index half = std::max(rows.size() / 2, std::min(rows.size(), 2 * w.size()));
  std::vector<Index> order(std::size_t(rows.size()));
  for (int step = 0; step < 20; ++step) {
    const Vector squares = residuals(bound, rows, w).rowwise().squaredNorm();
    std::iota(order.begin(), order.end(), Index{0});
    std::stable_sort(order.begin(), order.end(), [&](Index a, Index b) { return squares(a) < squares(b); });
    Vector weights = Vector::Zero(rows.size());
    for (Index k = 0; k < half; ++k) weights(order[std::size_t(k)]) = 1;
    const Vector next = least_squares(bound, rows, w, weights).parameters;
    if ((next - w).norm() <= 1e-9 * w.norm()) break;
    w = next;
  }
  return w;
}

}  // namespace

// Non-normal noise, or a model that is too simple, makes right links look wrong to the likelihood.
void bound_mismatch_rate(const Model& bound, const CandidateLinks& links, const LeastSquares& linked,
                         MixtureOptions& options) {
  if (!averages_over_partners(bound)) return;
  const MismatchRate largest = largest_mismatch_rate(bound, links, linked.parameters, options.seed);
  if (largest.variance == 0) return;  // no link is open
  options.largest_rate = largest.rate;
  options.rate_variance = largest.variance;
}

bool rate_is_implausible(double rate, const MixtureOptions& options) {
  constexpr double one_in_a_hundred = 2.326;  // standard errors
  return rate > options.largest_rate + one_in_a_hundred * std::sqrt(options.rate_variance);
}

MixtureFit fit_mixture(const Model& bound, const CandidateLinks& links, const Vector& start,
                       const MixtureOptions& options) {
  return Mixture(bound, links, options).run(start);
}

namespace {

/// EM from several starts.
MixtureFit most_likely_mixture(const Model& bound, const CandidateLinks& links, const LeastSquares& linked,
                               const MixtureOptions& options) {
  constexpr Index few_parameters = 8, sample_rows = 50'000;
  // A sample suffices to compare the starts; the answer uses all rows.
  if (links.known == 0 && links.rows.size() > 2 * sample_rows) {
    std::vector<Index> spaced;
    for (Index k = 0; k < sample_rows; ++k) spaced.push_back(k * links.rows.size() / sample_rows);
    CandidateLinks sample{.rows = subset(links.rows, spaced)};
    if (links.weights.size() > 0) sample.weights = links.weights(spaced);
    const LeastSquares on_sample = least_squares(bound, sample.rows, linked.parameters, sample.weights);
    return fit_mixture(bound, links, most_likely_mixture(bound, sample, on_sample, options).parameters, options);
  }
  std::vector<Vector> starts{linked.parameters, concentrated(bound, links.rows, linked.parameters)};
  if (bound.linear_in_parameters()) {
    for (const double factor : {1.5, 3.0}) starts.push_back(stretched(bound, links.rows, linked.parameters, factor));
  }
  if (bound.parameters() <= few_parameters) {
    starts.push_back(ransac(bound, links.rows, RandomStream(options.seed, Stream::start)).parameters);
  }
  // A few steps distinguish the starts; only the best is run to convergence.
  MixtureOptions brief = options;
  brief.max_iterations = std::min(25, options.max_iterations);
  MixtureFit best;
  for (const Vector& start : starts) {
    if (!start.allFinite()) continue;
    MixtureFit tried = fit_mixture(bound, links, start, brief);
    if (best.parameters.size() == 0 || tried.log_likelihood > best.log_likelihood) best = std::move(tried);
  }
  return best.converged ? best : fit_mixture(bound, links, best.parameters, options);
}

/// The same, with the rate limited only where necessary.
MixtureFit most_plausible_mixture(const Model& bound, const CandidateLinks& links, const LeastSquares& linked,
                                  const MixtureOptions& options) {
  MixtureOptions free = options;
  free.largest_rate = 1;
  MixtureFit found = most_likely_mixture(bound, links, linked, free);
  if (rate_is_implausible(found.mismatch_rate, options)) found = most_likely_mixture(bound, links, linked, options);
  return found;
}

// Many equal responses, such as zero counts or amounts below a limit of detection, are fitted without any noise by
// coefficients of zero: their likelihood grows without bound as the noise shrinks. But whether a link is right does not
// depend on the response, so other responses should be as frequent among right links as among all.
/// Number of rows with the response that nearly all right links share; 0 when right links have varied responses.
Index rows_tied_alone(const CandidateLinks& links, const Vector& link_probability) {
  constexpr double nearly_none = 0.1;  // of the others; where EM collapsed none is left, else about all are
  const Matrix& y = links.rows.y;
  const auto before = [&](Index a, Index b) {
    return std::lexicographical_compare(y.row(a).begin(), y.row(a).end(), y.row(b).begin(), y.row(b).end());
  };
  std::vector<Index> order(std::size_t(links.open()));
  std::iota(order.begin(), order.end(), links.known);
  std::sort(order.begin(), order.end(), before);
  const double right = link_probability.tail(links.open()).sum();
  Index most = 0;
  double most_right = 0;
  for (auto first = order.begin(); first != order.end();) {
    const auto end = std::upper_bound(first, order.end(), *first, before);
    double here = 0;
    for (auto k = first; k != end; ++k) here += link_probability(*k);
    if (here > most_right) {
      most_right = here;
      most = Index(end - first);
    }
    first = end;
  }
  if (most < 2) return 0;
  const double others = 1 - double(most) / double(links.open());
  return 1 - most_right / right < nearly_none * others ? most : 0;
}

}  // namespace

double resolution(const Matrix& y, std::uint64_t seed) {
  return KernelDensity(y, seed).bandwidth().squaredNorm() / double(y.cols());
}

MixtureFit fit_mixture_from_all(const Model& bound, const CandidateLinks& links, const LeastSquares& linked,
                                const MixtureOptions& options) {
  MixtureFit found = most_plausible_mixture(bound, links, linked, options);
  const Index tied = options.known_noise_variance > 0 ? 0 : rows_tied_alone(links, found.link_probability);
  if (tied == 0) return found;
  // With noise as wide as the law of wrong links around each response, right links gain nothing from being equal.
  MixtureOptions wide = options;
  wide.least_noise_variance = resolution(links.rows.y, options.seed);
  found = most_plausible_mixture(bound, links, linked, wide);
  found.tied = tied;
  found.only_ties = rows_tied_alone(links, found.link_probability) > 0;
  found.kept_above = wide.least_noise_variance;
  return found;
}

}  // namespace unshuffle
