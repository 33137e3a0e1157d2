#include "unshuffle/core/team.hpp"

#include <cstdlib>
#include <string>

#include "unshuffle/core/component.hpp"

namespace unshuffle {

/// Where mpirun (Open MPI, MPICH and derivatives) and srun state the number of processes.
int processes_started() {
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"}) {
    if (const char* size = std::getenv(name)) return std::atoi(size);
  }
  if (std::getenv("PMIX_RANK") != nullptr) {
    if (const char* size = std::getenv("SLURM_NTASKS")) return std::atoi(size);
  }
  return 1;
}

std::unique_ptr<Team> make_team() {
  if (processes_started() <= 1) return std::make_unique<Team>();
  const auto make = reinterpret_cast<Team* (*)()>(load_function(mpi_component, "unshuffle_make_team"));
  return std::unique_ptr<Team>(make());
}

}  // namespace unshuffle
