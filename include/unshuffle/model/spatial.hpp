// Maps of the plane and of space onto themselves, y ≈ A z + b: A a rotation (rigid), a rotation and a scale
// (similarity), or any matrix (affine).
//
// A rotation of the plane is an angle. One of space is a vector along its axis, as long as its angle; both in radians.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "unshuffle/core/export.hpp"
#include "unshuffle/core/options.hpp"
#include "unshuffle/model/model.hpp"

namespace unshuffle UNSHUFFLE_EXPORT {

enum class MapKind { rigid, similarity, affine };
inline constexpr std::array map_kind_words{Word<MapKind>{"rigid", MapKind::rigid},
                                           Word<MapKind>{"similarity", MapKind::similarity},
                                           Word<MapKind>{"affine", MapKind::affine}};
constexpr std::span<const Word<MapKind>> words_of(MapKind) { return map_kind_words; }

/// y = linear z + shift.
struct SpatialTransform {
  Matrix linear;
  Vector shift;

  [[nodiscard]] Matrix of(const MatrixRef& z) const { return (z * linear.transpose()).rowwise() + shift.transpose(); }
};

class SpatialMap final : public AdditiveModel {
 public:
  explicit SpatialMap(MapKind kind) : kind_(kind) {}

  [[nodiscard]] std::string name() const override;
  /// Two or three responses, as many columns of z and none of x.
  [[nodiscard]] std::unique_ptr<Model> bound_to(const Problem& problem) const override;
  /// The bound model from column names alone.
  [[nodiscard]] static std::unique_ptr<Model> restored(MapKind kind, const std::vector<std::string>& z_names,
                                                       const std::vector<std::string>& y_names);

  [[nodiscard]] Index parameters() const override { return static_cast<Index>(names_.size()); }
  [[nodiscard]] std::vector<std::string> parameter_names() const override { return names_; }
  [[nodiscard]] bool linear_in_parameters() const override { return kind_ == MapKind::affine; }

  [[nodiscard]] Matrix part(Side side, const MatrixRef& rows, const VectorRef& w) const override;
  void pull_back_part(Side side, const MatrixRef& rows, const VectorRef& w, const MatrixRef& cotangent,
                      Vector& gradient) const override;
  /// There is never one output only.
  [[nodiscard]] Matrix jacobian_part(Side side, const MatrixRef& rows, const VectorRef& w) const override;

  [[nodiscard]] MapKind kind() const { return kind_; }
  [[nodiscard]] Index dimension() const { return dimension_; }
  [[nodiscard]] SpatialTransform transform(const VectorRef& w) const;
  /// `transform` must be of this kind.
  [[nodiscard]] Vector parameters_of(const SpatialTransform& transform) const;
  /// Least squares on rows that are linked, with row weights; the nearest proper rotation where A is one.
  [[nodiscard]] SpatialTransform fitted(const MatrixRef& z, const MatrixRef& y, const VectorRef& weights) const;

 private:
  [[nodiscard]] Index angles() const { return dimension_ == 2 ? 1 : 3; }
  [[nodiscard]] bool scales() const { return kind_ == MapKind::similarity; }

  MapKind kind_;
  Index dimension_ = 0;
  std::vector<std::string> names_;
};

/// The rotation by an angle, or about a vector.
[[nodiscard]] Matrix rotation(const VectorRef& angles);
/// Its derivatives in each angle.
[[nodiscard]] std::vector<Matrix> rotation_derivatives(const VectorRef& angles);
/// The angle between -π and π, or the vector of at most that length, of a proper rotation.
[[nodiscard]] Vector angles_of(const MatrixRef& rotation);

}  // namespace unshuffle
