// Gates: regions of channel space that select cells of a kind. Read from Gating-ML 2.0.
#pragma once

#include <compare>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "unshuffle/core/export.hpp"
#include "unshuffle/cytometry/compensation.hpp"
#include "unshuffle/cytometry/fcs.hpp"
#include "unshuffle/cytometry/transform.hpp"

namespace unshuffle {
namespace cytometry UNSHUFFLE_EXPORT {

/// A·(x - B)/(y - C) of two channels.
struct Ratio {
  std::string numerator;
  std::string denominator;
  double a = 1;
  double b = 0;
  double c = 0;

  auto operator<=>(const Ratio&) const = default;
};

/// A scale that a gate's dimension refers to; values beyond the bounds are clamped.
struct BoundedScale {
  Scale scale;
  std::optional<double> lowest{};
  std::optional<double> highest{};
};

/// A dimension of a gate: a channel (or a ratio of two), compensated and on a scale.
struct Dimension {
  std::variant<std::string, Ratio> of;
  std::string compensation = "uncompensated";  ///< uncompensated, FCS (the file's own matrix) or a matrix by its id.
  std::string scale{};                         ///< Id of a scale; empty: linear.

  auto operator<=>(const Dimension&) const = default;
};

/// lowest ≤ value < highest in every dimension; also ranges (one dimension) and quadrants.
struct RectangleGate {
  struct Side {
    Dimension dimension;
    std::optional<double> lowest{};
    std::optional<double> highest{};
  };
  std::vector<Side> sides;
};

/// Inside by the even-odd rule; the outline belongs to the gate.
struct PolygonGate {
  Dimension horizontal;
  Dimension vertical;
  Matrix vertices;  ///< One row each.
};

/// (v - mean)ᵀ·precision·(v - mean) ≤ distance_square.
struct EllipsoidGate {
  std::vector<Dimension> dimensions;
  Vector mean;
  Matrix precision;  ///< Inverse of the covariance.
  double distance_square;
};

struct BooleanGate {
  enum class Operation { conjunction, disjunction, negation };
  struct Operand {
    std::size_t gate;  ///< Position in the gate set.
    bool complement;
  };
  Operation operation;
  std::vector<Operand> operands;
};

struct Gate {
  std::string id;
  std::optional<std::size_t> parent;  ///< Only events of the parent can be inside.
  std::variant<RectangleGate, PolygonGate, EllipsoidGate, BooleanGate> shape;
};

struct GateSet {
  std::string source;                 ///< File name for messages.
  std::vector<Gate> gates;            ///< In file order; a quadrant gate's quadrants are gates of their own.
  std::vector<std::size_t> sequence;  ///< Positions in an order in which every gate follows those it needs.
  std::map<std::string, BoundedScale> scales;
  std::map<std::string, Spillover> matrices;
};

/// Rectangle, polygon, ellipsoid, quadrant and Boolean gates, parents, scales (flin, flog, fasinh, logicle, hyperlog,
/// fratio) and spectrum matrices. Throws BadData naming file, line, gate and value. External entities and document
/// types are ignored.
[[nodiscard]] GateSet parse_gating_ml(const std::string& content, const std::string& source);
[[nodiscard]] GateSet read_gating_ml(const std::string& path);

/// Which events are in which gates: inside[gate][event], gates in file order.
using Membership = std::vector<std::vector<bool>>;

/// Throws BadData when a gate needs a channel that the file does not have.
[[nodiscard]] Membership membership(const GateSet& gates, const FcsFile& file);

/// For each event the ids of the gates it is in, joined by +, or "none".
[[nodiscard]] std::vector<std::string> gate_patterns(const GateSet& gates, const Membership& membership);

/// 1 … count by rank of the value, with sizes as equal as possible; equal values in order of their rows.
[[nodiscard]] std::vector<Index> equal_mass_gates(const Vector& values, Index count);

}  // namespace cytometry
}  // namespace unshuffle
