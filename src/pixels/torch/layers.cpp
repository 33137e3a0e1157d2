#include "pixels/torch/layers.hpp"

#include <torch/csrc/autograd/custom_function.h>

#include "tracking/box_cost.hpp"
#include "tracking/transport_loss.hpp"

namespace unshuffle::pixels {
namespace {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::tensor_list;
using RowMajor = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

Matrix to_matrix(const Tensor& tensor) {
  const Tensor plain = tensor.detach().to(torch::kFloat64).contiguous();
  return Eigen::Map<const RowMajor>(plain.data_ptr<double>(), plain.size(0), plain.size(1));
}

Tensor to_tensor(const Matrix& matrix, const Tensor& like) {
  const RowMajor rows = matrix;
  return torch::from_blob(const_cast<double*>(rows.data()), {rows.rows(), rows.cols()}, torch::kFloat64)
      .clone()
      .to(like.options());
}

tracking::Box box_of(const Matrix& boxes, Index at) { return {boxes(at, 0), boxes(at, 1), boxes(at, 2), boxes(at, 3)}; }

struct BoxCosts : torch::autograd::Function<BoxCosts> {
  static Tensor forward(AutogradContext* context, const Tensor& predicted, const Tensor& detected, double diagonal) {
    context->save_for_backward({predicted, detected});
    context->saved_data["diagonal"] = diagonal;
    const Matrix columns = to_matrix(predicted);
    const Matrix rows = to_matrix(detected);
    const Matrix cost = Matrix::NullaryExpr(rows.rows(), columns.rows(), [&](Index i, Index j) {
      return tracking::box_cost(box_of(columns, j), box_of(rows, i), diagonal);
    });
    return to_tensor(cost, predicted);
  }

  static tensor_list backward(AutogradContext* context, const tensor_list& upstream) {
    const auto saved = context->get_saved_variables();
    const double diagonal = context->saved_data["diagonal"].toDouble();
    const Matrix columns = to_matrix(saved[0]);
    const Matrix rows = to_matrix(saved[1]);
    const Matrix weights = to_matrix(upstream[0]);
    Matrix slope = Matrix::Zero(columns.rows(), 4);
    for (Index j = 0; j < columns.rows(); ++j) {
      for (Index i = 0; i < rows.rows(); ++i) {
        slope.row(j) +=
            weights(i, j) * tracking::box_cost_slope(box_of(columns, j), box_of(rows, i), diagonal).transpose();
      }
    }
    return {to_tensor(slope, saved[0]), Tensor(), Tensor()};
  }
};

struct TransportCost : torch::autograd::Function<TransportCost> {
  static Tensor forward(AutogradContext* context, const Tensor& cost, const transport::SolverOptions& options) {
    const tracking::TransportLoss loss = tracking::transport_loss(to_matrix(cost), options);
    context->save_for_backward({to_tensor(loss.weights, cost)});
    return torch::scalar_tensor(loss.value, cost.options());
  }

  static tensor_list backward(AutogradContext* context, const tensor_list& upstream) {
    return {upstream[0] * context->get_saved_variables()[0], Tensor()};
  }
};

}  // namespace

Tensor box_costs(const Tensor& predicted, const Tensor& detected, double diagonal) {
  return BoxCosts::apply(predicted, detected, diagonal);
}

Tensor transport_cost(const Tensor& cost, const transport::SolverOptions& options) {
  return TransportCost::apply(cost, options);
}

}  // namespace unshuffle::pixels
