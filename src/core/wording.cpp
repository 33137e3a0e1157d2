#include "unshuffle/core/wording.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace unshuffle {
namespace {

// Bytes that no sentence, file name or column name contains.
constexpr char begin_mark = '\x01', value_mark = '\x02', end_mark = '\x03';

/// Python's name for an option: scikit-learn's where it has one.
std::string parameter_of(std::string_view name) { return std::string(name == "max_iterations" ? "max_iter" : name); }

std::string worded(Dialect dialect, std::string_view name, std::string_view value) {
  switch (dialect) {
    case Dialect::command_line:
      return value.empty() ? flag_of(name) : fmt::format("{} {}", flag_of(name), value);
    case Dialect::python:
      return value.empty() ? parameter_of(name) : fmt::format("{}=\"{}\"", parameter_of(name), value);
    case Dialect::cpp:
      break;
  }
  return value.empty() ? std::string(name) : fmt::format("{} = {}", name, value);
}

}  // namespace

std::string option(std::string_view name, std::string_view value) {
  if (value.empty()) return fmt::format("{}{}{}", begin_mark, name, end_mark);
  return fmt::format("{}{}{}{}{}", begin_mark, name, value_mark, value, end_mark);
}

std::string in_terms_of(Dialect dialect, std::string_view message) {
  std::string out, name, value;
  std::string* to = &out;  // where the next byte goes
  for (const char byte : message) {
    if (byte == begin_mark) {
      to = &name;
    } else if (byte == value_mark) {
      to = &value;
    } else if (byte == end_mark) {
      out += worded(dialect, name, value);
      name.clear();
      value.clear();
      to = &out;
    } else {
      *to += byte;
    }
  }
  return out;
}

std::string flag_of(std::string_view name) {
  std::string flag = fmt::format("--{}", name);
  std::replace(flag.begin(), flag.end(), '_', '-');
  return flag;
}

}  // namespace unshuffle
