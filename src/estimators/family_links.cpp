// Maximum likelihood over all links for responses of any law, within groups or altogether.
#include "likelihood/family_links.hpp"

#include <fmt/format.h>

#include <Eigen/Cholesky>
#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/balanced_inverse.hpp"
#include "core/gram.hpp"
#include "estimators/family_regression.hpp"
#include "likelihood/marginal_misfit.hpp"
#include "likelihood/row_likelihood.hpp"
#include "objective/batch.hpp"
#include "tables/equal_weights.hpp"
#include "unshuffle/core/error.hpp"
#include "unshuffle/core/stop.hpp"
#include "unshuffle/core/wording.hpp"
#include "verdict/identifiability.hpp"
#include "verdict/rule.hpp"

namespace unshuffle {

namespace {

constexpr Index rows_of_search = 3000;   // starts are compared on so many
constexpr std::size_t refined = 4;       // distinct optima of the sample that are taken to all rows
constexpr double same_answer = 0.05;     // of the spread of η
constexpr double hopeless_gap = 20;      // nats behind on the sample beyond which an optimum is given up
constexpr int brief = 8, thorough = 60;  // iterations before and after the best of many starts are chosen

/// Linear predictors of all features, as far as the features determine them.
struct Spread {
  Matrix design;

  [[nodiscard]] double distance(const Vector& a, const Vector& b) const {
    const Vector first = design * a, apart = design * (a - b);
    const double scale = std::sqrt((first.array() - first.mean()).square().mean()) + 1e-9;
    return std::sqrt(apart.array().square().mean()) / scale;
  }
};

struct LinksOptimum {
  Vector theta;
  double nats = HUGE_VAL;
  bool converged = false;
  int iterations = 0;
  std::string start;
};

class LinksSearch {
 public:
  LinksSearch(const Entropic& options, const Input& input, const Family& family)
      : options_(options), input_(input), family_(family), p_(input.bound.parameters()) {
    const AdditiveModel& additive = *input.bound.additive();
    const Vector zero = Vector::Zero(p_);
    spread_.design = additive.jacobian_part(Side::feature, input.bound.basis(Side::feature, input.problem.z), zero);
    if (input.problem.x.cols() == 0) return;
    response_design_ = additive.jacobian_part(Side::response, input.bound.basis(Side::response, input.problem.x), zero);
  }

  std::vector<LinksOptimum> run() {
    std::vector<LinksOptimum> found;
    const std::optional<Problem> sample = part_to_search();
    const Problem& first = sample ? *sample : input_.problem;
    found = descended(first, starts(), brief);
    add_other_signs(first, found);
    keep_best(found, 2 * refined, HUGE_VAL);
    found = descended(first, std::move(found), thorough);
    keep_best(found, refined, hopeless_gap);
    if (sample) found = descended(input_.problem, std::move(found), thorough);
    add_symmetric_ones(found);
    return found;
  }

  static void keep_best(std::vector<LinksOptimum>& found, std::size_t most, double gap) {
    const double best = found.empty() ? 0 : found.front().nats;
    std::erase_if(found, [&](const LinksOptimum& one) { return one.nats > best + gap; });
    if (found.size() > most) found.resize(most);
  }

  [[nodiscard]] const Spread& spread() const { return spread_; }
  [[nodiscard]] FamilyLinks likelihood(const Problem& problem) const {
    EvaluatorOptions plan;
    plan.backend = options_.precision.backend;
    const double loose = problem.responses() < input_.problem.responses() ? 1e-6 : 1e-8;
    plan.tolerance = std::max(options_.precision.tolerance, 0.1 * loose);
    plan.accuracy = std::max(options_.precision.accuracy, loose);
    return {problem, input_.bound, family_, plan};
  }
  [[nodiscard]] int evaluations() const { return evaluations_; }
  /// That leave the distribution of the predictors as it is, where nothing else tells them apart.
  [[nodiscard]] const std::vector<std::string>& symmetries() const { return symmetries_; }
  /// Columns that can be rotated into each other, likewise.
  [[nodiscard]] std::vector<std::string> rotatable() {
    std::vector<std::string> names;
    if (blocks().size() > 1 || input_.problem.x.cols() > 0) return names;
    for (const Index column : gaussian_columns(input_.problem.z))
      names.push_back(input_.problem.z_names[std::size_t(column)]);
    return names;
  }

