#include "unshuffle/objective/evaluator.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "core/in_parallel.hpp"
#include "core/message.hpp"
#include "core/of_all.hpp"
#include "objective/backend.hpp"
#include "objective/block_objective.hpp"
#include "objective/cloud_block.hpp"
#include "objective/costs.hpp"
#include "objective/owners.hpp"
#include "objective/single_pairs.hpp"
#include "tables/equal_weights.hpp"
#include "unshuffle/core/error.hpp"
#include "unshuffle/core/stop.hpp"

namespace unshuffle {
namespace {

BlockRows rows_of(const std::vector<Index>& rows, const Vector& weights, bool weights_are_equal) {
  BlockRows block;
  if (weights_are_equal) {
    block.rows = rows;
    return block;
  }
  for (Index row : rows)  // rows of zero weight are excluded
    if (weights[row] > 0) block.rows.push_back(row);
  block.weights = weights(block.rows);
  block.weights /= block.weights.sum();
  return block;
}

/// The block's entries; a vector that is a single block is moved.
Vector taken_from(Vector& all, const BlockRows& block) {
  if (block.size() == all.size()) return std::move(all);
  return all(block.rows);
}

/// Those rows of a table, in ascending order.
Matrix rows_from(const MatrixRef& table, const std::vector<Index>& rows) {
  if (static_cast<Index>(rows.size()) == table.rows()) return table;
  return table(rows, Eigen::all);
}
Matrix rows_from(const MatrixRef& table, const BlockRows& block) { return rows_from(table, block.rows); }

void add_rows(const BlockRows& block, const Matrix& values, Matrix& table) {
  if (block.size() == table.rows())
    table += values;
  else
    table(block.rows, Eigen::all) += values;
}

void refuse_shared(const Team* team) {
  if (team != nullptr) throw InvalidInput("single entries of a plan shared by several processes are not available");
}

}  // namespace

struct Evaluator::State {
  const Problem* problem;
  const Model* model;
  EvaluatorOptions options;
  Backend backend = Backend::dense;
  double epsilon = 0;
  Matrix x, z;  // through the model's basis
  std::vector<double> shares;
  std::vector<LineBlock> line_blocks;
  std::vector<CloudBlock> cloud_blocks;
  std::vector<DenseBlock> dense_blocks;
  SinglePairs pairs;                  // numbered after the blocks
  Team* team = nullptr;               // none when there is only this process
  std::vector<std::size_t> own;       // blocks that this process solves alone
  std::vector<std::size_t> together;  // blocks that all processes solve together, one after the other
  std::vector<Index> block_of_response, place_of_response, block_of_feature, place_of_feature;

  [[nodiscard]] const AdditiveModel* additive() const { return model->additive(); }
  [[nodiscard]] std::size_t blocks() const { return shares.size(); }
  [[nodiscard]] PairTables tables_of_pairs() const { return {*model, x, problem->y, z}; }
  [[nodiscard]] double rows() const { return static_cast<double>(problem->responses()); }
  [[nodiscard]] bool has_response_parameters() const { return problem->x.cols() > 0; }
  /// Calls work(block b) with whatever kind of block the backend has.
  template <class Work>
  decltype(auto) with_block(std::size_t b, const Work& work) const {
    if (backend == Backend::sorted) return work(line_blocks[b]);
    if (backend == Backend::clouds) return work(cloud_blocks[b]);
    return work(dense_blocks[b]);
  }
  [[nodiscard]] const BlockRows& block_rows(std::size_t b, Side side) const {
    return with_block(b, [&](const auto& block) -> const BlockRows& { return block.rows(side); });
  }

