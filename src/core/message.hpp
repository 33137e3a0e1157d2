// Messages between processes: numbers, vectors and tables, read in the order in which they were written.
#pragma once

#include <cstring>
#include <string>
#include <vector>

#include "unshuffle/core/types.hpp"

namespace unshuffle {

class Message {
 public:
  Message() = default;
  explicit Message(std::vector<double> values) : values_(std::move(values)) {}

  void put(double value) { values_.push_back(value); }
  void put(const MatrixRef& table) {
    put(static_cast<double>(table.rows()));
    put(static_cast<double>(table.cols()));
    for (Index k = 0; k < table.cols(); ++k)
      values_.insert(values_.end(), table.col(k).data(), table.col(k).data() + table.rows());
  }
  void put(const std::vector<double>& values) {
    put(Eigen::Map<const Vector>(values.data(), static_cast<Index>(values.size())));
  }

  void put(const std::string& text) {
    put(static_cast<double>(text.size()));
    const std::size_t at = values_.size();
    values_.resize(at + doubles_for(text.size()));
    std::memcpy(values_.data() + at, text.data(), text.size());
  }

  [[nodiscard]] bool ended() const { return at_ == values_.size(); }
  double number() { return values_.at(at_++); }
  Matrix table() {
    const auto rows = static_cast<Index>(number()), columns = static_cast<Index>(number());
    Matrix made = Eigen::Map<const Matrix>(values_.data() + at_, rows, columns);
    at_ += static_cast<std::size_t>(made.size());
    return made;
  }
  Vector vector() { return table().col(0); }
  std::vector<double> list() {
    const Vector made = vector();
    return {made.begin(), made.end()};
  }
  std::string text() {
    std::string made(static_cast<std::size_t>(number()), ' ');
    std::memcpy(made.data(), values_.data() + at_, made.size());
    at_ += doubles_for(made.size());
    return made;
  }

  [[nodiscard]] std::vector<double>& values() { return values_; }

 private:
  static std::size_t doubles_for(std::size_t bytes) { return (bytes + sizeof(double) - 1) / sizeof(double); }

  std::vector<double> values_;
  std::size_t at_ = 0;
};

}  // namespace unshuffle
