// The most likely map of the plane or of space, where rows may have no partner (docs/mathematics.md §19).
#include "likelihood/registration.hpp"

#include <fmt/format.h>

#include <Eigen/Cholesky>
#include <cmath>

#include "estimators/estimate.hpp"
#include "tables/equal_weights.hpp"
#include "unshuffle/core/error.hpp"
#include "unshuffle/core/wording.hpp"

namespace unshuffle {

namespace {

/// As for the likelihood over all links (verdict/identifiability.cpp).
constexpr double decided_gap = 3;

const SpatialMap& map_of(const Input& input) {
  if (const auto* map = dynamic_cast<const SpatialMap*>(&input.bound)) return *map;
  throw InvalidInput(fmt::format("method registration needs a map of points, {}; {} is none",
                                 option("model", "rigid, similarity or affine"), input.bound.name()));
}

/// Complains about evidence that would be passed over.
void require_points_alone(const Problem& problem) {
  const auto refuse = [](const char* what) {
    throw InvalidInput(
        fmt::format("method registration links any rows of the two tables and does not read {}; leave "
                    "them out, or choose {}",
                    what, option("method", "entropic")));
  };
  if (!problem.response_groups.empty()) refuse("groups");
  if (!problem.known.empty()) refuse("known pairs");
  if (!equal_weights(problem.response_weights) || !equal_weights(problem.feature_weights)) refuse("row weights");
  if (problem.responses() <= problem.outputs() || problem.features() <= problem.outputs())
    throw BadData(fmt::format("method registration needs more than {} rows in either table; {} and {} were given",
                              problem.outputs(), problem.responses(), problem.features()));
}

// Inverse of Σ_i s_i s_iᵀ, s_i = Σ_j P_ij J_jᵀ(y_i - f_j)/σ² the derivative of response i's log-likelihood: a link that
// is uncertain tells less.
Matrix covariance_of(const TwoClouds& clouds, const SpatialMap& map, const Vector& w, const Registered& found) {
  const Matrix moved = map.part(Side::feature, clouds.z, w);
  Matrix information = Matrix::Zero(w.size(), w.size());
  for (Index i = 0; i < clouds.y.rows(); ++i) {
    const Matrix off = (-moved).rowwise() + clouds.y.row(i);
    Vector score = Vector::Zero(w.size());
    map.pull_back_part(Side::feature, clouds.z, w, found.probabilities.row(i).transpose().asDiagonal() * off, score);
    information += score * score.transpose();
  }
  information /= found.poses.front().variance * found.poses.front().variance;
  const Eigen::LLT<Matrix> factor(information);
  if (factor.info() != Eigen::Success) return {};
  const Matrix covariance = factor.solve(Matrix::Identity(w.size(), w.size()));
  return covariance.allFinite() ? covariance : Matrix();
}

Identifiability judged(const SpatialMap& map, const Registered& found, Index rows) {
  Identifiability said;
  const Pose& best = found.poses.front();
  for (std::size_t k = 1; k < std::min<std::size_t>(found.poses.size(), 4); ++k) {
    const Pose& other = found.poses[k];
    said.alternatives.push_back(
        {map.parameters_of(other.transform), best.nats - other.nats, -other.nats, "another rotation"});
  }
  const double gap = said.alternatives.empty() ? INFINITY : said.alternatives.front().gap;
  const double by_chance = gain_by_chance(map, found.starts, rows);
  if (best.nats < by_chance) {
    said.verdict = Verdict::not_identifiable;
    said.reason = fmt::format(
        "the best of {} maps is {:.1f} nats more likely than responses without any partner; chance "
        "alone gains up to {:.0f}",
        found.starts, best.nats, by_chance);
    said.advice = "see whether the tables show the same points, and whether the model is the right one";
  } else if (gap < decided_gap) {
    said.verdict = Verdict::not_identifiable;
    said.reason = fmt::format("another map is within {:.1f} nats of the answer, as for points that are symmetric", gap);
    said.advice = "pairs of points that are known decide between the maps";
  } else {
    said.verdict = gap < certain_gap ? Verdict::weakly_identified : Verdict::identified;
    said.reason = std::isinf(gap) ? fmt::format("all of {} rotations lead to one map", found.starts)
                                  : fmt::format(
                                        "of the maps that {} rotations lead to, the next is {:.1f} nats less "
                                        "likely",
                                        found.starts, gap);
  }
  return said;
}

Candidate as_candidate(const SpatialMap& map, const Pose& pose) {
  Candidate made;
  made.start = "rotation";
  made.parameters = map.parameters_of(pose.transform);
  made.objective = -pose.nats;
  made.converged = true;
  return made;
}

}  // namespace

Estimate estimate(const Registration& options, const Input& input) {
  const SpatialMap& map = map_of(input);
  require_points_alone(input.problem);
  const TwoClouds clouds = two_clouds(input.problem.y, input.problem.z);
  if (!(clouds.variance() > 0)) throw BadData("method registration: all responses are the same point");
  const double rows = static_cast<double>(clouds.y.rows()), features = static_cast<double>(clouds.z.rows());
  const ClutterFit::Fixed fixed{
      .noise_variance = options.noise.sd * options.noise.sd,
      .links = options.outliers < 0 ? 0 : std::clamp((1 - options.outliers) * rows, 1.0, std::min(rows, features))};
  const Registered found =
      registered(clouds, map, fixed, [&](double share) { return !input.run.progress || input.run.progress(share, 1); });
  const Pose& best = found.poses.front();
  Estimate result;
  for (const Pose& pose : found.poses) result.candidates.push_back(as_candidate(map, pose));
  Candidate& answer = result.candidates.front();
  answer.converged = found.converged;
  answer.iterations = found.steps / found.starts;
  const double outliers = std::max(0.0, 1 - best.links / rows);
  answer.message =
      fmt::format("{} rotations tried; {:.1f} % of the responses have no partner", found.starts, 100 * outliers);
  result.objective_name = "negative log-likelihood";
  result.evaluations = found.steps;
  result.stopped = found.stopped;
  result.noise_sd = std::sqrt(best.variance);
  // A plan needs some smoothing even where the points fit exactly.
  result.epsilon = 2 * std::max(best.variance, 1e-8 * clouds.variance());
  result.identifiable = judged(map, found, clouds.y.rows());
  result.covariance = covariance_of(clouds, map, answer.parameters, found);
  result.std_error_note = result.covariance.size() > 0
                              ? "from the scores of the responses, each over its possible partners"
                              : "none: the responses with a partner are too few to determine the map";
  Registration chosen = options;
  chosen.outliers = outliers;
  result.chosen = chosen;
  return result;
}

}  // namespace unshuffle
