#include "unshuffle/core/component.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <filesystem>
#include <string_view>
#include <vector>

#include "unshuffle/core/error.hpp"
#include "unshuffle/version.hpp"

namespace unshuffle {

const Component torch_component{"torch", "unshuffle_torch.so", "the Siamese model",
                                "install libtorch-dev and build with -DUNSHUFFLE_TORCH=ON"};
const Component opencv_component{
    "opencv", "unshuffle_opencv.so", "reading and drawing pictures",
    "install libopencv-imgproc-dev, libopencv-imgcodecs-dev and libopencv-videoio-dev and build with "
    "-DUNSHUFFLE_OPENCV=ON"};
const Component mpi_component{"mpi", "unshuffle_mpi.so", "one fit by several processes",
                              "install libopenmpi-dev and build with -DUNSHUFFLE_MPI=ON"};

std::string find_module(const Component& component) {
  namespace fs = std::filesystem;
  std::error_code failure;
  const fs::path program = fs::read_symlink("/proc/self/exe", failure).parent_path();
  std::vector<fs::path> folders;
  if (!program.empty()) {  // without /proc they would be looked for below the current folder, which may be anyone's
    if (fs::exists(program / "CMakeCache.txt", failure)) folders.push_back(program);
    folders.push_back(program / UNSHUFFLE_MODULES_FROM_PROGRAM);
  }
  folders.emplace_back(UNSHUFFLE_MODULES);
  // The build folder, a prefix that may have moved, the prefix that was configured.
  for (const fs::path& folder : folders) {
    if (fs::exists(folder / component.module, failure)) return (folder / component.module).lexically_normal().string();
  }
  return "";
}

void* load_function(const Component& component, const char* function) {
  const std::string path = find_module(component);
  if (path.empty()) {
    throw InvalidInput(fmt::format("{} needs the component {}, which is not installed: {}", component.purpose,
                                   component.name, component.remedy));
  }
  void* module = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (module == nullptr) throw SystemFailure(fmt::format("{}: cannot be loaded: {}", path, dlerror()));
  const auto find = [&](const char* name) {
    void* found = dlsym(module, name);
    if (found == nullptr) throw SystemFailure(fmt::format("{}: has no function {}", path, name));
    return found;
  };
  const std::string_view built = reinterpret_cast<const char* (*)()>(find("unshuffle_component_version"))();
  if (built != version)
    throw SystemFailure(fmt::format("{}: was built for version {}; this is version {}", path, built, version));
  return find(function);
}

}  // namespace unshuffle
