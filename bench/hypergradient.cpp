// One solve with its hypergradient: the dense backend and the line backend beside a literal implementation of the paper
// and beside std::sort. Prints Markdown tables. --quick leaves out 10⁶ and 10⁷ rows and repeats little.
#include <fmt/format.h>

#include <cmath>
#include <random>
#include <string_view>

#include "literal_paper.hpp"
#include "measure.hpp"
#include "transport/line_transport.hpp"
#include "unshuffle/core/memory.hpp"
#include "unshuffle/model/linear.hpp"
#include "unshuffle/transport/solver.hpp"

namespace {

using namespace unshuffle;
using namespace unshuffle::transport;
using measure::in_own_process;
using measure::median_seconds;

struct Settings {
  bool quick = false;
};

std::string time_text(double seconds) {
  if (seconds < 1e-3) return fmt::format("{:.0f} µs", seconds * 1e6);
  if (seconds < 1) return fmt::format("{:.3g} ms", seconds * 1e3);
  return fmt::format("{:.3g} s", seconds);
}

Matrix normal_matrix(Index rows, Index columns, unsigned seed) {
  std::mt19937_64 generator(seed);
  std::normal_distribution<double> normal;
  return Matrix::NullaryExpr(rows, columns, [&] { return normal(generator); });
}

// ---- Dense costs ----

Matrix uniform_cost(Index n) {
  std::mt19937_64 generator(1);
  std::uniform_real_distribution<double> uniform;
  return Matrix::NullaryExpr(n, n, [&] { return uniform(generator); });
}

Matrix squared_distances(Index n) {
  const Matrix a = normal_matrix(n, 2, 1), b = normal_matrix(n, 2, 2);
  return Matrix::NullaryExpr(n, n, [&](Index i, Index j) { return (a.row(i) - b.row(j)).squaredNorm(); });
}

struct DenseResult {
  double seconds, transport_cost, marginal_error;
};

/// At small ε most of the literal's exponentials are denormal numbers, and half of its time is the processor's slow way
/// with them. Nobody who writes the paper down avoids that, but it is no merit of ours: both are shown.
enum class Denormals { kept, flushed };

DenseResult literal_on(const Matrix& cost, double relative_epsilon, Denormals denormals, int repeats) {
  if (denormals == Denormals::flushed) measure::flush_denormals();
  literal::Answer answer;
  const double time = median_seconds(
      repeats, [&] { answer = literal::hypergradient(cost, relative_epsilon * cost.cwiseAbs().maxCoeff()); });
  return {time, answer.transport_cost, answer.marginal_error};
}

DenseResult dense_on(const Matrix& cost, const SolverOptions& options, int repeats) {
  DenseResult result{};
  result.seconds = median_seconds(repeats, [&] {
    const Solution solution = solve(cost, options);
    if (!solution.gradient().allFinite()) throw std::runtime_error("the hypergradient is not finite");
    result.transport_cost = solution.transport_cost();
    result.marginal_error = solution.marginal_error();
  });
  return result;
}

void dense_table(const Settings& settings) {
  constexpr Index n = 1000;
  const int repeats = settings.quick ? 1 : 3;
  fmt::print(
      "### Any cost, n = m = {}\n\n"
      "One solve with the weighted plan W = dF/dC, from nothing. Ours converge to a marginal error of 1e-8. Memory is "
      "the growth of the process's peak, cost included. Robust: a ball (spread 0.25) on both sides.\n\n"
      "| cost | ε / max C | method | time | literal / this | this / exact | marginal error | transport cost | memory "
      "|\n|---|---|---|---|---|---|---|---|---|\n",
      n);
  struct Shape {
    const char* name;
    Matrix (*make)(Index);
  };
  for (const Shape& shape : {Shape{"uniform", uniform_cost}, Shape{"squared distances in R²", squared_distances}})
    for (double epsilon : {1e-4, 1e-2}) {
      const auto paper = in_own_process([&] { return literal_on(shape.make(n), epsilon, Denormals::kept, repeats); });
      const auto flushed =
          in_own_process([&] { return literal_on(shape.make(n), epsilon, Denormals::flushed, repeats); });
      const auto exact =
          in_own_process([&] { return dense_on(shape.make(n), {.epsilon = epsilon, .tolerance = 1e-8}, repeats); });
      const auto robust = in_own_process([&] {
        return dense_on(shape.make(n), {.epsilon = epsilon, .rows = Ball{}, .columns = Ball{}, .tolerance = 1e-8},
                        repeats);
      });
      auto print = [&](const char* method, const measure::Measured<DenseResult>& row) {
        const DenseResult& answer = row.answer;
        fmt::print("| {} | {:.0e} | {} | {} | {:.2f} | {:.2f} | {:.1e} | {:.6g} | {:.0f} MB |\n", shape.name, epsilon,
                   method, time_text(answer.seconds), paper.answer.seconds / answer.seconds,
                   answer.seconds / exact.answer.seconds, answer.marginal_error, answer.transport_cost, row.megabytes);
        std::fflush(stdout);
      };
      print("literal paper, 200 iterations", paper);
      print("the same, denormals flushed", flushed);
      print("exact", exact);
      print("robust", robust);
    }
}

// ---- A scalar response ----

/// y = Zw + noise, five normal features; the rows' order does not matter to any of the methods.
struct LineData {
  Matrix z;
  Vector y, w;
  double epsilon;

