#include "tables/expression.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>

#include "core/text.hpp"
#include "unshuffle/core/error.hpp"

namespace unshuffle {
namespace {

using Array = Eigen::ArrayXd;
using Kind = Expression::Kind;

constexpr std::array comparisons{"==", "!=", "<=", ">=", "<", ">"};

bool begins_name(char c) {
  return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_' || static_cast<unsigned char>(c) >= 0x80;
}

bool continues_name(char c) { return begins_name(c) || std::isdigit(static_cast<unsigned char>(c)) != 0 || c == '.'; }

bool is_plain_name(std::string_view name) {
  return !name.empty() && begins_name(name.front()) && std::all_of(name.begin(), name.end(), continues_name);
}

std::size_t characters(std::string_view text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
}

/// As Python prints it: 3, 3.0, 1e-05.
std::string python_number(std::string_view text) {
  if (text.find_first_not_of("0123456789") == std::string_view::npos) return std::string(text);
  std::string written = fmt::format("{}", parse_number(text).value());
  return written.find_first_of(".en") == std::string::npos ? written + ".0" : written;
}

/// How strongly an expression holds its parts together.
int strength(const Expression& expression) {
  if (expression.kind == Kind::sign) return 4;
  if (expression.kind != Kind::operation) return 6;
  if (expression.word == "+" || expression.word == "-") return 2;
  if (expression.word == "*" || expression.word == "/") return 3;
  return expression.word == "**" ? 5 : 1;
}

std::string in_brackets(const Expression& expression, int least) {
  const std::string text = text_of(expression);
  return strength(expression) < least ? "(" + text + ")" : text;
}

std::string operation_text(const Expression& expression) {
  const int own = strength(expression);
  const bool power = expression.word == "**";
  return fmt::format("{} {} {}", in_brackets(expression.parts[0], power ? own + 1 : own), expression.word,
                     in_brackets(expression.parts[1], power ? own : own + 1));
}

std::string joined_parts(const Expression& expression) {
  std::vector<std::string> parts;
  for (std::size_t at = 0; at < expression.parts.size(); ++at) {
    const bool named = at < expression.keywords.size() && !expression.keywords[at].empty();
    parts.push_back((named ? expression.keywords[at] + "=" : "") + text_of(expression.parts[at]));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

struct NumberFunction {
  const char* name;
  double (*of)(double);
};

constexpr std::array<NumberFunction, 14> number_functions{{
    {"log", std::log},
    {"exp", std::exp},
    {"sqrt", std::sqrt},
    {"log10", std::log10},
    {"log2", std::log2},
    {"log1p", std::log1p},
    {"expm1", std::expm1},
    {"exp10", [](double x) { return std::pow(10.0, x); }},
    {"exp2", std::exp2},
    {"abs", std::fabs},
    {"sin", std::sin},
    {"cos", std::cos},
    {"floor", std::floor},
    {"ceil", std::ceil},
}};

std::string without_numpy(const std::string& name) { return name.starts_with("np.") ? name.substr(3) : name; }

[[noreturn]] void complain_of_function(const std::string& name) {
  std::vector<std::string> known;
  for (const NumberFunction& one : number_functions) known.push_back(fmt::format("{}()", one.name));
  throw InvalidInput(
      fmt::format("formula: there is no function {}(); there are {}, I(), and at the beginning of a term C(), bs(), "
                  "poly(), center() and scale()",
                  name, fmt::join(known, ", ")));
}

Array call_values(const Expression& call, const Table& table) {
  const std::string name = without_numpy(call.word);
  if (call.parts.size() != 1 || !call.keywords.front().empty())
    throw InvalidInput(
        fmt::format("formula: {} has {} arguments; {}() takes one", text_of(call), call.parts.size(), name));
  if (name == "I") return values_of(call.parts.front(), table);
  const auto function = std::find_if(number_functions.begin(), number_functions.end(),
                                     [&](const NumberFunction& one) { return one.name == name; });
  if (function == number_functions.end()) complain_of_function(call.word);
  return values_of(call.parts.front(), table).unaryExpr(function->of);
}

double compared(const std::string& word, double a, double b) {
  if (word == "==") return a == b ? 1 : 0;
  if (word == "!=") return a != b ? 1 : 0;
  if (word == "<=") return a <= b ? 1 : 0;
  if (word == ">=") return a >= b ? 1 : 0;
  return (word == "<" ? a < b : a > b) ? 1 : 0;
}

/// A column of text held against a text.
Array text_comparison(const Expression& operation, const Table& table) {
  const bool text_first = operation.parts[0].kind == Kind::text;
  const Expression& other = operation.parts[text_first ? 1 : 0];
  if (other.kind != Kind::column || (operation.word != "==" && operation.word != "!="))
    throw InvalidInput(
        fmt::format("formula: {}: text can be compared with a column by == and != only", text_of(operation)));
  const Column& column = table.column(other.word);
  if (column.text.empty())
    throw BadData(fmt::format("{}: column \"{}\" holds numbers; {} compares it with text", table.source, column.name,
                              text_of(operation)));
  const std::string& wanted = operation.parts[text_first ? 0 : 1].word;
  Array values(table.rows);
  for (Index row = 0; row < table.rows; ++row) {
    const bool equal = column.text[static_cast<std::size_t>(row)] == wanted;
    values[row] = equal == (operation.word == "==") ? 1 : 0;
  }
  return values;
}

Array operation_values(const Expression& operation, const Table& table) {
  const bool text = operation.parts[0].kind == Kind::text || operation.parts[1].kind == Kind::text;
  if (text) return text_comparison(operation, table);
  const Array left = values_of(operation.parts[0], table), right = values_of(operation.parts[1], table);
  const std::string& word = operation.word;
  if (word == "+") return left + right;
  if (word == "-") return left - right;
  if (word == "*") return left * right;
  if (word == "/") return left / right;
  if (word == "**") return left.binaryExpr(right, [](double a, double b) { return std::pow(a, b); });
  return left.binaryExpr(right, [&](double a, double b) { return compared(word, a, b); });
}

}  // namespace

std::size_t FormulaReader::place() {
  while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_])) != 0) ++at_;
  return at_;
}

