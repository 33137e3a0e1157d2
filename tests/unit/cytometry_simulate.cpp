#include "unshuffle/cytometry/simulate.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "unshuffle/core/error.hpp"

namespace unshuffle::cytometry {
namespace {

/// y = 2·a + noise; b is unrelated, c constant.
Table small_table(Index rows) {
  Table table{.source = "t.csv", .columns = {{.name = "a"}, {.name = "b"}, {.name = "c"}, {.name = "y"}}, .rows = rows};
  for (Index row = 0; row < rows; ++row) {
    const double a = std::sin(static_cast<double>(row) * 1.7);
    table.columns[0].numbers.push_back(a);
    table.columns[1].numbers.push_back(std::cos(static_cast<double>(row * row)));
    table.columns[2].numbers.push_back(5);
    table.columns[3].numbers.push_back(2 * a + 0.01 * std::cos(static_cast<double>(3 * row)));
  }
  return table;
}

TEST(Cytometry, drawn_events_follow_their_coefficients_once_linked_again) {
  const ShuffledEvents events = draw_events({.rows = 500, .features = 5, .noise = 0, .seed = 3});
  EXPECT_EQ(events.problem.responses(), 450);
  EXPECT_EQ(events.test.responses(), 50);
  for (Index row = 0; row < events.problem.responses(); ++row) {
    const Index partner = events.permutation[static_cast<std::size_t>(row)];
    const double predicted = events.problem.z.row(partner).dot(events.coefficients) + events.intercept;
    EXPECT_NEAR(events.problem.y(row, 0), predicted, 1e-9);
  }
  const Vector tested = (events.test.z * events.coefficients).array() + events.intercept;
  EXPECT_TRUE(tested.isApprox(events.test.y.col(0), 1e-9));
}

TEST(Cytometry, the_noise_is_the_share_of_variance_asked_for) {
  const ShuffledEvents events = draw_events({.rows = 20000, .features = 4, .noise = 0.25, .seed = 1});
  EXPECT_NEAR(least_squares_test_error(events, true), 0.25, 0.03);
  EXPECT_GT(least_squares_test_error(events, false), 0.9);
}

TEST(Cytometry, gates_hold_equal_mass_and_err_as_often_as_asked) {
  for (const Index gates : {3, 4, 5, 10}) {
    const ShuffledEvents events =
        draw_events({.rows = 2000, .features = 3, .gates = gates, .gate_error = 0.05, .seed = 2});
    const Problem& problem = events.problem;
    Index wrong = 0;
    for (std::size_t row = 0; row < events.permutation.size(); ++row) {
      const auto partner = static_cast<std::size_t>(events.permutation[row]);
      wrong += problem.response_groups[row] != problem.feature_groups[partner] ? 1 : 0;
    }
    EXPECT_GT(wrong, 0);
    EXPECT_LE(wrong, 90);  // 5 % of 1800, less those that met a label of their own gate.
    for (const auto* labels : {&problem.response_groups, &problem.feature_groups}) {
      for (Index gate = 1; gate <= gates; ++gate) {
        const auto count = static_cast<double>(std::count(labels->begin(), labels->end(), gate));
        EXPECT_NEAR(count, 1800.0 / static_cast<double>(gates), 1);
      }
    }
    for (std::size_t a = 0; a + 1 < 50; ++a) {  // Gates are in the order of the response.
      const auto row = static_cast<Index>(a);
      if (problem.response_groups[a] < problem.response_groups[a + 1]) {
        EXPECT_LE(problem.y(row, 0), problem.y(row + 1, 0));
      }
    }
  }
}

TEST(Cytometry, without_gate_error_no_cell_is_in_a_wrong_gate) {
  const ShuffledEvents events = draw_events({.rows = 300, .features = 3, .gates = 4, .gate_error = 0, .seed = 2});
  for (std::size_t row = 0; row < events.permutation.size(); ++row) {
    const auto partner = static_cast<std::size_t>(events.permutation[row]);
    EXPECT_EQ(events.problem.response_groups[row], events.problem.feature_groups[partner]);
  }
}

TEST(Cytometry, of_a_table_the_most_significant_columns_are_kept_and_constant_ones_left_out) {
  const ShuffledEvents events = shuffle_events(small_table(200), "y", {}, {.features = 1});
  EXPECT_EQ(events.problem.z_names, (std::vector<std::string>{"a"}));
  EXPECT_EQ(events.problem.responses() + events.test.responses(), 200);
  ASSERT_EQ(events.notes.size(), 1U);
  EXPECT_NE(events.notes[0].find("\"c\""), std::string::npos);
  EXPECT_LT(least_squares_test_error(events, true), 1e-3);
}

TEST(Cytometry, training_columns_are_normalised) {
  const ShuffledEvents events = shuffle_events(small_table(200), "y", {"a", "b"}, {});
  EXPECT_NEAR(events.problem.y.mean(), 0, 1e-12);
  EXPECT_NEAR(events.problem.z.colwise().squaredNorm().minCoeff(), 180, 1e-9);
}

TEST(Cytometry, impossible_wishes_are_refused) {
  const Table table = small_table(50);
  EXPECT_THROW((void)shuffle_events(table, "y", {}, {.rows = 51}), InvalidInput);
  EXPECT_THROW((void)shuffle_events(table, "y", {"y"}, {}), InvalidInput);
  EXPECT_THROW((void)shuffle_events(table, "magic", {}, {}), BadData);
  EXPECT_THROW((void)shuffle_events(table, "c", {}, {}), BadData);
  EXPECT_THROW((void)shuffle_events(table, "y", {"c"}, {}), BadData);
  EXPECT_THROW((void)draw_events({.rows = 3}), InvalidInput);
  EXPECT_THROW((void)draw_events({.noise = 1}), InvalidInput);
  EXPECT_THROW((void)draw_events({.gates = 1}), InvalidInput);
  EXPECT_THROW((void)draw_events({.gate_error = 1.5}), InvalidInput);
}

TEST(Cytometry, same_seed_same_events) {
  const ShuffledEvents one = draw_events({.rows = 50, .seed = 9});
  const ShuffledEvents two = draw_events({.rows = 50, .seed = 9});
  EXPECT_EQ(one.problem.z, two.problem.z);
  EXPECT_EQ(one.permutation, two.permutation);
  EXPECT_NE(one.permutation, draw_events({.rows = 50, .seed = 10}).permutation);
}

}  // namespace
}  // namespace unshuffle::cytometry
