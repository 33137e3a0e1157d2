#include <fmt/format.h>
#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "support/complaint.hpp"
#include "support/fcs_builder.hpp"
#include "support/test_data.hpp"
#include "unshuffle/core/error.hpp"
#include "unshuffle/cytometry/compensation.hpp"
#include "unshuffle/cytometry/event_table.hpp"
#include "unshuffle/cytometry/fcs.hpp"

namespace unshuffle::cytometry {
namespace {

using unshuffle::complaint;

FcsFile parse(const FcsBuilder& builder) { return parse_fcs(builder.content(), "t.fcs"); }

std::string complaint(const FcsBuilder& builder) {
  return complaint([&] { (void)parse(builder); });
}

bool mentions(const std::vector<std::string>& notes, std::string_view words) {
  for (const std::string& note : notes) {
    if (note.find(words) != std::string::npos) return true;
  }
  return false;
}

FcsBuilder two_bytes() {
  FcsBuilder builder;
  builder.channel("A", 16, "1024").channel("B", 16, "1024");
  builder.bytes = {0x01, 0x02, 0x03, 0x00, 0xFF, 0xFF, 0x00, 0x04};
  builder.keywords["$TOT"] = "2";
  return builder;
}

TEST(Fcs, integers_are_masked_to_their_range_in_both_byte_orders) {
  FcsBuilder builder = two_bytes();
  const Matrix little = parse(builder).events;
  EXPECT_EQ(little(0, 0), 0x0201);
  EXPECT_EQ(little(0, 1), 3);
  EXPECT_EQ(little(1, 0), 1023);  // 0xFFFF with the six upper bits gone.
  EXPECT_EQ(little(1, 1), 0);     // 0x0400 likewise.
  builder.keywords["$BYTEORD"] = "4,3,2,1";
  const Matrix big = parse(builder).events;
  EXPECT_EQ(big(0, 0), 0x0102);
  EXPECT_EQ(big(0, 1), 0x0300);
  EXPECT_EQ(big(1, 1), 4);
}

TEST(Fcs, whole_byte_widths_from_8_to_64_bits_are_read) {
  FcsBuilder builder;
  builder.channel("A", 8, "256").channel("B", 24, "16777216").channel("C", 40, "1099511627776");
  builder.channel("D", 64, "18446744073709551616");
  builder.bytes = {7, 1, 2, 3, 5, 4, 3, 2, 1, 0, 0, 0, 0, 0, 0, 0, 0x80};
  builder.keywords["$TOT"] = "1";
  const Matrix events = parse(builder).events;
  EXPECT_EQ(events(0, 0), 7);
  EXPECT_EQ(events(0, 1), 0x030201);
  EXPECT_EQ(events(0, 2), 4328719365.0);
  EXPECT_EQ(events(0, 3), 0x1p63);
}

TEST(Fcs, ranges_that_are_no_power_of_two_keep_the_bits_they_need) {
  FcsBuilder builder;
  builder.channel("A", 16, "1000").channel("B", 16, "0");
  builder.bytes = {0xFF, 0xFF, 0xFF, 0xFF};
  builder.keywords["$TOT"] = "1";
  const Matrix events = parse(builder).events;
  EXPECT_EQ(events(0, 0), 1023);
  EXPECT_EQ(events(0, 1), 65535);
}

TEST(Fcs, logarithm_and_gain_of_the_amplifier_are_undone) {
  FcsBuilder builder;
  builder.channel("A", 16, "1024").channel("B", 16, "1024").channel("C", 16, "1024");
  builder.keywords["$P1E"] = "4,0";
  builder.keywords["$P2E"] = "2.0,0.1";
  builder.keywords["$P3G"] = "8";
  builder.bytes = {0, 2, 0, 2, 0, 2};
  builder.keywords["$TOT"] = "1";
  const Matrix events = parse(builder).events;
  EXPECT_DOUBLE_EQ(events(0, 0), 100);
  EXPECT_DOUBLE_EQ(events(0, 1), 1);
  EXPECT_DOUBLE_EQ(events(0, 2), 64);
}

TEST(Fcs, floats_and_doubles_are_read) {
  FcsBuilder builder;
  builder.keywords["$DATATYPE"] = "F";
  builder.channel("A", 32, "262144");
  builder.number(std::bit_cast<std::uint32_t>(-1.5F), 4).number(std::bit_cast<std::uint32_t>(3e5F), 4);
  builder.keywords["$TOT"] = "2";
  EXPECT_EQ(parse(builder).events(0, 0), -1.5);
  EXPECT_EQ(parse(builder).events(1, 0), 3e5);
  FcsBuilder doubles;
  doubles.keywords["$DATATYPE"] = "D";
  doubles.channel("A", 64, "262144").number(std::bit_cast<std::uint64_t>(0.1), 8);
  doubles.keywords["$TOT"] = "1";
  EXPECT_EQ(parse(doubles).events(0, 0), 0.1);
}

TEST(Fcs, a_logarithm_claimed_for_floats_is_not_believed_and_said) {
  FcsBuilder builder;
  builder.keywords["$DATATYPE"] = "F";
  builder.channel("A", 32, "1024").number(std::bit_cast<std::uint32_t>(512.0F), 4);
  builder.keywords["$P1E"] = "4,1";
  builder.keywords["$TOT"] = "1";
  const FcsFile file = parse(builder);
  EXPECT_EQ(file.events(0, 0), 512);
  EXPECT_TRUE(mentions(file.notes, "$P1E claims a logarithmic scale"));
}

TEST(Fcs, doubled_delimiters_are_part_of_the_value) {
  FcsBuilder builder = two_bytes();
  builder.keywords["$P1S"] = "CD4/FITC";
  builder.keywords["$P2S"] = "CD8/";
  const FcsFile file = parse(builder);
  EXPECT_EQ(file.channels[0].label, "CD4/FITC");
  EXPECT_EQ(file.channels[1].label, "CD8/");
}

TEST(Fcs, empty_values_are_understood_where_the_standard_reading_makes_no_sense) {
  FcsBuilder builder = two_bytes();
  builder.keywords["$FIL"] = "";
  builder.keywords["$P1S"] = "";
  const FcsFile file = parse(builder);
  EXPECT_EQ(file.channels[0].label, "");
  EXPECT_EQ(file.events(0, 0), 0x0201);
  EXPECT_TRUE(mentions(file.notes, "empty values"));
}

TEST(Fcs, keywords_do_not_tell_case_apart) {
  FcsBuilder builder = two_bytes();
  builder.keywords.erase("$MODE");
  builder.keywords["$mode"] = "L";
  builder.keywords["Spill"] = "1,A,1";
  EXPECT_EQ(parse(builder).keywords.at("SPILL"), "1,A,1");
}

TEST(Fcs, zero_offsets_in_the_header_send_the_reader_to_text) {
  FcsBuilder builder = two_bytes();
  builder.header_data_offsets = false;
  EXPECT_EQ(parse(builder).events.rows(), 2);
}

TEST(Fcs, supplemental_text_adds_keywords_and_overrides_none) {
  FcsBuilder builder = two_bytes();
  builder.supplement = "/$P1S/label/$TOT/7/";
  const FcsFile file = parse(builder);
  EXPECT_EQ(file.channels[0].label, "label");
  EXPECT_EQ(file.events.rows(), 2);
}

TEST(Fcs, a_supplement_that_is_no_text_is_left_alone_and_said) {
  FcsBuilder builder = two_bytes();
  builder.supplement = "PK\x03\x04 an archive of settings";
  EXPECT_TRUE(mentions(parse(builder).notes, "hold no keywords"));
}

TEST(Fcs, an_end_of_data_that_is_off_by_one_is_forgiven) {
  for (const int shift : {-1, 1}) {
    FcsBuilder builder = two_bytes();
    builder.end_shift = shift;
    const FcsFile file = parse(builder);
    EXPECT_EQ(file.events.rows(), 2);
    EXPECT_TRUE(file.notes.empty());
  }
}

TEST(Fcs, fewer_events_than_bytes_are_read_and_said) {
  FcsBuilder builder = two_bytes();
  builder.keywords["$TOT"] = "1";
  const FcsFile file = parse(builder);
  EXPECT_EQ(file.events.rows(), 1);
  EXPECT_TRUE(mentions(file.notes, "4 bytes follow the last of the 1 events"));
}

TEST(Fcs, a_missing_total_is_counted_from_the_bytes) {
  FcsBuilder builder = two_bytes();
  builder.keywords.erase("$TOT");
  const FcsFile file = parse(builder);
  EXPECT_EQ(file.events.rows(), 2);
  EXPECT_TRUE(mentions(file.notes, "$TOT is missing"));
}

TEST(Fcs, further_data_sets_are_said) {
  FcsBuilder builder = two_bytes();
  builder.keywords["$NEXTDATA"] = "1234";
  EXPECT_TRUE(mentions(parse(builder).notes, "further data sets"));
}

TEST(FcsRefusal, more_events_than_the_file_holds) {
  for (const char* total : {"3", "1000000000000", "18446744073709551615"}) {
    FcsBuilder builder = two_bytes();
    builder.keywords["$TOT"] = total;
    EXPECT_NE(complaint(builder).find(std::string("$TOT promises ") + total + " events of 4 bytes"), std::string::npos)
        << complaint(builder);
  }
}

TEST(FcsRefusal, every_keyword_that_cannot_be_used_is_named_with_its_value) {
  const auto with = [](const std::string& keyword, const std::string& value) {
    FcsBuilder builder = two_bytes();
    builder.keywords[keyword] = value;
    return complaint(builder);
  };
  EXPECT_EQ(with("$DATATYPE", "A"),
            "t.fcs: $DATATYPE = \"A\"; I, F or D was expected (numbers written as text, A, are not read)");
  EXPECT_EQ(with("$BYTEORD", "3,4,1,2"),
            "t.fcs: $BYTEORD = \"3,4,1,2\"; 1,2,3,4 or 4,3,2,1 was expected (mixed orders are not read)");
  EXPECT_EQ(with("$P1B", "10"),
            "t.fcs: $P1B = \"10\"; a multiple of 8 up to 64 (values that share bytes are not read) was expected");
  EXPECT_EQ(with("$P1R", "many"), "t.fcs: $P1R = \"many\"; a number was expected");
  EXPECT_EQ(with("$P2E", "4"), "t.fcs: $P2E = \"4\"; two numbers were expected, as in 0,0");
  EXPECT_EQ(with("$MODE", "C"), "t.fcs: $MODE = \"C\"; L (one row per event) was expected, histograms are not read");
  EXPECT_EQ(with("$PAR", "99999999999"), "t.fcs: the keyword $P3B is missing");
  EXPECT_EQ(with("$PAR", "0"), "t.fcs: $PAR = 0; at least one channel was expected");
  EXPECT_EQ(with("$PAR", "two"), "t.fcs: $PAR = \"two\"; a whole number of at least 0 was expected");
  EXPECT_NE(with("$P1DATATYPE", "F").find("$P1DATATYPE = \"F\" differs"), std::string::npos);
}

TEST(FcsRefusal, files_that_are_something_else) {
  const auto of = [](const std::string& content) { return complaint([&] { (void)parse_fcs(content, "t.fcs"); }); };
  EXPECT_NE(of("").find("not an FCS file"), std::string::npos);
  EXPECT_NE(of("a,b\n1,2\n").find("not an FCS file"), std::string::npos);
  EXPECT_NE(of("FCS1.0" + std::string(60, ' ')).find("1.0"), std::string::npos);
  EXPECT_NE(of("FCS3.1    " + std::string(60, 'x')).find("byte 10 of the FCS header"), std::string::npos);
  EXPECT_NE(of("FCS3.1          589999999" + std::string(60, ' ')).find("TEXT is declared at bytes"),
            std::string::npos);
  EXPECT_NE(of("FCS3.1          58      58      " + std::string(26, ' ')).find("the file has 58 bytes"),
            std::string::npos);
}

TEST(FcsRefusal, a_file_cut_at_any_byte_is_refused_or_read_never_worse) {
  const std::string whole = two_bytes().content();
  for (std::size_t size = 0; size < whole.size(); ++size) {
    EXPECT_NE(complaint([&] { (void)parse_fcs(std::string_view(whole).substr(0, size), "t.fcs"); }), "") << size;
  }
}

FcsFile events_of(const Matrix& values) {
  FcsFile file;
  file.source = "t.fcs";
  file.events = values;
  for (Index at = 0; at < values.cols(); ++at)
    file.channels.push_back({.name = fmt::format("C{}", at + 1), .range = 1024});
  return file;
}

TEST(FcsWriter, what_is_written_is_read_back) {
  FcsFile file = events_of((Matrix(3, 2) << 1, -2, 0.25, 4e5, 5, 6).finished());
  file.channels[0].label = "a\fform feed\f";
  file.keywords["SPILL"] = "2,C1,C2,1,0.5,0,1";
  const FcsFile back = parse_fcs(to_fcs(file), "t.fcs");
  EXPECT_EQ(back.events, file.events);
  EXPECT_EQ(back.channels[0].label, "a\fform feed\f");
  EXPECT_EQ(back.channels[1].name, "C2");
  EXPECT_EQ(back.keywords.at("SPILL"), file.keywords.at("SPILL"));
  EXPECT_TRUE(back.notes.empty());
}

TEST(FcsWriter, refuses_what_no_reader_could_understand) {
  FcsFile file = events_of(Matrix::Ones(2, 2));
  file.channels[0].label = "\fCD4";
  EXPECT_THROW((void)to_fcs(file), InvalidInput);
  file.channels.pop_back();
  EXPECT_THROW((void)to_fcs(file), InvalidInput);
}

TEST(Compensation, undoes_what_spillover_did) {
  const Matrix truth = (Matrix(2, 2) << 100, 0, 30, 70).finished();
  const Matrix spill = (Matrix(2, 2) << 1, 0.25, 0.1, 1).finished();
  FcsFile file = events_of(truth * spill);
  for (const char* keyword : {"$SPILLOVER", "SPILL"}) {
    for (const char* names : {"C1,C2", "1,2"}) {
      FcsFile copy = file;
      copy.keywords = {{keyword, std::string("2,") + names + ",1,0.25,0.1,1"}};
      compensate(copy);
      EXPECT_TRUE(copy.events.isApprox(truth, 1e-12));
    }
  }
  file.keywords = {{"$COMP", "2,1,0.25,0.1,1"}};
  compensate(file);
  EXPECT_TRUE(file.events.isApprox(truth, 1e-12));
}

TEST(Compensation, a_file_without_events_has_nothing_to_undo) {
  FcsFile file = events_of(Matrix(0, 2));
  file.keywords = {{"$SPILLOVER", "2,C1,C2,1,0.25,0.1,1"}};
  compensate(file);
  EXPECT_EQ(unmixed(file, *spillover_of(file)).cols(), 2);
  EXPECT_EQ(file.events.rows(), 0);
}

TEST(Compensation, matrices_that_mean_nothing_are_refused) {
  const auto with = [](const std::string& value) {
    FcsFile file = events_of(Matrix::Ones(2, 2));
    if (!value.empty()) file.keywords = {{"$SPILLOVER", value}};
    return complaint([&] { compensate(file); });
  };
  EXPECT_NE(with("").find("there is no spillover matrix"), std::string::npos);
  EXPECT_NE(with("2,C1,C2,1,1,1,1").find("rank is 1 of 2"), std::string::npos);
  EXPECT_NE(with("2,C1,C9,1,0,0,1").find("no channel \"C9\""), std::string::npos);
  EXPECT_NE(with("2,C1,C2,1,0,0").find("6 parts; 7 were expected"), std::string::npos);
  EXPECT_NE(with("99999999,C1").find("begins with \"99999999\""), std::string::npos);
  EXPECT_NE(with("2,C1,C2,1,x,0,1").find("holds \"x\""), std::string::npos);
}

TEST(EventTable, values_without_a_place_on_the_scale_are_named) {
  const FcsFile file = events_of((Matrix(2, 2) << 1, 10, -3, 100).finished());
  const Table table = event_table(file, {.scales = {{"", "log"}}});
  EXPECT_EQ(table.numbers("C2")[1], 2);  // the other channel is no obstacle
  const std::string said = "t.fcs, event 2: channel \"C1\" holds -3, which is not a finite number on the scale log";
  EXPECT_EQ(complaint([&] { (void)table.numbers("C1"); }), said);
  EXPECT_EQ(complaint([&] { (void)table.matrix({"C2", "C1"}); }), said);
}

TEST(EventTable, a_channel_has_its_own_scale_or_that_of_all) {
  const FcsFile file = events_of((Matrix(1, 2) << 100, 150).finished());
  const Table table = event_table(file, {.scales = {{"", "asinh:150"}, {"C1", "log"}}});
  EXPECT_DOUBLE_EQ(table.numbers("C1")[0], 2);
  EXPECT_DOUBLE_EQ(table.numbers("C2")[0], std::asinh(1.0));
}

TEST(EventTable, columns_are_found_by_labels_that_one_channel_has) {
  FcsFile file = events_of((Matrix(1, 3) << 1, 2, 3).finished());
  file.channels[0].label = "CD4";
  file.channels[1].label = file.channels[2].label = "CD8";
  const Table table = event_table(file, {.scales = {{"CD4", "log"}}});
  EXPECT_EQ(table.numbers("CD4")[0], 0);
  EXPECT_EQ(complaint([&] { (void)table.find("CD8"); }),
            "t.fcs: \"CD8\" is the label of C2 and of C3; name one of these");
  EXPECT_EQ(table.find("CD3"), nullptr);
}

TEST(EventTable, equal_mass_gates_split_the_rows_evenly_by_rank) {
  Table table = event_table(events_of((Matrix(5, 1) << 5, 1, 4, 2, 3).finished()), {});
  add_equal_mass_gates(table, "C1", 2);
  EXPECT_EQ(table.column(mass_gate_column).text, (std::vector<std::string>{"2", "1", "2", "1", "1"}));
  EXPECT_THROW(add_equal_mass_gates(table, "C1", 6), InvalidInput);
}

TEST(FcsFiles, real_instruments_agree_with_flowio) {
  const std::filesystem::path folder = test_data("../../../shared/data/cytometry");
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << "the FCS files are not here";
  std::ifstream stored(test_data("cytometry_oracle.json"));
  const auto oracle = nlohmann::json::parse(stored);
  for (const auto& [name, expected] : oracle.at("files").items()) {
    const FcsFile file = read_fcs((folder / name).string());
    EXPECT_EQ(file.events.rows(), expected.at("events").get<Index>()) << name;
    for (const auto& [channel, mean] : expected.at("means").items()) {
      const double ours = file.events.col(file.channel(channel)).mean();
      EXPECT_NEAR(ours, mean.get<double>(), 1e-6 * (1 + std::abs(mean.get<double>()))) << name << " " << channel;
    }
  }
}

}  // namespace
}  // namespace unshuffle::cytometry
