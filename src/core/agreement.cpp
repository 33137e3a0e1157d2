#include "unshuffle/core/agreement.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "core/message.hpp"
#include "unshuffle/version.hpp"

namespace unshuffle {
namespace {

using Notes = std::map<std::string, std::string>;

/// The notes of every process, by rank.
std::vector<Notes> notes_of_all(Team& team, const std::vector<Common>& own) {
  Message message;
  message.put(static_cast<double>(own.size()));
  for (const Common& each : own) {
    message.put(each.name);
    message.put(each.value);
  }
  Message said(team.gather_for_all(std::move(message.values())));
  std::vector<Notes> all(static_cast<std::size_t>(team.size()));
  for (Notes& notes : all) {
    for (auto left = static_cast<long>(said.number()); left > 0; --left) {
      const std::string name = said.text();
      notes[name] = said.text();
    }
  }
  return all;
}

std::string value_in(const Notes& notes, const std::string& name) {
  const auto found = notes.find(name);
  return found == notes.end() ? "none" : found->second;
}

std::string differences(const Notes& leader, const Notes& other) {
  Notes names = leader;
  names.insert(other.begin(), other.end());
  std::string told;
  for (const auto& [name, value] : names) {
    const std::string here = value_in(leader, name), there = value_in(other, name);
    if (here == there) continue;
    told += fmt::format("{}{}: {} instead of {}", told.empty() ? "" : ", ", name, there, here);
  }
  return told;
}

}  // namespace

void require_agreement(Team& team, std::vector<Common> own) {
  if (team.size() == 1) return;
  own.push_back({"version", version});
  const std::vector<Notes> all = notes_of_all(team, own);
  std::string told;
  for (std::size_t rank = 1; rank < all.size(); ++rank) {
    const std::string difference = differences(all.front(), all[rank]);
    if (!difference.empty()) told += fmt::format("; process {} of {} has {}", rank + 1, all.size(), difference);
  }
  if (told.empty()) return;
  throw Disagreement("processes of one run must be given the same tables, options and version as process 1" + told);
}

bool all_have(Team& team, const std::string& value) {
  const std::vector<Notes> all = notes_of_all(team, {{"", value}});
  return std::all_of(all.begin(), all.end(), [&](const Notes& notes) { return notes == all.front(); });
}

}  // namespace unshuffle
