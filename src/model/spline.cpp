#include "unshuffle/model/spline.hpp"

#include <fmt/format.h>

#include "core/cubic_spline.hpp"
#include "unshuffle/core/error.hpp"

namespace unshuffle {

SplineColumn::SplineColumn(const VectorRef& values, int interior_knots, const std::string& name) {
  if (values.size() == 0 || !(values.minCoeff() < values.maxCoeff())) {
    throw BadData(fmt::format("column \"{}\" is constant; a spline needs at least two different values", name));
  }
  breakpoints_ = spline_breakpoints(values, interior_knots);
  const Eigen::RowVectorXd means = expand_uncentred(values).colwise().mean();
  means_.assign(means.begin(), means.end());
}

SplineColumn::SplineColumn(std::vector<double> breakpoints, std::vector<double> means)
    : breakpoints_(std::move(breakpoints)), means_(std::move(means)) {}

Matrix SplineColumn::expand(const VectorRef& values) const {
  return expand_uncentred(values).rowwise() - Eigen::Map<const Eigen::RowVectorXd>(means_.data(), functions());
}

/// Without the first function.
Matrix SplineColumn::expand_uncentred(const VectorRef& values) const {
  return cubic_splines(breakpoints_, values).rightCols(functions());
}

Spline::Spline(int knots, bool intercept) : LinearInBasis(intercept), knots_(knots) {
  if (knots < 0) throw InvalidInput(fmt::format("spline knots = {} must be >= 0", knots));
}

std::unique_ptr<Model> Spline::bound_to(const Problem& problem) const {
  const auto x_names = names_or_default(problem.x_names, problem.x.cols(), "x");
  const auto z_names = names_or_default(problem.z_names, problem.z.cols(), "z");
  auto model = std::make_unique<Spline>(knots_, intercept());
  for (Index k = 0; k < problem.x.cols(); ++k)
    model->x_columns_.emplace_back(problem.x.col(k), knots_, x_names[std::size_t(k)]);
  for (Index k = 0; k < problem.z.cols(); ++k)
    model->z_columns_.emplace_back(problem.z.col(k), knots_, z_names[std::size_t(k)]);
  model->name_basis(x_names, z_names, names_or_default(problem.y_names, problem.y.cols(), "y"));
  return model;
}

Matrix Spline::basis(Side side, const MatrixRef& rows) const {
  const auto& columns = side == Side::response ? x_columns_ : z_columns_;
  Index width = 0;
  for (const SplineColumn& column : columns) width += column.functions();
  Matrix expanded(rows.rows(), width);
  Index begin = 0;
  for (std::size_t k = 0; k < columns.size(); ++k) {
    expanded.middleCols(begin, columns[k].functions()) = columns[k].expand(rows.col(Index(k)));
    begin += columns[k].functions();
  }
  return expanded;
}

std::vector<double> Spline::state() const {
  std::vector<double> numbers;
  for (const auto* columns : {&x_columns_, &z_columns_}) {
    for (const SplineColumn& column : *columns) {
      numbers.push_back(static_cast<double>(column.breakpoints().size()));
      numbers.insert(numbers.end(), column.breakpoints().begin(), column.breakpoints().end());
      numbers.insert(numbers.end(), column.means().begin(), column.means().end());
    }
  }
  return numbers;
}

std::unique_ptr<Model> Spline::restored(int knots, bool intercept, const std::vector<std::string>& x_names,
                                        const std::vector<std::string>& z_names,
                                        const std::vector<std::string>& y_names, const std::vector<double>& state) {
  std::size_t position = 0;
  const auto take = [&](std::size_t count) {
    if (count > state.size() - position) throw BadData("the stored spline ends before all its knots are read");
    std::vector<double> numbers(state.begin() + std::ptrdiff_t(position),
                                state.begin() + std::ptrdiff_t(position + count));
    position += count;
    return numbers;
  };
  const auto columns = [&](std::size_t count) {
    std::vector<SplineColumn> made;
    for (std::size_t k = 0; k < count; ++k) {
      const double size = take(1)[0];
      if (!(size >= 2 && size <= 1e6)) throw BadData(fmt::format("a stored spline column claims {} knots", size));
      std::vector<double> breakpoints = take(static_cast<std::size_t>(size));
      std::vector<double> means = take(breakpoints.size() + 1);
      made.emplace_back(std::move(breakpoints), std::move(means));
    }
    return made;
  };
  auto model = std::make_unique<Spline>(knots, intercept);
  model->x_columns_ = columns(x_names.size());
  model->z_columns_ = columns(z_names.size());
  model->name_basis(x_names, z_names, y_names);
  return model;
}

void Spline::name_basis(const std::vector<std::string>& x_names, const std::vector<std::string>& z_names,
                        const std::vector<std::string>& y_names) {
  const auto basis_names = [](const std::vector<SplineColumn>& columns, const std::vector<std::string>& names) {
    std::vector<std::string> result;
    for (std::size_t k = 0; k < columns.size(); ++k) {
      for (Index r = 1; r <= columns[k].functions(); ++r) result.push_back(fmt::format("{}[{}]", names[k], r));
    }
    return result;
  };
  lay_out(basis_names(x_columns_, x_names), basis_names(z_columns_, z_names), y_names);
}

}  // namespace unshuffle
