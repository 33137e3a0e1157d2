#include "unshuffle/transport/sparse_plan.hpp"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <cstdint>

#include "unshuffle/core/error.hpp"

namespace unshuffle::transport {
namespace {

/// The sign, the exponent and eight bits of the mantissa: classes in ascending order of the positive numbers in them.
constexpr int bits_of_class = 20;
std::size_t class_of(double mass) { return std::bit_cast<std::uint64_t>(mass) >> (64U - bits_of_class); }

}  // namespace

SparsePlan sparse(const MatrixRef& plan, double left_out) {
  if (!(left_out >= 0 && left_out < 1))
    throw InvalidInput(fmt::format("left_out = {} must be a share of the mass, at least 0 and below 1", left_out));
  std::vector<double> mass_of_class(std::size_t{1} << bits_of_class, 0.0);
  for (Index j = 0; j < plan.cols(); ++j)
    for (Index i = 0; i < plan.rows(); ++i) {
      const double mass = plan(i, j);
      if (!(mass >= 0) || std::isinf(mass))
        throw InvalidInput(
            fmt::format("plan: row {}, column {} holds {}; a plan has finite entries of at least 0", i, j, mass));
      if (mass > 0) mass_of_class[class_of(mass)] += mass;
    }
  double total = 0;
  for (const double mass : mass_of_class) total += mass;
  SparsePlan made;
  std::size_t least = 0;
  while (least + 1 < mass_of_class.size() && made.left_out + mass_of_class[least] <= left_out * total)
    made.left_out += mass_of_class[least++];
  for (Index j = 0; j < plan.cols(); ++j)
    for (Index i = 0; i < plan.rows(); ++i) {
      const double mass = plan(i, j);
      if (!(mass > 0) || class_of(mass) < least) continue;
      made.rows.push_back(i);
      made.columns.push_back(j);
      made.mass.push_back(mass);
    }
  return made;
}

}  // namespace unshuffle::transport