  void split_into_blocks();
  void share_out(const std::vector<BlockSize>& sizes);
  /// Calls work(b) for all blocks that this process takes part in.
  template <class Work>
  void for_blocks(const Work& work) const;
  // The results of each process's own blocks go to all processes, which sum them in block order, as one process would.
  void exchange(std::vector<BlockValue>& values) const;
  void exchange(std::vector<Matrix>& derivatives) const;
  void lay_out_prior();
  void lay_out_absence();
  [[nodiscard]] Vector log_absence_of(const BlockRows& responses) const;
  /// t = y - g(x) and s = h(z).
  [[nodiscard]] Matrix responses_at(const VectorRef& w) const;
  [[nodiscard]] Matrix features_at(const VectorRef& w) const;
  [[nodiscard]] TwoTables tables_of(const DenseBlock& block) const {
    const std::vector<Index> responses = block.held(Side::response), features = block.held(Side::feature);
    return {rows_from(x, responses), rows_from(problem->y, responses), rows_from(z, features)};
  }
  void fill_cost(const DenseBlock& block, const VectorRef& w, Matrix& cost) const;
  void pull_back_dense(DenseBlock& block, double scale, const VectorRef& w, Vector& gradient) const;
  [[nodiscard]] double largest_cost(const VectorRef& w);
  void resolve_epsilon(const VectorRef& w);