 private:
  /// Every k-th group, or of one large group every k-th row of either table.
  [[nodiscard]] std::optional<Problem> part_to_search() const {
    const Problem& problem = input_.problem;
    if (problem.responses() <= 2 * rows_of_search) return {};
    std::vector<Index> responses, features;
    const std::vector<Block> blocks = blocks_of(problem);
    const auto thinned = [&](const std::vector<Index>& rows, std::vector<Index>& kept, Index step) {
      for (std::size_t k = 0; k < rows.size(); k += std::size_t(step)) kept.push_back(rows[k]);
    };
    const Index step = std::max<Index>(1, problem.responses() / rows_of_search);
    if (Index(blocks.size()) < 50 * step) {
      for (const Block& block : blocks) {
        thinned(block.response_rows, responses, step);
        thinned(block.feature_rows, features, step);
      }
    } else {
      for (std::size_t k = 0; k < blocks.size(); k += std::size_t(step)) {
        responses.insert(responses.end(), blocks[k].response_rows.begin(), blocks[k].response_rows.end());
        features.insert(features.end(), blocks[k].feature_rows.begin(), blocks[k].feature_rows.end());
      }
    }
    return completed(some_rows(problem, responses, features));
  }

  std::vector<LinksOptimum> starts() {
    std::vector<LinksOptimum> made;
    if (options_.starts.start.kind == StartKind::user) {
      const FamilyRows rows = means(false);
      Vector theta = first_guess(family_, rows, rows.weights);
      theta.head(p_) = options_.starts.start.parameters;
      return {{.theta = theta, .start = "given"}};
    }
    const auto add = [&](const FamilyRows& rows, const std::string& name) {
      const Vector theta = regression(rows);
      if (theta.allFinite()) made.push_back({.theta = theta, .start = name});
      return theta;
    };
    const Vector within = add(means(false), "features beside the means of their groups");
    if (Index(blocks().size()) > 2 * p_) (void)add(means(true), "means of groups");
    constexpr int several = 16, in_groups = 4;
    const int directions = options_.starts.starts > 0 ? options_.starts.starts
                           : blocks().size() > 1      ? in_groups
                                                      : several;
    for (int k = 0; k < directions; ++k) {
      const Vector theta = alternation(within, k);
      if (theta.allFinite()) made.push_back({.theta = theta, .start = "sorted alternation"});
    }
    return made;
  }

  void add_other_signs(const Problem& problem, std::vector<LinksOptimum>& found) {
    constexpr std::size_t turned = 4;
    std::vector<LinksOptimum> others;
    for (std::size_t k = 0; k < std::min(turned, found.size()); ++k) {
      std::vector<LinksOptimum> more = with_other_signs(found[k]);
      others.insert(others.end(), more.begin(), more.end());
    }
    others = descended(problem, std::move(others), brief);
    found.insert(found.end(), others.begin(), others.end());
    std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.nats < b.nats; });
  }

