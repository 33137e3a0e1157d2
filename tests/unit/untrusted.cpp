// What is read from files of others, before anyone knows what is in them.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/checksum.hpp"
#include "core/read_json.hpp"
#include "core/text.hpp"
#include "core/threads.hpp"
#include "pixels/pickle_depth.hpp"
#include "support/complaint.hpp"
#include "transport/compress.hpp"

namespace unshuffle {
namespace {

std::string repeated(const std::string& text, int times) {
  std::string out;
  for (int k = 0; k < times; ++k) out += text;
  return out;
}

TEST(Text, numbers_have_one_sign_and_are_finite) {
  EXPECT_EQ(parse_number("+4"), 4);
  EXPECT_EQ(parse_number("-2.5e3"), -2500);
  EXPECT_EQ(parse_number("1e-400"), 0);
  for (const char* text :
       {"", "+", "-", "+-1", "-+1", "++1", "1 ", " 1", "0x1", "inf", "nan", "1e400", "-1e400", "1,5"})
    EXPECT_FALSE(parse_number(text)) << text;
}

TEST(Text, utf8_is_told_from_what_only_looks_like_it) {
  for (const char* text : {"", "plain", "größe", "żółć", "語", "𝒛", "\xEF\xBF\xBD"}) EXPECT_TRUE(is_utf8(text)) << text;
  for (const char* text : {"gr\xF6sse", "\x80", "\xC0\x80", "\xC3", "\xE0\x80\x80", "\xED\xA0\x80", "\xF0\x80\x80\x80",
                           "\xF4\x90\x80\x80", "\xF8\x88\x80\x80\x80", "\xE8\xAA"})
    EXPECT_FALSE(is_utf8(text)) << text;
  EXPECT_EQ(as_utf8("größe"), "größe");
  EXPECT_EQ(as_utf8("gr\xF6\xDF"
                    "e"),
            "größe");
}

TEST(Text, a_terminal_is_shown_control_characters_and_not_sent_them) {
  EXPECT_EQ(printable("a\x1b[2Jb\tc\nd"), "a\\x1b[2Jb\\x09c\nd");
  EXPECT_EQ(printable("\x7f\xC2\x9B\xFF größe"), "\\x7f\\xc2\\x9b\\xff größe");
}

TEST(Text, a_file_made_of_a_name_lies_where_it_is_put) {
  EXPECT_EQ(file_name_for("MOT17-05"), "MOT17-05");
  EXPECT_EQ(file_name_for("../victim/notes"), "_._victim_notes");
  EXPECT_EQ(file_name_for("/etc/passwd"), "_etc_passwd");
  EXPECT_EQ(file_name_for(".."), "_.");
  EXPECT_EQ(file_name_for("."), "_");
  EXPECT_EQ(file_name_for(""), "_");
  EXPECT_EQ(file_name_for("a\\b\nc"), "a_b_c");
  EXPECT_EQ(file_name_for(std::string("a\0b", 3)), "a_b");
  const std::string cut = file_name_for(repeated("ö", 300));
  EXPECT_TRUE(is_utf8(cut));
  EXPECT_LE(cut.size(), 200U);
}

TEST(Json, nesting_is_bounded_and_brackets_in_strings_do_not_count) {
  EXPECT_EQ(nesting_of(R"({"a": [1, {"b": "[[[\"[["}], "c": []})"), 3);
  EXPECT_EQ(read_json(repeated("[", 64) + repeated("]", 64), "f").size(), 1U);
  const auto said = [](const std::string& text) { return complaint<BadData>([&] { (void)read_json(text, "f"); }); };
  const std::string deep = "f: arrays and objects are nested more than 64 deep; no file of unshuffle is";
  EXPECT_EQ(said(repeated("[", 600000)), deep);
  EXPECT_EQ(said(repeated("{\"a\":", 65)), deep);
  EXPECT_EQ(said("[1, 2"), "f: not JSON: byte 6 cannot be understood");
  EXPECT_EQ(said("[1e400]"), "f: holds a number beyond the largest double");
  EXPECT_EQ(json_text(nlohmann::json{{"name", "gr\xF6sse"}}), "{\"name\":\"gr\xEF\xBF\xBDsse\"}\n");
}

TEST(Checksum, every_flipped_bit_is_noticed) {
  const std::string content = with_checksum("{\"a\":[1,2,3]}\nbytes \1\2");
  EXPECT_TRUE(content.ends_with("\"a\":[1,2,3]}\nbytes \1\2"));
  EXPECT_TRUE(checksum_holds(content));
  EXPECT_EQ(read_json(content.substr(0, content.find('\n')), "f")["a"].size(), 3U);
  for (std::size_t bit = 0; bit < 8 * content.size(); ++bit) {
    std::string flipped = content;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << bit % 8));
    EXPECT_FALSE(checksum_holds(flipped)) << bit;
  }
  for (std::size_t size = 0; size < content.size(); ++size) EXPECT_FALSE(checksum_holds(content.substr(0, size)));
  EXPECT_FALSE(checksum_holds(content + " "));
}

TEST(ThreadCount, counts_that_no_machine_has_use_for_are_refused) {
  EXPECT_EQ(complaint<InvalidInput>([] { require_threads(-1); }).substr(0, 34), "threads = -1 must be at least 0 an");
  EXPECT_EQ(complaint<InvalidInput>([] { require_threads(1000000); }).substr(0, 37),
            "threads = 1000000 must be at least 0 ");
  EXPECT_NO_THROW(require_threads(0));
  EXPECT_NO_THROW(require_threads(3));
}

/// Beginning and end of a pickle of protocol 2.
std::string pickle(const std::string& body) { return "\x80\x02" + body + "."; }

std::string said_of(const std::string& bytes) {
  return complaint<BadData>([&] { pixels::require_shallow_pickle(bytes, "w.pt"); });
}

TEST(Pickle, what_is_nested_too_deep_is_refused_however_it_is_built) {
  EXPECT_EQ(said_of(pickle(")" + repeated("\x85", 60))), "");
  const std::string deep =
      "w.pt: cannot be read: its values are nested too deep; a file that torch.save(model.state_dict(), FILE) writes "
      "was expected";
  EXPECT_EQ(said_of(pickle(")" + repeated("\x85", 300000))), deep);
  EXPECT_EQ(said_of(pickle(repeated("](", 100) + ")" + repeated("e", 100))), deep);
  // A list that is remembered while it is empty, filled, and then taken from memory as the beginning of another.
  std::string relayed = "]q\1";
  for (int k = 0; k < 80; ++k) relayed += "]q\2h\1aq\1";
  EXPECT_EQ(said_of(pickle(relayed)), deep);
}

TEST(Pickle, what_no_state_dictionary_does_is_refused) {
  EXPECT_NE(said_of(pickle("]q\1]h\1]a")).find("changes a value that others hold"), std::string::npos);
  EXPECT_NE(said_of(pickle("\x85")).find("takes what is not there"), std::string::npos);
  EXPECT_NE(said_of(pickle("h\7")).find("takes what is not there"), std::string::npos);
  EXPECT_NE(said_of(pickle("e")).find("takes what is not there"), std::string::npos);
  EXPECT_NE(said_of("\x80\x02X\xff\xff\xff\xff").find("cut short"), std::string::npos);
  EXPECT_NE(said_of("").find("cut short"), std::string::npos);
  EXPECT_NE(said_of(pickle("i")).find("does what no state dictionary needs"), std::string::npos);
}

TEST(Compression, ranges_that_cannot_be_divided_end) {
  const transport::CompressionRule rule{};
  constexpr double largest = std::numeric_limits<double>::max(), smallest = std::numeric_limits<double>::denorm_min();
  for (const double end : {largest, std::numeric_limits<double>::infinity(), smallest, 1e-300}) {
    Vector position = Vector::LinSpaced(100, -1, 1);
    position *= end;
    const transport::CompressedMeasure measure(position, Vector(), rule);
    EXPECT_GT(measure.nodes().size(), 0);
  }
}

}  // namespace
}  // namespace unshuffle
