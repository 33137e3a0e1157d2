#include "starts/moments.hpp"

#include <Eigen/Cholesky>
#include <Eigen/QR>
#include <algorithm>
#include <cmath>
#include <map>

#include "core/gram.hpp"
#include "core/in_parallel.hpp"
#include "core/random.hpp"
#include "starts/distance.hpp"

namespace unshuffle {

double MomentPolynomials::count(Index variables, int order) {
  double total = 1;
  for (int k = 1; k <= order; ++k) total *= double(variables + k) / k;
  return total;
}

MomentPolynomials::MomentPolynomials(const Matrix& sample, int order) : order_(order) {
  const Index e = sample.cols();
  std::map<std::vector<int>, Index> place;
  monomials_.push_back({.exponents = std::vector<int>(std::size_t(e), 0)});
  place[monomials_.front().exponents] = 0;
  // Each monomial is made once, by multiplying with variables in ascending order.
  for (std::size_t at = 0; at < monomials_.size(); ++at) {
    if (monomials_[at].degree == order) continue;
    for (Index a = monomials_[at].variable; a < e; ++a) {
      Monomial next{.degree = monomials_[at].degree + 1,
                    .parent = Index(at),
                    .variable = a,
                    .exponents = monomials_[at].exponents};
      ++next.exponents[std::size_t(a)];
      place[next.exponents] = Index(monomials_.size());
      monomials_.push_back(std::move(next));
    }
  }
  for (Monomial& monomial : monomials_) {
    double multinomial = std::tgamma(monomial.degree + 1.0);
    for (Index a = 0; a < e; ++a) {
      const int exponent = monomial.exponents[std::size_t(a)];
      multinomial /= std::tgamma(exponent + 1.0);
      auto fewer = monomial.exponents;
      --fewer[std::size_t(a)];
      monomial.without_one.push_back(exponent > 0 ? place.at(fewer) : -1);
    }
    monomial.coefficient = multinomial;
  }
  // Sample means of all monomials, a chunk of rows at a time so that the products stay in the cache.
  constexpr Index chunk_rows = 256;
  Vector sums = Vector::Zero(Index(monomials_.size()));
  Matrix products(chunk_rows, sums.size());
  for (Index begin = 0; begin < sample.rows(); begin += chunk_rows) {
    const Index rows = std::min(chunk_rows, sample.rows() - begin);
    products.col(0).setOnes();
    for (Index k = 1; k < sums.size(); ++k) {
      const Monomial& monomial = monomials_[std::size_t(k)];
      products.col(k).head(rows) =
          products.col(monomial.parent).head(rows).cwiseProduct(sample.col(monomial.variable).segment(begin, rows));
    }
    sums += products.topRows(rows).colwise().sum();
  }
  for (Index k = 0; k < sums.size(); ++k) {
    monomials_[std::size_t(k)].coefficient *= sums(k) / double(sample.rows());
  }
}

void MomentPolynomials::evaluate(const Vector& c, Vector& moments, Matrix& derivatives) const {
  moments = Vector::Zero(order_ + 1);
  derivatives = Matrix::Zero(order_ + 1, c.size());
  Vector values(Index(monomials_.size()));
  for (std::size_t k = 0; k < monomials_.size(); ++k) {
    const Monomial& monomial = monomials_[k];
    values(Index(k)) = k == 0 ? 1.0 : values(monomial.parent) * c(monomial.variable);
    moments(monomial.degree) += monomial.coefficient * values(Index(k));
    for (Index a = 0; a < c.size(); ++a) {
      const Index fewer = monomial.without_one[std::size_t(a)];
      if (fewer < 0) continue;
      derivatives(monomial.degree, a) += monomial.coefficient * monomial.exponents[std::size_t(a)] * values(fewer);
    }
  }
}

namespace {

constexpr double most_monomials = 4000;
constexpr int highest_order = 6;
constexpr int lowest_useful_order = 4;

/// The columns of a linear model that vary, standardised, and the parameters they belong to.
struct Columns {
  Matrix centred;
  std::vector<Index> parameters;
  Vector scale;
};

Columns varying_columns(const Matrix& jacobian) {
  Columns result;
  std::vector<double> scales;
  for (Index k = 0; k < jacobian.cols(); ++k) {
    const Vector column = jacobian.col(k).array() - jacobian.col(k).mean();
    const double sd = std::sqrt(column.squaredNorm() / double(column.size()));
    if (!(sd > 1e-9 * (1e-300 + jacobian.col(k).cwiseAbs().maxCoeff()))) continue;
    result.parameters.push_back(k);
    result.centred.conservativeResize(jacobian.rows(), result.centred.cols() + 1);
    result.centred.rightCols(1) = column / sd;
    scales.push_back(sd);
  }
  result.scale = Eigen::Map<Vector>(scales.data(), Index(scales.size()));
  return result;
}

/// Rows at even distances, so that at most `most` are used.
Matrix thinned(const Matrix& rows, Index most) {
  if (rows.rows() <= most) return rows;
  std::vector<Index> chosen;
  for (Index k = 0; k < most; ++k) chosen.push_back(rows.rows() * k / most);
  return rows(chosen, Eigen::all);
}

double binomial(int n, int k) {
  return std::round(std::tgamma(n + 1.0) / (std::tgamma(k + 1.0) * std::tgamma(n - k + 1.0)));
}

// The central moments of t = y - x·u must be those of s + noise with s = z·w:
//   E t^k = Σ_j C(k, 2j) E s^{k-2j} σ^{2j} (2j-1)!!,     k = 2 .. order.
// Both sides are polynomials in (u, w), whose coefficients are sample moments; the unknowns are (u, w, σ). An equation
// k = 1 is added when there is no intercept to absorb it. Misfits are whitened with the covariance of sample moments of
// y, so that the sum of their squares is approximately χ² (docs/mathematics.md §11.2).
class MomentEquations {
 public:
  MomentEquations(const Problem& problem, const AdditiveModel& model) {
    const Vector zero = Vector::Zero(model.parameters());
    const Matrix on_features = model.jacobian_part(Side::feature, model.basis(Side::feature, problem.z), zero);
    feature_ = varying_columns(on_features);
    Matrix on_responses(problem.responses(), 0);
    if (problem.x.cols() > 0) {
      on_responses = model.jacobian_part(Side::response, model.basis(Side::response, problem.x), zero);
      response_ = varying_columns(on_responses);
    }
    const Vector y = problem.y.col(0);
    y_mean_ = y.mean();
    y_scale_ = std::sqrt((y.array() - y_mean_).square().mean());
    constant_ = constant_parameter(on_features);
    parameter_count_ = model.parameters();
    feature_mean_ = on_features.colwise().mean();
    if (problem.x.cols() > 0) feature_mean_ += on_responses.colwise().mean();
    const Index wide = std::max(feature_.centred.cols(), 1 + response_columns());
    order_ = highest_order;
    while (order_ > 0 && MomentPolynomials::count(wide, order_) > most_monomials) --order_;
    if (!usable()) return;
    const auto most_rows = Index(2e8 / MomentPolynomials::count(wide, order_));
    Matrix joint(y.size(), 1 + response_columns());
    joint.col(0) = (y.array() - y_mean_) / y_scale_;
    if (response_columns() > 0) joint.rightCols(response_columns()) = response_.centred;
    features_.emplace_back(thinned(feature_.centred, most_rows), order_);
    responses_.emplace_back(thinned(joint, most_rows), order_);
    whiten(joint.col(0), double(problem.features()));
  }

