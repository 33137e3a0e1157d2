// A loop over independent pieces of a fit's work, on all threads of all processes.
#pragma once

#include "core/checkpoint.hpp"
#include "core/in_parallel.hpp"
#include "unshuffle/core/team.hpp"

namespace unshuffle {

/// piece(k) for k < count, each of which asks finished_or(). Of a team, every process takes each size-th piece and
/// finds those of the others finished when it comes to them. Pieces may not call upon the team themselves.
template <class Piece>
void share_work(const Run& run, std::size_t count, const Piece& piece) {
  if (!several(run.team)) return in_parallel(count, piece);
  const auto rank = static_cast<std::size_t>(run.team->rank()), size = static_cast<std::size_t>(run.team->size());
  const std::size_t own = (count + size - 1 - rank) / size;
  in_parallel(own, [&](std::size_t k) { piece(rank + k * size); });
  run.finished->exchange(*run.team);
  in_parallel(count, [&](std::size_t k) {
    if (k % size != rank) piece(k);
  });
}

}  // namespace unshuffle
