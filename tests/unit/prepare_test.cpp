// Categories, truth values and missing cells on their way to a problem.
#include "unshuffle/tables/prepare.hpp"

#include <gtest/gtest.h>

#include "support/complaint.hpp"
#include "unshuffle/core/error.hpp"
#include "unshuffle/tables/table.hpp"

namespace unshuffle {
namespace {

using Names = std::vector<std::string>;
using Numbers = std::vector<double>;

Table people() {
  return parse_csv("age,region,member\n30,north,yes\n40,south,no\nNA,north,yes\n50,west,\n35,north,no\n45,south,yes\n",
                   "people.csv");
}
Table wages() { return parse_csv("wage\n1\n2\n3\n4\n5\n6\n", "wages.csv"); }

TEST(Prepare, rows_with_missing_cells_are_dropped_from_one_table) {
  Table left = wages(), right = people();
  ColumnChoice columns{.response = {"wage"}};
  const Preparation done = prepare(left, &right, columns);
  EXPECT_EQ(left.rows, 6);
  EXPECT_EQ(right.rows, 4);
  EXPECT_TRUE(done.responses.all);
  EXPECT_EQ(done.features.rows, (std::vector<Index>{0, 1, 4, 5}));
  EXPECT_EQ(right.numbers("age"), (Numbers{30, 40, 35, 45}));
  EXPECT_EQ(done.notes.at(0),
            "2 of 6 rows of people.csv dropped (age: 1, member: 1); their partners in wages.csv stay and have none");
  EXPECT_EQ(done.notes.at(1),
            "6 responses and 4 features are fitted; if row i of one table belongs to row i of the other, say --hint "
            "rows, and both are dropped");
}

TEST(Prepare, tables_in_order_lose_the_same_rows) {
  Table left = wages(), right = people();
  ColumnChoice columns{.response = {"wage"}};
  const Preparation done = prepare(left, &right, columns, {.in_order = true});
  EXPECT_EQ(left.numbers("wage"), (Numbers{1, 2, 5, 6}));
  EXPECT_EQ(done.responses.rows, done.features.rows);
  EXPECT_EQ(done.notes.at(0),
            "2 of 6 rows of people.csv dropped (age: 1, member: 1), and with them the same rows of wages.csv");
}

TEST(Prepare, an_error_lists_columns_of_both_tables) {
  Table left = parse_csv("wage\n1\nNA\n", "wages.csv"), right = people();
  ColumnChoice columns{.response = {"wage"}};
  EXPECT_EQ(
      complaint([&] { (void)prepare(left, &right, columns, {.missing = Missing::error}); }),
      "cells are missing in 1 of 2 rows of wages.csv (wage: 1) and 2 of 6 rows of people.csv (age: 1, member: 1); "
      "fill them in, or use --missing drop or --missing indicator");
}

TEST(Prepare, an_indicator_fills_in_the_mean) {
  Table left = wages(), right = people();
  ColumnChoice columns{.response = {"wage"}};
  (void)prepare(left, &right, columns, {.missing = Missing::indicator});
  EXPECT_EQ(*columns.z,
            (Names{"age", "age[missing]", "region[T.south]", "region[T.west]", "member", "member[missing]"}));
  EXPECT_EQ(right.numbers("age"), (Numbers{30, 40, 40, 50, 35, 45}));
  EXPECT_EQ(right.numbers("age[missing]"), (Numbers{0, 0, 1, 0, 0, 0}));
  EXPECT_DOUBLE_EQ(right.numbers("member")[3], 0.6);
}

TEST(Prepare, the_most_frequent_level_is_the_reference) {
  Table left = wages(), right = parse_csv("c,v\nb,1\na,2\nb,3\nd,5\na,4\nb,0\n", "f.csv");
  ColumnChoice columns{.response = {"wage"}};
  const Preparation done = prepare(left, &right, columns);
  EXPECT_EQ(*columns.z, (Names{"c[T.a]", "c[T.d]", "v"}));
  EXPECT_EQ(right.numbers("c[T.a]"), (Numbers{0, 1, 0, 0, 1, 0}));
  ASSERT_EQ(columns.codes.size(), 1u);
  EXPECT_EQ(columns.codes[0].levels, (Names{"b", "a", "d"}));
  EXPECT_EQ(done.notes.at(0),
            "f.csv: column \"c\" is a category of 3 levels; reference b, against which a, d have coefficients");
}

TEST(Prepare, a_dash_is_missing_among_numbers_and_a_level_among_text) {
  Table left = wages(), right = parse_csv("v,test,pain\n1,+,none\n-,-,mild\n3,+,none\n4,-,mild\n", "f.csv");
  ColumnChoice columns{.response = {"wage"}};
  const Preparation done = prepare(left, &right, columns);
  EXPECT_EQ(done.features.rows, (std::vector<Index>{0, 2, 3}));
  EXPECT_EQ(*columns.z, (Names{"v", "test[T.-]", "pain[T.mild]"}));
}

TEST(Prepare, levels_of_dropped_rows_are_no_levels) {
  Table left = wages(), right = parse_csv("c,v\nb,1\na,2\nb,3\nd,NA\na,4\nb,0\n", "f.csv");
  ColumnChoice columns{.response = {"wage"}};
  (void)prepare(left, &right, columns);
  EXPECT_EQ(*columns.z, (Names{"c[T.a]", "v"}));
}

TEST(Prepare, text_of_both_tables_is_a_key_and_no_feature) {
  Table left = parse_csv("y,city\n1,A\n2,B\n3,A\n", "r.csv"), right = parse_csv("z,town\n5,A\n1,B\n4,B\n", "f.csv");
  ColumnChoice columns{.response = {"y"}};
  const Preparation done = prepare(left, &right, columns);
  EXPECT_EQ(*columns.x, Names{});
  EXPECT_EQ(*columns.z, Names{"z"});
  EXPECT_EQ(done.notes.at(1),
            "f.csv: column \"town\" shares its values with \"city\" of r.csv: left out; make it a key with --group "
            "city=town, or name it with --z to use it");
  ColumnChoice named{.response = {"y"}, .z = Names{"town"}};
  (void)prepare(left, &right, named);
  EXPECT_EQ(*named.z, Names{"town[T.A]"});
}

TEST(Prepare, a_row_number_is_left_out_unless_it_is_all_there_is) {
  std::string with_id = "id,v\n", alone = "id\n";
  for (int k = 0; k < 30; ++k) {
    with_id += std::to_string((k * 7) % 30 + 1) + "," + std::to_string(k % 7) + "\n";
    alone += std::to_string(k) + "\n";
  }
  Table left = wages(), right = parse_csv(with_id, "f.csv"), only = parse_csv(alone, "f.csv");
  ColumnChoice columns{.response = {"wage"}}, second{.response = {"wage"}},
      named{.response = {"wage"}, .z = Names{"id"}};
  const Preparation done = prepare(left, &right, columns);
  EXPECT_EQ(*columns.z, Names{"v"});
  EXPECT_EQ(done.notes.at(0), "f.csv: column \"id\" looks like a row number: left out; name it with --z to use it");
  EXPECT_TRUE(prepare(left, &only, second).notes.empty());
  EXPECT_EQ(*second.z, Names{"id"});
  EXPECT_TRUE(prepare(left, &right, named).notes.empty());
}

TEST(Prepare, tables_of_numbers_stay_as_they_are) {
  Table left = wages(), right = parse_csv("a,b\n1,2\n3,5\n2,2\n", "f.csv");
  ColumnChoice columns{.response = {"wage"}};
  const Preparation done = prepare(left, &right, columns);
  EXPECT_TRUE(done.notes.empty() && done.responses.all && done.features.all && columns.codes.empty());
  EXPECT_EQ(*columns.z, (Names{"a", "b"}));
}

TEST(Prepare, features_of_new_rows_are_coded_as_the_fit_coded_them) {
  Table left = wages(), right = people();
  ColumnChoice columns{.response = {"wage"}};
  (void)prepare(left, &right, columns);
  Table rows = parse_csv("age,region,member\n1,south,TRUE\n2,south,FALSE\n", "new.csv");
  code_rows(rows, columns);
  EXPECT_EQ(rows.numbers("region[T.south]"), (Numbers{1, 1}));
  EXPECT_EQ(rows.numbers("member"), (Numbers{1, 0}));
  Table unseen = parse_csv("age,region,member\n1,south,TRUE\n2,east,FALSE\n", "new.csv");
  EXPECT_EQ(complaint([&] { code_rows(unseen, columns); }),
            "new.csv, row 2: column \"region\" holds \"east\"; the fit knows the levels north, south only");
  Table gap = parse_csv("age,region,member\n1,south,TRUE\n2,NA,FALSE\n", "new.csv");
  EXPECT_EQ(complaint([&] { code_rows(gap, columns); }),
            "new.csv, row 2: column \"region\" is missing; a value was expected (a fit with --missing indicator "
            "predicts without it)");
}

TEST(Prepare, other_tables_of_a_fit_are_prepared_in_its_way) {
  Table left = wages(), right = people();
  ColumnChoice columns{.response = {"wage"}};
  (void)prepare(left, &right, columns);
  Table again_left = wages(), again = people();
  const Preparation done = prepare_again(again_left, &again, columns);
  EXPECT_EQ(done.features.rows, (std::vector<Index>{0, 1, 4, 5}));
  EXPECT_EQ(again.matrix(*columns.z), right.matrix(*columns.z));
}

TEST(Prepare, pairs_follow_the_rows) {
  Table left = wages(), right = people();
  ColumnChoice columns{.response = {"wage"}};
  const Preparation done = prepare(left, &right, columns);
  const auto pairs = in_kept_rows(std::vector<KnownPair>{{0, 0}, {2, 2}, {5, 5}}, done);
  ASSERT_EQ(pairs.size(), 2u);
  EXPECT_EQ(pairs[1].response_row, 5);
  EXPECT_EQ(pairs[1].feature_row, 3);
  EXPECT_EQ(complaint([&] {
              (void)in_kept_rows(std::vector<KnownPair>{{0, 6}}, done);
            }),
            "a pair names row 6 of the features, which have 6 (counted from 0)");
}

TEST(Prepare, one_table_loses_both_sides_of_a_row) {
  Table table = parse_csv("y,a,b\n1,2,x\n2,NA,z\n3,5,x\n4,1,z\n", "t.csv");
  ColumnChoice columns{.response = {"y"}, .x = Names{"b"}};
  const Preparation done = prepare(table, nullptr, columns);
  EXPECT_EQ(done.responses.rows, done.features.rows);
  EXPECT_EQ(table.rows, 3);
  EXPECT_EQ(*columns.x, Names{"b[T.z]"});
  EXPECT_EQ(*columns.z, Names{"a"});
  EXPECT_EQ(done.notes.at(0), "1 of 4 rows of t.csv dropped (a: 1), responses and features alike");
}

}  // namespace
}  // namespace unshuffle
