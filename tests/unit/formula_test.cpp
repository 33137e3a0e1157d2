// Formulas: the columns that formulaic makes, errors that point to the place, and fits that remember what they learned.
#include "unshuffle/tables/formula.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "support/complaint.hpp"
#include "support/test_data.hpp"
#include "unshuffle/tables/prepare.hpp"

namespace unshuffle {
namespace {

using Names = std::vector<std::string>;
using Json = nlohmann::ordered_json;

/// Columns by name, in their order.
void expect_columns(const Table& table, const Names& names, const Json& expected, const std::string& formula) {
  Names wanted;
  for (const auto& [name, values] : expected.items()) wanted.push_back(name);
  ASSERT_EQ(names, wanted) << formula;
  for (const std::string& name : names) {
    const std::vector<double>& numbers = table.numbers(name);
    const std::vector<double> values = expected[name];
    ASSERT_EQ(numbers.size(), values.size());
    for (std::size_t row = 0; row < values.size(); ++row)
      EXPECT_NEAR(numbers[row], values[row], 1e-9 * (1 + std::abs(values[row]))) << formula << ", " << name;
  }
}

TEST(Formula, columns_are_those_of_formulaic) {
  std::ifstream file(test_data("formula.json"));
  const auto oracle = Json::parse(file);
  const Table rows = parse_csv(oracle["table"], "rows.csv", KeepText::where_needed);
  EXPECT_GE(oracle["formulas"].size(), 60U);
  for (const Json& one : oracle["formulas"]) {
    const std::string formula = one["formula"];
    EXPECT_EQ(parse_formula(formula).intercept, one["intercept"].get<bool>()) << formula;
    Table table = rows;
    ColumnChoice columns{.response = {}, .formula = {.text = formula}};
    (void)prepare(table, nullptr, columns);
    expect_columns(table, *columns.z, one["features"], formula);
    expect_columns(table, columns.response, one["response"], formula);
    // What was learned is enough for other rows.
    Table again = rows;
    code_rows(again, columns, RowsHold::features_and_responses);
    expect_columns(again, *columns.z, one["features"], formula);
  }
}

Table wages() { return parse_csv("wage,year,town\n10,1,A\n20,2,B\n30,1,A\n40,2,C\n", "wages.csv"); }
Table people() {
  return parse_csv("age,region,sex,town\n30,north,m,A\n40,south,f,B\nNA,north,m,C\n50,west,f,A\n60,south,m,B\n",
                   "people.csv");
}

ColumnChoice by(const std::string& formula) { return {.response = {}, .formula = {.text = formula}}; }

TEST(Formula, columns_come_from_either_table) {
  Table left = wages(), right = people();
  ColumnChoice columns = by("log(wage) ~ year + age + C(region)");
  const Preparation done = prepare(left, &right, columns);
  EXPECT_EQ(columns.response, (Names{"log(wage)"}));
  EXPECT_EQ(*columns.x, (Names{"year"}));
  EXPECT_EQ(*columns.z, (Names{"age", "C(region)[T.south]", "C(region)[T.west]"}));
  EXPECT_EQ(right.rows, 4);
  EXPECT_EQ(done.notes.back(), "people.csv: C(region) is a category of 3 levels; reference north");
}

TEST(Formula, a_dot_stands_for_what_would_be_used_without_a_formula) {
  Table left = wages(), right = people();
  ColumnChoice columns = by("wage ~ .");
  (void)prepare(left, &right, columns);
  EXPECT_EQ(*columns.x, (Names{"year"}));
  EXPECT_EQ(*columns.z, (Names{"age", "region[T.south]", "region[T.west]", "sex[T.m]"}));
}

TEST(Formula, a_key_under_one_name_is_a_feature_of_the_features) {
  Table left = wages(), right = people();
  ColumnChoice columns = by("wage ~ age + town");
  EXPECT_EQ(complaint([&] { (void)prepare(left, &right, columns); }),
            "formula: column \"town\" is in both wages.csv and people.csv; rename it in one of them, or make it a key "
            "with --group town");
  columns.groups = {{"town", "town"}};
  (void)prepare(left, &right, columns);
  EXPECT_EQ(columns.z->back(), "town[T.B]");
}

TEST(Formula, terms_across_tables_are_refused) {
  Table left = wages(), right = people();
  ColumnChoice columns = by("wage ~ age:year");
  EXPECT_EQ(complaint([&] { (void)prepare(left, &right, columns); }),
            "formula: age:year multiplies columns of wages.csv and people.csv, whose rows are not linked; a term takes "
            "its columns from one table");
  columns = by("wage ~ I(age * year)");
  EXPECT_EQ(complaint([&] { (void)prepare(left, &right, columns); }),
            "formula: I(age * year) takes columns of wages.csv and people.csv, whose rows are not linked; a function "
            "takes its columns from one table");
}

TEST(Formula, other_rows_may_not_have_unseen_levels_or_gaps) {
  Table left = wages(), right = people();
  ColumnChoice columns = by("wage ~ log(age) + region");
  (void)prepare(left, &right, columns);
  Table unseen = parse_csv("age,region\n30,north\n31,east\n", "new.csv");
  EXPECT_EQ(complaint([&] { code_rows(unseen, columns); }),
            "new.csv, row 2: region = east; the levels of region are north, south, west");
  Table gap = parse_csv("age,region\n30,north\n31,NA\n", "new.csv");
  EXPECT_EQ(complaint([&] { code_rows(gap, columns); }),
            "new.csv, row 2: a cell is missing (1 of 2 rows: region: 1); values were expected in all columns of the "
            "formula");
  Table zero = parse_csv("age,region\n30,north\n0,south\n", "new.csv");
  EXPECT_EQ(complaint([&] { code_rows(zero, columns); }),
            "new.csv, row 2: log(age) is -inf (age = 0); a finite number was expected");
}

TEST(Formula, codes_that_are_partly_numbers_are_categories_if_asked) {
  Table table = parse_csv("wage,code\n1,1A\n2,2\n3,NA\n4,1A\n5,2\n", "jobs.csv");
  ColumnChoice columns = by("wage ~ C(code)");
  (void)prepare(table, nullptr, columns);
  EXPECT_EQ(*columns.z, (Names{"C(code)[T.1A]"}));
  EXPECT_EQ(table.rows, 4);
}

TEST(Formula, errors_point_to_the_place) {
  const auto refusal = [](const std::string& formula) { return complaint([&] { (void)parse_formula(formula); }); };
  EXPECT_EQ(refusal("wage ~ age + + sex"),
            "formula, character 14: a column or a function was expected, not \"+\"\n"
            "    wage ~ age + + sex\n"
            "                 ^");
  EXPECT_EQ(refusal("größe ~ age sex"),
            "formula, character 13: an operator was expected here: + - : * / ^ or %in%\n"
            "    größe ~ age sex\n"
            "                ^");
  const auto first_line = [&](const std::string& formula) {
    const std::string text = refusal(formula);
    return text.substr(0, text.find('\n'));
  };
  EXPECT_EQ(first_line("wage + age"), "formula, character 11: ~ was expected between the response and the features");
  EXPECT_EQ(first_line("wage ~ "), "formula, character 8: features were expected after ~");
  EXPECT_EQ(first_line("~ age"), "formula, character 1: the response was expected before ~, as in \"wage ~ age\"");
  EXPECT_EQ(first_line("y ~ (a + b"), "formula, character 5: this bracket is not closed");
  EXPECT_EQ(first_line("y ~ a + b)"), "formula, character 10: this bracket was never opened");
  EXPECT_EQ(first_line("y ~ log(a"), "formula, character 10: \")\" was expected after the arguments of log()");
  EXPECT_EQ(first_line("y ~ `a b"), "formula, character 5: this ` is not closed");
  EXPECT_EQ(first_line("y ~ a^b"),
            "formula, character 7: a power of terms is a number from 1 to 9; powers of numbers stand in I(), as in "
            "I(age ** 2)");
  EXPECT_EQ(first_line("y ~ 2*a"),
            "formula, character 5: a number other than 0 and 1 is no term; numbers stand in I(), as in I(2 * age)");
  EXPECT_EQ(first_line("y ~ a ~ b"),
            "formula, character 7: a second ~; a formula has one, between response and features");
  EXPECT_EQ(first_line("y ~ " + std::string(60, '(')), "formula, character 55: brackets more than 50 deep");
  EXPECT_EQ(first_line("y ~ (a+b+c+d+e+f+g+h+i+j+k+l)^9"), "formula, character 32: this makes more than 1000 terms");
}

TEST(Formula, errors_name_functions_and_arguments) {
  const auto refusal = [](const std::string& formula) {
    Table table = parse_csv("y,a,r\n1,2,n\n2,4,s\n3,3,n\n4,1,s\n", "t.csv");
    ColumnChoice columns = by(formula);
    return complaint([&] { (void)prepare(table, nullptr, columns); });
  };
  EXPECT_EQ(refusal("y ~ lg(a)"),
            "formula: there is no function lg(); there are log(), exp(), sqrt(), log10(), log2(), log1p(), expm1(), "
            "exp10(), exp2(), abs(), sin(), cos(), floor(), ceil(), I(), and at the beginning of a term C(), bs(), "
            "poly(), center() and scale()");
  EXPECT_EQ(refusal("y ~ bs(a, 2)"),
            "formula: bs(a, 2): bs(column, df) with df from 3 columns on, or bs(column, knots=[...]), was expected; "
            "splines are cubic");
  EXPECT_EQ(refusal("y ~ C(r, Treatment('w'))"),
            "formula: C(r, Treatment('w')): there is no level \"w\"; there are n, s");
  EXPECT_EQ(refusal("y ~ b"), "formula: there is no column \"b\"; t.csv has y, a, r");
  EXPECT_EQ(refusal("r ~ a"), "t.csv: the response r holds text; numbers were expected");
  EXPECT_EQ(refusal("y ~ log(r)"), "t.csv:2: column \"r\" holds \"n\"; a number was expected");
  EXPECT_EQ(refusal("y ~ log(-a)"), "t.csv, row 1: log(-a) is no number (a = 2); a finite number was expected");
}

}  // namespace
}  // namespace unshuffle
