// Options declared once.
//
// A struct of options describes its fields to a visitor, with name, help and constraint. Command-line flags, help, man
// page, completion, Python parameters, validation, rejection of options that have no effect, checkpoint keys and
// docs/options.md are all generated from that description:
//
//   struct Huber {
//     double threshold = 1.345;
//
//     template <class Self, class Visit>
//     static void describe(Self& self, Visit&& visit) {
//       visit(OptionText{"rr_threshold", "Residuals beyond this many noise standard deviations count as wrong links.",
//                        positive},
//             self.threshold);
//     }
//   };
#pragma once

#include <cmath>
#include <concepts>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

#include "unshuffle/core/export.hpp"
#include "unshuffle/core/types.hpp"

namespace unshuffle UNSHUFFLE_EXPORT {

/// An option's value as a front end has it: a switch, a whole number, a number, text, or a list of numbers.
using OptionValue = std::variant<bool, std::int64_t, double, std::string, std::vector<double>>;

/// What a number must satisfy, as a test and in words that complete "must be".
struct Constraint {
  const char* text = "";
  bool (*holds)(double) = nullptr;  ///< Null: anything.
};
inline constexpr Constraint positive{"> 0", [](double v) { return v > 0 && std::isfinite(v); }};
inline constexpr Constraint not_negative{"at least 0", [](double v) { return v >= 0 && std::isfinite(v); }};
inline constexpr Constraint at_least_one{"at least 1", [](double v) { return v >= 1 && std::isfinite(v); }};
inline constexpr Constraint proper_share{"above 0 and below 1", [](double v) { return v > 0 && v < 1; }};
inline constexpr Constraint share_or_zero{"at least 0 and below 1", [](double v) { return v >= 0 && v < 1; }};

struct OptionText {
  const char* name;  ///< As in Python; the flag has dashes for underscores.
  const char* help;  ///< One sentence or two.
  Constraint constraint{};
  bool read = true;            ///< Whether it has an effect, given the other options.
  const char* read_with = "";  ///< What it requires to have an effect; empty: nothing.
};

template <class Enum>
struct Word {
  const char* word;
  Enum value;
};

/// Enumerations with a function words_of(Enum), which lists their words.
template <class Enum>
concept Worded = std::is_enum_v<Enum> && requires(Enum value) {
  words_of(value);
};

template <Worded Enum>
[[nodiscard]] const char* name_of(Enum value) {
  for (const auto& [word, meaning] : words_of(value)) {
    if (meaning == value) return word;
  }
  return "";
}

/// Describes the options of several structs, one after the other.
template <class Visit, class... Options>
void describe_each(Visit&& visit, Options&... options) {
  (std::remove_const_t<Options>::describe(options, visit), ...);
}

/// Describes an option independently of its struct.
struct OptionInfo {
  std::string name;
  std::string help;
  std::string kind;                ///< "switch", "whole number", "number", "word", "list".
  std::string constraint;          ///< As in Constraint; empty: any value of its kind.
  std::vector<std::string> words;  ///< The allowed values of a word.
  OptionValue standard;            ///< Its default.
};

/// A default or a value as text that parses back to the same value.
[[nodiscard]] std::string text_of(const OptionValue& value);

namespace detail {

[[nodiscard]] bool to_switch(const OptionText& text, const OptionValue& value);
[[nodiscard]] std::int64_t to_whole_number(const OptionText& text, const OptionValue& value, std::int64_t largest);
[[nodiscard]] double to_number(const OptionText& text, const OptionValue& value);
[[noreturn]] void refuse_word(const OptionText& text, const OptionValue& value, const std::vector<std::string>& words);
/// Throws InvalidInput `name = value must be ...` unless the constraint holds.
void require(const OptionText& text, double value);
[[noreturn]] void refuse_unread(const OptionText& text);

template <Worded Enum>
std::vector<std::string> words_of_type() {
  std::vector<std::string> words;
  for (const auto& one : words_of(Enum{})) words.emplace_back(one.word);
  return words;
}

template <class T>
concept SelfDescribing = requires(T field, const OptionText& text, const OptionValue& value) {
  field.assign(text, value);
  { field.value() } -> std::convertible_to<OptionValue>;
  { T::words() } -> std::convertible_to<std::vector<std::string>>;
};

template <class T>
OptionValue value_of(const T& field) {
  if constexpr (std::same_as<T, bool> || std::floating_point<T>) {
    return field;
  } else if constexpr (Worded<T>) {
    return std::string(name_of(field));
  } else if constexpr (std::integral<T>) {
    return static_cast<std::int64_t>(field);
  } else {
    static_assert(SelfDescribing<T>);
    return field.value();
  }
}

template <class T>
void assign(T& field, const OptionText& text, const OptionValue& value) {
  if constexpr (std::same_as<T, bool>) {
    field = to_switch(text, value);
  } else if constexpr (Worded<T>) {
    const auto* word = std::get_if<std::string>(&value);
    for (const auto& one : words_of(T{})) {
      if (word != nullptr && *word == one.word) {
        field = one.value;
        return;
      }
    }
    refuse_word(text, value, words_of_type<T>());
  } else if constexpr (std::integral<T>) {
    field = static_cast<T>(to_whole_number(text, value, std::numeric_limits<T>::max()));
  } else if constexpr (std::floating_point<T>) {
    field = to_number(text, value);
  } else {
    field.assign(text, value);
  }
  if constexpr (std::is_arithmetic_v<T> && !std::same_as<T, bool>) require(text, static_cast<double>(field));
}

template <class T>
OptionInfo info_of(const OptionText& text, const T& field) {
  OptionInfo info{text.name, text.help, "number", text.constraint.text, {}, value_of(field)};
  if constexpr (std::same_as<T, bool>) {
    info.kind = "switch";
  } else if constexpr (Worded<T>) {
    info.kind = "word";
    info.words = words_of_type<T>();
  } else if constexpr (std::integral<T>) {
    info.kind = "whole number";
  } else if constexpr (!std::floating_point<T>) {
    info.kind = "word";
    info.words = T::words();
  }
  return info;
}

}  // namespace detail

/// All options of a struct with their defaults, in the order of their description.
template <class Options>
[[nodiscard]] std::vector<OptionInfo> describe_options() {
  const Options standard;
  std::vector<OptionInfo> infos;
  Options::describe(standard,
                    [&](const OptionText& text, const auto& field) { infos.push_back(detail::info_of(text, field)); });
  return infos;
}

/// Sets the option of that name; returns whether it exists. The text "auto" resets any option to its default. Throws
/// InvalidInput naming the option, the value and what was expected.
template <class Options>
bool set_option(Options& options, std::string_view name, const OptionValue& value) {
  bool found = false;
  const auto* word = std::get_if<std::string>(&value);
  const bool reset = word != nullptr && *word == "auto";
  Options standard;
  Options::describe(options, [&](const OptionText& text, auto& field) {
    if (text.name != name) return;
    found = true;
    if (!reset) return detail::assign(field, text, value);
    Options::describe(standard, [&](const OptionText& other, auto& same) {
      if constexpr (std::same_as<std::decay_t<decltype(same)>, std::decay_t<decltype(field)>>) {
        if (std::string_view(other.name) == text.name) field = same;
      }
    });
  });
  return found;
}

/// Throws InvalidInput for a value that violates its constraint (defaults may: they can mark a value that was not
/// given), and for an option in `given` that has no effect with the other options.
template <class Options>
void validate_options(const Options& options, const std::vector<std::string>& given = {}) {
  const std::vector<OptionInfo> standard = describe_options<Options>();
  std::size_t place = 0;
  Options::describe(options, [&](const OptionText& text, const auto& field) {
    using T = std::decay_t<decltype(field)>;
    const bool changed = detail::value_of(field) != standard[place++].standard;
    if constexpr (std::is_arithmetic_v<T> && !std::same_as<T, bool>) {
      if (changed) detail::require(text, static_cast<double>(field));
    }
    if (changed && !text.read) detail::refuse_unread(text);
    for (const std::string& name : given) {
      if (name == text.name && !text.read) detail::refuse_unread(text);
    }
  });
}

/// Names of the options that have no effect with the others.
template <class Options>
[[nodiscard]] std::vector<std::string> unread_options(const Options& options) {
  std::vector<std::string> names;
  Options::describe(options, [&](const OptionText& text, const auto&) {
    if (!text.read) names.emplace_back(text.name);
  });
  return names;
}

/// Every option by name with its value, in the order of their description.
template <class Options>
[[nodiscard]] std::vector<std::pair<std::string, OptionValue>> option_values(const Options& options) {
  std::vector<std::pair<std::string, OptionValue>> values;
  Options::describe(options, [&](const OptionText& text, const auto& field) {
    values.emplace_back(text.name, detail::value_of(field));
  });
  return values;
}

}  // namespace unshuffle