  /// y must vary, columns must vary and the moments must go beyond the Gaussian ones.
  [[nodiscard]] bool usable() const {
    return order_ >= lowest_useful_order && y_scale_ > 0 && feature_.centred.cols() > 0;
  }
  [[nodiscard]] Index unknowns() const { return response_columns() + feature_.centred.cols() + 1; }

  /// Whitened misfits and their Jacobian.
  void evaluate(const Vector& at, Vector& misfit, Matrix& jacobian) const {
    const Index d = response_columns();
    const Index e = feature_.centred.cols();
    Vector c(1 + d);
    c << 1.0, -at.head(d);
    Vector of_t;
    Vector of_s;
    Matrix dt;
    Matrix ds;
    responses_.front().evaluate(c, of_t, dt);
    features_.front().evaluate(at.segment(d, e), of_s, ds);
    const double sd = at(d + e);
    const Index equations = order_ - 1;
    Vector raw(equations);
    Matrix slope = Matrix::Zero(equations, unknowns());
    for (int k = 2; k <= order_; ++k) {
      const Index row = k - 2;
      raw(row) = of_t(k);
      slope.row(row).head(d) = -dt.row(k).tail(d);
      double odd_factorial = 1;
      for (int j = 0; 2 * j <= k; ++j) {
        if (j > 0) odd_factorial *= 2 * j - 1;
        const double factor = binomial(k, 2 * j) * odd_factorial;
        raw(row) -= factor * of_s(k - 2 * j) * std::pow(sd, 2 * j);
        slope.row(row).segment(d, e) -= factor * std::pow(sd, 2 * j) * ds.row(k - 2 * j);
        if (j > 0) slope(row, d + e) -= factor * of_s(k - 2 * j) * 2 * j * std::pow(sd, 2 * j - 1);
      }
    }
    misfit = whitening_.triangularView<Eigen::Lower>().solve(raw);
    jacobian = whitening_.triangularView<Eigen::Lower>().solve(slope);
    if (constant_ < 0) add_mean_equation(at, misfit, jacobian);
  }

