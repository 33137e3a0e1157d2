// The transport layer, one cost or a batch of them.
//
// A row-major n×m array is a column-major m×n matrix: costs are passed to the solver transposed, as stored, and results
// are row-major again.
#include <fmt/format.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/variant.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>

#include "arrays.hpp"
#include "bindings.hpp"
#include "unshuffle/core/error.hpp"
#include "unshuffle/transport/solver.hpp"
#include "unshuffle/transport/sparse_plan.hpp"

namespace unshuffle::python {

namespace {

using transport::Solution;
using transport::Solver;
using transport::SolverOptions;
using WeightsIn = nb::ndarray<const double, nb::c_contig, nb::device::cpu>;

/// The numbers of an array. Those that a mask covers are none, so a mask is refused.
template <class Array>
Array array_of(nb::handle given, const char* name) {
  if (nb::hasattr(given, "mask") && bool(nb::bool_(nb::module_::import_("numpy").attr("any")(given.attr("mask"))))) {
    throw InvalidInput(
        fmt::format("{} is a masked array with masked entries, which have no value here; fill them in or "
                    "leave them out",
                    name));
  }
  Array array;
  if (!nb::try_cast(given, array)) {
    throw nb::type_error(fmt::format("{} must be an array of numbers; a {} was given", name,
                                     nb::cast<std::string>(given.type().attr("__name__")))
                             .c_str());
  }
  return array;
}

/// n×m or k×n×m.
struct Shape {
  std::size_t count = 1, rows = 0, columns = 0;
  bool batched = false;

  explicit Shape(const ArrayIn& array, const char* name) : batched(array.ndim() == 3) {
    if (array.ndim() != 2 && array.ndim() != 3) {
      throw InvalidInput(fmt::format("{} has {} dimensions; rows × columns or batch × rows × columns was expected",
                                     name, array.ndim()));
    }
    if (batched) count = array.shape(0);
    rows = array.shape(array.ndim() - 2);
    columns = array.shape(array.ndim() - 1);
  }
  Shape() = default;
  bool operator==(const Shape&) const = default;

  [[nodiscard]] ArrayOut new_matrices() const {
    return batched ? new_array({count, rows, columns}) : new_array({rows, columns});
  }
  [[nodiscard]] ArrayOut new_vectors(std::size_t length) const {
    return batched ? new_array({count, length}) : new_array({length});
  }
  /// Matrix k as stored, that is transposed.
  template <class Number>
  [[nodiscard]] auto at(Number* data, std::size_t k) const {
    using M = std::conditional_t<std::is_const_v<Number>, const Matrix, Matrix>;
    return Eigen::Map<M>(data + k * rows * columns, Index(columns), Index(rows));
  }
};

/// For every matrix of a batch, from one for each or one for all.
std::vector<Vector> to_vectors(nb::handle weights, std::size_t size, std::size_t count, const char* name) {
  if (weights.is_none()) return std::vector<Vector>(count, transport::normalised_weights(Vector(), Index(size), name));
  const auto given = array_of<WeightsIn>(weights, name);
  const bool one_for_all = given.ndim() == 1;
  if (!one_for_all && (given.ndim() != 2 || given.shape(0) != count)) {
    throw InvalidInput(
        fmt::format("{} have {} dimensions; one for each {}, or a row of these for each of {} costs, was "
                    "expected",
                    name, given.ndim(), std::string_view(name).substr(0, std::string_view(name).find(' ')), count));
  }
  const auto length = Index(given.shape(given.ndim() - 1));
  std::vector<Vector> made;
  for (std::size_t k = 0; k < (one_for_all ? 1 : count); ++k) {
    const Eigen::Map<const Vector> of(given.data() + Index(k) * length, length);
    made.push_back(transport::normalised_weights(of, Index(size), name));
  }
  if (one_for_all) made.resize(count, Vector(made.front()));
  return made;
}

void require_finite(const ArrayIn& cost, const Shape& shape) {
  const double* end = cost.data() + cost.size();
  const double* found = std::find_if_not(cost.data(), end, [](double entry) { return std::isfinite(entry); });
  if (found == end) return;
  const auto at = std::size_t(found - cost.data());
  const std::size_t k = at / (shape.rows * shape.columns), i = at / shape.columns % shape.rows, j = at % shape.columns;
  throw InvalidInput(fmt::format("cost[{}] is {}; finite numbers were expected",
                                 shape.batched ? fmt::format("{}, {}, {}", k, i, j) : fmt::format("{}, {}", i, j),
                                 *found));
}

/// Calls body(k) for every k; the first exception is rethrown once all are done.
template <class Body>
void for_each(std::size_t count, Body body) {
  if (count == 1) return body(0);  // a single large problem has the threads for itself
  std::exception_ptr failure;
#pragma omp parallel for schedule(dynamic)
  for (std::size_t k = 0; k < count; ++k) {
    try {
      body(k);
    } catch (...) {
#pragma omp critical
      if (!failure) failure = std::current_exception();
    }
  }
  if (failure) std::rethrow_exception(failure);
}

Objective objective_named(const std::string& name) {
  if (name == "transport") return Objective::transport;
  if (name == "entropic") return Objective::entropic;
  throw InvalidInput(fmt::format("objective = {} must be transport or entropic", name));
}

nb::ndarray<nb::numpy, std::int64_t> moved_indices(const std::vector<Index>& indices) {
  auto owned = std::make_unique<std::vector<std::int64_t>>(indices.begin(), indices.end());
  std::int64_t* data = owned->data();
  const std::size_t size = owned->size();
  nb::capsule owner(owned.release(), [](void* kept) noexcept { delete static_cast<std::vector<std::int64_t>*>(kept); });
  return {data, {size}, owner};
}

/// The result of a solve; arrays are created on request. The solver's columns are the caller's rows.
class Plans {
 public:
  Plans(std::vector<Solution> solutions, Shape shape) : solutions_(std::move(solutions)), shape_(shape) {}

