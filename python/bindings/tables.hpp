// Tables of Python as those of the library.
#pragma once

#include <string>
#include <vector>

#include "unshuffle/tables/prepare.hpp"
#include "unshuffle/tables/tables_to_problem.hpp"

namespace unshuffle::python {

/// Tables made fit for a problem, and how.
struct Prepared {
  Problem problem;
  ColumnChoice columns;
  Preparation rows;
  std::vector<std::string> notes;
};

}  // namespace unshuffle::python
