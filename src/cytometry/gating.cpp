#include "unshuffle/cytometry/gating.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "unshuffle/core/error.hpp"

namespace unshuffle::cytometry {
namespace {

/// The values that gates use, each computed once.
class Values {
 public:
  Values(const GateSet& gates, const FcsFile& file) : gates_(gates), file_(file) {}

  const Vector& of(const Dimension& dimension) {
    const auto [found, added] = cache_.try_emplace(dimension);
    if (added) found->second = computed(dimension);
    return found->second;
  }

 private:
  Vector computed(const Dimension& dimension) {
    Vector values;
    if (const auto* name = std::get_if<std::string>(&dimension.of)) {
      values = channel(*name, dimension.compensation);
    } else {
      const Ratio& ratio = std::get<Ratio>(dimension.of);
      values = ratio.a * (channel(ratio.numerator, dimension.compensation).array() - ratio.b) /
               (channel(ratio.denominator, dimension.compensation).array() - ratio.c);
    }
    if (dimension.scale.empty()) return values;
    const BoundedScale& scale = gates_.scales.at(dimension.scale);
    for (double& value : values) {
      value = scaled(scale.scale, value);
      if (scale.lowest && value < *scale.lowest) value = *scale.lowest;
      if (scale.highest && value > *scale.highest) value = *scale.highest;
    }
    return values;
  }

  /// A channel not in the matrix needs no compensation.
  Vector channel(const std::string& name, const std::string& compensation) {
    if (const Spillover* spillover = matrix(compensation)) {
      const auto& dyes = spillover->dyes;
      const auto found = std::find(dyes.begin(), dyes.end(), name);
      if (found != dyes.end()) return signals(compensation, *spillover).col(found - dyes.begin());
    }
    return file_.events.col(file_.channel(name));
  }

  const Spillover* matrix(const std::string& compensation) {
    if (compensation == "uncompensated") return nullptr;
    if (compensation != "FCS") return &gates_.matrices.at(compensation);
    if (!looked_for_own_) own_ = spillover_of(file_);
    looked_for_own_ = true;
    return own_ ? &*own_ : nullptr;
  }

  const Matrix& signals(const std::string& compensation, const Spillover& spillover) {
    const auto [found, added] = signals_.try_emplace(compensation);
    if (added) found->second = unmixed(file_, spillover);
    return found->second;
  }

