#include "likelihood/search.hpp"

#include <fmt/format.h>

#include <Eigen/Eigenvalues>
#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <tuple>

#include "core/in_parallel.hpp"
#include "core/read_json.hpp"
#include "core/share_work.hpp"
#include "core/shared_progress.hpp"
#include "core/squares.hpp"
#include "objective/backend.hpp"
#include "objective/batch.hpp"
#include "starts/distance.hpp"
#include "starts/moments.hpp"
#include "starts/sorted_alternation.hpp"
#include "starts/starts.hpp"
#include "unshuffle/core/error.hpp"

namespace unshuffle {

namespace {

constexpr Index sample_size = 3000;    // rows of either side on which starts are tried
constexpr int most_starts = 48;        // tried, when the best optimum does not recur
constexpr std::size_t round_size = 8;  // tried before looking whether it did
constexpr int fewest_rounds = 3;
constexpr int recurrences = 3;  // of the best optimum that end the search
constexpr int moment_tries = 800;
constexpr std::size_t moment_limit = 32;  // moment solutions tried
constexpr int alternations = 16;          // sorted alternations tried
constexpr int sample_iterations = 30;
constexpr int full_iterations = 60;
constexpr std::size_t refined_limit = 8;   // optima of the sample refined on all rows
constexpr std::size_t direct_limit = 12;   // moment solutions refined on all rows whatever the sample shows
constexpr std::size_t finished_limit = 6;  // of those, optima taken to the end
constexpr int brief_iterations = 6;        // on all rows, before that choice
constexpr double hopeless_gap = 40;        // nats behind on the sample beyond which an optimum is given up

/// A part of the whole work, in percent.
struct Stretch {
  double begin, end;
};
constexpr Stretch on_sample{0, 60}, on_all_rows{60, 90}, further{90, 100};

constexpr const char* moments_kind = "moments";

double variance_of(const Matrix& y) { return squares_about_mean(y) / double(y.size()); }

/// For the first iterations of many starts. Coefficients that are far off leave residuals of any shape, which the noise
/// of several responses would take on for good, so it has one variance there.
LikelihoodOptions loose(const SearchOptions& options, double accuracy) {
  LikelihoodOptions made;
  made.evaluator.backend = options.precision.backend;
  made.evaluator.tolerance = std::max(options.precision.tolerance, 0.1 * accuracy);
  made.evaluator.accuracy = std::max(options.precision.accuracy, accuracy);
  made.known_noise_sd = options.noise_sd;
  made.noise_covariance = NoiseCovariance::equal;
  return made;
}

LikelihoodOptions thorough(const SearchOptions& options) {
  LikelihoodOptions made = loose(options, 1e-9);
  made.noise_covariance = options.noise_covariance;
  return made;
}

/// The initial ε: the variance of y not explained by w, with a small lower bound.
double first_epsilon(const Problem& problem, const Model& bound, const Vector& w, double known_noise) {
  const double variance = variance_of(problem.y);
  if (known_noise > 0) return 2 * std::clamp(known_noise, 1e-3 * variance, variance);
  double explained = 0;
  if (const AdditiveModel* model = bound.additive(); model != nullptr && problem.x.cols() == 0) {
    explained = variance_of(model->part(Side::feature, bound.basis(Side::feature, problem.z), w));
  }
  return 2 * std::clamp(variance - explained, 0.05 * variance, 0.5 * variance);
}

FoundOptimum as_start(const Problem& problem, const Model& bound, const Vector& w, double noise, std::string kind) {
  FoundOptimum made;
  made.optimum.parameters = w;
  made.optimum.epsilon = first_epsilon(problem, bound, w, noise);
  made.start = std::move(kind);
  return made;
}

std::string packed(const Optimum& optimum, int evaluations) {
  return nlohmann::json{to_hex(optimum.parameters),
                        to_hex(Eigen::Vector2d(optimum.epsilon, optimum.nats)),
                        optimum.converged,
                        optimum.iterations,
                        optimum.message,
                        evaluations,
                        to_hex(optimum.noise_shape)}
      .dump();
}

std::pair<Optimum, int> unpacked(const std::string& text) {
  const nlohmann::json all = read_json(text, "checkpoint");
  const Vector numbers = from_hex(all.at(1));
  if (numbers.size() != 2) throw BadData("two numbers were expected");
  return {Optimum{from_hex(all.at(0)), numbers(0), from_hex(all.at(6)), numbers(1), all.at(2), all.at(3), all.at(4)},
          all.at(5)};
}

class Search {
 public:
  Search(const Problem& problem, const Model& bound, const SearchOptions& options, const Run& run)
      : problem_(problem),
        bound_(bound),
        options_(options),
        run_(run),
        scalar_(backend_for(problem, bound, options.precision.backend) == Backend::sorted),
        one_block_(blocks_of(problem).size() == 1),
        distance_(problem, bound) {}

