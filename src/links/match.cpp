#include "unshuffle/links/match.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <unordered_map>
#include <variant>

#include "core/in_parallel.hpp"
#include "links/link_posterior.hpp"
#include "links/linked.hpp"
#include "objective/batch.hpp"
#include "tables/equal_weights.hpp"
#include "unshuffle/links/assignment.hpp"

namespace unshuffle {

namespace {

// A pair whose plan mass is below this share of both rows' masses is outside the plan's support.
constexpr double negligible = 1e-9;

// Links of a row or column among which it is matched where there is no matrix of all pairs.
constexpr Index most_candidates = 32;

// Groups of more rows take their probabilities from the plan.
constexpr Index most_sampled = 1000;

std::vector<Index> missing(const std::vector<char>& taken) {
  std::vector<Index> rows;
  for (std::size_t i = 0; i < taken.size(); ++i) {
    if (taken[i] == 0) rows.push_back(Index(i));
  }
  return rows;
}

struct Matcher {
  Evaluator& evaluator;
  const Problem& problem;
  const Model& model;
  const VectorRef& w;
  SoftLinks links;
  Vector t;                          ///< y - g(x), sorted backend only.
  Vector s;                          ///< h(z).
  std::vector<PlanEntry> strongest;  ///< Clouds backend only, by response row.

  Matcher(Evaluator& evaluator_, const Problem& problem_, const Model& model_, const VectorRef& w_)
      : evaluator(evaluator_), problem(problem_), model(model_), w(w_), links(evaluator.links(w)) {
    if (evaluator.backend() == Backend::clouds) strongest = evaluator.strongest_links(most_candidates);
    if (evaluator.backend() != Backend::sorted) return;
    const AdditiveModel& additive = *model.additive();
    t = problem.y.col(0);
    if (problem.x.cols() > 0) t -= additive.part(Side::response, model.basis(Side::response, problem.x), w).col(0);
    s = additive.part(Side::feature, model.basis(Side::feature, problem.z), w).col(0);
  }

  /// Rows of one side that take part.
  [[nodiscard]] std::vector<Index> taking_part(LinkRows which, const std::vector<Index>& rows, Side side) const {
    const auto& policy = side == Side::response ? evaluator.options().response_side : evaluator.options().feature_side;
    if (which == LinkRows::all || !std::holds_alternative<transport::Ball>(policy)) return rows;
    const Vector& mass = side == Side::response ? links.response_mass : links.feature_mass;
    std::vector<Index> stay;
    std::copy_if(rows.begin(), rows.end(), std::back_inserter(stay), [&](Index row) { return mass(row) >= 0.5; });
    return stay;
  }

  [[nodiscard]] double row_mass(Index i) const { return problem.response_weights(i) * links.response_mass(i); }
  [[nodiscard]] double column_mass(Index j) const { return problem.feature_weights(j) * links.feature_mass(j); }

  [[nodiscard]] bool possible(const PlanEntry& entry) const {
    return entry.mass >= negligible * std::min(row_mass(entry.response_row), column_mass(entry.feature_row));
  }

  [[nodiscard]] std::vector<Index> assign_among_strongest(const std::vector<Index>& rows,
                                                          const std::vector<Index>& columns) const {
    std::unordered_map<Index, Index> place;
    for (std::size_t j = 0; j < columns.size(); ++j) place[columns[j]] = Index(j);
    std::vector<PossiblePair> candidates;
    const auto before = [](const PlanEntry& entry, Index row) { return entry.response_row < row; };
    for (std::size_t i = 0; i < rows.size(); ++i) {
      auto entry = std::lower_bound(strongest.begin(), strongest.end(), rows[i], before);
      for (; entry != strongest.end() && entry->response_row == rows[i]; ++entry) {
        const auto column = place.find(entry->feature_row);
        if (column != place.end() && possible(*entry))
          candidates.push_back({Index(i), column->second, evaluator.cost_entry(rows[i], entry->feature_row)});
      }
    }
    return assign_among(candidates, Index(rows.size()), Index(columns.size()));
  }

  [[nodiscard]] std::vector<Index> assign_block(const std::vector<Index>& rows,
                                                const std::vector<Index>& columns) const {
    if (evaluator.backend() == Backend::sorted) return assign_on_line(t(rows), s(columns));
    if (evaluator.backend() == Backend::clouds) return assign_among_strongest(rows, columns);
    Matrix cost(Index(rows.size()), Index(columns.size()));
    for (std::size_t j = 0; j < columns.size(); ++j) {
      for (std::size_t i = 0; i < rows.size(); ++i) {
        const PlanEntry entry{rows[i], columns[j], evaluator.plan_entry(rows[i], columns[j])};
        cost(Index(i), Index(j)) =
            possible(entry) ? evaluator.cost_entry(rows[i], columns[j]) : std::numeric_limits<double>::infinity();
      }
    }
    return assign(cost).column_of_row;
  }