  [[nodiscard]] Vector random_point(RandomStream& random) const {
    Vector at = Vector::NullaryExpr(unknowns(), [&] { return random.normal(); });
    const Index d = response_columns();
    const double noise = 0.7 * random.uniform();
    const Vector s = thinned(feature_.centred, 500) * at.segment(d, feature_.centred.cols());
    at *= std::sqrt((1 - noise * noise) / s.squaredNorm() * double(s.size()));
    at.head(d) *= 0.5;
    at(unknowns() - 1) = noise;
    return at;
  }

  [[nodiscard]] MomentStart start_at(const Vector& at, double misfit) const {
    MomentStart result;
    result.parameters = parameters_at(at);
    result.noise_variance = std::pow(y_scale_ * at(unknowns() - 1), 2);
    result.misfit = misfit;
    return result;
  }

 private:
  [[nodiscard]] Index response_columns() const { return response_.centred.cols(); }

  static Index constant_parameter(const Matrix& jacobian) {
    for (Index k = 0; k < jacobian.cols(); ++k) {
      if ((jacobian.col(k).array() == 1.0).all()) return k;
    }
    return -1;
  }

  [[nodiscard]] Vector parameters_at(const Vector& at) const {
    Vector w = Vector::Zero(parameter_count_);
    Index place = 0;
    for (const Columns* columns : {&response_, &feature_}) {
      for (std::size_t k = 0; k < columns->parameters.size(); ++k) {
        w(columns->parameters[k]) = y_scale_ * at(place++) / columns->scale(Index(k));
      }
    }
    if (constant_ >= 0) w(constant_) = y_mean_ - feature_mean_.dot(w);
    return w;
  }

