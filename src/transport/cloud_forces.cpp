// What the derivatives need of a plan between clouds: sums of the plan times functions of its density.
#include <algorithm>
#include <functional>

#include "transport/cloud_kernel.hpp"

namespace unshuffle::transport {
/// Calls of_column(j, log density, Γ) for every column of every pair of a row box or a column box.
struct CloudKernel::Densities {
  const CloudKernel& kernel;
  const Vector &u, &v;

  template <class Call>
  void of_pair(const RowPanel& rows_here, Index column_leaf, Call&& of_column) const {
    const RowNumbers base = rows_here.part(kernel.row_base_), potential = rows_here.part(u),
                     weight = rows_here.part_and_zeros(kernel.rows_.weights());
    const CloudBox& box = kernel.columns_.leaf(column_leaf);
    RowNumbers log_density, plan;
    auto density = log_density.first(rows_here.padded);
    for (Index j = box.first; j < box.first + box.count; ++j) {
      squared_distances(rows_here, kernel.columns_, j, log_density);
      density = (base.first(rows_here.padded) + kernel.column_base_[j]) - density * kernel.inverse_epsilon_ +
                potential.first(rows_here.padded) + v[j];
      plan.first(rows_here.padded) = density.exp() * weight.first(rows_here.padded) * kernel.columns_.weights()[j];
      of_column(j, log_density, plan);
    }
  }

  /// make(panel) -> what is called for every column of the row box; finish(panel, it) at the end.
  template <class Make, class Finish>
  void by_row(const Make& make, const Finish& finish) const {
    const auto leaves = static_cast<Index>(kernel.rows_.leaves().size());
#pragma omp parallel for schedule(dynamic, 4) if (kernel.worth_threads())
    for (Index a = 0; a < leaves; ++a) {
      const RowPanel rows_here = kernel.panel(a);
      auto sums = make(rows_here);
      for (Index pair = kernel.pairs_.first_of_row[at(a)]; pair < kernel.pairs_.first_of_row[at(a) + 1]; ++pair)
        of_pair(rows_here, kernel.pairs_.column[at(pair)], sums);
      finish(rows_here, sums);
    }
  }

  /// of_column(panel, j, log density, Γ) for all pairs of all column boxes; what it writes belongs to column j.
  template <class Call>
  void by_column(const Call& of_column) const {
    const auto leaves = static_cast<Index>(kernel.columns_.leaves().size());
#pragma omp parallel for schedule(dynamic, 4) if (kernel.worth_threads())
    for (Index b = 0; b < leaves; ++b) {
      for (Index k = kernel.pairs_.first_of_column[at(b)]; k < kernel.pairs_.first_of_column[at(b) + 1]; ++k) {
        const RowPanel rows_here = kernel.panel(kernel.pairs_.row[at(k)]);
        of_pair(rows_here, b, [&](Index j, const RowNumbers& log_density, const RowNumbers& plan) {
          of_column(rows_here, j, log_density, plan);
        });
      }
    }
  }
};

Vector CloudKernel::row_entropy_sums(const Vector& u, const Vector& v, const Vector& q) const {
  struct Sums {
    Index padded;
    const Vector& q;
    RowNumbers sums;
    void operator()(Index j, const RowNumbers& log_density, const RowNumbers& plan) {
      sums.first(padded) -= (log_density.first(padded) + q[j]) * plan.first(padded);
    }
  };
  Vector by_row(rows());
  Densities{*this, u, v}.by_row(
      [&](const RowPanel& rows_here) {
        return Sums{rows_here.padded, q, {}};
      },
      [&](const RowPanel& rows_here, const Sums& sums) {
        by_row.segment(rows_here.first, rows_here.count) = sums.sums.first(rows_here.count);
      });
  return by_row;
}

Vector CloudKernel::column_entropy_sums(const Vector& u, const Vector& v, const Vector& p) const {
  Vector by_column = Vector::Zero(cols());
  Densities{*this, u, v}.by_column(
      [&](const RowPanel& rows_here, Index j, const RowNumbers& log_density, const RowNumbers& plan) {
        RowNumbers weight = rows_here.part(p);
        weight.first(rows_here.padded) += log_density.first(rows_here.padded);
        const RowNumbers& beyond = weight;
        by_column[j] -= dot(beyond.first(rows_here.padded), plan.first(rows_here.padded));
      });
  return by_column;
}

Matrix CloudKernel::row_forces(const WeightedPlan& w) const {
  struct Sums {
    const CloudKernel& kernel;
    const WeightedPlan& w;
    const RowPanel& rows_here;
    RowNumbers p;
    std::array<RowNumbers, most_dimensions> forces;

    void operator()(Index j, const RowNumbers& log_density, const RowNumbers& plan) {
      const Index padded = rows_here.padded;
      RowNumbers weighted;
      weighted.first(padded) =
          plan.first(padded) * (w.slope * log_density.first(padded) + p.first(padded) + (w.constant + w.q[j]));
      for (Index o = 0; o < kernel.columns_.dimension(); ++o)
        forces[at(o)].first(padded) +=
            weighted.first(padded) * (rows_here.coordinates[at(o)].first(padded) - kernel.columns_.points()(j, o));
    }
  };
  Matrix forces(rows(), rows_.dimension());
  Densities{*this, w.u, w.v}.by_row(
      [&](const RowPanel& rows_here) {
        return Sums{*this, w, rows_here, rows_here.part(w.p), {}};
      },
      [&](const RowPanel& rows_here, const Sums& sums) {
        for (Index o = 0; o < forces.cols(); ++o)
          forces.col(o).segment(rows_here.first, rows_here.count) = 2 * sums.forces[at(o)].first(rows_here.count);
      });
  return forces;
}

Matrix CloudKernel::column_forces(const WeightedPlan& w) const {
  Matrix forces = Matrix::Zero(cols(), columns_.dimension());
  Densities{*this, w.u, w.v}.by_column(
      [&](const RowPanel& rows_here, Index j, const RowNumbers& log_density, const RowNumbers& plan) {
        const Index padded = rows_here.padded;
        const RowNumbers p = rows_here.part(w.p);
        RowNumbers weighted, apart;
        weighted.first(padded) =
            plan.first(padded) * (w.slope * log_density.first(padded) + p.first(padded) + (w.constant + w.q[j]));
        for (Index o = 0; o < forces.cols(); ++o) {
          apart.first(padded) = columns_.points()(j, o) - rows_here.coordinates[at(o)].first(padded);
          const RowNumbers &weight = weighted, &distance = apart;
          forces(j, o) += 2 * dot(weight.first(padded), distance.first(padded));
        }
      });
  return forces;
}

/// The largest of the numbers it is shown.
class Strongest {
 public:
  explicit Strongest(Index most) : most_(at(most)) {}

