// The laws, one object each.
#pragma once

#include "unshuffle/families/family.hpp"

namespace unshuffle {

[[nodiscard]] const Family& gaussian_family();
[[nodiscard]] const Family& student_family();
[[nodiscard]] const Family& binomial_family();
[[nodiscard]] const Family& poisson_family();
[[nodiscard]] const Family& negative_binomial_family();
[[nodiscard]] const Family& gamma_family();
[[nodiscard]] const Family& cox_family();

}  // namespace unshuffle
