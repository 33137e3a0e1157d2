#include "unshuffle/tables/problem.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "unshuffle/core/error.hpp"

namespace unshuffle {
namespace {

constexpr std::string_view response_table = "response table";
constexpr std::string_view feature_table = "feature table";

std::string column_name(const std::vector<std::string>& names, std::string_view prefix, Index column) {
  if (names.empty()) return fmt::format("{}{}", prefix, column + 1);
  return names[static_cast<std::size_t>(column)];
}

void require_finite(const Matrix& values, const std::vector<std::string>& names, std::string_view prefix,
                    std::string_view table) {
  for (Index column = 0; column < values.cols(); ++column) {
    for (Index row = 0; row < values.rows(); ++row) {
      if (std::isfinite(values(row, column))) continue;
      throw BadData(fmt::format("{}, row {}: column \"{}\" is {}; a finite number was expected", table, row + 1,
                                column_name(names, prefix, column), values(row, column)));
    }
  }
}

void require_names(const std::vector<std::string>& names, Index columns, std::string_view which) {
  if (names.empty() || static_cast<Index>(names.size()) == columns) return;
  throw BadData(fmt::format("{} column names were given for the {} columns of {}; one each was expected", names.size(),
                            columns, which));
}

void require_weights(const Vector& weights, Index rows, std::string_view table) {
  if (weights.size() == 0) return;
  if (weights.size() != rows) {
    throw BadData(fmt::format("{}: {} weights for {} rows; one per row was expected", table, weights.size(), rows));
  }
  for (Index row = 0; row < rows; ++row) {
    if (std::isfinite(weights[row]) && weights[row] >= 0) continue;
    throw BadData(fmt::format("{}, row {}: weight is {}; a finite number of at least 0 was expected", table, row + 1,
                              weights[row]));
  }
  if (!(weights.sum() > 0)) {
    throw BadData(fmt::format("{}: all {} weights are 0; at least one above 0 was expected", table, rows));
  }
  if (!std::isfinite(weights.sum())) throw BadData(fmt::format("{}: the weights sum to infinity", table));
}

void require_fact(const Vector& values, Index rows, std::string_view what, std::string_view table) {
  if (values.size() == 0) return;
  if (values.size() != rows) {
    throw BadData(
        fmt::format("{}: {} values of {} for {} rows; one per row was expected", table, values.size(), what, rows));
  }
  for (Index row = 0; row < rows; ++row) {
    if (std::isfinite(values[row])) continue;
    throw BadData(fmt::format("{}, row {}: {} is {}; a finite number was expected", table, row + 1, what, values[row]));
  }
}

void require_facts(const Problem& problem) {
  const RowFacts& facts = problem.facts;
  const Index n = problem.responses();
  require_fact(facts.response_offset, n, "the offset", response_table);
  require_fact(facts.feature_offset, problem.features(), "the offset", feature_table);
  require_fact(facts.trials, n, "the number of trials", response_table);
  require_fact(facts.event, n, "the event", response_table);
  require_fact(facts.wrong_rate, n, "the rate of wrong links", response_table);
  if (facts.wrong_rate.size() > 0 && !(facts.wrong_rate.minCoeff() > 0 && facts.wrong_rate.maxCoeff() < 1))
    throw BadData("rates of wrong links have to be above 0 and below 1");
  if (facts.mismatch.cols() > 0 && facts.mismatch.rows() != n) {
    throw BadData(fmt::format("{} rows of columns on which wrong links depend for {} responses; one each was expected",
                              facts.mismatch.rows(), n));
  }
  require_finite(facts.mismatch, facts.mismatch_names, "mismatch", response_table);
  require_names(facts.mismatch_names, facts.mismatch.cols(), "those on which wrong links depend");
}

void require_groups(const Problem& problem) {
  const auto& left = problem.response_groups;
  const auto& right = problem.feature_groups;
  if (left.empty() && right.empty()) return;
  const auto check = [](const std::vector<Index>& labels, Index rows, std::string_view table) {
    if (static_cast<Index>(labels.size()) == rows) return;
    throw BadData(fmt::format("{}: {} group labels for {} rows; one per row was expected", table, labels.size(), rows));
  };
  check(left, problem.responses(), response_table);
  check(right, problem.features(), feature_table);
}

void require_known_pairs(const Problem& problem) {
  const auto none_of = [](Index rows) { return std::vector<Index>(static_cast<std::size_t>(rows), -1); };
  std::vector<Index> of_response = none_of(problem.responses()), of_feature = none_of(problem.features());
  const auto require_row = [](std::size_t pair, Index row, Index rows, std::string_view table) {
    if (row >= 0 && row < rows) return;
    throw BadData(fmt::format("known pair {}: {} has no row {}; 0 to {} was expected", pair + 1, table, row, rows - 1));
  };
  const auto enter = [](std::size_t pair, Index row, Index other, std::vector<Index>& partners,
                        std::string_view table) {
    Index& partner = partners[static_cast<std::size_t>(row)];
    if (partner >= 0)
      throw BadData(fmt::format("known pair {}: row {} of the {} is already in another pair", pair + 1, row, table));
    partner = other;
  };
  for (std::size_t pair = 0; pair < problem.known.size(); ++pair) {
    const auto& known = problem.known[pair];
    require_row(pair, known.response_row, problem.responses(), response_table);
    require_row(pair, known.feature_row, problem.features(), feature_table);
    if (of_response[static_cast<std::size_t>(known.response_row)] == known.feature_row) {
      throw BadData(fmt::format("known pair {}: rows {} and {} are given as a pair twice", pair + 1, known.response_row,
                                known.feature_row));
    }
    enter(pair, known.response_row, known.feature_row, of_response, response_table);
    enter(pair, known.feature_row, known.response_row, of_feature, feature_table);
    if (!problem.response_groups.empty() && problem.response_groups[static_cast<std::size_t>(known.response_row)] !=
                                                problem.feature_groups[static_cast<std::size_t>(known.feature_row)]) {
      throw BadData(fmt::format("known pair {}: rows {} and {} are of different groups", pair + 1, known.response_row,
                                known.feature_row));
    }
  }
}

void require_prior(const Problem& problem) {
  std::set<std::pair<Index, Index>> seen;
  for (std::size_t at = 0; at < problem.prior.size(); ++at) {
    const auto& [response, feature, weight] = problem.prior[at];
    const auto check = [&](Index row, Index rows, std::string_view table) {
      if (row >= 0 && row < rows) return;
      throw BadData(
          fmt::format("prior weight {}: {} has no row {}; 0 to {} was expected", at + 1, table, row, rows - 1));
    };
    check(response, problem.responses(), response_table);
    check(feature, problem.features(), feature_table);
    if (!std::isfinite(weight) || !(weight > 0)) {
      throw BadData(fmt::format("prior weight {}: rows {} and {} have the weight {}; a finite number > 0 was expected",
                                at + 1, response, feature, weight));
    }
    if (!seen.insert({response, feature}).second) {
      throw BadData(fmt::format("prior weight {}: rows {} and {} already have one", at + 1, response, feature));
    }
    if (!problem.response_groups.empty() && problem.response_groups[static_cast<std::size_t>(response)] !=
                                                problem.feature_groups[static_cast<std::size_t>(feature)]) {
      throw BadData(fmt::format("prior weight {}: rows {} and {} are of different groups", at + 1, response, feature));
    }
  }
}

void require_soft_keys(const Problem& problem) {
  for (std::size_t at = 0; at < problem.soft_keys.size(); ++at) {
    const SoftKey& key = problem.soft_keys[at];
    if (static_cast<Index>(key.response_labels.size()) != problem.responses() ||
        static_cast<Index>(key.feature_labels.size()) != problem.features()) {
      throw BadData(fmt::format("soft key {}: {} and {} labels for {} and {} rows; one per row was expected", at + 1,
                                key.response_labels.size(), key.feature_labels.size(), problem.responses(),
                                problem.features()));
    }
    if (!(key.agreement > 0 && key.agreement < 1)) {
      throw BadData(
          fmt::format("soft key {}: agreement = {} must be above 0 and below 1; keys that always agree are groups",
                      at + 1, key.agreement));
    }
  }
}

Vector normalised(const Vector& weights, Index rows) {
  if (weights.size() == 0) return Vector::Constant(rows, 1.0 / static_cast<double>(rows));
  return weights / weights.sum();
}

void fill_names(std::vector<std::string>& names, Index columns, std::string_view prefix) {
  if (!names.empty()) return;
  if (prefix == "y" && columns == 1) {
    names = {"y"};
    return;
  }
  for (Index column = 0; column < columns; ++column) names.push_back(column_name({}, prefix, column));
}

void require_varying(const Matrix& values, const std::vector<std::string>& names, std::string_view prefix,
                     std::string_view advice) {
  for (Index column = 0; column < values.cols(); ++column) {
    if ((values.col(column).array() != values(0, column)).any()) continue;
    throw BadData(fmt::format("column \"{}\" is {} in every row; {}", column_name(names, prefix, column),
                              values(0, column), advice));
  }
}

/// A column whose variation is tiny relative to its mean cannot be distinguished from the intercept once squared.
void require_near_zero(const Matrix& values, const std::vector<std::string>& names, std::string_view prefix) {
  constexpr double far = 1e6;
  const Vector spreads = column_spreads(values);
  for (Index column = 0; column < values.cols(); ++column) {
    const double mean = values.col(column).mean();
    if (std::abs(mean) <= far * spreads[column]) continue;
    throw BadData(
        fmt::format("column \"{}\" has the mean {:.6g} and the standard deviation {:.3g}, too far from 0 to be "
                    "told from an intercept; subtract a constant from it first",
                    column_name(names, prefix, column), mean, spreads[column]));
  }
}

/// Squares must neither overflow nor vanish, also those of coefficients, which are ratios of two columns.
void require_scale(const Matrix& values, const std::vector<std::string>& names, std::string_view prefix) {
  constexpr double largest = 1e70;
  constexpr double smallest = 1e-70;
  for (Index column = 0; column < values.cols(); ++column) {
    const auto cells = values.col(column).array();
    const double magnitude = cells.abs().maxCoeff();
    const double range = cells.maxCoeff() - cells.minCoeff();
    if (magnitude <= largest && (range == 0 || range >= smallest)) continue;
    throw BadData(fmt::format("column \"{}\" {} {:.3g}; {} to {} was expected: rescale it",
                              column_name(names, prefix, column),
                              magnitude <= largest ? "varies by no more than" : "holds the magnitude",
                              magnitude <= largest ? range : magnitude, smallest, largest));
  }
}

}  // namespace

void validate(const Problem& problem) {
  const Index n = problem.responses();
  if (n == 0) throw BadData("the response table has no rows");
  if (problem.features() == 0) throw BadData("the feature table has no rows");
  if (problem.outputs() == 0) throw BadData("the response table has no response column");
  if (problem.z.cols() == 0) throw BadData("the feature table has no feature column");
  if (problem.x.size() > 0 && problem.x.rows() != n) {
    throw BadData(fmt::format("x has {} rows and y has {}; both belong to the response table and must agree",
                              problem.x.rows(), n));
  }
  require_names(problem.y_names, problem.outputs(), "y");
  require_names(problem.x_names, problem.x.cols(), "x");
  require_names(problem.z_names, problem.z.cols(), "z");
  require_finite(problem.y, problem.y_names, "y", response_table);
  require_finite(problem.x, problem.x_names, "x", response_table);
  require_finite(problem.z, problem.z_names, "z", feature_table);
  require_weights(problem.response_weights, n, response_table);
  require_weights(problem.feature_weights, problem.features(), feature_table);
  require_facts(problem);
  require_groups(problem);
  require_known_pairs(problem);
  require_prior(problem);
  require_soft_keys(problem);
  if (blocks_of(problem).empty()) throw BadData("no group occurs in both tables; no row could match any other");
}

void require_enough_rows(const Problem& problem, Index parameters) {
  const auto check = [&](Index rows, std::string_view table) {
    if (rows < 2) {
      throw BadData(fmt::format("the {} has {} row{}; with fewer than 2 there is nothing to tell apart", table, rows,
                                rows == 1 ? "" : "s"));
    }
    if (rows * problem.outputs() < parameters) {
      throw BadData(fmt::format("the {} has {} rows for {} parameters; at least {} rows are needed", table, rows,
                                parameters, (parameters + problem.outputs() - 1) / problem.outputs()));
    }
  };
  check(problem.responses(), response_table);
  check(problem.features(), feature_table);
}

void require_varying_features(const Problem& problem) {
  constexpr std::string_view advice = "leave it out, or fit without an intercept";
  require_varying(problem.x, problem.x_names, "x", advice);
  require_varying(problem.z, problem.z_names, "z", advice);
  require_near_zero(problem.x, problem.x_names, "x");
  require_near_zero(problem.z, problem.z_names, "z");
}

void require_varying_responses(const Problem& problem) {
  require_varying(problem.y, problem.y_names, "y",
                  problem.outputs() == 1 ? "there is nothing to explain, nor to link rows by" : "leave it out");
}

void require_scales(const Problem& problem) {
  require_scale(problem.y, problem.y_names, "y");
  require_scale(problem.x, problem.x_names, "x");
  require_scale(problem.z, problem.z_names, "z");
}

Vector column_spreads(const Matrix& values) {
  const Eigen::RowVectorXd means = values.colwise().mean();
  return (values.rowwise() - means).colwise().norm().transpose() / std::sqrt(static_cast<double>(values.rows()));
}

Problem completed(Problem problem) {
  validate(problem);
  if (problem.x.cols() == 0) problem.x.resize(problem.responses(), 0);
  problem.response_weights = normalised(problem.response_weights, problem.responses());
  problem.feature_weights = normalised(problem.feature_weights, problem.features());
  fill_names(problem.y_names, problem.outputs(), "y");
  fill_names(problem.x_names, problem.x.cols(), "x");
  fill_names(problem.z_names, problem.z.cols(), "z");
  fill_names(problem.facts.mismatch_names, problem.facts.mismatch.cols(), "mismatch");
  return problem;
}

std::vector<Block> blocks_of(const Problem& problem) {
  std::map<Index, Block> by_label;
  const auto label = [](const std::vector<Index>& labels, Index row) {
    return labels.empty() ? Index{0} : labels[static_cast<std::size_t>(row)];
  };
  const Vector weights = normalised(problem.response_weights, problem.responses());
  std::vector<char> response_known(static_cast<std::size_t>(problem.responses()), 0);
  std::vector<char> feature_known(static_cast<std::size_t>(problem.features()), 0);
  for (const KnownPair& pair : problem.known) {
    response_known[static_cast<std::size_t>(pair.response_row)] = 1;
    feature_known[static_cast<std::size_t>(pair.feature_row)] = 1;
  }
  for (Index row = 0; row < problem.responses(); ++row) {
    if (response_known[static_cast<std::size_t>(row)] != 0) continue;
    Block& block = by_label.try_emplace(label(problem.response_groups, row), Block{{}, {}, 0.0}).first->second;
    block.response_rows.push_back(row);
    block.share += weights[row];
  }
  for (Index row = 0; row < problem.features(); ++row) {
    if (feature_known[static_cast<std::size_t>(row)] != 0) continue;
    const auto found = by_label.find(label(problem.feature_groups, row));
    if (found != by_label.end()) found->second.feature_rows.push_back(row);
  }
  std::vector<Block> blocks;
  for (auto& [unused, block] : by_label) {
    if (!block.feature_rows.empty()) blocks.push_back(std::move(block));
  }
  for (const KnownPair& pair : problem.known) {
    blocks.push_back({{pair.response_row}, {pair.feature_row}, weights[pair.response_row]});
  }
  return blocks;
}

LeftOver rows_left_over(const Problem& problem) {
  Index linked = 0;
  for (const Block& block : blocks_of(problem))
    linked += Index(std::min(block.response_rows.size(), block.feature_rows.size()));
  return {problem.responses() - linked, problem.features() - linked};
}

// The true partner of a response with label v has the same label with probability a, and is then any of the features
// that have it; a feature that is not the partner has it with probability q, the share of features with label v. Equal
// labels multiply the odds of the pair by a/q, different ones by (1-a)/(1-q), so a rare label is stronger evidence than
// a common one (Fellegi & Sunter 1969; docs/mathematics.md §1.4).
Matrix log_weights_of_keys(const Problem& problem, const std::vector<Index>& response_rows,
                           const std::vector<Index>& feature_rows) {
  Matrix sum = Matrix::Zero(static_cast<Index>(response_rows.size()), static_cast<Index>(feature_rows.size()));
  for (const SoftKey& key : problem.soft_keys) {
    std::map<Index, double> count;
    double labelled = 0;
    for (const Index label : key.feature_labels) {
      if (label < 0) continue;
      ++count[label];
      ++labelled;
    }
    for (Index i = 0; i < sum.rows(); ++i) {
      const Index label = key.response_labels[static_cast<std::size_t>(response_rows[static_cast<std::size_t>(i)])];
      const auto found = count.find(label);
      // A label that no feature has, or that all have, does not distinguish pairs.
      if (label < 0 || found == count.end() || found->second == labelled) continue;
      const double share = found->second / labelled;
      const double agree = std::log(key.agreement / share);
      const double differ = std::log((1 - key.agreement) / (1 - share));
      for (Index j = 0; j < sum.cols(); ++j) {
        const Index other = key.feature_labels[static_cast<std::size_t>(feature_rows[static_cast<std::size_t>(j)])];
        if (other >= 0) sum(i, j) += other == label ? agree : differ;
      }
    }
  }
  return sum;
}

}  // namespace unshuffle
