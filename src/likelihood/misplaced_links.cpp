#include "likelihood/misplaced_links.hpp"

#include <Eigen/QR>
#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <set>

#include "likelihood/noise_law.hpp"
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

// Similar partners: the density of a response under a wrong link, q(y_i) when links go anywhere, becomes the mean of
// g(y_i - f_j) over rows j near i in one feature. Both mixtures use their best share of wrong links; w and the noise
// law g are fixed.
namespace {

constexpr Index rows_looked_at = 4'000;
constexpr Index fewest_values = 20;          // of a feature, for neighbourhoods to be meaningful
constexpr std::array widths{0.04, 0.12};     // of the table, to each side
constexpr Index partners_to_each_side = 20;  // evenly spaced over the width
constexpr std::array shares{0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9};

double best_mixture(const Vector& log_right, const Vector& log_wrong) {
  double best = -HUGE_VAL;
  for (const double share : shares) {
    const Eigen::ArrayXd right = log_right.array() + std::log1p(-share), wrong = log_wrong.array() + std::log(share);
    const Eigen::ArrayXd larger = right.max(wrong);
    best = std::max(best, (larger + ((right - larger).exp() + (wrong - larger).exp()).log()).sum());
  }
  return best;
}

Index different_values(const Vector& column) {
  return static_cast<Index>(std::set<double>(column.begin(), column.end()).size());
}

/// log of the mean of g(y_i - f_j) over rows j up to `width` ranks from i.
Vector log_of_neighbours(const NoiseLaw& law, const Vector& y, const Vector& f, const Vector& level,
                         const std::vector<Index>& ranked, Index width) {
  const auto n = static_cast<Index>(ranked.size());
  Vector sum = Vector::Zero(n), count = Vector::Zero(n);
  const Index step = std::max<Index>(1, width / partners_to_each_side);
  for (Index away = step; away <= width; away += step) {
    for (const Index offset : {away, -away}) {
      std::vector<Index> rows, partners;
      for (Index k = std::max<Index>(0, -offset); k < std::min(n, n - offset); ++k) {
        rows.push_back(ranked[std::size_t(k)]);
        partners.push_back(ranked[std::size_t(k + offset)]);
      }
      const Vector density = law.log_at(y(rows) - f(partners), level(partners)).array().exp();
      for (std::size_t k = 0; k < rows.size(); ++k) {
        sum(rows[k]) += density(Index(k));
        count(rows[k]) += 1;
      }
    }
  }
  return (sum.array() / count.array().max(1.0)).max(1e-300).log();
}

std::vector<Index> spread_over(Index size, Index most) {
  const Index count = std::min(size, most);
  std::vector<Index> chosen;
  for (Index k = 0; k < count; ++k) chosen.push_back(k * size / count);
  return chosen;
}

}  // namespace

double gain_of_similar_partners(const Model& bound, const CandidateLinks& links, const Vector& w,
                                const Vector& link_probability) {
  if (!averages_over_partners(bound) || links.rows.y.cols() != 1 || links.rows.x.cols() > 0 || !links.blocks.empty())
    return 0;
  const std::vector<Index> chosen = spread_over(links.size(), rows_looked_at);
  const LinkedRows rows = subset(links.rows, chosen);
  const Vector y = rows.y.col(0);
  const Vector f = predict_pairs(bound, rows.x, rows.z, w).col(0);
  const Vector level = levels_of(f), flat = Vector::Zero(y.size()), one = Vector::Ones(y.size());
  NoiseLaw law(y - f, link_probability(chosen));
  for (int round = 0; round < 5; ++round) law.renew(y - f, level, link_probability(chosen));
  const Vector log_right = law.log_at(y - f, level);
  const double anywhere = best_mixture(log_right, NoiseLaw(y, one).log_at(y, flat));
  double gain = 0;
  for (Index column = 0; column < rows.z.cols(); ++column) {
    const Vector values = rows.z.col(column);
    if (different_values(values) < fewest_values) continue;
    std::vector<Index> ranked(chosen.size());
    std::iota(ranked.begin(), ranked.end(), Index{0});
    std::stable_sort(ranked.begin(), ranked.end(), [&](Index a, Index b) { return values(a) < values(b); });
    for (const double width : widths) {
      const auto ranks = std::max<Index>(2, Index(width * double(chosen.size())));
      const Vector log_near = log_of_neighbours(law, y, f, level, ranked, ranks);
      gain = std::max(gain, best_mixture(log_right, log_near) - anywhere);
    }
  }
  return gain;
}

}  // namespace unshuffle
