// A module compiled for any processor, which says which build of the compiled part this one can run.
#define Py_LIMITED_API 0x03090000
#include <Python.h>

#include "core/processor.hpp"

namespace {

PyObject* levels(PyObject*, PyObject*) {
  PyObject* list = PyList_New(0);
  for (const std::string& level : unshuffle::processor_levels()) {
    PyObject* name = PyUnicode_FromString(level.c_str());
    if (name == nullptr || PyList_Append(list, name) != 0) return nullptr;
    Py_DECREF(name);
  }
  return list;
}

PyMethodDef methods[] = {{"levels", levels, METH_NOARGS, "Levels of x86-64 beyond the lowest, the highest first."},
                         {nullptr, nullptr, 0, nullptr}};
PyModuleDef definition{PyModuleDef_HEAD_INIT, "_processor", nullptr, 0, methods, nullptr, nullptr, nullptr, nullptr};

}  // namespace

extern "C" __attribute__((visibility("default"))) PyObject* PyInit__processor() { return PyModule_Create(&definition); }