  void see(Index partner, double mass) {
    if (!(mass > least_)) return;
    seen_.emplace_back(mass, partner);
    if (seen_.size() == 4 * most_) keep();
  }
  [[nodiscard]] const std::vector<std::pair<double, Index>>& found() {
    keep();
    return seen_;
  }

 private:
  void keep() {
    if (seen_.size() <= most_) return;
    std::nth_element(seen_.begin(), seen_.begin() + static_cast<std::ptrdiff_t>(most_ - 1), seen_.end(),
                     std::greater<>());
    seen_.resize(most_);
    least_ = seen_.back().first;
  }

  std::size_t most_;
  double least_ = 0;
  std::vector<std::pair<double, Index>> seen_;
};

std::vector<CloudKernel::Entry> CloudKernel::strongest(const Vector& u, const Vector& v, Index most) const {
  std::vector<Strongest> of_rows(at(rows()), Strongest(most)), of_columns(at(cols()), Strongest(most));
  const Densities densities{*this, u, v};
  densities.by_row(
      [&](const RowPanel& rows_here) {
        return
            [&, first = rows_here.first, count = rows_here.count](Index j, const RowNumbers&, const RowNumbers& plan) {
              for (Index i = 0; i < count; ++i) of_rows[at(first + i)].see(j, plan.numbers[at(i)]);
            };
      },
      [](const RowPanel&, const auto&) {});
  densities.by_column([&](const RowPanel& rows_here, Index j, const RowNumbers&, const RowNumbers& plan) {
    for (Index i = 0; i < rows_here.count; ++i) of_columns[at(j)].see(rows_here.first + i, plan.numbers[at(i)]);
  });
  std::vector<Entry> entries;
  for (Index i = 0; i < rows(); ++i)
    for (const auto& [mass, j] : of_rows[at(i)].found()) entries.push_back({i, j, mass});
  for (Index j = 0; j < cols(); ++j)
    for (const auto& [mass, i] : of_columns[at(j)].found()) entries.push_back({i, j, mass});
  std::sort(entries.begin(), entries.end(),
            [](const Entry& a, const Entry& b) { return std::pair(a.row, a.column) < std::pair(b.row, b.column); });
  entries.erase(std::unique(entries.begin(), entries.end(),
                            [](const Entry& a, const Entry& b) { return a.row == b.row && a.column == b.column; }),
                entries.end());
  return entries;
}

}  // namespace unshuffle::transport
