#include "links/link_posterior.hpp"

#include <algorithm>

#include "links/permanent.hpp"

namespace unshuffle {

// An entropic plan has the right row and column sums, but its entries are not link probabilities: it respects that
// links exclude each other only on average. For two rows whose right matching has odds r, n·Γ gives the odds √r. With
// many possible partners per row the two agree; of a few rows all permutations are summed, of more they are sampled
// (docs/mathematics.md §13).
//
// The plan is exp(-C/ε) with rows and columns scaled, which multiplies all permutations by the same factor, so it can
// be used in its place. A step draws a row i and a partner j from the plan's row, and proposes that i and the row k
// that holds j exchange partners. With a = π(i) and j = π(k), the same exchange could have been proposed from k, so
//   proposal ∝ Γ_ij + Γ_ka,   its reverse ∝ Γ_ia + Γ_kj,   accepted if u·Γ_ia Γ_kj (Γ_ij + Γ_ka) < Γ_ij Γ_ka (Γ_ia +
//   Γ_kj),
// Γ standing for the plan with rows scaled to sum to one.
namespace {

Vector summed(const Matrix& plan, const std::vector<Index>& partner) {
  constexpr double smallest = 1e-300;
  const LinkSum sum = sum_over_links(plan.cwiseMax(smallest).array().log().matrix());
  return Vector::NullaryExpr(plan.rows(), [&](Index i) { return sum.probability(i, partner[std::size_t(i)]); });
}

}  // namespace

Vector link_posterior(const Matrix& plan, const std::vector<Index>& partner, RandomStream random) {
  if (plan.rows() <= most_summed_rows) return summed(plan, partner);
  constexpr long burn_in = 200;  // sweeps: steps per row
  constexpr long sweeps = 2000;
  const Index n = plan.rows();
  // Transposed, so that a row lies together.
  const Matrix rows = (plan.array().colwise() / plan.rowwise().sum().array()).matrix().transpose();
  Matrix cumulative = rows;
  for (Index j = 1; j < n; ++j) cumulative.row(j) += cumulative.row(j - 1);

  std::vector<Index> held = partner;
  std::vector<Index> holder(static_cast<std::size_t>(n));
  for (Index i = 0; i < n; ++i) holder[std::size_t(held[std::size_t(i)])] = i;
  Vector kept = Vector::Zero(n);
  for (long sweep = -burn_in; sweep < sweeps; ++sweep) {
    for (Index step = 0; step < n; ++step) {
      const Index i = random.below(n);
      const auto column = cumulative.col(i);
      const double drawn = random.uniform() * column(n - 1);
      const Index j = std::min<Index>(n - 1, std::lower_bound(column.begin(), column.end(), drawn) - column.begin());
      const Index k = holder[std::size_t(j)];
      if (k == i) continue;
      const Index a = held[std::size_t(i)];
      const double before = rows(a, i) * rows(j, k);
      const double after = rows(j, i) * rows(a, k);
      if (!(random.uniform() * before * (rows(j, i) + rows(a, k)) < after * (rows(a, i) + rows(j, k)))) continue;
      held[std::size_t(i)] = j;
      held[std::size_t(k)] = a;
      holder[std::size_t(j)] = i;
      holder[std::size_t(a)] = k;
    }
    if (sweep < 0) continue;
    for (Index i = 0; i < n; ++i) kept(i) += held[std::size_t(i)] == partner[std::size_t(i)] ? 1 : 0;
  }
  return kept / double(sweeps);
}

}  // namespace unshuffle
