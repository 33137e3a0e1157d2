// Shared by the transport tests: reproducible random problems, sums written out directly, and the worst case seen.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "unshuffle/core/types.hpp"
#include "unshuffle/transport/marginal.hpp"

namespace unshuffle::transport::testing {

/// The same numbers on every platform: nothing of std's distributions is used.
class Draw {
 public:
  explicit Draw(std::uint64_t seed) : engine_(seed) {}

  double uniform() { return (static_cast<double>(engine_() >> 11) + 0.5) * 0x1p-53; }
  double uniform(double low, double high) { return low + (high - low) * uniform(); }
  double log_uniform(double low, double high) { return std::exp(uniform(std::log(low), std::log(high))); }
  double normal() { return std::sqrt(-2 * std::log(uniform())) * std::cos(2 * M_PI * uniform()); }
  Index integer(Index low, Index high) {
    return low + static_cast<Index>(engine_() % static_cast<std::uint64_t>(high - low + 1));
  }
  bool chance(double probability) { return uniform() < probability; }
  Vector normals(Index size) {
    return Vector::NullaryExpr(size, [&] { return normal(); });
  }
  Matrix normals(Index rows, Index cols) {
    return Matrix::NullaryExpr(rows, cols, [&] { return normal(); });
  }
  /// Positive, summing to one.
  Vector weights(Index size) {
    Vector w = Vector::NullaryExpr(size, [&] { return uniform(0.2, 2); });
    return w / w.sum();
  }
  std::vector<Index> permutation(Index size) {
    std::vector<Index> order(static_cast<std::size_t>(size));
    std::iota(order.begin(), order.end(), Index{0});
    for (Index k = size - 1; k > 0; --k)
      std::swap(order[static_cast<std::size_t>(k)], order[static_cast<std::size_t>(integer(0, k))]);
    return order;
  }

 private:
  std::mt19937_64 engine_;
};

inline Vector equal_weights(Index size) { return Vector::Constant(size, 1.0 / static_cast<double>(size)); }

inline std::string name_of(const MarginalPolicy& policy) {
  const std::array<std::string, 5> names{"exact", "ball", "KL", "free", "sampled"};
  const auto* sampled = std::get_if<Sampled>(&policy);
  return names[policy.index()] + (sampled != nullptr ? std::to_string(sampled->ratio).substr(0, 3) : std::string());
}
inline std::string name_of(Objective objective) { return objective == Objective::transport ? "transport" : "entropic"; }

/// All pairs that go together, with numbers that fit costs of the given size.
inline std::vector<std::pair<MarginalPolicy, MarginalPolicy>> policy_pairs(double cost_scale) {
  const std::array<MarginalPolicy, 4> rows{Exact{}, Ball{.spread = 0.1}, KullbackLeibler{0.5 * cost_scale}, Free{}};
  const std::array<MarginalPolicy, 4> columns{Exact{}, Ball{.spread = 0.2, .entropy = 0.3},
                                              KullbackLeibler{2 * cost_scale}, Free{}};
  std::vector<std::pair<MarginalPolicy, MarginalPolicy>> pairs;
  for (const auto& r : rows)
    for (const auto& c : columns) pairs.emplace_back(r, c);
  pairs.insert(pairs.end(),
               {{Sampled{1.5}, Exact{}}, {Sampled{0.7}, Exact{}}, {Exact{}, Sampled{3}}, {Exact{}, Sampled{0.4}}});
  return pairs;
}

/// In units of ε.
inline double sampled_penalty(const Sampled& policy, const Vector& weights, const Vector& sums) {
  const auto times_log = [](double x, double of) { return x > 0 ? x * std::log(of) : 0.0; };
  double total = 0;
  for (Index i = 0; i < sums.size(); ++i) {
    if (weights[i] == 0) continue;
    const double r = sums[i] / weights[i], beyond = std::abs(r - policy.ratio), share = std::abs(policy.ratio - 1);
    total += weights[i] * (times_log(beyond, beyond / share) - (policy.ratio < 1 ? times_log(r, r) : 1 - r));
  }
  return total;
}

/// R(μ̄) in the unit of the cost; rows of zero weight hold nothing and pay nothing.
inline double penalty_of(const MarginalPolicy& policy, const Vector& weights, const Vector& sums, double epsilon) {
  if (const auto* sampled = std::get_if<Sampled>(&policy)) return epsilon * sampled_penalty(*sampled, weights, sums);
  double strength = 0;
  if (const auto* kl = std::get_if<KullbackLeibler>(&policy)) strength = kl->strength;
  if (const auto* ball = std::get_if<Ball>(&policy)) strength = ball->entropy * epsilon;
  double total = 0;
  for (Index i = 0; i < sums.size(); ++i) {
    if (weights[i] == 0) continue;
    const double r = sums[i] / weights[i];
    total += weights[i] * ((r > 0 ? r * std::log(r) : 0) - r + 1);
  }
  return strength == 0 ? 0 : strength * total;
}

/// The largest error of a property test and where it was.
class Worst {
 public:
  explicit Worst(std::string what) : what_(std::move(what)) {}
  Worst(const Worst&) = delete;
  Worst& operator=(const Worst&) = delete;
  ~Worst() { std::printf("[  worst   ] %s: %.2e  %s\n", what_.c_str(), error_, where_.c_str()); }

  void see(double error, const std::string& where) {
    if (error > error_ || (std::isnan(error) && !std::isnan(error_))) {  // a NaN is the worst of all
      error_ = error;
      where_ = where;
    }
  }

 private:
  std::string what_, where_;
  double error_ = 0;
};

}  // namespace unshuffle::transport::testing
