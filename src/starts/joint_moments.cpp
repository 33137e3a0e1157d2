#include "starts/joint_moments.hpp"

#include <Eigen/Eigenvalues>
#include <Eigen/SVD>
#include <algorithm>
#include <cmath>

// Moments survive the loss of links. With y = Bᵀz + c and little noise, the first two determine c, and B up to a
// rotation: in coordinates in which each table has covariance one, y = M z with orthonormal rows M. The rotation is
// determined by the third and fourth moments, tensors S and T (docs/mathematics.md §11.3),
//   S^y_abc = Σ M_ai M_bj M_ck S^z_ijk,    T^y_abcd likewise.
// M minimises |S^y - S(M)|²/3! + |T^y - T(M)|²/4!: the weights are the variances that these moments have in Gaussian
// samples, those of the coefficients of an Edgeworth series. A few outlying rows would dominate such moments, so if M
// is square, and preserves lengths, rows are shortened to a maximum length. There are several minima, and rows without
// partners shift the true one slightly, so descents begin at many rotations and the best distinct ends are starts of
// the fit, which decides.
namespace unshuffle {

namespace {

constexpr Index most_features = 6;  // a tensor of fourth moments has the fourth power of it
constexpr Index fewest_rows = 20;
constexpr int axis_tries = 100;
constexpr int most_axis_steps = 100;
constexpr double same_map = 0.2;  // distance of rotations below which they are one

/// A table in coordinates of mean zero and covariance one.
struct Whitened {
  Eigen::RowVectorXd mean;
  Matrix axes;  ///< Columns, widest first.
  Vector spread;
  Matrix rows;
};

/// The `count` widest axes; fewer where the others do not vary.
Whitened whitened(const Matrix& table, Index count) {
  constexpr double nothing = 1e-8;  // spread relative to the widest axis
  Whitened result;
  result.mean = table.colwise().mean();
  const Matrix centred = table.rowwise() - result.mean;
  const Eigen::SelfAdjointEigenSolver<Matrix> solver(centred.transpose() * centred / double(table.rows()));
  const Vector spread = solver.eigenvalues().reverse().cwiseMax(0).cwiseSqrt();
  count = std::min<Index>(count, (spread.array() > nothing * spread(0)).count());
  result.spread = spread.head(count);
  result.axes = solver.eigenvectors().rowwise().reverse().leftCols(count);
  result.rows = centred * result.axes * result.spread.cwiseInverse().asDiagonal();
  return result;
}

/// E[v_i v_j ...] of so many factors, the first index fastest.
Vector moments(const Matrix& rows, int order) {
  const Index width = rows.cols();
  Vector sum = Vector::Zero(std::lround(std::pow(double(width), order)));
  for (Index row = 0; row < rows.rows(); ++row) {
    Matrix product = Matrix::Ones(1, 1);
    for (int factor = 0; factor < order; ++factor)
      product = Matrix(product.reshaped() * rows.row(row)).reshaped(product.size() * width, 1);
    sum += product.reshaped();
  }
  return sum / double(rows.rows());
}

/// A tensor of moments of either side, and how far apart a map leaves them.
struct MomentsOfBoth {
  int order;
  Vector y, z;

