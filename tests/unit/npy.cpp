#include "unshuffle/tables/npy.hpp"
#include "support/test_data.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "unshuffle/core/error.hpp"

namespace unshuffle {
namespace {

/// Format 1, without the padding that NumPy adds.
std::string npy(const std::string& header, const std::string& numbers) {
  return std::string("\x93NUMPY\x01\x00", 8) + char(header.size()) + '\0' + header + numbers;
}

std::string eights(const std::vector<double>& values) {
  return {reinterpret_cast<const char*>(values.data()), 8 * values.size()};
}

std::string refusal(const std::string& bytes) {
  try {
    (void)parse_npy(bytes, "z.npy");
  } catch (const BadData& error) {
    return error.what();
  }
  return "read";
}

std::string described(const std::string& type, const std::string& shape) {
  return "{'descr': '" + type + "', 'fortran_order': False, 'shape': " + shape + ", }";
}

TEST(Npy, holds_what_numpy_saved) {
  std::ifstream file(test_data("npy.json"));
  const auto oracle = nlohmann::json::parse(file);
  for (const auto& array : oracle["arrays"]) {
    const std::string digits = array["bytes"];
    std::string bytes;
    for (std::size_t k = 0; k < digits.size(); k += 2) bytes += char(std::stoi(digits.substr(k, 2), nullptr, 16));
    const Table table = parse_npy(bytes, "folder/z.npy");
    const std::vector<std::vector<double>> rows = array["rows"];
    ASSERT_EQ(table.rows, Index(rows.size())) << array["type"];
    ASSERT_EQ(table.columns.size(), rows.front().size());
    for (std::size_t i = 0; i < rows.size(); ++i) {
      for (std::size_t k = 0; k < rows[i].size(); ++k)
        EXPECT_EQ(table.columns[k].numbers[i], rows[i][k]) << array["type"];
    }
  }
}

TEST(Npy, columns_are_called_after_the_file) {
  EXPECT_EQ(parse_npy(npy(described("<f8", "(2,)"), eights({1, 2})), "a/y.npy").columns.front().name, "y");
  const Table table = parse_npy(npy(described("<f8", "(1, 2)"), eights({1, 2})), "z.npy");
  EXPECT_EQ(table.columns[0].name, "z1");
  EXPECT_EQ(table.columns[1].name, "z2");
}

TEST(Npy, sizes_are_not_believed) {
  EXPECT_EQ(refusal(npy(described("<f8", "(3, 2)"), eights({1, 2}))),
            "z.npy: declares 3 x 2 numbers of 8 bytes, but 16 bytes follow");
  EXPECT_NE(refusal(npy(described("<f8", "(4611686018427387904, 4)"), "")), "read");
  EXPECT_NE(refusal(npy(described("<f8", "(18446744073709551615, 18446744073709551615)"), eights({1}))), "read");
  EXPECT_NE(refusal(npy(described("<f8", "(2, 0)"), "")), "read");
  EXPECT_NE(refusal(npy(described("<f8", "(1, 1, 1)"), eights({1}))), "read");
  EXPECT_NE(refusal(npy(described("<f8", "(1,)"), eights({1}) + "x")), "read");
}

TEST(Npy, what_is_no_number_is_refused) {
  EXPECT_EQ(refusal(npy(described("|O", "(1,)"), "12345678")),
            "z.npy: holds elements of type \"|O\"; float64, float32, integers and booleans are supported");
  EXPECT_NE(refusal(npy("{'descr': [('a', '<f8')], 'fortran_order': False, 'shape': (1,)}", eights({1}))), "read");
  EXPECT_EQ(refusal(npy(described("<f8", "(1, 2)"), eights({1, NAN}))),
            "z.npy: row 0 of column \"z2\" is nan; a finite number was expected");
  const std::int64_t large = (1LL << 53) + 1;
  EXPECT_EQ(refusal(npy(described("<i8", "(1,)"), {reinterpret_cast<const char*>(&large), 8})),
            "z.npy: row 0 of column \"z\" is an integer beyond 2^53; a finite number was expected");
}

TEST(Npy, broken_headers_are_refused) {
  const std::string whole = npy(described("<f8", "(1,)"), eights({1}));
  EXPECT_EQ(refusal(whole), "read");
  for (std::size_t length = 0; length < whole.size(); ++length) EXPECT_NE(refusal(whole.substr(0, length)), "read");
  EXPECT_NE(refusal(npy("{'descr': '<f8', 'shape': (1,)}", eights({1}))), "read");
  EXPECT_NE(refusal(npy("{'descr': '<f8', 'descr': '<f8', 'fortran_order': False, 'shape': (1,)}", eights({1}))),
            "read");
  EXPECT_NE(refusal(npy(described("<f8", "(-1,)"), eights({1}))), "read");
  EXPECT_NE(refusal(npy(described("<f8", "(1,)") + "exit()", eights({1}))), "read");
}

}  // namespace
}  // namespace unshuffle
