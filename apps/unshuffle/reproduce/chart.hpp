// Charts for people to look at: panels of curves, heat maps and links, drawn by Cairo as PNG and SVG.
#pragma once

#include <string>
#include <vector>

#include "unshuffle/core/types.hpp"

namespace unshuffle::app {

struct Colour {
  double red = 0, green = 0, blue = 0;
};

/// Values over x with an optional range around them. Its label stands beside its last point.
struct Curve {
  std::string label;
  Colour colour;
  std::vector<double> x{}, y{};
  std::vector<double> low{}, high{};  ///< Empty, or one range per point.
  bool line = true;
  bool marks = true;
  bool dashed = false;
};

/// A matrix as colours: row 0 at the bottom, column 0 at the left. Light is zero, dark the largest value.
struct HeatMap {
  Matrix values;
  double x_low = 0, x_high = 1, y_low = 0, y_high = 1;
};

/// A line between two points, the darker the stronger (0 to 1).
struct Segment {
  double x0, y0, x1, y1;
  double strength = 1;
};

struct Panel {
  std::string title{}, x_label{}, y_label{};
  bool log_x = false, log_y = false;
  std::vector<std::string> categories{};  ///< Names of x = 0, 1, ...; empty: x is a number.
  std::vector<Curve> curves{};
  std::vector<HeatMap> heat{};  ///< None or one.
  std::vector<Segment> segments{};
};

struct Figure {
  std::string title;
  int columns = 2;
  std::vector<Panel> panels{};
};

/// Writes stem.png and stem.svg; each appears whole or not at all.
void write_figure(const Figure& figure, const std::string& stem);

}  // namespace unshuffle::app
