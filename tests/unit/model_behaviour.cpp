// Names, layout, splines and the way from a stored fit back to a model.
#include <gtest/gtest.h>

#include <Eigen/QR>
#include <cmath>
#include <random>

#include "unshuffle/core/error.hpp"
#include "unshuffle/model/linear.hpp"
#include "unshuffle/model/registry.hpp"
#include "unshuffle/model/sine.hpp"
#include "unshuffle/model/spline.hpp"

namespace unshuffle {
namespace {

Problem named_problem() {
  std::mt19937_64 engine(1);
  std::normal_distribution<double> normal;
  const auto draw = [&](Index rows, Index cols) {
    return Matrix(Matrix::NullaryExpr(rows, cols, [&] { return normal(engine); }));
  };
  Problem problem;
  problem.y = draw(30, 2);
  problem.x = draw(30, 1);
  problem.z = draw(25, 2);
  problem.y_names = {"u", "v"};
  problem.x_names = {"age"};
  problem.z_names = {"dose", "time"};
  return problem;
}

TEST(Linear, names_its_parameters_intercept_first_then_x_then_z_output_by_output) {
  Problem problem = named_problem();
  EXPECT_EQ(Linear{}.bound_to(problem)->parameter_names(),
            (std::vector<std::string>{"u:intercept", "u:age", "u:dose", "u:time", "v:intercept", "v:age", "v:dose",
                                      "v:time"}));
  problem.y = Matrix(problem.y.leftCols(1));
  problem.y_names = {"u"};
  EXPECT_EQ(Linear{}.bound_to(problem)->parameter_names(),
            (std::vector<std::string>{"intercept", "age", "dose", "time"}));
  EXPECT_EQ(Linear{false}.bound_to(problem)->parameter_names(), (std::vector<std::string>{"age", "dose", "time"}));
}

TEST(Linear, predicts_the_intercept_plus_both_products) {
  const Problem problem = named_problem();
  const auto model = Linear{}.bound_to(problem);
  Vector w(8);
  w << 1, 2, 3, 4, 5, 6, 7, 8;
  const Matrix x = problem.x.topRows(25);
  const Matrix predicted = predict_linked(*model, x, problem.z, w);
  const Vector second = 5.0 + (6 * x.col(0) + 7 * problem.z.col(0) + 8 * problem.z.col(1)).array();
  EXPECT_LT((predicted.col(1) - second).norm(), 1e-12);
}

TEST(Linear, works_without_x_columns) {
  Problem problem = named_problem();
  problem.x.resize(0, 0);
  problem.x_names.clear();
  const auto model = Linear{}.bound_to(problem);
  EXPECT_EQ(model->parameters(), 6);
  EXPECT_EQ(predict_linked(*model, problem.x, problem.z, Vector::Ones(6)).rows(), 25);
}

TEST(Sine, refuses_several_outputs_in_words) {
  try {
    (void)Sine{}.bound_to(named_problem());
    FAIL();
  } catch (const InvalidInput& error) {
    EXPECT_STREQ(error.what(), "model sine has one output; 2 response columns were given");
  }
}

TEST(Spline, basis_columns_are_centred_and_reproduce_cubics_exactly) {
  const Vector t = Vector::LinSpaced(200, -2.0, 3.0);
  const SplineColumn column(t, 5, "t");
  const Matrix basis = column.expand(t);
  EXPECT_EQ(basis.cols(), 8);
  EXPECT_LT(basis.colwise().mean().cwiseAbs().maxCoeff(), 1e-14);
  Matrix design(200, 9);
  design << Vector::Ones(200), basis;
  const Vector cubic = 1 + 2 * t.array() - t.array().square() + 0.5 * t.array().cube();
  const Vector w = design.colPivHouseholderQr().solve(cubic);
  EXPECT_LT((design * w - cubic).norm(), 1e-11);
}

TEST(Spline, extrapolates_along_a_straight_line) {
  const Vector t = Vector::LinSpaced(50, 0.0, 1.0);
  const SplineColumn column(t, 3, "t");
  for (const double edge : {0.0, 1.0}) {
    const double away = edge == 0.0 ? -1.0 : 1.0;
    const Vector at = (Vector(4) << edge, edge + 1e-6 * away, edge + away, edge + 2 * away).finished();
    const Matrix basis = column.expand(at);
    EXPECT_LT((basis.row(3) - 2 * basis.row(2) + basis.row(0)).norm(), 1e-10);
    EXPECT_LT((1e6 * (basis.row(1) - basis.row(0)) - (basis.row(2) - basis.row(0))).norm(), 1e-6);
  }
}

TEST(Spline, ties_make_fewer_knots_and_a_constant_column_is_refused_by_name) {
  Vector tied = Vector::Zero(100);
  tied.tail(10).setLinSpaced(0.5, 1.0);
  EXPECT_LT(SplineColumn(tied, 9, "t").functions(), 12);
  EXPECT_GE(SplineColumn(tied, 9, "t").functions(), 3);
  try {
    (void)SplineColumn(Vector::Ones(10), 3, "income");
    FAIL();
  } catch (const BadData& error) {
    EXPECT_NE(std::string(error.what()).find("income"), std::string::npos);
  }
}

TEST(Registry, a_restored_model_predicts_the_same_on_new_tables) {
  Problem problem = named_problem();
  problem.y = Matrix(problem.y.leftCols(1));
  problem.y_names = {"u"};
  std::mt19937_64 engine(2);
  std::normal_distribution<double> normal;
  const Matrix new_x = Matrix::NullaryExpr(7, 1, [&] { return 2 * normal(engine); });
  const Matrix new_z = Matrix::NullaryExpr(7, 2, [&] { return 2 * normal(engine); });
  for (const std::string spec : {"linear", "sine", "spline:4"}) {
    const auto bound = make_model(spec, true)->bound_to(problem);
    EXPECT_EQ(bound->name(), spec);
    const auto restored =
        restore_model(spec, true, problem.x_names, problem.z_names, problem.y_names, model_state(*bound));
    EXPECT_EQ(restored->parameter_names(), bound->parameter_names());
    const Vector w = Vector::LinSpaced(bound->parameters(), -1, 1);
    EXPECT_EQ(predict_linked(*bound, new_x, new_z, w), predict_linked(*restored, new_x, new_z, w)) << spec;
  }
}

TEST(Registry, refuses_unknown_models_naming_the_value_and_what_is_expected) {
  for (const std::string spec : {"", "Linear", "spline", "spline:", "spline:x", "spline:-1", "spline:3x"}) {
    try {
      (void)make_model(spec, true);
      FAIL() << spec;
    } catch (const InvalidInput& error) {
      EXPECT_NE(std::string(error.what()).find("\"" + spec + "\" must be linear, sine or spline:K"), std::string::npos);
    }
  }
  EXPECT_THROW((void)restore_model("spline:3", true, {}, {"z"}, {"y"}, {5, 1, 2}), BadData);
}

}  // namespace
}  // namespace unshuffle
