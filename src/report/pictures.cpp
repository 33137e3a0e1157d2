#include "report/pictures.hpp"

#include <Eigen/Cholesky>
#include <Eigen/Eigenvalues>
#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

namespace unshuffle {
namespace {

/// The transport problem at the answer. Estimators with a likelihood over all links maximise the entropic value, not
/// the transport cost.
EvaluatorOptions at_answer(const ReportInput& input) {
  EvaluatorOptions plan = input.plan;
  if (traits_of(input.context.chosen).likelihood) plan.objective = Objective::entropic;
  return plan;
}

std::vector<double> shares(const VectorRef& values, double low, double high, Index bins) {
  std::vector<double> share(std::size_t(bins), 0.0);
  for (const double value : values) {
    const double place = (value - low) / (high - low) * double(bins);
    share[std::size_t(std::clamp<Index>(Index(place), 0, bins - 1))] += 1.0 / double(values.size());
  }
  return share;
}

std::vector<Index> sorted_order(const Vector& values) {
  std::vector<Index> order(std::size_t(values.size()));
  std::iota(order.begin(), order.end(), Index(0));
  std::stable_sort(order.begin(), order.end(), [&](Index a, Index b) { return values[a] < values[b]; });
  return order;
}

/// Sort keys of both sides: the first response minus the part explained by x, and the prediction from z.
std::pair<Vector, Vector> positions(const ReportInput& input) {
  const Problem& problem = input.problem;
  const Vector& w = input.result.parameters;
  const Matrix z = input.bound.basis(Side::feature, problem.z);
  Vector responses = problem.y.col(0);
  if (const AdditiveModel* additive = input.bound.additive()) {
    if (problem.x.cols() > 0) {
      responses -= additive->part(Side::response, input.bound.basis(Side::response, problem.x), w).col(0);
    }
    return {responses, additive->part(Side::feature, z, w).col(0)};
  }
  const Matrix x = input.bound.basis(Side::response, problem.x);
  return {responses, input.bound.predict(x.topRows(std::min<Index>(1, x.rows())), z, w).col(0)};
}

/// Scales that make the parameters comparable: each changes the predictions by about the same amount.
Vector natural_scale(const ReportInput& input) {
  const Vector& w = input.result.parameters;
  Vector scale = w.cwiseAbs().cwiseMax(1e-3 * std::max(1e-300, w.lpNorm<Eigen::Infinity>()));
  const AdditiveModel* additive = input.bound.additive();
  if (additive == nullptr || input.problem.outputs() != 1) return scale;
  Vector squares = Vector::Zero(w.size());
  const auto add = [&](Side side, const Matrix& table) {
    const Matrix jacobian = additive->jacobian_part(side, input.bound.basis(side, table), w);
    squares += jacobian.cwiseAbs2().colwise().mean().transpose();
  };
  add(Side::feature, input.problem.z);
  if (input.problem.x.cols() > 0) add(Side::response, input.problem.x);
  return (squares.array() > 0).select(squares.array().sqrt().inverse(), scale.array());
}

/// Eigenvector of the smallest curvature of the objective in scaled parameters, by differences of gradients.
Vector weakest_direction(Evaluator& evaluator, const Vector& w, const Vector& scale) {
  const Index count = w.size();
  const double step = 1e-3 * std::max(1e-12, w.cwiseQuotient(scale).norm());
  Matrix hessian(count, count);
  for (Index k = 0; k < count; ++k) {
    Vector ahead = w, behind = w;
    ahead[k] += step * scale[k];
    behind[k] -= step * scale[k];
    hessian.col(k) = (evaluator.evaluate(ahead).gradient - evaluator.evaluate(behind).gradient).cwiseProduct(scale);
  }
  const Eigen::SelfAdjointEigenSolver<Matrix> solved(hessian + hessian.transpose());
  return solved.eigenvectors().col(0).cwiseProduct(scale);
}

}  // namespace

std::vector<Distribution> distributions(const ReportInput& input) {
  constexpr Index bins = 30;
  const Problem& problem = input.problem;
  const auto count = Index(input.matching.pairs.size());
  if (count == 0) return {};
  Matrix y(count, problem.outputs()), x(count, problem.x.cols()), z(count, problem.z.cols());
  for (Index k = 0; k < count; ++k) {
    const Match& pair = input.matching.pairs[std::size_t(k)];
    y.row(k) = problem.y.row(pair.response_row);
    if (x.cols() > 0) x.row(k) = problem.x.row(pair.response_row);
    z.row(k) = problem.z.row(pair.feature_row);
  }
  Matrix predicted = predict_linked(input.bound, x, z, input.result.parameters);
  if (const Matrix& covariance = input.context.law.noise_covariance; covariance.size() > 0) {
    // Rows were whitened; pictures are in the responses' own units.
    const Matrix root = covariance.llt().matrixL();
    y *= root.transpose();
    predicted *= root.transpose();
  }
  std::vector<Distribution> all;
  for (Index output = 0; output < problem.outputs(); ++output) {
    const double low = std::min(y.col(output).minCoeff(), predicted.col(output).minCoeff());
    const double high = std::max(y.col(output).maxCoeff(), predicted.col(output).maxCoeff());
    if (!(high > low)) continue;
    Distribution made;
    made.response = input.context.columns.response[std::size_t(output)];
    for (Index edge = 0; edge <= bins; ++edge) made.edges.push_back(low + (high - low) * double(edge) / double(bins));
    made.observed = shares(y.col(output), low, high, bins);
    made.predicted = shares(predicted.col(output), low, high, bins);
    all.push_back(std::move(made));
  }
  return all;
}

Correspondence correspondence(const ReportInput& input) {
  constexpr Index most = 60;
  const Problem problem = completed(input.problem);
  Evaluator evaluator(problem, input.bound, at_answer(input));
  const SoftLinks links = evaluator.links(input.result.parameters);
  const auto [responses, predictions] = positions(input);
  const auto row_order = sorted_order(responses), feature_order = sorted_order(predictions);
  const Index n = problem.responses(), m = problem.features();
  const Index rows = std::min(n, most), stretches = std::min(m, most);
  Correspondence made;
  made.feature_mass.assign(std::size_t(stretches), 0.0);
  const auto stretch_of = [&](Index place) { return std::size_t(place * stretches / m); };
  std::vector<double> lengths(std::size_t(stretches), 0.0);
  for (Index place = 0; place < m; ++place) {
    const Index feature = feature_order[std::size_t(place)];
    const std::size_t stretch = stretch_of(place);
    if (lengths[stretch]++ == 0) made.feature_from.push_back(predictions[feature]);
    made.feature_mass[stretch] += links.feature_mass[feature];
  }
  for (std::size_t k = 0; k < lengths.size(); ++k) made.feature_mass[k] /= lengths[k];
  for (Index k = 0; k < rows; ++k) {
    const Index row = row_order[std::size_t((2 * k + 1) * n / (2 * rows))];
    std::vector<double> share(std::size_t(stretches), 0.0);
    for (Index place = 0; place < m; ++place) {
      const double mass = evaluator.plan_entry(row, feature_order[std::size_t(place)]);
      if (problem.response_weights[row] > 0) share[stretch_of(place)] += mass / problem.response_weights[row];
    }
    made.rows.push_back(row);
    made.row_mass.push_back(links.response_mass[row]);
    made.share.push_back(std::move(share));
  }
  return made;
}

Landscape landscape(const ReportInput& input) {
  const Problem problem = completed(input.problem);
  const EvaluatorOptions plan = at_answer(input);
  Evaluator evaluator(problem, input.bound, plan);
  const Vector& w = input.result.parameters;
  const Vector scale = natural_scale(input);
  const Vector direction = weakest_direction(evaluator, w, scale);
  // A dense plan is expensive; fewer points still show whether there is a second valley.
  const bool dear =
      evaluator.backend() != Backend::sorted && double(problem.responses()) * double(problem.features()) > 3e5;
  const Index half = dear ? 6 : 30;
  const double reach = 1.5 * std::max(1e-12, w.cwiseQuotient(scale).norm());
  Landscape made;
  made.objective_name = name_of(plan.objective);
  for (const double part : direction) made.direction.push_back(part);
  for (Index k = -half; k <= half; ++k) {
    const double offset = reach * double(k) / double(half);
    made.offset.push_back(offset);
    made.objective.push_back(evaluator.evaluate(w + offset * direction).objective);
  }
  return made;
}

std::vector<double> standardisation(const ReportInput& input) {
  const AdditiveModel* additive = input.bound.additive();
  const Problem& problem = input.problem;
  if (additive == nullptr || problem.outputs() != 1) return {};
  const double spread = column_spreads(problem.y)[0];
  const Vector& w = input.result.parameters;
  Vector spreads = Vector::Zero(w.size());
  const auto add = [&](Side side, const Matrix& table) {
    if (table.cols() > 0) spreads += column_spreads(additive->jacobian_part(side, input.bound.basis(side, table), w));
  };
  add(Side::feature, problem.z);
  add(Side::response, problem.x);
  if (!(spread > 0)) return {};
  std::vector<double> factors;
  for (Index k = 0; k < w.size(); ++k)
    factors.push_back(is_intercept(input.result.names[std::size_t(k)]) ? std::nan("") : spreads[k] / spread);
  return factors;
}

std::vector<CalibrationBin> calibration(const ReportInput& input) {
  constexpr Index count = 10;
  std::vector<CalibrationBin> bins;
  for (Index k = 0; k < count; ++k) bins.push_back({double(k) / count, double(k + 1) / count, 0, 0, 0});
  std::map<Index, Index> truth;
  for (const KnownPair& pair : input.truth) truth[pair.response_row] = pair.feature_row;
  for (const Match& pair : input.matching.pairs) {
    const auto known = truth.find(pair.response_row);
    if (known == truth.end()) continue;
    CalibrationBin& bin = bins[std::size_t(std::clamp<Index>(Index(pair.probability * count), 0, count - 1))];
    bin.mean_probability += pair.probability;
    bin.right += known->second == pair.feature_row ? 1 : 0;
    ++bin.pairs;
  }
  std::erase_if(bins, [](const CalibrationBin& bin) { return bin.pairs == 0; });
  for (CalibrationBin& bin : bins) bin.mean_probability /= double(bin.pairs);
  return bins;
}

}  // namespace unshuffle
