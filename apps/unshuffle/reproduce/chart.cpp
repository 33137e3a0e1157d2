#include "reproduce/chart.hpp"

#include <cairo-svg.h>
#include <cairo.h>
#include <fmt/format.h>
#include <fontconfig/fontconfig.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

#include "unshuffle/core/error.hpp"
#include "unshuffle/core/output_file.hpp"

namespace unshuffle::app {
namespace {

constexpr double panel_width = 520, panel_height = 380, title_height = 44;
constexpr double margin_left = 78, margin_top = 40, margin_bottom = 58, margin_right = 22;
constexpr double text_size = 13, small_size = 12, pixels_per_unit = 2;
constexpr Colour ink{0.13, 0.13, 0.16}, faint{0.86, 0.86, 0.88}, heat_dark{0.05, 0.22, 0.45};

using Surface = std::unique_ptr<cairo_surface_t, decltype(&cairo_surface_destroy)>;
using Context = std::unique_ptr<cairo_t, decltype(&cairo_destroy)>;

struct Range {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();

  void cover(double value) {
    if (!std::isfinite(value)) return;
    low = std::min(low, value);
    high = std::max(high, value);
  }
  [[nodiscard]] bool empty() const { return !(low <= high); }
};

struct Tick {
  double at;
  std::string label;
};

/// One direction of a panel: data to pixels, and where its ticks are.
class Axis {
 public:
  Axis(Range range, bool logarithmic, bool padded, double begin, double end)
      : logarithmic_(logarithmic), begin_(begin), end_(end) {
    if (range.empty()) range = {logarithmic ? 1.0 : 0.0, logarithmic ? 10.0 : 1.0};
    low_ = logarithmic ? std::log10(range.low) : range.low;
    high_ = logarithmic ? std::log10(range.high) : range.high;
    if (high_ - low_ < 1e-9 * (1 + std::abs(high_))) {
      low_ -= 0.5;
      high_ += 0.5;
    }
    const double pad = padded ? 0.06 * (high_ - low_) : 0;
    low_ -= pad;
    high_ += pad;
  }

  [[nodiscard]] double operator()(double value) const {
    const double x = logarithmic_ ? std::log10(value) : value;
    return begin_ + (end_ - begin_) * (x - low_) / (high_ - low_);
  }
  [[nodiscard]] bool shows(double value) const { return std::isfinite(value) && (!logarithmic_ || value > 0); }
  [[nodiscard]] std::vector<Tick> ticks() const { return logarithmic_ ? decades() : round_numbers(); }

 private:
  [[nodiscard]] std::vector<Tick> round_numbers() const {
    const double rough = (high_ - low_) / 5, power = std::pow(10, std::floor(std::log10(rough)));
    const double step = power * (rough / power > 5 ? 10 : rough / power > 2 ? 5 : rough / power > 1 ? 2 : 1);
    std::vector<Tick> ticks;
    for (double k = std::ceil(low_ / step); k * step <= high_ + 1e-9 * step; ++k) {
      ticks.push_back({k * step, fmt::format("{:g}", std::abs(k * step) < 1e-12 * step ? 0.0 : k * step)});
    }
    return ticks;
  }

  [[nodiscard]] std::vector<Tick> decades() const {
    const bool few = high_ - low_ < 1.6;
    const double stride = std::max(1.0, std::ceil((high_ - low_) / 6));
    std::vector<Tick> ticks;
    for (double decade = std::floor(low_); decade <= high_; decade += few ? 1 : stride) {
      for (const double digit : {1.0, 2.0, 5.0}) {
        if (digit > 1 && !few) break;
        const double x = decade + std::log10(digit);
        if (x >= low_ - 1e-9 && x <= high_ + 1e-9) {
          ticks.push_back({std::pow(10, x), fmt::format("{:g}", digit * std::pow(10, decade))});
        }
      }
    }
    return ticks;
  }

