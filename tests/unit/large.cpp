// Tables in pieces against the same tables in memory.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "core/random.hpp"
#include "large/objective.hpp"
#include "support/complaint.hpp"
#include "support/fits.hpp"
#include "support/thread_team.hpp"
#include "unshuffle/large/fit.hpp"
#include "unshuffle/model/linear.hpp"
#include "unshuffle/model/registry.hpp"
#include "unshuffle/tables/simulate.hpp"

namespace unshuffle::large {
namespace {

Pieces in_pieces(const Matrix& rows, Index size, const std::string& scratch = "") {
  std::vector<Index> sizes;
  for (Index begin = 0; begin < rows.rows(); begin += size) sizes.push_back(std::min(size, rows.rows() - begin));
  Pieces pieces(rows.cols(), sizes, scratch);
  for (std::size_t k = 0; k < sizes.size(); ++k) pieces.put(k, rows.middleRows(static_cast<Index>(k) * size, sizes[k]));
  return pieces;
}

LargeTables as_tables(const Problem& problem, Index size, const std::string& scratch = "") {
  Matrix left(problem.responses(), 1 + problem.x.cols());
  left << problem.y, problem.x;
  LargeTables tables{in_pieces(left, size, scratch), in_pieces(problem.z, size, scratch)};
  tables.response_rows = static_cast<double>(problem.responses());
  tables.feature_rows = static_cast<double>(problem.features());
  tables.cut_alike = problem.responses() == problem.features();
  tables.sample = problem;
  return tables;
}

Problem drawn(Index n, Index m, Index dim_x, std::uint64_t seed) {
  RandomStream random(seed, 0);
  auto normal = [&] { return random.normal(); };
  Problem problem;
  problem.x = Matrix::NullaryExpr(n, dim_x, normal);
  problem.z = Matrix::NullaryExpr(m, 2, normal);
  problem.y = Matrix::NullaryExpr(n, 1, normal) * 1.5;
  return completed(std::move(problem));
}

TEST(CellGrid, InterpolatesSmoothFunctionsAndItsMomentsAreTheTranspose) {
  transport::CompressionRule rule;
  rule.cell_width = 0.5;
  rule.box_width = 2;
  rule.narrow_at = {0.2, 0.3, 0.6};
  rule.cell_factor = {0.2, 0.25, 1};
  rule.box_factor = {1, 1, 1};
  const transport::CellGrid grid({-1, 3}, rule);
  for (Index k = 1; k < grid.grid().size(); ++k) ASSERT_GT(grid.grid()[k], grid.grid()[k - 1]);
  EXPECT_LE(grid.width_at(Vector::Constant(1, 0.25))[0], 0.1 + 1e-12);
  EXPECT_GT(grid.width_at(Vector::Constant(1, 2.0))[0], 0.3);
  RandomStream random(1, 0);
  const Vector points = Vector::NullaryExpr(200, [&] { return -1 + 4 * random.uniform(); });
  const Vector on_grid = (3 * grid.grid().array()).sin();
  const Vector found = grid.interpolate(grid.series(on_grid), points);
  EXPECT_LT((found - Vector((3 * points.array()).sin())).cwiseAbs().maxCoeff(), 1e-10);

  const Matrix values = Matrix::NullaryExpr(200, 2, [&] { return random.normal(); });
  Matrix moments = Matrix::Zero(grid.grid().size(), 2);
  grid.add_moments(points.head(80), values.topRows(80), moments);
  grid.add_moments(points.tail(120), values.bottomRows(120), moments);
  EXPECT_LT((grid.to_grid(moments).transpose() * on_grid - values.transpose() * found).norm(), 1e-10);
}

TEST(CellGrid, RefusesMillionsOfCells) {
  transport::CompressionRule rule;
  rule.cell_width = 1e-9;
  EXPECT_THROW(transport::CellGrid({0, 1}, rule), InvalidInput);
}

struct Case {
  const char* model;
  Objective objective;
  Index n, m, dim_x;
  double epsilon;
  bool ball;
};

void PrintTo(const Case& one, std::ostream* out) {
  *out << one.model << " n=" << one.n << " m=" << one.m << " epsilon=" << one.epsilon << (one.ball ? " ball" : "");
}

class LargeAgainstMemory : public testing::TestWithParam<Case> {};

TEST_P(LargeAgainstMemory, ObjectiveGradientAndHessianAgree) {
  const Case one = GetParam();
  const Problem problem = drawn(one.n, one.m, one.dim_x, 7);
  const auto bound = make_model(one.model, true)->bound_to(problem);
  EvaluatorOptions options;
  options.objective = one.objective;
  options.epsilon = {.value = one.epsilon, .relative = false};
  if (one.ball) options.response_side = options.feature_side = transport::Ball{.spread = 0.25};
  RandomStream random(3, 0);
  const Vector w = Vector::NullaryExpr(bound->parameters(), [&] { return 0.5 * random.normal(); });

  Evaluator evaluator(problem, *bound, options);
  const Evaluation expected = evaluator.evaluate(w, true);
  const LargeTables tables = as_tables(problem, 97);
  const LargeRows rows{&tables.responses, &tables.features, tables.response_rows, tables.feature_rows};
  const Passes own(rows, *bound);
  Team alone;
  SharedPasses passes(own, alone);
  LargeObjective objective(passes, rows, one.dim_x > 0, options);
  EXPECT_NEAR(objective.largest_cost(w), evaluator.largest_cost(w), 1e-12 * evaluator.largest_cost(w));
  const Evaluation found = objective.evaluate(w, one.epsilon, true);
  ASSERT_TRUE(expected.converged && found.converged);
  EXPECT_NEAR(found.objective, expected.objective, 1e-8 * std::abs(expected.objective));
  EXPECT_NEAR(found.transport_cost, expected.transport_cost, 1e-8 * expected.transport_cost);
  EXPECT_LT((found.gradient - expected.gradient).norm(), 1e-7 * expected.gradient.norm());
  EXPECT_LT((found.hessian - expected.hessian).norm(), 1e-4 * expected.hessian.norm());
  EXPECT_LT(objective.measured_error(), 1e-8);
  const SoftLinks links = evaluator.links(w);
  EXPECT_NEAR(objective.matched_share(), links.response_mass.cwiseMin(1.0).mean(), 1e-8);
}

INSTANTIATE_TEST_SUITE_P(Cases, LargeAgainstMemory,
                         testing::Values(Case{"linear", Objective::transport, 1000, 1000, 0, 0.05, false},
                                         Case{"linear", Objective::entropic, 700, 1100, 0, 0.2, false},
                                         Case{"linear", Objective::transport, 900, 500, 2, 0.02, false},
                                         Case{"linear", Objective::transport, 600, 600, 1, 0.1, true},
                                         Case{"spline:3", Objective::entropic, 500, 800, 1, 0.1, false},
                                         Case{"sine", Objective::transport, 800, 800, 2, 0.1, false},
                                         Case{"linear", Objective::entropic, 40, 30, 1, 2.0, true}));

/// What a process that works by itself finds.
Result fit_alone(const LargeTables& tables, const Estimator& estimator, const Execution& execution = {}) {
  Team alone;
  return fit_large(tables, Linear{}, estimator, execution, alone).value().result();
}

TEST(LargeFit, AgreesWithMemoryAndOverTeams) {
  const Simulation sample = simulate({.design = Design::sensing, .rows = 360, .snr = 100, .mean = 1, .seed = 5});
  const Problem problem = hinted(sample.problem);
  const Execution execution{.threads = 1};
  for (const Estimator& plain :
       {Estimator(Robot{}), Estimator(RobotRobust{}), Estimator(Auto{}), Estimator(Mixture{}), Estimator(Entropic{})}) {
    const Estimator method =
        with_option_if_read(with_option_if_read(plain, "starts", std::int64_t{1}), "epsilon", 1e-3);
    const bool entropic = std::holds_alternative<Entropic>(method);
    const Result one = fit_alone(as_tables(problem, 60), method, execution);
    EXPECT_TRUE(one.status == Status::converged) << one.message;
    EXPECT_GT(one.course.passes, 0);
    if (!entropic) {  // whose many optima are not told apart on this design
      const Result memory = fit(problem, Linear{}, method, execution).result();
      EXPECT_LT((one.parameters - memory.parameters).norm(), 1e-2 * memory.parameters.norm()) << one.message;
      EXPECT_EQ(one.objective.name, memory.objective.name);
      EXPECT_EQ(one.covariance.size(), memory.covariance.size());
    }
    for (const int size : entropic ? std::vector{2} : std::vector{2, 4}) {
      // Every process holds its share of the pieces, as the reader would have given it.
      const Result shared = as_team(size, [&](Team& team) {
        LargeTables tables = as_tables(problem, 60);
        const auto keep = [&](const Matrix& rows) {
          const Index pieces = 6, begin = pieces * team.rank() / team.size(),
                      end = pieces * (team.rank() + 1) / team.size();
          return in_pieces(rows.middleRows(60 * begin, 60 * (end - begin)), 60);
        };
        tables.responses = keep(problem.y);
        tables.features = keep(problem.z);
        const std::optional<Fitted> made = fit_large(tables, Linear{}, method, execution, team);
        EXPECT_EQ(made.has_value(), team.leads());
        return made ? made->result() : Result{};
      });
      EXPECT_LT((shared.parameters - one.parameters).norm(), 1e-9 * one.parameters.norm());
      EXPECT_NEAR(shared.objective.value, one.objective.value, 1e-9 * std::abs(one.objective.value));
      EXPECT_EQ(shared.course.processes, size);
    }
  }
}

TEST(LargeFit, AdjustsTheSampleWhereRegressionContradictsTheMixture) {
  RandomStream random(4, 0);
  Problem problem;
  problem.z = Matrix::NullaryExpr(2000, 2, [&] { return random.normal(); });
  problem.y = problem.z.col(0) + Vector(problem.z.col(0).array().exp()) - problem.z.col(1);
  problem.x.resize(2000, 0);
  problem.z.topRows(500).colwise().reverseInPlace();
  problem.order = RowOrder::probably_linked;
  const Fitted expected = fit(problem, Linear{}, Auto{});
  ASSERT_EQ(name_of(expected.context().chosen), "adjusted") << expected.result().choice;
  const Result found = fit_alone(as_tables(problem, 300), Auto{});
  EXPECT_EQ(found.parameters, expected.parameters());
  EXPECT_EQ(found.message.rfind("a sample of 2000 rows of 2000: ", 0), 0U) << found.message;

  // Takes no more links to be wrong than regression allows.
  const Result in_pieces = fit_alone(as_tables(problem, 300), Mixture{});
  const Result in_memory = fit(problem, Linear{}, Mixture{}).result();
  EXPECT_LT((in_pieces.parameters - in_memory.parameters).norm(), 1e-3) << in_pieces.message << in_memory.message;
  EXPECT_NEAR(in_pieces.noise_sd, in_memory.noise_sd, 1e-3);
}

/// y = 7 + 3a - 2b + noise of that size, of integers, with every tenth link wrong.
Problem integers(Index rows, double noise_sd) {
  RandomStream random(8, 0);
  Problem problem;
  problem.z = Matrix::NullaryExpr(rows, 2, [&] { return double(random.below(101)) - 50; });
  problem.y = (7 + 3 * problem.z.col(0).array() - 2 * problem.z.col(1).array()).matrix();
  problem.y += noise_sd * Matrix::NullaryExpr(rows, 1, [&] { return random.normal(); });
  problem.x.resize(rows, 0);
  problem.z.topRows(rows / 10).colwise().reverseInPlace();
  return hinted(problem);
}

TEST(LargeFit, RowsWithoutNoiseAreFittedExactly) {
  const Result found = fit_alone(as_tables(integers(2000, 0), 300), Mixture{});
  EXPECT_EQ(found.status, Status::converged) << found.message;
  EXPECT_LT((found.parameters - Vector{{7, 3, -2}}).norm(), 1e-9) << found.message;
  EXPECT_GT(found.noise_sd, 0);
  EXPECT_TRUE(found.covariance.allFinite());
}

// The sample has less noise than all rows, which look linked wrongly until the first steps have told.
TEST(LargeFit, LimitsTheShareOfWrongLinksOnlyAtTheEnd) {
  LargeTables tables = as_tables(integers(2000, 5), 300);
  tables.sample = integers(2000, 0.5);
  const Result found = fit_alone(tables, Mixture{});
  const Result expected = fit(integers(2000, 5), Linear{}, Mixture{}).result();
  EXPECT_LT((found.parameters - expected.parameters).norm(), 1e-3) << found.message << expected.message;
  EXPECT_NEAR(found.noise_sd, expected.noise_sd, 1e-3);
}

TEST(LargeObjective, ScratchFileGivesTheSameBits) {
  const Problem problem = drawn(300, 400, 1, 5);
  const auto bound = Linear{}.bound_to(problem);
  std::vector<Evaluation> found;
  for (const std::string& scratch : {std::string(), testing::TempDir()}) {
    const LargeTables tables = as_tables(problem, 70, scratch);
    const LargeRows rows{&tables.responses, &tables.features, tables.response_rows, tables.feature_rows};
    const Passes own(rows, *bound);
    Team alone;
    SharedPasses passes(own, alone);
    LargeObjective objective(passes, rows, true, {});
    found.push_back(objective.evaluate(Vector::Constant(bound->parameters(), 0.3), 0.1, true));
  }
  EXPECT_EQ(found[0].objective, found[1].objective);
  EXPECT_EQ(found[0].gradient, found[1].gradient);
  EXPECT_EQ(found[0].hessian, found[1].hessian);
}

TEST(LargeFit, SaysWhatItCannotDo) {
  const Problem problem = hinted(simulate({.rows = 100, .seed = 1}).problem);
  EXPECT_EQ(complaint([&] { (void)fit_alone(as_tables(problem, 50), Em{}); }),
            "tables in pieces can be fitted by auto, mixture, entropic, robot, robot-robust; not by em");
  LargeTables cut_otherwise = as_tables(problem, 50);
  cut_otherwise.cut_alike = false;
  EXPECT_EQ(complaint([&] { (void)fit_alone(cut_otherwise, Mixture{}); }),
            "rows in order of tables in pieces need as many rows in every file of either side");
}

class LargeFiles : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::path(testing::TempDir()) / testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string write(const std::string& name, const std::string& content) const {
    std::ofstream(folder_ / name, std::ios::binary) << content;
    return (folder_ / name).string();
  }
  [[nodiscard]] std::string path(const std::string& name) const { return (folder_ / name).string(); }

