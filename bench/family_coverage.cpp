// Coverage of 95 % intervals of fits with a family, and reliability of link probabilities: rows in order with 30 %
// wrong links, at one rate or by a column on which it depends, and groups of 8 with links lost.
//
//   bench_family_coverage [draws [DESIGN ...]]
//
// DESIGN: order (one unknown rate), mismatch (odds linear in a column), rate (stated), groups, adjusted; or the name of
// a family. Without any, all are measured. It prints the share of true coefficients inside, the mean width in that of
// the oracle, and for links the largest distance of a tenth's mean probability from the share that is right.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <string>
#include <vector>

#include "core/random.hpp"
#include "unshuffle/fitted/fitted.hpp"
#include "unshuffle/model/linear.hpp"

namespace unshuffle {
namespace {

constexpr Index rows = 800, group = 8;
constexpr double wrong_share = 0.3;

struct Drawn {
  Problem linked;    ///< All pairs known.
  Problem in_order;  ///< Some links wrong.
  Vector column;     ///< On which that depends.
  std::vector<char> right;
};

/// Times with the hazard e^η, a third of them censored.
void draw_times(Problem& made, const Vector& eta, RandomStream& random) {
  made.facts.event.resize(rows);
  for (Index i = 0; i < rows; ++i) {
    const double time = -std::log(random.uniform()) * std::exp(-eta(i)), limit = -2 * std::log(random.uniform());
    made.y(i, 0) = std::min(time, limit);
    made.facts.event(i) = time <= limit ? 1 : 0;
  }
}

Problem draw_linked(FamilyKind kind, const Vector& w, RandomStream& random) {
  const Family& family = family_of(kind);
  Problem made{.y = Matrix(rows, 1), .z = Matrix(rows, w.size() - 1)};
  for (double& value : made.z.reshaped()) value = random.normal();
  const Vector eta = (made.z * w.tail(w.size() - 1)).array() + w(0);
  const Shape shape(-1.5, 1.5);
  if (kind == FamilyKind::cox) draw_times(made, eta, random);
  for (Index i = 0; i < rows && kind != FamilyKind::cox; ++i)
    made.y(i, 0) = family.draw(eta(i), 1, shape, [&] { return random.uniform(); });
  for (Index i = 0; i < rows; ++i) made.known.push_back({i, i});
  return made;
}

/// Responses of wrongly linked rows change places in a cycle.
Drawn drawn(FamilyKind kind, const Vector& w, std::uint64_t seed, bool by_column) {
  RandomStream random(seed, 0);
  Drawn made{draw_linked(kind, w, random), {}, Vector(rows), std::vector<char>(std::size_t(rows), 1)};
  std::vector<Index> wrong;
  for (Index i = 0; i < rows; ++i) {
    made.column(i) = random.normal();
    // The mean of 1/(1 + e^(1.1 + 1.2 v)) is 0.3.
    const double rate = by_column ? 1 / (1 + std::exp(1.1 + 1.2 * made.column(i))) : wrong_share;
    if (random.uniform() < rate) wrong.push_back(i);
  }
  made.in_order = made.linked;
  made.in_order.known.clear();
  made.in_order.order = RowOrder::probably_linked;
  const auto move = [&](auto&& values) {
    const auto before = Vector(values);
    for (std::size_t k = 0; k < wrong.size(); ++k) values(wrong[k]) = before(wrong[(k + 1) % wrong.size()]);
  };
  move(made.in_order.y.col(0));
  if (kind == FamilyKind::cox) move(made.in_order.facts.event);
  for (const Index i : wrong) made.right[std::size_t(i)] = wrong.size() == 1;
  return made;
}

struct Tally {
  double inside = 0, count = 0, width = 0, refused = 0, fits = 0;
  std::vector<std::pair<double, char>> links{};
};

void add(Tally& tally, const Fitted& fitted, const Fitted& oracle, const Vector& w,
         const std::vector<char>& right = {}) {
  ++tally.fits;
  if (fitted.result().identifiable.verdict == Verdict::not_identifiable) {
    ++tally.refused;
    return;
  }
  const Matrix ends = fitted.intervals(), known = oracle.intervals();
  const Index slopes = w.size() - 1, first = ends.rows() - slopes;  // cox has no intercept
  for (Index k = 0; k < slopes; ++k) {
    tally.inside += ends(first + k, 0) <= w(1 + k) && w(1 + k) <= ends(first + k, 1) ? 1 : 0;
    tally.width += (ends(first + k, 1) - ends(first + k, 0)) / (known(first + k, 1) - known(first + k, 0));
    ++tally.count;
  }
  const Vector& probability = fitted.link_probabilities();
  for (Index i = 0; i < probability.size() && !right.empty(); ++i)
    tally.links.emplace_back(probability(i), right[std::size_t(i)]);
}

/// The largest distance over tenths of the links, by probability, in points; tenths of few links count as none.
double unreliability(std::vector<std::pair<double, char>> links) {
  std::array<double, 10> sum{}, right{}, count{};
  for (const auto& [probability, is_right] : links) {
    const auto tenth = std::size_t(std::min(9.0, 10 * probability));
    sum[tenth] += probability;
    right[tenth] += is_right;
    ++count[tenth];
  }
  double worst = 0;
  for (std::size_t k = 0; k < 10; ++k)
    if (count[k] >= 400) worst = std::max(worst, std::abs(sum[k] - right[k]) / count[k]);
  return 100 * worst;
}

void print(const std::string& family, const std::string& design, const Tally& tally) {
  if (tally.fits == 0) return;
  fmt::print("{:<18} {:<9}", family, design);
  if (tally.count > 0)
    fmt::print(" inside {:5.1f} %  width {:.2f} of the oracle's", 100 * tally.inside / tally.count,
               tally.width / tally.count);
  fmt::print("  ({:.0f} fits, {:.0f} not identifiable)", tally.fits, tally.refused);
  if (!tally.links.empty()) fmt::print("  links off by {:.1f} points at most", unreliability(tally.links));
  fmt::print("\n");
  std::fflush(stdout);
}

class Asked {
 public:
  Asked(int argc, char** argv) : words_(argv + std::min(argc, 2), argv + argc) {}
  [[nodiscard]] bool design(const std::string& name) const { return among(name, designs); }
  [[nodiscard]] bool family(FamilyKind kind) const {
    std::vector<std::string> names;
    for (const auto& [word, one] : family_words) names.emplace_back(word);
    return among(std::string(name_of(kind)), names);
  }

