#include "unshuffle/tables/tables_to_problem.hpp"

#include <gtest/gtest.h>

#include "unshuffle/core/error.hpp"

namespace unshuffle {
namespace {

using Names = std::vector<std::string>;

Table responses() { return parse_csv("id,x1,y,w,city\na,1,10,1,A\nb,2,20,0,B\nc,3,30,2,A\n", "r.csv"); }
Table features() { return parse_csv("z1,z2,town\n1,4,A\n2,5,B\n3,7,C\n4,8,A\n", "f.csv"); }

template <class Kind>
std::string complaint(const Table& left, const Table& right, const ColumnChoice& columns) {
  try {
    (void)tables_to_problem(left, right, columns);
  } catch (const Kind& error) {
    return error.what();
  }
  return "";
}

TEST(TablesToProblem, every_other_column_of_numbers_is_a_feature_and_text_is_mentioned) {
  const auto [problem, columns, notes] = tables_to_problem(responses(), features(), {.response = {"y"}});
  EXPECT_EQ(problem.x_names, (Names{"x1", "w"}));
  EXPECT_EQ(problem.z_names, (Names{"z1", "z2"}));
  EXPECT_EQ(problem.y(2, 0), 30);
  EXPECT_EQ(problem.z(3, 1), 8);
  ASSERT_EQ(notes.size(), 3u);
  EXPECT_EQ(notes[0], "r.csv: column \"id\" holds no numbers and is not used (choose columns with --x)");
}

TEST(TablesToProblem, named_columns_only_are_used_when_named) {
  const auto loaded =
      tables_to_problem(responses(), features(), {.response = {"y", "w"}, .x = Names{}, .z = Names{"z2"}});
  EXPECT_EQ(loaded.problem.outputs(), 2);
  EXPECT_EQ(loaded.problem.x.cols(), 0);
  EXPECT_EQ(loaded.problem.z.cols(), 1);
  EXPECT_TRUE(loaded.notes.empty());
}

TEST(TablesToProblem, responses_of_unlike_scales_are_mentioned) {
  const auto notes_of = [](const std::string& table) {
    return tables_to_problem(parse_csv(table, "r.csv"), features(), {.response = {"a", "b"}, .z = Names{"z2"}}).notes;
  };
  EXPECT_TRUE(notes_of("a,b\n1,9\n2,18\n3,27\n").empty());
  const Names notes = notes_of("a,b\n1,11\n2,22\n3,33\n");
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_EQ(notes[0],
            "r.csv: the response \"b\" has the standard deviation 8.98 and \"a\" 0.816; responses share one noise "
            "variance, so "
            "bring them to similar scales (divide each by a constant) or the larger dominates");
}

TEST(TablesToProblem, weights_are_taken_where_the_column_is) {
  const auto loaded = tables_to_problem(responses(), features(), {.response = {"y"}, .weights = "w"});
  EXPECT_EQ(loaded.problem.response_weights[2], 2);
  EXPECT_EQ(loaded.problem.feature_weights.size(), 0);
  EXPECT_EQ(loaded.problem.x_names, Names{"x1"});
  EXPECT_EQ(complaint<BadData>(responses(), features(), {.response = {"y"}, .weights = "none"}),
            "r.csv: there is no column \"none\"; the columns are id, x1, y, w, city");
}

TEST(TablesToProblem, negative_weights_are_named_and_all_zero_refused) {
  const Table negative = parse_csv("y,w\n1,1\n2,-3\n", "r.csv");
  EXPECT_EQ(complaint<BadData>(negative, features(), {.response = {"y"}, .weights = "w"}),
            "r.csv, row 2: column \"w\" holds the weight -3; at least 0 was expected");
  const Table zero = parse_csv("y,w\n1,0\n2,0\n", "r.csv");
  EXPECT_EQ(complaint<BadData>(zero, features(), {.response = {"y"}, .weights = "w"}),
            "r.csv: every weight in column \"w\" is 0; at least one above 0 was expected");
}

TEST(TablesToProblem, group_keys_may_have_two_names) {
  const auto loaded = tables_to_problem(responses(), features(), {.response = {"y"}, .groups = {{"city", "town"}}});
  EXPECT_EQ(loaded.problem.response_groups, (std::vector<Index>{0, 1, 0}));
  EXPECT_EQ(loaded.problem.feature_groups, (std::vector<Index>{0, 1, 2, 0}));
  EXPECT_EQ(loaded.notes.back(), "f.csv: 1 of 4 rows are of a group that r.csv does not have; they cannot match");
}

TEST(TablesToProblem, an_empty_cell_is_no_group) {
  const Table left = parse_csv("y,k\n1,a\n2,\"b\nc\"\n3,\n4,\n", "r.csv");
  const Table right = parse_csv("z,k\n1,a\n2,\n", "f.csv");
  EXPECT_EQ(complaint<BadData>(left, right, {.response = {"y"}, .groups = {{"k", "k"}}}),
            "r.csv:5: column \"k\" is empty (2 of 4 rows); a key of --group needs a value in every row: fill it in, "
            "leave the rows out, or use --soft-group, where an empty cell says nothing");
  EXPECT_EQ(complaint<BadData>(right, left, {.response = {"z"}, .groups = {{"k", "k"}}}).substr(0, 8), "f.csv:3:");
  EXPECT_NO_THROW((void)tables_to_problem(left, right, {.response = {"y"}, .soft_groups = {{{"k", "k"}, 0.9}}}));
}

TEST(TablesToProblem, numeric_keys_compare_as_numbers) {
  const Table left = parse_csv("y,k\n1,1\n2,2\n", "r.csv");
  const Table right = parse_csv("z,k\n1,1.0\n2,2.0\n", "f.csv");
  const auto loaded = tables_to_problem(left, right, {.response = {"y"}, .groups = {{"k", "k"}}});
  EXPECT_EQ(loaded.problem.response_groups, loaded.problem.feature_groups);
}

TEST(TablesToProblem, a_stray_cell_in_a_column_of_numbers_is_an_error_not_a_missing_column) {
  const Table right = parse_csv("z1,z2\n1,2\n3,n/a\n", "f.csv");
  EXPECT_EQ(complaint<BadData>(responses(), right, {.response = {"y"}}),
            "f.csv:3: column \"z2\" holds \"n/a\"; a number was expected");
}

TEST(TablesToProblem, a_name_has_one_meaning) {
  const Table right = parse_csv("x1,z\n1,2\n3,4\n", "f.csv");
  EXPECT_EQ(complaint<BadData>(responses(), right, {.response = {"y"}}),
            "column \"x1\" is in both r.csv and f.csv; say which columns to use with --x and --z, or make it a key "
            "with --group");
  EXPECT_EQ(complaint<InvalidInput>(responses(), right, {.response = {"y"}, .x = Names{"y"}}),
            "column \"y\" cannot be both response and feature");
  EXPECT_EQ(complaint<InvalidInput>(responses(), right, {.response = {"y"}, .z = Names{"z", "z"}}),
            "--z names column \"z\" twice");
}

TEST(TablesToProblem, one_table_gives_its_other_columns_to_the_feature_side) {
  const Table table = parse_csv("a,y,b\n1,2,3\n4,5,7\n", "t.csv");
  const auto loaded = table_to_problem(table, {.response = {"y"}});
  EXPECT_EQ(loaded.problem.z_names, (Names{"a", "b"}));
  EXPECT_EQ(loaded.problem.x.cols(), 0);
  const auto with_x = table_to_problem(table, {.response = {"y"}, .x = Names{"a"}});
  EXPECT_EQ(with_x.problem.z_names, Names{"b"});
  EXPECT_EQ(with_x.problem.x_names, Names{"a"});
}

TEST(TablesToProblem, a_table_without_features_is_refused) {
  const Table right = parse_csv("id\na\nb\n", "f.csv");
  EXPECT_EQ(complaint<BadData>(responses(), right, {.response = {"y"}}),
            "f.csv: no numeric column is left to serve as a feature");
}

TEST(KnownPairs, a_pairs_file_reads_back_without_its_unmatched_rows) {
  const auto known =
      known_pairs_of(parse_csv("response_row,feature_row,probability\n0,2,0.9\n3,1,1\n1,,\n,0,\n", "p.csv"));
  ASSERT_EQ(known.size(), 2u);
  EXPECT_EQ(known[0].response_row, 0);
  EXPECT_EQ(known[1].feature_row, 1);
  EXPECT_THROW((void)known_pairs_of(parse_csv("response_row,feature_row\n1.5,0\n", "p.csv")), BadData);
  const auto far = known_pairs_of(parse_csv("response_row,feature_row\n100000,30000000\n", "p.csv"));
  EXPECT_EQ(far.at(0).response_row, 100000);
  EXPECT_EQ(far.at(0).feature_row, 30000000);
}

TEST(KnownPairs, a_pair_given_twice_is_named_with_both_rows) {
  try {
    (void)known_pairs_of(parse_csv("response_row,feature_row\n1,\n0,2\n3,1\n0,2\n", "p.csv"));
    FAIL();
  } catch (const BadData& error) {
    EXPECT_STREQ(error.what(), "p.csv, row 4: the pair 0,2 is given twice, first in row 2");
  }
}

}  // namespace
}  // namespace unshuffle
