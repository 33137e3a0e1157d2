#include "unshuffle/tables/table.hpp"

#include <csv.h>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string_view>
#include <unordered_map>

#include "core/in_parallel.hpp"
#include "core/text.hpp"
#include "tables/contents.hpp"
#include "tables/file_text.hpp"
#include "tables/layout.hpp"
#include "tables/line_ends.hpp"
#include "tables/numbers.hpp"
#include "unshuffle/core/error.hpp"

namespace unshuffle {
namespace {

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
  Scanner(std::string source, char delimiter, long first_line)
      : source_(std::move(source)), delimiter_(delimiter), line_(first_line), row_line_(first_line) {}
  virtual ~Scanner() = default;

  /// Whole lines in the order of one text; those between the stretches are counted and not read.
  void scan(const std::vector<std::string_view>& stretches) {
    csv_parser parser;
    if (csv_init(&parser, CSV_STRICT | CSV_STRICT_FINI | CSV_REPALL_NL) != 0) throw SystemFailure("libcsv failed");
    const std::unique_ptr<csv_parser, void (*)(csv_parser*)> guard(&parser, &csv_free);
    csv_set_delim(&parser, static_cast<unsigned char>(delimiter_));
    for (std::size_t at = 0; at < stretches.size(); ++at) {
      if (at > 0) skip(stretches[at - 1], stretches[at]);
      feed(parser, stretches[at]);
    }
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
  void skip(std::string_view before, std::string_view behind) {
    const char* gap = before.data() + before.size();
    line_ += count_line_ends({gap, static_cast<std::size_t>(behind.data() - gap)});
    row_line_ = line_;
  }

  static constexpr std::size_t least_buffer = 1 << 14, longest_cell = 1 << 24;

  /// Without its end a cell would take all that follows, and far more memory than the file.
  void require_end_of_cell(std::size_t held) const {
    if (held <= longest_cell) return;
    throw BadData(fmt::format("{}: a cell is longer than {} MiB; is a quote or the end of a line missing?", place(),
                              longest_cell >> 20U));
  }

  void feed(csv_parser& parser, std::string_view content) {
    constexpr std::size_t block = 1 << 18;
    const long first_line = line_;
    for (std::size_t at = 0; at < content.size() && !failure_; at += block) {
      const std::size_t size = std::min(block, content.size() - at);
      require_end_of_cell(csv_get_buffer_size(&parser));
      csv_set_blk_size(&parser, std::max(least_buffer, csv_get_buffer_size(&parser)));  // doubles what holds a cell
      const std::size_t done = csv_parse(&parser, content.data() + at, size, &on_cell, &on_row, this);
      if (done == size || failure_) continue;
      if (csv_error(&parser) == CSV_ENOMEM) throw std::bad_alloc();
      const long line = first_line + count_line_ends(content, at + done);
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
  char delimiter_;
  long fields_ = 0;
  long line_;
  long row_line_;              // Line the current row began on.
  long blank_line_ = 0;        // First blank line since the last row.
  bool after_return_ = false;  // The line feed of a CRLF arrives as a row of its own.
};

/// First pass: header, unless the table has its columns already, shape and every number.
class NumberReader final : public Scanner {
 public:
  NumberReader(Table& table, long first_line, std::size_t expected_rows)
      : Scanner(table.source, table.format.delimiter, first_line),
        table_(table),
        expected_rows_(expected_rows),
        header_(table.columns.empty()),
        plain_numbers_(table.format.decimal == '.' && table.format.thousands == 0) {
    if (header_ && table.format.header_lacks_first) table_.columns.push_back({.name = ""});
    make_room();
  }

 private:
  void cell(std::string_view text, long column) override {
    if (header_) {
      if (table_.columns.size() == most_columns)
        throw BadData(fmt::format("{}: the header has more than {} columns; is the end of the line missing?", place(),
                                  most_columns));
      table_.columns.push_back({.name = std::string(text)});
      return;
    }
    if (column >= static_cast<long>(table_.columns.size())) return;  // row() reports it.
    Column& target = table_.columns[static_cast<std::size_t>(column)];
    const bool plain = plain_numbers_ && target.unit.empty();
    const auto number = plain ? parse_number(text) : number_in(table_, target, text);
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
    for (std::size_t at = 0; at < std::min(table_.columns.size(), table_.format.units.size()); ++at)
      table_.columns[at].unit = table_.format.units[at];
    std::set<std::string> seen;
    for (std::size_t at = 0; at < table_.columns.size(); ++at) {
      const std::string& name = table_.columns[at].name;
      if (name.empty()) continue;  // an index, or nothing at all: told when the cells are known
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

  static constexpr std::size_t most_columns = 1'000'000;

  Table& table_;
  std::size_t expected_rows_;
  bool header_;
  bool plain_numbers_;
};

/// Second pass, only when some column needs its cells as written.
class TextReader final : public Scanner {
 public:
  TextReader(Table& table, long first_line, bool all)
      : Scanner(table.source, table.format.delimiter, first_line), table_(table), all_(all) {}

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
  std::vector<std::string_view> stretches;
  long first_line;
  Table table;  ///< With the columns' names, for all parts but one that holds the header itself.
  long blank_line = 0;
  std::exception_ptr failure{};
};

/// The text cut at line ends into pieces for all threads. Where there are quotes, a line end may belong to a field:
/// then nothing is cut.
std::vector<Part> parts_of(const Layout& layout, const std::string& source) {
  constexpr std::size_t worth_a_thread = 1 << 20;
  const Table nothing{.source = source, .columns = {}, .format = layout.format};
  const std::vector<Part> whole{{layout.stretches, layout.first_line, nothing}};
  std::string_view body = layout.stretches.front();
  const auto pieces = std::min(body.size() / worth_a_thread, static_cast<std::size_t>(omp_get_max_threads()));
  if (pieces < 2 || layout.stretches.size() > 1 || body.find('"') != std::string_view::npos) return whole;
  const std::size_t header_size = std::min(next_line(body, 0), body.size());
  Table header = nothing;
  NumberReader(header, layout.first_line, 0).scan({body.substr(0, header_size)});
  if (header.columns.empty()) return whole;  // a blank first line; the full read reports it
  std::vector<Part> parts;
  body.remove_prefix(header_size);
  for (long line = layout.first_line + 1; !body.empty();) {
    const std::size_t wanted = body.size() / (pieces - parts.size());
    const std::string_view lines = body.substr(0, parts.size() + 1 == pieces ? body.size() : next_line(body, wanted));
    parts.push_back({{lines}, line, header});
    line += count_line_ends(lines);
    body.remove_prefix(lines.size());
  }
  return parts;
}

void read(Part& part) {
  std::size_t lines = 1;
  for (const std::string_view stretch : part.stretches) lines += static_cast<std::size_t>(count_line_ends(stretch));
  NumberReader reader(part.table, part.first_line, lines);
  try {
    reader.scan(part.stretches);
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

Table read(const Layout& layout, const std::string& source, KeepText keep_text) {
  std::vector<Part> parts = parts_of(layout, source);
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
    TextReader(table, layout.first_line, all).scan(layout.stretches);
  }
  return table;
}

/// Cuts the last row off. Its cells are on a line of their own but for quotes, where it stays.
bool cut_last_row(Layout& layout) {
  std::string_view& last = layout.stretches.back();
  std::string_view text = last;
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.remove_suffix(1);
  const auto begin = text.find_last_of("\r\n");
  if (begin == std::string_view::npos || std::count(text.begin() + long(begin), text.end(), '"') % 2 != 0) return false;
  last = text.substr(0, begin + 1);
  return true;
}

/// The signs of money and of shares that whole columns have.
bool note_units(Table& table, TextFormat& format) {
  for (Column& column : table.columns) {
    column.unit = column.numeric() ? "" : unit_of(column);
    format.units.push_back(column.unit);
  }
  return std::any_of(format.units.begin(), format.units.end(), [](const std::string& unit) { return !unit.empty(); });
}

/// Read once more if its numbers are not written in the plain way. A column that only plain numbers make sense of
/// refutes another way.
Table read_numbers_as_written(Layout& layout, const std::string& source, KeepText keep_text) {
  Table table = read(layout, source, keep_text);
  Layout other = layout;
  const bool any_unit = note_units(table, other.format);
  const std::optional<TextFormat> format = number_format_of(table);
  if (!format && !any_unit) return table;
  if (format) {
    other.format.decimal = format->decimal;
    other.format.thousands = format->thousands;
  }
  Table again = read(other, source, keep_text);
  for (std::size_t at = 0; at < table.columns.size(); ++at)
    if (table.columns[at].numeric() && !again.columns[at].numeric()) return table;
  layout = std::move(other);
  return again;
}

/// Whole numbers or texts of which none occurs twice: row numbers and row names.
bool is_index(const Column& column) {
  if (!column.numeric()) {
    const std::set<std::string_view> distinct(column.text.begin(), column.text.end());
    return !column.holds_numbers && distinct.size() == column.text.size();
  }
  const std::set<double> distinct(column.numbers.begin(), column.numbers.end());
  const auto whole = [](double number) { return number == std::floor(number); };
  return distinct.size() == column.numbers.size() && std::all_of(distinct.begin(), distinct.end(), whole);
}

/// "wage" in $, for every unit.
std::vector<std::string> unit_words(const Table& table) {
  std::map<std::string, std::vector<std::string>> columns;
  for (const Column& column : table.columns)
    if (!column.unit.empty()) columns[column.unit].push_back('"' + column.name + '"');
  std::vector<std::string> words;
  for (const auto& [unit, names] : columns) words.push_back(fmt::format("{} in {}", fmt::join(names, " and "), unit));
  return words;
}

/// Columns without a name: an index in front and empty ones, which a delimiter at the end of every line makes, are left
/// out. Returns what was, in words.
std::vector<std::string> leave_out_unnamed(Table& table, long header_line) {
  std::vector<std::string> words;
  std::vector<Column> named;
  for (std::size_t at = 0; at < table.columns.size(); ++at) {
    Column& column = table.columns[at];
    const bool empty = column.empty_cells == table.rows;
    if (!column.name.empty()) {
      named.push_back(std::move(column));
    } else if (at == 0 && !empty && table.columns.size() > 1 && is_index(column)) {
      words.emplace_back("unnamed index column left out");
    } else if (empty && table.columns.size() > 1) {
      words.push_back(fmt::format("empty column {} left out", at + 1));
    } else {
      throw BadData(fmt::format("{}:{}: column {} has no name in the header", table.source, header_line, at + 1));
    }
  }
  table.columns = std::move(named);
  return words;
}

}  // namespace

Table parse_csv(const std::string& content, const std::string& source, KeepText keep_text) {
  const FileText file = text_of_file(content, source);
  const std::string_view body = file.view();
  if (body.find_first_not_of("\r\n \t") == std::string_view::npos) {
    throw BadData(fmt::format("{}: the file is empty; a header line and rows were expected", source));
  }
  const std::string spaced = single_spaced(body);
  Layout layout = spaced.empty() ? layout_of(body) : layout_of(spaced, Separators::spaces);
  if (layout.stretches.empty()) {
    throw BadData(fmt::format("{}: the file holds comments only; a header line and rows were expected", source));
  }
  Table table = read_numbers_as_written(layout, source, keep_text);
  std::vector<std::string> totals;
  if (const Column* column = total_column(table); column != nullptr && cut_last_row(layout)) {
    totals.push_back(fmt::format("a last row of totals (\"{}\") left out", column->text.back()));
    layout.format =
        TextFormat{.delimiter = layout.format.delimiter, .header_lacks_first = layout.format.header_lacks_first};
    table = read_numbers_as_written(layout, source, keep_text);
  }
  std::vector<std::string> words = file.undone;
  for (const auto& more : {described(layout), leave_out_unnamed(table, layout.first_line), unit_words(table), totals})
    words.insert(words.end(), more.begin(), more.end());
  table.detected = fmt::format("{}", fmt::join(words, ", "));
  table.note_places();
  return table;
}

Table parse_csv_rows(std::string_view lines, const Table& head, long first_line, bool file_ends) {
  Part part{{lines}, first_line, {.source = head.source, .columns = {}, .format = head.format}};
  for (const Column& column : head.columns) part.table.columns.push_back({.name = column.name, .unit = column.unit});
  read(part);
  if (part.failure) std::rethrow_exception(part.failure);
  if (part.blank_line > 0 && !file_ends) complain_of_blank_line(head.source, part.blank_line);
  return std::move(part.table);
}

void require_pieces(std::string_view bytes, const std::string& source) {
  const auto refuse = [&](std::string_view why) {
    throw BadData(
        fmt::format("{}: {}; tables in pieces are read at many places at once, so save it as plain CSV", source, why));
  };
  if (is_compressed(bytes)) refuse("is compressed");
  const FileText file = text_of_file(bytes, source);
  if (!file.undone.empty()) refuse(fmt::format("is {}", file.undone.front()));
  const Layout layout = layout_of(file.view());
  if (layout.first_line > 1 || layout.comments > 0) refuse("has comments");
  const bool unnamed = !layout.stretches.empty() && layout.stretches.front().starts_with(layout.format.delimiter);
  if (unnamed || layout.format.header_lacks_first) refuse("has a column without a name");
}

Table read_csv(const std::string& path, KeepText keep_text) {
  return path == "-" ? parse_csv(read_standard_input(), "standard input", keep_text)
                     : parse_csv(read_file(path), path, keep_text);
}

namespace {

const Column* labelled(const Table& table, const std::string& label) {
  const Column* found = nullptr;
  for (const Column& column : table.columns) {
    if (column.label != label || label.empty()) continue;
    if (found != nullptr)
      throw BadData(fmt::format("{}: \"{}\" is the label of {} and of {}; name one of these", table.source, label,
                                found->name, column.name));
    found = &column;
  }
  return found;
}

}  // namespace

void Table::note_places() {
  auto noted = std::make_shared<std::unordered_map<std::string, std::size_t>>();
  for (std::size_t at = 0; at < columns.size(); ++at) noted->try_emplace(columns[at].name, at);
  places = std::move(noted);
}

const Column* Table::find(const std::string& name) const {
  if (places) {
    const auto noted = places->find(name);
    const bool still = noted != places->end() && noted->second < columns.size();
    if (still && columns[noted->second].name == name) return &columns[noted->second];
  }
  const auto found = std::find_if(columns.begin(), columns.end(), [&](const Column& c) { return c.name == name; });
  return found == columns.end() ? labelled(*this, name) : &*found;
}

std::vector<std::string> Table::names(bool with_labels) const {
  std::vector<std::string> all;
  for (const Column& column : columns)
    all.push_back(with_labels && !column.label.empty() ? fmt::format("{} ({})", column.name, column.label)
                                                       : column.name);
  return all;
}

const Column& Table::column(const std::string& name) const {
  if (const Column* found = find(name)) return *found;
  constexpr std::size_t shown = 20;
  std::vector<std::string> known = names();
  for (const Column& column : columns)
    if (!column.label.empty()) known.push_back(column.label);
  const std::string meant = did_you_mean(name, known);
  std::vector<std::string> there = names(true);
  const bool cut = there.size() > shown;
  if (cut) there.resize(shown);
  throw BadData(fmt::format("{}: there is no column \"{}\"{}; the columns are {}{}", source, name, meant,
                            fmt::join(there, ", "), cut ? ", ..." : ""));
}

const std::vector<double>& Table::numbers(const std::string& name) const {
  const Column& wanted = column(name);
  if (!wanted.fault.empty()) throw BadData(wanted.fault);
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
    const bool usable = found != by_name.end() && found->second->numeric() && found->second->fault.empty();
    const std::vector<double>& cells = usable ? found->second->numbers : numbers(names[at]);
    values.col(static_cast<Index>(at)) = Eigen::Map<const Vector>(cells.data(), rows);
  }
  return values;
}

std::string csv_field(const std::string& text) {
  const bool edge_space = !text.empty() && (text.front() == ' ' || text.back() == ' ');
  const bool plain = !edge_space && !text.starts_with('#') && text.find_first_of(",;|\"\r\n\t") == std::string::npos;
  if (plain) return text;
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
