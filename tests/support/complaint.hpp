// The library's messages about bad data.
#pragma once

#include <functional>
#include <string>

#include "unshuffle/core/error.hpp"
#include "unshuffle/core/wording.hpp"

namespace unshuffle {

/// The sentence of the error of that kind that `action` throws, as C++ writes options; empty when it throws none.
template <class Kind = Error>
std::string complaint(const std::function<void()>& action) {
  try {
    action();
  } catch (const Kind& error) {
    return in_terms_of(Dialect::cpp, error.what());
  }
  return "";
}

}  // namespace unshuffle
