// The methods by name.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "unshuffle/fitted/fit.hpp"

namespace unshuffle {

struct MethodInfo {
  Method method;
  std::string_view name;  ///< As typed: "robot-robust".
  std::string_view help;  ///< One line.
  bool dense = false;     ///< Holds matrices of responses × features whatever the model.
  bool prior = false;     ///< Reads prior weights of pairs and soft keys.
  bool traced = false;    ///< Fills Fit::trace.
};

/// All of them, in the order they are listed to users.
[[nodiscard]] std::vector<MethodInfo> known_methods();

[[nodiscard]] const MethodInfo& info_of(Method method);
[[nodiscard]] const char* name_of(Method method);
[[nodiscard]] std::optional<Method> method_named(std::string_view name);

}  // namespace unshuffle
