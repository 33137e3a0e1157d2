#include "large/passes.hpp"

#include <cmath>

#include "core/gram.hpp"
#include "core/in_parallel.hpp"
#include "unshuffle/core/error.hpp"

namespace unshuffle::large {

using transport::CellGrid;
using transport::CompressedMeasure;
using transport::CompressionRule;
using transport::Range;

namespace {

/// Pieces are processed in this many lanes, whose results are added in order, so that sums do not depend on the number
/// of threads.
constexpr std::size_t most_lanes = 16;

void widen(Range& range, bool& empty, const Range& more) {
  range = empty ? more : Range{std::min(range.low, more.low), std::max(range.high, more.high)};
  empty = false;
}

void append(const Vector& more, std::vector<double>& values) { values.insert(values.end(), more.begin(), more.end()); }

const AdditiveModel& additive(const Model& bound) {
  if (bound.additive() == nullptr)
    throw InvalidInput("tables in pieces need a model that is additive in the two tables; " + bound.name() + " is not");
  return *bound.additive();
}

}  // namespace

CompressedMeasure Atoms::compressed(const transport::CompressionRule& rule) const {
  const auto vector = [](const std::vector<double>& values) {
    return Eigen::Map<const Vector>(values.data(), static_cast<Index>(values.size()));
  };
  return CompressedMeasure(vector(position), vector(weight), rule);
}

Passes::Passes(const LargeRows& rows, const Model& bound) : rows_(rows), bound_(bound), sum_(additive(bound)) {}

Passes::Piece Passes::piece(Side side, std::size_t k, const Vector& w, Matrix& buffer) const {
  const Matrix& stored = rows_.of(side).at(k, buffer);
  if (side == Side::feature) {
    Piece made{bound_.basis(side, stored), {}};
    made.position = sum_.part(side, made.rows, w).col(0);
    return made;
  }
  Piece made{{}, stored.col(0)};
  if (stored.cols() > 1) {
    made.rows = bound_.basis(side, stored.rightCols(stored.cols() - 1));
    made.position -= sum_.part(side, made.rows, w).col(0);
  }
  return made;
}

std::size_t Passes::lanes(Side side) const { return std::min(most_lanes, rows_.of(side).count()); }

template <class Body>
void Passes::for_each_piece(Side side, const Vector& w, const Body& body) const {
  const std::size_t pieces = rows_.of(side).count(), count = lanes(side);
  in_parallel(count, [&](std::size_t lane) {
    Matrix buffer;
    for (std::size_t k = pieces * lane / count; k < pieces * (lane + 1) / count; ++k)
      if (rows_.of(side).rows(k) > 0) body(lane, piece(side, k, w, buffer));
  });
}

// Every piece is compressed separately, then the results of the pieces of a lane. The nodes of different pieces do not
// share boxes; the integrands are smooth over the boxes of either.
Atoms Passes::compress(Side side, const Vector& w, const CompressionRule& rule) const {
  std::vector<Atoms> found(lanes(side));
  const double total = rows_.rows(side);
  for_each_piece(side, w, [&](std::size_t lane, const Piece& here) {
    Atoms& own = found[lane];
    bool empty = own.position.empty();
    widen(own.range, empty, {here.position.minCoeff(), here.position.maxCoeff()});
    const CompressedMeasure measure(here.position, Vector(), rule);
    append(measure.nodes().position, own.position);
    append(measure.nodes().weight * (static_cast<double>(here.position.size()) / total), own.weight);
  });
  Atoms all;
  bool empty = true;
  std::vector<transport::LineMeasure> merged(found.size());
  in_parallel(found.size(), [&](std::size_t lane) {
    if (found[lane].position.empty()) return;
    merged[lane] = found[lane].compressed(rule).nodes();
  });
  for (std::size_t lane = 0; lane < found.size(); ++lane) {
    if (found[lane].position.empty()) continue;
    widen(all.range, empty, found[lane].range);
    append(merged[lane].position, all.position);
    append(merged[lane].weight, all.weight);
  }
  return all;
}

Derivatives Passes::differentiate(Side side, const Vector& w, const CellGrid& grid, const Functions& functions) const {
  const Index p = w.size();
  const bool with_hessian = functions.slope.size() > 0;
  const double sign = side == Side::response ? -1 : 1, total = rows_.rows(side);  // t = y - g(x; w)
  const Derivatives nothing{Vector::Zero(p), with_hessian ? Matrix::Zero(p, p) : Matrix(),
                            with_hessian ? Matrix::Zero(grid.grid().size(), p) : Matrix()};
  std::vector<Derivatives> found(lanes(side), nothing);
  for_each_piece(side, w, [&](std::size_t lane, const Piece& here) {
    Derivatives& own = found[lane];
    const Vector cotangent = sign / total * grid.interpolate(functions.gradient, here.position);
    sum_.pull_back_part(side, here.rows, w, cotangent, own.gradient);
    if (!with_hessian) return;
    const Matrix jacobian = sign / total * sum_.jacobian_part(side, here.rows, w);
    own.hessian += weighted_gram(jacobian, total * grid.interpolate(functions.slope, here.position));
    sum_.add_curvature_part(side, here.rows, w, cotangent, own.hessian);
    grid.add_moments(here.position, jacobian, own.moments);
  });
  Derivatives sum = nothing;
  for (const Derivatives& own : found) {
    sum.gradient += own.gradient;
    sum.hessian += own.hessian;
    sum.moments += own.moments;
  }
  return sum;
}

double Passes::matched(Side side, const Vector& w, const CellGrid& grid, const Matrix& log_ratio) const {
  Vector found = Vector::Zero(static_cast<Index>(lanes(side)));
  for_each_piece(side, w, [&](std::size_t lane, const Piece& here) {
    found[static_cast<Index>(lane)] += grid.interpolate(log_ratio, here.position).array().min(0).exp().sum();
  });
  return found.sum() / rows_.rows(side);
}

Vector Passes::partner_sums(Side side, const Vector& w, const CellGrid& grid, const Matrix& potential,
                            const Targets& targets) const {
  std::vector<Vector> found(lanes(side), Vector::Zero(targets.position.size()));
  for_each_piece(side, w, [&](std::size_t lane, const Piece& here) {
    const Vector v = grid.interpolate(potential, here.position);
    for (Index k = 0; k < targets.position.size(); ++k)
      found[lane][k] +=
          (v.array() - (targets.position[k] - here.position.array()).square() / targets.epsilon).exp().sum();
  });
  Vector sum = Vector::Zero(targets.position.size());
  for (const Vector& own : found) sum += own;
  return sum / rows_.rows(side);
}

MixtureSums Passes::mixture_sums(const Vector& w, const MixtureState& state) const {
  const std::size_t pieces = rows_.features->count(), count = lanes(Side::feature);
  std::vector<MixtureSums> found(count, MixtureSums(w.size()));
  const auto sums_of = [&](const Piece& left, const Piece& right) {
    const Index n = left.position.size();
    const Vector log_other = Vector::NullaryExpr(n, [&](Index i) { return state.other.log_at(left.position[i]); });
    const Vector weights = Vector::Ones(n);
    const Matrix residual = left.position - right.position;
    const LinkedResiduals rows{residual, log_other, weights};
    Matrix jacobian = sum_.jacobian_part(Side::feature, right.rows, w);
    if (left.rows.size() > 0) jacobian += sum_.jacobian_part(Side::response, left.rows, w);
    return unshuffle::mixture_sums(rows, jacobian, expect_links(rows, state), state);
  };
  in_parallel(count, [&](std::size_t lane) {
    Matrix buffer;
    for (std::size_t k = pieces * lane / count; k < pieces * (lane + 1) / count; ++k) {
      if (rows_.features->rows(k) == 0) continue;
      const Piece left = piece(Side::response, k, w, buffer);
      found[lane] += sums_of(left, piece(Side::feature, k, w, buffer));
    }
  });
  MixtureSums sum(w.size());
  for (const MixtureSums& own : found) sum += own;
  return sum;
}

}  // namespace unshuffle::large
