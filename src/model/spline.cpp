#include "unshuffle/model/spline.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "unshuffle/core/error.hpp"

namespace unshuffle {

namespace {

constexpr Index degree = 3;

/// The value at a share of the way through sorted numbers, linearly between neighbours.
double quantile(const std::vector<double>& sorted, double share) {
  const double position = share * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(position);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (position - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

/// Knot i of the sequence with both ends repeated `degree` more times.
double knot(const std::vector<double>& breakpoints, Index i) {
  const Index last = static_cast<Index>(breakpoints.size()) - 1;
  return breakpoints[static_cast<std::size_t>(std::clamp<Index>(i - degree, 0, last))];
}

/// Values and slopes of the four cubic B-splines that do not vanish on [breakpoint_span, breakpoint_span+1).
struct LocalBasis {
  std::array<double, degree + 1> value;
  std::array<double, degree + 1> slope;
};

// Cox-de Boor: with span s (knot index μ = s + 3), the functions of degree k come from those of degree k-1,
//   B_{i,k}(t) = (t - τ_i)/(τ_{i+k} - τ_i) B_{i,k-1}(t) + (τ_{i+k+1} - t)/(τ_{i+k+1} - τ_{i+1}) B_{i+1,k-1}(t),
// and the slope of the last degree is  B'_{i,3} = 3 [B_{i,2}/(τ_{i+3} - τ_i) - B_{i+1,2}/(τ_{i+4} - τ_{i+1})].
LocalBasis local_basis(const std::vector<double>& breakpoints, Index span, double t) {
  const Index mu = span + degree;
  LocalBasis local{};
  std::array<double, degree + 1> lower{};
  local.value[0] = 1.0;
  for (Index k = 1; k <= degree; ++k) {
    lower = local.value;
    local.value.fill(0.0);
    for (Index r = 0; r < k; ++r) {  // lower[r] is B_{mu-k+1+r, k-1}
      const double left = knot(breakpoints, mu - k + 1 + r);
      const double width = knot(breakpoints, mu + 1 + r) - left;
      const auto at = static_cast<std::size_t>(r);
      local.value[at + 1] += (t - left) / width * lower[at];
      local.value[at] += (left + width - t) / width * lower[at];
    }
  }
  for (Index r = 0; r < degree; ++r) {  // lower holds degree 2
    const double width = knot(breakpoints, mu + 1 + r) - knot(breakpoints, mu - degree + 1 + r);
    const auto at = static_cast<std::size_t>(r);
    local.slope[at + 1] += degree * lower[at] / width;
    local.slope[at] -= degree * lower[at] / width;
  }
  return local;
}

Index span_of(const std::vector<double>& breakpoints, double t) {
  const auto above = std::upper_bound(breakpoints.begin() + 1, breakpoints.end() - 1, t);
  return above - breakpoints.begin() - 1;
}

}  // namespace

SplineColumn::SplineColumn(const VectorRef& values, int interior_knots, const std::string& name) {
  std::vector<double> sorted(values.begin(), values.end());
  std::sort(sorted.begin(), sorted.end());
  if (sorted.empty() || !(sorted.front() < sorted.back())) {
    throw BadData(fmt::format("column \"{}\" is constant; a spline needs at least two different values", name));
  }
  breakpoints_.push_back(sorted.front());
  for (int k = 1; k <= interior_knots; ++k) {
    const double at = quantile(sorted, static_cast<double>(k) / (interior_knots + 1));
    if (at > breakpoints_.back() && at < sorted.back()) breakpoints_.push_back(at);
  }
  breakpoints_.push_back(sorted.back());
  const Eigen::RowVectorXd means = expand_uncentred(values).colwise().mean();
  means_.assign(means.begin(), means.end());
}

SplineColumn::SplineColumn(std::vector<double> breakpoints, std::vector<double> means)
    : breakpoints_(std::move(breakpoints)), means_(std::move(means)) {}

Matrix SplineColumn::expand(const VectorRef& values) const {
  return expand_uncentred(values).rowwise() - Eigen::Map<const Eigen::RowVectorXd>(means_.data(), functions());
}

Matrix SplineColumn::expand_uncentred(const VectorRef& values) const {
  Matrix basis = Matrix::Zero(values.size(), functions());
  for (Index i = 0; i < values.size(); ++i) {
    const double t = std::clamp(values(i), breakpoints_.front(), breakpoints_.back());
    const Index span = span_of(breakpoints_, t);
    const LocalBasis local = local_basis(breakpoints_, span, t);
    for (Index r = 0; r <= degree; ++r) {
      if (span + r == 0) continue;  // the dropped first function
      const auto at = static_cast<std::size_t>(r);
      basis(i, span + r - 1) = local.value[at] + (values(i) - t) * local.slope[at];
    }
  }
  return basis;
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
