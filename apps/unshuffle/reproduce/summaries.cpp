#include "reproduce/summaries.hpp"

#include <fmt/format.h>
#include <omp.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/in_parallel.hpp"
#include "unshuffle/core/error.hpp"

namespace unshuffle::app {
namespace {

template <class Value, class Field>
std::vector<Value> distinct(const Measurements& all, Field field) {
  std::vector<Value> values;
  for (const Measurement& one : all) {
    if (std::find(values.begin(), values.end(), one.*field) == values.end()) values.push_back(one.*field);
  }
  return values;
}

}  // namespace

Measurements select(const Measurements& all, const Which& which) {
  auto matches = [](const std::string& wanted, const std::string& has) { return wanted.empty() || wanted == has; };
  Measurements chosen;
  std::copy_if(all.begin(), all.end(), std::back_inserter(chosen), [&](const Measurement& one) {
    return matches(which.panel, one.panel) && matches(which.method, one.method) &&
           matches(which.quantity, one.quantity);
  });
  return chosen;
}

std::vector<std::string> panels_of(const Measurements& all) { return distinct<std::string>(all, &Measurement::panel); }
std::vector<std::string> methods_of(const Measurements& all) {
  return distinct<std::string>(all, &Measurement::method);
}
std::vector<double> settings_of(const Measurements& all) { return distinct<double>(all, &Measurement::x); }

Matrix matrix_of(const Measurements& cells, Index rows, Index columns) {
  Matrix matrix = Matrix::Zero(rows, columns);
  for (const Measurement& cell : cells) {
    if (!(cell.x >= 0 && cell.x < double(rows) && cell.x == std::trunc(cell.x)) || cell.run < 0 || cell.run >= columns)
      throw BadData(fmt::format("panel {}: x = {} and run = {} name no cell of a {} × {} matrix", cell.panel, cell.x,
                                cell.run, rows, columns));
    matrix(static_cast<Index>(cell.x), cell.run) = cell.value;
  }
  return matrix;
}

double value_at(const Measurements& all, const Which& which, double x) {
  const std::vector<double> values = values_at(select(all, which), x);
  if (values.empty())
    throw BadData(fmt::format("no measurement of panel \"{}\", method \"{}\", quantity \"{}\" at x = {}", which.panel,
                              which.method, which.quantity, x));
  return values.front();
}

std::vector<double> values_at(const Measurements& all, double x) {
  std::vector<double> values;
  for (const Measurement& one : all) {
    if (one.x == x) values.push_back(one.value);
  }
  return values;
}

double mean(const std::vector<double>& values) {
  if (values.empty()) return std::numeric_limits<double>::quiet_NaN();
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double quantile(std::vector<double> values, double share) {
  if (values.empty()) return std::numeric_limits<double>::quiet_NaN();
  std::sort(values.begin(), values.end());
  const double place = share * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const std::size_t above = std::min(below + 1, values.size() - 1);
  return values[below] + (place - static_cast<double>(below)) * (values[above] - values[below]);
}

Measurements run_all(const std::vector<Task>& tasks, const Settings& settings) {
  std::vector<Measurements> results(tasks.size());
  std::atomic<int> done{0};
  in_parallel(tasks.size(), [&](std::size_t k) {
    results[k] = tasks[k]();
    const int finished = ++done;
    if (settings.progress && omp_get_thread_num() == 0) (void)settings.progress(finished, double(tasks.size()));
  });
  Measurements joined;
  for (const Measurements& part : results) joined.insert(joined.end(), part.begin(), part.end());
  return joined;
}

std::string Contest::in_words() const {
  return fmt::format("Better in {} of {} settings{}.", won, settings, lost_at.empty() ? "" : "; not: " + lost_at);
}

Contest contest(const Measurements& all, const std::string& method, const std::string& against,
                const std::string& quantity, double slack) {
  Contest result;
  for (const std::string& panel : panels_of(all)) {
    const Measurements ours = select(all, {panel, method, quantity}), theirs = select(all, {panel, against, quantity});
    for (const double x : settings_of(ours)) {
      const double here = mean(values_at(ours, x)), there = mean(values_at(theirs, x));
      if (std::isnan(there)) continue;
      ++result.settings;
      if (here <= slack * there) {
        ++result.won;
      } else {
        result.lost_at += fmt::format("{}{} at {:g}: {:.3g} against {:.3g}", result.lost_at.empty() ? "" : "; ", panel,
                                      x, here, there);
      }
    }
  }
  return result;
}

}  // namespace unshuffle::app