  /// Without groups a feature and its mirror image have distributions much alike, so a search that ends with wrong
  /// signs cannot leave them by small steps: all signs are tried, of many features one at a time.
  std::vector<LinksOptimum> with_other_signs(const LinksOptimum& from) {
    constexpr std::size_t few = 5;
    std::vector<LinksOptimum> made;
    if (blocks().size() > 1 || input_.problem.x.cols() > 0) return made;
    const Eigen::RowVectorXd means = spread_.design.colwise().mean();
    const std::vector<std::string> names = input_.bound.parameter_names();
    std::vector<Index> features;
    Index intercept = -1;
    for (Index k = 0; k < p_; ++k) {
      if (is_intercept(names[std::size_t(k)]))
        intercept = k;
      else
        features.push_back(k);
    }
    const std::size_t subsets = features.size() <= few ? (std::size_t{1} << features.size()) - 1 : features.size();
    for (std::size_t subset = 1; subset <= subsets; ++subset) {
      LinksOptimum other{.theta = from.theta, .start = from.start + ", other signs"};
      for (std::size_t k = 0; k < features.size(); ++k) {
        const bool turned = features.size() <= few ? ((subset >> k) & 1U) != 0 : subset == k + 1;
        if (!turned) continue;
        const Index column = features[k];
        if (intercept >= 0) other.theta(intercept) += 2 * from.theta(column) * means(column);
        other.theta(column) *= -1;
      }
      made.push_back(std::move(other));
    }
    return made;
  }

  [[nodiscard]] Vector regression(const FamilyRows& rows) const {
    constexpr int few_steps = 40;
    return most_likely(family_likelihood(family_, rows, rows.weights), first_guess(family_, rows, rows.weights),
                       few_steps)
        .theta;
  }

  [[nodiscard]] const std::vector<Block>& blocks() {
    if (blocks_.empty()) blocks_ = blocks_of(input_.problem);
    return blocks_;
  }

  /// Mean responses of groups beside every feature, or beside the means of features.
  FamilyRows means(bool of_groups) {
    std::vector<FamilyRows> parts;
    Index count = 0;
    for (const Block& block : blocks()) {
      const Index m = Index(block.feature_rows.size());
      const auto mean_of = [&](const Vector& values, const std::vector<Index>& rows, double otherwise) {
        return values.size() > 0 ? values(rows).mean() : otherwise;
      };
      const RowFacts& facts = input_.problem.facts;
      Matrix design = spread_.design(block.feature_rows, Eigen::all);
      if (response_design_.size() > 0)
        design.rowwise() += response_design_(block.response_rows, Eigen::all).colwise().mean();
      Vector offset =
          facts.feature_offset.size() > 0 ? Vector(facts.feature_offset(block.feature_rows)) : Vector(Vector::Zero(m));
      offset.array() += mean_of(facts.response_offset, block.response_rows, 0);
      if (of_groups) design = design.colwise().mean().eval();
      if (of_groups) offset = Vector::Constant(1, offset.mean());
      const Index rows = design.rows();
      count += rows;
      const double y = input_.problem.y(block.response_rows, 0).mean();
      parts.push_back({design, Vector::Constant(rows, y), offset,
                       Vector::Constant(rows, mean_of(facts.trials, block.response_rows, 1)),
                       Vector::Constant(rows, of_groups ? double(m) : 1.0)});
    }
    return stacked(parts, count);
  }

  [[nodiscard]] FamilyRows stacked(const std::vector<FamilyRows>& parts, Index count) const {
    FamilyRows all{Matrix(count, p_), Vector(count), Vector(count), Vector(count), Vector(count)};
    Index at = 0;
    for (const FamilyRows& one : parts) {
      all.design.middleRows(at, one.size()) = one.design;
      all.y.segment(at, one.size()) = one.y;
      all.offset.segment(at, one.size()) = one.offset;
      all.trials.segment(at, one.size()) = one.trials;
      all.weights.segment(at, one.size()) = one.weights;
      at += one.size();
    }
    return all;
  }

  /// From a random direction: rows of a group in the order of their predictors beside responses in theirs, refit,
  /// again.
  Vector alternation(const Vector& origin, int number) {
    constexpr int rounds = 4;
    RandomStream random(input_.run.seed, Stream::sorted_alternation, std::uint64_t(number));
    const Vector scale = ((spread_.design.rowwise() - spread_.design.colwise().mean()).colwise().squaredNorm() /
                          double(spread_.design.rows()))
                             .cwiseSqrt()
                             .transpose();
    Vector theta = origin;
    for (Index k = 0; k < p_; ++k)
      if (scale(k) > 0) theta(k) = random.normal() / scale(k);
    for (int round = 0; round < rounds && theta.allFinite(); ++round) theta = regression(paired_by_rank(theta));
    return theta;
  }

