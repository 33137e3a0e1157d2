// What the library says about bad data.
#pragma once

#include <functional>
#include <string>

#include "unshuffle/core/error.hpp"

namespace unshuffle {

/// The sentence of the error that `action` throws; empty when it throws none.
inline std::string complaint(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace unshuffle