  const GateSet& gates_;
  const FcsFile& file_;
  std::map<Dimension, Vector> cache_;
  std::map<std::string, Matrix> signals_;
  std::optional<Spillover> own_;
  bool looked_for_own_ = false;
};

using Inside = std::vector<bool>;

Inside inside(const RectangleGate& gate, Values& values, Index events) {
  Inside result(static_cast<std::size_t>(events), true);
  for (const RectangleGate::Side& side : gate.sides) {
    const Vector& at = values.of(side.dimension);
    for (std::size_t event = 0; event < result.size(); ++event) {
      const double value = at[static_cast<Index>(event)];
      const bool within =
          !std::isnan(value) && !(side.lowest && value < *side.lowest) && !(side.highest && value >= *side.highest);
      result[event] = result[event] && within;
    }
  }
  return result;
}

/// a·b - c·d after Kahan: zero whenever the products are equal, which the plain expression is not where the compiler
/// fuses one of them with the difference.
double difference_of_products(double a, double b, double c, double d) {
  const double product = c * d;
  const double lost = std::fma(-c, d, product);
  return std::fma(a, b, -product) + lost;
}

/// Even-odd: a ray to the right crosses the outline an odd number of times; each edge holds its lower end but not its
/// upper one, so that a vertex counts once. A point on an edge (cross product 0, within its box) is inside.
bool in_polygon(double x, double y, const Matrix& vertices) {
  bool odd = false;
  for (Index at = 0, before = vertices.rows() - 1; at < vertices.rows(); before = at++) {
    const double x1 = vertices(before, 0);
    const double y1 = vertices(before, 1);
    const double x2 = vertices(at, 0);
    const double y2 = vertices(at, 1);
    const double cross = difference_of_products(x2 - x1, y - y1, y2 - y1, x - x1);
    const bool in_box =
        std::min(x1, x2) <= x && x <= std::max(x1, x2) && std::min(y1, y2) <= y && y <= std::max(y1, y2);
    if (cross == 0 && in_box) return true;
    const bool straddles = (y1 <= y) != (y2 <= y);
    if (straddles && (y2 > y1 ? cross > 0 : cross < 0)) odd = !odd;
  }
  return odd;
}

Inside inside(const PolygonGate& gate, Values& values, Index events) {
  const Vector& x = values.of(gate.horizontal);
  const Vector& y = values.of(gate.vertical);
  Inside result(static_cast<std::size_t>(events));
  for (Index event = 0; event < events; ++event) {
    result[static_cast<std::size_t>(event)] = in_polygon(x[event], y[event], gate.vertices);
  }
  return result;
}

Inside inside(const EllipsoidGate& gate, Values& values, Index events) {
  Matrix centred(static_cast<Index>(gate.dimensions.size()), events);
  for (Index at = 0; at < centred.rows(); ++at) {
    centred.row(at) = values.of(gate.dimensions[static_cast<std::size_t>(at)]).transpose().array() - gate.mean[at];
  }
  const Vector distances = centred.cwiseProduct(gate.precision * centred).colwise().sum();
  Inside result(static_cast<std::size_t>(events));
  for (Index event = 0; event < events; ++event) {
    result[static_cast<std::size_t>(event)] = distances[event] <= gate.distance_square;
  }
  return result;
}

Inside inside(const BooleanGate& gate, const Membership& done, Index events) {
  const bool all = gate.operation == BooleanGate::Operation::conjunction;
  Inside result(static_cast<std::size_t>(events), all);
  for (const BooleanGate::Operand& operand : gate.operands) {
    const Inside& other = done[operand.gate];
    for (std::size_t event = 0; event < result.size(); ++event) {
      const bool holds = other[event] != operand.complement;
      result[event] = all ? result[event] && holds : result[event] || holds;
    }
  }
  if (gate.operation == BooleanGate::Operation::negation) result.flip();
  return result;
}

}  // namespace

Membership membership(const GateSet& gates, const FcsFile& file) {
  Values values(gates, file);
  const Index events = file.events.rows();
  Membership result(gates.gates.size());
  for (const std::size_t at : gates.sequence) {
    const Gate& gate = gates.gates[at];
    if (const auto* combined = std::get_if<BooleanGate>(&gate.shape)) {
      result[at] = inside(*combined, result, events);
    } else if (const auto* rectangle = std::get_if<RectangleGate>(&gate.shape)) {
      result[at] = inside(*rectangle, values, events);
    } else if (const auto* polygon = std::get_if<PolygonGate>(&gate.shape)) {
      result[at] = inside(*polygon, values, events);
    } else {
      result[at] = inside(std::get<EllipsoidGate>(gate.shape), values, events);
    }
    if (!gate.parent) continue;
    const Inside& parent = result[*gate.parent];
    for (std::size_t event = 0; event < parent.size(); ++event) result[at][event] = result[at][event] && parent[event];
  }
  return result;
}

std::vector<std::string> gate_patterns(const GateSet& gates, const Membership& membership) {
  const std::size_t events = membership.empty() ? 0 : membership.front().size();
  std::vector<std::string> patterns(events);
  for (std::size_t gate = 0; gate < membership.size(); ++gate) {
    for (std::size_t event = 0; event < events; ++event) {
      if (!membership[gate][event]) continue;
      if (!patterns[event].empty()) patterns[event] += '+';
      patterns[event] += gates.gates[gate].id;
    }
  }
  for (std::string& pattern : patterns) {
    if (pattern.empty()) pattern = "none";
  }
  return patterns;
}

std::vector<Index> equal_mass_gates(const Vector& values, Index count) {
  if (count < 2 || count > values.size()) {
    throw InvalidInput(
        fmt::format("equal-mass gates = {} must be at least 2 and at most the {} rows", count, values.size()));
  }
  std::vector<Index> order(static_cast<std::size_t>(values.size()));
  std::iota(order.begin(), order.end(), Index{0});
  std::stable_sort(order.begin(), order.end(), [&](Index a, Index b) { return values[a] < values[b]; });
  std::vector<Index> gates(order.size());
  for (std::size_t rank = 0; rank < order.size(); ++rank) {
    gates[static_cast<std::size_t>(order[rank])] = 1 + static_cast<Index>(rank) * count / values.size();
  }
  return gates;
}

}  // namespace unshuffle::cytometry
