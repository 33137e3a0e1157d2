#include "unshuffle/model/registry.hpp"

#include <fmt/format.h>

#include <charconv>
#include <optional>
#include <string_view>

#include "unshuffle/core/error.hpp"
#include "unshuffle/model/linear.hpp"
#include "unshuffle/model/sine.hpp"
#include "unshuffle/model/spatial.hpp"
#include "unshuffle/model/spline.hpp"

namespace unshuffle {

namespace {

/// K of "spline:K", or -1 when the text is something else.
int spline_knots(const std::string& spec) {
  constexpr std::string_view prefix = "spline:";
  if (!spec.starts_with(prefix)) return -1;
  const char* begin = spec.data() + prefix.size();
  const char* end = spec.data() + spec.size();
  int knots = -1;
  const auto [rest, error] = std::from_chars(begin, end, knots);
  return error == std::errc() && rest == end && knots <= 1000 ? knots : -1;
}

std::optional<MapKind> map_kind(const std::string& spec) {
  for (const auto& [word, kind] : map_kind_words)
    if (spec == word) return kind;
  return {};
}

[[noreturn]] void refuse(const std::string& spec) {
  throw InvalidInput(
      fmt::format("model = \"{}\" must be linear, sine or spline:K with K from 0 to 1000, or for points rigid, "
                  "similarity or affine",
                  spec));
}

}  // namespace

std::unique_ptr<Model> make_model(const std::string& spec, bool intercept) {
  if (spec == "linear") return std::make_unique<Linear>(intercept);
  if (spec == "sine") return std::make_unique<Sine>();
  if (const auto kind = map_kind(spec)) return std::make_unique<SpatialMap>(*kind);
  const int knots = spline_knots(spec);
  if (knots < 0) refuse(spec);
  return std::make_unique<Spline>(knots, intercept);
}

std::vector<double> model_state(const Model& bound) {
  const auto* spline = dynamic_cast<const Spline*>(&bound);
  return spline == nullptr ? std::vector<double>{} : spline->state();
}

std::unique_ptr<Model> restore_model(const std::string& spec, bool intercept, std::vector<std::string> x_names,
                                     std::vector<std::string> z_names, std::vector<std::string> y_names,
                                     const std::vector<double>& state) {
  if (spec == "linear") {
    return Linear::restored(intercept, std::move(x_names), std::move(z_names), std::move(y_names));
  }
  if (spec == "sine") return Sine::restored(x_names, z_names);
  if (const auto kind = map_kind(spec)) return SpatialMap::restored(*kind, z_names, y_names);
  const int knots = spline_knots(spec);
  if (knots < 0) refuse(spec);
  return Spline::restored(knots, intercept, x_names, z_names, y_names, state);
}

}  // namespace unshuffle