  [[nodiscard]] ArrayOut coupling() const {
    ArrayOut out = shape_.new_matrices();
    for (std::size_t k = 0; k < solutions_.size(); ++k) shape_.at(out.data(), k) = solutions_[k].plan();
    return out;
  }
  /// Of one plan (rows, columns, masses); of several a list of these. The solver's columns are the caller's rows.
  [[nodiscard]] nb::object sparse(double left_out) const {
    nb::list all;
    for (const Solution& solution : solutions_) {
      const transport::SparsePlan kept = transport::sparse(solution.plan(), left_out);
      all.append(nb::make_tuple(moved_indices(kept.columns), moved_indices(kept.rows),
                                moved(Vector(Eigen::Map<const Vector>(kept.mass.data(), Index(kept.mass.size()))))));
    }
    return shape_.batched ? nb::object(all) : nb::object(all[0]);
  }
  [[nodiscard]] ArrayOut row_potential() const { return vectors(shape_.rows, &Solution::column_potential); }
  [[nodiscard]] ArrayOut column_potential() const { return vectors(shape_.columns, &Solution::row_potential); }

  template <class Number>
  [[nodiscard]] nb::object numbers(Number (Solution::*of)() const) const {
    if (!shape_.batched) return nb::cast((solutions_.front().*of)());
    nb::list all;
    for (const Solution& solution : solutions_) all.append((solution.*of)());
    return nb::module_::import_("numpy").attr("asarray")(all);
  }
  [[nodiscard]] bool converged() const {
    return std::all_of(solutions_.begin(), solutions_.end(), std::mem_fn(&Solution::converged));
  }
  [[nodiscard]] std::string message() const {
    const auto failed = std::find_if_not(solutions_.begin(), solutions_.end(), std::mem_fn(&Solution::converged));
    return failed == solutions_.end() ? std::string() : failed->message();
  }

  [[nodiscard]] ArrayOut gradient(const std::string& objective) const {
    return derivatives(
        [kind = objective_named(objective)](const Solution& solution, std::size_t) { return solution.gradient(kind); });
  }
  [[nodiscard]] ArrayOut pull_back(const ArrayIn& cotangent) const {
    if (Shape(cotangent, "cotangent") != shape_) throw InvalidInput("cotangent must have the shape of the cost");
    return derivatives(
        [&](const Solution& solution, std::size_t k) { return solution.pull_back(shape_.at(cotangent.data(), k)); });
  }

 private:
  template <class Derivative>
  [[nodiscard]] ArrayOut derivatives(Derivative derivative) const {
    ArrayOut out = shape_.new_matrices();
    double* data = out.data();
    const nb::gil_scoped_release unlocked;
    for_each(solutions_.size(), [&](std::size_t k) { shape_.at(data, k) = derivative(solutions_[k], k); });
    return out;
  }
  [[nodiscard]] ArrayOut vectors(std::size_t length, const Vector& (Solution::*of)() const) const {
    ArrayOut out = shape_.new_vectors(length);
    for (std::size_t k = 0; k < solutions_.size(); ++k) {
      Eigen::Map<Vector>(out.data() + k * length, Index(length)) = (solutions_[k].*of)();
    }
    return out;
  }

