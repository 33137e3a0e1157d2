#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include "support/test_data.hpp"
#include "unshuffle/core/error.hpp"
#include "unshuffle/cytometry/transform.hpp"

namespace unshuffle::cytometry {
namespace {

Scale scale_of(const nlohmann::json& row) {
  const std::string name = row.at("scale");
  const auto number = [&](const char* key) { return row.at(key).get<double>(); };
  if (name == "fasinh") return ParametrizedAsinh{number("t"), number("m"), number("a")};
  const LogicleParameters parameters{.t = number("t"), .w = number("w"), .m = number("m"), .a = number("a")};
  if (name == "hyperlog") return Hyperlog(parameters);
  return Logicle(parameters);
}

TEST(Scales, agree_with_flowutils) {
  std::ifstream stored(test_data("cytometry_oracle.json"));
  const auto scales = nlohmann::json::parse(stored).at("scales");
  const auto x = scales.at("x").get<std::vector<double>>();
  ASSERT_GT(scales.at("rows").size(), 10U);
  for (const auto& row : scales.at("rows")) {
    const Scale scale = scale_of(row);
    const auto expected = row.at("y").get<std::vector<double>>();
    for (std::size_t at = 0; at < x.size(); ++at) {
      EXPECT_NEAR(scaled(scale, x[at]), expected[at], 1e-12 * (1 + std::abs(expected[at]))) << row << " x = " << x[at];
    }
  }
}

TEST(Scales, logicle_and_hyperlog_undo_their_inverse_and_map_the_top_to_one) {
  for (const LogicleParameters& parameters : {LogicleParameters{}, LogicleParameters{.t = 1024, .w = 0, .m = 4, .a = 0},
                                              LogicleParameters{.t = 1e5, .w = 2, .m = 4, .a = 0},
                                              LogicleParameters{.t = 1e4, .w = 0.5, .m = 4.5, .a = 1.5}}) {
    const Logicle logicle(parameters);
    EXPECT_NEAR(logicle(parameters.t), 1, 1e-14);
    for (double y = -1; y <= 1.5; y += 0.01) EXPECT_NEAR(logicle(logicle.inverse(y)), y, 1e-13) << y;
    if (parameters.w == 0) continue;
    const Hyperlog hyperlog(parameters);
    EXPECT_NEAR(hyperlog(parameters.t), 1, 1e-14);
    for (double y = -1; y <= 1.5; y += 0.01) EXPECT_NEAR(hyperlog(hyperlog.inverse(y)), y, 1e-13) << y;
  }
}

TEST(Scales, logicle_rises_everywhere) {
  const Logicle logicle({.t = 262144, .w = 1, .m = 4.5, .a = 0});
  double before = -std::numeric_limits<double>::infinity();
  for (double x = -1e5; x < 1e5; x += 37.3) {
    const double y = logicle(x);
    EXPECT_GT(y, before);
    before = y;
  }
}

TEST(Scales, a_logarithm_of_nothing_is_below_everything) {
  EXPECT_EQ(Log10{}(0), -std::numeric_limits<double>::infinity());
  EXPECT_EQ((ParametrizedLog{100, 2}(-5)), -std::numeric_limits<double>::infinity());
  EXPECT_DOUBLE_EQ((ParametrizedLog{100, 2}(10)), 0.5);
  EXPECT_DOUBLE_EQ((ParametrizedLinear{1000, 100}(450)), 0.5);
}

TEST(Scales, are_parsed_from_text_and_refused_in_words) {
  EXPECT_DOUBLE_EQ(scaled(parse_scale("asinh:5", 1), 5), std::asinh(1.0));
  EXPECT_DOUBLE_EQ(scaled(parse_scale("asinh", 1), 150), std::asinh(1.0));
  EXPECT_DOUBLE_EQ(scaled(parse_scale("log", 1), 1000), 3);
  EXPECT_NEAR(scaled(parse_scale("logicle", 1024), 1024), 1, 1e-14);
  EXPECT_NEAR(scaled(parse_scale("logicle:100,0.5,4,0", 1024), 100), 1, 1e-14);
  for (const char* text : {"", "magic", "asinh:", "asinh:x", "asinh:0", "log:2", "logicle:1,2", "logicle:100,3,4,0",
                           "logicle:-1,0.5,4,0", "logicle:100,0.5,4,9"}) {
    EXPECT_THROW((void)parse_scale(text, 1), InvalidInput) << text;
  }
}

}  // namespace
}  // namespace unshuffle::cytometry