  /// Rows beyond those of the shorter side have no partner.
  [[nodiscard]] bool one_to_one() const {
    return std::holds_alternative<transport::Sampled>(evaluator.options().response_side);
  }

  [[nodiscard]] double plan_share(Index i, Index j) const {
    const double whole = one_to_one() ? problem.response_weights(i) : std::max(row_mass(i), column_mass(j));
    return whole > 0 ? std::clamp(evaluator.plan_entry(i, j) / whole, 0.0, 1.0) : 0.0;
  }

  /// Of the pairs (rows[k], columns[partner[k]]).
  [[nodiscard]] Vector probabilities(const std::vector<Index>& rows, const std::vector<Index>& columns,
                                     const std::vector<Index>& partner) const {
    const auto n = static_cast<Index>(rows.size()), m = static_cast<Index>(columns.size());
    Vector shares = Vector::Zero(n);
    bool possible = true;
    for (Index k = 0; k < n; ++k) {
      const Index column = partner[std::size_t(k)];
      if (column < 0) continue;
      shares(k) = plan_share(rows[std::size_t(k)], columns[std::size_t(column)]);
      possible = possible && shares(k) > 0;
    }
    const bool whole =
        one_to_one() ? equal_weights(problem.response_weights(rows)) && equal_weights(problem.feature_weights(columns))
                     : n == m && equal_masses(rows, columns);
    if (!possible || !whole || std::max(n, m) > most_sampled) return shares;
    if (n == 1 && m == 1) return Vector::Ones(1);
    Matrix plan(n, m);
    for (Index j = 0; j < m; ++j) {
      for (Index i = 0; i < n; ++i) plan(i, j) = plan_share(rows[std::size_t(i)], columns[std::size_t(j)]);
    }
    const Square square = with_nobody(plan, partner);
    const RandomStream random(0, Stream::link_posterior, std::uint64_t(rows.front()));
    return link_posterior(square.plan, square.partner, random).head(n).cwiseProduct(has_partner(partner));
  }

 private:
  struct Square {
    Matrix plan;
    std::vector<Index> partner;
  };

  /// Surplus rows of the longer side are paired with dummy partners, as many as needed.
  static Square with_nobody(const Matrix& plan, const std::vector<Index>& partner) {
    constexpr double hardly = 1e-12;  // but possible, because the chain starts there
    const Index n = plan.rows(), m = plan.cols(), size = std::max(n, m);
    Square result{Matrix::Zero(size, size), partner};
    result.plan.topLeftCorner(n, m) = plan;
    if (m > n) {
      const Vector left = (1 - plan.colwise().sum().array()).max(hardly) / double(m - n);
      result.plan.bottomRows(m - n).rowwise() = left.transpose();
      std::vector<char> taken(std::size_t(m), 0);
      for (const Index j : partner) taken[std::size_t(j)] = 1;
      const std::vector<Index> left_over = missing(taken);
      result.partner.insert(result.partner.end(), left_over.begin(), left_over.end());
    } else if (n > m) {
      result.plan.rightCols(n - m).colwise() = Vector((1 - plan.rowwise().sum().array()).max(hardly) / double(n - m));
      Index nobody = m;
      for (Index& j : result.partner) {
        if (j < 0) j = nobody++;
      }
    }
    return result;
  }

  static Vector has_partner(const std::vector<Index>& partner) {
    return Vector::NullaryExpr(Index(partner.size()), [&](Index k) { return partner[std::size_t(k)] < 0 ? 0.0 : 1.0; });
  }