  /// Adds |y - z(M)|²/order! to the value, and its derivative in M to the gradient.
  double add(const Matrix& m, Matrix& gradient) const {
    // Each product maps the leading index and, transposed, makes it the last. With all but one mapped, that one leads.
    Matrix part = z.reshaped(m.cols(), z.size() / m.cols());
    for (int index = 1; index < order; ++index) {
      const Matrix mapped = (m * part).transpose();
      part = mapped.reshaped(m.cols(), mapped.size() / m.cols());
    }
    const Matrix apart = m * part - y.reshaped(m.rows(), y.size() / m.rows());
    const double weight = 1 / std::tgamma(order + 1);
    gradient += 2 * order * weight * apart * part.transpose();
    return weight * apart.squaredNorm();
  }
};

Matrix nearest_orthonormal(const Matrix& m) {
  const Eigen::JacobiSVD<Matrix> svd(m, Eigen::ComputeThinU | Eigen::ComputeThinV);
  return svd.matrixU() * svd.matrixV().transpose();
}

struct Rotation {
  Matrix map;
  double misfit;
};

/// Gradient steps along the orthonormal maps, longer while they succeed.
Rotation descended(const std::vector<MomentsOfBoth>& both, Matrix m) {
  constexpr double flat = 1e-6;
  const auto misfit = [&](const Matrix& at, Matrix& gradient) {
    gradient.setZero(at.rows(), at.cols());
    double sum = 0;
    for (const MomentsOfBoth& one : both) sum += one.add(at, gradient);
    return sum;
  };
  Matrix gradient, next_gradient;
  double here = misfit(m, gradient);
  double step = 0.1;
  for (int taken = 0; taken < most_axis_steps && step > flat; ++taken) {
    const Matrix inward = gradient * m.transpose();
    const Matrix along = gradient - 0.5 * (inward + inward.transpose()) * m;
    if (along.norm() < flat) break;
    const Matrix next = nearest_orthonormal(m - step * along);
    const double there = misfit(next, next_gradient);
    if (there < here) {
      m = next;
      here = there;
      gradient = next_gradient;
      step *= 1.5;
    } else {
      step *= 0.4;
    }
  }
  return {m, here};
}

std::vector<Rotation> distinct_rotations(const std::vector<MomentsOfBoth>& both, Index rows, Index columns,
                                         std::size_t limit, RandomStream& random) {
  std::vector<Rotation> found;
  for (int k = 0; k < axis_tries; ++k) {
    const Matrix any = Matrix::NullaryExpr(rows, columns, [&] { return random.normal(); });
    found.push_back(descended(both, nearest_orthonormal(any)));
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const Rotation& a, const Rotation& b) { return a.misfit < b.misfit; });
  std::vector<Rotation> distinct;
  for (Rotation& one : found) {
    const bool known = std::any_of(distinct.begin(), distinct.end(),
                                   [&](const Rotation& other) { return (one.map - other.map).norm() < same_map; });
    if (!known && distinct.size() < limit) distinct.push_back(std::move(one));
  }
  return distinct;
}

/// Rows no longer than twice the length they have on average.
Matrix drawn_in(Matrix rows) {
  const double longest = 2 * std::sqrt(double(rows.cols()));
  for (Index i = 0; i < rows.rows(); ++i) rows.row(i) *= std::min(1.0, longest / rows.row(i).norm());
  return rows;
}

}  // namespace

std::vector<AffineMap> maps_of_joint_moments(const Matrix& y, const Matrix& z, std::size_t limit, RandomStream random) {
  if (y.cols() < 2 || z.cols() > most_features || std::min(y.rows(), z.rows()) < fewest_rows) return {};
  const Whitened features = whitened(z, z.cols());
  const Whitened responses = whitened(y, features.spread.size());
  if (responses.spread.size() < 2) return {};  // as many as the features have, at most
  const bool square = responses.spread.size() == features.spread.size();
  const Matrix from = square ? drawn_in(features.rows) : features.rows;
  const Matrix to = square ? drawn_in(responses.rows) : responses.rows;
  std::vector<MomentsOfBoth> both;
  for (const int order : {3, 4}) both.push_back({order, moments(to, order), moments(from, order)});
  std::vector<AffineMap> maps;
  for (const Rotation& one : distinct_rotations(both, to.cols(), from.cols(), limit, random)) {
    AffineMap map;
    map.linear = features.axes * features.spread.cwiseInverse().asDiagonal() * one.map.transpose() *
                 responses.spread.asDiagonal() * responses.axes.transpose();
    map.offset = responses.mean - features.mean * map.linear;
    map.misfit = one.misfit;
    maps.push_back(std::move(map));
  }
  return maps;
}

}  // namespace unshuffle