  std::vector<Solution> solutions_;
  Shape shape_;
};

/// One solver per cost of a batch, each warm-started from its last solve. Threads that share one take turns.
class Transport {
 public:
  explicit Transport(SolverOptions options) : options_(options) {
    std::swap(options_.rows, options_.columns);
    solvers_.emplace_back(options_);
  }

  Plans solve(nb::handle given, nb::handle row_weights, nb::handle column_weights) {
    const auto cost = array_of<ArrayIn>(given, "cost");
    const Shape shape(cost, "cost");
    if (shape.rows == 0 || shape.columns == 0) {
      throw InvalidInput(
          fmt::format("cost is {}x{}; at least one row and one column are needed", shape.rows, shape.columns));
    }
    const auto of_rows = to_vectors(row_weights, shape.rows, shape.count, "row weights");
    const auto of_columns = to_vectors(column_weights, shape.columns, shape.count, "column weights");
    require_finite(cost, shape);
    const nb::gil_scoped_release unlocked;
    const std::lock_guard turn(solving_);
    while (solvers_.size() < shape.count) solvers_.emplace_back(options_);
    std::vector<std::optional<Solution>> found(shape.count);
    for_each(shape.count,
             [&](std::size_t k) { found[k] = solvers_[k].solve(shape.at(cost.data(), k), of_columns[k], of_rows[k]); });
    std::vector<Solution> solutions;
    for (auto& solution : found) solutions.push_back(std::move(*solution));
    return {std::move(solutions), shape};
  }

