#include "unshuffle/report/json.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "support/complaint.hpp"

namespace unshuffle {
namespace {

using Names = std::vector<std::string>;

Result small_fit() {
  Result fit;
  fit.message = "inner and outer loop converged";
  fit.names = {"intercept", "age", "height"};
  fit.parameters = Vector{{0.5, 1.0 / 3, -2}};
  fit.covariance = Matrix{{0.01, 0, 0.02}, {0, std::nan(""), 0}, {0.02, 0, 0.09}};
  fit.plan.epsilon = 0.01;
  fit.plan.epsilon_relative = 1e-4;
  return fit;
}

FitContext small_context() {
  FitContext context;
  context.estimator = context.chosen = RobotRobust{.unmatched = 0.3};
  context.model = "linear";
  context.columns = {
      .response = {"y"}, .x = Names{"age"}, .z = Names{"height"}, .weights = "w", .groups = {{"a", "b"}}};
  context.model_state = {1, 2.5};
  return context;
}

TEST(FitJson, has_every_key_of_the_contract) {
  const auto json = nlohmann::json::parse(to_json(small_fit(), small_context()));
  for (const char* key : {"status", "message", "method", "model", "coefficients", "std_errors", "intercept",
                          "objective", "epsilon", "marginal_error", "noise_sd", "matched_share", "identifiable",
                          "iterations", "seconds", "peak_memory_mb", "seed", "version"}) {
    EXPECT_TRUE(json.contains(key)) << key;
  }
  EXPECT_EQ(json["intercept"], 0.5);
  EXPECT_EQ(json["coefficients"]["age"], 1.0 / 3);
  EXPECT_FALSE(json["coefficients"].contains("intercept"));
  EXPECT_EQ(json["identifiable"]["verdict"], "not assessed");
}

TEST(FitJson, what_is_not_a_number_is_null) {
  const auto json = nlohmann::json::parse(to_json(small_fit(), small_context()));
  EXPECT_TRUE(json["std_errors"]["age"].is_null());
  EXPECT_DOUBLE_EQ(json["std_errors"]["height"], 0.3);
  EXPECT_TRUE(json["covariance"]["rows"][1][1].is_null());
}

TEST(FitJson, several_outputs_have_an_intercept_each) {
  Result fit = small_fit();
  fit.names = {"u:intercept", "u:age", "v:intercept", "v:age"};
  fit.parameters = Vector{{1, 2, 3, 4}};
  const std::string text = to_json(fit, small_context());
  const auto json = nlohmann::json::parse(text);
  EXPECT_EQ(json["intercept"]["v"], 3);
  EXPECT_EQ(json["coefficients"]["v:age"], 4);
  EXPECT_EQ(in_order(parameters_from_json(text, "f"), fit.names, "f"), fit.parameters);
}

TEST(FitJson, comes_back_as_it_was) {
  const Result fit = small_fit();
  const SavedFit saved = fit_from_json(to_json(fit, small_context()), "fit.json");
  EXPECT_EQ(in_order(saved.parameters, fit.names, "fit.json"), fit.parameters);
  EXPECT_EQ(saved.context.model, "linear");
  EXPECT_EQ(saved.epsilon, 0.01);
  EXPECT_EQ(*saved.context.columns.x, Names{"age"});
  EXPECT_EQ(saved.context.columns.weights, "w");
  EXPECT_EQ(saved.context.columns.groups.at(0).feature_column, "b");
  EXPECT_EQ(saved.context.model_state, (std::vector<double>{1, 2.5}));
  EXPECT_EQ(std::get<RobotRobust>(saved.context.estimator).unmatched, 0.3);
  const Matrix covariance = in_order(saved.covariance, {"height", "intercept", "age"}, "fit.json");
  EXPECT_EQ(covariance(0, 1), 0.02);
  EXPECT_EQ(covariance(1, 1), 0.01);
  EXPECT_TRUE(std::isnan(covariance(2, 2)));
}

TEST(FitJson, a_covariance_has_a_row_and_a_column_for_every_name) {
  auto json = nlohmann::json::parse(to_json(small_fit(), small_context()));
  const auto said = [&] { return complaint<BadData>([&] { (void)fit_from_json(json.dump(), "f"); }); };
  const auto whole = json["covariance"]["rows"];
  json["covariance"]["rows"].erase(2);
  EXPECT_EQ(said(), "f: \"covariance\" needs 3 rows, one for each name");
  json["covariance"]["rows"] = whole;
  json["covariance"]["rows"][1].push_back(1);
  EXPECT_EQ(said(), "f: row 1 of \"covariance\" needs 3 numbers");
  json["covariance"]["rows"] = whole;
  json["covariance"]["rows"][0][0] = "one";
  EXPECT_EQ(said(), "f: \"covariance\" is \"one\"; a number was expected");
  json["covariance"]["rows"] = whole;
  const SavedFit saved = fit_from_json(json.dump(), "f");
  EXPECT_EQ(complaint<BadData>([&] { (void)in_order(saved.covariance, {"weight"}, "f"); }),
            "f: \"covariance\" does not name the parameter \"weight\"");
  json["covariance"] = nullptr;
  EXPECT_EQ(in_order(fit_from_json(json.dump(), "f").covariance, {"age"}, "f").size(), 0);
}

TEST(FitJson, intervals_come_back_as_they_were_and_have_two_ends_for_every_name) {
  Result fit = small_fit();
  fit.covariance(1, 1) = 0.04;
  fit.margins = Matrix{{0.1, 0.2}, {0.3, std::nan("")}, {0.5, 0.6}};
  auto json = nlohmann::json::parse(to_json(fit, small_context()));
  const SavedFit saved = fit_from_json(json.dump(), "f");
  const Matrix ends = in_order(saved.intervals, fit.names, "f"), expected = fit.intervals();
  EXPECT_EQ(ends.col(0), expected.col(0));
  EXPECT_EQ(ends(2, 1), expected(2, 1));
  EXPECT_TRUE(std::isnan(ends(1, 1)));
  EXPECT_EQ(complaint<BadData>([&] { (void)in_order(saved.intervals, {"weight"}, "f"); }),
            "f: \"intervals\" does not name the parameter \"weight\"");
  const auto said = [&] { return complaint<BadData>([&] { (void)fit_from_json(json.dump(), "f"); }); };
  json["intervals"]["age"] = {1};
  EXPECT_EQ(said(), "f: the interval of \"age\" needs two ends");
  json["intervals"]["age"] = {1, "two"};
  EXPECT_EQ(said(), "f: \"age\" is \"two\"; a number was expected");
  json.erase("intervals");
  EXPECT_EQ(in_order(fit_from_json(json.dump(), "f").intervals, fit.names, "f").size(), 0);
}

TEST(FitJson, options_that_will_not_do_are_bad_data) {
  auto json = nlohmann::json::parse(to_json(small_fit(), small_context()));
  const auto said = [&] { return complaint<BadData>([&] { (void)fit_from_json(json.dump(), "f"); }); };
  json["options"]["unmatched"] = 2;
  EXPECT_EQ(said(), "f: unmatched = 2 must be above 0 and below 1");
  json["options"]["unmatched"] = {{"a", 1}};
  EXPECT_EQ(said(), "f: the option \"unmatched\" holds {\"a\":1}, which is not of the kind expected");
  json["options"]["unmatched"] = nullptr;  // its default
  json["options"]["start"] = {1, "two"};
  EXPECT_EQ(said(), "f: the option \"start\" holds [1,\"two\"], which is not of the kind expected");
  json["options"]["start"] = {1, 2};
  EXPECT_EQ(said(), "");
}

TEST(FitJson, other_optima_are_listed_once) {
  Result fit = small_fit();
  Candidate same{.start = "ransac", .parameters = fit.parameters, .objective = 1, .converged = true, .message = {}};
  Candidate other = same;
  other.parameters[1] = 9;
  fit.course.candidates = {same, other, other};
  EXPECT_EQ(nlohmann::json::parse(to_json(fit, small_context()))["identifiable"]["alternatives"].size(), 1u);
  const std::string told = summary_of(fit, small_context());
  const std::size_t place = told.find("Other solutions   ransac, objective 1: intercept 0.5 age 9 height -2");
  EXPECT_NE(place, std::string::npos) << told;
  EXPECT_EQ(told.find("ransac, objective", place + 20), std::string::npos) << told;
}

TEST(FitJson, broken_files_are_told_apart) {
  EXPECT_EQ(complaint<BadData>([] { (void)parameters_from_json("{", "w.json"); }), "w.json: not valid JSON at byte 2");
  EXPECT_EQ(complaint<BadData>([] { (void)parameters_from_json("{\"coefficients\": {\"a\": 1e999}}", "w.json"); }),
            "w.json: holds a number beyond the largest double");
  EXPECT_EQ(complaint<BadData>([] { (void)parameters_from_json("[1]", "w.json"); }),
            "w.json: a JSON object was expected");
  EXPECT_EQ(complaint<BadData>([] { (void)parameters_from_json("{}", "w.json"); }),
            "w.json: the key \"coefficients\" is missing");
  EXPECT_EQ(complaint<BadData>([] { (void)parameters_from_json(R"({"coefficients": {"a": "x"}})", "w.json"); }),
            "w.json: \"a\" is \"x\"; a number was expected");
  EXPECT_EQ(complaint<BadData>([] { (void)fit_from_json(R"({"coefficients": {}})", "w.json"); }),
            "w.json: the key \"columns\" is missing");
}

TEST(FitJson, parameters_must_be_those_of_the_model) {
  const auto at = [](const char* text) { return parameters_from_json(text, "w.json"); };
  EXPECT_EQ(complaint<BadData>([&] { (void)in_order(at(R"({"coefficients": {}})"), {"a"}, "w.json"); }),
            "w.json: the coefficient \"a\" is missing");
  EXPECT_EQ(complaint<BadData>([&] { (void)in_order(at(R"({"coefficients": {"a": 1, "b": 2}})"), {"a"}, "w.json"); }),
            "w.json: the model has no parameter \"b\"");
  EXPECT_EQ(in_order(at(R"({"coefficients": {"a": 1}})"), {"intercept", "a"}, "w.json"), (Vector{{0, 1}}));
}

TEST(FitSummary, shows_coefficients_with_their_interval) {
  const std::string text = summary_of(small_fit(), small_context());
  EXPECT_NE(text.find("[0.025"), std::string::npos);
  EXPECT_NE(text.find("height"), std::string::npos);
  EXPECT_NE(text.find("-2.58799"), std::string::npos);
  EXPECT_NE(text.find("inner and outer loop converged"), std::string::npos);
}

TEST(FitSummary, says_first_that_the_answer_is_one_of_several_and_gives_it_no_interval) {
  Result fit = small_fit();
  fit.identifiable = {Verdict::not_identifiable, "others fit as well", "ask for a key", {}};
  const std::string text = summary_of(fit, small_context());
  EXPECT_LT(text.find("not identifiable: others fit as well"), text.find("height"));
  EXPECT_LT(text.find("advice: ask for a key"), text.find("one of the solutions"));
  EXPECT_EQ(text.find("std err"), std::string::npos);
  EXPECT_EQ(text.find("-2.58799"), std::string::npos);
}

TEST(FitSummary, of_many_coefficients_another_solution_shows_the_first) {
  Result fit;
  for (int k = 0; k < 20; ++k) fit.names.push_back(fmt::format("c{}", k));
  fit.parameters = Vector::Zero(20);
  fit.identifiable = {Verdict::identified, "", "", {{Vector::Ones(20), 4.2, 1, "random"}}};
  EXPECT_NE(summary_of(fit, small_context())
                .find("random, 4.2 nats less likely: c0 1 c1 1 c2 1 c3 1 c4 1 c5 1 c6 1 c7 1 and 12 more\n"),
            std::string::npos);
}

}  // namespace
}  // namespace unshuffle