 private:
  /// Words of another kind leave the choice open.
  [[nodiscard]] bool among(const std::string& name, const std::vector<std::string>& kind) const {
    bool any = false;
    for (const std::string& word : words_) {
      if (word == name) return true;
      any = any || std::find(kind.begin(), kind.end(), word) != kind.end();
    }
    return !any;
  }
  std::vector<std::string> words_;
  std::vector<std::string> designs{"order", "mismatch", "rate", "groups", "adjusted"};
};

void measure(FamilyKind kind, int draws, const Asked& asked) {
  const Vector w = Eigen::Vector3d(0.5, 0.8, -0.6);
  Tally order, mismatch, rate, groups, adjusted;
  for (int k = 0; k < draws; ++k) {
    const auto seed = std::uint64_t(k);
    const Drawn one = drawn(kind, w, seed, false), other = drawn(kind, w, seed, true);
    const Fitted oracle = fit(one.linked, Linear{}, Oracle{.family = {kind}});
    if (asked.design("order")) add(order, fit(one.in_order, Linear{}, Mixture{.family = {kind}}), oracle, w, one.right);
    if (asked.design("mismatch")) {
      Problem problem = other.in_order;
      problem.facts.mismatch = other.column;
      problem.facts.mismatch_names = {"v"};
      add(mismatch, fit(problem, Linear{}, Mixture{.family = {kind}}), oracle, w, other.right);
    }
    Problem stated = one.in_order;
    stated.facts.wrong_rate = Vector::Constant(rows, wrong_share);
    if (asked.design("rate")) add(rate, fit(stated, Linear{}, Mixture{.family = {kind}}), oracle, w, one.right);
    const bool has_mean = kind != FamilyKind::student && kind != FamilyKind::negative_binomial;
    if (asked.design("adjusted") && has_mean)
      add(adjusted, fit(stated, Linear{}, Adjusted{.family = {kind}}), oracle, w);
    if (!asked.design("groups") || kind == FamilyKind::student || kind == FamilyKind::cox) continue;
    Problem grouped = one.linked;
    grouped.known.clear();
    grouped.order = RowOrder::unrelated;
    for (Index i = 0; i < rows; ++i) grouped.response_groups.push_back(i / group);
    grouped.feature_groups = grouped.response_groups;
    add(groups, fit(grouped, Linear{}, Entropic{.family = {kind}}), oracle, w);
  }
  const std::string name(name_of(kind));
  print(name, "order", order);
  print(name, "mismatch", mismatch);
  print(name, "rate", rate);
  print(name, "groups", groups);
  print(name, "adjusted", adjusted);
}

}  // namespace
}  // namespace unshuffle

int main(int argc, char** argv) {
  using unshuffle::FamilyKind;
  const int draws = argc > 1 ? std::atoi(argv[1]) : 20;
  const unshuffle::Asked asked(argc, argv);
  for (const FamilyKind kind : {FamilyKind::binomial, FamilyKind::poisson, FamilyKind::gamma,
                                FamilyKind::negative_binomial, FamilyKind::student, FamilyKind::cox})
    if (asked.family(kind)) unshuffle::measure(kind, draws, asked);
}
