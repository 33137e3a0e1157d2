#include "likelihood/cox.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/balanced_inverse.hpp"

namespace unshuffle {

RiskSets::RiskSets(const Vector& time, const Vector& event)
    : last(std::size_t(time.size()), 0), at(std::size_t(time.size()), -1) {
  std::vector<Index> order(std::size_t(time.size()));
  std::iota(order.begin(), order.end(), Index{0});
  // Who is censored at the time of an event was at risk then.
  std::stable_sort(order.begin(), order.end(),
                   [&](Index a, Index b) { return time(a) != time(b) ? time(a) < time(b) : event(a) > event(b); });
  double latest = -HUGE_VAL;
  for (const Index row : order) {
    if (event(row) != 0) {
      if (events.empty() || time(row) != latest) {
        events.emplace_back();
        leaving.emplace_back();
      }
      latest = time(row);
      events.back().push_back(row);
      at[std::size_t(row)] = times() - 1;
    }
    last[std::size_t(row)] = times();
    if (times() > 0) leaving.back().push_back(row);
  }
}

namespace {

/// Sums over Efron's risk sets of powers of 1/S_l and l/m.
struct TiedRisk {
  double logs = 0, inverse = 0, later = 0, inverse_squares = 0, later_squares = 0, latest_squares = 0;

  TiedRisk(double at_risk, double tied, Index events) {
    for (Index l = 0; l < events; ++l) {
      const double part = double(l) / double(events), sum = at_risk - part * tied, one = 1 / sum;
      logs += std::log(sum);
      inverse += one;
      later += part * one;
      inverse_squares += one * one;
      later_squares += part * one * one;
      latest_squares += part * part * one * one;
    }
  }
};

RiskSum empty_sum(Index p) { return {0, Vector::Zero(p), Matrix::Zero(p, p)}; }

}  // namespace

CoxSums cox_sums(const RiskSets& risk, const Vector& weights, Index p, const AddRow& add) {
  CoxSums made{
      0, Vector::Zero(p), Matrix::Zero(p, p), Vector(risk.times()), Vector(risk.times()), Matrix(risk.times(), p)};
  RiskSum at_risk = empty_sum(p);
  for (Index k = risk.times() - 1; k >= 0; --k) {
    const std::vector<Index>& events = risk.events[std::size_t(k)];
    for (const Index row : risk.leaving[std::size_t(k)]) add(row, at_risk);
    RiskSum tied = empty_sum(p);
    double weight = 0;
    for (const Index row : events) {
      add(row, tied);
      weight += weights(row);
    }
    const double each = weight / double(events.size());
    const TiedRisk sums(at_risk.zero, tied.zero, Index(events.size()));
    const Vector one = sums.inverse * at_risk.one - sums.later * tied.one;
    made.log_risk += each * sums.logs;
    made.mean += each * one;
    const Matrix mixed = at_risk.one * tied.one.transpose();
    made.information += each * (sums.inverse * at_risk.two - sums.later * tied.two -
                                sums.inverse_squares * at_risk.one * at_risk.one.transpose() +
                                sums.later_squares * (mixed + mixed.transpose()) -
                                sums.latest_squares * tied.one * tied.one.transpose());
    made.hazard(k) = each * sums.inverse;
    made.own(k) = 1 - sums.later / sums.inverse;
    made.means.row(k) = one.transpose() / double(events.size());
  }
  return made;
}

Vector exposed(const RiskSets& risk, const Vector& own, const Vector& values) {
  Vector before(risk.times() + 1);
  before(0) = 0;
  for (Index k = 0; k < risk.times(); ++k) before(k + 1) = before(k) + values(k);
  Vector made(Index(risk.last.size()));
  for (Index i = 0; i < made.size(); ++i) {
    made(i) = before(risk.last[std::size_t(i)]);
    const Index k = risk.at[std::size_t(i)];
    if (k >= 0) made(i) -= (1 - own(k)) * values(k);
  }
  return made;
}

Vector exposure_sums(const RiskSets& risk, const Vector& own, const Vector& values) {
  Vector made(risk.times());
  double at_risk = 0;
  for (Index k = risk.times() - 1; k >= 0; --k) {
    for (const Index row : risk.leaving[std::size_t(k)]) at_risk += values(row);
    made(k) = at_risk;
    for (const Index row : risk.events[std::size_t(k)]) made(k) -= (1 - own(k)) * values(row);
  }
  return made;
}

Baseline baseline_of(const RiskSets& risk, const Vector& weights, const Vector& eta) {
  CoxSums sums =
      cox_sums(risk, weights, 0, [&](Index row, RiskSum& sum) { sum.zero += weights(row) * std::exp(eta(row)); });
  return {exposed(risk, sums.own, sums.hazard), std::move(sums.hazard), std::move(sums.own)};
}

// Predictors are taken relative to their largest, which leaves the likelihood as it is: no exponential overflows.
Sample cox_sample(const RiskSets& risk, const FamilyRows& rows, const Vector& weights, const Vector& w,
                  bool with_hessian) {
  const Index p = rows.design.cols();
  Vector eta = rows.design * w + rows.offset;
  eta.array() -= eta.maxCoeff();
  const CoxSums sums = cox_sums(risk, weights, p, [&](Index row, RiskSum& sum) {
    const double r = weights(row) * std::exp(eta(row));
    const auto x = rows.design.row(row).transpose();
    sum.zero += r;
    sum.one += r * x;
    if (with_hessian) sum.two += r * x * x.transpose();
  });
  Sample made;
  made.value = sums.log_risk;
  made.gradient = sums.mean;
  for (const std::vector<Index>& events : risk.events) {
    for (const Index row : events) {
      made.value -= weights(row) * eta(row);
      made.gradient -= weights(row) * rows.design.row(row).transpose();
    }
  }
  if (with_hessian) made.hessian = sums.information;
  return made;
}

FamilyFit fit_cox(const FamilyRows& rows, const Vector& event) {
  const RiskSets risk(rows.y, event);
  const RowOptimum found = most_likely(
      [&](const Vector& w, bool with_hessian) { return cox_sample(risk, rows, rows.weights, w, with_hessian); },
      event.dot(rows.weights), Vector::Zero(rows.design.cols()));
  FamilyFit fit;
  fit.parameters = found.theta;
  fit.covariance = balanced_inverse(found.information);
  fit.shape_errors.resize(0);
  fit.deviance = std::nan("");
  fit.log_likelihood = found.log_likelihood;
  fit.converged = found.converged;
  fit.unbounded = found.unbounded;
  fit.iterations = found.iterations;
  return fit;
}

double cox_objective(const FamilyRows& rows, const Vector& event, const Vector& w) {
  return cox_sample(RiskSets(rows.y, event), rows, rows.weights, w, false).value;
}

FamilyRows with_baseline(const FamilyRows& rows, const Vector& event, const Vector& w) {
  return as_counts(rows, event,
                   baseline_of(RiskSets(rows.y, event), rows.weights, rows.design * w + rows.offset).cumulative);
}

FamilyRows as_counts(const FamilyRows& rows, const Vector& event, const Vector& cumulative) {
  constexpr double least = 1e-300;  // whoever was censored before the first event was exposed to no hazard
  FamilyRows counts = rows;
  counts.y = event;
  counts.offset.array() += cumulative.array().max(least).log();
  return counts;
}

}  // namespace unshuffle
