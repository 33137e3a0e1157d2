// Coverage of 95 % intervals of fits with a family: rows in order with 30 % wrong links, and groups of 8 with links
// lost. bench_family_coverage [draws]; the share of true coefficients inside and the mean width in oracle's widths.
#include <fmt/format.h>

#include <cmath>
#include <cstdlib>

#include "core/random.hpp"
#include "unshuffle/fitted/fitted.hpp"
#include "unshuffle/model/linear.hpp"

namespace unshuffle {
namespace {

constexpr Index rows = 800, group = 8;

Problem drawn(const Family& family, const Vector& w, std::uint64_t seed) {
  RandomStream random(seed, 0);
  Problem made{.y = Matrix(rows, 1), .z = Matrix(rows, w.size() - 1)};
  for (double& value : made.z.reshaped()) value = random.normal();
  const Vector eta = (made.z * w.tail(w.size() - 1)).array() + w(0);
  const Shape shape(-1.5, 1.5);
  for (Index i = 0; i < rows; ++i) made.y(i, 0) = family.draw(eta(i), 1, shape, [&] { return random.uniform(); });
  for (Index i = 0; i < rows; ++i) made.known.push_back({i, i});
  return made;
}

struct Tally {
  double inside = 0, count = 0, width = 0;
};

void add(Tally& tally, const Fitted& fitted, const Fitted& oracle, const Vector& w) {
  const Matrix ends = fitted.intervals(), known = oracle.intervals();
  if (fitted.result().identifiable.verdict == Verdict::not_identifiable) return;
  for (Index k = 1; k < w.size(); ++k) {
    tally.inside += ends(k, 0) <= w(k) && w(k) <= ends(k, 1) ? 1 : 0;
    tally.width += (ends(k, 1) - ends(k, 0)) / (known(k, 1) - known(k, 0));
    ++tally.count;
  }
}

void measure(FamilyKind kind, int draws) {
  const Family& family = family_of(kind);
  const Vector w = Eigen::Vector3d(0.5, 0.8, -0.6);
  Tally mixture, groups;
  for (int k = 0; k < draws; ++k) {
    Problem linked = drawn(family, w, std::uint64_t(k));
    const Fitted oracle = fit(linked, Linear{}, Oracle{.family = {kind}});
    Problem hinted = linked;
    hinted.known.clear();
    hinted.order = RowOrder::probably_linked;
    const Index wrong = 3 * rows / 10;
    const Vector moved = linked.y.col(0).head(wrong);
    for (Index i = 0; i < wrong; ++i) hinted.y(i, 0) = moved((i + 1) % wrong);
    add(mixture, fit(hinted, Linear{}, Mixture{.family = {kind}}), oracle, w);
    Problem grouped = linked;
    grouped.known.clear();
    grouped.order = RowOrder::unrelated;
    for (Index i = 0; i < rows; ++i) grouped.response_groups.push_back(i / group);
    grouped.feature_groups = grouped.response_groups;
    if (kind != FamilyKind::student) add(groups, fit(grouped, Linear{}, Entropic{.family = {kind}}), oracle, w);
  }
  const auto line = [&](const char* design, const Tally& tally) {
    if (tally.count == 0) return;
    fmt::print("{:<18} {:<8} inside {:5.1f} %  width {:.2f} of the oracle's  ({:.0f} intervals)\n", family.name(),
               design, 100 * tally.inside / tally.count, tally.width / tally.count, tally.count);
  };
  line("mixture", mixture);
  line("groups", groups);
}

}  // namespace
}  // namespace unshuffle

int main(int argc, char** argv) {
  using unshuffle::FamilyKind;
  const int draws = argc > 1 ? std::atoi(argv[1]) : 20;
  for (const FamilyKind kind : {FamilyKind::binomial, FamilyKind::poisson, FamilyKind::gamma,
                                FamilyKind::negative_binomial, FamilyKind::student})
    unshuffle::measure(kind, draws);
}