 private:
  SolverOptions options_;
  std::mutex solving_;
  std::vector<Solver> solvers_;
};

void bind_policies(nb::module_& module) {
  using namespace transport;
  nb::class_<Exact>(module, "Exact", "Sums are exactly the given weights.").def(nb::init<>());
  nb::class_<Ball>(module, "Ball", "Sums may deviate from the weights within a ball, so rows can stay unmatched.")
      .def(
          "__init__",
          [](Ball* self, double spread, double entropy) {
            new (self) Ball{spread, entropy};
          },
          nb::arg("spread") = Ball{}.spread, nb::arg("entropy") = Ball{}.entropy,
          "A fraction f of the mass stays unmatched with spread = f / (1 - f); entropy is in units of epsilon.")
      .def_ro("spread", &Ball::spread)
      .def_ro("entropy", &Ball::entropy);
  nb::class_<KullbackLeibler>(module, "KullbackLeibler", "Deviations of the sums from the weights cost strength * KL.")
      .def(
          "__init__", [](KullbackLeibler* self, double strength) { new (self) KullbackLeibler{strength}; },
          nb::arg("strength") = KullbackLeibler{}.strength)
      .def_ro("strength", &KullbackLeibler::strength);
  nb::class_<Sampled>(module, "Sampled",
                      "This side has ratio times as many rows as the other, whose sums are exact, and links are one to "
                      "one: surplus rows have no partner, or one that was not observed.")
      .def(
          "__init__", [](Sampled* self, double ratio) { new (self) Sampled{ratio}; },
          nb::arg("ratio") = Sampled{}.ratio, "A ratio of 0 is that of the cost's rows and columns.")
      .def_ro("ratio", &Sampled::ratio);
  nb::class_<Free>(module, "Free", "Sums are determined by the other side.").def(nb::init<>());
}

void bind_plans(nb::module_& module) {
  nb::class_<Plans>(
      module, "TransportPlan",
      "The result of a solve, with its derivatives; arrays have a leading axis when the cost had one. It owns "
      "all it needs and stays valid whatever its Transport solves next.")
      .def_prop_ro("coupling", &Plans::coupling, nb::rv_policy::move,
                   "The plan, of the shape of the cost; it sums to one.")
      .def(
          "sparse", &Plans::sparse, nb::arg("left_out") = 1e-9,
          nb::sig("def sparse(self, left_out: float = 1e-9) -> typing.Any"),
          "Rows, columns and masses of the largest entries, all others together at most this share of the mass; a list "
          "of these when the cost was a batch. scipy.sparse.coo_array((mass, (rows, columns)), shape) takes them.")
      .def_prop_ro("row_potential", &Plans::row_potential, nb::rv_policy::move)
      .def_prop_ro("column_potential", &Plans::column_potential, nb::rv_policy::move)
      .def_prop_ro(
          "value", [](const Plans& self) { return self.numbers(&Solution::value); },
          nb::for_getter(nb::sig("def value(self) -> float | numpy.typing.NDArray[numpy.float64]")),
          "The optimal value, entropy and penalties included.")
      .def_prop_ro(
          "transport_cost", [](const Plans& self) { return self.numbers(&Solution::transport_cost); },
          nb::for_getter(nb::sig("def transport_cost(self) -> float | numpy.typing.NDArray[numpy.float64]")),
          "<cost, coupling>.")
      .def_prop_ro(
          "epsilon", [](const Plans& self) { return self.numbers(&Solution::epsilon); },
          nb::for_getter(nb::sig("def epsilon(self) -> float | numpy.typing.NDArray[numpy.float64]")),
          "In the unit of the cost.")
      .def_prop_ro(
          "marginal_error", [](const Plans& self) { return self.numbers(&Solution::marginal_error); },
          nb::for_getter(nb::sig("def marginal_error(self) -> float | numpy.typing.NDArray[numpy.float64]")))
      .def_prop_ro(
          "sinkhorn_steps", [](const Plans& self) { return self.numbers(&Solution::sinkhorn_steps); },
          nb::for_getter(nb::sig("def sinkhorn_steps(self) -> int | numpy.typing.NDArray[numpy.int64]")))
      .def_prop_ro(
          "newton_steps", [](const Plans& self) { return self.numbers(&Solution::newton_steps); },
          nb::for_getter(nb::sig("def newton_steps(self) -> int | numpy.typing.NDArray[numpy.int64]")))
      .def_prop_ro("converged", &Plans::converged)
      .def_prop_ro("message", &Plans::message, "The reason when not converged.")
      .def("gradient", &Plans::gradient, nb::arg("objective") = "transport",
           "d<cost, coupling>/d cost, through the plan; for objective=\"entropic\" of the value. epsilon counts as a "
           "constant.")
      .def("pull_back", &Plans::pull_back, nb::arg("cotangent"),
           "dL/d cost from cotangent = dL/d coupling; epsilon counts as a constant.");
}

void bind_solver(nb::module_& module) {
  const SolverOptions defaults;
  nb::class_<Transport>(module, "Transport", "Solves transport problems, each warm-started from the one before.")
      .def(
          "__init__",
          [](Transport* self, double epsilon, bool relative, transport::MarginalPolicy rows,
             transport::MarginalPolicy columns, double tolerance, int max_iterations, bool warm_start) {
            new (self) Transport({epsilon, relative, rows, columns, tolerance, max_iterations, warm_start});
          },
          nb::arg("epsilon") = defaults.epsilon, nb::kw_only(), nb::arg("relative") = defaults.relative,
          nb::arg("rows") = transport::Exact{}, nb::arg("columns") = transport::Exact{},
          nb::arg("tolerance") = defaults.tolerance, nb::arg("max_iterations") = defaults.max_iterations,
          nb::arg("warm_start") = defaults.warm_start,
          "epsilon: smoothing, relative to the largest |cost| unless relative is False. rows, columns: the constraints "
          "on the sums of the plan.")
      .def("solve", &Transport::solve, nb::arg("cost"), nb::arg("row_weights") = nb::none(),
           nb::arg("column_weights") = nb::none(),
           nb::sig("def solve(self, cost: numpy.typing.ArrayLike, row_weights: numpy.typing.ArrayLike | None = None, "
                   "column_weights: numpy.typing.ArrayLike | None = None) -> TransportPlan"),
           "Plan of a cost (n×m) or of a batch of them (k×n×m); weights, one for all (n) or for each (k×n), default to "
           "equal ones.")
      .def(
          "weights",
          [](const Transport&, const Plans& plan, const std::string& objective) { return plan.gradient(objective); },
          nb::arg("plan"), nb::arg("objective") = "transport", "The same as plan.gradient(objective).")
      .def(
          "pull_back",
          [](const Transport&, const Plans& plan, const ArrayIn& cotangent) { return plan.pull_back(cotangent); },
          nb::arg("plan"), nb::arg("cotangent"), "The same as plan.pull_back(cotangent).");
}

}  // namespace

void bind_transport(nb::module_& module) {
  bind_policies(module);
  bind_plans(module);
  bind_solver(module);
}

}  // namespace unshuffle::python
