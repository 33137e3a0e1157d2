// One run by several processes: it ends for all of them or for none.
#pragma once

#include <fmt/format.h>

#include <cstdio>
#include <new>

#include "say.hpp"
#include "unshuffle/core/agreement.hpp"
#include "unshuffle/core/error.hpp"
#include "unshuffle/core/team.hpp"
#include "unshuffle/core/wording.hpp"

namespace unshuffle::app {

/// work(); when it fails in one of several processes, the reason is printed there and all are ended: the others would
/// wait for its answers forever. What all of them find wrong alike is left to the first to say.
template <class Work>
int together(Team& team, const Work& work) {
  const auto end_all = [&](const char* message, int exit_code) {
    complain(fmt::format("process {} of {}: {}", team.rank() + 1, team.size(), message));
    std::fflush(stderr);
    team.abort(exit_code);
  };
  try {
    return work();
  } catch (const Disagreement& error) {
    if (team.leads()) complain(in_terms_of(Dialect::command_line, error.what()));
    std::fflush(stderr);
    (void)team.gather_for_all({});  // mpirun ends the others as soon as one of them has left: not before it is said
    return error.exit_code();
  } catch (const Error& error) {
    if (team.size() > 1) end_all(in_terms_of(Dialect::command_line, error.what()).c_str(), error.exit_code());
    throw;
  } catch (const std::bad_alloc&) {
    if (team.size() > 1) end_all("out of memory", 4);
    throw;
  } catch (const std::exception& error) {
    if (team.size() > 1) end_all(error.what(), 4);
    throw;
  }
}

}  // namespace unshuffle::app