bool FormulaReader::at_end() { return place() == text_.size(); }

bool FormulaReader::sees(std::string_view word) { return text_.substr(place()).starts_with(word); }

bool FormulaReader::take(std::string_view word) {
  if (!sees(word)) return false;
  at_ += word.size();
  return true;
}

bool FormulaReader::take_dot() {
  const bool number = place() + 1 < text_.size() && std::isdigit(static_cast<unsigned char>(text_[at_ + 1])) != 0;
  return !number && take(".");
}

void FormulaReader::expect(std::string_view word, std::string_view after) {
  if (!take(word)) complain(place(), fmt::format("\"{}\" was expected after {}", word, after));
}

void FormulaReader::complain(std::size_t place, std::string_view problem) const {
  std::string line(text_);
  for (char& c : line)
    if (static_cast<unsigned char>(c) < 0x20) c = ' ';
  const std::size_t before = characters(text_.substr(0, place));
  throw InvalidInput(
      fmt::format("formula, character {}: {}\n    {}\n    {}^", before + 1, problem, line, std::string(before, ' ')));
}

Expression FormulaReader::number() {
  const std::size_t begin = place();
  while (at_ < text_.size() && (std::isdigit(static_cast<unsigned char>(text_[at_])) != 0 || text_[at_] == '.')) ++at_;
  const bool exponent = at_ + 1 < text_.size() && (text_[at_] == 'e' || text_[at_] == 'E');
  if (exponent) {
    ++at_;
    if (text_[at_] == '-' || text_[at_] == '+') ++at_;
    while (at_ < text_.size() && std::isdigit(static_cast<unsigned char>(text_[at_])) != 0) ++at_;
  }
  const std::string_view word = text_.substr(begin, at_ - begin);
  const bool joined = at_ < text_.size() && begins_name(text_[at_]);
  if (joined || !parse_number(word))
    complain(begin, "this is neither a number nor a name; a name that begins with a digit stands in backquotes");
  return {Kind::number, python_number(word)};
}

Expression FormulaReader::quoted(char quote, Kind kind) {
  const std::size_t begin = place();
  const std::size_t end = text_.find(quote, begin + 1);
  if (end == std::string_view::npos) complain(begin, fmt::format("this {} is not closed", quote));
  at_ = end + 1;
  return {kind, std::string(text_.substr(begin + 1, end - begin - 1))};
}

std::vector<Expression> FormulaReader::list() {
  std::vector<Expression> parts;
  if (take("]")) return parts;
  do {
    parts.push_back(expression());
  } while (take(","));
  expect("]", "the list");
  return parts;
}

Expression FormulaReader::call(std::string name) {
  Expression made{Kind::call, std::move(name)};
  if (take(")")) return made;
  do {
    std::string keyword;
    const std::size_t begin = place();
    std::size_t end = begin;
    while (end < text_.size() && continues_name(text_[end])) ++end;
    std::size_t after = end;
    while (after < text_.size() && text_[after] == ' ') ++after;
    const std::string_view rest = text_.substr(after);
    if (end > begin && rest.starts_with('=') && !rest.starts_with("==")) {
      keyword = text_.substr(begin, end - begin);
      at_ = after + 1;
    }
    made.keywords.push_back(keyword);
    made.parts.push_back(expression());
  } while (take(","));
  expect(")", fmt::format("the arguments of {}()", made.word));
  return made;
}

