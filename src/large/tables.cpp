#include "unshuffle/large/tables.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <glob.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <numeric>
#include <utility>

#include "core/checkpoint.hpp"
#include "core/in_parallel.hpp"
#include "tables/line_ends.hpp"
#include "unshuffle/core/agreement.hpp"
#include "unshuffle/core/error.hpp"
#include "unshuffle/tables/table.hpp"

namespace unshuffle::large {
namespace {

/// Processes on one machine have the same one, unless it cannot be told.
std::string this_system() {
  std::string id;
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  return std::getline(file, id) ? id : std::to_string(::getpid());
}

/// An open file that is read at any place.
class File {
 public:
  // Not to wait for someone to write into a pipe, which is then refused.
  explicit File(const std::string& path)
      : path_(path), descriptor_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
    if (descriptor_ < 0) throw BadData(fmt::format("{}: cannot be opened: {}", path, std::strerror(errno)));
    struct stat about {};
    ::fstat(descriptor_, &about);
    if (!S_ISREG(about.st_mode)) {
      ::close(std::exchange(descriptor_, -1));
      throw BadData(fmt::format(
          "{}: is not a regular file; tables in pieces are read several times over, so write it to one first", path));
    }
    size_ = about.st_size;
    identity_ = fmt::format("{} {} {} {} {}.{}", this_system(), about.st_dev, about.st_ino, about.st_size,
                            about.st_mtim.tv_sec, about.st_mtim.tv_nsec);
  }
  File(File&& other) noexcept
      : path_(std::move(other.path_)),
        descriptor_(std::exchange(other.descriptor_, -1)),
        size_(other.size_),
        identity_(std::move(other.identity_)) {}
  File& operator=(File&&) = delete;
  ~File() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] long size() const { return size_; }
  /// Processes that have the same one have the same file open.
  [[nodiscard]] const std::string& identity() const { return identity_; }

  [[nodiscard]] std::string bytes(long from, long to) const {
    std::string content(static_cast<std::size_t>(std::max(0L, std::min(to, size_) - from)), '\0');
    for (std::size_t done = 0; done < content.size();) {
      const ssize_t got =
          ::pread(descriptor_, content.data() + done, content.size() - done, from + static_cast<long>(done));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) throw SystemFailure(fmt::format("{}: cannot be read: {}", path_, std::strerror(errno)));
      if (got == 0) throw SystemFailure(fmt::format("{}: became shorter while it was read", path_));
      done += static_cast<std::size_t>(got);
    }
    return content;
  }

 private:
  std::string path_;
  int descriptor_;
  long size_ = 0;
  std::string identity_;
};

constexpr long block_size = 1 << 20;  // of bytes whose lines are counted together

struct CsvFile {
  File file;
  long body = 0;              // where the rows begin
  Table head{};               // the first rows
  std::vector<long> lines{};  // that end in each block of the body

  [[nodiscard]] long blocks() const { return (file.size() - body + block_size - 1) / block_size; }
  [[nodiscard]] std::vector<std::string> columns() const {
    std::vector<std::string> names;
    for (const Column& column : head.columns) names.push_back(column.name);
    return names;
  }
};

/// Lines [first, last) of the body of a file, counted from 0.
struct Stretch {
  std::size_t file;
  long first, last;
  bool file_ends;
};

CsvFile opened(const std::string& path) {
  CsvFile csv{File(path)};
  long enough = 1 << 18;
  std::string head = csv.file.bytes(0, enough);
  // The header and a row, however long they are.
  while (enough < csv.file.size() && count_line_ends(head, head.size()) < 2) head = csv.file.bytes(0, enough *= 4);
  csv.body = static_cast<long>(next_line(head, 0));
  if (csv.file.size() > enough) head.resize(head.find_last_of("\r\n") + 1);
  require_pieces(head, path);
  csv.head = parse_csv(head, path);
  return csv;
}

std::string digest_of(const File& file) {
  std::vector<std::string> blocks(static_cast<std::size_t>((file.size() + block_size - 1) / block_size));
  in_parallel(blocks.size(), [&](std::size_t k) {
    const long from = static_cast<long>(k) * block_size;
    blocks[k] = WorkKey("block").add(file.bytes(from, from + block_size)).text();
  });
  WorkKey key("file");
  for (const std::string& block : blocks) key.add(block);
  return key.text();
}

/// The files of one side.
class TableFiles {
 public:
  TableFiles(const std::string& side, const std::vector<std::string>& paths, Team& team) : team_(team) {
    for (const std::string& path : paths) {
      files_.push_back(opened(path));
      if (files_.back().columns() != files_.front().columns())
        throw BadData(fmt::format("{}: the columns are not those of {}", path, paths.front()));
    }
    if (team.size() > 1) require_same_files(side);
    count_lines();
  }

  [[nodiscard]] const Table& head() const { return files_.front().head; }

