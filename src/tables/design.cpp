#include "tables/design.hpp"
#include "core/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>

#include "tables/factor.hpp"
#include "unshuffle/core/error.hpp"

namespace unshuffle {
namespace {

using Words = std::vector<std::string>;

bool has(const Words& words, const std::string& word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

void add_once(Words& words, const std::string& word) {
  if (!has(words, word)) words.push_back(word);
}

Expression parsed(const FormulaFactor& factor) { return FormulaReader(factor.expression).expression(); }

[[noreturn]] void complain_of_no_column(const std::string& name, const Table& responses, const Table* features) {
  Words all;
  const auto listed = [&](const Table& table) {
    const Words names = table.names();
    all.insert(all.end(), names.begin(), names.end());
    return fmt::format("{} has {}", table.source, fmt::join(names, ", "));
  };
  std::string there = listed(responses);
  if (features != nullptr) there += "; " + listed(*features);
  throw BadData(fmt::format("formula: there is no column \"{}\"{}; {}", name, did_you_mean(name, all), there));
}

bool is_common_key(const std::string& name, const std::vector<GroupKey>& groups) {
  return std::any_of(groups.begin(), groups.end(),
                     [&](const GroupKey& key) { return key.response_column == name && key.feature_column == name; });
}

/// Whether a feature is a column of the response table; its rows are then linked with the responses.
bool is_of_responses(const std::string& name, const Table& responses, const Table* features,
                     const std::vector<GroupKey>& groups) {
  const bool left = responses.find(name) != nullptr;
  const bool right = features != nullptr && features->find(name) != nullptr;
  if (!left && !right) complain_of_no_column(name, responses, features);
  if (!left || !right) return left && features != nullptr;
  if (is_common_key(name, groups)) return false;
  throw BadData(
      fmt::format("formula: column \"{}\" is in both {} and {}; rename it in one of them, or make it a key with "
                  "--group {}",
                  name, responses.source, features->source, name));
}

void require_response(const std::string& name, const Table& responses, const Table* features) {
  if (responses.find(name) != nullptr) return;
  if (features != nullptr && features->find(name) != nullptr)
    throw BadData(fmt::format("formula: the response \"{}\" is in {}; give that table first", name, features->source));
  complain_of_no_column(name, responses, features);
}

/// A factor in a product of columns; a category with or without its reference.
struct ScopedFactor {
  std::size_t factor;
  bool reduced;
  auto operator<=>(const ScopedFactor&) const = default;
};
using ScopedTerm = std::vector<ScopedFactor>;

bool same(const ScopedTerm& a, const ScopedTerm& b) {
  return a.size() == b.size() && std::is_permutation(a.begin(), a.end(), b.begin());
}

/// The one factor by which `longer` exceeds `shorter`; none: they differ otherwise.
std::optional<std::size_t> extra_factor(const ScopedTerm& longer, const ScopedTerm& shorter) {
  if (longer.size() != shorter.size() + 1) return std::nullopt;
  std::optional<std::size_t> extra;
  for (std::size_t at = 0; at < longer.size(); ++at) {
    if (std::find(shorter.begin(), shorter.end(), longer[at]) != shorter.end()) continue;
    if (extra) return std::nullopt;
    extra = at;
  }
  return extra;
}

// A category's columns span the constant too, so that of  1 + A + A:B  some would add up to others. Every term is
// therefore split into products of reduced categories, those that earlier terms span are taken away, and what is left
// is put together again by  anything + anything:reduced = anything:full.
std::vector<ScopedTerm> put_together(std::vector<ScopedTerm> parts) {
  std::stable_sort(parts.begin(), parts.end(), [](const auto& a, const auto& b) { return a.size() < b.size(); });
  std::vector<ScopedTerm> made;
  for (const ScopedTerm& part : parts) {
    bool joined = false;
    for (std::size_t at = 0; at < made.size() && !joined; ++at) {
      const auto extra = extra_factor(part, made[at]);
      if (!extra || !part[*extra].reduced) continue;
      ScopedTerm full = part;
      full[*extra].reduced = false;
      made.erase(made.begin() + static_cast<std::ptrdiff_t>(at));
      made.push_back(std::move(full));
      made = put_together(std::move(made));
      joined = true;
    }
    if (!joined) made.push_back(part);
  }
  return made;
}

std::vector<ScopedTerm> split(const FormulaTerm& term, const std::vector<FittedFactor>& factors) {
  std::vector<ScopedTerm> parts{{}};
  for (const std::size_t factor : term) {
    const bool category = !factors[factor].levels.empty();
    std::vector<ScopedTerm> longer;
    for (const ScopedTerm& part : parts) {
      longer.push_back(part);
      longer.back().push_back({factor, category});
      if (category) longer.push_back(part);
    }
    parts = std::move(longer);
  }
  return parts;
}

/// Products whose columns are the columns of the formula.
std::vector<ScopedTerm> scoped_terms(const Formula& formula, const std::vector<FittedFactor>& factors) {
  std::vector<ScopedTerm> spanned, made;
  if (formula.intercept) spanned.push_back({});
  for (const FormulaTerm& term : formula.terms) {
    std::vector<ScopedTerm> parts = split(term, factors);
    std::erase_if(parts, [&](const ScopedTerm& part) {
      return std::any_of(spanned.begin(), spanned.end(), [&](const ScopedTerm& one) { return same(one, part); });
    });
    spanned.insert(spanned.end(), parts.begin(), parts.end());
    for (ScopedTerm& one : put_together(std::move(parts))) made.push_back(std::move(one));
  }
  return made;
}

Words names_of_product(const ScopedTerm& term, const Formula& formula, const std::vector<FittedFactor>& factors) {
  Words names{""};
  for (const auto& [factor, reduced] : term) {
    Words longer;
    for (const std::string& ending : endings_of(parsed(formula.factors[factor]), factors[factor], reduced))
      for (const std::string& name : names)
        longer.push_back((name.empty() ? "" : name + ":") + factors[factor].name + ending);
    names = std::move(longer);
  }
  return names;
}

bool is_of_responses(const ScopedTerm& term, const std::vector<FittedFactor>& factors) {
  return std::all_of(term.begin(), term.end(),
                     [&](const ScopedFactor& one) { return factors[one.factor].response_side; });
}

Index file_row(const KeptRows& rows, Index row) {
  return 1 + (rows.all ? row : rows.rows[static_cast<std::size_t>(row)]);
}

std::string cells_of(const Expression& factor, const Table& table, Index row) {
  Words cells;
  for (const std::string& name : columns_of(factor)) {
    const Column& column = table.column(name);
    std::string cell;
    if (column.numeric()) append_number(cell, column.numbers[static_cast<std::size_t>(row)]);
    cells.push_back(fmt::format("{} = {}", name, column.numeric() ? cell : column.text[static_cast<std::size_t>(row)]));
  }
  return fmt::format("{}", fmt::join(cells, ", "));
}

void require_known_levels(const FormulaTable& of, const Expression& factor, const FittedFactor& fitted) {
  const std::vector<Index> levels = levels_in(factor, fitted, of.table);
  const auto unseen = std::find(levels.begin(), levels.end(), -1);
  if (unseen == levels.end()) return;
  const Index row = unseen - levels.begin();
  throw BadData(fmt::format("{}, row {}: {}; the levels of {} are {}", of.table.source, file_row(of.rows, row),
                            cells_of(factor, of.table, row), fitted.name, fmt::join(fitted.levels, ", ")));
}

std::vector<Eigen::ArrayXd> checked_columns(const FormulaTable& of, const Expression& factor,
                                            const FittedFactor& fitted, bool reduced) {
  if (!fitted.levels.empty()) require_known_levels(of, factor, fitted);
  std::vector<Eigen::ArrayXd> made = columns_of(factor, fitted, reduced, of.table);
  for (const Eigen::ArrayXd& column : made) {
    for (Index row = 0; row < column.size(); ++row) {
      if (std::isfinite(column[row])) continue;
      throw BadData(fmt::format("{}, row {}: {} is {} ({}); a finite number was expected", of.table.source,
                                file_row(of.rows, row), fitted.name,
                                std::fabs(column[row]) > 0 ? fmt::format("{}", column[row]) : "no number",
                                cells_of(factor, of.table, row)));
    }
  }
  return made;
}

void require_one_table(const Formula& formula, const std::vector<FittedFactor>& factors, const Table& responses,
                       const Table& features) {
  for (const FormulaTerm& term : formula.terms) {
    Words names;
    for (const std::size_t factor : term) names.push_back(factors[factor].name);
    const bool first = factors[term.front()].response_side;
    if (std::all_of(term.begin(), term.end(), [&](std::size_t one) { return factors[one].response_side == first; }))
      continue;
    throw InvalidInput(
        fmt::format("formula: {} multiplies columns of {} and {}, whose rows are not linked; a term takes its columns "
                    "from one table",
                    fmt::join(names, ":"), responses.source, features.source));
  }
}

/// Of the response table, by the columns it uses; they are all in one table.
bool side_of(const Expression& factor, const FormulaColumns& used, const Table& responses, const Table& features) {
  const Words names = columns_of(factor);
  if (names.empty()) throw InvalidInput(fmt::format("formula: {} names no column", text_of(factor)));
  const bool first = has(used.x, names.front());
  if (std::all_of(names.begin(), names.end(), [&](const auto& name) { return has(used.x, name) == first; }))
    return first;
  throw InvalidInput(fmt::format(
      "formula: {} takes columns of {} and {}, whose rows are not linked; a function takes its columns from "
      "one table",
      text_of(factor), responses.source, features.source));
}

void use_columns(const Formula& formula, const std::vector<std::size_t>& factors, Words& categories,
                 const std::function<void(const std::string&)>& use) {
  for (const std::size_t at : factors) {
    const Expression factor = parsed(formula.factors[at]);
    for (const std::string& name : columns_of(factor)) {
      use(name);
      if (makes_category(factor)) add_once(categories, name);
    }
  }
}

std::vector<std::size_t> factors_of(const std::vector<FormulaTerm>& terms) {
  std::vector<std::size_t> factors;
  for (const FormulaTerm& term : terms)
    for (const std::size_t factor : term)
      if (std::find(factors.begin(), factors.end(), factor) == factors.end()) factors.push_back(factor);
  return factors;
}

/// Factors of terms, and of the offset.
std::vector<std::size_t> features_of(const Formula& formula) {
  std::vector<std::size_t> factors = factors_of(formula.terms);
  if (formula.offset) factors.push_back(*formula.offset);
  return factors;
}

}  // namespace

FormulaColumns columns_used(const Formula& formula, const Table& responses, const Table* features,
                            const std::vector<GroupKey>& groups) {
  FormulaColumns used;
  use_columns(formula, factors_of(formula.response), used.categories, [&](const std::string& name) {
    require_response(name, responses, features);
    add_once(used.response, name);
  });
  use_columns(formula, features_of(formula), used.categories, [&](const std::string& name) {
    add_once(is_of_responses(name, responses, features, groups) ? used.x : used.z, name);
  });
  return used;
}

FormulaColumns columns_used(const Formula& formula, const std::vector<FittedFactor>& factors) {
  FormulaColumns used;
  use_columns(formula, factors_of(formula.response), used.categories,
              [&](const std::string& name) { add_once(used.response, name); });
  for (const std::size_t at : features_of(formula)) {
    use_columns(formula, {at}, used.categories,
                [&](const std::string& name) { add_once(factors[at].response_side ? used.x : used.z, name); });
  }
  return used;
}

std::vector<FittedFactor> learn_factors(const Formula& formula, const FormulaColumns& used,
                                        const FormulaTable& responses, const FormulaTable* features) {
  std::vector<FittedFactor> factors(formula.factors.size());
  const auto learn = [&](std::size_t at, bool of_responses) {
    const FormulaTable& of = of_responses || features == nullptr ? responses : *features;
    factors[at] = learn_factor(parsed(formula.factors[at]), of.table);
    factors[at].name = formula.factors[at].name;
    factors[at].response_side = of_responses;
  };
  for (const std::size_t at : factors_of(formula.response)) {
    learn(at, true);
    if (!factors[at].levels.empty())
      throw BadData(fmt::format("{}: the response {} holds text; numbers were expected", responses.table.source,
                                factors[at].name));
    if (endings_of(parsed(formula.factors[at]), factors[at], false) != Words{""})
      throw InvalidInput(fmt::format("formula: {} has several columns; a response has one", factors[at].name));
  }
  for (const std::size_t at : features_of(formula)) {
    const Table& other = features == nullptr ? responses.table : features->table;
    learn(at, side_of(parsed(formula.factors[at]), used, responses.table, other));
  }
  if (formula.offset && !factors[*formula.offset].levels.empty())
    throw BadData(fmt::format("formula: {} holds text; numbers were expected", factors[*formula.offset].name));
  if (features != nullptr) require_one_table(formula, factors, responses.table, features->table);
  return factors;
}

void require_factors(const FittedFormula& fitted, const std::string& source) {
  Formula formula;
  try {
    formula = parse_formula(fitted.text, fitted.others);
  } catch (const InvalidInput& error) {
    throw BadData(fmt::format("{}: {}", source, error.what()));
  }
  bool same = formula.factors.size() == fitted.factors.size();
  for (std::size_t at = 0; same && at < fitted.factors.size(); ++at) {
    same = formula.factors[at].name == fitted.factors[at].name &&
           is_complete(parsed(formula.factors[at]), fitted.factors[at]);
  }
  if (!same) throw BadData(fmt::format("{}: \"factors\" are not those of the formula \"{}\"", source, fitted.text));
}

FormulaNames names_of(const Formula& formula, const std::vector<FittedFactor>& factors) {
  FormulaNames names;
  for (const FormulaTerm& term : formula.response) names.response.push_back(factors[term.front()].name);
  for (const ScopedTerm& term : scoped_terms(formula, factors)) {
    Words& of = is_of_responses(term, factors) ? names.x : names.z;
    for (std::string& name : names_of_product(term, formula, factors)) of.push_back(std::move(name));
  }
  if (formula.offset) names.offset = factors[*formula.offset].name;
  return names;
}

void add_columns(const FormulaTable& to, const Formula& formula, const std::vector<FittedFactor>& factors,
                 FormulaPart part) {
  std::vector<ScopedTerm> terms;
  if (part == FormulaPart::response) {
    for (const FormulaTerm& term : formula.response) terms.push_back({{term.front(), false}});
  } else if (part == FormulaPart::offset) {
    terms.push_back({{formula.offset.value(), false}});
  } else {
    terms = scoped_terms(formula, factors);
    std::erase_if(terms,
                  [&](const ScopedTerm& term) { return is_of_responses(term, factors) != (part == FormulaPart::x); });
  }
  std::vector<Column> made;
  for (const ScopedTerm& term : terms) {
    std::vector<Eigen::ArrayXd> products{Eigen::ArrayXd::Ones(to.table.rows)};
    for (const auto& [factor, reduced] : term) {
      std::vector<Eigen::ArrayXd> longer;
      for (const Eigen::ArrayXd& column :
           checked_columns(to, parsed(formula.factors[factor]), factors[factor], reduced))
        for (const Eigen::ArrayXd& product : products) longer.emplace_back(product * column);
      products = std::move(longer);
    }
    const Words names = names_of_product(term, formula, factors);
    for (std::size_t at = 0; at < names.size(); ++at) {
      made.push_back({.name = names[at], .numbers = {products[at].begin(), products[at].end()}});
      made.back().holds_numbers = true;
    }
  }
  for (Column& column : made) {
    const auto same_name = [&](const Column& other) { return other.name == column.name; };
    const auto old = std::find_if(to.table.columns.begin(), to.table.columns.end(), same_name);
    if (old == to.table.columns.end()) {
      to.table.columns.push_back(std::move(column));
    } else {
      column.text = std::move(old->text);
      *old = std::move(column);
    }
  }
}

}  // namespace unshuffle
