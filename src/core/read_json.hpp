// JSON as text: read in one place, so that whatever is wrong with a file is told alike, and written in one.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "unshuffle/core/error.hpp"

namespace unshuffle {

/// How deep arrays and objects are nested; brackets within strings do not count.
[[nodiscard]] inline int nesting_of(std::string_view text) {
  int depth = 0, deepest = 0;
  bool in_string = false;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (in_string) {
      if (c == '\\') ++at;
      in_string = c != '"';
    } else if (c == '"') {
      in_string = true;
    } else if (c == '[' || c == '{') {
      deepest = std::max(deepest, ++depth);
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
  return deepest;
}

/// Throws BadData for what is not JSON, holds a number beyond all doubles, or is nested deeper than any file of ours:
/// values are copied and printed by recursion, for which the stack has room only so far.
template <class Json = nlohmann::json>
[[nodiscard]] Json read_json(const std::string& text, const std::string& source) {
  constexpr int deepest = 64;
  if (nesting_of(text) > deepest)
    throw BadData(
        fmt::format("{}: arrays and objects are nested more than {} deep; no file of unshuffle is", source, deepest));
  try {
    return Json::parse(text);
  } catch (const nlohmann::json::parse_error& error) {
    throw BadData(fmt::format("{}: not valid JSON at byte {}", source, error.byte));
  } catch (const nlohmann::json::out_of_range&) {
    throw BadData(fmt::format("{}: holds a number beyond the largest double", source));
  }
}

/// A key that must be there, as T; BadData naming it otherwise.
template <class T, class Json>
[[nodiscard]] T json_value(const Json& object, const char* key, const std::string& source) {
  const auto found = object.find(key);
  if (found == object.end()) throw BadData(fmt::format("{}: the key \"{}\" is missing", source, key));
  try {
    return found->template get<T>();
  } catch (const nlohmann::json::exception&) {
    throw BadData(fmt::format("{}: the key \"{}\" holds {}, which is not of the kind expected", source, key,
                              found->dump().substr(0, 40)));
  }
}

/// What was computed is not lost for the name of a folder: bytes that are no UTF-8 are replaced.
template <class Json>
[[nodiscard]] std::string json_text(const Json& json, int indent = -1) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace unshuffle
