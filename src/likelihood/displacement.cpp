#include "likelihood/displacement.hpp"

#include <Eigen/QR>
#include <algorithm>
#include <cmath>
#include <numeric>

#include "likelihood/wrong_links.hpp"

namespace unshuffle {

// docs/mathematics.md §10.6. Displaced rows: regression with the responses shifted by k rows leaves RSS(k), that is
// -n/2 log RSS(k) in nats. One thin QR serves all k, as RSS(k) = |y|² - |Qᵀ y_k|² with y_k the shifted responses.
namespace {

constexpr Index furthest_lag = 50;
constexpr double part_of_table = 0.1;
constexpr Index longest_stretch = 20'000;  // rows, enough to detect a displacement

}  // namespace

Displacement displacement_of(const Model& bound, const CandidateLinks& links) {
  const bool plain = averages_over_partners(bound) && links.rows.y.cols() == 1 && links.rows.x.cols() == 0 &&
                     links.known == 0 && links.blocks.empty();
  const Index n = std::min(links.size(), longest_stretch);
  const auto reach = std::min<Index>(furthest_lag, Index(part_of_table * double(n)));
  if (!plain || reach < 1 || n <= 2 * bound.parameters()) return {};
  std::vector<Index> stretch(static_cast<std::size_t>(n));
  std::iota(stretch.begin(), stretch.end(), (links.size() - n) / 2);
  const LinkedRows rows = subset(links.rows, stretch);
  const Vector zero = Vector::Zero(bound.parameters());
  const Matrix jacobian = linked_jacobian(bound, rows, zero);
  const Eigen::ColPivHouseholderQR<Matrix> qr(jacobian);
  const Matrix q = qr.householderQ() * Matrix::Identity(n, qr.rank());
  const Vector y = residuals(bound, rows, zero).col(0);
  const double squares = y.squaredNorm();
  const auto nats = [&](Index lag) {
    const Index cut = (lag % n + n) % n;  // response i beside features i + lag
    Vector explained = q.bottomRows(n - cut).transpose() * y.head(n - cut);
    explained += q.topRows(cut).transpose() * y.tail(cut);
    return -0.5 * double(n) * std::log(std::max(squares - explained.squaredNorm(), 1e-12 * squares));
  };
  const double in_order = nats(0);
  Displacement best;
  for (Index k = 1; k <= reach; ++k) {
    for (const Index lag : {k, -k}) {
      if (const double ahead = nats(lag) - in_order; ahead > best.nats) best = {lag, ahead};
    }
  }
  return best;
}

}  // namespace unshuffle