  /// The numbers of some columns, of all pieces that fall to this process. `rows` gets the rows of every piece of every
  /// process.
  [[nodiscard]] Pieces read(const std::vector<std::string>& wanted, const ReadOptions& options,
                            std::vector<double>& rows) {
    const std::vector<Stretch> all = stretches(options.piece_rows);
    const auto rank = static_cast<std::size_t>(team_.rank()), size = static_cast<std::size_t>(team_.size());
    const std::size_t begin = all.size() * rank / size, end = all.size() * (rank + 1) / size;
    std::vector<Index> most_rows;
    std::vector<long> byte;  // where every piece begins
    for (std::size_t k = begin; k < end; ++k) {
      most_rows.push_back(all[k].last - all[k].first);
      byte.push_back(byte_of(all[k].file, all[k].first));
    }
    auto end_of = [&](std::size_t k) {
      const bool followed = begin + k + 1 < end && !all[begin + k].file_ends;
      return followed ? byte[k + 1] : byte_of(all[begin + k].file, all[begin + k].last);
    };
    Pieces pieces(static_cast<Index>(wanted.size()), most_rows, options.scratch);
    in_parallel(end - begin, [&](std::size_t k) {
      const Stretch& here = all[begin + k];
      pieces.put(k, numbers(here, files_[here.file].file.bytes(byte[k], end_of(k)), wanted));
    });
    std::vector<double> own;
    for (std::size_t k = 0; k < pieces.count(); ++k) own.push_back(static_cast<double>(pieces.rows(k)));
    rows = team_.gather(std::move(own));
    team_.broadcast(rows);
    return pieces;
  }

 private:
  // Of a file every process reads a part only, so parts of different ones would go unnoticed. Whether files on several
  // machines are copies of each other tells nothing but their bytes.
  void require_same_files(const std::string& side) const {
    std::string identities;
    for (const CsvFile& csv : files_) identities += csv.file.identity() + "\n";
    if (all_have(team_, identities)) return;
    std::vector<Common> facts{{"files of " + side, std::to_string(files_.size())},
                              {"columns of " + side, fmt::format("{}", fmt::join(files_.front().columns(), ","))}};
    for (std::size_t f = 0; f < files_.size(); ++f) {
      const std::string name = files_.size() == 1 ? side : fmt::format("file {} of {}", f + 1, side);
      facts.push_back({"bytes of " + name, std::to_string(files_[f].file.size())});
      facts.push_back({"content of " + name, digest_of(files_[f].file)});
    }
    require_agreement(team_, std::move(facts));
  }

  // Every process counts a share of the blocks; the counts of all of them are then known to everyone.
  void count_lines() {
    std::vector<std::pair<std::size_t, long>> blocks;
    for (std::size_t f = 0; f < files_.size(); ++f)
      for (long b = 0; b < files_[f].blocks(); ++b) blocks.emplace_back(f, b);
    const auto rank = static_cast<std::size_t>(team_.rank()), size = static_cast<std::size_t>(team_.size());
    const std::size_t begin = blocks.size() * rank / size, end = blocks.size() * (rank + 1) / size;
    std::vector<double> counts(end - begin);
    in_parallel(counts.size(), [&](std::size_t k) {
      const auto [f, b] = blocks[begin + k];
      const std::string bytes = block_and_next_byte(f, b);
      counts[k] =
          static_cast<double>(count_line_ends(bytes, std::min(bytes.size(), static_cast<std::size_t>(block_size))));
    });
    counts = team_.gather(std::move(counts));
    team_.broadcast(counts);
    for (std::size_t k = 0; k < blocks.size(); ++k)
      files_[blocks[k].first].lines.push_back(static_cast<long>(counts[k]));
  }

  /// The byte behind the block tells whether a carriage return at its end is one of a pair.
  [[nodiscard]] std::string block_and_next_byte(std::size_t f, long b) const {
    const CsvFile& csv = files_[f];
    return csv.file.bytes(csv.body + b * block_size, csv.body + (b + 1) * block_size + 1);
  }

  [[nodiscard]] std::vector<Stretch> stretches(Index piece_rows) const {
    std::vector<Stretch> made;
    for (std::size_t f = 0; f < files_.size(); ++f) {
      const CsvFile& csv = files_[f];
      const std::string last = csv.file.bytes(csv.file.size() - 1, csv.file.size());
      const bool cut_off = last != "\n" && last != "\r";
      const long lines = std::accumulate(csv.lines.begin(), csv.lines.end(), cut_off ? 1L : 0L);
      for (long first = 0; first < lines; first += piece_rows)
        made.push_back({f, first, std::min(first + piece_rows, lines), first + piece_rows >= lines});
    }
    return made;
  }

  /// Where a line of the body begins; the end of the file for the line behind the last.
  [[nodiscard]] long byte_of(std::size_t f, long line) const {
    const CsvFile& csv = files_[f];
    long ended = 0;
    if (line == 0) return csv.body;
    for (std::size_t b = 0; b < csv.lines.size(); ++b) {
      if (ended + csv.lines[b] < line) {
        ended += csv.lines[b];
        continue;
      }
      const std::string bytes = block_and_next_byte(f, static_cast<long>(b));
      std::size_t at = 0;
      for (; ended < line; ++ended) at = next_line(bytes, at);
      return csv.body + static_cast<long>(b) * block_size + static_cast<long>(at);
    }
    return csv.file.size();
  }

