#include "core/checkpoint.hpp"

#include <fmt/format.h>

#include <bit>
#include <charconv>
#include <filesystem>
#include <iterator>
#include <nlohmann/json.hpp>

#include "core/message.hpp"
#include "unshuffle/core/error.hpp"
#include "unshuffle/core/output_file.hpp"
#include "unshuffle/core/team.hpp"
#include "unshuffle/tables/table.hpp"
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
  throw BadData(fmt::format("{}: is not a checkpoint of a fit, or damaged; remove it, or name another file", path));
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
  const nlohmann::json file = nlohmann::json::parse(bytes, nullptr, false);
  const auto is = [&](const char* key, const std::string& value) { return file.contains(key) && file[key] == value; };
  if (!file.is_object() || !is("format", "unshuffle checkpoint") || !file.contains("done") || !file["done"].is_object())
    refuse_damaged(path);
  if (!is("fit", fit) || !is("version", version))
    throw BadData(
        fmt::format("{}: was written for other tables or options, or by another version; remove it, or name "
                    "another file",
                    path));
  std::map<std::string, std::string> done;
  for (const auto& [key, result] : file["done"].items()) {
    if (!result.is_string()) refuse_damaged(path);
    done[key] = result;
  }
  return done;
}

FinishedWork::FinishedWork(std::string path, const WorkKey& fit) : path_(std::move(path)), fit_(fit.text()) {
  if (path_.empty() || !std::filesystem::exists(path_)) return;
  done_ = finished_work_in(read_file(path_), path_, fit_);
  for (const auto& [key, result] : done_) not_exchanged_.push_back(key);
}

void FinishedWork::complain_of_damage() const { refuse_damaged(path_); }

std::optional<std::string> FinishedWork::find(const WorkKey& work) const {
  const std::lock_guard lock(mutex_);
  const auto found = done_.find(work.text());
  return found == done_.end() ? std::nullopt : std::optional(found->second);
}

std::string FinishedWork::content() const {
  const nlohmann::json file{{"format", "unshuffle checkpoint"}, {"version", version}, {"fit", fit_}, {"done", done_}};
  return file.dump() + "\n";
}

void FinishedWork::keep(const WorkKey& work, std::string result) {
  const std::lock_guard lock(mutex_);
  done_[work.text()] = std::move(result);
  not_exchanged_.push_back(work.text());
  write();
}

void FinishedWork::write() const {
  if (!path_.empty()) write_whole_file(path_, content());
}

void FinishedWork::exchange(Team& team) {
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

WorkKey key_of_fit(const Problem& problem, const Model& model, const FitOptions& options) {
  WorkKey key("fit");
  key.add(model.name()).add(problem.y).add(problem.x).add(problem.z);
  key.add(problem.response_weights).add(problem.feature_weights);
  for (const auto* groups : {&problem.response_groups, &problem.feature_groups}) {
    key.add(double(groups->size()));
    for (const Index label : *groups) key.add(double(label));
  }
  for (const KnownPair& pair : problem.known) key.add(double(pair.response_row)).add(double(pair.feature_row));
  for (const PairWeight& pair : problem.prior)
    key.add(double(pair.response_row)).add(double(pair.feature_row)).add(pair.weight);
  for (const SoftKey& soft : problem.soft_keys) {
    key.add(soft.agreement);
    for (const auto* labels : {&soft.response_labels, &soft.feature_labels})
      for (const Index label : *labels) key.add(double(label));
  }
  for (const auto& name : problem.y_names) key.add(name);
  const FitOptions& o = options;
  key.add(o.start);
  // Threads, progress and the checkpoint itself leave the answer alone.
  for (const double value : {double(o.method),
                             double(o.objective),
                             o.epsilon.value,
                             double(o.epsilon.relative),
                             o.epsilon_start,
                             double(o.backend),
                             double(o.row_hint),
                             double(o.row_order_unrelated),
                             o.unmatched,
                             o.rho1,
                             o.rho2,
                             double(o.start_kind),
                             double(o.starts),
                             o.start_confidence,
                             double(o.optimizer),
                             double(o.max_iterations),
                             o.learning_rate,
                             o.momentum,
                             double(o.batch),
                             o.tolerance,
                             o.accuracy,
                             o.gradient_tolerance,
                             double(o.am_step),
                             double(o.em_chains),
                             o.em_swaps,
                             o.rr_threshold,
                             double(o.rs_samples),
                             o.rs_threshold,
                             double(o.gw_slices),
                             o.gw_epsilon,
                             double(o.unroll),
                             o.known_noise_sd,
                             double(o.bootstrap)}) {
    key.add(value);
  }
  key.add(std::to_string(o.seed));
  return key;
}

}  // namespace unshuffle