  bool logarithmic_;
  double begin_, end_, low_ = 0, high_ = 1;
};

class Pen {
 public:
  explicit Pen(cairo_t* cairo) : cairo_(cairo) {}

  void colour(const Colour& c, double alpha = 1) { cairo_set_source_rgba(cairo_, c.red, c.green, c.blue, alpha); }
  void line(double x0, double y0, double x1, double y1, double width = 1) {
    cairo_set_line_width(cairo_, width);
    cairo_move_to(cairo_, x0, y0);
    cairo_line_to(cairo_, x1, y1);
    cairo_stroke(cairo_);
  }
  void dot(double x, double y, double radius) {
    cairo_arc(cairo_, x, y, radius, 0, 2 * M_PI);
    cairo_fill(cairo_);
  }
  /// anchor 0: x is the text's left edge, 0.5 its centre, 1 its right edge.
  void text(const std::string& words, double x, double y, double anchor, double size = text_size, bool bold = false) {
    const double width = width_of(words, size, bold);
    cairo_move_to(cairo_, x - anchor * width, y);
    cairo_show_text(cairo_, words.c_str());
  }
  [[nodiscard]] double width_of(const std::string& words, double size, bool bold) {
    select_font(size, bold);
    cairo_text_extents_t extents;
    cairo_text_extents(cairo_, words.c_str(), &extents);
    return extents.x_advance;
  }
  void text_upward(const std::string& words, double x, double y, double anchor, double size = text_size) {
    cairo_save(cairo_);
    cairo_translate(cairo_, x, y);
    cairo_rotate(cairo_, -M_PI / 2);
    text(words, 0, 0, anchor, size);
    cairo_restore(cairo_);
  }
  [[nodiscard]] cairo_t* cairo() const { return cairo_; }

 private:
  void select_font(double size, bool bold) {
    cairo_select_font_face(cairo_, "DejaVu Sans", CAIRO_FONT_SLANT_NORMAL,
                           bold ? CAIRO_FONT_WEIGHT_BOLD : CAIRO_FONT_WEIGHT_NORMAL);
    cairo_set_font_size(cairo_, size);
  }

