// A solution on nodes at all points of two clouds (docs/mathematics.md §2.9): a row's potential, its adjoint and the
// force on it are functions of its position that need the other side only, and that by its nodes.
#pragma once

#include <optional>

#include "transport/cloud_stage.hpp"
#include "unshuffle/transport/solver.hpp"

namespace unshuffle::transport {

class CloudExtension {
 public:
  struct Clouds {
    const CloudSide &rows, &columns;
    bool rows_are_nodes, columns_are_nodes;  ///< They are the clouds of the stage.
  };

  /// Stage and clouds must outlive the extension.
  CloudExtension(CloudStage& stage, const Clouds& clouds, const MarginalPolicies& policies);

  [[nodiscard]] const PotentialsOfClouds& potentials() const { return potentials_; }
  [[nodiscard]] double transport_cost() const;
  /// Σ e∘Γ, e = -log(Γ/(μ⊗ν)).
  [[nodiscard]] double entropy() const { return row_entropy_sums_.sum(); }

  /// Derivative of the objective in every point.
  [[nodiscard]] Matrix row_forces(Objective objective);
  [[nodiscard]] Matrix column_forces(Objective objective);
  [[nodiscard]] std::vector<CloudKernel::Entry> strongest(Index most) const;

  /// Largest relative error of a sum over nodes in place of points, in a sample of rows and columns.
  [[nodiscard]] double sampled_error(const std::vector<Index>& row_from, const std::vector<Index>& column_from) const;

 private:
  /// The adjoint at the nodes, with what multiplies the borders of the policies' curvatures.
  struct Adjoint {
    Vector rows, columns, row_border, column_border;
  };
  /// A kernel between all points of one side, or of both, and its potentials relative to its base.
  struct Part {
    std::unique_ptr<CloudKernel> own;
    const CloudKernel* kernel;
    Vector u, v;
  };
  [[nodiscard]] Part part(bool all_rows, bool all_columns) const;
  [[nodiscard]] const Adjoint& adjoint();

  CloudStage& stage_;
  Clouds clouds_;
  SideTerms rows_, columns_;
  PotentialsOfClouds potentials_;
  Vector row_entropy_sums_;  // at the nodes
  std::optional<Adjoint> adjoint_;
};

}  // namespace unshuffle::transport
