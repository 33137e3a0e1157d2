// One step from rows in order to rematched rows (Zhang & Li 2023).
//
// With rows linked wrongly at random, least squares finds attenuated coefficients, B̃ ≈ (1-α) B, because the wrong links
// only add noise. Matching by squared distance would suffer from the attenuation; the largest inner product
//   Π = argmax Σ_i <y_i, B̃ᵀ z_Π(i)> = argmax <Π, Y B̃ᵀ Zᵀ>
// does not depend on the scale of B̃. With B̃ ∝ ZᵀY, least squares if the columns of Z are uncorrelated, this aligns
// Y Yᵀ with Z Zᵀ. It recovers links when several outputs make rows distinct: the noise averages over outputs.
#include "estimators/unlinked.hpp"
#include "starts/starts.hpp"
#include "unshuffle/core/error.hpp"
#include "unshuffle/links/assignment.hpp"

namespace unshuffle {

namespace {

Matrix centred(const Matrix& rows) { return rows.rowwise() - rows.colwise().mean(); }

std::vector<Index> most_aligned(const Matrix& t, const Matrix& s) {
  if (t.cols() == 1 && t.rows() == s.rows()) return assign_on_line(t.col(0), s.col(0));
  return assign(-(t * s.transpose())).column_of_row;
}

}  // namespace

Estimate estimate(const OneStep&, const Input& input) {
  require_rows_in_order(input, "one-step");
  const AdditiveModel* model = input.bound.additive();
  if (model == nullptr) throw InvalidInput("one-step needs a model that is a sum of a part in x and a part in z");
  const UnlinkedRows rows(input.problem, input.bound);
  const Links in_order = links_in_order(input.problem);
  const Vector shrunk =
      best_least_squares(input.problem, input.bound, rows.linked(in_order), rows.weights(in_order), input.run.seed)
          .parameters;
  Matrix t = input.problem.y;
  if (input.problem.x.cols() > 0) t -= model->part(Side::response, rows.tables().x, shrunk);
  const Matrix s = model->part(Side::feature, rows.tables().z, shrunk);
  Links links;
  for (const Block& block : rows.blocks()) {
    const std::vector<Index> partner =
        most_aligned(centred(t(block.response_rows, Eigen::all)), centred(s(block.feature_rows, Eigen::all)));
    for (std::size_t k = 0; k < partner.size(); ++k) {
      if (partner[k] < 0) continue;
      append(links, {{block.response_rows[k]}, {block.feature_rows[std::size_t(partner[k])]}});
    }
  }
  Estimate result = regression_on(input, rows, links, "rows in order");
  forget_std_errors(result);
  return result;
}

}  // namespace unshuffle
