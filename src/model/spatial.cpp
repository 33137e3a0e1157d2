#include "unshuffle/model/spatial.hpp"

#include <fmt/format.h>

#include <Eigen/Cholesky>
#include <Eigen/Geometry>
#include <Eigen/SVD>
#include <cmath>

#include "unshuffle/core/error.hpp"
#include "unshuffle/model/linear.hpp"

namespace unshuffle {

namespace {

Eigen::Matrix3d cross(const Eigen::Vector3d& a) {
  Eigen::Matrix3d made;
  made << 0, -a[2], a[1], a[2], 0, -a[0], -a[1], a[0], 0;
  return made;
}

/// sin(θ)/θ, (1 - cos θ)/θ², and each one's derivative by θ over θ.
struct RodriguesTerms {
  double sine, cosine, sine_slope, cosine_slope;
};
RodriguesTerms rodrigues_terms(double angle) {
  const double square = angle * angle;
  if (square < 1e-4)
    return {1 - square / 6 + square * square / 120, 0.5 - square / 24 + square * square / 720,
            -1.0 / 3 + square / 30 - square * square / 840, -1.0 / 12 + square / 180 - square * square / 6720};
  const double sine = std::sin(angle) / angle, half = std::sin(0.5 * angle), cosine = 2 * half * half / square;
  return {sine, cosine, (std::cos(angle) - sine) / square, (sine - 2 * cosine) / square};
}

}  // namespace

// R = I + s [a]× + c [a]×², s = sin θ/θ, c = (1 - cos θ)/θ², θ = |a| (Rodrigues).
Matrix rotation(const VectorRef& angles) {
  if (angles.size() == 1) return Eigen::Rotation2Dd(angles[0]).toRotationMatrix();
  const Eigen::Vector3d a = angles;
  const RodriguesTerms of = rodrigues_terms(a.norm());
  const Eigen::Matrix3d by = cross(a);
  return Eigen::Matrix3d::Identity() + of.sine * by + of.cosine * by * by;
}

std::vector<Matrix> rotation_derivatives(const VectorRef& angles) {
  if (angles.size() == 1) {
    constexpr double right_angle = 1.5707963267948966;
    return {Eigen::Rotation2Dd(angles[0] + right_angle).toRotationMatrix()};
  }
  const Eigen::Vector3d a = angles;
  const RodriguesTerms of = rodrigues_terms(a.norm());
  const Eigen::Matrix3d by = cross(a);
  std::vector<Matrix> made;
  for (Index k = 0; k < 3; ++k) {
    const Eigen::Matrix3d unit = cross(Eigen::Vector3d::Unit(k));
    made.emplace_back(of.sine * unit + of.cosine * (unit * by + by * unit) +
                      a[k] * (of.sine_slope * by + of.cosine_slope * by * by));
  }
  return made;
}

Vector angles_of(const MatrixRef& rotation) {
  if (rotation.rows() == 2) return Vector::Constant(1, std::atan2(rotation(1, 0), rotation(0, 0)));
  const Eigen::AngleAxisd turn{Eigen::Matrix3d(rotation)};
  return turn.angle() * turn.axis();
}

std::string SpatialMap::name() const { return name_of(kind_); }

std::unique_ptr<Model> SpatialMap::bound_to(const Problem& problem) const {
  const Index outputs = problem.outputs();
  if ((outputs != 2 && outputs != 3) || problem.z.cols() != outputs)
    throw InvalidInput(
        fmt::format("model {} maps points of the plane or of space: it takes two or three responses and as many "
                    "columns of features; {} and {} were given",
                    name(), outputs, problem.z.cols()));
  if (problem.x.cols() > 0)
    throw InvalidInput(fmt::format("model {} has no part for features in the response table; {} columns were given",
                                   name(), problem.x.cols()));
  return restored(kind_, names_or_default(problem.z_names, problem.z.cols(), "z"),
                  names_or_default(problem.y_names, outputs, "y"));
}

std::unique_ptr<Model> SpatialMap::restored(MapKind kind, const std::vector<std::string>& z_names,
                                            const std::vector<std::string>& y_names) {
  auto model = std::make_unique<SpatialMap>(kind);
  model->dimension_ = static_cast<Index>(y_names.size());
  if (kind == MapKind::affine) {
    for (const std::string& output : y_names) {
      model->names_.push_back(output + ":intercept");
      for (const std::string& column : z_names) model->names_.push_back(fmt::format("{}:{}", output, column));
    }
    return model;
  }
  if (model->dimension_ == 2) {
    model->names_.emplace_back("angle");
  } else {
    for (const std::string& column : z_names) model->names_.push_back("turn:" + column);
  }
  if (model->scales()) model->names_.emplace_back("scale");
  for (const std::string& output : y_names) model->names_.push_back(output + ":shift");
  return model;
}

SpatialTransform SpatialMap::transform(const VectorRef& w) const {
  if (kind_ == MapKind::affine) {
    const Eigen::Map<const Matrix> by_output(w.data(), dimension_ + 1, dimension_);
    return {by_output.bottomRows(dimension_).transpose(), by_output.row(0).transpose()};
  }
  const double scale = scales() ? w[angles()] : 1;
  return {scale * rotation(w.head(angles())), w.tail(dimension_)};
}

Vector SpatialMap::parameters_of(const SpatialTransform& transform) const {
  Vector w(parameters());
  if (kind_ == MapKind::affine) {
    Eigen::Map<Matrix> by_output(w.data(), dimension_ + 1, dimension_);
    by_output.row(0) = transform.shift.transpose();
    by_output.bottomRows(dimension_) = transform.linear.transpose();
    return w;
  }
  const double scale = scales() ? transform.linear.norm() / std::sqrt(double(dimension_)) : 1;
  w.head(angles()) = angles_of(transform.linear / scale);
  if (scales()) w[angles()] = scale;
  w.tail(dimension_) = transform.shift;
  return w;
}

Matrix SpatialMap::part(Side side, const MatrixRef& rows, const VectorRef& w) const {
  if (side == Side::response) return Matrix::Zero(rows.rows(), dimension_);
  return transform(w).of(rows);
}

void SpatialMap::pull_back_part(Side side, const MatrixRef& rows, const VectorRef& w, const MatrixRef& cotangent,
                                Vector& gradient) const {
  if (side == Side::response) return;
  const Matrix on_linear = cotangent.transpose() * rows;  // ∂/∂A
  const Vector on_shift = cotangent.colwise().sum().transpose();
  if (kind_ == MapKind::affine) {
    Eigen::Map<Matrix> by_output(gradient.data(), dimension_ + 1, dimension_);
    by_output.row(0) += on_shift.transpose();
    by_output.bottomRows(dimension_) += on_linear.transpose();
    return;
  }
  const double scale = scales() ? w[angles()] : 1;
  const std::vector<Matrix> turns = rotation_derivatives(w.head(angles()));
  for (std::size_t k = 0; k < turns.size(); ++k)
    gradient[static_cast<Index>(k)] += scale * on_linear.cwiseProduct(turns[k]).sum();
  if (scales()) gradient[angles()] += on_linear.cwiseProduct(rotation(w.head(angles()))).sum();
  gradient.tail(dimension_) += on_shift;
}

Matrix SpatialMap::jacobian_part(Side, const MatrixRef&, const VectorRef&) const {
  throw InvalidInput(fmt::format("model {} has two or three outputs; one was expected", name()));
}

// Kabsch and Umeyama: with H = Σ w y zᵀ = U S Vᵀ about the means, R = U D Vᵀ, D = diag(1, …, ±1) making it proper.
SpatialTransform SpatialMap::fitted(const MatrixRef& z, const MatrixRef& y, const VectorRef& weights) const {
  const double total = weights.sum();
  const Eigen::RowVectorXd z_mean = weights.transpose() * z / total, y_mean = weights.transpose() * y / total;
  const Matrix from = z.rowwise() - z_mean, onto = y.rowwise() - y_mean;
  const Matrix h = onto.transpose() * weights.asDiagonal() * from;
  SpatialTransform made;
  if (kind_ == MapKind::affine) {
    Matrix g = from.transpose() * weights.asDiagonal() * from;
    g.diagonal().array() += 1e-12 * g.trace();
    made.linear = g.ldlt().solve(h.transpose()).transpose();
  } else {
    const Eigen::JacobiSVD<Matrix> svd(h, Eigen::ComputeFullU | Eigen::ComputeFullV);
    Vector proper = Vector::Ones(dimension_);
    if ((svd.matrixU() * svd.matrixV().transpose()).determinant() < 0) proper[dimension_ - 1] = -1;
    made.linear = svd.matrixU() * proper.asDiagonal() * svd.matrixV().transpose();
    if (scales())
      made.linear *= svd.singularValues().dot(proper) / (weights.transpose() * from.rowwise().squaredNorm()).value();
  }
  made.shift = (y_mean - z_mean * made.linear.transpose()).transpose();
  return made;
}

}  // namespace unshuffle
