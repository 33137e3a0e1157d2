#include "transport/compress.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

namespace unshuffle::transport {
namespace {

/// Points per quadrature before results are combined: small enough for the cache, and fixed, so that the sums do not
/// depend on the number of threads. Gauss rules compose: a rule of rules is exact to the same degree.
constexpr Index chunk_size = 4096;

/// Nodes that stand for the points of one cell until cells are joined to boxes: a cell is a quarter of a box or less,
/// so its moments up to the box rule's degree are exact to rounding.
constexpr int cell_order = 9;

/// Below this many points threads cost more than they bring.
constexpr Index worth_threads = 20000;

/// Chebyshev points of the first kind on [-1, 1], ascending.
Vector chebyshev_points(int count) {
  Vector points(count);
  for (int k = 0; k < count; ++k) points[k] = -std::cos(M_PI * (k + 0.5) / count);
  return points;
}

/// Values at chebyshev_points(count) → coefficients of the Chebyshev series through them.
Matrix chebyshev_coefficients(int count) {
  const Vector points = chebyshev_points(count);
  Matrix transform(count, count);
  for (int degree = 0; degree < count; ++degree)
    for (int k = 0; k < count; ++k)
      transform(degree, k) = (degree == 0 ? 1.0 : 2.0) / count * std::cos(degree * std::acos(points[k]));
  return transform;
}

/// A copy in Eigen's own aligned storage: sums over it are taken in the same order wherever the original lies.
Vector aligned(const std::vector<double>& values) {
  return Eigen::Map<const Vector>(values.data(), static_cast<Index>(values.size()));
}

/// Positions moved to [-1, 1]; a box of one position moves to 0.
Vector local(const VectorRef& position, double centre, double half_width) {
  return (position.array() - centre) / (half_width > 0 ? half_width : 1);
}

}  // namespace

double CompressionRule::smallest(const std::vector<double>& factor, double low, double high) const {
  double result = 1;
  auto from = std::lower_bound(narrow_at.begin(), narrow_at.end(), low);
  if (from != narrow_at.begin()) --from;  // what holds just outside holds at the edge
  for (auto it = from; it != narrow_at.end(); ++it) {
    result = std::min(result, factor[static_cast<std::size_t>(it - narrow_at.begin())]);
    if (*it > high) break;
  }
  return result;
}

CompressedMeasure::CompressedMeasure(const VectorRef& position, const VectorRef& weight, const CompressionRule& rule)
    : rule_(rule), order_(static_cast<std::size_t>(position.size())), position_(position) {
  std::iota(order_.begin(), order_.end(), 0u);
  group(0, position.size());
  if (weight.size() == 0) {
    equal_weight_ = 1.0 / static_cast<double>(position.size());
  } else {
    weight_.resize(weight.size());
    for (Index k = 0; k < weight.size(); ++k) weight_[k] = weight[order_[static_cast<std::size_t>(k)]];
  }
  std::vector<Atoms> atoms(cells_.size());
#pragma omp parallel for schedule(dynamic, 8) if (position.size() > worth_threads)
  for (std::size_t k = 0; k < cells_.size(); ++k) atoms[k] = atoms_of(cells_[k]);
  place_nodes(atoms);
  place_grid(atoms);
}

// One counting pass per level splits a range into cells; only ranges with far outliers or with places that ask for
// narrower cells need another level, because the number of cells per level is bounded by the number of points. Points
// are counted and moved in a fixed number of parts, so that their order does not depend on the number of threads.
void CompressedMeasure::group(Index begin, Index end) {
  const Index count = end - begin;
  const double low = position_.segment(begin, count).minCoeff(), high = position_.segment(begin, count).maxCoeff();
  const double widest = high - low > rule_.cell_width ? rule_.cell_width : rule_.widest_cell(low, high);
  if (high - low <= widest || count == 1) {
    cells_.push_back({begin, end, 0.5 * (low + high), 0.5 * (high - low), count <= rule_.grid_order});
    if (cells_.back().direct) sort(begin, end);
    return;
  }
  const auto bins = std::max<Index>(
      2, static_cast<Index>(std::min(std::ceil((high - low) / widest), static_cast<double>(count))));
  const double per_unit = static_cast<double>(bins) / (high - low);
  auto bin_of = [&](double x) { return std::min(static_cast<Index>((x - low) * per_unit), bins - 1); };
  const Index parts = count > worth_threads ? 16 : 1;
  auto part_begin = [&](Index part) { return begin + count * part / parts; };
  using Counts = Eigen::Matrix<Index, Eigen::Dynamic, Eigen::Dynamic>;
  Counts next = Counts::Zero(bins, parts);
#pragma omp parallel for schedule(static) if (parts > 1)
  for (Index part = 0; part < parts; ++part)
    for (Index k = part_begin(part); k < part_begin(part + 1); ++k) ++next(bin_of(position_[k]), part);
  std::vector<Index> start(static_cast<std::size_t>(bins) + 1, 0);
  Index total = 0;
  for (Index bin = 0; bin < bins; ++bin) {
    for (Index part = 0; part < parts; ++part) total += std::exchange(next(bin, part), total);
    start[static_cast<std::size_t>(bin) + 1] = total;
  }
  std::vector<std::uint32_t> order(static_cast<std::size_t>(count));
  Vector position(count);
#pragma omp parallel for schedule(static) if (parts > 1)
  for (Index part = 0; part < parts; ++part)
    for (Index k = part_begin(part); k < part_begin(part + 1); ++k) {
      const Index place = next(bin_of(position_[k]), part)++;
      position[place] = position_[k];
      order[static_cast<std::size_t>(place)] = order_[static_cast<std::size_t>(k)];
    }
  std::copy(order.begin(), order.end(), order_.begin() + begin);
  position_.segment(begin, count) = position;
  for (std::size_t b = 0; b + 1 < start.size(); ++b)
    if (start[b] < start[b + 1]) group(begin + start[b], begin + start[b + 1]);
}

/// By position, equal ones by index, for cells of few points.
void CompressedMeasure::sort(Index begin, Index end) {
  for (Index k = begin + 1; k < end; ++k) {
    const double x = position_[k];
    const std::uint32_t point = order_[static_cast<std::size_t>(k)];
    Index place = k;
    for (; place > begin; --place) {
      const std::uint32_t before = order_[static_cast<std::size_t>(place - 1)];
      if (position_[place - 1] < x || (position_[place - 1] == x && before < point)) break;
      position_[place] = position_[place - 1];
      order_[static_cast<std::size_t>(place)] = before;
    }
    position_[place] = x;
    order_[static_cast<std::size_t>(place)] = point;
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
    const Vector w = weight_.size() > 0 ? Vector(weight_.segment(begin, count)) : Vector::Constant(count, equal_weight_);
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
    body(order_[static_cast<std::size_t>(k)], place);
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
        for (Index p = 0; p < count; ++p) result[order_[static_cast<std::size_t>(begin + p)]] = b0[p];
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
        for (Index p = 0; p < count; ++p) lower[p] = on_points[order_[static_cast<std::size_t>(begin + p)]];
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
