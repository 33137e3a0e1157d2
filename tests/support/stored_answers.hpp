// Stored answers of other programs, as JSON.
#pragma once

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "support/test_data.hpp"
#include "unshuffle/core/types.hpp"

namespace unshuffle {

inline nlohmann::json stored_answers(const std::string& name) {
  std::ifstream file(test_data(name));
  return nlohmann::json::parse(file);
}

inline Vector vector_of(const nlohmann::json& values) {
  const auto numbers = values.get<std::vector<double>>();
  return Eigen::Map<const Vector>(numbers.data(), Index(numbers.size()));
}

inline Matrix matrix_of(const nlohmann::json& rows) {
  Matrix made(Index(rows.size()), Index(rows[0].size()));
  for (std::size_t i = 0; i < rows.size(); ++i) made.row(Index(i)) = vector_of(rows[i]);
  return made;
}

}  // namespace unshuffle
