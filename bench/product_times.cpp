// What a multiplication and addition takes in the products that the dense solver chooses among, relative to one inside
// a matrix product: the constants of src/transport/schur_products.cpp. One thread. Usage: bench_product_times
#include <fmt/format.h>
#include <omp.h>

#include <Eigen/SparseCore>
#include <algorithm>
#include <ctime>
#include <random>
#include <vector>

#include "transport/dense_products.hpp"

namespace {

using unshuffle::Index;
using unshuffle::Matrix;
using unshuffle::Vector;
using unshuffle::transport::dense_times;
using unshuffle::transport::dense_transposed_times;

/// Processor time of the fastest of several runs, in seconds.
template <class Work>
double seconds(const Work& work) {
  double least = 1e9;
  for (int run = 0; run < 7; ++run) {
    const std::clock_t begin = std::clock();
    work();
    least = std::min(least, double(std::clock() - begin) / CLOCKS_PER_SEC);
  }
  return least;
}

struct Times {
  double matrix, vector, list, scattered;  ///< Seconds per multiplication and addition.
};

Times measured(Index n, double share) {
  const Matrix k = Matrix::Random(n, n).cwiseAbs();
  Vector x = Vector::Random(n);
  Matrix square(n, n);
  const double entries = double(n) * double(n);
  Times times{};
  times.matrix = seconds([&] { square.noalias() = k.transpose() * k; }) / (entries * double(n));
  times.vector = seconds([&] {
                   for (int run = 0; run < 10; ++run) x = dense_transposed_times(k, dense_times(k, x)).normalized();
                 }) /
                 (20 * entries);

  std::mt19937_64 draw(1);
  std::vector<Eigen::Triplet<double>> kept;
  std::vector<std::vector<std::pair<Index, double>>> rows(static_cast<std::size_t>(n));
  for (Index j = 0; j < n; ++j)
    for (Index i = 0; i < n; ++i)
      if (std::uniform_real_distribution(0.0, 1.0)(draw) < share) {
        kept.emplace_back(static_cast<int>(i), static_cast<int>(j), k(i, j));
        rows[static_cast<std::size_t>(i)].emplace_back(j, k(i, j));
      }
  Eigen::SparseMatrix<double> list(n, n);
  list.setFromTriplets(kept.begin(), kept.end());
  times.list = seconds([&] {
                 for (int run = 0; run < 10; ++run) x = (list.transpose() * Vector(list * x)).normalized();
               }) /
               (20 * double(kept.size()));
  double products = 0;
  times.scattered = seconds([&] {
    products = 0;
    for (const auto& row : rows) {
      for (std::size_t a = 0; a < row.size(); ++a) {
        double* column = square.col(row[a].first).data();
        for (std::size_t b = a; b < row.size(); ++b) column[row[b].first] -= row[a].second * row[b].second;
      }
      products += double(row.size() * (row.size() + 1)) / 2;
    }
  });
  times.scattered /= products;
  return times;
}

}  // namespace

int main() {
  omp_set_num_threads(1);
  fmt::print(
      "|    n | share kept | matrix product, ns | vector product | list | scattered |\n|---|---|---|---|---|---|\n");
  for (const Index n : {300, 1000, 2000})
    for (const double share : {0.02, 0.1}) {
      const Times t = measured(n, share);
      fmt::print("| {} | {} | {:.3f} | {:.1f} | {:.1f} | {:.1f} |\n", n, share, 1e9 * t.matrix, t.vector / t.matrix,
                 t.list / t.matrix, t.scattered / t.matrix);
    }
}
