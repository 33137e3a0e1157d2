#include "unshuffle/tables/formula.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "tables/expression.hpp"

namespace unshuffle {
namespace {

using Terms = std::vector<FormulaTerm>;

constexpr std::size_t most_terms = 1000;

bool same_factors(const FormulaTerm& a, const FormulaTerm& b) {
  return a.size() == b.size() && std::is_permutation(a.begin(), a.end(), b.begin());
}

void add(Terms& terms, const FormulaTerm& term) {
  const bool known = std::any_of(terms.begin(), terms.end(), [&](const auto& one) { return same_factors(one, term); });
  if (!known) terms.push_back(term);
}

void add_all(Terms& terms, const Terms& others) {
  for (const FormulaTerm& term : others) add(terms, term);
}

void remove_all(Terms& terms, const Terms& others) {
  for (const FormulaTerm& term : others)
    std::erase_if(terms, [&](const FormulaTerm& one) { return same_factors(one, term); });
}

FormulaTerm product_of(FormulaTerm a, const FormulaTerm& b) {
  for (const std::size_t factor : b)
    if (std::find(a.begin(), a.end(), factor) == a.end()) a.push_back(factor);
  return a;
}

Terms products_of(const Terms& left, const Terms& right) {
  Terms made;
  for (const FormulaTerm& a : left)
    for (const FormulaTerm& b : right) add(made, product_of(a, b));
  return made;
}

/// left / right: the terms of `right` within each combination of those of `left`.
Terms nested(Terms left, const Terms& right) {
  FormulaTerm all;
  for (const FormulaTerm& term : left) all = product_of(all, term);
  for (const FormulaTerm& term : right) add(left, product_of(all, term));
  return left;
}

class FormulaParser {
 public:
  FormulaParser(const std::string& text, const std::vector<std::string>& others) : reader_(text), others_(others) {}

  Formula read() {
    read_response();
    Terms terms{{}};  // the intercept is there unless it is taken away
    read_sum(terms);
    if (!reader_.at_end()) complain_of_rest();
    formula_.intercept = std::any_of(terms.begin(), terms.end(), [](const auto& term) { return term.empty(); });
    std::erase_if(terms, [](const FormulaTerm& term) { return term.empty(); });
    std::stable_sort(terms.begin(), terms.end(), [](const auto& a, const auto& b) { return a.size() < b.size(); });
    formula_.terms = std::move(terms);
    return std::move(formula_);
  }

  [[nodiscard]] bool has_dot() const { return has_dot_; }

 private:
  void read_response() {
    const std::size_t begin = reader_.place();
    if (reader_.sees("~")) reader_.complain(begin, "the response was expected before ~, as in \"wage ~ age\"");
    Terms response;
    read_sum(response);
    if (!reader_.take("~")) complain_of_rest();
    if (response.empty()) reader_.complain(begin, "the response was expected before ~, as in \"wage ~ age\"");
    for (const FormulaTerm& term : response)
      if (term.size() != 1)
        reader_.complain(begin, "a response is a column, or a function of columns; several are added");
    formula_.response = std::move(response);
    if (reader_.at_end()) reader_.complain(reader_.place(), "features were expected after ~");
  }

  [[noreturn]] void complain_of_rest() {
    const std::size_t place = reader_.place();
    if (reader_.at_end()) reader_.complain(place, "~ was expected between the response and the features");
    if (reader_.sees("~")) reader_.complain(place, "a second ~; a formula has one, between response and features");
    if (reader_.sees("|")) reader_.complain(place, "| has no meaning here; rows that may match are grouped by --group");
    if (reader_.sees(")")) reader_.complain(place, "this bracket was never opened");
    reader_.complain(place, "an operator was expected here: + - : * / ^ or %in%");
  }

  /// Alone between signs: + 0 takes the intercept away, - 0 brings it back.
  bool take_zero() {
    FormulaReader ahead = reader_;
    if (!ahead.take("0")) return false;
    const bool alone = ahead.at_end() || ahead.sees("+") || ahead.sees("-") || ahead.sees(")") || ahead.sees("~");
    if (alone) reader_ = ahead;
    return alone;
  }

  void read_sum(Terms& terms) {
    bool minus = reader_.take("-");
    if (!minus) reader_.take("+");
    for (;;) {
      if (take_zero()) {
        minus ? add(terms, {}) : remove_all(terms, {{}});
      } else {
        minus ? remove_all(terms, product()) : add_all(terms, product());
      }
      minus = reader_.take("-");
      if (!minus && !reader_.take("+")) return;
    }
  }

