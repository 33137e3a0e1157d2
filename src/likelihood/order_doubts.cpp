#include "likelihood/order_doubts.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

#include "core/balanced_inverse.hpp"
#include "core/gram.hpp"
#include "likelihood/noise_law.hpp"
#include "likelihood/wrong_links.hpp"

namespace unshuffle {

// The mixture again, its share of wrong links free, under changed assumptions. Fits with and without the change start
// at the answer, so that only the change makes them differ. docs/mathematics.md §10.7.
//
// Noise: heavy tails and skewness of the usual size, with as many parameters as the normal law. Where little speaks for
// either, the share of wrong links depends on it, as a far row may be one or the other.
//
// A curve: the square of the prediction, or all squares and products of columns, are more columns. Rows that lie off a
// straight line would be called wrong; with the curve they are not, and the straight line nearest to the fitted curve,
// over all rows, is what regression on right links would find.
//
// Similar partners: the density of a response under a wrong link, q(y_i) when links go anywhere, becomes the mean of
// g(y_i - f_j) over rows j near i in one feature, or in the order given. Wrong links of this kind look like right ones
// and would be taken for them.
//
// Regression on all rows, whatever it is that makes it differ: if the answer were wrong somehow, its contrast would
// have a variance several times that of chance.
namespace {

constexpr Index rows_looked_at = 4'000;
constexpr Index fewest_values = 20;          // of a feature, for neighbourhoods to be meaningful
constexpr std::array widths{0.04, 0.12};     // of the table, to each side
constexpr Index partners_to_each_side = 20;  // evenly spaced over the width
constexpr std::array shares{0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9};
constexpr int em_rounds = 40;

/// A fit of the mixture: the coefficients of its columns, the probability of each link to be right, the log-likelihood.
struct Settled {
  Vector w;
  Vector right;
  double nats = 0;
};

/// Noise of one shape and mean zero; its spread alone is estimated.
class ShapedLaw {
 public:
  using LogDensity = double (*)(double);  ///< Of variance one.

  ShapedLaw(LogDensity log_density, const Vector& residual, const Vector& weights) : log_density_(log_density) {
    renew(residual, {}, weights);
  }

  void renew(const Vector& residual, const Vector& /*level*/, const Vector& weights) {
    sd_ = std::sqrt(std::max(weights.dot(residual.cwiseAbs2()) / weights.sum(), 1e-300));
  }

  [[nodiscard]] Vector log_at(const Vector& residual, const Vector& /*level*/) const {
    return residual.unaryExpr([this](double r) { return log_density_(r / sd_) - std::log(sd_); });
  }

 private:
  LogDensity log_density_;
  double sd_ = 1;
};

double log_normal_noise(double u) { return -0.5 * (u * u + std::log(2 * std::numbers::pi)); }

/// Student's, with four degrees of freedom.
double log_heavy_tailed(double u) { return std::log(3 * std::numbers::sqrt2 / 8) - 2.5 * std::log1p(0.5 * u * u); }

/// Gumbel's, of skewness 1.14.
double log_skewed(double u) {
  static const double unit = std::sqrt(6.0) / std::numbers::pi;
  const double z = u / unit + std::numbers::egamma;
  return -std::log(unit) - z - std::exp(-z);
}
double log_skewed_down(double u) { return log_skewed(-u); }

constexpr std::array<std::pair<ShapedLaw::LogDensity, const char*>, 3> other_noise{
    {{log_heavy_tailed, "the noise has heavy tails"},
     {log_skewed, "the noise is skewed to the right"},
     {log_skewed_down, "the noise is skewed to the left"}}};

/// log ((1-α) e^right + α e^wrong), the first `known` rows right.
Vector log_of_both(const Vector& log_right, const Vector& log_wrong, double share, Index known) {
  const Eigen::ArrayXd right = log_right.array() + std::log1p(-share), wrong = log_wrong.array() + std::log(share);
  const Eigen::ArrayXd larger = right.max(wrong);
  Vector both = larger + ((right - larger).exp() + (wrong - larger).exp()).log();
  both.head(known) = log_right.head(known);
  return both;
}

std::vector<Index> spread_over(Index size, Index most) {
  const Index count = std::min(size, most);
  std::vector<Index> chosen;
  for (Index k = 0; k < count; ++k) chosen.push_back(k * size / count);
  return chosen;
}

/// The rows that a wrong link may point to: up to `width` places away in this ranking.
struct Neighbourhood {
  std::vector<Index> ranked;
  Index width = 0;
};

class OrderedRows {
 public:
  OrderedRows(const Model& bound, const CandidateLinks& links) : all_(links.size()) {
    const std::vector<Index> chosen = spread_over(links.size(), rows_looked_at);
    const LinkedRows rows = subset(links.rows, chosen);
    const Vector zero = Vector::Zero(bound.parameters());
    columns_ = linked_jacobian(bound, rows, zero);
    z_ = rows.z;
    y_ = residuals(bound, rows, zero).col(0);
    weights_ = links.weights_or_one()(chosen);
    known_ = Index(std::lower_bound(chosen.begin(), chosen.end(), links.known) - chosen.begin());
    log_anywhere_ = NoiseLaw(y_, weights_).log_at(y_, Vector::Zero(y_.size()));
  }