  std::vector<BlockValue> solve_line(const VectorRef& w);
  std::vector<BlockValue> solve_clouds(const VectorRef& w);
  std::vector<BlockValue> solve_dense(const VectorRef& w);
  std::vector<BlockValue> solve(const VectorRef& w) {
    resolve_epsilon(w);
    pairs.evaluate(tables_of_pairs(), w);
    std::vector<BlockValue> values = backend == Backend::sorted   ? solve_line(w)
                                     : backend == Backend::clouds ? solve_clouds(w)
                                                                  : solve_dense(w);
    exchange(values);
    return values;
  }
  void differentiate_line(const VectorRef& w, bool with_hessian, Evaluation& evaluation);
  void differentiate_clouds(const VectorRef& w, Evaluation& evaluation);
  void differentiate_dense(const VectorRef& w, Evaluation& evaluation);
};

void Evaluator::State::split_into_blocks() {
  block_of_response.assign(static_cast<std::size_t>(problem->responses()), -1);
  place_of_response = block_of_response;
  block_of_feature.assign(static_cast<std::size_t>(problem->features()), -1);
  place_of_feature = block_of_feature;
  const auto enter = [](const BlockRows& block, Index number, std::vector<Index>& blocks, std::vector<Index>& places) {
    for (Index k = 0; k < block.size(); ++k) {
      const auto row = static_cast<std::size_t>(block.rows[static_cast<std::size_t>(k)]);
      blocks[row] = number;
      places[row] = k;
    }
  };
  std::vector<std::pair<BlockRows, BlockRows>> found;
  std::vector<BlockSize> sizes;
  std::vector<std::pair<Index, Index>> single;
  const bool equal_responses = equal_weights(problem->response_weights);
  const bool equal_features = equal_weights(problem->feature_weights);
  const bool single_pairs = !problem->has_prior() && SinglePairs::can_be_told(options);
  for (const Block& block : blocks_of(*problem)) {
    BlockRows responses = rows_of(block.response_rows, problem->response_weights, equal_responses);
    BlockRows features = rows_of(block.feature_rows, problem->feature_weights, equal_features);
    if (responses.size() == 0 || features.size() == 0) continue;
    if (single_pairs && responses.size() == 1 && features.size() == 1) {
      single.emplace_back(responses.rows.front(), features.rows.front());
      pairs.add(responses.rows.front(), features.rows.front(), rows() * block.share);
      continue;
    }
    enter(responses, static_cast<Index>(blocks()), block_of_response, place_of_response);
    enter(features, static_cast<Index>(blocks()), block_of_feature, place_of_feature);
    // When responses may have no partner, the number of links is that of the features.
    const bool left_out = std::holds_alternative<transport::Sampled>(options.response_side);
    const double linked = double(features.size()) / double(responses.size());
    shares.push_back(block.share * (left_out ? std::min(1.0, linked) : 1.0));
    sizes.push_back({responses.size(), features.size()});
    found.emplace_back(std::move(responses), std::move(features));
  }
  if (blocks() + pairs.size() == 0) throw BadData("no group key occurs in both tables, so no row can match any other");
  for (std::size_t k = 0; k < single.size(); ++k) {
    const auto [response, feature] = single[k];
    block_of_response[static_cast<std::size_t>(response)] = block_of_feature[static_cast<std::size_t>(feature)] =
        static_cast<Index>(blocks() + k);
  }
  share_out(sizes);
  for (std::size_t b = 0; b < blocks(); ++b) {
    auto& [responses, features] = found[b];
    const bool shared = std::binary_search(together.begin(), together.end(), b);
    if (backend == Backend::sorted)
      line_blocks.emplace_back(std::move(responses), std::move(features), options);
    else if (backend == Backend::clouds) {
      Vector log_absence = log_absence_of(responses);
      cloud_blocks.emplace_back(std::move(responses), std::move(features), options, std::move(log_absence));
    } else
      dense_blocks.emplace_back(std::move(responses), std::move(features), options, shared ? team : nullptr);
  }
}

void Evaluator::State::share_out(const std::vector<BlockSize>& sizes) {
  const bool sampled =
      std::holds_alternative<transport::Sampled>(options.feature_side) &&
      std::any_of(sizes.begin(), sizes.end(), [](const BlockSize& size) { return size.responses != size.features; });
  const bool plans_can_be_shared = backend == Backend::dense && !problem->has_prior() && !sampled;
  const std::vector<int> owners = owners_of(sizes, team == nullptr ? 1 : team->size(), plans_can_be_shared);
  const int rank = team == nullptr ? 0 : team->rank();
  for (std::size_t b = 0; b < sizes.size(); ++b) {
    if (owners[b] == rank) own.push_back(b);
    if (owners[b] == everyone) together.push_back(b);
  }
}

template <class Work>
void Evaluator::State::for_blocks(const Work& work) const {
  for (const std::size_t b : together) work(b);
  in_parallel(own.size(), [&](std::size_t k) { work(own[k]); });
}

void Evaluator::State::exchange(std::vector<BlockValue>& values) const {
  if (team == nullptr) return;
  Message outgoing;
  for (const std::size_t b : own) {
    const BlockValue& value = values[b];
    for (const double number : {double(b), value.objective, value.transport_cost, value.marginal_error,
                                value.compression_error, double(value.iterations), double(value.converged)})
      outgoing.put(number);
    outgoing.put(value.message);
  }
  Message all(team->gather_for_all(std::move(outgoing.values())));
  while (!all.ended()) {
    BlockValue& value = values[static_cast<std::size_t>(all.number())];
    value.objective = all.number();
    value.transport_cost = all.number();
    value.marginal_error = all.number();
    value.compression_error = all.number();
    value.iterations = static_cast<int>(all.number());
    value.converged = all.number() > 0;
    value.message = all.text();
  }
}

void Evaluator::State::exchange(std::vector<Matrix>& derivatives) const {
  if (team == nullptr) return;
  Message outgoing;
  for (const std::size_t b : own) {
    outgoing.put(double(b));
    outgoing.put(derivatives[b]);
  }
  Message all(team->gather_for_all(std::move(outgoing.values())));
  while (!all.ended()) {
    const auto b = static_cast<std::size_t>(all.number());
    derivatives[b] = all.table();
  }
}

Vector Evaluator::State::log_absence_of(const BlockRows& responses) const {
  if (!options.log_absence) return {};
  return Vector::NullaryExpr(responses.size(), [&](Index k) {
    return options.log_absence(problem->y.row(responses.rows[static_cast<std::size_t>(k)]).transpose());
  });
}

void Evaluator::State::lay_out_absence() {
  if (!options.log_absence) return;
  for (DenseBlock& block : dense_blocks) {
    if (!block.leaves_responses_out()) continue;
    const BlockRows& rows = block.rows(Side::response);
    Matrix& log_prior = block.log_prior();
    if (log_prior.size() == 0) log_prior.setZero(rows.size(), block.rows(Side::feature).size());
    log_prior.colwise() -= log_absence_of(rows);
  }
}

void Evaluator::State::lay_out_prior() {
  if (!problem->has_prior()) return;
  for (DenseBlock& block : dense_blocks)
    block.log_prior() = log_weights_of_keys(*problem, block.rows(Side::response).rows, block.rows(Side::feature).rows);
  for (const auto& [response_row, feature_row, weight] : problem->prior) {
    const auto i = static_cast<std::size_t>(response_row), j = static_cast<std::size_t>(feature_row);
    const Index block = block_of_response[i];
    if (block < 0 || block != block_of_feature[j]) continue;  // rows of weight zero, or linked for certain elsewhere
    dense_blocks[static_cast<std::size_t>(block)].log_prior()(place_of_response[i], place_of_feature[j]) +=
        std::log(weight);
  }
}

void Evaluator::State::fill_cost(const DenseBlock& block, const VectorRef& w, Matrix& cost) const {
  squared_costs(*model, tables_of(block), w, cost);
}

void Evaluator::State::pull_back_dense(DenseBlock& block, double scale, const VectorRef& w, Vector& gradient) const {
  pull_back_costs(*model, tables_of(block), scale * block.plan_weights(options.objective), w, gradient);
}

Matrix Evaluator::State::responses_at(const VectorRef& w) const {
  if (!has_response_parameters()) return problem->y;
  return problem->y - additive()->part(Side::response, x, w);
}

Matrix Evaluator::State::features_at(const VectorRef& w) const { return additive()->part(Side::feature, z, w); }

double Evaluator::State::largest_cost(const VectorRef& w) {
  pairs.evaluate(tables_of_pairs(), w);
  double largest = pairs.largest_cost();
  if (backend == Backend::clouds) {
    const Matrix t = responses_at(w), s = features_at(w);
    if (!t.allFinite() || !s.allFinite()) return std::numeric_limits<double>::infinity();
    for (const CloudBlock& block : cloud_blocks)
      largest = std::max(largest, block.largest_cost(rows_from(t, block.rows(Side::response)),
                                                     rows_from(s, block.rows(Side::feature))));
    return largest;
  }
  if (backend == Backend::sorted) {
    const Vector t = problem->y.col(0) - additive()->part(Side::response, x, w).col(0);
    const Vector s = additive()->part(Side::feature, z, w).col(0);
    if (!t.allFinite() || !s.allFinite()) return std::numeric_limits<double>::infinity();
    for (const LineBlock& block : line_blocks) {
      const Matrix bt = rows_from(t, block.rows(Side::response)), bs = rows_from(s, block.rows(Side::feature));
      const double apart = std::max(bt.maxCoeff() - bs.minCoeff(), bs.maxCoeff() - bt.minCoeff());
      largest = std::max(largest, apart * apart);
    }
    return largest;
  }
  for (const auto& blocks_here : {together, own}) {
    for (const std::size_t b : blocks_here) {
      fill_cost(dense_blocks[b], w, dense_blocks[b].cost());
      const bool finite = dense_blocks[b].cost().allFinite();
      largest = std::max(largest, finite ? dense_blocks[b].cost().maxCoeff() : std::numeric_limits<double>::infinity());
    }
  }
  return largest_of_all(team, largest);
}

void Evaluator::State::resolve_epsilon(const VectorRef& w) {
  if (epsilon > 0) return;
  const double largest = options.epsilon.relative ? largest_cost(w) : 1;
  epsilon = options.epsilon.value * (largest > 0 ? largest : 1);
}

std::vector<BlockValue> Evaluator::State::solve_line(const VectorRef& w) {
  const AdditiveModel& sum = *additive();
  Vector t = problem->y.col(0);
  if (has_response_parameters()) t -= sum.part(Side::response, x, w).col(0);
  Vector s = sum.part(Side::feature, z, w).col(0);
  std::vector<BlockValue> values(blocks());
  for_blocks([&](std::size_t b) {
    LineBlock& block = line_blocks[b];
    values[b] = block.solve(taken_from(t, block.rows(Side::response)), taken_from(s, block.rows(Side::feature)),
                            epsilon, options.objective);
  });
  return values;
}

std::vector<BlockValue> Evaluator::State::solve_clouds(const VectorRef& w) {
  const Matrix t = responses_at(w), s = features_at(w);
  std::vector<BlockValue> values(blocks());
  for_blocks([&](std::size_t b) {
    CloudBlock& block = cloud_blocks[b];
    values[b] = block.solve(rows_from(t, block.rows(Side::response)), rows_from(s, block.rows(Side::feature)), epsilon,
                            options.objective);
  });
  return values;
}

std::vector<BlockValue> Evaluator::State::solve_dense(const VectorRef& w) {
  std::vector<BlockValue> values(blocks());
  for_blocks([&](std::size_t b) {
    fill_cost(dense_blocks[b], w, dense_blocks[b].cost());
    values[b] = dense_blocks[b].solve(epsilon, options.objective);
  });
  return values;
}

void Evaluator::State::differentiate_line(const VectorRef& w, bool with_hessian, Evaluation& evaluation) {
  const AdditiveModel& sum = *additive();
  const Index p = model->parameters();
  Matrix on_t = Matrix::Zero(problem->responses(), 1), on_s = Matrix::Zero(problem->features(), 1);
  std::vector<Matrix> hessians(with_hessian ? blocks() : 0);
  Matrix t_jacobian, s_jacobian;
  if (with_hessian) {
    t_jacobian = -sum.jacobian_part(Side::response, x, w);
    s_jacobian = sum.jacobian_part(Side::feature, z, w);
  }
  for_blocks([&](std::size_t b) {
    LineBlock& block = line_blocks[b];
    const double scale = rows() * shares[b];
    if (has_response_parameters())
      add_rows(block.rows(Side::response), scale * block.gradient(Side::response, options.objective), on_t);
    add_rows(block.rows(Side::feature), scale * block.gradient(Side::feature, options.objective), on_s);
    if (with_hessian)
      hessians[b] = scale * block.hessian(rows_from(t_jacobian, block.rows(Side::response)),
                                          rows_from(s_jacobian, block.rows(Side::feature)), options.objective);
  });
  on_t = sum_of_all(team, std::move(on_t));
  on_s = sum_of_all(team, std::move(on_s));
  pairs.add_slopes(on_t, on_s);
  evaluation.gradient = Vector::Zero(p);
  if (has_response_parameters()) sum.pull_back_part(Side::response, x, w, -on_t, evaluation.gradient);
  sum.pull_back_part(Side::feature, z, w, on_s, evaluation.gradient);
  if (!with_hessian) return;
  exchange(hessians);
  evaluation.hessian = Matrix::Zero(p, p);
  for (const Matrix& hessian : hessians) evaluation.hessian += hessian;
  if (pairs.size() > 0) evaluation.hessian += pairs.hessian(t_jacobian, s_jacobian);
  if (has_response_parameters()) sum.add_curvature_part(Side::response, x, w, -on_t.col(0), evaluation.hessian);
  sum.add_curvature_part(Side::feature, z, w, on_s.col(0), evaluation.hessian);
}

void Evaluator::State::differentiate_clouds(const VectorRef& w, Evaluation& evaluation) {
  Matrix on_t = Matrix::Zero(problem->responses(), problem->outputs()),
         on_s = Matrix::Zero(problem->features(), problem->outputs());
  for_blocks([&](std::size_t b) {
    CloudBlock& block = cloud_blocks[b];
    const double scale = rows() * shares[b];
    if (has_response_parameters())
      add_rows(block.rows(Side::response), scale * block.gradient(Side::response, options.objective), on_t);
    add_rows(block.rows(Side::feature), scale * block.gradient(Side::feature, options.objective), on_s);
  });
  on_t = sum_of_all(team, std::move(on_t));
  on_s = sum_of_all(team, std::move(on_s));
  evaluation.gradient = Vector::Zero(model->parameters());
  if (has_response_parameters()) additive()->pull_back_part(Side::response, x, w, -on_t, evaluation.gradient);
  additive()->pull_back_part(Side::feature, z, w, on_s, evaluation.gradient);
  pairs.pull_back(tables_of_pairs(), w, evaluation.gradient);
}

void Evaluator::State::differentiate_dense(const VectorRef& w, Evaluation& evaluation) {
  std::vector<Matrix> gradients(blocks());
  for_blocks([&](std::size_t b) {
    Vector gradient = Vector::Zero(model->parameters());
    pull_back_dense(dense_blocks[b], rows() * shares[b], w, gradient);
    gradients[b] = gradient;
  });
  for (const std::size_t b : together) gradients[b] = sum_of_all(team, std::move(gradients[b]));
  exchange(gradients);
  evaluation.gradient = Vector::Zero(model->parameters());
  for (const Matrix& gradient : gradients) evaluation.gradient += gradient.col(0);
  pairs.pull_back(tables_of_pairs(), w, evaluation.gradient);
}

Evaluator::Evaluator(const Problem& problem, const Model& model, EvaluatorOptions options)
    : state_(std::make_unique<State>()) {
  State& state = *state_;
  state.problem = &problem;
  state.model = &model;
  state.options = std::move(options);
  if (!(state.options.epsilon.value > 0) || !std::isfinite(state.options.epsilon.value))
    throw InvalidInput(fmt::format("epsilon = {} must be finite and > 0", state.options.epsilon.value));
  if (several(state.options.team)) state.team = state.options.team;
  state.backend = backend_for(problem, model, state.options.backend);
  state.x = model.basis(Side::response, problem.x);
  state.z = model.basis(Side::feature, problem.z);
  state.split_into_blocks();
  state.lay_out_prior();
  state.lay_out_absence();
}

Evaluator::~Evaluator() = default;
Evaluator::Evaluator(Evaluator&&) noexcept = default;
Evaluator& Evaluator::operator=(Evaluator&&) noexcept = default;

const EvaluatorOptions& Evaluator::options() const { return state_->options; }
Backend Evaluator::backend() const { return state_->backend; }
double Evaluator::epsilon() const { return state_->epsilon; }
void Evaluator::set_epsilon(double absolute) { state_->epsilon = absolute; }
double Evaluator::largest_cost(const VectorRef& w) const { return state_->largest_cost(w); }

void Evaluator::reset() {
  for (LineBlock& block : state_->line_blocks) block.forget();
  for (CloudBlock& block : state_->cloud_blocks) block.forget();
  for (DenseBlock& block : state_->dense_blocks) block.forget();
}

Evaluation Evaluator::evaluate(const VectorRef& w, bool with_hessian) {
  State& state = *state_;
  stop_if_asked();
  if (with_hessian && state.backend != Backend::sorted)
    throw InvalidInput("the Hessian is available with the sorted backend only");
  const std::vector<BlockValue> values = state.solve(w);
  Evaluation evaluation;
  evaluation.converged = true;
  for (std::size_t b = 0; b < values.size(); ++b) {
    const double scale = state.rows() * state.shares[b];
    evaluation.objective += scale * values[b].objective;
    evaluation.transport_cost += scale * values[b].transport_cost;
    evaluation.marginal_error = std::max(evaluation.marginal_error, values[b].marginal_error);
    evaluation.compression_error = std::max(evaluation.compression_error, values[b].compression_error);
    evaluation.inner_iterations = std::max(evaluation.inner_iterations, values[b].iterations);
    if (evaluation.converged && !values[b].converged) evaluation.message = values[b].message;
    evaluation.converged = evaluation.converged && values[b].converged;
  }
  state.pairs.add_to(evaluation, state.options.objective, state.epsilon);
  if (state.backend == Backend::sorted)
    state.differentiate_line(w, with_hessian, evaluation);
  else if (state.backend == Backend::clouds)
    state.differentiate_clouds(w, evaluation);
  else
    state.differentiate_dense(w, evaluation);
  return evaluation;
}

// A plan depends on costs only through C/ε.
PlanSlopes Evaluator::over_plans(const VectorRef& w, const std::function<PlanTerm(const Matrix& plan)>& function) {
  State& state = *state_;
  refuse_shared(state.team);
  if (state.backend != Backend::dense) throw InvalidInput("plans are held by the dense backend only");
  std::vector<PlanSlopes> slopes(state.blocks());
  state.for_blocks([&](std::size_t b) {
    const DenseBlock& block = state.dense_blocks[b];
    const PlanTerm term = function(block.plan());
    const Matrix by_cost = block.pull_back(term.slope);
    slopes[b] = {term.value, Vector::Zero(state.model->parameters()),
                 -by_cost.cwiseProduct(block.residual_cost()).sum()};
    pull_back_costs(*state.model, state.tables_of(block), by_cost, w, slopes[b].gradient);
  });
  PlanSlopes sum{0, Vector::Zero(state.model->parameters()), 0};
  for (const PlanSlopes& one : slopes) {
    sum.value += one.value;
    sum.gradient += one.gradient;
    sum.by_log_epsilon += one.by_log_epsilon;
  }
  return sum;
}

SoftLinks Evaluator::links(const VectorRef& w) {
  State& state = *state_;
  (void)state.solve(w);
  SoftLinks links{Vector::Zero(state.problem->responses()), Vector::Zero(state.problem->features())};
  const auto link = [&](std::size_t b) {
    if (state.backend == Backend::sorted) return state.line_blocks[b].link(links);
    if (state.backend == Backend::clouds) return state.cloud_blocks[b].link(links);
    state.dense_blocks[b].link(links);
  };
  for (const std::size_t b : state.own) link(b);
  const bool leads = state.team == nullptr || state.team->leads();
  if (leads) state.pairs.link(links);
  if (state.team == nullptr) return links;
  if (leads) {
    for (const std::size_t b : state.together) link(b);
  }
  return {sum_of_all(state.team, std::move(links.response_mass)), sum_of_all(state.team, std::move(links.feature_mass)),
          largest_of_all(state.team, links.measured_error)};
}

double Evaluator::plan_entry(Index response_row, Index feature_row) const {
  const State& state = *state_;
  refuse_shared(state.team);
  const Index block = state.block_of_response[static_cast<std::size_t>(response_row)];
  if (block < 0 || block != state.block_of_feature[static_cast<std::size_t>(feature_row)]) return 0;
  const Index i = state.place_of_response[static_cast<std::size_t>(response_row)];
  const Index j = state.place_of_feature[static_cast<std::size_t>(feature_row)];
  const auto b = static_cast<std::size_t>(block);
  if (b >= state.blocks()) return state.pairs.scale(b - state.blocks()) / state.rows();
  return state.shares[b] * state.with_block(b, [&](const auto& of) { return of.plan_entry(i, j); });
}

double Evaluator::cost_entry(Index response_row, Index feature_row) const {
  const State& state = *state_;
  refuse_shared(state.team);
  const Index block = state.block_of_response[static_cast<std::size_t>(response_row)];
  if (block < 0 || block != state.block_of_feature[static_cast<std::size_t>(feature_row)])
    return std::numeric_limits<double>::infinity();
  const Index i = state.place_of_response[static_cast<std::size_t>(response_row)];
  const Index j = state.place_of_feature[static_cast<std::size_t>(feature_row)];
  const auto b = static_cast<std::size_t>(block);
  if (b >= state.blocks()) return state.pairs.cost(b - state.blocks());
  return state.with_block(b, [&](const auto& of) { return of.cost_entry(i, j); });
}

std::vector<PlanEntry> Evaluator::strongest_links(Index most) const {
  const State& state = *state_;
  refuse_shared(state.team);
  if (state.backend != Backend::clouds) throw InvalidInput("the strongest links are listed by the clouds backend only");
  std::vector<PlanEntry> links;
  for (std::size_t b = 0; b < state.blocks(); ++b) {
    for (PlanEntry entry : state.cloud_blocks[b].strongest_links(most)) {
      entry.mass *= state.shares[b];
      links.push_back(entry);
    }
  }
  for (std::size_t k = 0; k < state.pairs.size(); ++k) links.push_back(state.pairs.entry(k, state.rows()));
  std::sort(links.begin(), links.end(), [](const PlanEntry& a, const PlanEntry& b) {
    return std::pair(a.response_row, a.feature_row) < std::pair(b.response_row, b.feature_row);
  });
  return links;
}

}  // namespace unshuffle