  FamilyRows paired_by_rank(const Vector& theta) {
    std::vector<FamilyRows> parts;
    Index count = 0;
    const RowFacts& facts = input_.problem.facts;
    const std::size_t step = std::size_t(std::max<Index>(1, input_.problem.features() / rows_of_search));
    for (std::size_t b = 0; b<blocks().size(); b += blocks().size()> 1 ? step : 1) {
      std::vector<Index> features = blocks()[b].feature_rows, responses = blocks()[b].response_rows;
      const auto by = [](const Vector& key) { return [&key](Index i, Index j) { return key(i) < key(j); }; };
      const Vector eta = spread_.design * theta.head(p_);
      const Vector y = input_.problem.y.col(0);
      std::sort(features.begin(), features.end(), by(eta));
      std::stable_sort(responses.begin(), responses.end(), by(y));
      const std::size_t rows = std::min(features.size(), responses.size());
      const std::size_t every = blocks().size() > 1 ? 1 : step;
      FamilyRows part;
      std::vector<Index> left, right;
      for (std::size_t k = every / 2; k < rows; k += every) {
        left.push_back(responses[k]);
        right.push_back(features[k]);
      }
      part.design = spread_.design(right, Eigen::all);
      if (response_design_.size() > 0) part.design += response_design_(left, Eigen::all);
      part.y = y(left);
      part.offset = Vector::Zero(part.size());
      if (facts.feature_offset.size() > 0) part.offset += facts.feature_offset(right);
      if (facts.response_offset.size() > 0) part.offset += facts.response_offset(left);
      part.trials = facts.trials.size() > 0 ? Vector(facts.trials(left)) : Vector::Ones(part.size());
      part.weights = Vector::Ones(part.size());
      count += part.size();
      parts.push_back(std::move(part));
    }
    return stacked(parts, count);
  }

  /// Distinct ends, the most likely first.
  std::vector<LinksOptimum> descended(const Problem& problem, std::vector<LinksOptimum> from, int iterations) {
    // Of many groups the sum of squared scores is as good as the curvature and costs nothing.
    constexpr Index many_rows = 20'000;
    FamilyLinks sum = likelihood(problem);
    const bool exact = iterations == thorough && sum.sums().by_plan == 0 && problem.responses() <= many_rows;
    std::vector<LinksOptimum> found;
    for (LinksOptimum& one : from) {
      stop_if_asked();
      const SmoothFunction f = [&](const Vector& theta, bool with_hessian) {
        ++evaluations_;
        Sample here = sum.at(theta, with_hessian);
        if (with_hessian && exact) here.hessian = sum.curvature(theta);
        return here;
      };
      StopRule stop;
      stop.max_iterations = iterations;
      stop.gradient_tolerance = 1e-7 * double(problem.responses());
      stop.noise_floor = 1e-6;  // nats: the plan's rounding
      const Minimum end = minimise_in_natural_units(f, one.theta, double(problem.responses()), stop);
      if (!end.at.allFinite() || !std::isfinite(end.value)) continue;
      found.push_back({end.at, end.value, end.converged, end.iterations, one.start});
    }
    std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.nats < b.nats; });
    std::vector<LinksOptimum> distinct;
    for (LinksOptimum& one : found) {
      const bool seen = std::any_of(distinct.begin(), distinct.end(), [&](const LinksOptimum& other) {
        return spread_.distance(other.theta.head(p_), one.theta.head(p_)) < same_answer;
      });
      if (!seen) distinct.push_back(std::move(one));
    }
    return distinct;
  }

  /// Images under exchanges of features of one law explain the responses as well.
  void add_symmetric_ones(std::vector<LinksOptimum>& found) {
    if (found.empty() || blocks().size() > 1 || input_.problem.x.cols() > 0) return;
    std::vector<LinksOptimum> images;
    for (const Symmetry& one : symmetries_of(input_.problem, input_.bound, found.front().theta.head(p_))) {
      symmetries_.push_back(one.name);
      LinksOptimum image = found.front();
      image.theta.head(p_) = one.parameters;
      image.start = one.name;
      images.push_back(std::move(image));
    }
    if (images.empty()) return;
    for (LinksOptimum& one : descended(input_.problem, std::move(images), 60)) {
      const bool seen = std::any_of(found.begin(), found.end(), [&](const LinksOptimum& other) {
        return spread_.distance(other.theta.head(p_), one.theta.head(p_)) < same_answer;
      });
      if (!seen) found.push_back(std::move(one));
    }
    std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.nats < b.nats; });
  }

  const Entropic& options_;
  const Input& input_;
  const Family& family_;
  Index p_;
  Spread spread_;
  Matrix response_design_;
  std::vector<Block> blocks_;
  std::vector<std::string> symmetries_;
  int evaluations_ = 0;
};

