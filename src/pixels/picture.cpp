#include "unshuffle/pixels/picture.hpp"

#include <algorithm>
#include <cmath>

namespace unshuffle::pixels {

std::array<double, 3> Picture::mean() const {
  std::array<std::uint64_t, 3> sum{};
  for (std::size_t at = 0; at + 2 < values.size(); at += 3) {
    for (std::size_t channel = 0; channel < 3; ++channel) sum[channel] += values[at + channel];
  }
  const double count = std::max<double>(1, double(width) * height);
  return {double(sum[0]) / count, double(sum[1]) / count, double(sum[2]) / count};
}

namespace {

/// Where along one axis a crop's pixels lie: between the pixels `at` and `at` + 1 of the picture, `share` of the way.
struct Place {
  int at;
  float share;
};

// Pixel i covers [i, i+1) and its colour is that of its centre, so crop pixel u samples
// x = centre + ((u + ½)/side - ½)·extent - ½ on the grid of middles.
std::vector<Place> places(double center, double extent, int side, int length) {
  std::vector<Place> result;
  for (int at = 0; at < side; ++at) {
    // Far outside there is only the mean; the bound keeps the integers below small.
    const double x = std::clamp(center + ((at + 0.5) / side - 0.5) * extent - 0.5, -2.0, length + 1.0);
    const int before = int(std::floor(x));
    result.push_back({before, float(x - before)});
  }
  return result;
}

bool leaves(const std::vector<Place>& places, int length) {
  return places.front().at < 0 || places.back().at + 1 >= length;
}

/// A row of the picture sampled at these columns, one colour after the other. It is kept until another row is asked
/// for, because the rows of a crop often share it.
class SampledRows {
 public:
  SampledRows(const Picture& picture, const std::vector<Place>& columns, const std::array<float, 3>& outside)
      : picture_(picture), columns_(columns), outside_(outside) {}

  const std::vector<float>& at(int y) {
    if (older_.number == y) std::swap(older_, newer_);
    if (newer_.number != y) {
      std::swap(older_, newer_);
      sample(y);
    }
    return newer_.values;
  }

 private:
  struct Row {
    int number = -100;
    std::vector<float> values;
  };

  void sample(int y) {
    const std::size_t side = columns_.size();
    newer_.number = y;
    newer_.values.resize(3 * side);
    const bool inside = y >= 0 && y < picture_.height;
    const std::uint8_t* row = inside ? picture_.values.data() + std::size_t(y) * picture_.width * 3 : nullptr;
    for (std::size_t u = 0; u < side; ++u) {
      const auto [left, share] = columns_[u];
      for (std::size_t channel = 0; channel < 3; ++channel) {
        const auto color = [&](int x) {
          return row != nullptr && x >= 0 && x < picture_.width ? float(row[std::size_t(x) * 3 + channel])
                                                                : outside_[channel];
        };
        newer_.values[channel * side + u] = (1 - share) * color(left) + share * color(left + 1);
      }
    }
  }

  const Picture& picture_;
  const std::vector<Place>& columns_;
  const std::array<float, 3> outside_;
  Row newer_, older_;
};

}  // namespace

Crop crop(const Picture& picture, const tracking::Box& box, double extent, int side) {
  const std::vector<Place> columns = places(box.center_x(), extent, side, picture.width);
  const std::vector<Place> rows = places(box.center_y(), extent, side, picture.height);
  std::array<float, 3> outside{};
  if (leaves(columns, picture.width) || leaves(rows, picture.height)) {
    const std::array<double, 3> mean = picture.mean();
    std::transform(mean.begin(), mean.end(), outside.begin(), [](double value) { return float(value); });
  }
  SampledRows sampled(picture, columns, outside);
  Crop result{side, std::vector<float>(std::size_t(3) * side * side)};
  const auto width = std::size_t(side);
  for (std::size_t v = 0; v < width; ++v) {
    const auto [top, down] = rows[v];
    const std::vector<float> above = sampled.at(top);
    const std::vector<float>& below = sampled.at(top + 1);
    for (std::size_t channel = 0; channel < 3; ++channel) {
      float* to = result.values.data() + (channel * width + v) * width;
      const float* a = above.data() + channel * width;
      const float* b = below.data() + channel * width;
      for (std::size_t u = 0; u < width; ++u) to[u] = (1 - down) * a[u] + down * b[u];
    }
  }
  return result;
}

double context_of(const tracking::Box& box) {
  const double margin = (box.width + box.height) / 2;
  return std::sqrt((box.width + margin) * (box.height + margin));
}

Crop target_crop(const Picture& picture, const tracking::Box& box) {
  return crop(picture, box, context_of(box), target_side);
}

Crop search_crop(const Picture& picture, const tracking::Box& box, int side) {
  return crop(picture, box, context_of(box) * side / target_side, side);
}

}  // namespace unshuffle::pixels
