// Where numbers end: likelihoods that are not finite, responses that repeat, orders that chance explains.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "core/checkpoint.hpp"
#include "core/random.hpp"
#include "likelihood/search.hpp"
#include "support/complaint.hpp"
#include "unshuffle/core/error.hpp"
#include "unshuffle/fitted/fitted.hpp"
#include "unshuffle/model/linear.hpp"

namespace unshuffle {
namespace {

/// y = 1 + 2 z₁ - z₂ + noise.
Problem straight_rows(Index rows, std::uint64_t seed) {
  RandomStream random(seed, 0);
  Problem problem;
  problem.z = Matrix::NullaryExpr(rows, 2, [&] { return random.normal(); });
  problem.y = Matrix::NullaryExpr(rows, 1, [&] { return 1 + 0.3 * random.normal(); });
  problem.y += 2 * problem.z.col(0) - problem.z.col(1);
  return problem;
}

/// The logarithm of negative numbers: no coefficient gives a prediction.
class Nowhere final : public AdditiveModel {
 public:
  [[nodiscard]] std::string name() const override { return "nowhere"; }
  [[nodiscard]] std::unique_ptr<Model> bound_to(const Problem&) const override { return std::make_unique<Nowhere>(); }
  [[nodiscard]] Index parameters() const override { return 1; }
  [[nodiscard]] std::vector<std::string> parameter_names() const override { return {"a"}; }
  [[nodiscard]] Matrix part(Side side, const MatrixRef& rows, const VectorRef&) const override {
    return Matrix::Constant(rows.rows(), 1, side == Side::feature ? std::nan("") : 0.0);
  }
  void pull_back_part(Side, const MatrixRef&, const VectorRef&, const MatrixRef&, Vector& gradient) const override {
    gradient.setConstant(std::nan(""));
  }
  [[nodiscard]] Matrix jacobian_part(Side, const MatrixRef& rows, const VectorRef&) const override {
    return Matrix::Constant(rows.rows(), 1, std::nan(""));
  }
};

TEST(Search, says_so_where_no_start_leads_to_a_finite_likelihood) {
  const Problem problem = completed(straight_rows(40, 1));
  for (const int starts : {0, 1}) {
    SearchOptions options;
    options.starts.starts = starts;
    const std::string said = complaint([&] { (void)search_optima(problem, Nowhere{}, options, unshuffle::Run{}); });
    EXPECT_NE(said.find("not a finite number"), std::string::npos) << said;
  }
  EXPECT_THROW((void)fit(problem, Nowhere{}, Entropic{}), BadData);
}

}  // namespace
}  // namespace unshuffle
