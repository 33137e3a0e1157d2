// Cox regression with known links and with rows in order, and regressions adjusted for a stated rate of wrong links.
// Expected values: tests/oracle/make_survival.R (R's survival and postlink).
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/random.hpp"
#include "likelihood/cox.hpp"
#include "likelihood/cox_mixture.hpp"
#include "support/complaint.hpp"
#include "support/test_data.hpp"
#include "unshuffle/fitted/fitted.hpp"
#include "unshuffle/model/linear.hpp"
#include "unshuffle/tables/table.hpp"

namespace unshuffle {
namespace {

using Json = nlohmann::json;

const Json& stored() {
  static const Json all = [] {
    std::ifstream file(test_data("survival.json"));
    return Json::parse(file);
  }();
  return all;
}

Vector vector_of(const Json& list) {
  const auto values = list.get<std::vector<double>>();
  return Eigen::Map<const Vector>(values.data(), Index(values.size()));
}

Matrix matrix_of(const Json& rows) {
  Matrix made(Index(rows.size()), Index(rows.front().size()));
  for (Index i = 0; i < made.rows(); ++i) made.row(i) = vector_of(rows[std::size_t(i)]).transpose();
  return made;
}

void expect_near(const Vector& found, const Vector& expected, double tolerance, const std::string& what) {
  ASSERT_EQ(found.size(), expected.size()) << what;
  for (Index k = 0; k < found.size(); ++k)
    EXPECT_NEAR(found(k), expected(k), tolerance * std::max(1.0, std::abs(expected(k)))) << what << " " << k;
}

Problem linked(const Matrix& features, const Vector& y) {
  Problem made;
  made.y = y;
  made.z = features;
  made.order = RowOrder::probably_linked;
  return made;
}

Problem known_survival(const char* which) {
  const Json& known = stored()["known"];
  Problem made = linked(matrix_of(known["x"]), vector_of(known[which]["time"]));
  made.facts.event = vector_of(known["event"]);
  return made;
}

TEST(Cox, equals_survival_where_links_are_known) {
  for (const char* which : {"tied", "fine"}) {
    const Json& expected = stored()["known"][which];
    Problem problem = known_survival(which);
    for (const Estimator& method :
         {Estimator(Ls{.family = {FamilyKind::cox}}), Estimator(Oracle{.family = {FamilyKind::cox}})}) {
      if (std::holds_alternative<Oracle>(method))
        for (Index i = 0; i < problem.responses(); ++i) problem.known.push_back({i, i});
      const Fitted fitted = fit(problem, Linear{}, method);
      expect_near(fitted.parameters(), vector_of(expected["coefficients"]), 1e-6, which);
      expect_near(fitted.result().std_errors(), vector_of(expected["std_errors"]), 1e-6, which);
      EXPECT_NEAR(fitted.context().law.log_likelihood, expected["log_likelihood"].get<double>(), 1e-6) << which;
    }
  }
}

TEST(Cox, likelihood_has_the_derivatives_it_says) {
  const Problem problem = known_survival("tied");
  FamilyRows rows{problem.z, problem.y, Vector::Constant(problem.responses(), 0.3), Vector::Ones(problem.responses()),
                  Vector::LinSpaced(problem.responses(), 0.5, 1.5)};
  const RiskSets risk(rows.y, problem.facts.event);
  const Vector w = Eigen::Vector2d(0.4, -0.2);
  const Sample here = cox_sample(risk, rows, rows.weights, w, true);
  constexpr double step = 1e-5;
  for (Index k = 0; k < 2; ++k) {
    const Vector up = w + step * Vector::Unit(2, k), down = w - step * Vector::Unit(2, k);
    const Sample above = cox_sample(risk, rows, rows.weights, up, true);
    const Sample below = cox_sample(risk, rows, rows.weights, down, true);
    EXPECT_NEAR(here.gradient(k), (above.value - below.value) / (2 * step), 1e-6 * std::abs(here.value));
    for (Index l = 0; l < 2; ++l)
      EXPECT_NEAR(here.hessian(k, l), (above.gradient(l) - below.gradient(l)) / (2 * step), 1e-5);
  }
}

// With hardly any wrong link the mixture is Cox regression, and its sandwich the robust one of survival.
TEST(Cox, mixture_without_wrong_links_has_the_robust_errors_of_survival) {
  for (const auto& [which, tolerance] : {std::pair<const char*, double>{"fine", 1e-6}, {"tied", 1e-2}}) {
    Problem problem = known_survival(which);
    problem.facts.wrong_rate = Vector::Constant(problem.responses(), 1e-10);
    const Fitted fitted = fit(problem, Linear{}, Mixture{.family = {FamilyKind::cox}});
    expect_near(fitted.parameters(), vector_of(stored()["known"][which]["coefficients"]), 1e-6, which);
    expect_near(fitted.result().std_errors(), vector_of(stored()["known"][which]["robust_errors"]), tolerance, which);
  }
}

Problem in_order(const Json& data, const Json& own) {
  const Json& from = own.contains("x") ? own : data;
  Problem made = linked(matrix_of(from["x"]), vector_of(own.contains("time") ? own["time"] : own["y"]));
  made.facts.mismatch = vector_of(from["v"]);
  made.facts.mismatch_names = {"v"};
  if (own.contains("event")) made.facts.event = vector_of(own["event"]);
  return made;
}

Problem without_columns(Problem problem) {
  problem.facts.mismatch.resize(0, 0);
  problem.facts.mismatch_names.clear();
  return problem;
}

TEST(Mixtures, equal_postlink) {
  const Json& data = stored()["in_order"];
  for (const auto& [name, kind] : {std::pair<const char*, FamilyKind>{"gaussian", FamilyKind::gaussian},
                                   {"poisson", FamilyKind::poisson},
                                   {"gamma", FamilyKind::gamma}}) {
    const Problem problem = in_order(data, data[name]);
    const Fitted fitted = fit(problem, Linear{}, Mixture{.family = {kind}});
    expect_near(fitted.parameters(), vector_of(data[name]["coefficients"]), 1e-3, name);
    Vector odds(2);
    odds << fitted.context().law.mismatch[0].value, fitted.context().law.mismatch[1].value;
    expect_near(odds, vector_of(data[name]["odds"]), 1e-3, name);
    const Vector match = vector_of(data[name]["match"]);
    const Vector lambda = (odds(0) + odds(1) * problem.facts.mismatch.col(0).array()).head(match.size());
    expect_near((1 + (-lambda.array()).exp()).inverse(), match, 1e-3, name);
  }
}

TEST(Cox, adjusted_without_wrong_links_has_the_robust_errors_of_survival) {
  Problem problem = known_survival("fine");
  problem.facts.wrong_rate = Vector::Constant(problem.responses(), 1e-10);
  const Fitted fitted = fit(problem, Linear{}, Adjusted{.family = {FamilyKind::cox}});
  expect_near(fitted.parameters(), vector_of(stored()["known"]["fine"]["coefficients"]), 1e-6, "coefficients");
  expect_near(fitted.result().std_errors(), vector_of(stored()["known"]["fine"]["robust_errors"]), 1e-6, "errors");
}

TEST(Cox, mixture_undoes_wrong_links) {
  const Json& data = stored()["in_order"]["cox"];
  const Problem problem = in_order(data, data);
  const Fitted naive = fit(without_columns(problem), Linear{}, Ls{.family = {FamilyKind::cox}});
  const Fitted fitted = fit(problem, Linear{}, Mixture{.family = {FamilyKind::cox}});
  const Vector truth = Eigen::Vector2d(1.4, -0.8), errors = fitted.result().std_errors();
  for (Index k = 0; k < 2; ++k) {
    EXPECT_LT(std::abs(fitted.parameters()(k) - truth(k)), 3 * errors(k));
    EXPECT_LT(errors(k), 0.35);
  }
  EXPECT_GT(std::abs(naive.parameters()(0) - truth(0)), 0.4);
  const std::vector<NamedEstimate>& odds = fitted.context().law.mismatch;
  EXPECT_LT(std::abs(odds[0].value - 1), 3 * odds[0].std_error);
  EXPECT_LT(std::abs(odds[1].value - 0.6), 3 * odds[1].std_error);
}

TEST(Adjusted, equals_postlink_at_a_stated_rate) {
  const Json& data = stored()["in_order"];
  for (const auto& [name, kind] : {std::pair<const char*, FamilyKind>{"gaussian", FamilyKind::gaussian},
                                   {"poisson", FamilyKind::poisson},
                                   {"gamma", FamilyKind::gamma},
                                   {"binomial", FamilyKind::binomial},
                                   {"cox", FamilyKind::cox}}) {
    Problem problem = without_columns(in_order(data, data[name]));
    const Index half = problem.responses() / 2;
    problem.facts.wrong_rate = Vector::Constant(problem.responses(), 0.15);
    problem.facts.wrong_rate.tail(half).setConstant(0.3);
    for (Index i = 0; i < problem.responses(); ++i) problem.response_groups.push_back(i < half ? 0 : 1);
    problem.feature_groups = problem.response_groups;
    const Json& expected = stored()["adjusted"][name];
    if (kind == FamilyKind::cox) {
      const Fitted fitted = fit(problem, Linear{}, Adjusted{.family = {kind}});
      expect_near(fitted.parameters(), vector_of(expected), 1e-5, name);
      continue;
    }
    for (const auto& [word, weighting] : weighting_words) {
      const Fitted fitted = fit(problem, Linear{}, Adjusted{.weighting = weighting, .family = {kind}});
      expect_near(fitted.parameters(), vector_of(expected[std::string(word)]), 1e-3, std::string(name) + " " + word);
    }
  }
}

TEST(Adjusted, refuses_options_without_effect) {
  Problem problem = without_columns(in_order(stored()["in_order"], stored()["in_order"]["poisson"]));
  const auto said = [&](const Adjusted& options) { return complaint([&] { (void)fit(problem, Linear{}, options); }); };
  EXPECT_NE(said({.weighting = Weighting::blue}).find("applies only with"), std::string::npos);
  EXPECT_NE(said({.family = {FamilyKind::poisson}}).find("needs the rate of wrong links"), std::string::npos);
  problem.facts.wrong_rate = Vector::Constant(problem.responses(), 0.2);
  EXPECT_NE(said({.wrong_share = WrongShare::bound}).find("no effect"), std::string::npos);
  EXPECT_NE(said({.family = {FamilyKind::student}}).find("adjusts means"), std::string::npos);
}

TEST(Cox, refuses_what_it_cannot_answer) {
  Problem problem = known_survival("fine");
  const auto said = [&](const Estimator& method) { return complaint([&] { (void)fit(problem, Linear{}, method); }); };
  EXPECT_NE(said(Entropic{.family = {FamilyKind::cox}}).find("needs known links or rows in order"), std::string::npos);
  problem.order = RowOrder::unrelated;
  EXPECT_NE(said(Auto{.family = {FamilyKind::cox}}).find("needs known links or rows in order"), std::string::npos);
  problem.order = RowOrder::probably_linked;
  EXPECT_NE(said(Adjusted{.family = {FamilyKind::cox}}).find("needs the rate of wrong links"), std::string::npos);
  EXPECT_NE(said(Mixture{}).find("applies only with"), std::string::npos);
  const Vector event = problem.facts.event;
  problem.facts.event.setZero();
  EXPECT_NE(said(Ls{.family = {FamilyKind::cox}}).find("no row has an event"), std::string::npos);
  problem.facts.event.resize(0);
  EXPECT_NE(said(Ls{.family = {FamilyKind::cox}}).find("1 where the response is the time of an event"),
            std::string::npos);
  problem.facts.event = event;
  const Matrix none(problem.responses(), 0);
  const Fitted fitted = fit(problem, Linear{}, Ls{.family = {FamilyKind::cox}});
  EXPECT_NE(complaint([&] { (void)fitted.predict_interval(none, problem.z); }).find("no intervals for new times"),
            std::string::npos);
  EXPECT_NEAR(fitted.predict(none, problem.z)(3, 0), std::exp(problem.z.row(3) * fitted.parameters()), 1e-12);
}

TEST(Cox, of_rows_at_random_is_refused) {
  Problem problem = known_survival("fine");
  RandomStream random(3, 0);
  for (Index i = 0; i < problem.features(); ++i) problem.z.row(i).swap(problem.z.row(random.below(i + 1)));
  const Fitted fitted = fit(problem, Linear{}, Mixture{.family = {FamilyKind::cox}});
  EXPECT_EQ(fitted.result().identifiable.verdict, Verdict::not_identifiable);
}

// Birth and death records (not part of the project): age at death, cubic in the year of birth, as in postlink's
// example.
class Lifem : public testing::Test {
 protected:
  void SetUp() override {
    const std::filesystem::path path = test_data("../../../shared/data/regression/lifem.csv");
    if (!std::filesystem::exists(path)) GTEST_SKIP() << "no ../shared/data/regression/lifem.csv";
    const Table table = read_csv(path.string(), KeepText::always);
    const auto column = [&](const char* name) {
      const std::vector<double>& values = table.numbers(name);
      return Vector(Eigen::Map<const Vector>(values.data(), Index(values.size())));
    };
    const Vector year = column("unit_yob");
    Matrix cubic(year.size(), 3);
    cubic << year, year.cwiseAbs2(), year.array().cube().matrix();
    problem_ = linked(cubic, column("age_at_death"));
    names_.resize(year.size(), 2);
    names_ << column("commf"), column("comml");
    const std::vector<std::string>& by_hand = table.column("hndlnk").text;
    for (std::size_t i = 0; i < by_hand.size(); ++i)
      if (by_hand[i] == "True") safe_.push_back({Index(i), Index(i)});
  }
  Problem problem_;
  Matrix names_;
  std::vector<KnownPair> safe_;
};

TEST_F(Lifem, mixture_equals_postlink) {
  const Json& expected = stored()["lifem"];
  problem_.known = safe_;
  problem_.facts.mismatch = names_;
  problem_.facts.mismatch_names = {"commf", "comml"};
  const Fitted fitted = fit(problem_, Linear{}, Mixture{});
  expect_near(fitted.parameters(), vector_of(expected["coefficients"]), 1e-3, "coefficients");
  Vector odds(3);
  for (Index k = 0; k < 3; ++k) odds(k) = fitted.context().law.mismatch[std::size_t(k)].value;
  const auto rows = expected["match"]["row"].get<std::vector<Index>>();
  const Vector match = vector_of(expected["match"]["probability"]);
  for (std::size_t k = 0; k < rows.size(); ++k) {
    const double lambda = odds(0) + odds(1) * names_(rows[k], 0) + odds(2) * names_(rows[k], 1);
    EXPECT_NEAR(1 / (1 + std::exp(-lambda)), match(Index(k)), 1e-3) << rows[k];
  }
}

TEST_F(Lifem, adjusted_equals_postlink) {
  problem_.facts.wrong_rate = Vector::Constant(problem_.responses(), 0.05);
  for (const auto& [word, weighting] : weighting_words) {
    const Fitted fitted = fit(problem_, Linear{}, Adjusted{.weighting = weighting});
    expect_near(fitted.parameters(), vector_of(stored()["lifem"]["adjusted"][std::string(word)]), 1e-3, word);
  }
}

}  // namespace
}  // namespace unshuffle