  explicit LineData(Index n) : z(normal_matrix(n, 5, 1)), w(Vector::LinSpaced(5, 0.6, 1.4)) {
    y = z * w + 0.3 * normal_matrix(n, 1, 2);
    w *= 1.05;
    const Vector s = z * w;
    const double apart = std::max(y.maxCoeff() - s.minCoeff(), s.maxCoeff() - y.minCoeff());
    epsilon = 1e-4 * apart * apart;
  }
};

Vector line_hypergradient(LineTransport& transport, const LineData& data, const Vector& w, LineReport& report) {
  const auto bound = Linear::restored(false, {}, names_or_default({}, w.size(), "z"), {"y"});
  const AdditiveModel& model = *bound->additive();
  const Matrix s = model.part(Side::feature, data.z, w);
  report = transport.solve(data.y, Vector(), s.col(0), Vector(), data.epsilon);
  Vector gradient = Vector::Zero(w.size());
  model.pull_back_part(Side::feature, data.z, w, transport.gradient(Side::feature, Objective::transport), gradient);
  return gradient / static_cast<double>(s.rows());
}

/// The same from a weighted plan W of the cost (t_i - s_j)².
Vector gradient_from_plan(const LineData& data, const Vector& s, const Matrix& weighted_plan) {
  const Vector cotangent = 2 * (s.array() * weighted_plan.colwise().sum().transpose().array() -
                                (weighted_plan.transpose() * data.y).array());
  return data.z.transpose() * cotangent;
}

Matrix cost_of(const Vector& t, const Vector& s) {
  return (t.replicate(1, s.size()).rowwise() - s.transpose()).array().square();
}

struct LineResult {
  double sort, cold, warm;
  double marginal_error, compression_error;
  int cold_steps, warm_steps;
  bool converged;
};

LineResult line_on(Index n, int repeats) {
  LineResult result{};
  const LineData data(n);
  {
    Vector copy = data.z * data.w;
    std::mt19937_64 generator(4);
    std::vector<double> times;
    for (int k = 0; k < repeats; ++k) {
      // In a new order every time: a branch predictor would memorise that of a small array.
      std::shuffle(copy.begin(), copy.end(), generator);
      times.push_back(measure::seconds([&] { std::sort(copy.begin(), copy.end()); }));
    }
    std::nth_element(times.begin(), times.begin() + repeats / 2, times.end());
    result.sort = times[static_cast<std::size_t>(repeats / 2)];
  }
  LineReport report;
  auto check = [&](const Vector& gradient) {
    if (!gradient.allFinite()) throw std::runtime_error("the hypergradient is not finite");
  };
  result.cold = median_seconds(repeats, [&] {
    LineTransport transport(LineOptions{});
    check(line_hypergradient(transport, data, data.w, report));
  });
  result.cold_steps = report.iterations;
  result.converged = report.converged;
  LineTransport transport(LineOptions{});
  check(line_hypergradient(transport, data, data.w, report));
  const Matrix move = 1e-4 * data.w.norm() * normal_matrix(5, repeats, 3).colwise().normalized();
  Vector w = data.w;
  int k = 0;
  result.warm = median_seconds(repeats, [&] {
    w += move.col(k++);
    check(line_hypergradient(transport, data, w, report));
  });
  result.warm_steps = report.iterations;
  result.converged = result.converged && report.converged;
  result.marginal_error = report.marginal_error;
  result.compression_error = report.compression_error;
  return result;
}

struct FullResult {
  double seconds, transport_cost, marginal_error;
  double difference;  // of the gradient in w from the line backend's, relative
};

Vector line_reference(const LineData& data) {
  LineTransport transport(LineOptions{});
  LineReport report;
  return line_hypergradient(transport, data, data.w, report);
}

enum class Method { literal, literal_flushed, dense };

FullResult full_on(Index n, Method method) {
  const LineData data(n);
  const Vector reference = line_reference(data);
  if (method == Method::literal_flushed) measure::flush_denormals();
  FullResult result{};
  Vector gradient;
  result.seconds = measure::seconds([&] {
    const Vector s = data.z * data.w;
    const Matrix cost = cost_of(data.y, s);
    if (method != Method::dense) {
      const literal::Answer answer = literal::hypergradient(cost, data.epsilon);
      result.transport_cost = answer.transport_cost;
      result.marginal_error = answer.marginal_error;
      gradient = gradient_from_plan(data, s, answer.weighted_plan);
    } else {
      const Solution solution = solve(cost, {.epsilon = data.epsilon, .relative = false});
      result.transport_cost = solution.transport_cost();
      result.marginal_error = solution.marginal_error();
      gradient = gradient_from_plan(data, s, solution.gradient());
    }
  });
  result.difference = (gradient - reference).norm() / reference.norm();
  return result;
}

void line_table(const Settings& settings) {
  fmt::print(
      "\n### One response, additive model\n\n"
      "y and Zw normal, five features, ε = 1e-4 of the largest cost. A hypergradient is s = Zw, the solve to a "
      "marginal "
      "error of 1e-9, the gradient in every s_j through the plan, and its product with Zᵀ. Warm: after w moved by 1e-4 "
      "of its length. Memory is allocated from what earlier evaluations freed. Sort: std::sort of the same n "
      "predictions in the same process. Memory is the growth of the "
      "process's peak, data included.\n\n"
      "| n = m | sort | cold | cold / sort | warm | warm / sort | steps cold, warm | marginal error | estimated "
      "compression error | memory |\n|---|---|---|---|---|---|---|---|---|---|\n");
  struct Case {
    Index n;
    int repeats;
    const char* name;
  };
  LineResult at_thousand{};
  for (const Case& c : {Case{1'000, 51, "10³"}, Case{10'000, 21, "10⁴"}, Case{100'000, 5, "10⁵"},
                        Case{1'000'000, 5, "10⁶"}, Case{10'000'000, 3, "10⁷"}}) {
    if (settings.quick && c.n > 100'000) continue;
    const auto row = in_own_process([&] { return line_on(c.n, settings.quick ? std::min(c.repeats, 5) : c.repeats); });
    const LineResult& r = row.answer;
    if (c.n == 1'000) at_thousand = r;
    fmt::print("| {} | {} | {} | {:.2f} | {} | {:.2f} | {}, {} | {:.1e}{} | {:.1e} | {:.0f} MB |\n", c.name,
               time_text(r.sort), time_text(r.cold), r.cold / r.sort, time_text(r.warm), r.warm / r.sort, r.cold_steps,
               r.warm_steps, r.marginal_error, r.converged ? "" : " (not converged)", r.compression_error,
               row.megabytes);
    std::fflush(stdout);
  }
  fmt::print(
      "\nThe same problem at n = 10³ by methods that form the n×m cost. The last column is the relative difference of "
      "their ∇F in w from the line backend's.\n\n"
      "| method | time | this / line cold | this / line warm | marginal error | transport cost | ∇F off by | memory |\n"
      "|---|---|---|---|---|---|---|---|\n");
  struct Row {
    Method method;
    const char* name;
  };
  for (const auto& [method, name] :
       {Row{Method::literal, "literal paper, 200 iterations"},
        Row{Method::literal_flushed, "the same, denormals flushed"}, Row{Method::dense, "dense backend"}}) {
    const auto row = in_own_process([&, chosen = method] { return full_on(1000, chosen); });
    const FullResult& r = row.answer;
    fmt::print("| {} | {} | {:.0f} | {:.0f} | {:.1e} | {:.6g} | {:.1e} | {:.0f} MB |\n", name, time_text(r.seconds),
               r.seconds / at_thousand.cold, r.seconds / at_thousand.warm, r.marginal_error, r.transport_cost,
               r.difference, row.megabytes);
    std::fflush(stdout);
  }
}

}  // namespace

int main(int argc, char** argv) try {
  keep_freed_memory();  // as the command line program does
  Settings settings;
  for (int k = 1; k < argc; ++k) {
    if (std::string_view(argv[k]) != "--quick") {
      fmt::print(stderr, "usage: {} [--quick]\n", argv[0]);
      return 2;
    }
    settings.quick = true;
  }
  dense_table(settings);
  line_table(settings);
  return 0;
} catch (const std::exception& error) {
  fmt::print(stderr, "{}\n", error.what());
  return 1;
}
