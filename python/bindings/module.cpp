#include <omp.h>
#include <pthread.h>

#include "bindings.hpp"
#include "unshuffle/core/error.hpp"
#include "unshuffle/core/wording.hpp"
#include "unshuffle/version.hpp"

namespace nb = nanobind;
using namespace unshuffle::python;

namespace {

std::string in_python(const unshuffle::Error& error) {
  return unshuffle::in_terms_of(unshuffle::Dialect::python, error.what());
}

/// The errors of the command line as the exceptions a Python user expects.
void translate(const std::exception_ptr& thrown, void*) {
  try {
    std::rethrow_exception(thrown);
  } catch (const unshuffle::SystemFailure& error) {
    PyErr_SetString(PyExc_OSError, in_python(error).c_str());
  } catch (const unshuffle::Error& error) {
    PyErr_SetString(PyExc_ValueError, in_python(error).c_str());
  }
}

/// The threads of OpenMP do not live on in a child that fork() makes, where the next parallel loop would wait for them
/// forever. Ended before, they are started anew by whichever process needs some.
void end_threads_before_fork() {
  pthread_atfork([] { omp_pause_resource_all(omp_pause_soft); }, nullptr, nullptr);
}

}  // namespace

NB_MODULE(_core, module) {
  module.doc() = "Regression when the row links between two tables are lost: the compiled part.";
  nb::set_leak_warnings(false);  // a graph of torch that is alive at the end keeps its solver
  module.attr("__version__") = unshuffle::version;
  nb::register_exception_translator(translate);
  end_threads_before_fork();
  bind_transport(module);
  bind_fit(module);
  bind_tables(module);
  bind_data(module);
  bind_tracking(module);
}