void require_use(const Entropic& options, const Input& input) {
  const std::string family = option("family", name_of(options.family.kind));
  if (input.problem.has_prior())
    throw InvalidInput(fmt::format("prior weights of pairs and soft groups cannot be used with {} yet", family));
  if (options.bootstrap.samples > 0)
    throw InvalidInput(
        fmt::format("{} draws normal noise; with {} standard errors are by formula", option("bootstrap"), family));
  const StartKind start = options.starts.start.kind;
  if (start != StartKind::automatic && start != StartKind::user) {
    throw InvalidInput(fmt::format("{} with {} is auto, or the coefficients themselves", option("start"), family));
  }
}

/// Of binary responses only the number of ones in every group enters the likelihood.
bool only_counts_enter(const Input& input, const Family& family, std::size_t groups) {
  return family.kind() == FamilyKind::binomial && input.problem.facts.trials.size() == 0 &&
         input.problem.x.cols() == 0 && Index(groups) < input.bound.parameters() + 1;
}

Estimate refused_counts(const Input& input, const Family& family, std::size_t groups) {
  Candidate answer;
  answer.start = "none";
  answer.parameters = Vector::Zero(input.bound.parameters());
  const double mean = std::clamp(input.problem.y.mean(), 1e-6, 1 - 1e-6);
  const std::vector<std::string> names = input.bound.parameter_names();
  for (std::size_t k = 0; k < names.size(); ++k)
    if (is_intercept(names[k])) answer.parameters(Index(k)) = family.linked(mean * 1e6, 1e6);
  answer.converged = true;
  answer.message = "nothing was fitted beyond the share of ones";
  Estimate made;
  made.candidates = {answer};
  made.objective_name = "negative log-likelihood";
  made.noise_sd = std::sqrt(mean * (1 - mean));
  made.epsilon = 2;
  made.identifiable.verdict = Verdict::not_identifiable;
  made.identifiable.reason = fmt::format(
      "of responses that are 0 or 1 only the number of ones in every group tells something, which is {} number{} for "
      "{} "
      "coefficients: {}",
      groups, groups == 1 ? "" : "s", input.bound.parameters(),
      groups == 1 ? "only the intercept is identified" : "more groups are needed");
  made.identifiable.advice = fmt::format("give groups ({}), known pairs ({}), or say that the order is a hint ({})",
                                         option("group"), option("known"), option("hint", "rows"));
  return made;
}

/// η of every feature row, its offset included.
Vector predictors_of(const Input& input, const Spread& spread, const LinksOptimum& best) {
  Vector eta = spread.design * best.theta.head(input.bound.parameters());
  const Vector& offset = input.problem.facts.feature_offset;
  if (offset.size() > 0) eta += offset;
  return eta;
}