  /// From the plan, whose sums have the accuracy of the solver.
  [[nodiscard]] bool equal_masses(const std::vector<Index>& rows, const std::vector<Index>& columns) const {
    const double first = row_mass(rows.front());
    const auto same = [&](double mass) { return std::abs(mass - first) <= 1e-6 * first; };
    return std::all_of(rows.begin(), rows.end(), [&](Index i) { return same(row_mass(i)); }) &&
           std::all_of(columns.begin(), columns.end(), [&](Index j) { return same(column_mass(j)); });
  }
};

void sort_by_response(std::vector<Match>& pairs) {
  std::sort(pairs.begin(), pairs.end(), [](const Match& a, const Match& b) { return a.response_row < b.response_row; });
}

}  // namespace

Matching match(Evaluator& evaluator, const Problem& problem, const Model& model, const VectorRef& w, LinkRows which) {
  const Matcher matcher(evaluator, problem, model, w);
  Matching matching;
  std::vector<char> response_taken(std::size_t(problem.responses()), 0);
  std::vector<char> feature_taken(std::size_t(problem.features()), 0);
  const std::vector<Block> blocks = blocks_of(problem);
  std::vector<std::vector<Match>> of_blocks(blocks.size());
  in_parallel(blocks.size(), [&](std::size_t b) {
    const auto rows = matcher.taking_part(which, blocks[b].response_rows, Side::response);
    const auto columns = matcher.taking_part(which, blocks[b].feature_rows, Side::feature);
    if (rows.empty() || columns.empty()) return;
    const auto partner = matcher.assign_block(rows, columns);
    const Vector probability = matcher.probabilities(rows, columns, partner);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if (partner[i] >= 0) of_blocks[b].push_back({rows[i], columns[std::size_t(partner[i])], probability(Index(i))});
    }
  });
  for (const std::vector<Match>& pairs : of_blocks) {
    for (const Match& pair : pairs) {
      matching.pairs.push_back(pair);
      response_taken[std::size_t(pair.response_row)] = 1;
      feature_taken[std::size_t(pair.feature_row)] = 1;
    }
  }
  sort_by_response(matching.pairs);
  matching.unmatched_responses = missing(response_taken);
  matching.unmatched_features = missing(feature_taken);
  return matching;
}

namespace {

/// Whether any two of them could be linked: rows of one group, both with weight.
bool may_match(const Problem& problem, const std::vector<Index>& responses, const std::vector<Index>& features) {
  const auto group = [](const std::vector<Index>& groups, Index row) {
    return groups.empty() ? Index{0} : groups[std::size_t(row)];
  };
  std::set<Index> present;
  for (const Index i : responses) {
    if (problem.response_weights(i) > 0) present.insert(group(problem.response_groups, i));
  }
  return std::any_of(features.begin(), features.end(), [&](Index j) {
    return problem.feature_weights(j) > 0 && present.contains(group(problem.feature_groups, j));
  });
}

}  // namespace

// The plan ignores the order. Links in the given order that are more likely right than wrong are kept; the other rows
// are linked among themselves, as far as their own links in order are wrong.
Matching match_beside_order(const Problem& problem, const Model& bound, const VectorRef& w,
                            const EvaluatorOptions& plan, const Vector& link_probabilities) {
  Matching matching;
  std::vector<char> response_kept(std::size_t(problem.responses()), 0);
  std::vector<char> feature_kept(std::size_t(problem.features()), 0);
  std::vector<Index> beside(std::size_t(problem.responses()), -1);
  Vector response_right = Vector::Zero(problem.responses()), feature_right = Vector::Zero(problem.features());
  const Links in_order = links_in_order(problem);
  for (std::size_t k = 0; k < in_order.responses.size(); ++k) {
    const Index i = in_order.responses[k], j = in_order.features[k];
    beside[std::size_t(i)] = j;
    response_right(i) = feature_right(j) = link_probabilities(i);
    if (response_right(i) < 0.5) continue;
    matching.pairs.push_back({i, j, response_right(i)});
    response_kept[std::size_t(i)] = feature_kept[std::size_t(j)] = 1;
  }
  const std::vector<Index> responses = missing(response_kept), features = missing(feature_kept);
  if (!may_match(problem, responses, features)) {
    matching.unmatched_responses = responses;
    matching.unmatched_features = features;
  } else {
    // A row's true partner may be among the rows that were kept.
    const Vector feature_wrong = Vector::Ones(problem.features()) - feature_right;
    const double here = feature_wrong(features).sum() / feature_wrong.sum();
    const Problem rest = some_rows(problem, responses, features);
    Evaluator evaluator(rest, bound, plan);
    const Matching others = match(evaluator, rest, bound, w);
    for (const Match& pair : others.pairs) {
      const Index i = responses[std::size_t(pair.response_row)], j = features[std::size_t(pair.feature_row)];
      const double elsewhere = here * (1 - response_right(i)) * feature_wrong(j) * pair.probability;
      matching.pairs.push_back({i, j, beside[std::size_t(i)] == j ? response_right(i) : elsewhere});
    }
    for (const Index i : others.unmatched_responses) matching.unmatched_responses.push_back(responses[std::size_t(i)]);
    for (const Index j : others.unmatched_features) matching.unmatched_features.push_back(features[std::size_t(j)]);
  }
  sort_by_response(matching.pairs);
  return matching;
}

}  // namespace unshuffle
