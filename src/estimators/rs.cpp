// Random sample consensus (Varol & Nejat 2019). A hypothesis is w solved from the fewest rows that determine it; the
// one that the most rows agree with wins, and is refitted on them.
//
// With the row hint, samples are rows linked in the order given, and a row agrees when its residual is within the
// threshold. Without it, responses and features are drawn separately, and the agreement is the largest number of pairs
// within the threshold that a one-to-one matching can have: on a line, responses t and predictions s in ascending
// order, two pointers find it by pairing whenever possible and otherwise dropping the smaller one.
#include <fmt/format.h>

#include <Eigen/LU>
#include <Eigen/QR>
#include <algorithm>
#include <cmath>

#include "core/in_parallel.hpp"
#include "core/random.hpp"
#include "core/squares.hpp"
#include "estimators/unlinked.hpp"
#include "unshuffle/core/error.hpp"
#include "unshuffle/core/wording.hpp"

namespace unshuffle {

namespace {

// Hypotheses run in rounds of a fixed number of streams and are compared only between rounds: which of them are dropped
// early depends on the best so far, and must not depend on threads.
constexpr Index streams = 16;
constexpr Index per_stream = 64;
constexpr Index probe_rows = 128;

struct Hypothesis {
  Vector w;
  Index agreeing = -1;
};

/// The agreement on a probe that a hypothesis better than `best` exceeds except by a three-sigma accident.
Index least_on_probe(Index best, Index rows, Index probe) {
  if (best <= 0 || probe >= rows) return 0;
  const double share = double(best) / double(rows);
  const double deviation = std::sqrt(double(probe) * share * (1 - share));
  return static_cast<Index>(std::floor(double(probe) * share - 3 * deviation));
}

/// Square systems by LU, others by least squares; nothing when they do not determine w.
Vector solved(const Matrix& design, const Vector& y) {
  if (design.rows() == design.cols()) return design.partialPivLu().solve(y);
  return design.colPivHouseholderQr().solve(y);
}

/// Rows linked in the order given; outputs lie below one another in the design, as in linked_jacobian.
class InOrder {
 public:
  InOrder(const Input& input, const UnlinkedRows& rows, double threshold)
      : links_(links_in_order(input.problem)), threshold_(threshold), outputs_(input.problem.outputs()) {
    const LinkedRows linked = rows.linked(links_);
    const Vector zero = Vector::Zero(input.bound.parameters());
    design_ = linked_jacobian(input.bound, linked, zero);
    y_ = linked.y.reshaped();
    RandomStream random(input.run.seed, Stream::consensus_probe);
    probe_ = sample_rows(links_.size(), std::min(probe_rows, links_.size()), random);
  }

  [[nodiscard]] Index rows() const { return links_.size(); }

  [[nodiscard]] Hypothesis draw(RandomStream& random, Index best) const {
    const Index p = design_.cols();
    const std::vector<Index> chosen = sample_rows(rows(), rows_that_determine(p, outputs_), random);
    Matrix design(Index(chosen.size()) * outputs_, p);
    Vector y(design.rows());
    Index at = 0;
    for (Index o = 0; o < outputs_; ++o) {
      for (const Index i : chosen) {
        design.row(at) = design_.row(o * rows() + i);
        y(at++) = y_(o * rows() + i);
      }
    }
    Hypothesis result{solved(design, y), -1};
    if (!result.w.allFinite()) return result;
    Index on_probe = 0;
    for (const Index i : probe_) on_probe += agrees(i, result.w) ? 1 : 0;
    if (on_probe < least_on_probe(best, rows(), Index(probe_.size()))) return result;
    result.agreeing = (squared_residuals(result.w).array() <= threshold_ * threshold_).count();
    return result;
  }

  [[nodiscard]] Links agreeing(const Vector& w) const {
    const Vector squared = squared_residuals(w);
    Links result;
    for (Index i = 0; i < rows(); ++i) {
      if (squared(i) > threshold_ * threshold_) continue;
      result.responses.push_back(links_.responses[std::size_t(i)]);
      result.features.push_back(links_.features[std::size_t(i)]);
    }
    return result;
  }

 private:
  [[nodiscard]] Vector squared_residuals(const Vector& w) const {
    const Vector residual = y_ - design_ * w;
    return residual.reshaped(rows(), outputs_).rowwise().squaredNorm();
  }

  [[nodiscard]] bool agrees(Index i, const Vector& w) const {
    double squared = 0;
    for (Index o = 0; o < outputs_; ++o) {
      const double r = y_(o * rows() + i) - design_.row(o * rows() + i).dot(w);
      squared += r * r;
    }
    return squared <= threshold_ * threshold_;
  }