/// Root mean square standard deviation of the responses around their means.
double mean_noise(const Family& family, const Input& input, const Spread& spread, const LinksOptimum& best) {
  const RowFacts& facts = input.problem.facts;
  const Index p = input.bound.parameters();
  const Vector eta = predictors_of(input, spread, best);
  const double trials = facts.trials.size() > 0 ? facts.trials.mean() : 1;
  const Shape shape = shape_in(family, best.theta, p);
  return std::sqrt(eta.unaryExpr([&](double one) { return family.variance(one, trials, shape); }).mean());
}

/// Root mean square standard error of η in units of what one linked response would tell of it.
double error_of_predictors(const Family& family, const Input& input, const Spread& spread, const LinksOptimum& best,
                           const Matrix& covariance) {
  const Index p = input.bound.parameters(), m = spread.design.rows();
  const Vector eta = predictors_of(input, spread, best);
  const Shape shape = shape_in(family, best.theta, p);
  const double trials = input.problem.facts.trials.size() > 0 ? input.problem.facts.trials.mean() : 1;
  const Vector each = eta.unaryExpr([&](double one) { return family.information({0, one, trials}, shape); });
  return std::sqrt(std::max(0.0, weighted_gram(spread.design, each).cwiseProduct(covariance).sum() / double(m)));
}

/// Where nothing but the law tells of the links, the responses have to be distributed as it says.
double misfit_of(const Family& family, const Input& input, const Spread& spread, const LinksOptimum& best) {
  const Problem& problem = input.problem;
  const bool by_features = problem.x.cols() == 0 && problem.facts.response_offset.size() == 0;
  const bool alike = equal_weights(problem.response_weights) && equal_weights(problem.feature_weights);
  if (!by_features || !alike || problem.facts.trials.size() > 0 || blocks_of(problem).size() > 1) return 0;
  const Shape shape = shape_in(family, best.theta, input.bound.parameters());
  return marginal_misfit(family, shape, problem.y.col(0), predictors_of(input, spread, best));
}

struct LinksEvidence {
  double error;   ///< Of predictors.
  double misfit;  ///< Beyond 1 the responses are not distributed as the law says.
  bool curved;    ///< The likelihood falls off to all sides.
  bool blind;     ///< Nothing but the law tells of the links.
  std::string rests_on;
  std::vector<std::string> symmetries, rotatable;
};

Identifiability judged(const std::vector<LinksOptimum>& found, const LinksEvidence& e, Index p) {
  const double gap = found.size() > 1 ? found[1].nats - found[0].nats : HUGE_VAL;
  const auto symmetric = [&] {
    return fmt::format(
        "the distribution of the features is the same under {}, as far as the data tells; {}",
        fmt::join(e.symmetries, ", "),
        gap < certain_gap ? "the responses fit either way" : "only accidents of this sample speak for the answer");
  };
  const auto more = [] {
    return fmt::format("give smaller groups ({}), known pairs ({}), or fewer features", option("group"),
                       option("known"));
  };
  const auto uncertain = [&] {
    return fmt::format("predictors are uncertain by {:.2f} times what one linked response would leave open", e.error);
  };
  const std::vector<Rule> rules{
      {!e.rotatable.empty(), Verdict::not_identifiable,
       [&] {
         return fmt::format(
             "{} are jointly Gaussian as far as the data tells, so their coefficients can be rotated into "
             "each other without changing the distribution of the response",
             fmt::join(e.rotatable, ", "));
       },
       more},
      {!e.curved, Verdict::not_identifiable,
       [] { return std::string("the likelihood has no maximum here: it is flat in some direction"); }, more},
      {e.misfit > 1, Verdict::not_identifiable,
       [&] {
         return fmt::format(
             "the responses are not distributed as this solution says: their distribution function is off by {:.1f} "
             "times "
             "what chance allows, so the law is not theirs, or the search ended in a wrong solution",
             e.misfit);
       },
       more},
      {!e.symmetries.empty() && (gap < certain_gap || e.blind), Verdict::not_identifiable, symmetric, more},
      {gap < decided_gap, Verdict::not_identifiable,
       [&] { return fmt::format("another solution ({}) is {:.1f} nats behind", found[1].start, gap); }, more},
      // Half of ten draws of 10⁵ Poisson rows ended so (bench/shuffled_poisson.py).
      {e.blind, Verdict::not_identifiable,
       [] {
         return std::string(
             "without groups or known pairs the search may have missed the most likely solution, in which coefficients "
             "of other features are exchanged");
       },
       more},
      {!(e.error <= known_at_all), Verdict::not_identifiable, uncertain, more},
      {e.error > known_well, Verdict::weakly_identified, uncertain, more},
      {!e.symmetries.empty(), Verdict::weakly_identified, symmetric, more},
      {true, Verdict::identified, [&] { return fmt::format("rests on {}", e.rests_on); }},
  };
  Identifiability made = first_that_holds(rules);
  for (std::size_t k = 1; k < found.size(); ++k)
    made.alternatives.push_back({found[k].theta.head(p), found[k].nats - found[0].nats, found[k].nats, found[k].start});
  return made;
}

}  // namespace

