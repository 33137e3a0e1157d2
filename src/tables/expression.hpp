// Expressions inside formulas: log(income + 1), C(region), I(x ** 2).
#pragma once

#include <Eigen/Core>
#include <string>
#include <string_view>
#include <vector>

#include "unshuffle/tables/table.hpp"

namespace unshuffle {

struct Expression {
  enum class Kind {
    number,
    text,
    column,
    list,
    call,       ///< `word` of `parts`
    sign,       ///< `word` before the only part
    operation,  ///< `word` between two parts
  };
  Kind kind;
  std::string word{};
  std::vector<Expression> parts{};
  std::vector<std::string> keywords{};  ///< Of a call's parts; empty where there is none.
};

/// Reads a text from left to right and complains of what it does not expect.
class FormulaReader {
 public:
  explicit FormulaReader(std::string_view text) : text_(text) {}

  [[nodiscard]] std::size_t place();  ///< Of what comes next, beyond white space.
  [[nodiscard]] bool at_end();
  [[nodiscard]] bool sees(std::string_view word);
  /// Goes beyond the word if it comes next.
  bool take(std::string_view word);
  /// A dot that begins no number.
  bool take_dot();
  void expect(std::string_view word, std::string_view after);

  /// A column, a number, a call or anything in brackets.
  [[nodiscard]] Expression operand();
  [[nodiscard]] Expression expression();

  /// Throws InvalidInput with the text and a caret below the place.
  [[noreturn]] void complain(std::size_t place, std::string_view problem) const;

 private:
  [[nodiscard]] Expression comparison();
  [[nodiscard]] Expression sum();
  [[nodiscard]] Expression product();
  [[nodiscard]] Expression signed_power();
  [[nodiscard]] Expression number();
  [[nodiscard]] Expression quoted(char quote, Expression::Kind kind);
  [[nodiscard]] Expression call(std::string name);
  [[nodiscard]] std::vector<Expression> list();

  std::string_view text_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

/// A column without backquotes around it, everything else as Python would write it.
[[nodiscard]] std::string name_of(const Expression& expression);

/// With backquotes where a column needs them.
[[nodiscard]] std::string text_of(const Expression& expression);

/// The names of the columns it uses, each once.
[[nodiscard]] std::vector<std::string> columns_of(const Expression& expression);

/// The number of every row. Throws BadData for a column without numbers, InvalidInput for what has no value.
[[nodiscard]] Eigen::ArrayXd values_of(const Expression& expression, const Table& table);

/// Whether its values are true or false.
[[nodiscard]] bool is_comparison(const Expression& expression);

}  // namespace unshuffle
