#include "unshuffle/model/linear.hpp"

#include <algorithm>

namespace unshuffle {

namespace {

// Rows per step of a loop over a whole table: a chunk of a few columns stays in the cache while every output reads it,
// and the order of summation is the same on every machine and for any number of threads.
constexpr Index chunk_rows = 4096;

// Below this many rows threads cost more than they gain.
constexpr Index worth_threads = 20000;

Index chunks_in(Index rows) { return (rows + chunk_rows - 1) / chunk_rows; }

/// Calls body(chunk, its first row, its number of rows) for all chunks, on all threads when that pays.
template <class Body>
void for_each_chunk(Index rows, const Body& body) {
#pragma omp parallel for schedule(static) if (rows > worth_threads)
  for (Index chunk = 0; chunk < chunks_in(rows); ++chunk) {
    const Index begin = chunk * chunk_rows;
    body(chunk, begin, std::min(chunk_rows, rows - begin));
  }
}

}  // namespace

std::vector<std::string> names_or_default(const std::vector<std::string>& names, Index count,
                                          const std::string& prefix) {
  if (!names.empty()) return names;
  std::vector<std::string> result;
  for (Index k = 1; k <= count; ++k) result.push_back(prefix + std::to_string(k));
  return result;
}

void LinearInBasis::lay_out(std::vector<std::string> x_columns, std::vector<std::string> z_columns,
                            std::vector<std::string> outputs) {
  x_count_ = static_cast<Index>(x_columns.size());
  z_count_ = static_cast<Index>(z_columns.size());
  outputs_ = static_cast<Index>(outputs.size());
  column_names_ = std::move(x_columns);
  column_names_.insert(column_names_.end(), z_columns.begin(), z_columns.end());
  output_names_ = std::move(outputs);
}

std::vector<std::string> LinearInBasis::parameter_names() const {
  std::vector<std::string> names;
  for (const std::string& output : output_names_) {
    const std::string prefix = outputs_ == 1 ? "" : output + ":";
    if (intercept_) names.push_back(prefix + "intercept");
    for (const std::string& column : column_names_) names.push_back(prefix + column);
  }
  return names;
}

Matrix LinearInBasis::part(Side side, const MatrixRef& rows, const VectorRef& w) const {
  const Eigen::Map<const Matrix> weights(w.data(), per_output(), outputs_);
  Matrix values(rows.rows(), outputs_);
  for_each_chunk(rows.rows(), [&](Index, Index begin, Index size) {
    for (Index k = 0; k < outputs_; ++k) {
      auto chunk = values.col(k).segment(begin, size);
      chunk.setConstant(has_intercept(side) ? weights(0, k) : 0.0);
      if (count(side) > 0)
        chunk.noalias() += rows.middleRows(begin, size) * weights.col(k).segment(first(side), count(side));
    }
  });
  return values;
}

void LinearInBasis::pull_back_part(Side side, const MatrixRef& rows, const VectorRef&, const MatrixRef& cotangent,
                                   Vector& gradient) const {
  Matrix of_chunk = Matrix::Zero(gradient.size(), chunks_in(rows.rows()));
  for_each_chunk(rows.rows(), [&](Index chunk, Index begin, Index size) {
    Eigen::Map<Matrix> sums(of_chunk.col(chunk).data(), per_output(), outputs_);
    for (Index k = 0; k < outputs_; ++k) {
      const auto given = cotangent.col(k).segment(begin, size);
      if (has_intercept(side)) sums(0, k) = given.sum();
      if (count(side) > 0)
        sums.col(k).segment(first(side), count(side)).noalias() = rows.middleRows(begin, size).transpose() * given;
    }
  });
  for (Index chunk = 0; chunk < of_chunk.cols(); ++chunk) gradient += of_chunk.col(chunk);
}

Matrix LinearInBasis::jacobian_part(Side side, const MatrixRef& rows, const VectorRef&) const {
  Matrix jacobian = Matrix::Zero(rows.rows(), parameters());
  if (has_intercept(side)) jacobian.col(0).setOnes();
  if (count(side) > 0) jacobian.middleCols(first(side), count(side)) = rows;
  return jacobian;
}

std::unique_ptr<Model> Linear::bound_to(const Problem& problem) const {
  return restored(intercept(), names_or_default(problem.x_names, problem.x.cols(), "x"),
                  names_or_default(problem.z_names, problem.z.cols(), "z"),
                  names_or_default(problem.y_names, problem.y.cols(), "y"));
}

std::unique_ptr<Model> Linear::restored(bool intercept, std::vector<std::string> x_names,
                                        std::vector<std::string> z_names, std::vector<std::string> y_names) {
  auto model = std::make_unique<Linear>(intercept);
  model->lay_out(std::move(x_names), std::move(z_names), std::move(y_names));
  return model;
}

}  // namespace unshuffle
