// Files as other programs write them.
#include <gtest/gtest.h>
#include <zlib.h>

#include <string>
#include <vector>

#include "support/complaint.hpp"
#include "tables/compression.hpp"
#include "unshuffle/core/error.hpp"
#include "unshuffle/tables/table.hpp"

namespace unshuffle {
namespace {

using Names = std::vector<std::string>;
using Numbers = std::vector<double>;

Table parse_file(const std::string& content) { return parse_csv(content, "t.csv"); }

std::string refusal_of_file(const std::string& content) {
  return complaint([&] { (void)parse_file(content); });
}

std::string gzip(const std::string& text) {
  std::string out(compressBound(text.size()) + 64, '\0');
  z_stream stream{};
  EXPECT_EQ(deflateInit2(&stream, 6, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY), Z_OK);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(out.size() - stream.avail_out);
  deflateEnd(&stream);
  return out;
}

std::string utf16(const std::string& ascii, bool little, bool mark) {
  std::string out = !mark ? "" : little ? "\xFF\xFE" : "\xFE\xFF";
  for (const char c : ascii) {
    if (!little) out += '\0';
    out += c;
    if (little) out += '\0';
  }
  return out;
}

TEST(TableFiles, plain_csv_is_not_remarked_on) {
  for (const char* plain : {"a,b\n1,2\n3,4\n", "\xEF\xBB\xBFwage,\"b;c\"\n\"1\",2\n", "a\n1\n2\n", "a b,c|d\n1,2\n"}) {
    EXPECT_EQ(parse_file(plain).detected, "") << plain;
  }
}

TEST(TableFiles, semicolons_tabs_and_bars_separate) {
  for (const auto& [separator, said] :
       {std::pair(";", "semicolon-separated"), std::pair("\t", "tab-separated"), std::pair("|", "separated by |")}) {
    const std::string s = separator;
    const Table table =
        parse_file("a" + s + "b" + s + "c\n1" + s + "x, y" + s + "2.5\n3" + s + "\"q" + s + "r\"" + s + " 4\n");
    EXPECT_EQ(table.numbers("c"), (Numbers{2.5, 4})) << said;
    EXPECT_EQ(table.column("b").text, (Names{"x, y", "q" + s + "r"}));
    EXPECT_EQ(table.detected, said);
  }
}

TEST(TableFiles, an_empty_cell_between_tabs_is_a_cell) {
  EXPECT_EQ(parse_file("a\tb\tc\n1\t\t3\n4\tx\t6\n").column("b").text, (Names{"", "x"}));
}

TEST(TableFiles, decimal_commas_are_numbers_and_points_then_separate_thousands) {
  const Table table = parse_file("a;b;c\n1,5;1.234,5;7\n-0,25;12.345.678,0;1.000\n+2,5e3;3;1.234\n");
  EXPECT_EQ(table.numbers("a"), (Numbers{1.5, -0.25, 2500}));
  EXPECT_EQ(table.numbers("b"), (Numbers{1234.5, 12345678, 3}));
  EXPECT_EQ(table.numbers("c"), (Numbers{7, 1000, 1234}));
  EXPECT_EQ(table.detected, "semicolon-separated, decimal commas");
}

TEST(TableFiles, decimal_commas_inside_quotes_and_in_a_single_column) {
  EXPECT_EQ(parse_file("a,b\n\"1,5\",2\n\"0,25\",3\n").numbers("a"), (Numbers{1.5, 0.25}));
  const Table single = parse_file("v\n1,5\n1,25\n-2,125\n");
  EXPECT_EQ(single.numbers("v"), (Numbers{1.5, 1.25, -2.125}));
  EXPECT_EQ(refusal_of_file("v\n1,5\n2,5\n3,5\n"), "t.csv:2: 2 fields; the header has 1");
}

TEST(TableFiles, thousands_are_recognised_in_every_common_form) {
  EXPECT_EQ(parse_file("a,b\n\"1,234\",2\n\"12,345.5\",3\n999,4\n").numbers("a"), (Numbers{1234, 12345.5, 999}));
  EXPECT_EQ(parse_file("a,b\n1 234.5,2\n12,3\n").numbers("a"), (Numbers{1234.5, 12}));
  EXPECT_EQ(parse_file("a;b\n1\xC2\xA0"
                       "234,5;2\n12;3\n")
                .numbers("a"),
            (Numbers{1234.5, 12}));
  EXPECT_EQ(parse_file("a,b\n1'234'567,2\n12,3\n").numbers("a"), (Numbers{1234567, 12}));
}

TEST(TableFiles, what_could_be_a_thousand_or_one_is_not_guessed) {
  const Table table = parse_file("a,b\n\"1,234\",2\n\"5,678\",3\n");
  EXPECT_EQ(complaint([&] { (void)table.numbers("a"); }),
            "t.csv:2: column \"a\" holds \"1,234\"; a number was expected");
  // Semicolons are written where the comma is the decimal separator.
  EXPECT_EQ(parse_file("a;b\n1,234;2\n5,678;3\n").numbers("a"), (Numbers{1.234, 5.678}));
}

TEST(TableFiles, groups_of_other_than_three_digits_are_no_numbers) {
  for (const std::string cell :
       {"1,23,456", "1234,567.5", "1,2345.5", ",123.5", "1,,234.5", "12.03.2024", "+-1", "--1,5", "+-1,234.5"})
    EXPECT_FALSE(parse_file("a;b\n\"" + cell + "\";1\n\"" + cell + "\";2\n").column("a").numeric()) << cell;
}

TEST(TableFiles, a_column_of_decimal_points_refutes_decimal_commas) {
  const Table table = parse_file("a;b\n1,5;1.5\n2,5;2.25\n");
  EXPECT_EQ(table.numbers("b"), (Numbers{1.5, 2.25}));
  EXPECT_FALSE(table.column("a").numeric());
}

TEST(TableFiles, a_missing_cell_hides_no_decimal_commas) {
  EXPECT_EQ(parse_file("a;b\n1,5;1\nNA;2\n2,25;3\n").format.decimal, ',');
}

TEST(TableFiles, utf16_is_converted_with_and_without_a_mark) {
  for (const bool little : {true, false}) {
    for (const bool mark : {true, false}) {
      const Table table = parse_file(utf16("a,b\n1,x\n2,y\n", little, mark));
      EXPECT_EQ(table.numbers("a"), (Numbers{1, 2}));
      EXPECT_EQ(table.detected, "UTF-16");
    }
  }
  using namespace std::string_literals;
  const std::string smile =
      "\xFF\xFE"
      "a\0\n\0\x3D\xD8\x00\xDE\n\0"s;
  EXPECT_EQ(parse_file(smile).column("a").text, Names{"\xF0\x9F\x98\x80"});
}

TEST(TableFiles, latin1_and_windows_are_converted) {
  const Table latin = parse_file(
      "gr\xF6\xDF"
      "e,b\n1,K\xF6ln\n2,M\xFCnchen\n");
  EXPECT_EQ(latin.numbers("größe"), (Numbers{1, 2}));
  EXPECT_EQ(latin.column("b").text, (Names{"Köln", "München"}));
  EXPECT_EQ(latin.detected, "Latin-1");
  EXPECT_EQ(parse_file("a,b\n1,\x80\n").column("b").text, Names{"€"});
  EXPECT_EQ(parse_file("a,b\n1,\x80\n").detected, "Windows-1252");
}

TEST(TableFiles, comment_lines_are_left_out_and_lines_still_counted) {
  const Table table = parse_file("# made by a program\n# on a day\n\na,b\n1,2\n# a remark\n3,x\n");
  EXPECT_EQ(table.rows, 2);
  EXPECT_EQ(table.column("b").first_text_line, 7);
  EXPECT_EQ(table.detected, "4 comment lines skipped");
  EXPECT_EQ(refusal_of_file("# x\na,b\n1,2\n# y\n3\n"), "t.csv:5: 1 field; the header has 2");
  EXPECT_EQ(refusal_of_file("# nothing\n# else\n"),
            "t.csv: the file holds comments only; a header line and rows were expected");
}

TEST(TableFiles, not_everything_behind_a_hash_is_a_comment) {
  EXPECT_EQ(parse_file("#id,v\n1,2\n3,4\n").columns[0].name, "#id");
  EXPECT_EQ(parse_file("colour,v\n#ff0000,1\n#00ff00,2\n").rows, 2);
  EXPECT_EQ(parse_file("v\n1\n#N/A\n").rows, 2);
  EXPECT_EQ(parse_file("v,w\n\"a\n# b\",1\n").rows, 1);
}

TEST(TableFiles, an_index_without_a_name_is_left_out) {
  for (const char* content : {",v\n0,5\n1,6\n", ",v\n7,5\n3,6\n", "\"\",\"v\"\n\"Fiat 128\",5\n\"Honda\",6\n",
                              "\"v\",\"w\"\n\"a\",5,1\n\"b\",6,1\n"}) {
    const Table table = parse_file(content);
    EXPECT_EQ(table.columns.front().name, "v") << content;
    EXPECT_EQ(table.numbers("v"), (Numbers{5, 6}));
    EXPECT_EQ(table.detected, "unnamed index column left out");
  }
  EXPECT_EQ(refusal_of_file(",v\n0.5,5\n0.25,6\n"), "t.csv:1: column 1 has no name in the header");
  EXPECT_EQ(parse_file("a,b,\n1,2,\n3,4,\n").detected, "empty column 3 left out");
}

TEST(TableFiles, a_first_line_may_tell_the_separator) {
  const Table table = parse_file("sep=;\na;b\n1;2\n");
  EXPECT_EQ(table.numbers("b"), Numbers{2});
  EXPECT_EQ(refusal_of_file("sep=;\na;b\n1\n"), "t.csv:3: 1 field; the header has 2");
}

TEST(TableFiles, gzip_is_undone_also_in_several_streams) {
  const std::string table = "a,b\n1,2\n3,4\n";
  EXPECT_EQ(parse_file(gzip(table)).numbers("b"), (Numbers{2, 4}));
  EXPECT_EQ(parse_file(gzip(table)).detected, "gzip");
  EXPECT_EQ(parse_file(gzip(table) + gzip("5,6\n")).rows, 3);
  std::string rows = "a,b\n";
  for (int k = 0; k < 200000; ++k) rows += std::to_string(k % 977) + ",1\n";
  EXPECT_EQ(parse_file(gzip(rows)).rows, 200000);
}

TEST(TableFiles, damaged_gzip_is_refused) {
  std::string bytes = gzip("a,b\n1,2\n3,4\n");
  const std::string says = "t.csv: the gzip data is damaged or ends early; copy or compress the file again";
  EXPECT_EQ(refusal_of_file(bytes.substr(0, bytes.size() - 6)), says);
  bytes[12] = static_cast<char>(bytes[12] ^ 0x55);
  EXPECT_EQ(refusal_of_file(bytes), says);
}

TEST(TableFiles, other_kinds_of_files_are_named_with_advice) {
  using namespace std::string_literals;
  EXPECT_EQ(refusal_of_file("PK\x03\x04....xl/workbook.xml"), "t.csv is an Excel workbook; save it as CSV");
  EXPECT_EQ(refusal_of_file("\xd0\xcf\x11\xe0"), "t.csv is an old Excel workbook; save it as CSV");
  EXPECT_EQ(refusal_of_file("PAR1"),
            "t.csv is a Parquet file; read it in Python and fit it with the Python package, or save it as CSV");
  EXPECT_EQ(refusal_of_file("BZh91AY"), "t.csv is compressed with bzip2; decompress it first");
  EXPECT_EQ(refusal_of_file(gzip(gzip("a\n1\n"))), "t.csv: is compressed twice; decompress it first");
  EXPECT_EQ(refusal_of_file(gzip("X\n\0\0\0\3"s)),
            "t.csv is an R object; save it with write.csv(table, row.names = FALSE)");
}

TEST(TableFiles, what_is_written_is_read_again_in_the_same_way) {
  Table table;
  table.rows = 2;
  table.columns.push_back({.name = "a;b", .text = {"# x", "y|z"}});
  const Table again = parse_file(to_csv(table));
  EXPECT_EQ(again.column("a;b").text, (Names{"# x", "y|z"}));
}

TEST(TableFiles, pieces_are_refused_where_they_cannot_be_cut) {
  const auto why = [](const std::string& head) { return complaint([&] { require_pieces(head, "t.csv"); }); };
  EXPECT_EQ(why("a;b\n1,5;2\n2,5;3\n"), "");
  EXPECT_EQ(why("# x\na,b\n1,2\n").substr(0, 25), "t.csv: has comments; tabl");
  EXPECT_EQ(why(",b\n1,2\n").substr(0, 34), "t.csv: has a column without a name");
  EXPECT_EQ(why(gzip("a\n1\n")).substr(0, 20), "t.csv: is compressed");
}

}  // namespace
}  // namespace unshuffle
