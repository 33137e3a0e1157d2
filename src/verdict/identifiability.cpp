#include "verdict/identifiability.hpp"

#include <fmt/format.h>

#include <Eigen/Cholesky>
#include <Eigen/Eigenvalues>
#include <Eigen/QR>
#include <algorithm>
#include <array>
#include <cmath>

#include "core/gram.hpp"
#include "core/normal.hpp"
#include "core/special.hpp"
#include "core/squares.hpp"
#include "starts/distance.hpp"
#include "unshuffle/core/wording.hpp"
#include "verdict/collinear.hpp"

namespace unshuffle {

namespace {

constexpr double certain_gap = 8;  // nats: odds of 3000 to one
constexpr double decided_gap = 3;  // nats: odds of 20 to one
constexpr double competing =
    0.1;  // difference of predictions, in sd of y, from which another solution is another answer
constexpr double noticeable =
    0.25;  // the same in sd of the noise, from which it adds noticeably to errors of prediction
constexpr double loose_error = 0.1;  // standard error of predictions, in sd of y, beyond which w is loosely known
constexpr double level = 1e-4;       // of tests that overturn an answer
constexpr double refuted = 4;        // standard deviations of the misfit beyond which a distribution is another
constexpr double doubtful = 1e-2;    // chance beyond which there is nothing to tell

/// Free parameters fit some rows by chance: each may gain a few nats (Schwarz 1978).
double gained_by_chance(Index parameters, Index rows) {
  return 0.5 * static_cast<double>(parameters) * std::log(static_cast<double>(rows));
}

// Two predictions s and s' of the same rows have the same distribution when their characteristic functions agree. The
// differences of cos(ωs) and sin(ωs) at a few ω are bounded and paired row by row, so their means with their own
// covariance make a Hotelling statistic, about χ² with as many degrees of freedom as differ at all (cos(ωs) and
// cos(-ωs) do not). s is in units of its spread.
bool same_distribution(const Vector& s, const Vector& other) {
  constexpr std::array frequencies{0.5, 1.0, 1.5, 2.5};
  constexpr auto count = static_cast<Index>(2 * frequencies.size());
  Matrix differences(s.size(), count);
  for (std::size_t k = 0; k < frequencies.size(); ++k) {
    const double f = frequencies[k];
    differences.col(Index(2 * k)) = (f * s.array()).cos() - (f * other.array()).cos();
    differences.col(Index(2 * k + 1)) = (f * s.array()).sin() - (f * other.array()).sin();
  }
  const Eigen::RowVectorXd mean = differences.colwise().mean();
  differences.rowwise() -= mean;
  const Matrix covariance = gram(differences) / std::pow(double(s.size()), 2);
  const Vector unit = covariance.diagonal().unaryExpr([](double d) { return d > 1e-30 ? 1 / std::sqrt(d) : 0.0; });
  Eigen::CompleteOrthogonalDecomposition<Matrix> solver;
  solver.setThreshold(1e-10);
  solver.compute(unit.asDiagonal() * covariance * unit.asDiagonal());
  if (solver.rank() == 0) return true;
  const Vector scaled = unit.cwiseProduct(mean.transpose());
  return chi_squared_tail(std::max(0.0, scaled.dot(solver.solve(scaled))), double(solver.rank())) > level;
}

struct FeatureColumns {
  std::vector<Index> parameters;
  Matrix standardised;
  Vector mean;
  Vector scale;
};

FeatureColumns feature_columns(const Problem& problem, const AdditiveModel& model) {
  const Matrix jacobian =
      model.jacobian_part(Side::feature, model.basis(Side::feature, problem.z), Vector::Zero(model.parameters()));
  FeatureColumns made;
  std::vector<double> means;
  std::vector<double> scales;
  for (Index k = 0; k < jacobian.cols(); ++k) {
    const double mean = jacobian.col(k).mean();
    const double sd = std::sqrt((jacobian.col(k).array() - mean).square().mean());
    if (!(sd > 1e-9 * std::abs(mean)) || sd == 0) continue;
    made.parameters.push_back(k);
    means.push_back(mean);
    scales.push_back(sd);
  }
  made.mean = Eigen::Map<Vector>(means.data(), Index(means.size()));
  made.scale = Eigen::Map<Vector>(scales.data(), Index(scales.size()));
  made.standardised = jacobian(Eigen::all, made.parameters);
  made.standardised.rowwise() -= made.mean.transpose();
  made.standardised.array().rowwise() /= made.scale.transpose().array();
  return made;
}

/// Third and fourth moments of whitened columns against those of a Gaussian.
bool jointly_gaussian(const Matrix& columns) {
  const auto n = static_cast<double>(columns.rows());
  const Index e = columns.cols();
  Matrix centred = columns.rowwise() - columns.colwise().mean();
  const Matrix covariance = gram(centred) / n;
  const Eigen::LLT<Matrix> factor(covariance);
  if (factor.info() != Eigen::Success) return false;
  const Matrix white = factor.matrixL().solve(centred.transpose()).transpose();
  double skewness = 0;
  for (Index a = 0; a < e; ++a) {
    for (Index b = 0; b < e; ++b) {
      const Vector product = white.col(a).cwiseProduct(white.col(b));
      skewness += (white.transpose() * product / n).squaredNorm();
    }
  }
  const double wide = double(e);
  const double kurtosis = white.rowwise().squaredNorm().squaredNorm() / n;
  const double deviation = (kurtosis - wide * (wide + 2)) / std::sqrt(8 * wide * (wide + 2) / n);
  return chi_squared_tail(n * skewness / 6, wide * (wide + 1) * (wide + 2) / 6) > level &&
         std::erfc(std::abs(deviation) / std::sqrt(2.0)) > level;
}

std::string joined(const std::vector<std::string>& names) {
  std::string out;
  for (std::size_t k = 0; k < names.size(); ++k) {
    out += (k == 0 ? "" : k + 1 == names.size() ? " and " : ", ") + names[k];
  }
  return out;
}

/// Root mean square standard error of predictions, in standard deviations of y.
double prediction_error(const Problem& problem, const Model& bound, const Vector& w, const Matrix& covariance) {
  const PredictiveDistance distance(problem, bound);
  const Eigen::SelfAdjointEigenSolver<Matrix> eigen(covariance);
  double squares = 0;
  for (Index k = 0; k < w.size(); ++k) {
    const Vector step = eigen.eigenvectors().col(k) * std::sqrt(std::max(0.0, eigen.eigenvalues()(k)));
    squares += std::pow(distance(w, w + step), 2);
  }
  return std::sqrt(squares);
}

std::string side_information() {
  return fmt::format(
      "give some known or probable pairs ({}, {}), a key both tables share or mostly agree in ({}, {}), the row order "
      "if it is partly right ({}), or a column whose distribution is not like the others'",
      option("known"), option("prior"), option("group"), option("soft_group"), option("hint", "rows"));
}

}  // namespace

std::vector<Symmetry> symmetries_of(const Problem& problem, const Model& bound, const Vector& w) {
  const AdditiveModel* model = bound.additive();
  if (model == nullptr || !bound.linear_in_parameters() || problem.outputs() != 1) return {};
  const FeatureColumns columns = feature_columns(problem, *model);
  const auto count = static_cast<Index>(columns.parameters.size());
  const std::vector<std::string> names = bound.parameter_names();
  const auto name = [&](Index k) { return names[std::size_t(columns.parameters[std::size_t(k)])]; };
  const Vector here = w(columns.parameters).cwiseProduct(columns.scale);
  const Vector s = columns.standardised * here;
  const double size = s.norm();
  std::vector<Symmetry> found;
  const double unit = std::sqrt(double(s.size())) / size;
  const auto consider = [&](const Vector& mapped, const std::string& what) {
    const Vector other = columns.standardised * mapped;
    if ((other - s).norm() < competing * size || !same_distribution(unit * s, unit * other)) return;
    Vector parameters = w;
    parameters(columns.parameters) = mapped.cwiseQuotient(columns.scale);
    for (std::size_t k = 0; k < names.size(); ++k) {
      if (is_intercept(names[k])) {
        const Vector change = parameters(columns.parameters) - w(columns.parameters);
        parameters(Index(k)) -= change.dot(columns.mean);
      }
    }
    found.push_back({what, parameters});
  };
  const auto column = [&](Index k) { return columns.standardised.col(k); };
  bool all_even = count > 1;
  for (Index a = 0; a < count; ++a) {
    Vector mapped = here;
    mapped(a) = -mapped(a);
    const bool even = same_distribution(column(a), -column(a));
    all_even = all_even && even;
    if (even) consider(mapped, fmt::format("sign of {}", name(a)));
    for (Index b = a + 1; b < count; ++b) {
      if (!same_distribution(column(a), column(b))) continue;
      mapped = here;
      std::swap(mapped(a), mapped(b));
      consider(mapped, fmt::format("exchange of {} and {}", name(a), name(b)));
    }
  }
  if (all_even) consider(-here, "sign of all features");
  return found;
}

std::vector<Index> gaussian_columns(const Matrix& z) {
  constexpr Index widest = 30;
  std::vector<Index> candidates;
  for (Index k = 0; k < z.cols(); ++k) {
    if (jointly_gaussian(z.col(k))) candidates.push_back(k);
  }
  if (candidates.size() < 2 || Index(candidates.size()) > widest) return {};
  return jointly_gaussian(z(Eigen::all, candidates)) ? candidates : std::vector<Index>{};
}

Identifiability judge(const SearchResult& found, const std::vector<Symmetry>& symmetries, const Problem& problem,
                      const Model& bound, const Calibrated& answer) {
  const Matrix& covariance = answer.covariance;
  Identifiability made;
  const Optimum& best = found.optima.front().optimum;
  const PredictiveDistance distance(problem, bound);
  const double spread = std::sqrt(squares_about_mean(problem.y)) / std::sqrt(double(problem.y.rows()));
  const double matters = std::min(competing, noticeable * std::sqrt(best.epsilon / 2) / spread);
  double gap = INFINITY;       // to the next solution that is another answer
  double near_gap = INFINITY;  // to the next that is noticeably different
  for (std::size_t k = 1; k < found.optima.size(); ++k) {
    const FoundOptimum& other = found.optima[k];
    const double apart = distance(best.parameters, other.optimum.parameters);
    if (!(apart >= matters)) continue;
    const double behind = other.optimum.nats - best.nats;
    double& nearest = apart < competing ? near_gap : gap;
    nearest = std::min(nearest, behind);
    made.alternatives.push_back({other.optimum.parameters, behind, other.optimum.nats, other.start});
  }
  const bool blind = blocks_of(problem).size() == 1 && !problem.has_prior();
  std::vector<std::string> gaussian;
  const bool linear_in_features =
      bound.linear_in_parameters() && bound.basis(Side::feature, problem.z).cols() == problem.z.cols();
  if (blind && linear_in_features) {
    for (const Index k : gaussian_columns(problem.z)) gaussian.push_back(problem.z_names[std::size_t(k)]);
  }
  std::vector<std::string> broken;
  for (const Symmetry& symmetry : symmetries) broken.push_back(symmetry.name);

  made.advice = side_information();
  if (!gaussian.empty()) {
    made.verdict = Verdict::not_identifiable;
    made.reason = fmt::format(
        "{} are jointly Gaussian as far as the data tells, so their coefficients can be rotated into each other "
        "without "
        "changing the distribution of the response",
        joined(gaussian));
  } else if (!broken.empty()) {
    // The rows at hand are not quite symmetric even if their distribution is, and that can tell solutions apart; but it
    // rests on the noise being exactly Gaussian.
    made.verdict = gap < certain_gap ? Verdict::not_identifiable : Verdict::weakly_identified;
    made.reason = fmt::format(
        "the distribution of the features is the same under {}, as far as the data tells; {}", joined(broken),
        gap < certain_gap ? "the response fits either way" : "only accidents of this sample speak for the answer");
  } else if (gap < decided_gap) {
    made.verdict = Verdict::not_identifiable;
    made.reason = fmt::format("another solution is within {:.1f} nats of the answer; the data cannot choose", gap);
  } else if (found.optima.front().hits == 1 && gap < gained_by_chance(best.parameters.size(), problem.responses())) {
    made.verdict = Verdict::not_identifiable;
    made.reason = fmt::format(
        "{} starts led to {} different solutions and only one to the answer, which is {:.0f} nats ahead; {} "
        "coefficients can be so by chance",
        found.starts, found.optima.size(), gap, best.parameters.size());
    made.advice = fmt::format("try more starts ({}), or {}", option("starts"), side_information());
  } else if (blind && answer.misfit > refuted) {
    made.verdict = Verdict::not_identifiable;
    made.reason = fmt::format(
        "the responses are not distributed like predictions plus normal noise ({:.0f} standard deviations off), so the "
        "model is too simple or the noise is not normal, and without links nothing else can tell",
        answer.misfit);
    made.advice = fmt::format("try a model that bends ({}), another scale of the response, or {}",
                              option("model", "spline:5"), side_information());
  } else if (found.stopped) {
    made.verdict = Verdict::weakly_identified;
    made.reason = "the search was stopped before it had looked everywhere";
    made.advice = "let it run to its end";
  } else if (covariance.size() == 0) {
    made.verdict = Verdict::not_identifiable;
    made.reason = "the likelihood does not fall off to all sides of the answer, so nothing says how far off it may be";
  } else if (gap < certain_gap) {
    made.verdict = Verdict::weakly_identified;
    made.reason = fmt::format("the next solution is only {:.1f} nats less likely", gap);
  } else if (near_gap < certain_gap) {
    made.verdict = Verdict::weakly_identified;
    made.reason = fmt::format(
        "a solution that predicts nearly the same, but not quite, is only {:.1f} nats less likely", near_gap);
  } else if (const double error = prediction_error(problem, bound, best.parameters, covariance); error > loose_error) {
    made.verdict = Verdict::weakly_identified;
    made.reason = fmt::format(
        "one solution stands out, but its predictions are uncertain by {:.0f} % of the spread of "
        "the response",
        100 * error);
  } else if (!best.converged) {
    made.verdict = Verdict::weakly_identified;
    made.reason = "the search ended before the likelihood stopped rising";
  } else if (found.one_start) {
    made.verdict = Verdict::weakly_identified;
    made.reason = "only one start was tried, so other solutions were not looked for";
    made.advice = fmt::format("fit without {} and {}, which looks for them", option("start"), option("starts"));
  } else {
    made.verdict = Verdict::identified;
    made.advice.clear();
    const double next = std::min(gap, near_gap);
    made.reason = std::isinf(next) ? fmt::format("all {} starts that came near led to one solution", found.starts)
                                   : fmt::format("the next solution is {:.1f} nats less likely", next);
  }
  return made;
}

Identifiability qualified(Identifiability said, const Problem& problem, const Model& bound) {
  constexpr Index rows_per_parameter = 5;
  const Index numbers = std::min(problem.responses(), problem.features()) * problem.outputs();
  if (const std::vector<std::string> dependent = collinear_parameters(problem, bound); !dependent.empty()) {
    said.verdict = Verdict::not_identifiable;
    said.reason = fmt::format("{} are linear combinations of each other, so only sums of their effects are determined",
                              joined(dependent));
    said.advice = "leave out columns until none can be had from the others";
  } else if (said.verdict == Verdict::identified && numbers < rows_per_parameter * bound.parameters()) {
    said.verdict = Verdict::weakly_identified;
    said.reason = fmt::format("{} responses are few for {} parameters", numbers, bound.parameters());
    said.advice = "add rows, or use fewer features";
  }
  return said;
}

bool contradicts(double agreement) { return agreement < level; }

namespace {

/// Root mean square standard error of predictions for linked rows, in standard deviations of y.
double prediction_error(const LinkedRows& rows, const Model& bound, const Vector& w, const Matrix& covariance) {
  const double spread = std::sqrt(squares_about_mean(rows.y));
  const Matrix jacobian = linked_jacobian(bound, rows, w);
  return std::sqrt((jacobian * covariance).cwiseProduct(jacobian).sum()) / spread;
}

void call_uncertain(Identifiability& made, const std::string& share, double error) {
  made.verdict = Verdict::weakly_identified;
  made.reason = fmt::format("{}, which leaves predictions uncertain by {:.0f} % of the spread of the response", share,
                            100 * error);
  made.advice = fmt::format("add known pairs ({}), or use fewer features", option("known"));
}

std::string needs_neither() {
  return fmt::format("try {}, which needs neither, or a model that bends ({})", option("method", "adjusted"),
                     option("model", "spline:5"));
}

std::string not_the_order() {
  return fmt::format("leave the hint out ({}), or give known pairs ({}) or groups ({})", option("hint", "none"),
                     option("known"), option("group"));
}

}  // namespace

Identifiability judge(const MixtureFit& fit, const CandidateLinks& links, const Model& bound, double agreement) {
  Identifiability made;
  const auto rows = static_cast<double>(links.rows.size());
  const double error = prediction_error(links.rows, bound, fit.parameters, fit.covariance);
  const double linked = fit.link_probability.sum();
  const double chance = decided_gap + 2 * gained_by_chance(fit.parameters.size(), links.rows.size());
  const std::string share = fmt::format("about {:.0f} of {:.0f} rows are linked in the order given", linked, rows);
  if (fit.tied > 0 && (fit.only_ties || !(fit.gain > chance))) {
    made.verdict = Verdict::not_identifiable;
    made.reason = fmt::format(
        "{} of {:.0f} responses have the same value, and the likelihood takes only these rows to be linked rightly, "
        "whatever their features are; it finds no other solution",
        fit.tied, rows);
    made.advice = needs_neither();
  } else if (!(fit.gain > chance)) {
    made.verdict = Verdict::not_identifiable;
    made.reason = fmt::format("the row order explains the response no better than chance ({:.1f} nats)", fit.gain);
    made.advice = not_the_order();
  } else if (contradicts(agreement)) {
    made.verdict = Verdict::weakly_identified;
    made.reason = fmt::format(
        "regression on all rows contradicts the {:.0f} of {:.0f} that are taken to be linked rightly (p = {:.1g}), so "
        "the model is too simple, or the noise is not normal",
        linked, rows, agreement);
    made.advice = needs_neither();
  } else if (fit.tied > 0) {
    made.verdict = Verdict::weakly_identified;
    made.reason = fmt::format(
        "{}; {} responses have the same value, and with less noise than {:.3g}, which it was not allowed, the "
        "likelihood takes only those rows to be linked rightly",
        share, fit.tied, std::sqrt(fit.kept_above));
    made.advice = needs_neither();
  } else if (fit.rate_is_limited) {
    made.verdict = Verdict::weakly_identified;
    made.reason = fmt::format(
        "{}; the likelihood alone would call more of them wrong than contradict each other, so the model is too "
        "simple, or the noise is not normal",
        share);
    made.advice = needs_neither();
  } else if (error > loose_error || linked < 2.0 * double(fit.parameters.size())) {
    call_uncertain(made, share, error);
  } else {
    made.verdict = Verdict::identified;
    made.reason = fmt::format("{}; they stand out by {:.0f} nats", share, fit.gain);
  }
  return made;
}

Identifiability judge(const AdjustedFit& fit, const CandidateLinks& links, const Model& bound) {
  Identifiability made;
  const double right = 1 - fit.mismatch.rate, error_of_right = std::sqrt(fit.mismatch.variance);
  const double error = prediction_error(links.rows, bound, fit.parameters, fit.covariance);
  const std::string share =
      fmt::format("at least {:.0f} % (± {:.0f}) of the rows {}are linked rightly in the order given", 100 * right,
                  100 * normal_quantile * error_of_right, links.known > 0 ? "that are not known " : "");
  // Known pairs that determine the coefficients need no order.
  const bool by_order = links.known * links.rows.y.cols() <= bound.parameters();
  const double chance = by_order ? significance_of_order(bound, links) : 0;
  if (!(chance < doubtful)) {
    made.verdict = Verdict::not_identifiable;
    made.reason = fmt::format("the row order explains the response no better than chance (p = {:.2g})", chance);
    made.advice = not_the_order();
  } else if (!(chance < level)) {
    made.verdict = Verdict::weakly_identified;
    made.reason = fmt::format("the row order explains the response little better than chance (p = {:.2g})", chance);
    made.advice = not_the_order();
  } else if (error > loose_error) {
    call_uncertain(made, share, error);
  } else {
    made.verdict = Verdict::identified;
    made.reason =
        fmt::format("{}; predictions are known to {:.0f} % of the spread of the response", share, 100 * error);
  }
  return made;
}

}  // namespace unshuffle