  Links links_;
  double threshold_;
  Index outputs_;
  Matrix design_;
  Vector y_;
  std::vector<Index> probe_{};
};

/// Responses and features drawn separately, one output.
class Apart {
 public:
  Apart(const Input& input, const UnlinkedRows& rows, double threshold)
      : blocks_(rows.blocks()), threshold_(threshold), y_(rows.tables().y.col(0)) {
    const AdditiveModel& sum = *input.bound.additive();
    const Vector zero = Vector::Zero(input.bound.parameters());
    z_design_ = sum.jacobian_part(Side::feature, rows.tables().z, zero);
    if (rows.tables().x.cols() > 0) x_design_ = sum.jacobian_part(Side::response, rows.tables().x, zero);
    for (const Block& block : blocks_) {
      paired_ += std::min(Index(block.response_rows.size()), Index(block.feature_rows.size()));
      responses_.insert(responses_.end(), block.response_rows.begin(), block.response_rows.end());
    }
    for (std::size_t b = 0; b < blocks_.size(); ++b) {
      block_of_.insert(block_of_.end(), blocks_[b].response_rows.size(), b);
    }
    if (x_design_.size() == 0) sorted_ = sorted_responses(y_);
  }

  [[nodiscard]] Index rows() const { return paired_; }

  [[nodiscard]] Hypothesis draw(RandomStream& random, Index best) const {
    const Index p = z_design_.cols();
    Matrix design(p, p);
    Vector y(p);
    const std::vector<Index> chosen = sample_rows(Index(responses_.size()), p, random);
    for (Index k = 0; k < p; ++k) {
      const auto at = static_cast<std::size_t>(chosen[std::size_t(k)]);
      const auto& features = blocks_[block_of_[at]].feature_rows;
      const Index j = features[std::size_t(random.below(Index(features.size())))];
      design.row(k) = z_design_.row(j);
      if (x_design_.size() > 0) design.row(k) += x_design_.row(responses_[at]);
      y(k) = y_(responses_[at]);
    }
    Hypothesis result{solved(design, y), -1};
    if (!result.w.allFinite()) return result;
    const Vector s = z_design_ * result.w;
    if (x_design_.size() == 0 && rejected_on_probe(s, best)) return result;
    result.agreeing = count(result.w, s);
    return result;
  }

  [[nodiscard]] Links agreeing(const Vector& w) const {
    const Vector t = shifted(w);
    const Vector s = z_design_ * w;
    const auto by = [](const Vector& value) { return [&value](Index a, Index b) { return value(a) < value(b); }; };
    Links result;
    for (const Block& block : blocks_) {
      std::vector<Index> rows = block.response_rows;
      std::vector<Index> columns = block.feature_rows;
      std::sort(rows.begin(), rows.end(), by(t));
      std::sort(columns.begin(), columns.end(), by(s));
      for (std::size_t i = 0, j = 0; i < rows.size() && j < columns.size();) {
        const double gap = t(rows[i]) - s(columns[j]);
        if (std::abs(gap) <= threshold_)
          append(result, {{rows[i++]}, {columns[j++]}});
        else
          gap < 0 ? ++i : ++j;
      }
    }
    return result;
  }

 private:
  using Sorted = std::vector<std::vector<double>>;

  [[nodiscard]] Vector shifted(const Vector& w) const {
    if (x_design_.size() == 0) return y_;
    return y_ - x_design_ * w;
  }

  [[nodiscard]] Sorted sorted_responses(const Vector& t) const {
    Sorted result;
    for (const Block& block : blocks_) {
      result.emplace_back();
      for (const Index i : block.response_rows) result.back().push_back(t(i));
      std::sort(result.back().begin(), result.back().end());
    }
    return result;
  }

  /// Features of the probe without any response within the threshold cannot be paired by any matching.
  [[nodiscard]] bool rejected_on_probe(const Vector& s, Index best) const {
    Index total = 0;
    Index reached = 0;
    for (std::size_t b = 0; b < blocks_.size(); ++b) {
      const auto& features = blocks_[b].feature_rows;
      const auto& t = sorted_[b];
      const Index step = std::max<Index>(1, s.size() / probe_rows);
      for (std::size_t k = 0; k < features.size(); k += std::size_t(step)) {
        const double at = s(features[k]);
        const auto above = std::lower_bound(t.begin(), t.end(), at - threshold_);
        reached += above != t.end() && *above <= at + threshold_ ? 1 : 0;
        ++total;
      }
    }
    return reached < least_on_probe(best, rows(), total);
  }

