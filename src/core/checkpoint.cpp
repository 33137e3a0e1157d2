#include "core/checkpoint.hpp"

#include <fmt/format.h>

#include <bit>
#include <charconv>
#include <filesystem>
#include <iterator>
#include <nlohmann/json.hpp>

#include "core/checksum.hpp"
#include "core/message.hpp"
#include "core/read_json.hpp"
#include "unshuffle/core/error.hpp"
#include "unshuffle/core/files.hpp"
#include "unshuffle/core/output_file.hpp"
#include "unshuffle/core/team.hpp"
#include "unshuffle/version.hpp"

namespace unshuffle {

WorkKey::WorkKey(const char* kind) { add(std::string(kind)); }

void WorkKey::add_bytes(const void* bytes, std::size_t size) {
  const auto* byte = static_cast<const unsigned char*>(bytes);
  for (std::size_t k = 0; k < size; ++k) hash_ = (hash_ ^ byte[k]) * 0x100000001b3ULL;
}

WorkKey& WorkKey::add(double value) {
  add_bytes(&value, sizeof value);
  return *this;
}

WorkKey& WorkKey::add(const MatrixRef& values) {
  add(static_cast<double>(values.rows())).add(static_cast<double>(values.cols()));
  for (Index k = 0; k < values.cols(); ++k)
    add_bytes(values.col(k).data(), static_cast<std::size_t>(values.rows()) * sizeof(double));
  return *this;
}

WorkKey& WorkKey::add(const std::string& text) {
  add(static_cast<double>(text.size()));
  add_bytes(text.data(), text.size());
  return *this;
}

std::string WorkKey::text() const { return fmt::format("{:016x}", hash_); }

namespace {

[[noreturn]] void refuse_damaged(const std::string& path) {
  throw BadData(fmt::format("{}: not a checkpoint of a fit, or damaged; delete it or name another file", path));
}

constexpr std::size_t digits_of_double = 16;

}  // namespace

std::string to_hex(const VectorRef& values) {
  std::string text;
  for (const double value : values)
    fmt::format_to(std::back_inserter(text), "{:016x}", std::bit_cast<std::uint64_t>(value));
  return text;
}

Vector from_hex(const std::string& text) {
  Vector values(static_cast<Index>(text.size() / digits_of_double));
  for (Index k = 0; k < values.size(); ++k) {
    const char* begin = text.data() + static_cast<std::size_t>(k) * digits_of_double;
    std::uint64_t bits = 0;
    const auto [end, failure] = std::from_chars(begin, begin + digits_of_double, bits, 16);
    if (failure != std::errc{} || end != begin + digits_of_double) throw BadData("a number is damaged");
    values[k] = std::bit_cast<double>(bits);
  }
  return values;
}

std::map<std::string, std::string> finished_work_in(const std::string& bytes, const std::string& path,
                                                    const std::string& fit) {
  if (!checksum_holds(bytes)) refuse_damaged(path);
  const nlohmann::json file = read_json(bytes, path);
  const auto is = [&](const char* key, const std::string& value) { return file.contains(key) && file[key] == value; };
  if (!file.is_object() || !is("format", "unshuffle checkpoint") || !file.contains("done") || !file["done"].is_object())
    refuse_damaged(path);
  if (!is("fit", fit) || !is("version", version))
    throw BadData(
        fmt::format("{}: was written for other tables or options, or by another version; delete it or name "
                    "another file",
                    path));
  std::map<std::string, std::string> done;
  for (const auto& [key, result] : file["done"].items()) {
    if (!result.is_string()) refuse_damaged(path);
    done[key] = result;
  }
  return done;
}

Checkpoint::Checkpoint(std::string path, const WorkKey& fit) : path_(std::move(path)), fit_(fit.text()) {
  if (path_.empty() || !std::filesystem::exists(path_)) return;
  done_ = finished_work_in(read_file(path_), path_, fit_);
  for (const auto& [key, result] : done_) not_exchanged_.push_back(key);
}

void Checkpoint::complain_of_damage() const { refuse_damaged(path_); }

std::optional<std::string> Checkpoint::find(const WorkKey& work) const {
  const std::lock_guard lock(mutex_);
  const auto found = done_.find(work.text());
  return found == done_.end() ? std::nullopt : std::optional(found->second);
}

std::string Checkpoint::content() const {
  const nlohmann::json file{{"format", "unshuffle checkpoint"}, {"version", version}, {"fit", fit_}, {"done", done_}};
  return with_checksum(json_text(file));
}

void Checkpoint::keep(const WorkKey& work, std::string result) {
  const std::lock_guard lock(mutex_);
  done_[work.text()] = std::move(result);
  not_exchanged_.push_back(work.text());
  write();
}

void Checkpoint::write() const {
  if (!path_.empty()) write_whole_file(path_, content());
}

void Checkpoint::exchange(Team& team) {
  Message own;
  for (const std::string& key : not_exchanged_) {
    own.put(key);
    own.put(done_.at(key));
  }
  not_exchanged_.clear();
  Message all(team.gather_for_all(std::move(own.values())));
  if (all.ended()) return;
  while (!all.ended()) {
    const std::string key = all.text();
    done_[key] = all.text();
  }
  write();
}

}  // namespace unshuffle
