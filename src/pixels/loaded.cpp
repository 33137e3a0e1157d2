// Functions of the optional components, loaded on first use.
#include "unshuffle/core/component.hpp"
#include "unshuffle/pixels/picture_files.hpp"
#include "unshuffle/pixels/siamese.hpp"
#include "unshuffle/tables/table.hpp"

namespace unshuffle::pixels {

const PictureFiles& picture_files() {
  static const PictureFiles& files =
      *reinterpret_cast<const PictureFiles* (*)()>(load_function(opencv_component, "unshuffle_picture_files"))();
  return files;
}

std::unique_ptr<SiameseNetwork> make_network(const SiameseShape& shape) {
  const auto make = reinterpret_cast<SiameseNetwork* (*)(const SiameseShape&)>(
      load_function(torch_component, "unshuffle_make_network"));
  return std::unique_ptr<SiameseNetwork>(make(shape));
}

std::unique_ptr<SiameseNetwork> load_network(const std::string& path, const Learning& learning) {
  return parse_network(read_file(path), path, learning);
}

std::unique_ptr<SiameseNetwork> parse_network(const std::string& content, const std::string& source,
                                              const Learning& learning) {
  const auto load = reinterpret_cast<SiameseNetwork* (*)(const std::string&, const std::string&, const Learning&)>(
      load_function(torch_component, "unshuffle_load_network"));
  return std::unique_ptr<SiameseNetwork>(load(content, source, learning));
}

}  // namespace unshuffle::pixels
