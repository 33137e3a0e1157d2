#include "objective/block_objective.hpp"

#include <algorithm>
#include <cmath>

#include "unshuffle/core/team.hpp"

namespace unshuffle {
namespace {

/// The error measured on the points exceeds the estimate on the nodes, rarely by more than a factor of three.
constexpr double estimate_margin = 0.1;

/// The law of responses without a partner, as a cost of having one.
transport::RowCost row_cost(const EvaluatorOptions& options, const transport::MarginalPolicies& policies) {
  if (!options.log_absence || !std::holds_alternative<transport::Sampled>(policies.rows)) return {};
  return [law = options.log_absence](double y) { return law(Vector::Constant(1, y)); };
}

transport::SolverOptions solver_options(const EvaluatorOptions& options, const transport::MarginalPolicies& policies) {
  transport::SolverOptions solver;
  solver.relative = false;
  solver.rows = policies.rows;
  solver.columns = policies.columns;
  solver.tolerance = options.tolerance;
  return solver;
}

}  // namespace

double paper_constant(const BlockRows& responses, const BlockRows& features, double epsilon) {
  return epsilon * (responses.self_entropy() + features.self_entropy());
}

transport::MarginalPolicies policies_of(const EvaluatorOptions& options, const BlockRows& responses,
                                        const BlockRows& features) {
  return transport::of_sizes(options.response_side, options.feature_side, responses.size(), features.size());
}

void set_mass(const BlockRows& rows, const transport::MarginalPolicy& policy, const Vector& ratio, Vector& mass) {
  const auto* sampled = std::get_if<transport::Sampled>(&policy);
  const double whole = sampled != nullptr ? std::max(1.0, sampled->ratio) : 1.0;
  for (Index k = 0; k < rows.size(); ++k) mass[rows.rows[static_cast<std::size_t>(k)]] = ratio[k] / whole;
}

double BlockRows::self_entropy() const {
  if (weights.size() == 0) return -std::log(static_cast<double>(size()));
  return (weights.array() * weights.array().log()).sum();
}

Matrix BlockRows::weighted(const MatrixRef& x) const {
  if (weights.size() == 0) return x / static_cast<double>(size());
  return weights.asDiagonal() * x;
}

Vector BlockRows::all_weights() const {
  return weights.size() > 0 ? weights : Vector::Constant(size(), 1.0 / static_cast<double>(size()));
}

LineBlock::LineBlock(BlockRows responses, BlockRows features, const EvaluatorOptions& options)
    : responses_(std::move(responses)),
      features_(std::move(features)),
      policies_(policies_of(options, responses_, features_)),
      options_{.row_policy = policies_.rows,
               .column_policy = policies_.columns,
               .row_cost = row_cost(options, policies_),
               .tolerance = options.tolerance,
               .accuracy = estimate_margin * options.accuracy} {}

bool LineBlock::few(Objective objective) const {
  const auto [fewer, more] = std::minmax({responses_.size(), features_.size()});
  return objective == Objective::entropic && fewer >= 2 && more <= transport::SmallLine::most &&
         std::holds_alternative<transport::Exact>(policies_.rows) &&
         std::holds_alternative<transport::Exact>(policies_.columns);
}

transport::LineTransport& LineBlock::compressed() {
  if (!compressed_) compressed_.emplace(options_);
  return *compressed_;
}

void LineBlock::forget() {
  small_.forget();
  compressed_.reset();
}

BlockValue LineBlock::solve(Vector t, Vector s, double epsilon, Objective objective) {
  t_ = std::move(t);
  s_ = std::move(s);
  epsilon_ = epsilon;
  transport::LineReport report;
  if (few(objective))
    report = small_.solve({t_, responses_.all_weights()}, {s_, features_.all_weights()}, epsilon, options_.tolerance);
  told_by_few_ = report.converged;
  if (!told_by_few_) report = compressed().solve(t_, responses_.weights, s_, features_.weights, epsilon);
  BlockValue value;
  value.transport_cost = report.transport_cost;
  value.objective = objective == Objective::transport ? report.transport_cost
                                                      : report.value + paper_constant(responses_, features_, epsilon);
  value.marginal_error = report.marginal_error;
  value.compression_error = report.compression_error;
  value.iterations = report.iterations;
  value.converged = report.converged;
  value.message = report.message;
  return value;
}

Vector LineBlock::gradient(Side side, Objective objective) {
  if (told_by_few_) return side == Side::response ? small_.row_gradient() : small_.column_gradient();
  return rows(side).weighted(compressed().gradient(side, objective));
}

Matrix LineBlock::hessian(const Matrix& t_jacobian, const Matrix& s_jacobian, Objective objective) {
  if (told_by_few_)
    return small_.hessian({t_, responses_.all_weights()}, {s_, features_.all_weights()}, epsilon_, t_jacobian,
                          s_jacobian);
  return compressed().hessian(t_jacobian, responses_.weights, s_jacobian, features_.weights, objective);
}

void LineBlock::link(SoftLinks& links) {
  u_ = told_by_few_ ? small_.row_potential() : compressed().potential(Side::response);
  v_ = told_by_few_ ? small_.column_potential() : compressed().potential(Side::feature);
  for (const Side side : {Side::response, Side::feature}) {
    const Vector ratio =
        told_by_few_ ? Vector::Ones(rows(side).size()) : Vector(compressed().log_ratio(side).array().exp());
    const bool by_row = side == Side::response;
    set_mass(rows(side), by_row ? policies_.rows : policies_.columns, ratio,
             by_row ? links.response_mass : links.feature_mass);
    links.measured_error = std::max(links.measured_error, measured_error(side, ratio));
  }
}

// The plan was computed on a few nodes and interpolated to the points. Summing it over all points, with no
// approximation but the potentials themselves, shows how well its marginals are met. For a row that holds less than the
// mean, the error is relative to the mean: a row that was given up holds almost nothing.
double LineBlock::measured_error(Side side, const Vector& ratio) const {
  constexpr Index most_samples = 32, worth_threads = 1000;
  const bool by_row = side == Side::response;
  const Vector &own = by_row ? t_ : s_, &other = by_row ? s_ : t_;
  const Vector &own_potential = by_row ? u_ : v_, &other_potential = by_row ? v_ : u_;
  const BlockRows& partners = by_row ? features_ : responses_;
  const Index samples = std::min(most_samples, own.size());
  const double mean = ratio.mean();
  Vector error(samples);
#pragma omp parallel for schedule(static) if (other.size() > worth_threads)
  for (Index k = 0; k < samples; ++k) {
    const Index i = own.size() * k / samples;
    const Vector entries =
        (own_potential[i] + other_potential.array() - (own[i] - other.array()).square() / epsilon_).exp();
    error[k] = std::abs(partners.weighted(entries).sum() - ratio[i]) / std::max(ratio[i], mean);
  }
  return error.maxCoeff();
}

double LineBlock::plan_entry(Index i, Index j) const {
  return responses_.weight(i) * features_.weight(j) * std::exp(u_[i] + v_[j] - cost_entry(i, j) / epsilon_);
}

DenseBlock::DenseBlock(BlockRows responses, BlockRows features, const EvaluatorOptions& options, Team* team)
    : responses_(std::move(responses)),
      features_(std::move(features)),
      options_(solver_options(options, policies_of(options, responses_, features_))) {
  options_.team = team;
  solver_.set_options(options_);
}

std::vector<Index> DenseBlock::held(Side side) const {
  const std::vector<Index>& all = rows(side).rows;
  const Side longer = responses_.size() >= features_.size() ? Side::response : Side::feature;
  if (options_.team == nullptr || side != longer) return all;
  const RowShare share = options_.team->share_of(static_cast<Index>(all.size()));
  return {all.begin() + share.first, all.begin() + share.first + share.count};
}

BlockValue DenseBlock::solve(double epsilon, Objective objective) {
  options_.epsilon = epsilon;
  solver_.set_options(options_);
  solution_.reset();                            // its memory is needed for the next
  const bool weighted = log_prior_.size() > 0;  // never with a team
  if (weighted)
    solution_ = solver_.solve(cost_ - epsilon * log_prior_, responses_.weights, features_.weights);
  else if (options_.team == nullptr)
    solution_ = solver_.solve(cost_, responses_.weights, features_.weights);
  else
    solution_ = solver_.solve(cost_, responses_.all_weights(), features_.all_weights());
  BlockValue value;
  value.transport_cost = solution_->transport_cost();
  if (weighted) value.transport_cost += epsilon * solution_->plan().cwiseProduct(log_prior_).sum();
  value.objective = objective == Objective::transport
                        ? value.transport_cost
                        : solution_->value() + paper_constant(responses_, features_, epsilon);
  value.marginal_error = solution_->marginal_error();
  value.iterations = solution_->newton_steps() + solution_->sinkhorn_steps();
  value.converged = solution_->converged();
  value.message = solution_->message();
  return value;
}

// <C,Γ> is what the solver calls the transport cost plus ε<log ω, Γ>.
Matrix DenseBlock::plan_weights(Objective objective) {
  Matrix weights = solution_->gradient(objective);
  if (objective == Objective::transport && log_prior_.size() > 0)
    weights += solution_->pull_back(options_.epsilon * log_prior_);
  return weights;
}

void DenseBlock::forget() { solver_ = transport::Solver(options_); }

void DenseBlock::link(SoftLinks& links) {
  set_mass(responses_, options_.rows, solution_->row_sums().cwiseQuotient(responses_.all_weights()),
           links.response_mass);
  set_mass(features_, options_.columns, solution_->column_sums().cwiseQuotient(features_.all_weights()),
           links.feature_mass);
}

}  // namespace unshuffle