  [[nodiscard]] Index size() const { return y_.size(); }

  [[nodiscard]] Settled starting_at(const OrderAssumed& answer) const {
    return {answer.parameters, answer.link_probability(spread_over(all_, rows_looked_at)), 0};
  }

  /// The noise law of this kind that the residuals of a fit suggest.
  [[nodiscard]] ShapedLaw shaped(ShapedLaw::LogDensity shape, const Settled& at) const {
    return {shape, y_ - columns_ * at.w, at.right.cwiseProduct(weights_)};
  }
  [[nodiscard]] NoiseLaw of_any_shape(const Settled& at) const {
    return {y_ - columns_ * at.w, at.right.cwiseProduct(weights_)};
  }

  /// EM with wrong links that go anywhere.
  template <class Law>
  [[nodiscard]] Settled anywhere(const Settled& from, Law& law) const {
    return settled(columns_, from, law, [&](const Vector&) { return log_anywhere_; });
  }

  template <class Law>
  [[nodiscard]] std::optional<OrderDoubt> similar_partners(const Settled& assumed, Law law) const {
    const std::optional<Neighbourhood> near = most_likely_neighbourhood(assumed, law);
    if (!near) return {};
    const Settled found =
        settled(columns_, assumed, law, [&](const Vector& f) { return log_of_neighbours(law, f, *near); });
    return OrderDoubt{OrderDoubt::Kind::similar_partners, "wrong links point to similar rows", found.w - assumed.w,
                      found.nats - assumed.nats};
  }

  /// Terms that a straight line lacks: the square of the prediction, and every square and product of columns.
  [[nodiscard]] Matrix square(const Settled& assumed) const { return levels_of(columns_ * assumed.w).cwiseAbs2(); }
  [[nodiscard]] Matrix products() const {
    const std::vector<Index> varied = varied_columns();
    const auto count = static_cast<Index>(varied.size());
    Matrix made(size(), count * (count + 1) / 2);
    for (Index a = 0, k = 0; a < count; ++a) {
      for (Index b = a; b < count; ++b)
        made.col(k++) = levels_of(columns_.col(varied[std::size_t(a)]))
                            .cwiseProduct(levels_of(columns_.col(varied[std::size_t(b)])));
    }
    return made;
  }

  template <class Law>
  [[nodiscard]] OrderDoubt bent_by(const Matrix& terms, const Settled& assumed, Law law) const {
    Matrix bent(columns_.rows(), columns_.cols() + terms.cols());
    bent << columns_, terms;
    Settled start = assumed;
    start.w.conservativeResize(bent.cols());
    start.w.tail(terms.cols()).setZero();
    const Settled found = settled(bent, start, law, [&](const Vector&) { return log_anywhere_; });
    const Vector straight = balanced_inverse(weighted_gram(columns_, weights_)) *
                            (columns_.transpose() * weights_.cwiseProduct(bent * found.w));
    const char* words = terms.cols() == 1 ? "the response bends" : "the response bends or features interact";
    return {OrderDoubt::Kind::curve, words, straight - assumed.w,
            found.nats - assumed.nats - 0.5 * double(terms.cols()) * std::log(double(size()))};
  }

  /// Least squares on all rows, and the likelihood of all links being right with this noise.
  [[nodiscard]] Settled all_right(ShapedLaw::LogDensity shape) const {
    const Vector w =
        balanced_inverse(weighted_gram(columns_, weights_)) * (columns_.transpose() * weights_.cwiseProduct(y_));
    const Vector residual = y_ - columns_ * w;
    const ShapedLaw law(shape, residual, weights_);
    return {w, Vector::Ones(size()), weights_.dot(law.log_at(residual, {}))};
  }

