// A loop over independent pieces of a fit's work, on all threads of all processes.
#pragma once

#include "core/checkpoint.hpp"
#include "core/in_parallel.hpp"
#include "unshuffle/core/team.hpp"

namespace unshuffle {

/// Calls piece(k) for k < count; each piece must go through finished_or(). In a team of N, each process does every N-th
/// piece and then finds the others already finished. Pieces must not use the team themselves.
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
