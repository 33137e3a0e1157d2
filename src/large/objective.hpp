// The outer objective of tables in pieces: what the leader computes from passes over everyone's rows.
#pragma once

#include "large/shared_passes.hpp"
#include "transport/line_solver.hpp"
#include "unshuffle/objective/evaluator.hpp"

namespace unshuffle::large {

class LargeObjective {
 public:
  /// `response_parameters`: x has columns, so t moves with w. `options.epsilon` is ignored.
  LargeObjective(SharedPasses& passes, const LargeRows& rows, bool response_parameters,
                 const EvaluatorOptions& options);

  /// As Evaluator::evaluate: sums over all responses.
  [[nodiscard]] Evaluation evaluate(const Vector& w, double epsilon, bool with_hessian);
  [[nodiscard]] double largest_cost(const Vector& w);

  /// At the w of the last evaluation.
  [[nodiscard]] double matched_share();
  /// As SoftLinks::measured_error, over a few rows of either side.
  [[nodiscard]] double measured_error();

 private:
  /// Rows of all processes as points on the line.
  class PointsInPieces final : public transport::LinePoints {
   public:
    PointsInPieces(SharedPasses& passes, Side side, bool moves) : passes_(passes), side_(side), moves_(moves) {}

    void move_to(const Vector& w);
    [[nodiscard]] transport::Range range() const override { return layout_.range; }
    void compress(const transport::CompressionRule& rule) override;
    [[nodiscard]] const transport::CompressedMeasure& measure() const override { return measure_; }
    [[nodiscard]] bool exact() const override { return false; }
    [[nodiscard]] Vector interpolated_width() const override { return grid_.width_at(measure_.nodes().position); }

    [[nodiscard]] const transport::CellGrid& grid() const { return grid_; }
    [[nodiscard]] const SharedPasses::Grid& layout() const { return layout_; }
    [[nodiscard]] Side side() const { return side_; }
    [[nodiscard]] bool moves() const { return moves_; }
    [[nodiscard]] const Vector& w() const { return w_; }

   private:
    SharedPasses& passes_;
    Side side_;
    bool moves_;  // with w
    bool current_ = false;
    Vector w_;
    SharedPasses::Grid layout_;
    transport::CompressedMeasure measure_;
    transport::CellGrid grid_;
  };

  [[nodiscard]] PointsInPieces& points(Side side) { return side == Side::response ? t_ : s_; }

  SharedPasses& passes_;
  LargeRows rows_;
  EvaluatorOptions options_;
  transport::LineSolver solver_;
  PointsInPieces t_, s_;
};

}  // namespace unshuffle::large