  std::filesystem::path folder_;
};

std::string numbered(const std::string& header, int first, int last, const std::string& line_end = "\n") {
  std::string text = header + line_end;
  for (int k = first; k < last; ++k)
    text += std::to_string(k) + "," + std::to_string(10 * k) + (k + 1 == last && last % 2 == 1 ? "" : line_end);
  return text;
}

Matrix all_rows(const Pieces& pieces) {
  Matrix rows(pieces.rows(), pieces.columns()), buffer;
  Index at = 0;
  for (std::size_t k = 0; k < pieces.count(); ++k) {
    const Matrix& here = pieces.at(k, buffer);
    rows.middleRows(at, here.rows()) = here;
    at += here.rows();
  }
  return rows;
}

TEST_F(LargeFiles, ReadsEveryRowOfEveryFileOnce) {
  write("y-1.csv", numbered("y,x", 0, 23));
  write("y-2.csv", numbered("y,x", 23, 40, "\r\n"));
  const std::string z = write("z.csv", numbered("\"z\",u", 0, 50) + "\n\n");
  const auto y = files_named(path("y-*.csv"));
  ASSERT_EQ(y.size(), 2u);
  const ReadOptions options{.scratch = "", .piece_rows = 7, .sample_rows = 10};
  for (const int size : {1, 2, 3, 9}) {
    struct Seen {
      std::vector<double> y, z;
      Problem sample;
      double responses = 0, features = 0;
    };
    const Seen seen = as_team(size, [&](Team& team) {
      const LargeTables mine = read_tables_in_pieces(y, {z}, {.response = {"y"}}, team, options);
      auto column = [&](const Pieces& pieces, Index k) {
        const Vector values = all_rows(pieces).col(k);
        return team.gather({values.begin(), values.end()});
      };
      Seen made{column(mine.responses, 0), column(mine.features, 1), mine.sample};
      made.responses = mine.response_rows;
      made.features = mine.feature_rows;
      return made;
    });
    EXPECT_EQ(seen.responses, 40);
    EXPECT_EQ(seen.features, 50);
    ASSERT_EQ(seen.y.size(), 40u);
    ASSERT_EQ(seen.z.size(), 50u);
    for (std::size_t k = 0; k < 40; ++k) EXPECT_EQ(seen.y[k], double(k));
    for (std::size_t k = 0; k < 50; ++k) EXPECT_EQ(seen.z[k], 10 * double(k));
    ASSERT_EQ(seen.sample.y.rows(), 10);
    for (Index k = 0; k < 10; ++k) {
      EXPECT_EQ(seen.sample.y(k, 0), 4 * k);
      EXPECT_EQ(seen.sample.x(k, 0), 40 * k);
      EXPECT_EQ(seen.sample.z(k, 0), 5 * k);
    }
  }
}

TEST_F(LargeFiles, EveryKindOfLineEndEndsALineOnceWhereverBlocksOfTheFileAreCut) {
  const std::vector<std::string> line_ends{"\n", "\r\n", "\r"};
  constexpr int rows = 200000;  // several blocks of the file, and most of them cut within a line
  for (const std::string& scratch : {std::string(), folder_.string()}) {
    for (std::size_t k = 0; k <= line_ends.size(); ++k) {
      std::string content = "y,z" + line_ends[k % 3];
      for (int row = 0; row < rows; ++row)
        content += std::to_string(row) + "," + std::to_string(7 * row) + line_ends[k < 3 ? k : std::size_t(row) % 3];
      const std::string file = write("t.csv", content);
      Team alone;
      const ReadOptions options{.scratch = scratch, .piece_rows = 30011, .sample_rows = 10};
      const LargeTables read = read_tables_in_pieces({file}, {}, {.response = {"y"}}, alone, options);
      const Matrix y = all_rows(read.responses), z = all_rows(read.features);
      ASSERT_EQ(y.rows(), rows) << k;
      ASSERT_EQ(z.rows(), rows) << k;
      EXPECT_EQ(y.col(0), Vector::LinSpaced(rows, 0, rows - 1)) << k;
      EXPECT_EQ(z.col(0), 7 * Vector::LinSpaced(rows, 0, rows - 1)) << k;
    }
  }
}

TEST_F(LargeFiles, EveryProcessKnowsWhetherBothSidesAreCutAlike) {
  const std::vector<std::string> y{write("y-1.csv", numbered("y,x", 0, 4)), write("y-2.csv", numbered("y,x", 4, 7)),
                                   write("y-3.csv", numbered("y,x", 7, 9))},
      alike{write("z-1.csv", numbered("z,u", 0, 4)), write("z-2.csv", numbered("z,u", 4, 7)),
            write("z-3.csv", numbered("z,u", 7, 9))},
      otherwise{alike[0], write("v-2.csv", numbered("z,u", 4, 6)), write("v-3.csv", numbered("z,u", 6, 9))};
  for (const int size : {1, 2, 3}) {
    const auto known = [&](const std::vector<std::string>& z) {
      return as_team(size, [&](Team& team) {
        const LargeTables mine = read_tables_in_pieces(y, z, {.response = {"y"}}, team);
        return team.gather({mine.cut_alike ? 1.0 : 0.0});
      });
    };
    EXPECT_EQ(known(alike), std::vector<double>(std::size_t(size), 1));
    EXPECT_EQ(known(otherwise), std::vector<double>(std::size_t(size), 0));
  }
}

TEST_F(LargeFiles, SaysWhatIsWrongAndWhere) {
  Team alone;
  const ReadOptions options{.scratch = "", .piece_rows = 3000, .sample_rows = 10};
  const std::string good = write("good.csv", numbered("y,x", 0, 10));
  auto said = [&](const std::string& content) {
    const std::string bad = write("bad.csv", content);
    const std::string sentence =
        complaint([&] { (void)read_tables_in_pieces({good}, {bad}, {.response = {"y"}}, alone, options); });
    return sentence.substr(std::min(sentence.size(), sentence.find("bad.csv")));
  };
  // The first rows are read as a table of their own, so the trouble starts further down than they reach.
  std::string rows = "z\n";
  for (int k = 0; k < 100000; ++k) rows += std::to_string(k) + "\n";
  EXPECT_EQ(said(rows + "many\n"), "bad.csv:100002: column \"z\" holds \"many\"; a number was expected");
  EXPECT_EQ(said(rows + "1,2\n"), "bad.csv:100002: 2 fields; the header has 1");
  EXPECT_EQ(said(rows + "\n1\n"), "bad.csv:100002: the line is blank; rows were expected up to the end");
  EXPECT_EQ(said(rows + "\"1\"\n"), "bad.csv:100002: a quote; tables in pieces hold plain numbers, one line to a row");
  EXPECT_EQ(said(rows + "\n\n"), "");
  EXPECT_EQ(complaint([&] { (void)files_named(path("none-*.csv")); }),
            path("none-*.csv") + ": no file has such a name");
  const std::string other = write("other.csv", numbered("z,u", 0, 9));
  EXPECT_EQ(complaint([&] {
              (void)read_tables_in_pieces({good, other}, {good}, {.response = {"y"}}, alone, options);
            }),
            other + ": the columns are not those of " + good);
}

}  // namespace
}  // namespace unshuffle::large