  SearchResult run() {
    SearchResult result;
    std::vector<FoundOptimum> starts = all_starts();
    result.starts = int(starts.size());
    result.one_start = options_.starts.start.kind == StartKind::user || options_.starts.starts == 1;
    if (blind() && std::min(problem_.responses(), problem_.features()) > 2 * sample_size) {
      // A sample may have no optimum where all rows have one; the moments are those of all rows.
      std::vector<FoundOptimum> direct;
      for (const FoundOptimum& start : starts) {
        if (start.start == moments_kind && direct.size() < direct_limit) direct.push_back(start);
      }
      RandomStream stream(run_.seed, Stream::search_sample);
      starts = promising(starts, draw_batch(problem_, sample_size, stream), result);
      starts.insert(starts.end(), direct.begin(), direct.end());
    } else if (const std::optional<Problem> sample = some_groups()) {
      starts = promising(starts, *sample, result);
    }
    refine(result, starts, on_all_rows);
    if (result.optima.empty()) {
      throw BadData(fmt::format(
          "the likelihood is not a finite number anywhere that {} starts led to; check that the model gives finite "
          "predictions for these rows, rescale columns of very large or very small values, or begin from coefficients "
          "that are known to give some",
          result.starts));
    }
    if (blind() && !result.stopped) refine(result, along_flat_directions(result.optima.front().optimum), further);
    return result;
  }

  /// Adds where the starts lead on all rows; of many starts, only the best after a few iterations are taken to the end.
  void refine(SearchResult& result, const std::vector<FoundOptimum>& starts, const Stretch& stretch) const {
    const bool many = starts.size() > finished_limit;
    const double middle = 0.5 * (stretch.begin + stretch.end);
    std::vector<FoundOptimum> brief;
    if (many) {
      for (FoundOptimum& one :
           refined(problem_, starts, loose(options_, 1e-6), brief_iterations, {stretch.begin, middle}, result)) {
        add(brief, std::move(one));
      }
      if (brief.size() > finished_limit) brief.resize(finished_limit);
    }
    for (FoundOptimum& one : refined(problem_, many ? brief : starts, thorough(options_), full_iterations,
                                     {many ? middle : stretch.begin, stretch.end}, result)) {
      add(result.optima, std::move(one));
    }
  }

 private:
  /// Nothing but the two distributions is known, so the search can only start from those.
  [[nodiscard]] bool blind() const {
    return scalar_ && one_block_ && !problem_.order_is_a_hint() && options_.starts.start.kind == StartKind::automatic;
  }

  /// Whole groups and known pairs with as many rows as starts are tried on; none where that would not be much less than
  /// all. Groups that are larger themselves are left out.
  [[nodiscard]] std::optional<Problem> some_groups() const {
    const bool searched = options_.starts.start.kind == StartKind::automatic && !problem_.order_is_a_hint();
    if (!scalar_ || one_block_ || !searched || problem_.has_prior()) return {};
    const std::vector<Block> blocks = blocks_of(problem_);
    std::vector<Index> order(blocks.size());
    std::iota(order.begin(), order.end(), Index{0});
    RandomStream stream(run_.seed, Stream::search_sample);
    shuffle(order, stream);
    std::vector<Index> responses, features;
    for (const Index b : order) {
      const Block& block = blocks[std::size_t(b)];
      if (Index(block.response_rows.size()) > sample_size) continue;
      if (Index(responses.size()) >= sample_size) break;
      responses.insert(responses.end(), block.response_rows.begin(), block.response_rows.end());
      features.insert(features.end(), block.feature_rows.begin(), block.feature_rows.end());
    }
    if (Index(responses.size()) < sample_size || 2 * Index(responses.size()) > problem_.responses()) return {};
    return some_rows(problem_, responses, features);
  }