  [[nodiscard]] Index count(const Vector& w, const Vector& s) const {
    const Sorted fresh = x_design_.size() == 0 ? Sorted{} : sorted_responses(shifted(w));
    const Sorted& responses = x_design_.size() == 0 ? sorted_ : fresh;
    Index agreeing = 0;
    std::vector<double> predicted;
    for (std::size_t b = 0; b < blocks_.size(); ++b) {
      predicted.clear();
      for (const Index j : blocks_[b].feature_rows) predicted.push_back(s(j));
      std::sort(predicted.begin(), predicted.end());
      const auto& t = responses[b];
      for (std::size_t i = 0, j = 0; i < t.size() && j < predicted.size();) {
        const double gap = t[i] - predicted[j];
        const bool pair = std::abs(gap) <= threshold_;
        agreeing += pair ? 1 : 0;
        i += pair || gap < 0 ? 1 : 0;
        j += pair || gap > 0 ? 1 : 0;
      }
    }
    return agreeing;
  }

  const std::vector<Block>& blocks_;
  double threshold_;
  Vector y_;
  Matrix z_design_;
  Matrix x_design_{};
  Index paired_ = 0;
  std::vector<Index> responses_{};
  std::vector<std::size_t> block_of_{};
  Sorted sorted_{};
};

/// The hypothesis with the largest agreement; ties go to the one drawn first.
template <class Scene>
Hypothesis search(const Scene& scene, Index samples, const Run& run, bool& stopped) {
  std::vector<RandomStream> random;
  for (Index k = 0; k < streams; ++k) random.emplace_back(run.seed, Stream::consensus, std::uint64_t(k));
  Hypothesis best;
  for (Index done = 0; done < samples && !stopped; done += streams * per_stream) {
    std::vector<Hypothesis> found(streams);
    const Index left = samples - done;
    in_parallel(found.size(), [&](std::size_t k) {
      Hypothesis& mine = found[k];
      for (auto sample = Index(k); sample < std::min<Index>(left, streams * per_stream); sample += streams) {
        Hypothesis drawn = scene.draw(random[k], std::max(best.agreeing, mine.agreeing));
        if (drawn.agreeing > mine.agreeing) mine = std::move(drawn);
      }
    });
    for (Hypothesis& one : found) {
      if (one.agreeing > best.agreeing) best = std::move(one);
    }
    if (run.progress) stopped = !run.progress(double(done), double(samples));
  }
  return best;
}

template <class Scene>
Estimate consensus(const Rs& options, const Input& input, const UnlinkedRows& rows, const Scene& scene) {
  bool stopped = false;
  const Hypothesis best = search(scene, options.samples, input.run, stopped);
  if (best.agreeing < 0) throw BadData("rs: no sample of rows determined the coefficients");
  const Links agreeing = scene.agreeing(best.w);
  const Index p = input.bound.parameters();
  Candidate answer;
  answer.start = "samples";
  answer.parameters = best.w;
  const bool refit = agreeing.size() * input.problem.outputs() > p;
  if (refit) {
    answer.parameters = least_squares(input.bound, rows.linked(agreeing), best.w, rows.weights(agreeing)).parameters;
  }
  answer.objective = residuals(input.bound, rows.linked(agreeing), answer.parameters).squaredNorm();
  answer.iterations = int(std::min<Index>(options.samples, std::numeric_limits<int>::max()));
  answer.converged = refit && !stopped;
  answer.message = fmt::format("{} of {} rows agree", agreeing.size(), scene.rows());
  if (!refit) answer.message += ", no more than any hypothesis has; raise " + option("rs_threshold");
  Estimate estimate;
  estimate.candidates = {answer};
  estimate.objective_name = "squared residuals of the rows that agree";
  estimate.evaluations = 1;
  estimate.stopped = stopped;
  return estimate;
}

double spread_of(const Matrix& y) { return std::sqrt(squares_about_mean(y) / double(y.rows())); }

}  // namespace

Estimate estimate(const Rs& options, const Input& input) {
  require_linear_model(input, "rs");
  const UnlinkedRows rows(input.problem, input.bound);
  const double threshold = options.threshold * spread_of(input.problem.y);
  if (input.problem.order_is_a_hint()) return consensus(options, input, rows, InOrder(input, rows, threshold));
  if (input.problem.outputs() > 1) {
    throw InvalidInput(
        fmt::format("rs without the row hint needs one response; give {} or another method", option("hint", "rows")));
  }
  return consensus(options, input, rows, Apart(input, rows, threshold));
}

}  // namespace unshuffle
