// Bad input throws at the boundary, in one sentence that names the thing, its value and what was expected.
// Numerical failure never throws: it is a status in the result.
#pragma once

#include <stdexcept>

#include "unshuffle/core/export.hpp"

namespace unshuffle UNSHUFFLE_EXPORT {

/// Base of everything this library throws; `exit_code` is what the command line returns for it.
class Error : public std::runtime_error {
 public:
  Error(const std::string& message, int exit_code) : std::runtime_error(message), exit_code_(exit_code) {}
  [[nodiscard]] int exit_code() const noexcept { return exit_code_; }

 private:
  int exit_code_;
};

/// An option or argument is invalid: `epsilon = -1 must be > 0`.
class InvalidInput : public Error {
 public:
  explicit InvalidInput(const std::string& message) : Error(message, 2) {}
};

/// The data cannot be used: `features.csv:17: column "age" holds "n/a"; a number was expected`.
class BadData : public Error {
 public:
  explicit BadData(const std::string& message) : Error(message, 3) {}
};

/// Files, disk or memory failed.
class SystemFailure : public Error {
 public:
  explicit SystemFailure(const std::string& message) : Error(message, 4) {}
};

}  // namespace unshuffle
