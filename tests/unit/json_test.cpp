#include "unshuffle/report/json.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "unshuffle/core/error.hpp"

namespace unshuffle {
namespace {

using Names = std::vector<std::string>;

Fit small_fit() {
  Fit fit;
  fit.model = "linear";
  fit.message = "inner and outer loop converged";
  fit.names = {"intercept", "age", "height"};
  fit.parameters = Vector{{0.5, 1.0 / 3, -2}};
  fit.covariance = Matrix{{0.01, 0, 0.02}, {0, std::nan(""), 0}, {0.02, 0, 0.09}};
  fit.epsilon = 0.01;
  fit.epsilon_relative = 1e-4;
  return fit;
}

FitContext small_context() {
  FitContext context;
  context.columns = {
      .response = {"y"}, .x = Names{"age"}, .z = Names{"height"}, .weights = "w", .groups = {{"a", "b"}}};
  context.model_state = {1, 2.5};
  context.unmatched = 0.3;
  return context;
}

template <class Action>
std::string complaint(Action action) {
  try {
    action();
  } catch (const BadData& error) {
    return error.what();
  }
  return "";
}

TEST(FitJson, has_every_key_of_the_contract) {
  const auto json = nlohmann::json::parse(small_fit().to_json());
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
  const auto json = nlohmann::json::parse(small_fit().to_json());
  EXPECT_TRUE(json["std_errors"]["age"].is_null());
  EXPECT_DOUBLE_EQ(json["std_errors"]["height"], 0.3);
  EXPECT_TRUE(json["covariance"]["rows"][1][1].is_null());
}

TEST(FitJson, several_outputs_have_an_intercept_each) {
  Fit fit = small_fit();
  fit.names = {"u:intercept", "u:age", "v:intercept", "v:age"};
  fit.parameters = Vector{{1, 2, 3, 4}};
  const auto json = nlohmann::json::parse(fit.to_json());
  EXPECT_EQ(json["intercept"]["v"], 3);
  EXPECT_EQ(json["coefficients"]["v:age"], 4);
  EXPECT_EQ(in_order(parameters_from_json(fit.to_json(), "f"), fit.names, "f"), fit.parameters);
}

TEST(FitJson, comes_back_as_it_was) {
  const Fit fit = small_fit();
  const SavedFit saved = fit_from_json(to_json(fit, small_context()), "fit.json");
  EXPECT_EQ(in_order(saved.parameters, fit.names, "fit.json"), fit.parameters);
  EXPECT_EQ(saved.model, "linear");
  EXPECT_EQ(saved.epsilon, 0.01);
  EXPECT_EQ(*saved.context.columns.x, Names{"age"});
  EXPECT_EQ(saved.context.columns.weights, "w");
  EXPECT_EQ(saved.context.columns.groups.at(0).feature_column, "b");
  EXPECT_EQ(saved.context.model_state, (std::vector<double>{1, 2.5}));
  EXPECT_EQ(saved.context.unmatched, 0.3);
  const Matrix covariance = in_order(saved.covariance, {"height", "intercept", "age"}, "fit.json");
  EXPECT_EQ(covariance(0, 1), 0.02);
  EXPECT_EQ(covariance(1, 1), 0.01);
  EXPECT_TRUE(std::isnan(covariance(2, 2)));
}

TEST(FitJson, a_covariance_has_a_row_and_a_column_for_every_name) {
  auto json = nlohmann::json::parse(to_json(small_fit(), small_context()));
  const auto said = [&] { return complaint([&] { (void)fit_from_json(json.dump(), "f"); }); };
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
  EXPECT_EQ(complaint([&] { (void)in_order(saved.covariance, {"weight"}, "f"); }),
            "f: \"covariance\" does not name the parameter \"weight\"");
  json["covariance"] = nullptr;
  EXPECT_EQ(in_order(fit_from_json(json.dump(), "f").covariance, {"age"}, "f").size(), 0);
}

TEST(FitJson, other_optima_are_listed_once) {
  Fit fit = small_fit();
  Candidate same{.start = "ransac", .parameters = fit.parameters, .objective = 1, .converged = true, .message = {}};
  Candidate other = same;
  other.parameters[1] = 9;
  fit.candidates = {same, other, other};
  EXPECT_EQ(nlohmann::json::parse(fit.to_json())["identifiable"]["alternatives"].size(), 1u);
  const std::string told = fit.summary();
  const std::size_t place = told.find("Other solutions   ransac, objective 1: intercept 0.5 age 9 height -2");
  EXPECT_NE(place, std::string::npos) << told;
  EXPECT_EQ(told.find("ransac, objective", place + 20), std::string::npos) << told;
}

TEST(FitJson, broken_files_are_told_apart) {
  EXPECT_EQ(complaint([] { (void)parameters_from_json("{", "w.json"); }),
            "w.json: not JSON: byte 2 cannot be understood");
  EXPECT_EQ(complaint([] { (void)parameters_from_json("{\"coefficients\": {\"a\": 1e999}}", "w.json"); }),
            "w.json: holds a number beyond the largest double");
  EXPECT_EQ(complaint([] { (void)parameters_from_json("[1]", "w.json"); }), "w.json: a JSON object was expected");
  EXPECT_EQ(complaint([] { (void)parameters_from_json("{}", "w.json"); }),
            "w.json: the key \"coefficients\" is missing");
  EXPECT_EQ(complaint([] { (void)parameters_from_json(R"({"coefficients": {"a": "x"}})", "w.json"); }),
            "w.json: \"a\" is \"x\"; a number was expected");
  EXPECT_EQ(complaint([] { (void)fit_from_json(R"({"coefficients": {}})", "w.json"); }),
            "w.json: the key \"columns\" is missing");
}

TEST(FitJson, parameters_must_be_those_of_the_model) {
  const auto at = [](const char* text) { return parameters_from_json(text, "w.json"); };
  EXPECT_EQ(complaint([&] { (void)in_order(at(R"({"coefficients": {}})"), {"a"}, "w.json"); }),
            "w.json: the coefficient \"a\" is missing");
  EXPECT_EQ(complaint([&] { (void)in_order(at(R"({"coefficients": {"a": 1, "b": 2}})"), {"a"}, "w.json"); }),
            "w.json: the model has no parameter \"b\"");
  EXPECT_EQ(in_order(at(R"({"coefficients": {"a": 1}})"), {"intercept", "a"}, "w.json"), (Vector{{0, 1}}));
}

TEST(FitSummary, shows_coefficients_with_their_interval) {
  const std::string text = small_fit().summary();
  EXPECT_NE(text.find("[0.025"), std::string::npos);
  EXPECT_NE(text.find("height"), std::string::npos);
  EXPECT_NE(text.find("-2.58799"), std::string::npos);
  EXPECT_NE(text.find("inner and outer loop converged"), std::string::npos);
}

TEST(FitSummary, says_first_that_the_answer_is_one_of_several_and_gives_it_no_interval) {
  Fit fit = small_fit();
  fit.identifiable = {Verdict::not_identifiable, "others fit as well", "ask for a key", {}};
  const std::string text = fit.summary();
  EXPECT_LT(text.find("not identifiable: others fit as well"), text.find("height"));
  EXPECT_LT(text.find("advice: ask for a key"), text.find("one of the solutions"));
  EXPECT_EQ(text.find("std err"), std::string::npos);
  EXPECT_EQ(text.find("-2.58799"), std::string::npos);
}

TEST(FitSummary, of_many_coefficients_another_solution_shows_the_first) {
  Fit fit;
  for (int k = 0; k < 20; ++k) fit.names.push_back(fmt::format("c{}", k));
  fit.parameters = Vector::Zero(20);
  fit.identifiable = {Verdict::identified, "", "", {{Vector::Ones(20), 4.2, 1, "random"}}};
  EXPECT_NE(fit.summary().find("random, 4.2 nats less likely: c0 1 c1 1 c2 1 c3 1 c4 1 c5 1 c6 1 c7 1 and 12 more\n"),
            std::string::npos);
}

}  // namespace
}  // namespace unshuffle
