#include "unshuffle/tables/table.hpp"

#include <csv.h>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <string_view>
#include <unordered_map>

#include "core/in_parallel.hpp"
#include "core/text.hpp"
#include "tables/line_ends.hpp"
#include "unshuffle/core/error.hpp"

namespace unshuffle {
namespace {

constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";

std::string plural(long count, std::string_view what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

[[noreturn]] void complain_of_blank_line(const std::string& source, long line) {
  throw BadData(fmt::format("{}:{}: the line is blank; rows were expected up to the end", source, line));
}

/// Feeds libcsv and calls back per cell and per row. Line numbers count line ends, also those inside quotes.
class Scanner {
 public:
  /// `first_line` is the number of the line the content begins on.
  explicit Scanner(std::string source, long first_line = 1)
      : source_(std::move(source)), first_line_(first_line), line_(first_line), row_line_(first_line) {}
  virtual ~Scanner() = default;

  void scan(std::string_view content) {
    csv_parser parser;
    if (csv_init(&parser, CSV_STRICT | CSV_STRICT_FINI | CSV_REPALL_NL) != 0) throw SystemFailure("libcsv failed");
    const std::unique_ptr<csv_parser, void (*)(csv_parser*)> guard(&parser, &csv_free);
    feed(parser, content);
    const bool finished = csv_fini(&parser, &on_cell, &on_row, this) == 0;
    if (failure_) std::rethrow_exception(failure_);
    if (!finished) throw BadData(fmt::format("{}: a quoted field is never closed", source_));
  }

  /// The first of the blank lines at the end; 0: there are none.
  [[nodiscard]] long blank_line() const { return blank_line_; }

 protected:
  virtual void cell(std::string_view text, long column) = 0;
  virtual void row(long fields) = 0;

  [[nodiscard]] std::string place() const { return fmt::format("{}:{}", source_, row_line_); }
  [[nodiscard]] long line() const { return line_; }

 private:
  void feed(csv_parser& parser, std::string_view content) {
    constexpr std::size_t block = 1 << 18;
    for (std::size_t at = 0; at < content.size() && !failure_; at += block) {
      const std::size_t size = std::min(block, content.size() - at);
      const std::size_t done = csv_parse(&parser, content.data() + at, size, &on_cell, &on_row, this);
      if (done == size || failure_) continue;
      if (csv_error(&parser) == CSV_ENOMEM) throw std::bad_alloc();
      const long line = first_line_ + count_line_ends(content, at + done);
      throw BadData(
          fmt::format("{}:{}: quote inside a field; quote the whole field and double the inner quote", source_, line));
    }
  }

  // Exceptions must not pass through libcsv's C frames: they are kept and thrown afterwards.
  template <class Action>
  void guarded(Action action) noexcept {
    if (failure_) return;
    try {
      action();
    } catch (...) {
      failure_ = std::current_exception();
    }
  }

  static void on_cell(void* bytes, std::size_t size, void* self) {
    auto& scanner = *static_cast<Scanner*>(self);
    scanner.guarded([&] {
      const std::string_view text(static_cast<const char*>(bytes), size);
      scanner.cell(text, scanner.fields_++);
      scanner.line_ += count_line_ends(text);
    });
  }

  static void on_row(int terminator, void* self) {
    auto& scanner = *static_cast<Scanner*>(self);
    scanner.guarded([&] { scanner.end_row(terminator); });
  }

  void end_row(int terminator) {
    const bool second_of_pair = fields_ == 0 && terminator == '\n' && after_return_;
    after_return_ = terminator == '\r';
    if (second_of_pair) return;
    if (fields_ > 0) {
      if (blank_line_ > 0) complain_of_blank_line(source_, blank_line_);
      row(fields_);
    } else if (blank_line_ == 0) {
      blank_line_ = line_;
    }
    row_line_ = ++line_;
    fields_ = 0;
  }

  std::string source_;
  std::exception_ptr failure_;
  long fields_ = 0;
  long first_line_;
  long line_;
  long row_line_;              // Line the current row began on.
  long blank_line_ = 0;        // First blank line since the last row.
  bool after_return_ = false;  // The line feed of a CRLF arrives as a row of its own.
};

/// First pass: header, unless the table has its columns already, shape and every number.
class NumberReader final : public Scanner {
 public:
  NumberReader(Table& table, long first_line, std::size_t expected_rows)
      : Scanner(table.source, first_line),
        table_(table),
        expected_rows_(expected_rows),
        header_(table.columns.empty()) {
    make_room();
  }

 private:
  void cell(std::string_view text, long column) override {
    if (header_) {
      table_.columns.push_back({.name = std::string(text)});
      return;
    }
    if (column >= static_cast<long>(table_.columns.size())) return;  // row() reports it.
    Column& target = table_.columns[static_cast<std::size_t>(column)];
    const auto number = parse_number(text);
    if (number) target.holds_numbers = true;
    if (text.empty() && target.empty_cells++ == 0) target.first_empty_line = line();
    if (target.numeric() && number) {
      target.numbers.push_back(*number);
    } else if (target.numeric()) {
      target.first_text_line = line();
      target.first_text = text;
    }
  }

  void row(long fields) override {
    if (header_) return end_header();
    if (fields != static_cast<long>(table_.columns.size())) {
      throw BadData(fmt::format("{}: {}; the header has {}", place(), plural(fields, "field"), table_.columns.size()));
    }
    ++table_.rows;
  }

  void end_header() {
    header_ = false;
    require_names();
    std::set<std::string> seen;
    for (std::size_t at = 0; at < table_.columns.size(); ++at) {
      const std::string& name = table_.columns[at].name;
      if (name.empty()) throw BadData(fmt::format("{}: column {} has no name in the header", place(), at + 1));
      if (!is_utf8(name))
        throw BadData(fmt::format(
            "{}: the name of column {}, \"{}\", is not UTF-8; convert the file (iconv -f latin1 -t utf-8) or rename it",
            place(), at + 1, printable(name)));
      if (!seen.insert(name).second) throw BadData(fmt::format("{}: two columns are named \"{}\"", place(), name));
    }
    make_room();
  }

  /// Numbers where the names should be are a first row: taking them for names would lose it without a word.
  void require_names() const {
    const auto is_number = [](const Column& column) { return parse_number(column.name).has_value(); };
    if (!std::all_of(table_.columns.begin(), table_.columns.end(), is_number)) return;
    throw BadData(fmt::format(
        "{}: the first line holds numbers only (it begins with \"{}\"), where the names of the columns were "
        "expected; put a line of names above it",
        place(), table_.columns.front().name));
  }

  void make_room() {
    for (Column& column : table_.columns) column.numbers.reserve(expected_rows_);
  }

  Table& table_;
  std::size_t expected_rows_;
  bool header_;
};

/// Second pass, only when some column needs its cells as written.
class TextReader final : public Scanner {
 public:
  TextReader(Table& table, bool all) : Scanner(table.source), table_(table), all_(all) {}

 private:
  void cell(std::string_view text, long column) override {
    if (header_) return;
    Column& target = table_.columns[static_cast<std::size_t>(column)];
    if (all_ || !target.numeric()) target.text.emplace_back(text);
  }
  void row(long) override { header_ = false; }

  Table& table_;
  bool all_;
  bool header_ = true;
};

/// Consecutive lines, read on their own.
struct Part {
  std::string_view lines;
  long first_line;
  Table table;  ///< With the columns' names, for all parts but one that holds the header itself.
  long blank_line = 0;
  std::exception_ptr failure{};
};

/// The body cut at line ends into pieces for all threads. Where there are quotes, a line end may belong to a field:
/// then nothing is cut.
std::vector<Part> parts_of(std::string_view body, const std::string& source) {
  constexpr std::size_t worth_a_thread = 1 << 20;
  const Table nothing{.source = source, .columns = {}};
  const auto pieces = std::min(body.size() / worth_a_thread, static_cast<std::size_t>(omp_get_max_threads()));
  if (pieces < 2 || body.find('"') != std::string_view::npos) return {{body, 1, nothing}};
  const std::size_t header_size = std::min(next_line(body, 0), body.size());
  Table header = nothing;
  NumberReader(header, 1, 0).scan(body.substr(0, header_size));
  if (header.columns.empty()) return {{body, 1, nothing}};  // a blank first line; the full read reports it
  std::vector<Part> parts;
  body.remove_prefix(header_size);
  for (long line = 2; !body.empty();) {
    const std::size_t wanted = body.size() / (pieces - parts.size());
    const std::string_view lines = body.substr(0, parts.size() + 1 == pieces ? body.size() : next_line(body, wanted));
    parts.push_back({lines, line, header});
    line += count_line_ends(lines);
    body.remove_prefix(lines.size());
  }
  return parts;
}

void read(Part& part) {
  NumberReader reader(part.table, part.first_line, static_cast<std::size_t>(count_line_ends(part.lines)) + 1);
  try {
    reader.scan(part.lines);
  } catch (...) {
    part.failure = std::current_exception();
  }
  part.blank_line = reader.blank_line();
}

void append(const Column& more, Column& column) {
  column.holds_numbers = column.holds_numbers || more.holds_numbers;
  if (column.empty_cells == 0) column.first_empty_line = more.first_empty_line;
  column.empty_cells += more.empty_cells;
  if (!column.numeric()) return;
  column.numbers.insert(column.numbers.end(), more.numbers.begin(), more.numbers.end());
  column.first_text_line = more.first_text_line;
  column.first_text = more.first_text;
}

/// Joins all parts into one table; reports the error that reading the whole file would have hit first.
Table joined(std::vector<Part> parts) {
  Index rows = 0;
  long blank_line = 0;
  for (const Part& part : parts) {
    if (blank_line > 0 && (part.table.rows > 0 || part.failure)) complain_of_blank_line(part.table.source, blank_line);
    if (part.failure) std::rethrow_exception(part.failure);
    if (blank_line == 0) blank_line = part.blank_line;
    rows += part.table.rows;
  }
  Table table = std::move(parts.front().table);
  for (std::size_t at = 0; at < table.columns.size(); ++at) {
    Column& column = table.columns[at];
    if (parts.size() > 1) column.numbers.reserve(static_cast<std::size_t>(rows));
    for (std::size_t k = 1; k < parts.size(); ++k) {
      append(parts[k].table.columns[at], column);
      parts[k].table.columns[at].numbers = {};
    }
  }
  table.rows = rows;
  return table;
}

}  // namespace

Table parse_csv(const std::string& content, const std::string& source, KeepText keep_text) {
  std::string_view body(content);
  if (body.substr(0, byte_order_mark.size()) == byte_order_mark) body.remove_prefix(byte_order_mark.size());
  if (body.find_first_not_of("\r\n \t") == std::string_view::npos) {
    throw BadData(fmt::format("{}: the file is empty; a header line and rows were expected", source));
  }
  std::vector<Part> parts = parts_of(body, source);
  in_parallel(parts.size(), [&](std::size_t k) { read(parts[k]); });
  Table table = joined(std::move(parts));
  if (table.rows == 0) throw BadData(fmt::format("{}: the file holds a header and no rows", source));

  const bool all = keep_text == KeepText::always;
  for (Column& column : table.columns) {
    if (!column.numeric()) column.numbers = {};
    if (all || !column.numeric()) column.text.reserve(static_cast<std::size_t>(table.rows));
  }
  const auto is_text = [](const Column& column) { return !column.numeric(); };
  if (all || std::any_of(table.columns.begin(), table.columns.end(), is_text)) {
    TextReader(table, all).scan(body);
  }
  return table;
}

Table parse_csv_rows(std::string_view lines, const std::vector<std::string>& columns, const std::string& source,
                     long first_line, bool file_ends) {
  Part part{lines, first_line, {.source = source, .columns = {}}};
  for (const std::string& name : columns) part.table.columns.push_back({.name = name});
  read(part);
  if (part.failure) std::rethrow_exception(part.failure);
  if (part.blank_line > 0 && !file_ends) complain_of_blank_line(source, part.blank_line);
  return std::move(part.table);
}

Table read_csv(const std::string& path, KeepText keep_text) { return parse_csv(read_file(path), path, keep_text); }

const Column* Table::find(const std::string& name) const {
  const auto found = std::find_if(columns.begin(), columns.end(), [&](const Column& c) { return c.name == name; });
  return found == columns.end() ? nullptr : &*found;
}

const Column& Table::column(const std::string& name) const {
  if (const Column* found = find(name)) return *found;
  std::vector<std::string_view> names;
  constexpr std::size_t shown = 20;
  for (const Column& candidate : columns) names.emplace_back(candidate.name);
  const bool cut = names.size() > shown;
  if (cut) names.resize(shown);
  throw BadData(fmt::format("{}: there is no column \"{}\"; the columns are {}{}", source, name, fmt::join(names, ", "),
                            cut ? ", ..." : ""));
}

const std::vector<double>& Table::numbers(const std::string& name) const {
  const Column& wanted = column(name);
  if (wanted.numeric()) return wanted.numbers;
  const std::string place = fmt::format("{}:{}: column \"{}\"", source, wanted.first_text_line, name);
  if (wanted.first_text.empty()) throw BadData(place + " is empty; a number was expected");
  throw BadData(fmt::format("{} holds \"{}\"; a number was expected", place, wanted.first_text));
}

Matrix Table::matrix(const std::vector<std::string>& names) const {
  std::unordered_map<std::string_view, const Column*> by_name;
  for (const Column& candidate : columns) by_name.try_emplace(candidate.name, &candidate);
  Matrix values(rows, static_cast<Index>(names.size()));
  for (std::size_t at = 0; at < names.size(); ++at) {
    const auto found = by_name.find(names[at]);
    const bool usable = found != by_name.end() && found->second->numeric();
    const std::vector<double>& cells = usable ? found->second->numbers : numbers(names[at]);
    values.col(static_cast<Index>(at)) = Eigen::Map<const Vector>(cells.data(), rows);
  }
  return values;
}

std::string csv_field(const std::string& text) {
  const bool edge_space = !text.empty() && (text.front() == ' ' || text.back() == ' ');
  if (!edge_space && text.find_first_of(",\"\r\n\t") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + '"';
}

void append_number(std::string& out, double value) {
  char digits[32];
  const auto [end, unused] = std::to_chars(digits, digits + sizeof digits, value);
  out.append(digits, end);
}

std::string to_csv(const Table& table) {
  std::string out;
  for (std::size_t at = 0; at < table.columns.size(); ++at) {
    if (at > 0) out += ',';
    out += csv_field(table.columns[at].name);
  }
  out += '\n';
  for (std::size_t row = 0; row < static_cast<std::size_t>(table.rows); ++row) {
    for (std::size_t at = 0; at < table.columns.size(); ++at) {
      if (at > 0) out += ',';
      const Column& column = table.columns[at];
      if (column.text.empty()) {
        append_number(out, column.numbers[row]);
      } else if (column.text[row].empty() && table.columns.size() == 1) {
        out += "\"\"";  // an empty line would be no row
      } else {
        out += csv_field(column.text[row]);
      }
    }
    out += '\n';
  }
  return out;
}

}  // namespace unshuffle
