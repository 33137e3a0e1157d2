#include "unshuffle/large/pieces.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <utility>

#include "unshuffle/core/error.hpp"

namespace unshuffle::large {
namespace {

/// A file that disappears however the process ends.
int nameless_file(const std::string& folder) {
  int file = ::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, S_IRUSR | S_IWUSR);
  if (file < 0 && (errno == EOPNOTSUPP || errno == EISDIR)) {  // some file systems have only files with names
    std::string name = folder + "/unshuffle.XXXXXX";
    file = ::mkostemp(name.data(), O_CLOEXEC);
    if (file >= 0) ::unlink(name.c_str());
  }
  if (file < 0)
    throw SystemFailure(fmt::format("{}: no file for the rows can be made there: {}", folder, std::strerror(errno)));
  return file;
}

}  // namespace

Pieces::Pieces(Index columns, const std::vector<Index>& most_rows, const std::string& scratch) : columns_(columns) {
  places_.resize(most_rows.size());
  std::size_t offset = 0;
  for (std::size_t k = 0; k < places_.size(); ++k) {
    places_[k].offset = offset;
    places_[k].most_rows = most_rows[k];
    offset += static_cast<std::size_t>(most_rows[k] * columns) * sizeof(double);
  }
  if (!scratch.empty()) file_ = nameless_file(scratch);
}

Pieces::~Pieces() {
  if (file_ >= 0) ::close(file_);
}

Pieces::Pieces(Pieces&& other) noexcept
    : columns_(other.columns_), places_(std::move(other.places_)), file_(std::exchange(other.file_, -1)) {}

Pieces& Pieces::operator=(Pieces&& other) noexcept {
  std::swap(columns_, other.columns_);
  std::swap(places_, other.places_);
  std::swap(file_, other.file_);
  return *this;
}

void Pieces::put(std::size_t piece, Matrix rows) {
  Place& place = places_[piece];
  if (rows.rows() > place.most_rows) throw std::logic_error("more rows than announced would overwrite the next piece");
  place.rows = rows.rows();
  if (file_ < 0) {
    place.in_memory = std::move(rows);
    return;
  }
  const char* bytes = reinterpret_cast<const char*>(rows.data());
  const std::size_t size = static_cast<std::size_t>(rows.size()) * sizeof(double);
  for (std::size_t done = 0; done < size;) {
    const ssize_t written = ::pwrite(file_, bytes + done, size - done, static_cast<off_t>(place.offset + done));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0)
      throw SystemFailure(
          fmt::format("the scratch file cannot be written: {}; --scratch names another folder", std::strerror(errno)));
    done += static_cast<std::size_t>(written);
  }
}

Index Pieces::rows() const {
  Index sum = 0;
  for (const Place& place : places_) sum += place.rows;
  return sum;
}

const Matrix& Pieces::at(std::size_t piece, Matrix& buffer) const {
  const Place& place = places_[piece];
  if (file_ < 0) return place.in_memory;
  buffer.resize(place.rows, columns_);
  char* bytes = reinterpret_cast<char*>(buffer.data());
  const std::size_t size = static_cast<std::size_t>(buffer.size()) * sizeof(double);
  for (std::size_t done = 0; done < size;) {
    const ssize_t got = ::pread(file_, bytes + done, size - done, static_cast<off_t>(place.offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0)
      throw SystemFailure(fmt::format("the scratch file cannot be read: {}",
                                      got < 0 ? std::strerror(errno) : "it is shorter than what was written"));
    done += static_cast<std::size_t>(got);
  }
  return buffer;
}

}  // namespace unshuffle::large
