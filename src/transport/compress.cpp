#include "transport/compress.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "transport/chebyshev.hpp"

namespace unshuffle::transport {
namespace {

/// Points per quadrature before results are combined: small enough for the cache, and fixed, so that the sums do not
/// depend on the number of threads. Gauss rules compose: a rule of rules is exact to the same degree.
constexpr Index chunk_size = 4096;

/// Nodes that represent the points of one cell until cells are joined to boxes: a cell is at most a quarter of a box,
/// so its moments up to the degree of the box rule are exact to rounding.
constexpr int cell_order = 9;

/// Below this many points threads cost more than they gain.
constexpr Index worth_threads = 20000;

/// A copy in Eigen's own aligned storage: sums over it are taken in the same order wherever the original is.
Vector aligned(const std::vector<double>& values) {
  return Eigen::Map<const Vector>(values.data(), static_cast<Index>(values.size()));
}

Range range_of(const VectorRef& position) {
  const bool many = position.size() > worth_threads;
  double low = position[0], high = low;
#pragma omp parallel for simd schedule(static) reduction(min : low) reduction(max : high) if (many)
  for (Index k = 0; k < position.size(); ++k) {
    low = std::min(low, position[k]);
    high = std::max(high, position[k]);
  }
  return {low, high};
}

/// Positions moved to [-1, 1]; a box of one position moves to 0.
Vector local(const VectorRef& position, double centre, double half_width) {
  return (position.array() - centre) / (half_width > 0 ? half_width : 1);
}

}  // namespace

double CompressionRule::smallest(const std::vector<double>& factor, double low, double high) const {
  double result = 1;
  auto from = std::lower_bound(narrow_at.begin(), narrow_at.end(), low);
  if (from != narrow_at.begin()) --from;  // the limit just outside also applies at the edge
  for (auto it = from; it != narrow_at.end(); ++it) {
    result = std::min(result, factor[static_cast<std::size_t>(it - narrow_at.begin())]);
    if (*it > high) break;
  }
  return result;
}

CompressedMeasure::CompressedMeasure(const VectorRef& position, const VectorRef& weight, const CompressionRule& rule)
    : rule_(rule), order_(position.size()), position_(position.size()) {
  const Range range = range_of(position);
  if (fits_a_cell(range, position.size())) {
    position_ = position;
    std::iota(order_.begin(), order_.end(), 0u);
    add_cell(0, position.size(), range);
  } else {
    distribute(0, position, {}, range);
  }
  if (weight.size() == 0) {
    equal_weight_ = 1.0 / static_cast<double>(position.size());
  } else {
    weight_ = weight(order_);
  }
  std::vector<Atoms> atoms(cells_.size());
#pragma omp parallel for schedule(dynamic, 8) if (position.size() > worth_threads)
  for (std::size_t k = 0; k < cells_.size(); ++k) atoms[k] = atoms_of(cells_[k]);
  place_nodes(atoms);
  place_grid(atoms);
}

bool CompressedMeasure::is_of(const VectorRef& position, const VectorRef& weight, const CompressionRule& rule) const {
  if (rule != rule_ || position.size() != position_.size() || weight.size() != weight_.size()) return false;
  auto same = [&](Index k) {
    const Index point = order_[k];
    return position_[k] == position[point] && (weight_.size() == 0 || weight_[k] == weight[point]);
  };
  constexpr Index likely_to_differ = 100;
  for (Index k = 0; k < std::min(likely_to_differ, position.size()); ++k)
    if (!same(k)) return false;
  bool all = true;
#pragma omp parallel for schedule(static) reduction(&& : all) if (position.size() > worth_threads)
  for (Index k = 0; k < position.size(); ++k) all = all && same(k);
  return all;
}

bool CompressedMeasure::fits_a_cell(const Range& range, Index count) const {
  // Equal positions cannot be split, nor can what is not a number, nor ranges too long or too short to be divided.
  const double length = range.length();
  return !std::isfinite(length) || !std::isfinite(static_cast<double>(count) / length) || count == 1 ||
         (range.length() <= rule_.cell_width && range.length() <= rule_.widest_cell(range.low, range.high));
}

void CompressedMeasure::add_cell(Index begin, Index end, const Range& range) {
  const bool direct = end - begin <= rule_.grid_order;
  cells_.push_back({begin, end, 0.5 * (range.low + range.high), 0.5 * range.length(), direct});
  if (direct) sort(begin, end);
}

// One counting pass per level splits points into cells; only ranges with distant outliers or places that need narrower
// cells take another level, because the number of cells per level is bounded by the number of points. Points are
// counted and moved in a fixed number of parts, so that their order does not depend on the number of threads.
void CompressedMeasure::distribute(Index begin, const VectorRef& position, const Order& order, const Range& range) {
  const Index count = position.size();
  const double widest = range.length() > rule_.cell_width ? rule_.cell_width : rule_.widest_cell(range.low, range.high);
  const auto bins =
      std::max<Index>(2, static_cast<Index>(std::min(std::ceil(range.length() / widest), static_cast<double>(count))));
  const double per_unit = static_cast<double>(bins) / range.length();
  auto bin_of = [&](double x) { return std::min(static_cast<Index>((x - range.low) * per_unit), bins - 1); };
  const Index parts = count > worth_threads ? 16 : 1;
  using Counts = Eigen::Matrix<Index, Eigen::Dynamic, Eigen::Dynamic>;
  Counts next = Counts::Zero(bins, parts);
#pragma omp parallel for schedule(static) if (parts > 1)
  for (Index part = 0; part < parts; ++part)
    for (Index k = count * part / parts; k < count * (part + 1) / parts; ++k) ++next(bin_of(position[k]), part);
  std::vector<Index> start(static_cast<std::size_t>(bins) + 1, begin);
  Index total = begin;
  for (Index bin = 0; bin < bins; ++bin) {
    for (Index part = 0; part < parts; ++part) total += std::exchange(next(bin, part), total);
    start[static_cast<std::size_t>(bin) + 1] = total;
  }
#pragma omp parallel for schedule(static) if (parts > 1)
  for (Index part = 0; part < parts; ++part)
    for (Index k = count * part / parts; k < count * (part + 1) / parts; ++k) {
      const Index place = next(bin_of(position[k]), part)++;
      position_[place] = position[k];
      order_[place] = order.size() > 0 ? order[k] : static_cast<std::uint32_t>(k);
    }
  for (std::size_t bin = 0; bin + 1 < start.size(); ++bin) {
    const Index first = start[bin], size = start[bin + 1] - first;
    if (size == 0) continue;
    const Range inside = range_of(position_.segment(first, size));
    if (fits_a_cell(inside, size))
      add_cell(first, first + size, inside);
    else
      distribute(first, Vector(position_.segment(first, size)), Order(order_.segment(first, size)), inside);
  }
}

/// By position, equal ones by index, for cells of few points.
void CompressedMeasure::sort(Index begin, Index end) {
  for (Index k = begin + 1; k < end; ++k) {
    const double x = position_[k];
    const std::uint32_t point = order_[k];
    Index place = k;
    for (; place > begin; --place) {
      const std::uint32_t before = order_[place - 1];
      if (position_[place - 1] < x || (position_[place - 1] == x && before < point)) break;
      position_[place] = position_[place - 1];
      order_[place] = before;
    }
    position_[place] = x;
    order_[place] = point;
  }
}

CompressedMeasure::Atoms CompressedMeasure::atoms_of(const Cell& cell) const {
  auto weight_at = [&](Index k) { return weight_.size() > 0 ? weight_[k] : equal_weight_; };
  Atoms atoms;
  if (cell.direct) {
    for (Index k = cell.begin; k < cell.end; ++k) {
      if (k > cell.begin && position_[k] == atoms.position.back()) {
        atoms.weight.back() += weight_at(k);
      } else {
        atoms.position.push_back(position_[k]);
        atoms.weight.push_back(weight_at(k));
      }
    }
    return atoms;
  }
  Quadrature rule;
  for (Index begin = cell.begin; begin < cell.end; begin += chunk_size) {
    const Index count = std::min(chunk_size, cell.end - begin);
    const Vector y = local(position_.segment(begin, count), cell.centre, cell.half_width);
    const Vector w =
        weight_.size() > 0 ? Vector(weight_.segment(begin, count)) : Vector::Constant(count, equal_weight_);
    rule = gauss_quadrature(y, w, cell_order);
    atoms.position.insert(atoms.position.end(), rule.node.begin(), rule.node.end());
    atoms.weight.insert(atoms.weight.end(), rule.weight.begin(), rule.weight.end());
  }
  if (cell.end - cell.begin > chunk_size) {
    rule = gauss_quadrature(aligned(atoms.position), aligned(atoms.weight), cell_order);
    atoms.position.assign(rule.node.begin(), rule.node.end());
    atoms.weight.assign(rule.weight.begin(), rule.weight.end());
  }
  for (double& y : atoms.position) y = cell.centre + (cell.half_width > 0 ? cell.half_width : 1) * y;
  return atoms;
}

void CompressedMeasure::place_nodes(const std::vector<Atoms>& atoms) {
  std::vector<double> position, weight;
  Atoms box;
  auto finish_box = [&](double low, double high) {
    const bool compressed = static_cast<int>(box.position.size()) > rule_.order;
    if (compressed) {
      exact_ = false;
      const double centre = 0.5 * (low + high), half = 0.5 * (high - low);
      const Quadrature rule =
          gauss_quadrature(local(aligned(box.position), centre, half), aligned(box.weight), rule_.order);
      const Vector nodes = centre + half * rule.node.array();
      box.position.assign(nodes.begin(), nodes.end());
      box.weight.assign(rule.weight.begin(), rule.weight.end());
    }
    const auto first = static_cast<Index>(position.size());
    for (std::size_t q = 0; q < box.position.size(); ++q) {
      if (!(box.weight[q] > 0)) continue;  // a Gauss weight below the smallest double
      position.push_back(box.position[q]);
      weight.push_back(box.weight[q]);
    }
    boxes_.push_back({first, static_cast<Index>(position.size()), compressed ? high - low : 0});
    box = {};
  };
  double low = 0, high = 0;
  for (std::size_t k = 0; k < cells_.size(); ++k) {
    const double cell_low = cells_[k].centre - cells_[k].half_width;
    const double cell_high = cells_[k].centre + cells_[k].half_width;
    if (k > 0 && cell_high - low > rule_.widest_box(low, cell_high)) {
      finish_box(low, high);
      low = cell_low;
    }
    if (k == 0) low = cell_low;
    high = cell_high;
    exact_ = exact_ && cells_[k].direct;
    box.position.insert(box.position.end(), atoms[k].position.begin(), atoms[k].position.end());
    box.weight.insert(box.weight.end(), atoms[k].weight.begin(), atoms[k].weight.end());
  }
  finish_box(low, high);
  nodes_ = {aligned(position), aligned(weight)};
}

void CompressedMeasure::place_grid(const std::vector<Atoms>& atoms) {
  std::vector<double> grid;
  const Vector unit = chebyshev_points(rule_.grid_order);
  for (std::size_t k = 0; k < cells_.size(); ++k) {
    Cell& cell = cells_[k];
    cell.first_grid = static_cast<Index>(grid.size());
    if (cell.direct) {
      grid.insert(grid.end(), atoms[k].position.begin(), atoms[k].position.end());
    } else {
      for (double y : unit) grid.push_back(cell.centre + cell.half_width * y);
    }
    cell.grid_size = static_cast<Index>(grid.size()) - cell.first_grid;
  }
  grid_ = aligned(grid);
}

Vector CompressedMeasure::interpolated_width() const {
  Vector width(nodes_.size());
  std::size_t cell = 0;
  for (Index k = 0; k < nodes_.size(); ++k) {
    while (cell + 1 < cells_.size() && cells_[cell].centre + cells_[cell].half_width < nodes_.position[k]) ++cell;
    width[k] = cells_[cell].direct ? 0 : 2 * cells_[cell].half_width;
  }
  return width;
}

/// body(point in the caller's order, its place on the grid) for a cell that keeps its points.
template <class Body>
void CompressedMeasure::for_each_direct_point(const Cell& cell, Body body) const {
  Index place = cell.first_grid;
  for (Index k = cell.begin; k < cell.end; ++k) {
    if (k > cell.begin && position_[k] != position_[k - 1]) ++place;
    body(order_[k], place);
  }
}

Vector CompressedMeasure::interpolate(const VectorRef& on_grid) const {
  Vector result(position_.size());
  const Matrix transform = chebyshev_coefficients(rule_.grid_order);
#pragma omp parallel if (position_.size() > worth_threads)
  {
    Eigen::ArrayXd y, b0, b1, b2;
#pragma omp for schedule(dynamic, 8)
    for (std::size_t k = 0; k < cells_.size(); ++k) {
      const Cell& cell = cells_[k];
      if (cell.direct) {
        for_each_direct_point(cell, [&](std::uint32_t point, Index place) { result[point] = on_grid[place]; });
        continue;
      }
      const Vector c = transform * on_grid.segment(cell.first_grid, cell.grid_size);
      for (Index begin = cell.begin; begin < cell.end; begin += chunk_size) {
        const Index count = std::min(chunk_size, cell.end - begin);
        y = local(position_.segment(begin, count), cell.centre, cell.half_width);
        b1.setZero(count);
        b2.setZero(count);
        for (Index degree = c.size() - 1; degree > 0; --degree) {  // Clenshaw's recurrence
          b2 = c[degree] + 2 * y * b1 - b2;
          b2.swap(b1);
        }
        b0 = c[0] + y * b1 - b2;
        for (Index p = 0; p < count; ++p) result[order_[begin + p]] = b0[p];
      }
    }
  }
  return result;
}

Vector CompressedMeasure::spread(const VectorRef& on_points) const {
  Vector result = Vector::Zero(grid_.size());
  const Matrix transform = chebyshev_coefficients(rule_.grid_order);
#pragma omp parallel if (position_.size() > worth_threads)
  {
    Eigen::ArrayXd y, lower, upper;
    Vector moments;
#pragma omp for schedule(dynamic, 8)
    for (std::size_t k = 0; k < cells_.size(); ++k) {
      const Cell& cell = cells_[k];
      if (cell.direct) {
        for_each_direct_point(cell, [&](std::uint32_t point, Index place) { result[place] += on_points[point]; });
        continue;
      }
      moments.setZero(cell.grid_size);
      for (Index begin = cell.begin; begin < cell.end; begin += chunk_size) {
        const Index count = std::min(chunk_size, cell.end - begin);
        y = local(position_.segment(begin, count), cell.centre, cell.half_width);
        lower.resize(count);
        for (Index p = 0; p < count; ++p) lower[p] = on_points[order_[begin + p]];
        upper = lower * y;
        moments[0] += lower.sum();
        for (Index degree = 1; degree < cell.grid_size; ++degree) {  // T_{k+1} = 2yT_k - T_{k-1}
          moments[degree] += upper.sum();
          lower = 2 * y * upper - lower;
          lower.swap(upper);
        }
      }
      result.segment(cell.first_grid, cell.grid_size) = transform.transpose() * moments;
    }
  }
  return result;
}

}  // namespace unshuffle::transport
