#include "unshuffle/transport/sparse_plan.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "oracle/transport_support.hpp"
#include "support/complaint.hpp"

namespace unshuffle::transport {
namespace {

using testing::Draw;

TEST(SparsePlan, keeps_the_largest_entries_and_nearly_all_mass) {
  Draw draw(2651);
  for (const double left_out : {0.0, 1e-12, 1e-9, 1e-3, 0.3}) {
    const Matrix plan = (4 * draw.normals(40, 30).array()).exp().matrix();
    const SparsePlan kept = sparse(plan, left_out);
    double mass = 0, least = plan.maxCoeff();
    Matrix again = Matrix::Zero(40, 30);
    for (std::size_t k = 0; k < kept.mass.size(); ++k) {
      EXPECT_EQ(kept.mass[k], plan(kept.rows[k], kept.columns[k]));
      again(kept.rows[k], kept.columns[k]) = kept.mass[k];
      mass += kept.mass[k];
      least = std::min(least, kept.mass[k]);
    }
    const Matrix rest = plan - again;
    EXPECT_NEAR(kept.left_out, rest.sum(), 1e-12 * plan.sum());
    EXPECT_LE(rest.sum(), (left_out + 1e-15) * plan.sum());
    EXPECT_LT(rest.maxCoeff(), least);
    // One class of entries more would be too much.
    const double in_class =
        (again.array() > 0 && again.array() <= least * (1 + 1.0 / 128)).select(again.array(), 0).sum();
    EXPECT_GT(rest.sum() + in_class, left_out * plan.sum());
  }
}

TEST(SparsePlan, has_no_entries_that_are_zero) {
  Matrix plan = Matrix::Zero(3, 3);
  plan.diagonal().setConstant(1.0 / 3);
  const SparsePlan kept = sparse(plan);
  EXPECT_EQ(kept.rows, (std::vector<Index>{0, 1, 2}));
  EXPECT_EQ(kept.columns, (std::vector<Index>{0, 1, 2}));
  EXPECT_EQ(kept.left_out, 0);
  EXPECT_TRUE(sparse(Matrix::Zero(2, 2)).mass.empty());
}

TEST(SparsePlan, says_what_is_wrong) {
  Matrix plan = Matrix::Ones(2, 2);
  EXPECT_EQ(complaint([&] { (void)sparse(plan, 1); }),
            "left_out = 1 must be a share of the mass, at least 0 and below 1");
  plan(1, 0) = -1;
  EXPECT_EQ(complaint([&] { (void)sparse(plan); }),
            "plan: row 1, column 0 holds -1; a plan has finite entries of at least 0");
}

}  // namespace
}  // namespace unshuffle::transport