  cairo_t* cairo_;
};

struct Frame {
  double left, top, right, bottom;
};

constexpr double label_gap = 9;

/// Width of the column of labels to the right of a panel.
double label_room(Pen& pen, const Panel& panel) {
  double widest = 0;
  for (const Curve& curve : panel.curves) {
    if (curve.line && !curve.label.empty())
      widest = std::max(widest, label_gap + pen.width_of(curve.label, small_size, true));
  }
  return widest;
}

/// Height that names of categories need below the axis when they stand upright; 0 when there is room to lie flat.
double upright_room(Pen& pen, const Panel& panel, double axis_length) {
  double widest = 0;
  for (const std::string& name : panel.categories) widest = std::max(widest, pen.width_of(name, small_size, false));
  return widest * double(panel.categories.size()) < axis_length ? 0 : widest;
}

std::pair<Range, Range> ranges_of(const Panel& panel) {
  Range x, y;
  auto cover_y = [&](double value) {
    if (!panel.log_y || value > 0) y.cover(value);
  };
  for (const Curve& curve : panel.curves) {
    for (const double value : curve.x) x.cover(value);
    for (const auto* values : {&curve.y, &curve.low, &curve.high})
      std::for_each(values->begin(), values->end(), cover_y);
  }
  for (const HeatMap& heat : panel.heat) {
    for (const double value : {heat.x_low, heat.x_high}) x.cover(value);
    for (const double value : {heat.y_low, heat.y_high}) y.cover(value);
  }
  for (const Segment& segment : panel.segments) {
    for (const double value : {segment.x0, segment.x1}) x.cover(value);
    for (const double value : {segment.y0, segment.y1}) cover_y(value);
  }
  if (!panel.categories.empty()) x = {-0.5, static_cast<double>(panel.categories.size()) - 0.5};
  return {x, y};
}

void draw_axes(Pen& pen, const Panel& panel, const Frame& frame, const Axis& x, const Axis& y) {
  const double upright = upright_room(pen, panel, frame.right - frame.left);
  for (const Tick& tick : y.ticks()) {
    pen.colour(faint);
    pen.line(frame.left, y(tick.at), frame.right, y(tick.at));
    pen.colour(ink);
    pen.text(tick.label, frame.left - 8, y(tick.at) + 4, 1, small_size);
  }
  std::vector<Tick> ticks = panel.categories.empty() ? x.ticks() : std::vector<Tick>{};
  for (std::size_t k = 0; k < panel.categories.size(); ++k)
    ticks.push_back({static_cast<double>(k), panel.categories[k]});
  pen.colour(ink);
  for (const Tick& tick : ticks) {
    pen.line(x(tick.at), frame.bottom, x(tick.at), frame.bottom + 4);
    if (upright > 0) {
      pen.text_upward(tick.label, x(tick.at) + 4, frame.bottom + 8, 1, small_size);
    } else {
      pen.text(tick.label, x(tick.at), frame.bottom + 19, 0.5, small_size);
    }
  }
  pen.line(frame.left, frame.bottom, frame.right, frame.bottom);
  pen.line(frame.left, frame.top, frame.left, frame.bottom);
  pen.text(panel.title, frame.left, frame.top - 14, 0, text_size + 1, true);
  pen.text(panel.x_label, 0.5 * (frame.left + frame.right), frame.bottom + upright + (upright > 0 ? 30 : 42), 0.5);
  pen.text_upward(panel.y_label, frame.left - 56, 0.5 * (frame.top + frame.bottom), 0.5);
}

void draw_heat(Pen& pen, const HeatMap& heat, const Axis& x, const Axis& y) {
  const double largest = std::max(heat.values.maxCoeff(), 1e-300);
  const auto columns = static_cast<double>(heat.values.cols()), rows = static_cast<double>(heat.values.rows());
  for (Index i = 0; i < heat.values.rows(); ++i) {
    for (Index j = 0; j < heat.values.cols(); ++j) {
      const double left = x(heat.x_low + (heat.x_high - heat.x_low) * double(j) / columns);
      const double right = x(heat.x_low + (heat.x_high - heat.x_low) * double(j + 1) / columns);
      const double low = y(heat.y_low + (heat.y_high - heat.y_low) * double(i) / rows);
      const double high = y(heat.y_low + (heat.y_high - heat.y_low) * double(i + 1) / rows);
      const double depth = std::sqrt(std::max(0.0, heat.values(i, j) / largest));
      if (depth < 0.01) continue;
      pen.colour(heat_dark, depth);
      cairo_rectangle(pen.cairo(), left, high, right - left, low - high);
      cairo_fill(pen.cairo());
    }
  }
}

void draw_range(Pen& pen, const Curve& curve, const Axis& x, const Axis& y) {
  if (curve.low.empty()) return;
  pen.colour(curve.colour, curve.line ? 0.15 : 0.6);
  if (!curve.line) {
    for (std::size_t k = 0; k < curve.x.size(); ++k) {
      if (y.shows(curve.low[k]) && y.shows(curve.high[k]))
        pen.line(x(curve.x[k]), y(curve.low[k]), x(curve.x[k]), y(curve.high[k]), 2);
    }
    return;
  }
  bool begun = false;
  for (std::size_t k = 0; k < curve.x.size(); ++k) {
    if (!y.shows(curve.high[k])) continue;
    begun ? cairo_line_to(pen.cairo(), x(curve.x[k]), y(curve.high[k]))
          : cairo_move_to(pen.cairo(), x(curve.x[k]), y(curve.high[k]));
    begun = true;
  }
  for (std::size_t k = curve.x.size(); k-- > 0;) {
    if (y.shows(curve.low[k])) cairo_line_to(pen.cairo(), x(curve.x[k]), y(curve.low[k]));
  }
  cairo_close_path(pen.cairo());
  cairo_fill(pen.cairo());
}

void draw_curve(Pen& pen, const Curve& curve, const Axis& x, const Axis& y) {
  draw_range(pen, curve, x, y);
  pen.colour(curve.colour);
  if (curve.line) {
    const double dash[] = {6, 4};
    cairo_set_dash(pen.cairo(), dash, curve.dashed ? 2 : 0, 0);
    cairo_set_line_width(pen.cairo(), 2);
    bool begun = false;
    for (std::size_t k = 0; k < curve.x.size(); ++k) {
      if (!y.shows(curve.y[k])) {
        begun = false;
        continue;
      }
      begun ? cairo_line_to(pen.cairo(), x(curve.x[k]), y(curve.y[k]))
            : cairo_move_to(pen.cairo(), x(curve.x[k]), y(curve.y[k]));
      begun = true;
    }
    cairo_stroke(pen.cairo());
    cairo_set_dash(pen.cairo(), dash, 0, 0);
  }
  if (!curve.marks) return;
  for (std::size_t k = 0; k < curve.x.size(); ++k) {
    if (y.shows(curve.y[k])) pen.dot(x(curve.x[k]), y(curve.y[k]), 3.2);
  }
}

/// Labels beside the last points, moved apart where they would overlap.
void draw_labels(Pen& pen, const Panel& panel, const Frame& frame, const Axis& x, const Axis& y) {
  constexpr double apart = 16;
  struct Label {
    const Curve* curve;
    double from_x, from_y, at;
  };
  std::vector<Label> labels;
  for (const Curve& curve : panel.curves) {
    if (curve.label.empty() || !curve.line) continue;
    for (std::size_t k = curve.x.size(); k-- > 0;) {
      if (!y.shows(curve.y[k])) continue;
      labels.push_back({&curve, x(curve.x[k]), y(curve.y[k]), y(curve.y[k])});
      break;
    }
  }
  std::stable_sort(labels.begin(), labels.end(), [](const Label& a, const Label& b) { return a.at < b.at; });
  for (std::size_t k = 1; k < labels.size(); ++k) labels[k].at = std::max(labels[k].at, labels[k - 1].at + apart);
  double limit = frame.bottom;
  for (std::size_t k = labels.size(); k-- > 0;) {
    labels[k].at = std::min(labels[k].at, limit);
    limit = labels[k].at - apart;
  }
  for (const Label& label : labels) {
    pen.colour(label.curve->colour, 0.5);
    pen.line(label.from_x + 4, label.from_y, frame.right + 6, label.at);
    pen.colour(label.curve->colour);
    pen.text(label.curve->label, frame.right + label_gap, label.at + 4, 0, small_size, true);
  }
}

/// Clouds of points have no last one; their names stand above the panel.
void name_clouds(Pen& pen, const Panel& panel, const Frame& frame) {
  double right = frame.right;
  for (const Curve& curve : panel.curves) {
    if (curve.label.empty() || curve.line) continue;
    pen.colour(curve.colour);
    pen.text(curve.label, right, frame.top - 14, 1, small_size, true);
    right -= 18 + pen.width_of(curve.label, small_size, true);
  }
}

void draw_panel(Pen& pen, const Panel& panel, double left, double top) {
  Frame frame{left + margin_left, top + margin_top, left + panel_width - margin_right - label_room(pen, panel),
              top + panel_height - margin_bottom};
  frame.bottom -= upright_room(pen, panel, frame.right - frame.left);
  const auto [x_range, y_range] = ranges_of(panel);
  const bool map = !panel.heat.empty();
  const Axis x(x_range, panel.log_x, panel.categories.empty() && !map, frame.left, frame.right);
  const Axis y(y_range, panel.log_y, !map, frame.bottom, frame.top);
  draw_axes(pen, panel, frame, x, y);
  for (const HeatMap& heat : panel.heat) draw_heat(pen, heat, x, y);
  for (const Segment& segment : panel.segments) {
    pen.colour(ink, 0.6 * std::clamp(segment.strength, 0.0, 1.0));
    pen.line(x(segment.x0), y(segment.y0), x(segment.x1), y(segment.y1), 1.2);
  }
  for (const Curve& curve : panel.curves) draw_curve(pen, curve, x, y);
  draw_labels(pen, panel, frame, x, y);
  name_clouds(pen, panel, frame);
}

void draw(cairo_t* cairo, const Figure& figure, double width, double height) {
  Pen pen(cairo);
  pen.colour({1, 1, 1});
  cairo_rectangle(cairo, 0, 0, width, height);
  cairo_fill(cairo);
  pen.colour(ink);
  constexpr double title_size = text_size + 4, edge = 18;
  const double fits = (width - 2 * edge) / pen.width_of(figure.title, title_size, true);
  pen.text(figure.title, edge, 28, 0, title_size * std::min(1.0, fits), true);
  for (std::size_t k = 0; k < figure.panels.size(); ++k) {
    const auto column = static_cast<double>(k % static_cast<std::size_t>(figure.columns));
    const auto row = static_cast<double>(k / static_cast<std::size_t>(figure.columns));
    draw_panel(pen, figure.panels[k], panel_width * column, title_height + panel_height * row);
  }
}

cairo_status_t append(void* content, const unsigned char* data, unsigned int length) {
  static_cast<std::string*>(content)->append(reinterpret_cast<const char*>(data), length);
  return CAIRO_STATUS_SUCCESS;
}

void require_drawn(cairo_status_t status, const std::string& path) {
  if (status != CAIRO_STATUS_SUCCESS) {
    throw SystemFailure(fmt::format("{}: cannot be drawn: {}", path, cairo_status_to_string(status)));
  }
}

std::string svg_of(const Figure& figure, double width, double height, const std::string& path) {
  std::string svg;
  const Surface surface(cairo_svg_surface_create_for_stream(append, &svg, width, height), cairo_surface_destroy);
  const Context context(cairo_create(surface.get()), cairo_destroy);
  draw(context.get(), figure, width, height);
  require_drawn(cairo_status(context.get()), path);
  cairo_surface_finish(surface.get());
  return svg;
}

std::string png_of(const Figure& figure, double width, double height, const std::string& path) {
  std::string png;
  const Surface surface(cairo_image_surface_create(CAIRO_FORMAT_RGB24, static_cast<int>(pixels_per_unit * width),
                                                   static_cast<int>(pixels_per_unit * height)),
                        cairo_surface_destroy);
  const Context context(cairo_create(surface.get()), cairo_destroy);
  cairo_scale(context.get(), pixels_per_unit, pixels_per_unit);
  draw(context.get(), figure, width, height);
  require_drawn(cairo_status(context.get()), path);
  require_drawn(cairo_surface_write_to_png_stream(surface.get(), append, &png), path);
  return png;
}

/// Both libraries keep the fonts they loaded until told otherwise.
void release_fonts() {
  cairo_debug_reset_static_data();
  FcFini();
}

}  // namespace

void write_figure(const Figure& figure, const std::string& stem) {
  const auto panels = static_cast<double>(figure.panels.size()), columns = static_cast<double>(figure.columns);
  const double width = panel_width * std::min(panels, columns);
  const double height = title_height + panel_height * std::ceil(panels / columns);
  const std::string svg_path = stem + ".svg", png_path = stem + ".png";
  const std::string svg = svg_of(figure, width, height, svg_path), png = png_of(figure, width, height, png_path);
  release_fonts();
  write_whole_file(svg_path, svg);
  write_whole_file(png_path, png);
}

}  // namespace unshuffle::app