  // The mean of y is known to about 1/√n of its spread, on either side.
  void add_mean_equation(const Vector& at, Vector& misfit, Matrix& jacobian) const {
    const double precision = std::sqrt(0.5 * double(rows_));
    const Index last = misfit.size();
    misfit.conservativeResize(last + 1);
    jacobian.conservativeResize(last + 1, Eigen::NoChange);
    misfit(last) = precision * (y_mean_ - feature_mean_.dot(parameters_at(at))) / y_scale_;
    jacobian.row(last).setZero();
    Index place = 0;
    for (const Columns* columns : {&response_, &feature_}) {
      for (std::size_t k = 0; k < columns->parameters.size(); ++k) {
        jacobian(last, place++) = -precision * feature_mean_(columns->parameters[k]) / columns->scale(Index(k));
      }
    }
  }

  void whiten(const Vector& y, double features) {
    const auto n = static_cast<double>(y.size());
    rows_ = y.size();
    Matrix powers(y.size(), order_ - 1);
    for (int k = 2; k <= order_; ++k) powers.col(k - 2) = y.array().pow(k);
    powers.rowwise() -= powers.colwise().mean().eval();
    Matrix covariance = gram(powers) / n * (1 / n + 1 / features);
    covariance.diagonal() *= 1 + 1e-9;
    whitening_ = covariance.llt().matrixL();
  }

  Columns feature_, response_;
  std::vector<MomentPolynomials> features_, responses_;  // one each; none when not usable
  Matrix whitening_;
  Vector feature_mean_;
  double y_mean_ = 0;
  double y_scale_ = 0;
  Index constant_ = -1;
  Index parameter_count_ = 0;
  Index rows_ = 0;
  int order_ = 0;
};

/// Levenberg-Marquardt; returns the sum of squares reached.
double solve(const MomentEquations& equations, Vector& at) {
  Vector misfit;
  Matrix jacobian;
  equations.evaluate(at, misfit, jacobian);
  double here = misfit.squaredNorm();
  double damping = 1e-2;
  for (int step = 0; step < 60 && damping < 1e8; ++step) {
    Matrix normal = jacobian.transpose() * jacobian;
    normal.diagonal() *= 1 + damping;
    normal.diagonal().array() += 1e-12 * normal.diagonal().maxCoeff();
    const Vector tried = at - normal.ldlt().solve(jacobian.transpose() * misfit);
    Vector there_misfit;
    Matrix there_jacobian;
    equations.evaluate(tried, there_misfit, there_jacobian);
    const double there = there_misfit.squaredNorm();
    if (!(there < here)) {
      damping *= 5;
      continue;
    }
    const bool done = here - there < 1e-4 * (1e-3 + here);
    at = tried;
    misfit = there_misfit;
    jacobian = there_jacobian;
    here = there;
    damping = std::max(1e-9, damping / 5);
    if (done) break;
  }
  return here;
}

}  // namespace

std::vector<MomentStart> moment_starts(const Problem& problem, const Model& bound, int tries, std::uint64_t seed) {
  const AdditiveModel* model = bound.additive();
  if (model == nullptr || !bound.linear_in_parameters() || problem.outputs() != 1) return {};
  const MomentEquations equations(problem, *model);
  if (!equations.usable()) return {};
  std::vector<MomentStart> found(static_cast<std::size_t>(tries));
  in_parallel(found.size(), [&](std::size_t k) {
    RandomStream random(seed, Stream::moment_equations, k);
    Vector at = equations.random_point(random);
    const double misfit = solve(equations, at);
    found[k] = equations.start_at(at, misfit);
  });
  std::erase_if(found,
                [](const MomentStart& start) { return !start.parameters.allFinite() || !std::isfinite(start.misfit); });
  std::stable_sort(found.begin(), found.end(),
                   [](const MomentStart& a, const MomentStart& b) { return a.misfit < b.misfit; });
  const PredictiveDistance distance(problem, bound);
  std::vector<MomentStart> distinct;
  for (MomentStart& start : found) {
    const bool known = std::any_of(distinct.begin(), distinct.end(), [&](const MomentStart& other) {
      return distance(start.parameters, other.parameters) < 0.03;
    });
    if (!known) distinct.push_back(std::move(start));
  }
  return distinct;
}

}  // namespace unshuffle