Estimate estimate_family_links(const Entropic& options, const Input& input) {
  if (options.family.kind == FamilyKind::cox) refuse_unlinked_survival();
  require_use(options, input);
  const Family& family = family_of(options.family.kind);
  const std::size_t groups = blocks_of(input.problem).size();
  if (only_counts_enter(input, family, groups)) return refused_counts(input, family, groups);
  LinksSearch search(options, input, family);
  const std::vector<LinksOptimum> found = search.run();
  if (found.empty()) throw BadData("no start leads to a finite likelihood; rescale the features");
  const LinksOptimum& best = found.front();
  const Index p = input.bound.parameters();
  FamilyLinks sum = search.likelihood(input.problem);
  const Matrix information = sum.curvature(best.theta);
  const bool curved = Eigen::LLT<Matrix>(information).info() == Eigen::Success;
  const Matrix inverse = balanced_inverse(information);
  constexpr Index many_groups = 20;
  const bool robust = sum.sums().by_plan == 0 && sum.groups() >= many_groups * sum.parameters();
  const Matrix all = robust ? Matrix(inverse * sum.scores(best.theta) * inverse) : inverse;

  Estimate made;
  for (const LinksOptimum& one : found) {
    made.candidates.push_back(
        {one.start, one.theta.head(p), one.nats, one.converged, one.iterations, sum.sums().in_words()});
  }
  made.objective_name = "negative log-likelihood";
  made.evaluations = search.evaluations();
  const Matrix covariance = all.topLeftCorner(p, p);
  const double error = error_of_predictors(family, input, search.spread(), best, covariance);
  made.identifiable = judged(
      found,
      {error, misfit_of(family, input, search.spread(), best), curved, groups == 1,
       fmt::format("a {} law; {}", family.name(), sum.sums().in_words()), search.symmetries(), search.rotatable()},
      p);
  if (curved) made.covariance = covariance;
  made.std_error_note = robust ? "from the likelihood over all links, robust (sandwich over groups)"
                               : "from the curvature of the likelihood over all links";
  const Shape shape = shape_in(family, best.theta, p);
  made.noise_sd = mean_noise(family, input, search.spread(), best);
  made.epsilon = family.shapes() > 0 ? 2 * std::exp(shape(0)) : 2;
  const Vector errors = all.diagonal().tail(family.shapes()).cwiseMax(0).cwiseSqrt();
  made.law.shape = named_shape(family, shape, errors);
  made.law.log_likelihood = -best.nats;
  return made;
}

}  // namespace unshuffle