 private:
  /// EM from there; `log_wrong` of the predictions is the density of responses of wrong links.
  template <class Law, class LogWrong>
  [[nodiscard]] Settled settled(const Matrix& columns, const Settled& from, Law& law, const LogWrong& log_wrong) const {
    Settled made = from;
    for (int round = 0; round < em_rounds; ++round) {
      const Vector f = columns * made.w, level = levels_of(f);
      const Index open = size() - known_;
      const double wrong = 1 - made.right.tail(open).dot(weights_.tail(open)) / weights_.tail(open).sum();
      const double share = std::clamp(wrong, 1e-4, 0.95);
      const Vector log_right = law.log_at(y_ - f, level);
      const Vector both = log_of_both(log_right, log_wrong(f), share, known_);
      made.right = (log_right.array() + std::log1p(-share) - both.array()).exp();
      made.right.head(known_).setOnes();
      made.nats = weights_.dot(both);
      const Vector weights = made.right.cwiseProduct(weights_);
      made.w = balanced_inverse(weighted_gram(columns, weights)) * (columns.transpose() * weights.cwiseProduct(y_));
      law.renew(y_ - columns * made.w, level, weights);
    }
    return made;
  }

  [[nodiscard]] double best_mixture(const Vector& log_right, const Vector& log_wrong) const {
    double best = -HUGE_VAL;
    for (const double share : shares)
      best = std::max(best, weights_.dot(log_of_both(log_right, log_wrong, share, known_)));
    return best;
  }

  [[nodiscard]] std::vector<std::vector<Index>> rankings() const {
    std::vector<Index> order(static_cast<std::size_t>(size()));
    std::iota(order.begin(), order.end(), Index{0});
    std::vector<std::vector<Index>> made{order};
    for (Index column = 0; column < z_.cols(); ++column) {
      const Vector values = z_.col(column);
      if (std::set<double>(values.begin(), values.end()).size() < std::size_t(fewest_values)) continue;
      made.push_back(order);
      std::stable_sort(made.back().begin(), made.back().end(), [&](Index a, Index b) { return values(a) < values(b); });
    }
    return made;
  }

  template <class Law>
  [[nodiscard]] std::optional<Neighbourhood> most_likely_neighbourhood(const Settled& assumed, const Law& law) const {
    const Vector f = columns_ * assumed.w;
    const Vector log_right = law.log_at(y_ - f, levels_of(f));
    std::optional<Neighbourhood> best;
    double best_nats = -HUGE_VAL;
    for (const std::vector<Index>& ranked : rankings()) {
      for (const double width : widths) {
        Neighbourhood near{ranked, std::max<Index>(2, Index(width * double(size())))};
        const double nats = best_mixture(log_right, log_of_neighbours(law, f, near));
        if (nats <= best_nats) continue;
        best_nats = nats;
        best = std::move(near);
      }
    }
    return best;
  }

  /// log of the mean of g(y_i - f_j) over the rows j near i.
  template <class Law>
  [[nodiscard]] Vector log_of_neighbours(const Law& law, const Vector& f, const Neighbourhood& near) const {
    const Vector level = levels_of(f);
    Vector sum = Vector::Zero(size()), count = Vector::Zero(size());
    const Index step = std::max<Index>(1, near.width / partners_to_each_side);
    for (Index away = step; away <= near.width; away += step) {
      for (const Index offset : {away, -away}) {
        std::vector<Index> rows, partners;
        for (Index k = std::max<Index>(0, -offset); k < std::min(size(), size() - offset); ++k) {
          rows.push_back(near.ranked[std::size_t(k)]);
          partners.push_back(near.ranked[std::size_t(k + offset)]);
        }
        const Vector density = law.log_at(y_(rows) - f(partners), level(partners)).array().exp();
        for (std::size_t k = 0; k < rows.size(); ++k) {
          sum(rows[k]) += density(Index(k));
          count(rows[k]) += 1;
        }
      }
    }
    return (sum.array() / count.array().max(1.0)).max(1e-300).log();
  }

  [[nodiscard]] std::vector<Index> varied_columns() const {
    std::vector<Index> varied;
    for (Index k = 0; k < columns_.cols(); ++k) {
      if (columns_.col(k).maxCoeff() > columns_.col(k).minCoeff()) varied.push_back(k);
    }
    return varied;
  }

