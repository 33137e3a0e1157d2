#include "verdict/identifiability.hpp"

#include <fmt/format.h>

#include <Eigen/Cholesky>
#include <Eigen/Eigenvalues>
#include <Eigen/QR>
#include <algorithm>
#include <array>
#include <cmath>

#include "core/gram.hpp"
#include "core/special.hpp"
#include "core/squares.hpp"
#include "starts/distance.hpp"
#include "unshuffle/core/wording.hpp"
#include "verdict/collinear.hpp"
#include "verdict/rule.hpp"

namespace unshuffle {

namespace {

constexpr double competing =
    0.1;  // difference of predictions, in sd of y, from which another solution is another answer
constexpr double noticeable =
    0.25;                       // the same in sd of the noise, from which it adds noticeably to errors of prediction
constexpr double level = 1e-4;  // of tests that overturn an answer
constexpr double refuted = 4;   // standard deviations of the misfit beyond which a distribution is another

/// Free parameters fit some rows by chance: each may gain a few nats (Schwarz 1978).
double gained_by_chance(Index parameters, Index rows) {
  return 0.5 * static_cast<double>(parameters) * std::log(static_cast<double>(rows));
}

// Two predictions s and s' of the same rows have the same distribution when their characteristic functions agree. The
// differences of cos(ωs) and sin(ωs) at a few ω are bounded and paired row by row, so their means and covariance give a
// Hotelling statistic, approximately χ² with as many degrees of freedom as there are differences that do not vanish
// identically (as cos(ωs) - cos(-ωs) does). s is in units of its spread (docs/mathematics.md §10.3).
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

/// The assumption that, made otherwise, would move predictions most; null where none would by half of their error.
const WhatIf* gravest_doubt(const Problem& problem, const Model& bound, const Vector& w, const Calibrated& answer) {
  const PredictiveDistance distance(problem, bound);
  const double error = prediction_error(problem, bound, w, answer.doubted_covariance());
  const WhatIf* gravest = nullptr;
  double furthest = 0.5 * error;
  for (const WhatIf& other : answer.what_if) {
    const double moved = distance(w, w + other.shift);
    if (other.ruled_out || moved <= furthest) continue;
    furthest = moved;
    gravest = &other;
  }
  return gravest;
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

namespace {

/// What a search found and how it compares.
struct SearchEvidence {
  double gap = INFINITY;                ///< Nats to the next solution that is another answer,
  double near_gap = INFINITY;           ///< and to the next that is noticeably different.
  std::vector<std::string> gaussian;    ///< Columns that can be rotated into each other.
  std::vector<std::string> symmetries;  ///< That leave the distribution of the features as it is.
  bool blind = false;                   ///< Nothing but the two distributions is known.
  bool gated = false;                   ///< Groups are intervals of the response, which cuts off its noise.
  double chance_gain = 0;               ///< Nats that the coefficients can gain by chance.
  double error = 0;  ///< Of predictions, in standard deviations of the noise, doubts about assumptions included.
  const WhatIf* gravest = nullptr;  ///< Of those assumptions.
};

/// Whether no two groups overlap in the response, as gates do not.
bool gated_by_response(const Problem& problem) {
  if (problem.response_groups.empty() || problem.outputs() != 1) return false;
  std::vector<std::pair<double, double>> ranges;
  for (const Block& block : blocks_of(problem)) {
    const Vector y = problem.y(block.response_rows, 0);
    if (y.size() > 1) ranges.emplace_back(y.minCoeff(), y.maxCoeff());
  }
  std::sort(ranges.begin(), ranges.end());
  const auto overlap = [](const auto& left, const auto& right) { return left.second > right.first; };
  return ranges.size() > 1 && std::adjacent_find(ranges.begin(), ranges.end(), overlap) == ranges.end();
}

std::vector<std::string> rotatable_columns(const Problem& problem, const Model& bound) {
  std::vector<std::string> names;
  const bool linear_in_features =
      bound.linear_in_parameters() && bound.basis(Side::feature, problem.z).cols() == problem.z.cols();
  if (!linear_in_features) return names;
  for (const Index k : gaussian_columns(problem.z)) names.push_back(problem.z_names[std::size_t(k)]);
  return names;
}

/// Optima that compete with the best one; the gaps to them go into the evidence.
std::vector<Alternative> competitors(const SearchResult& found, const PredictiveDistance& distance, double matters,
                                     SearchEvidence& evidence) {
  const Optimum& best = found.optima.front().optimum;
  std::vector<Alternative> others;
  for (std::size_t k = 1; k < found.optima.size(); ++k) {
    const FoundOptimum& other = found.optima[k];
    const double apart = distance(best.parameters, other.optimum.parameters);
    if (!(apart >= matters)) continue;
    const double behind = other.optimum.nats - best.nats;
    double& nearest = apart < competing ? evidence.near_gap : evidence.gap;
    nearest = std::min(nearest, behind);
    others.push_back({other.optimum.parameters, behind, other.optimum.nats, other.start});
  }
  return others;
}

std::string uncertain(const SearchEvidence& e) {
  std::string reason = fmt::format(
      "one solution stands out, but its predictions are uncertain by {:.2f} standard deviations of the noise", e.error);
  if (e.gravest != nullptr)
    reason += fmt::format(", most of all if {}, which nothing here could tell", e.gravest->assumption);
  return reason;
}

std::string model_that_bends() {
  return fmt::format("try a model that bends ({}), another scale of the response, or {}", option("model", "spline:5"),
                     side_information());
}

std::string rotatable(const SearchEvidence& e) {
  return fmt::format(
      "{} are jointly Gaussian as far as the data tells, so their coefficients can be rotated into each other without "
      "changing the distribution of the response",
      joined(e.gaussian));
}

std::string symmetric(const SearchEvidence& e) {
  return fmt::format(
      "the distribution of the features is the same under {}, as far as the data tells; {}", joined(e.symmetries),
      e.gap < certain_gap ? "the response fits either way" : "only accidents of this sample speak for the answer");
}

std::string found_by_one_start(const SearchResult& found, const SearchEvidence& e) {
  return fmt::format(
      "{} starts led to {} different solutions and only one to the answer, which is {:.0f} nats ahead; {} coefficients "
      "can be so by chance",
      found.starts, found.optima.size(), e.gap, found.optima.front().optimum.parameters.size());
}

std::string refuted_by_shape(const SearchEvidence& e, double misfit) {
  return fmt::format(
      "{}the responses are not distributed like predictions plus normal noise ({:.0f} standard deviations off), so the "
      "model is too simple or the noise is not normal, and without links nothing else can tell",
      e.blind ? "" : "within groups, ", misfit);
}

std::string nothing_speaks_against(const SearchResult& found, const SearchEvidence& e) {
  const double next = std::min(e.gap, e.near_gap);
  const std::string ahead = std::isinf(next)
                                ? fmt::format("all {} starts that came near led to one solution", found.starts)
                                : fmt::format("the next solution is {:.1f} nats less likely", next);
  return fmt::format("{}; rests on {}", ahead,
                     e.blind ? "the shape of the distributions alone" : "what is known of the links");
}

std::vector<Rule> rules(const SearchResult& found, const SearchEvidence& e, const Calibrated& answer) {
  const auto text = [](const char* sentence) { return [sentence] { return std::string(sentence); }; };
  return {
      {!e.gaussian.empty(), Verdict::not_identifiable, [&] { return rotatable(e); }, side_information},
      {!e.symmetries.empty() && e.gap < certain_gap, Verdict::not_identifiable, [&] { return symmetric(e); },
       side_information},
      {e.gap < decided_gap, Verdict::not_identifiable,
       [&] {
         return fmt::format("another solution is within {:.1f} nats of the answer; the data cannot choose", e.gap);
       },
       side_information},
      {found.optima.front().hits == 1 && e.gap < e.chance_gain, Verdict::not_identifiable,
       [&] { return found_by_one_start(found, e); },
       [] { return fmt::format("try more starts ({}), or {}", option("starts"), side_information()); }},
      {answer.means_agree < level, Verdict::not_identifiable,
       text("the means of the groups contradict what the shapes of the distributions within them say"),
       model_that_bends},
      {answer.misfit > refuted && !e.gated, Verdict::not_identifiable,
       [&] { return refuted_by_shape(e, answer.misfit); }, model_that_bends},
      {answer.covariance.size() == 0 && !found.stopped, Verdict::not_identifiable,
       text("the likelihood does not fall off to all sides of the answer, so nothing says how far off it may be"),
       side_information},
      {e.error > known_at_all, Verdict::not_identifiable, [&] { return uncertain(e); }, side_information},
      // The rows at hand are not quite symmetric even if their distribution is, and that can tell solutions apart; but
      // it rests on the noise being exactly Gaussian.
      {!e.symmetries.empty(), Verdict::weakly_identified, [&] { return symmetric(e); }, side_information},
      {found.stopped, Verdict::weakly_identified, text("the search was stopped before it had looked everywhere"),
       text("let it run to its end")},
      {answer.misfit > refuted, Verdict::weakly_identified, [&] { return refuted_by_shape(e, answer.misfit); },
       model_that_bends},
      {e.gap < certain_gap, Verdict::weakly_identified,
       [&] { return fmt::format("the next solution is only {:.1f} nats less likely", e.gap); }, side_information},
      {e.near_gap < certain_gap, Verdict::weakly_identified,
       [&] {
         return fmt::format("a solution that predicts nearly the same, but not quite, is only {:.1f} nats less likely",
                            e.near_gap);
       },
       side_information},
      {e.error > known_well, Verdict::weakly_identified, [&] { return uncertain(e); }, side_information},
      {!found.optima.front().optimum.converged, Verdict::weakly_identified,
       text("the search ended before the likelihood stopped rising"), side_information},
      {found.one_start, Verdict::weakly_identified,
       text("only one start was tried, so other solutions were not looked for"),
       [] { return fmt::format("fit without {} and {}, which looks for them", option("start"), option("starts")); }},
      {true, Verdict::identified, [&] { return nothing_speaks_against(found, e); }},
  };
}

}  // namespace

Identifiability judge(const SearchResult& found, const std::vector<Symmetry>& symmetries, const Problem& problem,
                      const Model& bound, const Calibrated& answer) {
  const Optimum& best = found.optima.front().optimum;
  const double spread = std::sqrt(squares_about_mean(problem.y)) / std::sqrt(double(problem.y.rows()));
  const double noise = std::sqrt(best.epsilon / 2);
  SearchEvidence evidence;
  std::vector<Alternative> others = competitors(found, PredictiveDistance(problem, bound),
                                                std::min(competing, noticeable * noise / spread), evidence);
  evidence.blind = blocks_of(problem).size() == 1 && !problem.has_prior();
  evidence.gated = gated_by_response(problem);
  if (evidence.blind) evidence.gaussian = rotatable_columns(problem, bound);
  for (const Symmetry& symmetry : symmetries) evidence.symmetries.push_back(symmetry.name);
  evidence.chance_gain = gained_by_chance(best.parameters.size(), problem.responses());
  if (answer.covariance.size() > 0) {
    evidence.error = prediction_error(problem, bound, best.parameters, answer.doubted_covariance()) * spread / noise;
    evidence.gravest = gravest_doubt(problem, bound, best.parameters, answer);
  }
  Identifiability made = first_that_holds(rules(found, evidence, answer));
  made.alternatives = std::move(others);
  made.what_if = answer.what_if;
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

}  // namespace unshuffle
