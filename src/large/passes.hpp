// What is computed in one pass over the rows of this process. All results can be added or concatenated over processes.
#pragma once

#include <cstdint>
#include <vector>

#include "likelihood/kernel_density.hpp"
#include "likelihood/mixture_sums.hpp"
#include "transport/cell_grid.hpp"
#include "unshuffle/large/pieces.hpp"
#include "unshuffle/model/model.hpp"

namespace unshuffle::large {

/// The tables and how many rows they have over all processes.
struct LargeRows {
  const Pieces* responses;  ///< y in the first column, then x.
  const Pieces* features;   ///< z.
  double response_rows = 0;
  double feature_rows = 0;

  [[nodiscard]] const Pieces& of(Side side) const { return side == Side::response ? *responses : *features; }
  [[nodiscard]] double rows(Side side) const { return side == Side::response ? response_rows : feature_rows; }
};

/// A measure represented by weighted points that integrate smooth functions alike, and its range.
struct Atoms {
  std::vector<double> position, weight;
  transport::Range range{0, 0};

  [[nodiscard]] transport::CompressedMeasure compressed(const transport::CompressionRule& rule) const;
};

/// The contribution of one side to the objective, per unit of mass of the whole side.
struct Derivatives {
  Vector gradient;
  Matrix hessian;  ///< Without the plan's reaction. Empty unless asked for.
  Matrix moments;  ///< Of the weighted Jacobian, see CellGrid. Empty unless asked for.
};

/// Series on a CellGrid that a pass evaluates at every row.
struct Functions {
  Matrix gradient;
  Matrix slope;  ///< Empty: no Hessian is wanted.
};

/// A sample of links is summed in full over the rows of one side: Σ_j exp(v_j - (t - s_j)²/ε)/m for each target t.
struct Targets {
  Vector position;
  double epsilon = 0;
};

/// Rows of equal number are linked, or not, as in likelihood/mixture.cpp.
struct MixtureState : LinkBelief {
  TabulatedDensity other;  ///< q.
};

class Passes {
 public:
  /// All must outlive it.
  Passes(const LargeRows& rows, const Model& bound);

  [[nodiscard]] Atoms compress(Side side, const Vector& w, const transport::CompressionRule& rule) const;
  [[nodiscard]] Derivatives differentiate(Side side, const Vector& w, const transport::CellGrid& grid,
                                          const Functions& functions) const;
  /// Mean of min(1, exp(log_ratio)) over the side's rows of all processes.
  [[nodiscard]] double matched(Side side, const Vector& w, const transport::CellGrid& grid,
                               const Matrix& log_ratio) const;
  [[nodiscard]] Vector partner_sums(Side side, const Vector& w, const transport::CellGrid& grid,
                                    const Matrix& potential, const Targets& targets) const;
  /// Both sides must be cut into pieces alike.
  [[nodiscard]] MixtureSums mixture_sums(const Vector& w, const MixtureState& state) const;

 private:
  struct Piece {
    Matrix rows;  // through the model's basis
    Vector position;
  };
  [[nodiscard]] Piece piece(Side side, std::size_t k, const Vector& w, Matrix& buffer) const;
  [[nodiscard]] std::size_t lanes(Side side) const;
  /// Calls body(lane, piece) for the pieces of every lane in turn, lanes in parallel.
  template <class Body>
  void for_each_piece(Side side, const Vector& w, const Body& body) const;

  LargeRows rows_;
  const Model& bound_;
  const AdditiveModel& sum_;
};

}  // namespace unshuffle::large