  std::vector<FoundOptimum> all_starts() {
    std::vector<FoundOptimum> starts;
    if (blind()) add_moment_starts(starts);
    if (blind() && bound_.linear_in_parameters()) add_alternations(starts);
    StartOptions options = options_.starts;
    if (blind() && options.starts == 0) options.starts = bound_.linear_in_parameters() ? 3 : most_starts;
    for (const Start& start : make_starts(problem_, bound_, options, run_.seed)) {
      starts.push_back(as_start(problem_, bound_, start.parameters, start.noise_sd * start.noise_sd, start.kind));
    }
    const int most = options_.starts.starts;
    if (most > 0 && int(starts.size()) > most) starts.resize(std::size_t(most));
    return starts;
  }

  /// The likelihood forms a valley along its directions of least curvature; other optima may lie further along it.
  [[nodiscard]] std::vector<FoundOptimum> along_flat_directions(const Optimum& best) const {
    LinkLikelihood likelihood(problem_, bound_, thorough(options_));
    const Index p = best.parameters.size();
    const Vector unit = natural_steps(problem_, bound_, best.parameters);
    const Matrix curvature =
        unit.asDiagonal() * likelihood.information(best.theta()).topLeftCorner(p, p) * unit.asDiagonal();
    const Eigen::SelfAdjointEigenSolver<Matrix> eigen(curvature);
    std::vector<FoundOptimum> starts;
    for (Index k = 0; k < std::min<Index>(2, p); ++k) {
      const Vector direction = unit.cwiseProduct(eigen.eigenvectors().col(k));
      const double away = distance_(best.parameters, best.parameters + direction);
      for (const double step : {-0.3, -0.1, 0.1, 0.3}) {
        FoundOptimum start;
        start.optimum.parameters = best.parameters + direction * (step / away);
        start.optimum.epsilon = best.epsilon;
        start.optimum.noise_shape = best.noise_shape;
        start.start = "along a flat direction";
        starts.push_back(std::move(start));
      }
    }
    return starts;
  }

  void add_moment_starts(std::vector<FoundOptimum>& starts) {
    std::vector<MomentStart> moments = moment_starts(problem_, bound_, moment_tries, run_.seed);
    if (moments.size() > moment_limit) moments.resize(moment_limit);
    for (const MomentStart& start : moments) {
      starts.push_back(as_start(problem_, bound_, start.parameters, start.noise_variance, moments_kind));
    }
  }

  void add_alternations(std::vector<FoundOptimum>& starts) {
    const StartOptions random{.start = {StartKind::random}, .starts = alternations};
    const std::vector<Start> from = make_starts(problem_, bound_, random, run_.seed);
    std::vector<Vector> reached(from.size());
    in_parallel(from.size(), [&](std::size_t k) {
      RandomStream stream(run_.seed, Stream::sorted_alternation, k);
      const Problem sample = draw_batch(problem_, 1000, stream);
      reached[k] = sorted_alternation(sample, bound_, from[k].parameters).parameters;
    });
    for (const Vector& w : reached) starts.push_back(as_start(problem_, bound_, w, 0, "sorted alternation"));
  }

  /// Starts refined on a sample, distinct, best first, without the hopeless ones.
  std::vector<FoundOptimum> promising(const std::vector<FoundOptimum>& starts, const Problem& sample,
                                      SearchResult& result) {
    std::vector<FoundOptimum> found;
    const std::size_t limit =
        options_.starts.starts > 0 ? starts.size() : std::min<std::size_t>(starts.size(), most_starts);
    std::size_t tried = 0;
    while (tried < limit) {
      const std::size_t end = std::min(limit, tried + round_size);
      const std::vector<FoundOptimum> round(starts.begin() + long(tried), starts.begin() + long(end));
      const auto share = [&](std::size_t starts_done) { return on_sample.end * double(starts_done) / double(limit); };
      for (FoundOptimum& one :
           refined(sample, round, loose(options_, 1e-6), sample_iterations, {share(tried), share(end)}, result)) {
        add(found, std::move(one));
      }
      tried = end;
      if (result.stopped) break;
      if (tried >= fewest_rounds * round_size && !found.empty() && found.front().hits >= recurrences) break;
    }
    result.starts = int(tried);
    if (found.empty()) return found;
    const double best = found.front().optimum.nats;
    std::erase_if(found, [&](const FoundOptimum& one) { return !(one.optimum.nats < best + hopeless_gap); });
    if (found.size() > refined_limit) found.resize(refined_limit);
    return found;
  }