  Index all_;  // rows, of which some are looked at
  Matrix columns_;
  Matrix z_;
  Vector y_;
  Vector weights_;
  Index known_ = 0;
  Vector log_anywhere_;
};

/// About the straight line and about the law of wrong links, whatever the law of the noise.
template <class Law>
std::vector<OrderDoubt> doubts_beside(const OrderedRows& rows, const Settled& assumed, const Law& law) {
  constexpr Index rows_per_term = 10, most_terms = 40;
  std::vector<OrderDoubt> made{rows.bent_by(rows.square(assumed), assumed, law)};
  const Matrix products = rows.products();
  if (products.cols() > 1 && products.cols() <= std::min(most_terms, rows.size() / rows_per_term))
    made.push_back(rows.bent_by(products, assumed, law));
  if (std::optional<OrderDoubt> similar = rows.similar_partners(assumed, law)) made.push_back(std::move(*similar));
  return made;
}

std::vector<OrderDoubt> with_normal_noise(const OrderedRows& rows, const Settled& start) {
  ShapedLaw normal = rows.shaped(log_normal_noise, start);
  const Settled assumed = rows.anywhere(start, normal);
  std::vector<OrderDoubt> made = doubts_beside(rows, assumed, normal);
  // EM hardly moves the share of wrong links where the noise hides them, so none is tried as well. It has a parameter
  // less.
  const auto add = [&](const std::string& words, const Settled& found, double fewer) {
    made.push_back({OrderDoubt::Kind::noise, words, found.w - assumed.w, found.nats - assumed.nats + fewer});
  };
  const double one_fewer = 0.5 * std::log(double(rows.size()));
  add("no link is wrong", rows.all_right(log_normal_noise), one_fewer);
  for (const auto& [shape, words] : other_noise) {
    ShapedLaw law = rows.shaped(shape, assumed);
    add(words, rows.anywhere(assumed, law), 0);
    add(std::string("no link is wrong, and ") + words, rows.all_right(shape), one_fewer);
  }
  return made;
}

std::vector<OrderDoubt> with_noise_of_any_shape(const OrderedRows& rows, const Settled& start) {
  NoiseLaw law = rows.of_any_shape(start);
  const Settled assumed = rows.anywhere(start, law);
  return doubts_beside(rows, assumed, law);
}

// With χ² for the contrast in units of chance, and k + 1 times the variance if the answer is wrong somehow, the odds
// are ½ (χ² k/(k+1) - freedom log(k+1)).
std::optional<OrderDoubt> of_regression(const Model& bound, const CandidateLinks& links, const Vector& w) {
  constexpr double further = 10, fewest_right = 0.05;
  const Contrast contrast = contrast_with_regression(bound, links, w);
  if (contrast.freedom == 0 || contrast.right < fewest_right) return {};
  const LeastSquares solved = least_squares(bound, averaged(links, 1 - contrast.right), w, links.weights_or_one());
  const double nats =
      0.5 * (contrast.squares * further / (further + 1) - double(contrast.freedom) * std::log1p(further));
  return OrderDoubt{OrderDoubt::Kind::regression, "regression on all rows tells the truth", solved.parameters - w,
                    nats};
}

}  // namespace

std::vector<OrderDoubt> doubts_of_order(const Model& bound, const CandidateLinks& links, const OrderAssumed& answer) {
  const bool plain = averages_over_partners(bound) && links.rows.y.cols() == 1 && links.rows.x.cols() == 0 &&
                     links.blocks.empty() && links.open() > 0;
  if (!plain) return {};
  const OrderedRows rows(bound, links);
  const Settled start = rows.starting_at(answer);
  std::vector<OrderDoubt> made =
      answer.normal_noise ? with_normal_noise(rows, start) : with_noise_of_any_shape(rows, start);
  if (std::optional<OrderDoubt> doubt = of_regression(bound, links, answer.parameters))
    made.push_back(std::move(*doubt));
  std::erase_if(made, [](const OrderDoubt& doubt) { return !doubt.shift.allFinite() || !std::isfinite(doubt.nats); });
  return made;
}

Averaged averaged_over(const std::vector<OrderDoubt>& doubts, const Matrix& covariance) {
  double most = 0;
  for (const OrderDoubt& doubt : doubts) most = std::max(most, doubt.nats);
  const double as_assumed = std::exp(-most);
  double total = as_assumed;
  for (const OrderDoubt& doubt : doubts) total += std::exp(doubt.nats - most);
  Averaged made{Vector::Zero(covariance.rows()), covariance};
  for (const OrderDoubt& doubt : doubts) made.shift += std::exp(doubt.nats - most) / total * doubt.shift;
  made.covariance += as_assumed / total * made.shift * made.shift.transpose();
  for (const OrderDoubt& doubt : doubts) {
    const Vector apart = doubt.shift - made.shift;
    made.covariance += std::exp(doubt.nats - most) / total * apart * apart.transpose();
  }
  return made;
}

}  // namespace unshuffle
