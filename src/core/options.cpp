#include "unshuffle/core/options.hpp"

#include <fmt/format.h>

#include <charconv>

#include "unshuffle/core/error.hpp"
#include "unshuffle/core/wording.hpp"

namespace unshuffle {

namespace {

template <class Number>
std::optional<Number> parsed(const std::string& text) {
  Number number{};
  const char* end = text.data() + text.size();
  const auto [stop, failure] = std::from_chars(text.data(), end, number);
  return failure == std::errc{} && stop == end && !text.empty() ? std::optional(number) : std::nullopt;
}

[[noreturn]] void refuse(const OptionText& text, const OptionValue& value, std::string_view expected) {
  const std::string_view constraint = text.constraint.text;
  throw InvalidInput(fmt::format("{} = {} must be {}{}{}", option(text.name), text_of(value), expected,
                                 constraint.empty() ? "" : " ", constraint));
}

}  // namespace

std::string text_of(const OptionValue& value) {
  struct Texts {
    std::string operator()(bool on) const { return on ? "true" : "false"; }
    std::string operator()(std::int64_t number) const { return std::to_string(number); }
    std::string operator()(double number) const { return fmt::format("{}", number); }
    std::string operator()(const std::string& text) const { return text; }
    std::string operator()(const std::vector<double>& list) const { return fmt::format("{}", fmt::join(list, ",")); }
  };
  return std::visit(Texts{}, value);
}

namespace detail {

bool to_switch(const OptionText& text, const OptionValue& value) {
  if (const auto* on = std::get_if<bool>(&value)) return *on;
  if (const auto* word = std::get_if<std::string>(&value); word != nullptr) {
    if (*word == "true") return true;
    if (*word == "false") return false;
  }
  refuse(text, value, "true or false");
}

std::int64_t to_whole_number(const OptionText& text, const OptionValue& value, std::int64_t largest) {
  std::optional<std::int64_t> number;
  if (const auto* whole = std::get_if<std::int64_t>(&value)) number = *whole;
  if (const auto* word = std::get_if<std::string>(&value)) number = parsed<std::int64_t>(*word);
  if (const auto* real = std::get_if<double>(&value);
      real != nullptr && *real == std::trunc(*real) && std::abs(*real) < 9e15)
    number = static_cast<std::int64_t>(*real);
  if (!number || *number > largest || *number < -largest) refuse(text, value, "a whole number");
  return *number;
}

double to_number(const OptionText& text, const OptionValue& value) {
  std::optional<double> number;
  if (const auto* real = std::get_if<double>(&value)) number = *real;
  if (const auto* whole = std::get_if<std::int64_t>(&value)) number = static_cast<double>(*whole);
  if (const auto* word = std::get_if<std::string>(&value)) number = parsed<double>(*word);
  if (!number) refuse(text, value, "a number");
  return *number;
}

void refuse_word(const OptionText& text, const OptionValue& value, const std::vector<std::string>& words) {
  throw InvalidInput(
      fmt::format("{} = {} must be one of {}", option(text.name), text_of(value), fmt::join(words, ", ")));
}

void require(const OptionText& text, double value) {
  if (text.constraint.holds == nullptr || text.constraint.holds(value)) return;
  throw InvalidInput(fmt::format("{} = {} must be {}", option(text.name), value, text.constraint.text));
}

void refuse_unread(const OptionText& text) {
  throw InvalidInput(fmt::format("{} applies only with {}", option(text.name), text.read_with));
}

}  // namespace detail

}  // namespace unshuffle