  [[nodiscard]] Matrix numbers(const Stretch& stretch, const std::string& bytes,
                               const std::vector<std::string>& wanted) const {
    const CsvFile& csv = files_[stretch.file];
    const long first_line = stretch.first + 2;
    if (const auto quote = bytes.find('"'); quote != std::string::npos) {
      const long line = first_line + count_line_ends(bytes, quote);
      throw BadData(
          fmt::format("{}:{}: a quote; tables in pieces hold plain numbers, one line to a row", csv.file.path(), line));
    }
    const Table table = parse_csv_rows(bytes, csv.head, first_line, stretch.file_ends);
    return table.matrix(wanted);
  }

  Team& team_;
  std::vector<CsvFile> files_;
};

/// Rows that are evenly spaced over a side, of which this process holds some, brought together.
Matrix sample_of(const Pieces& own, const std::vector<double>& rows_of_pieces, Index wanted, Team& team) {
  const auto total = static_cast<Index>(std::accumulate(rows_of_pieces.begin(), rows_of_pieces.end(), 0.0));
  const Index count = std::min(total, wanted);
  const auto rank = static_cast<std::size_t>(team.rank()), size = static_cast<std::size_t>(team.size());
  const std::size_t before = rows_of_pieces.size() * rank / size;
  auto first = static_cast<Index>(
      std::accumulate(rows_of_pieces.begin(), rows_of_pieces.begin() + static_cast<long>(before), 0.0));
  std::vector<double> values;
  Matrix buffer;
  for (std::size_t k = 0; k < own.count(); ++k) {
    const Matrix& rows = own.at(k, buffer);
    const auto at = [&](Index sampled) { return sampled * total / count; };
    for (Index sampled = (first * count + total - 1) / total; sampled < count && at(sampled) < first + rows.rows();
         ++sampled) {
      if (at(sampled) < first) continue;
      const auto row = rows.row(at(sampled) - first);
      values.insert(values.end(), row.begin(), row.end());
    }
    first += rows.rows();
  }
  values = team.gather(std::move(values));
  team.broadcast(values);
  using ByRow = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  return Eigen::Map<const ByRow>(values.data(), count, own.columns());
}

}  // namespace

std::vector<std::string> files_named(const std::string& pattern) {
  if (pattern.find_first_of("*?") == std::string::npos) return {pattern};
  glob_t found{};
  const int failure = ::glob(pattern.c_str(), 0, nullptr, &found);
  std::vector<std::string> paths(found.gl_pathv, found.gl_pathv + (failure == 0 ? found.gl_pathc : 0));
  ::globfree(&found);
  if (paths.empty()) throw BadData(fmt::format("{}: no file has such a name", pattern));
  return paths;
}

LargeTables read_tables_in_pieces(const std::vector<std::string>& responses, const std::vector<std::string>& features,
                                  ColumnChoice columns, Team& team, const ReadOptions& options) {
  if (columns.response.size() != 1)
    throw InvalidInput(
        fmt::format("tables in pieces need one response column; {} were named", columns.response.size()));
  if (!columns.groups.empty() || !columns.weights.empty())
    throw InvalidInput("tables in pieces can have neither groups nor weights");
  if (!columns.soft_groups.empty()) throw InvalidInput("tables in pieces can have no soft groups");
  const bool one_table = features.empty();
  TableFiles left("RESPONSES", responses, team);
  TableFiles right(one_table ? "RESPONSES" : "FEATURES", one_table ? responses : features, team);
  TablesAsProblem head = one_table ? table_to_problem(left.head(), std::move(columns))
                                   : tables_to_problem(left.head(), right.head(), std::move(columns));
  std::vector<std::string> left_columns = head.columns.response;
  left_columns.insert(left_columns.end(), head.columns.x->begin(), head.columns.x->end());
  std::vector<double> response_rows, feature_rows;
  Pieces left_pieces = left.read(left_columns, options, response_rows);
  Pieces right_pieces = right.read(*head.columns.z, options, feature_rows);
  LargeTables tables{std::move(left_pieces), std::move(right_pieces)};
  tables.response_rows = std::accumulate(response_rows.begin(), response_rows.end(), 0.0);
  tables.feature_rows = std::accumulate(feature_rows.begin(), feature_rows.end(), 0.0);
  tables.cut_alike = response_rows == feature_rows;
  const Matrix sample = sample_of(tables.responses, response_rows, options.sample_rows, team);
  tables.sample.y = sample.leftCols(1);
  tables.sample.x = sample.rightCols(sample.cols() - 1);
  tables.sample.z = sample_of(tables.features, feature_rows, options.sample_rows, team);
  tables.sample.y_names = head.columns.response;
  tables.sample.x_names = *head.columns.x;
  tables.sample.z_names = *head.columns.z;
  tables.columns = std::move(head.columns);
  tables.notes = std::move(head.notes);
  for (const TableFiles* side : {&left, &right}) {
    const Table& first = side->head();
    if (!first.detected.empty() && !(one_table && side == &right))
      tables.notes.push_back(fmt::format("{}: {}", first.source, first.detected));
  }
  return tables;
}

}  // namespace unshuffle::large
