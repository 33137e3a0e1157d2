// Limits of the numerics: likelihoods that are not finite, repeated responses, orders that chance explains.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/checkpoint.hpp"
#include "core/normal.hpp"
#include "core/random.hpp"
#include "core/special.hpp"
#include "likelihood/search.hpp"
#include "likelihood/wrong_links.hpp"
#include "support/complaint.hpp"
#include "tables/equal_weights.hpp"
#include "transport/compress.hpp"
#include "unshuffle/core/error.hpp"
#include "unshuffle/fitted/fitted.hpp"
#include "unshuffle/model/linear.hpp"
#include "unshuffle/model/spline.hpp"

namespace unshuffle {
namespace {

/// y = 1 + 2 z₁ - z₂ + noise.
Problem straight_rows(Index rows, std::uint64_t seed) {
  RandomStream random(seed, 0);
  Problem problem;
  problem.z = Matrix::NullaryExpr(rows, 2, [&] { return random.normal(); });
  problem.y = Matrix::NullaryExpr(rows, 1, [&] { return 1 + 0.3 * random.normal(); });
  problem.y += 2 * problem.z.col(0) - problem.z.col(1);
  return problem;
}

/// The same, whose rows are probably linked in the order given.
Problem in_order(Problem problem) {
  problem.order = RowOrder::probably_linked;
  return problem;
}

/// The logarithm of negative numbers: no coefficient gives a prediction.
class Nowhere final : public AdditiveModel {
 public:
  [[nodiscard]] std::string name() const override { return "nowhere"; }
  [[nodiscard]] std::unique_ptr<Model> bound_to(const Problem&) const override { return std::make_unique<Nowhere>(); }
  [[nodiscard]] Index parameters() const override { return 1; }
  [[nodiscard]] std::vector<std::string> parameter_names() const override { return {"a"}; }
  [[nodiscard]] Matrix part(Side side, const MatrixRef& rows, const VectorRef&) const override {
    return Matrix::Constant(rows.rows(), 1, side == Side::feature ? std::nan("") : 0.0);
  }
  void pull_back_part(Side, const MatrixRef&, const VectorRef&, const MatrixRef&, Vector& gradient) const override {
    gradient.setConstant(std::nan(""));
  }
  [[nodiscard]] Matrix jacobian_part(Side, const MatrixRef& rows, const VectorRef&) const override {
    return Matrix::Constant(rows.rows(), 1, std::nan(""));
  }
};

TEST(Search, says_so_where_no_start_leads_to_a_finite_likelihood) {
  const Problem problem = completed(straight_rows(40, 1));
  for (const int starts : {0, 1}) {
    SearchOptions options;
    options.starts.starts = starts;
    const std::string said = complaint([&] { (void)search_optima(problem, Nowhere{}, options, unshuffle::Run{}); });
    EXPECT_NE(said.find("not a finite number"), std::string::npos) << said;
  }
  EXPECT_THROW((void)fit(problem, Nowhere{}, Entropic{}), BadData);
}

/// Rows of groups with features and responses of their own, a share of them moved within their group.
CandidateLinks grouped(Index rows, Index groups, double wrong, std::uint64_t seed) {
  RandomStream random(seed, 0);
  CandidateLinks made;
  made.rows.z.resize(rows, 2);
  made.rows.y.resize(rows, 1);
  for (Index i = 0; i < rows; ++i) {
    const Index group = i % groups;
    made.blocks.push_back(group);
    made.rows.z.row(i) << double(group % 3) + random.normal(), double(group % 5) - random.normal();
    made.rows.y(i, 0) = 2 * made.rows.z(i, 0) - made.rows.z(i, 1) + double(group % 2) + 0.3 * random.normal();
  }
  for (Index i = rows - 1; i >= groups; --i) {
    if (random.uniform() >= wrong) continue;
    const Index other = i % groups + groups * random.below(i / groups + 1);
    made.rows.z.row(i).swap(made.rows.z.row(other));
  }
  return made;
}

TEST(SignificanceOfOrder, of_many_rows_in_groups_is_chance_as_often_as_it_says) {
  int small = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    const CandidateLinks shuffled = grouped(1500, 10, 1, seed), ordered = grouped(1500, 10, 0.4, seed);
    const auto bound = Linear{}.bound_to(completed({.y = shuffled.rows.y, .z = shuffled.rows.z}));
    if (significance_of_order(*bound, shuffled) < 0.1) ++small;
    EXPECT_LT(significance_of_order(*bound, ordered), 1e-4) << seed;
  }
  EXPECT_GE(small, 1);  // six expected
  EXPECT_LE(small, 14);
}

TEST(SignificanceOfOrder, of_many_rows_does_not_depend_on_where_columns_lie_or_on_bends) {
  for (const Index rows : {900, 1500}) {  // pairings are counted, and not
    Problem problem = straight_rows(rows, 1);
    problem.z.topRows(rows / 2) = problem.z.topRows(rows / 2).colwise().reverse().eval();
    problem.z.array() += 1e6;  // an intercept and these columns are equal to five digits
    CandidateLinks links;
    links.rows.z = problem.z;
    links.rows.y = problem.y;
    EXPECT_LT(significance_of_order(*Linear{}.bound_to(completed(problem)), links), 1e-4) << rows;
    const auto spline = Spline{5}.bound_to(completed(problem));
    CandidateLinks bent = links;
    bent.rows.z = spline->basis(Side::feature, problem.z);
    EXPECT_LT(significance_of_order(*spline, bent), 1e-4) << rows;
    links.rows.y = 2 * problem.z.col(0);  // no noise at all
    EXPECT_LT(significance_of_order(*Linear{}.bound_to(completed(problem)), links), 1e-4) << rows;
  }
}

/// Amounts below a limit are zero; some rows of the features are moved.
Problem with_zeros(Index rows, double zeros, double wrong, std::uint64_t seed) {
  Problem problem = straight_rows(rows, seed);
  Vector sorted = problem.y.col(0);
  std::sort(sorted.begin(), sorted.end());
  problem.y = (problem.y.array() - sorted(Index(zeros * double(rows)))).max(0);
  RandomStream random(seed, 1);
  const std::vector<Index> places = sample_rows(rows, Index(wrong * double(rows)), random);
  for (std::size_t k = places.size(); k > 1; --k)
    problem.z.row(places[k - 1]).swap(problem.z.row(places[std::size_t(random.below(Index(k)))]));
  return problem;
}

TEST(Ties, do_not_make_the_mixture_believe_in_them_alone) {
  for (const double zeros : {0.5, 0.6, 0.8}) {
    for (std::uint64_t seed = 0; seed < 4; ++seed) {
      const Problem problem = in_order(with_zeros(600, zeros, 0.3, seed));
      const Result mixture = fit(problem, Linear{}, Mixture{}).result();
      EXPECT_NE(mixture.identifiable.verdict, Verdict::identified) << mixture.identifiable.reason;
      EXPECT_GT(mixture.noise_sd, 0.01) << zeros << " " << seed;
      EXPECT_NE(mixture.identifiable.reason, "");
      // Regression on rows that were not moved is the same line through zeros and all.
      const Result chosen = fit(problem, Linear{}, Auto{}).result();
      const Result right = fit(with_zeros(600, zeros, 0, seed), Linear{}, Ls{}).result();
      EXPECT_LT((chosen.parameters - right.parameters).norm(), 0.3 * right.parameters.norm()) << zeros << " " << seed;
    }
  }
}

TEST(Ties, of_most_responses_are_named_where_nothing_else_is_to_be_had) {
  const Result found = fit(in_order(with_zeros(2000, 0.6, 0.3, 1)), Linear{}, Mixture{}).result();
  EXPECT_NE(found.identifiable.reason.find("have the same value"), std::string::npos) << found.identifiable.reason;
}

TEST(Ties, of_rounded_responses_change_nothing) {
  Problem problem = straight_rows(600, 3);
  problem.y = (10 * problem.y.array()).round() / 10;
  problem.z.topRows(150) = problem.z.topRows(150).colwise().reverse().eval();
  const Result found = fit(in_order(problem), Linear{}, Mixture{}).result();
  EXPECT_EQ(found.identifiable.verdict, Verdict::identified) << found.identifiable.reason;
  EXPECT_NEAR(found.noise_sd, 0.3, 0.05);
}

TEST(CompressedMeasure, keeps_points_together_that_no_width_can_part) {
  const Vector equal = Vector::Constant(50, 0.25);
  for (const double widest : {-std::numeric_limits<double>::infinity(), -1.0, 0.0, std::nan("")}) {
    transport::CompressionRule rule;
    rule.box_width = rule.cell_width = 1;
    rule.narrow_at = {0.25};
    rule.box_factor = rule.cell_factor = {widest};
    const transport::CompressedMeasure measure(equal, Vector(), rule);
    EXPECT_EQ(measure.nodes().size(), 1);
    EXPECT_DOUBLE_EQ(measure.nodes().weight.sum(), 1);
  }
}

TEST(EqualWeights, are_those_that_differ_by_rounding_only) {
  const Vector thirds = Vector::Constant(7, 1.0 / 3);
  EXPECT_TRUE(equal_weights(Vector()));
  EXPECT_TRUE(equal_weights(thirds));
  Vector rounded = thirds;
  rounded(3) = 0.3333333333;  // as written with ten digits
  EXPECT_TRUE(equal_weights(rounded));
  rounded(3) = 0.33333;
  EXPECT_FALSE(equal_weights(rounded));
  rounded(3) = 0;
  EXPECT_FALSE(equal_weights(rounded));
}

TEST(EqualWeights, that_differ_by_rounding_give_the_answer_of_equal_ones) {
  Problem problem = in_order(straight_rows(200, 2));
  const Vector equal = fit(problem, Linear{}, Mixture{}).parameters();
  problem.response_weights = Vector::Ones(200);
  problem.response_weights(5) += 1e-12;
  EXPECT_EQ(fit(problem, Linear{}, Mixture{}).parameters(), equal);
}

TEST(Stream, uses_of_one_fit_do_not_meet) {
  // In the order of their numbers, each with a method that uses it; those of other methods may have the same numbers.
  const std::vector<Stream> likelihood{Stream::start,
                                       Stream::pairing_at_random,
                                       Stream::least_squares,
                                       Stream::moment_equations,
                                       Stream::predictive_distance,
                                       Stream::search_sample,
                                       Stream::sorted_alternation,
                                       Stream::kernel_centres,
                                       Stream::bootstrap,
                                       Stream::calibration,
                                       Stream::joint_moments,
                                       Stream::single_response,
                                       Stream::alignment_sample,
                                       Stream::partners_at_random,
                                       Stream::pairings_at_random};
  const std::vector<Stream> descents{Stream::start,         Stream::pairing_at_random,   Stream::least_squares,
                                     Stream::batches,       Stream::alternation_batches, Stream::swap_chain,
                                     Stream::joint_moments, Stream::single_response,     Stream::alignment_sample};
  constexpr std::uint64_t room = 1ULL << 40U;  // starts, rows or samples that a use may number
  for (const std::vector<Stream>& uses : {likelihood, descents})
    for (std::size_t k = 1; k < uses.size(); ++k)
      EXPECT_GE(std::uint64_t(uses[k]), std::uint64_t(uses[k - 1]) + room) << k;
  EXPECT_EQ(RandomStream(3, Stream::bootstrap, 2).bits(), RandomStream(3, (1ULL << 48U) + 2).bits());
}

TEST(SpecialFunctions, are_those_of_tables) {
  EXPECT_NEAR(chi_squared_tail(3.841458820694124, 1), 0.05, 1e-15);
  EXPECT_NEAR(chi_squared_tail(200, 2) / std::exp(-100), 1, 1e-12);
  EXPECT_EQ(chi_squared_tail(0, 3), 1);
  EXPECT_EQ(chi_squared_tail(HUGE_VAL, 3), 0);
  EXPECT_EQ(chi_squared_tail(1e6, 3), 0);  // too small for a double
  EXPECT_TRUE(std::isnan(chi_squared_tail(std::nan(""), 3)));
  EXPECT_NEAR(chi_squared_quantile(0.95, 10), 18.307038053275146, 1e-11);
  EXPECT_NEAR(normal_score(0.975), normal_quantile, 1e-14);
  EXPECT_NEAR(normal_score(1e-12), -7.034483825301131, 1e-10);
  EXPECT_EQ(normal_score(0.5), 0);
  EXPECT_NEAR(zeta(1.5), 2.612375348685488, 1e-14);
  EXPECT_NEAR(zeta(-0.5), -0.2078862249773546, 1e-15);
}

}  // namespace
}  // namespace unshuffle