  Terms product() {
    Terms left = interaction();
    for (;;) {
      if (reader_.take("*")) {
        const Terms right = operand();
        const Terms both = products_of(left, right);
        add_all(left, right);
        add_all(left, both);
      } else if (reader_.take("/")) {
        left = nested(std::move(left), operand());
      } else if (reader_.take("%in%")) {
        left = nested(operand(), left);
      } else {
        return left;
      }
      require_few(left);
    }
  }

  /// The right side of an operator of products.
  Terms operand() {
    ++operands_;
    Terms right = interaction();
    --operands_;
    return right;
  }

  Terms interaction() {
    Terms left = power();
    while (reader_.take(":")) {
      ++operands_;
      left = products_of(left, power());
      --operands_;
    }
    return left;
  }

  Terms power() {
    const Terms base = atom();
    if (!reader_.take("**") && !reader_.take("^")) return base;
    const std::size_t place = reader_.place();
    const Expression times = reader_.at_end() ? Expression{Expression::Kind::text} : reader_.operand();
    constexpr const char* powers = "23456789";
    const bool whole = times.kind == Expression::Kind::number && times.word.size() == 1;
    if (times.word == "1" && whole) return base;
    if (!whole || std::string_view(powers).find(times.word) == std::string_view::npos)
      reader_.complain(place,
                       "a power of terms is a number from 1 to 9; powers of numbers stand in I(), as in I(age ** 2)");
    Terms made = base;
    for (int k = 1; k < times.word.front() - '0'; ++k) {
      made = products_of(made, base);
      require_few(made);
    }
    return made;
  }

  Terms atom() {
    const std::size_t place = reader_.place();
    if (reader_.take("(")) return bracket(place);
    if (reader_.take("{")) {
      const Expression inside = reader_.expression();
      reader_.expect("}", "what is in braces");
      return {{factor(inside)}};
    }
    if (reader_.take_dot()) return all_others();
    const Expression one = reader_.operand();
    if (one.kind == Expression::Kind::number && one.word == "1") return {{}};
    if (one.kind == Expression::Kind::number)
      reader_.complain(place, "a number other than 0 and 1 is no term; numbers stand in I(), as in I(2 * age)");
    if (one.kind != Expression::Kind::column && one.kind != Expression::Kind::call)
      reader_.complain(place, "a column or a function was expected");
    if (one.kind == Expression::Kind::call && one.word == "offset") return offset(one, place);
    return {{factor(one)}};
  }

  /// No term: nothing is estimated of it.
  Terms offset(const Expression& call, std::size_t place) {
    const bool alone = depth_ == 0 && operands_ == 0 && (reader_.at_end() || reader_.sees("+") || reader_.sees("-"));
    if (!alone) reader_.complain(place, "offset() is added to the others and not part of a product or a bracket");
    if (formula_.offset) reader_.complain(place, "a second offset(); add the two inside one: offset(a + b)");
    if (call.parts.size() != 1 || !call.keywords.front().empty())
      reader_.complain(place, "offset(column) or offset(log(column)) was expected");
    formula_.offset = formula_.factors.size();
    formula_.factors.push_back({name_of(call), text_of(call.parts.front())});
    return {};
  }

  Terms bracket(std::size_t place) {
    constexpr int deepest = 50;
    if (++depth_ > deepest) reader_.complain(place, fmt::format("brackets more than {} deep", deepest));
    Terms inside;
    read_sum(inside);
    if (!reader_.take(")"))
      reader_.complain(reader_.at_end() ? place : reader_.place(),
                       reader_.at_end() ? "this bracket is not closed" : "an operator or ) was expected here");
    --depth_;
    return inside;
  }

  Terms all_others() {
    has_dot_ = true;
    Terms terms;
    for (const std::string& name : others_) terms.push_back({factor({Expression::Kind::column, name})});
    return terms;
  }

  std::size_t factor(const Expression& expression) {
    std::vector<FormulaFactor>& factors = formula_.factors;
    const std::string name = name_of(expression);
    for (std::size_t at = 0; at < factors.size(); ++at)
      if (factors[at].name == name) return at;
    factors.push_back({name, text_of(expression)});
    return factors.size() - 1;
  }

  void require_few(const Terms& terms) {
    if (terms.size() > most_terms)
      reader_.complain(reader_.place(), fmt::format("this makes more than {} terms", most_terms));
  }

  FormulaReader reader_;
  const std::vector<std::string>& others_;
  Formula formula_;
  bool has_dot_ = false;
  int depth_ = 0;
  int operands_ = 0;  ///< Operators of products to the left.
};

}  // namespace

Formula parse_formula(const std::string& text, const std::vector<std::string>& others) {
  return FormulaParser(text, others).read();
}

bool asks_for_all_columns(const std::string& text) {
  const std::vector<std::string> none;
  FormulaParser parser(text, none);
  (void)parser.read();
  return parser.has_dot();
}

}  // namespace unshuffle
