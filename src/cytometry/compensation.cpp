#include "unshuffle/cytometry/compensation.hpp"

#include <fmt/format.h>

#include <Eigen/QR>

#include "cytometry/fcs_text.hpp"
#include "unshuffle/core/error.hpp"

namespace unshuffle::cytometry {
namespace {

struct Listed {
  std::string keyword;
  std::vector<std::string> parts;
  std::size_t size;  ///< Rows of the matrix, the first part.
};

Listed listed(const std::string& keyword, const std::string& value, const std::string& source) {
  Listed list{keyword, split_at_commas(value), 0};
  const auto size = to_number(list.parts.front());
  // Size², so that an absurd number of rows fails here and not in memory.
  if (!size || *size < 1 || *size * *size > static_cast<double>(list.parts.size())) {
    throw BadData(
        fmt::format("{}: {} begins with \"{}\" and has {} parts; the number of channels and a matrix of that "
                    "size were expected",
                    source, keyword, list.parts.front(), list.parts.size()));
  }
  list.size = static_cast<std::size_t>(*size);
  return list;
}

Matrix matrix_of(const Listed& list, std::size_t begin, const std::string& source) {
  if (list.parts.size() != begin + list.size * list.size) {
    throw BadData(fmt::format("{}: {} says {} channels and has {} parts; {} were expected", source, list.keyword,
                              list.size, list.parts.size(), begin + list.size * list.size));
  }
  const auto size = static_cast<Index>(list.size);
  Matrix matrix(size, size);
  for (Index at = 0; at < matrix.size(); ++at) {
    const std::string& part = list.parts[begin + static_cast<std::size_t>(at)];
    const auto value = to_number(part);
    if (!value) throw BadData(fmt::format("{}: {} holds \"{}\"; a number was expected", source, list.keyword, part));
    matrix(at / size, at % size) = *value;
  }
  return matrix;
}

/// Channels are named by $PnN; some programs write their numbers instead.
std::string channel_name(const std::string& part, const FcsFile& file) {
  if (file.find(part) >= 0) return part;
  const auto number = to_number(part);
  if (number && *number >= 1 && *number <= static_cast<double>(file.channels.size())) {
    return file.channels[static_cast<std::size_t>(*number) - 1].name;
  }
  return part;
}

Spillover named_matrix(const Listed& list, const FcsFile& file) {
  Spillover spillover;
  spillover.matrix = matrix_of(list, 1 + list.size, file.source);
  for (std::size_t at = 1; at <= list.size; ++at) spillover.detectors.push_back(channel_name(list.parts[at], file));
  spillover.dyes = spillover.detectors;
  return spillover;
}

/// FCS 3.0's $COMP names no channels, so only a matrix over all of them is unambiguous.
Spillover unnamed_matrix(const Listed& list, const FcsFile& file) {
  if (list.size != file.channels.size()) {
    throw BadData(fmt::format("{}: {} has {} rows and names no channels; {}, one for each channel, were expected",
                              file.source, list.keyword, list.size, file.channels.size()));
  }
  Spillover spillover;
  spillover.matrix = matrix_of(list, 1, file.source);
  for (const FcsChannel& channel : file.channels) spillover.detectors.push_back(channel.name);
  spillover.dyes = spillover.detectors;
  return spillover;
}

}  // namespace

std::optional<Spillover> spillover_of(const FcsFile& file) {
  for (const char* keyword : {"$SPILLOVER", "SPILL", "SPILLOVER", "$SPILL"}) {
    if (const auto value = value_of(file.keywords, keyword)) {
      return named_matrix(listed(keyword, *value, file.source), file);
    }
  }
  for (const char* keyword : {"$COMP", "COMP"}) {
    if (const auto value = value_of(file.keywords, keyword)) {
      return unnamed_matrix(listed(keyword, *value, file.source), file);
    }
  }
  return std::nullopt;
}

Matrix unmixed(const FcsFile& file, const Spillover& spillover) {
  Matrix measured(file.events.rows(), static_cast<Index>(spillover.detectors.size()));
  for (std::size_t at = 0; at < spillover.detectors.size(); ++at) {
    measured.col(static_cast<Index>(at)) = file.events.col(file.channel(spillover.detectors[at]));
  }
  if (measured.rows() == 0) return Matrix(0, spillover.matrix.rows());
  const Eigen::ColPivHouseholderQR<Matrix> factors(spillover.matrix.transpose());
  if (factors.rank() < spillover.matrix.rows()) {
    throw BadData(fmt::format("{}: the spillover matrix of {} cannot be inverted: its rank is {} of {}", file.source,
                              fmt::join(spillover.detectors, ", "), factors.rank(), spillover.matrix.rows()));
  }
  return factors.solve(measured.transpose()).transpose();
}

void compensate(FcsFile& file) {
  const auto spillover = spillover_of(file);
  if (!spillover) {
    throw BadData(
        fmt::format("{}: there is no spillover matrix ($SPILLOVER, SPILL or $COMP) to compensate with", file.source));
  }
  if (file.events.rows() == 0) return;
  const Matrix signals = unmixed(file, *spillover);
  for (std::size_t at = 0; at < spillover->dyes.size(); ++at) {
    file.events.col(file.channel(spillover->dyes[at])) = signals.col(static_cast<Index>(at));
  }
}

}  // namespace unshuffle::cytometry
