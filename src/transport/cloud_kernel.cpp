#include "transport/cloud_kernel.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "transport/cloud_schur.hpp"
#include "transport/scaling_form.hpp"

namespace unshuffle::transport {
namespace {

/// K is kept where it takes no more than this many numbers a point.
constexpr double stored_a_point = 128;
/// calls(leaf) for all leaves, on all threads if that pays. Whatever a call writes belongs to its leaf.
template <class Call>
void for_leaves(const PointCloud& cloud, bool in_parallel, const Call& call) {
  const auto leaves = static_cast<Index>(cloud.leaves().size());
#pragma omp parallel for schedule(dynamic, 4) if (in_parallel)
  for (Index leaf = 0; leaf < leaves; ++leaf) call(leaf);
}

}  // namespace

CloudKernel::CloudKernel(const PointCloud& rows, const PointCloud& columns, double epsilon)
    : rows_(rows),
      columns_(columns),
      epsilon_(epsilon),
      inverse_epsilon_(1 / epsilon),
      row_base_(Vector::Zero(rows.size())),
      column_base_(Vector::Zero(columns.size())),
      shifts_(rows.size()),
      row_products_(rows.size()),
      row_guess_(Vector::Zero(rows.size())) {}

CloudKernel::~CloudKernel() = default;

void CloudKernel::set_base(Vector u, Vector v) {
  row_base_ = std::move(u);
  column_base_ = std::move(v);
  row_guess_.setZero();
  current_ = false;
}

void CloudKernel::set_pairs(BoxPairs pairs) {
  pairs_ = std::move(pairs);
  current_ = false;
}

RowPanel CloudKernel::panel(Index row_leaf) const { return {rows_, rows_.leaf(row_leaf)}; }

const double* CloudKernel::entries(const RowPanel& panel, Index pair, Index column_leaf, Tile& room) const {
  if (!place_in_store_.empty()) return store_.at(place_in_store_[at(pair)]);
  const CloudBox& box = columns_.leaf(column_leaf);
  const RowNumbers base = panel.part(row_base_), shift = panel.part(shifts_);
  const auto row_base = base.first(panel.padded), row_shift = shift.first(panel.padded);
  RowNumbers apart;
  for (Index k = 0; k < box.count; ++k) {
    const Index j = box.first + k;
    squared_distances(panel, columns_, j, apart);
    AlignedArray entry(room.numbers.data() + k * panel.padded, panel.padded);
    entry = ((row_base + column_base_[j]) - apart.first(panel.padded) * inverse_epsilon_ + reference_[j] - row_shift)
                .max(scaling::least_exponent)
                .exp() *
            columns_.weights()[j];
  }
  return room.numbers.data();
}

Vector CloudKernel::times(const Vector& x) const {
  Vector product(rows());
  for_leaves(rows_, worth_threads(), [&](Index a) {
    const RowPanel rows_here = panel(a);
    Tile room;
    RowNumbers sums;
    auto sum = sums.first(rows_here.padded);
    for (Index pair = pairs_.first_of_row[at(a)]; pair < pairs_.first_of_row[at(a) + 1]; ++pair) {
      const Index b = pairs_.column[at(pair)];
      const double* tile = entries(rows_here, pair, b, room);
      const CloudBox& box = columns_.leaf(b);
      for (Index k = 0; k < box.count; ++k)
        sum += ConstAlignedArray(tile + k * rows_here.padded, rows_here.padded) * x[box.first + k];
    }
    product.segment(rows_here.first, rows_here.count) = sum.head(rows_here.count);
  });
  return product;
}

template <bool squared>
Vector CloudKernel::column_products(const Vector& p) const {
  Vector product(cols());
  for_leaves(columns_, worth_threads(), [&](Index b) {
    const CloudBox& box = columns_.leaf(b);
    auto sums = product.segment(box.first, box.count);
    sums.setZero();
    Tile room;
    for (Index k = pairs_.first_of_column[at(b)]; k < pairs_.first_of_column[at(b) + 1]; ++k) {
      const RowPanel rows_here = panel(pairs_.row[at(k)]);
      const RowNumbers part = rows_here.part_and_zeros(p);
      const double* tile = entries(rows_here, pairs_.place[at(k)], b, room);
      for (Index j = 0; j < box.count; ++j) {
        const ConstAlignedArray entry(tile + j * rows_here.padded, rows_here.padded);
        if constexpr (squared) {
          RowNumbers square;
          square.first(rows_here.padded) = entry.square();
          sums[j] += dot({square.numbers.data(), rows_here.padded}, part.first(rows_here.padded));
        } else {
          sums[j] += dot(entry, part.first(rows_here.padded));
        }
      }
    }
  });
  return product;
}

Vector CloudKernel::transposed_times(const Vector& p) const { return column_products<false>(p); }
Vector CloudKernel::squares_transposed_times(const Vector& p) const { return column_products<true>(p); }

Vector CloudKernel::evaluate(const VectorRef& v) {
  if (current_ && ((v - reference_).array().abs() <= scaling::reach).all()) {
    column_factor_ = (v - reference_).array().exp();
    row_products_ = times(column_factor_);
    normal_ = false;
  } else {
    compute(v);
  }
  v_ = v;
  return shifts_.array() + row_products_.array().log();
}

void CloudKernel::compute(const VectorRef& v) {
  reference_ = v;
  column_factor_ = Vector::Ones(cols());
  shifts_ = row_guess_;
  keep_few();
  row_products_ = times(column_factor_);
  if (!(row_products_.array() >= scaling::least_sum && row_products_.array() <= scaling::largest_sum).all()) {
    shift_by_largest();
    keep_few();
    row_products_ = times(column_factor_);
  }
  current_ = normal_ = true;
}

/// Rows whose sums are out of bounds are shifted by their largest exponent.
void CloudKernel::shift_by_largest() {
  for_leaves(rows_, worth_threads(), [&](Index a) {
    const RowPanel rows_here = panel(a);
    const auto sums = row_products_.segment(rows_here.first, rows_here.count).array();
    if ((sums >= scaling::least_sum && sums <= scaling::largest_sum).all()) return;
    const RowNumbers base = rows_here.part(row_base_);
    RowNumbers largest, apart;
    auto most = largest.first(rows_here.padded);
    most.setConstant(minus_infinity);
    for (Index pair = pairs_.first_of_row[at(a)]; pair < pairs_.first_of_row[at(a) + 1]; ++pair) {
      const CloudBox& box = columns_.leaf(pairs_.column[at(pair)]);
      for (Index j = box.first; j < box.first + box.count; ++j) {
        squared_distances(rows_here, columns_, j, apart);
        most = most.max((base.first(rows_here.padded) + column_base_[j]) -
                        apart.first(rows_here.padded) * inverse_epsilon_ + reference_[j]);
      }
    }
    shifts_.segment(rows_here.first, rows_here.count) = most.head(rows_here.count);
  });
}

/// Computes the tiles that are kept, if they are few.
void CloudKernel::keep_few() {
  place_in_store_.clear();
  if (pairs_.entries > stored_a_point * static_cast<double>(rows() + cols())) {
    store_.clear();
    return;
  }
  std::vector<std::size_t> places(at(pairs_.size()));
  std::size_t size = 0;
  for (std::size_t a = 0; a + 1 < pairs_.first_of_row.size(); ++a) {
    const Index padded = (rows_.leaf(static_cast<Index>(a)).count + lanes - 1) / lanes * lanes;
    for (Index pair = pairs_.first_of_row[a]; pair < pairs_.first_of_row[a + 1]; ++pair) {
      places[at(pair)] = size;
      size += at(padded * columns_.leaf(pairs_.column[at(pair)]).count);
    }
  }
  store_.resize(size);
  for_leaves(rows_, worth_threads(), [&](Index a) {
    const RowPanel rows_here = panel(a);
    Tile room;
    for (Index pair = pairs_.first_of_row[at(a)]; pair < pairs_.first_of_row[at(a) + 1]; ++pair) {
      const Index b = pairs_.column[at(pair)];
      const double* tile = entries(rows_here, pair, b, room);
      std::copy(tile, tile + rows_here.padded * columns_.leaf(b).count, store_.at(places[at(pair)]));
    }
  });
  place_in_store_ = std::move(places);
}

void CloudKernel::set_rows(const Vector& u) {
  row_factor_ = rows_.weights().array() * (u + shifts_).array().exp();
  row_sums_ = row_factor_.cwiseProduct(row_products_);
  column_sums_ = column_factor_.cwiseProduct(transposed_times(row_factor_));
  row_guess_ = -u;
}

Vector CloudKernel::column_log_sums(const Vector& u) const {
  Vector log_sums = (column_sums_.array() / columns_.weights().array()).log() - v_.array();
  std::vector<char> without(columns_.leaves().size(), 0);
  bool any = false;
  for (std::size_t b = 0; b < without.size(); ++b) {
    const CloudBox& box = columns_.leaf(static_cast<Index>(b));
    const auto sums = column_sums_.segment(box.first, box.count).array();
    without[b] = !(sums > scaling::nearly_empty * columns_.weights().segment(box.first, box.count).array()).all();
    any = any || without[b] != 0;
  }
  if (any) log_sums_of(without, u, log_sums);
  return log_sums;
}

/// The log sums of some column boxes without K.
void CloudKernel::log_sums_of(const std::vector<char>& leaves, const Vector& u, Vector& log_sums) const {
  for_leaves(columns_, worth_threads(), [&](Index b) {
    if (leaves[at(b)] == 0) return;
    const CloudBox& box = columns_.leaf(b);
    Eigen::ArrayXd largest = Eigen::ArrayXd::Constant(box.count, minus_infinity),
                   sums = Eigen::ArrayXd::Zero(box.count);
    RowNumbers exponent;
    for (const bool summing : {false, true}) {
      for (Index k = pairs_.first_of_column[at(b)]; k < pairs_.first_of_column[at(b) + 1]; ++k) {
        const RowPanel rows_here = panel(pairs_.row[at(k)]);
        const RowNumbers base = rows_here.part(row_base_), potential = rows_here.part(u),
                         weight = rows_here.part(rows_.weights());
        for (Index j = 0; j < box.count; ++j) {
          squared_distances(rows_here, columns_, box.first + j, exponent);
          auto e = exponent.first(rows_here.padded);
          e = (base.first(rows_here.padded) + column_base_[box.first + j]) - e * inverse_epsilon_ +
              potential.first(rows_here.padded);
          if (summing)
            sums[j] += ((e - largest[j]).exp() * weight.first(rows_here.padded)).head(rows_here.count).sum();
          else
            largest[j] = std::max(largest[j], e.head(rows_here.count).maxCoeff());
        }
      }
    }
    log_sums.segment(box.first, box.count) = largest + sums.log();
  });
}

/// Moves the column factor into K, whose rows then sum to one.
void CloudKernel::normalise() {
  if (normal_) return;
  shifts_.array() += row_products_.array().log();
  row_factor_ = row_factor_.cwiseProduct(row_products_);
  row_products_.setOnes();
  column_factor_.setOnes();
  reference_ = v_;
  if (!place_in_store_.empty()) keep_few();
  normal_ = true;
}

Matrix CloudKernel::apply(const Matrix& q) const {
  Matrix product(rows(), q.cols());
  for (Index k = 0; k < q.cols(); ++k)
    product.col(k) = row_factor_.cwiseProduct(times(column_factor_.cwiseProduct(q.col(k))));
  return product;
}

Matrix CloudKernel::apply_transposed(const Matrix& p) const {
  Matrix product(cols(), p.cols());
  for (Index k = 0; k < p.cols(); ++k)
    product.col(k) = column_factor_.cwiseProduct(transposed_times(row_factor_.cwiseProduct(p.col(k))));
  return product;
}

bool CloudKernel::prepare_products(const Vector& inverse_a1, const Vector& a2) {
  normalise();
  schur_ = std::make_unique<CloudSchur>(*this, row_factor_.cwiseAbs2().cwiseProduct(inverse_a1), a2);
  return true;
}

bool CloudKernel::iterate(Vector& b, double share) const { return schur_->solve(b, share); }

bool CloudKernel::factor(const Vector& inverse_a1, const Vector& a2, double ridge) {
  return prepare_products(inverse_a1, (1 + ridge) * a2);
}

void CloudKernel::solve(Matrix& b) const {
  constexpr double enough = 1e-14;  // the caller's refinement removes the rest
  for (Index k = 0; k < b.cols(); ++k) {
    Vector column = b.col(k);
    (void)schur_->solve(column, enough);
    b.col(k) = column;
  }
}

void CloudKernel::grouped_rows(Index row_leaf, const std::vector<Index>& group, Matrix& sums) const {
  const RowPanel rows_here = panel(row_leaf);
  Tile room;
  for (Index pair = pairs_.first_of_row[at(row_leaf)]; pair < pairs_.first_of_row[at(row_leaf) + 1]; ++pair) {
    const Index b = pairs_.column[at(pair)];
    const double* tile = entries(rows_here, pair, b, room);
    for (Index k = 0; k < columns_.leaf(b).count; ++k)
      sums.col(group[at(b)]).head(rows_here.count) +=
          Eigen::Map<const Vector>(tile + k * rows_here.padded, rows_here.count);
  }
}

}  // namespace unshuffle::transport