Expression FormulaReader::operand() {
  const std::size_t begin = place();
  if (at_end()) complain(begin, "the formula ends where a column or a function was expected");
  const char first = text_[at_];
  if (std::isdigit(static_cast<unsigned char>(first)) != 0 || first == '.') return number();
  if (first == '`') return quoted('`', Kind::column);
  if (first == '\'' || first == '"') return quoted(first, Kind::text);
  if (take("[")) return {Kind::list, "", list()};
  if (!begins_name(first)) complain(begin, fmt::format("a column or a function was expected, not \"{}\"", first));
  while (at_ < text_.size() && continues_name(text_[at_])) ++at_;
  std::string name(text_.substr(begin, at_ - begin));
  if (take("(")) return call(std::move(name));
  return {Kind::column, std::move(name)};
}

Expression FormulaReader::expression() {
  constexpr int deepest = 50;
  if (++depth_ > deepest) complain(place(), fmt::format("this is nested more than {} deep", deepest));
  Expression made = comparison();
  --depth_;
  return made;
}

Expression FormulaReader::comparison() {
  Expression left = sum();
  for (const char* word : comparisons) {
    if (!take(word)) continue;
    return {Kind::operation, word, {std::move(left), sum()}};
  }
  return left;
}

Expression FormulaReader::sum() {
  Expression left = product();
  for (;;) {
    const char* word = take("+") ? "+" : take("-") ? "-" : nullptr;
    if (word == nullptr) return left;
    left = {Kind::operation, word, {std::move(left), product()}};
  }
}

Expression FormulaReader::product() {
  Expression left = signed_power();
  for (;;) {
    const char* word = take("*") ? "*" : take("/") ? "/" : nullptr;
    if (word == nullptr) return left;
    left = {Kind::operation, word, {std::move(left), signed_power()}};
  }
}

Expression FormulaReader::signed_power() {
  for (const char* sign : {"-", "+"}) {
    if (!take(sign)) continue;
    constexpr int most = 50;
    if (++depth_ > most) complain(place(), "too many signs in a row");
    Expression made{Kind::sign, sign, {signed_power()}};
    --depth_;
    return made;
  }
  Expression base{Kind::number};
  if (take("(")) {
    base = expression();
    expect(")", "what is in brackets");
  } else {
    base = operand();
  }
  if (!take("**") && !take("^")) return base;
  return {Kind::operation, "**", {std::move(base), signed_power()}};
}

std::string text_of(const Expression& expression) {
  switch (expression.kind) {
    case Kind::column:
      return is_plain_name(expression.word) ? expression.word : "`" + expression.word + "`";
    case Kind::text:
      return expression.word.find('\'') == std::string::npos ? "'" + expression.word + "'"
                                                             : '"' + expression.word + '"';
    case Kind::list:
      return "[" + joined_parts(expression) + "]";
    case Kind::call:
      return expression.word + "(" + joined_parts(expression) + ")";
    case Kind::sign:
      return expression.word + in_brackets(expression.parts.front(), strength(expression));
    case Kind::operation:
      return operation_text(expression);
    default:
      return expression.word;
  }
}

std::string name_of(const Expression& expression) {
  return expression.kind == Kind::column ? expression.word : text_of(expression);
}

std::vector<std::string> columns_of(const Expression& expression) {
  if (expression.kind == Kind::column) return {expression.word};
  constexpr std::array<std::string_view, 3> with_settings{"C", "bs", "poly"};
  const bool settings = expression.kind == Kind::call &&
                        std::find(with_settings.begin(), with_settings.end(), expression.word) != with_settings.end();
  std::vector<std::string> names;
  for (const Expression& part : expression.parts) {
    if (settings && &part != &expression.parts.front()) break;
    for (const std::string& name : columns_of(part))
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  return names;
}

Eigen::ArrayXd values_of(const Expression& expression, const Table& table) {
  switch (expression.kind) {
    case Kind::number:
      return Array::Constant(table.rows, parse_number(expression.word).value());
    case Kind::column:
      return Eigen::Map<const Array>(table.numbers(expression.word).data(), table.rows);
    case Kind::call:
      return call_values(expression, table);
    case Kind::sign:
      if (expression.word == "-") return -values_of(expression.parts.front(), table);
      return values_of(expression.parts.front(), table);
    case Kind::operation:
      return operation_values(expression, table);
    default:
      throw InvalidInput(fmt::format("formula: {} is no number", text_of(expression)));
  }
}

bool is_comparison(const Expression& expression) {
  if (expression.kind == Kind::call && expression.word == "I" && expression.parts.size() == 1)
    return is_comparison(expression.parts.front());
  return expression.kind == Kind::operation && strength(expression) == 1;
}

}  // namespace unshuffle