  /// Where one start leads, and after how many evaluations. Noise with a shape of its own begins with one variance.
  [[nodiscard]] std::pair<Optimum, int> refined_one(const Problem& problem, const Optimum& from,
                                                    const LikelihoodOptions& accuracy, int iterations,
                                                    const std::function<bool()>& keep_going) const {
    Optimum begin = from;
    int evaluations = 0;
    const bool shaped = NoiseShape(accuracy.noise_covariance, problem.outputs()).parameters() > 0;
    if (shaped && from.noise_shape.size() == 0) {
      LikelihoodOptions alike = accuracy;
      alike.noise_covariance = NoiseCovariance::equal;
      LinkLikelihood likelihood(problem, bound_, alike);
      Optimum reached = likelihood.most_likely_near(from, iterations, keep_going);
      if (std::isfinite(reached.nats)) begin = std::move(reached);
      evaluations = likelihood.evaluations();
    }
    LinkLikelihood likelihood(problem, bound_, accuracy);
    Optimum end = likelihood.most_likely_near(begin, shaped ? 2 * iterations : iterations, keep_going);
    return {std::move(end), evaluations + likelihood.evaluations()};
  }

  std::vector<FoundOptimum> refined(const Problem& problem, const std::vector<FoundOptimum>& starts,
                                    const LikelihoodOptions& accuracy, int iterations, const Stretch& stretch,
                                    SearchResult& result) const {
    std::vector<FoundOptimum> reached = starts;
    std::vector<int> evaluations(starts.size(), 0);
    SharedProgress progress(run_.progress, double(starts.size()) * iterations,
                            {stretch.begin, stretch.end, further.end}, result.stopped);
    const auto keep_going = [&] { return progress.advance(1); };
    share_work(run_, starts.size(), [&](std::size_t k) {
      if (progress.stopped() && k > 0) return;  // without a single evaluation there would be no result
      const Optimum& from = starts[k].optimum;
      WorkKey key("refined");
      key.add(from.parameters)
          .add(from.epsilon)
          .add(from.noise_shape)
          .add(double(problem.responses()))
          .add(accuracy.evaluator.accuracy);
      key.add(double(iterations));
      const auto refine_one = [&] { return refined_one(problem, from, accuracy, iterations, keep_going); };
      const auto pack = [&](const std::pair<Optimum, int>& end) {
        return progress.stopped() ? std::nullopt : std::optional(packed(end.first, end.second));
      };
      std::tie(reached[k].optimum, evaluations[k]) = finished_or(run_, key, refine_one, pack, unpacked);
    });
    result.stopped = progress.stopped();
    for (std::size_t k = starts.size(); k-- > 0;) {
      result.evaluations += evaluations[k];
      const Optimum& end = reached[k].optimum;
      if (evaluations[k] == 0 || !end.parameters.allFinite() || !std::isfinite(end.nats))
        reached.erase(reached.begin() + long(k));
    }
    return reached;
  }

  /// Adds an optimum to a list that is sorted and distinct; one that is there already counts as a hit.
  void add(std::vector<FoundOptimum>& list, FoundOptimum one) const {
    const auto better = [](const FoundOptimum& a, const FoundOptimum& b) { return a.optimum.nats < b.optimum.nats; };
    const auto same = std::find_if(list.begin(), list.end(), [&](const FoundOptimum& other) {
      return distance_(one.optimum.parameters, other.optimum.parameters) < same_predictions;
    });
    if (same == list.end()) {
      list.insert(std::upper_bound(list.begin(), list.end(), one, better), std::move(one));
      return;
    }
    same->hits += one.hits;
    if (one.optimum.nats < same->optimum.nats) same->optimum = one.optimum;
    std::stable_sort(list.begin(), list.end(), better);
  }

  const Problem& problem_;
  const Model& bound_;
  const SearchOptions& options_;
  const Run& run_;
  bool scalar_;
  bool one_block_;
  PredictiveDistance distance_;
};

}  // namespace

SearchResult search_optima(const Problem& problem, const Model& bound, const SearchOptions& options, const Run& run) {
  return Search(problem, bound, options, run).run();
}

void refine_into(SearchResult& result, const Problem& problem, const Model& bound, const SearchOptions& options,
                 const Run& run, const std::vector<FoundOptimum>& starts) {
  Search(problem, bound, options, run).refine(result, starts, further);
}

}  // namespace unshuffle
