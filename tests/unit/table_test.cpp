#include "unshuffle/tables/table.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <omp.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "support/complaint.hpp"
#include "unshuffle/core/error.hpp"

namespace unshuffle {
namespace {

using unshuffle::complaint;

using Names = std::vector<std::string>;

Table parse(const std::string& content) { return parse_csv(content, "t.csv"); }

std::string complaint(const std::string& content) {
  return complaint([&] { (void)parse(content); });
}

TEST(Table, numbers_are_read_in_every_common_form) {
  const Table table = parse("a,b\n1,-2.5e3\n+4, 0.5 \n1e-400,.25\n");
  ASSERT_EQ(table.rows, 3);
  EXPECT_EQ(table.numbers("a"), (std::vector<double>{1, 4, 0}));
  EXPECT_EQ(table.numbers("b"), (std::vector<double>{-2500, 0.5, 0.25}));
}

TEST(Table, line_ends_byte_order_mark_and_missing_last_line_feed_make_no_difference) {
  for (const std::string content :
       {"a,b\n1,2\n3,4\n", "a,b\r\n1,2\r\n3,4\r\n",
        "\xEF\xBB\xBF"
        "a,b\n1,2\n3,4",
        "a,b\r\n1,2\r\n3,4\r\n\r\n\r\n", "a,b\r1,2\r3,4\r", "a,b\r1,2\r3,4", "a,b\r1,2\n3,4\r\n\r"}) {
    const Table table = parse(content);
    ASSERT_EQ(table.rows, 2) << content;
    EXPECT_EQ(table.columns[0].name, "a");
    EXPECT_EQ(table.numbers("b"), (std::vector<double>{2, 4}));
  }
}

TEST(Table, quoted_fields_may_hold_commas_quotes_and_line_feeds) {
  const Table table = parse("\"the name\",v\n\"a,b\",1\n\"say \"\"hi\"\"\nthere\",\"2\"\n");
  EXPECT_EQ(table.column("the name").text, (Names{"a,b", "say \"hi\"\nthere"}));
  EXPECT_EQ(table.numbers("v"), (std::vector<double>{1, 2}));
}

TEST(Table, a_column_of_text_keeps_its_cells) {
  const Table table = parse("id,v\nx1,1\nx2,2\n");
  EXPECT_FALSE(table.column("id").numeric());
  EXPECT_FALSE(table.column("id").holds_numbers);
  EXPECT_EQ(table.column("id").text, (Names{"x1", "x2"}));
}

TEST(Table, a_column_of_numbers_with_a_stray_cell_keeps_its_cells_as_written) {
  const Table table = parse("id\n007\nn/a\n1.50\n");
  EXPECT_TRUE(table.column("id").holds_numbers);
  EXPECT_EQ(table.column("id").text, (Names{"007", "n/a", "1.50"}));
}

TEST(Table, text_among_numbers_is_named_with_its_line) {
  const Table table = parse("age,v\n1,1\nn/a,2\n");
  EXPECT_EQ(complaint([&] { (void)table.numbers("age"); }),
            "t.csv:3: column \"age\" holds \"n/a\"; a number was expected");
}

TEST(Table, lines_inside_quotes_are_counted) {
  const Table table = parse("a,v\n\"x\ny\",1\nz,nan\n");
  EXPECT_EQ(complaint([&] { (void)table.numbers("v"); }), "t.csv:4: column \"v\" holds \"nan\"; a number was expected");
}

TEST(Table, empty_cells_and_infinities_are_no_numbers) {
  EXPECT_EQ(complaint([] { (void)parse("a,v\n1,2\n3,\n").numbers("v"); }),
            "t.csv:3: column \"v\" is empty; a number was expected");
  EXPECT_EQ(complaint([] { (void)parse("v\ninf\n").numbers("v"); }),
            "t.csv:2: column \"v\" holds \"inf\"; a number was expected");
  EXPECT_EQ(complaint([] { (void)parse("v\n1e400\n").numbers("v"); }),
            "t.csv:2: column \"v\" holds \"1e400\"; a number was expected");
}

TEST(Table, a_second_sign_makes_no_number) {
  for (const std::string cell : {"+-1", "++1", "-+1", "--1", "+", "-"})
    EXPECT_EQ(complaint([&] { (void)parse("v\n" + cell + "\n").numbers("v"); }),
              "t.csv:2: column \"v\" holds \"" + cell + "\"; a number was expected");
}

TEST(Table, a_first_line_of_numbers_is_no_header) {
  EXPECT_EQ(complaint("1.5,2\n3,4\n"),
            "t.csv:1: the first line holds numbers only (it begins with \"1.5\"), where the names of the columns were "
            "expected; put a line of names above it");
  EXPECT_EQ(parse("year,2020\n1,2\n").rows, 1);
}

TEST(Table, ragged_rows_are_named_with_their_line) {
  EXPECT_EQ(complaint("a,b\r1,2\r3\r"), "t.csv:3: 1 field; the header has 2");
  EXPECT_EQ(complaint("a,b\n1,2\n3\n"), "t.csv:3: 1 field; the header has 2");
  EXPECT_EQ(complaint("a,b\r\n1,2\r\n3,4,5\r\n"), "t.csv:3: 3 fields; the header has 2");
}

TEST(Table, a_blank_line_between_rows_is_refused) {
  EXPECT_EQ(complaint("a\n1\n\n2\n"), "t.csv:3: the line is blank; rows were expected up to the end");
  EXPECT_EQ(complaint("a\r\n1\r\n\r\n2\r\n"), "t.csv:3: the line is blank; rows were expected up to the end");
}

TEST(Table, what_holds_no_table_is_refused) {
  EXPECT_EQ(complaint(""), "t.csv: the file is empty; a header line and rows were expected");
  EXPECT_EQ(complaint("\n\n"), "t.csv: the file is empty; a header line and rows were expected");
  EXPECT_EQ(complaint("a,b\n"), "t.csv: the file holds a header and no rows");
  EXPECT_EQ(complaint("a,b,a\n1,2,3\n"), "t.csv:1: two columns are named \"a\"");
  EXPECT_EQ(complaint("a,\n1,2\n"), "t.csv:1: column 2 has no name in the header");
}

TEST(Table, broken_quotes_are_refused) {
  EXPECT_EQ(complaint("a\n\"never closed\n"), "t.csv: a quoted field is never closed");
  EXPECT_EQ(complaint("a\n1\n5\"x\n"),
            "t.csv:3: quote inside a field; quote the whole field and double the inner quote");
}

TEST(Table, an_unknown_column_is_answered_with_those_there_are) {
  EXPECT_EQ(complaint([] { (void)parse("a,b\n1,2\n").numbers("c"); }),
            "t.csv: there is no column \"c\"; the columns are a, b");
}

TEST(Table, a_missing_file_and_a_folder_are_named) {
  EXPECT_EQ(complaint([] { (void)read_csv("/nowhere/t.csv"); }),
            "/nowhere/t.csv: cannot be opened: No such file or directory");
  EXPECT_EQ(complaint([] { (void)read_csv("/"); }), "/: cannot be read: Is a directory");
}

TEST(Table, writing_and_reading_gives_the_same_doubles_and_text) {
  Table table;
  table.rows = 3;
  table.columns.push_back({.name = "v,1", .numbers = {0.1, -1.0 / 3, std::numeric_limits<double>::denorm_min()}});
  table.columns.push_back({.name = "t", .text = {"a\"b", " c ", "d\ne"}});
  const Table again = parse(to_csv(table));
  EXPECT_EQ(again.numbers("v,1"), table.columns[0].numbers);
  EXPECT_EQ(again.column("t").text, table.columns[1].text);
}

TEST(Table, text_is_kept_of_numbers_too_when_asked) {
  const Table table = parse_csv("id\n007\n", "t.csv", KeepText::always);
  EXPECT_EQ(table.column("id").text, Names{"007"});
  EXPECT_EQ(table.numbers("id"), std::vector<double>{7});
}

TEST(Table, an_empty_cell_of_a_single_column_survives_being_written) {
  const Table table = parse("a\nx\n\"\"\n");
  ASSERT_EQ(table.rows, 2);
  EXPECT_EQ(parse(to_csv(table)).rows, 2);
}

/// What parse() comes to on a number of threads: the table as CSV with where each column's text begins, or the
/// complaint.
std::string outcome(const std::string& content, int threads) {
  const int before = omp_get_max_threads();
  omp_set_num_threads(threads);
  std::string found = complaint(content);
  if (found.empty()) {
    const Table table = parse(content);
    found = to_csv(table);
    for (const Column& column : table.columns)
      found += fmt::format("{}:{}:{}:{}:{}\n", column.first_text_line, column.first_text, column.holds_numbers,
                           column.first_empty_line, column.empty_cells);
  }
  omp_set_num_threads(before);
  return found;
}

TEST(Table, large_files_are_read_in_parts_with_the_same_outcome) {
  const std::string header = "a,b,c\n";
  std::string rows;
  while (rows.size() < (std::size_t{3} << 20))
    rows += fmt::format("{},{},{}\n", rows.size(), 0.5 * double(rows.size()), rows.size() % 7);
  std::string lone_returns;
  for (const char c : header + rows) lone_returns += c == '\n' ? '\r' : c;
  const std::size_t rows_written = static_cast<std::size_t>(std::count(rows.begin(), rows.end(), '\n'));
  const auto with = [&](double share, const std::string& line) {
    const std::size_t at = rows.find('\n', std::size_t(share * double(rows.size()))) + 1;
    return header + rows.substr(0, at) + line + rows.substr(at);
  };
  std::string returns;
  for (const char c : header + rows) returns += c == '\n' ? "\r\n" : std::string(1, c);
  const std::vector<std::string> contents{header + rows,
                                          returns,
                                          lone_returns,
                                          lone_returns + "1,2\r",
                                          "a,b,c\r" + rows,
                                          header + rows + "\n\n",
                                          header + rows.substr(0, rows.size() - 1),
                                          with(0.9, "1,2\n"),
                                          with(0.1, "1,two,3\n"),
                                          with(0.9, "1,two,3\n"),
                                          with(0.6, "1,,3\n"),
                                          with(0.4, "\n"),
                                          with(0.9, "\n\n"),
                                          with(0.5, "1,\"2\",3\n"),
                                          with(0.5, "1,2\"2,3\n"),
                                          "\n" + header + rows,
                                          "a,a,c\n" + rows};
  for (const std::string& content : contents) {
    const std::string once = outcome(content, 1);
    EXPECT_TRUE(once == outcome(content, 4))
        << once.substr(0, 200) << " against " << outcome(content, 4).substr(0, 200);
  }
  for (const std::string& content : {header + rows, returns, lone_returns, "a,b,c\r" + rows})
    EXPECT_EQ(static_cast<std::size_t>(parse(content).rows), rows_written);
  // A blank line where a part begins is complained of once rows follow.
  EXPECT_EQ(outcome(with(0.9, "\n"), 3).substr(0, 6), "t.csv:");
}

}  // namespace
}  // namespace unshuffle
