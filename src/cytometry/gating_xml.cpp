// Gating-ML 2.0 as XML → GateSet. Names are compared without their namespace prefix, which differs between programs.
#include <fmt/format.h>

#include <Eigen/Cholesky>
#include <algorithm>
#include <pugixml.hpp>
#include <set>
#include <string_view>

#include "cytometry/fcs_text.hpp"
#include "unshuffle/core/error.hpp"
#include "unshuffle/cytometry/gating.hpp"
#include "unshuffle/tables/table.hpp"

namespace unshuffle::cytometry {
namespace {

using Node = pugi::xml_node;

std::string_view local_name(std::string_view name) {
  const auto colon = name.find(':');
  return colon == std::string_view::npos ? name : name.substr(colon + 1);
}

bool is(const Node& node, std::string_view name) { return local_name(node.name()) == name; }

std::vector<Node> children(const Node& node, std::string_view name) {
  std::vector<Node> found;
  for (const Node& child : node.children()) {
    if (is(child, name)) found.push_back(child);
  }
  return found;
}

std::optional<std::string> attribute(const Node& node, std::string_view name) {
  for (const pugi::xml_attribute& candidate : node.attributes()) {
    if (local_name(candidate.name()) == name) return candidate.value();
  }
  return std::nullopt;
}

/// A gate as the file has it, before names are looked up.
struct Drafted {
  Gate gate;
  std::ptrdiff_t offset;
  std::string parent;
  std::vector<std::pair<std::string, bool>> operands;  // Of a Boolean gate: id and complement.
};

class Reader {
 public:
  Reader(const std::string& content, std::string source) : content_(content), source_(std::move(source)) {}

  GateSet read() {
    pugi::xml_document document;
    const auto parsed = document.load_buffer(content_.data(), content_.size());
    if (!parsed) {
      throw BadData(fmt::format("{}: this is not XML: {}", place(parsed.offset), parsed.description()));
    }
    const Node root = document.document_element();
    if (!is(root, "Gating-ML")) {
      throw BadData(fmt::format("{}: the document is <{}>; <gating:Gating-ML> of version 2.0 was expected",
                                place(root.offset_debug()), root.name()));
    }
    set_.source = source_;
    for (const Node& child : root.children()) {
      if (is(child, "transformation")) add_scale(child);
      if (is(child, "spectrumMatrix")) add_matrix(child);
    }
    for (const Node& child : root.children()) add_gate(child);
    if (drafts_.empty()) throw BadData(fmt::format("{}: there is no gate in the file", source_));
    link();
    return std::move(set_);
  }

 private:
  [[nodiscard]] std::string place(std::ptrdiff_t offset) const {
    const auto end = std::clamp<std::ptrdiff_t>(offset, 0, static_cast<std::ptrdiff_t>(content_.size()));
    return fmt::format("{}:{}", source_, 1 + std::count(content_.begin(), content_.begin() + end, '\n'));
  }

  [[noreturn]] void fail(const Node& node, const std::string& what) const {
    throw BadData(fmt::format("{}: <{}>: {}", place(node.offset_debug()), node.name(), what));
  }

  [[nodiscard]] std::string text_attribute(const Node& node, std::string_view name) const {
    const auto value = attribute(node, name);
    if (!value || value->empty()) fail(node, fmt::format("the attribute {} is missing", name));
    return *value;
  }

  [[nodiscard]] double number_in(const Node& node, std::string_view name, const std::string& text) const {
    if (const auto number = to_number(text)) return *number;
    fail(node, fmt::format("{} = \"{}\"; a number was expected", name, text));
  }

  [[nodiscard]] double number(const Node& node, std::string_view name) const {
    return number_in(node, name, text_attribute(node, name));
  }

  [[nodiscard]] std::optional<double> optional_number(const Node& node, std::string_view name) const {
    const auto text = attribute(node, name);
    if (!text) return std::nullopt;
    return number_in(node, name, *text);
  }

  [[nodiscard]] Node only_child(const Node& node, std::string_view name) const {
    const auto found = children(node, name);
    if (found.size() != 1) fail(node, fmt::format("one <{}> was expected, there are {}", name, found.size()));
    return found.front();
  }

  [[nodiscard]] static std::string element_text(const Node& node) { return node.text().get(); }

  void add_scale(const Node& node) {
    const std::string id = text_attribute(node, "id");
    if (set_.scales.contains(id) || ratios_.contains(id)) fail(node, fmt::format("the id \"{}\" is used twice", id));
    for (const Node& child : node.children()) {
      if (is(child, "fratio")) {
        ratios_.emplace(id, ratio(child));
        return;
      }
      const auto scale = scale_of(child);
      if (!scale) continue;
      set_.scales.emplace(id,
                          BoundedScale{*scale, optional_number(node, "boundMin"), optional_number(node, "boundMax")});
      return;
    }
    fail(node, "one of flin, flog, fasinh, logicle, hyperlog or fratio was expected");
  }

  [[nodiscard]] Ratio ratio(const Node& node) const {
    const auto channels = children(node, "fcs-dimension");
    if (channels.size() != 2) fail(node, fmt::format("two channels were expected, there are {}", channels.size()));
    return {text_attribute(channels[0], "name"), text_attribute(channels[1], "name"), number(node, "A"),
            number(node, "B"), number(node, "C")};
  }

  [[nodiscard]] std::optional<Scale> scale_of(const Node& node) const {
    try {
      if (is(node, "flin")) return checked(node, ParametrizedLinear{number(node, "T"), number(node, "A")});
      if (is(node, "flog")) return checked(node, ParametrizedLog{number(node, "T"), number(node, "M")});
      if (is(node, "fasinh")) {
        return checked(node, ParametrizedAsinh{number(node, "T"), number(node, "M"), number(node, "A")});
      }
      if (is(node, "logicle")) return Logicle(parameters(node));
      if (is(node, "hyperlog")) return Hyperlog(parameters(node));
    } catch (const InvalidInput& error) {
      fail(node, error.what());
    }
    return std::nullopt;
  }

  [[nodiscard]] LogicleParameters parameters(const Node& node) const {
    return {.t = number(node, "T"), .w = number(node, "W"), .m = number(node, "M"), .a = number(node, "A")};
  }

  /// The top of every scale is mapped to 1; when it is not, the parameters are out of their ranges.
  template <class Parametrized>
  [[nodiscard]] Scale checked(const Node& node, const Parametrized& scale) const {
    if (!(scale.t > 0) || !(std::abs(scale(scale.t) - 1) < 1e-6) || !(scale(scale.t) > scale(scale.t / 2))) {
      fail(node,
           "the parameters do not define an increasing scale; T > 0, M > 0 and A between 0 and T (flin) or M (fasinh) "
           "were "
           "expected");
    }
    return scale;
  }

  void add_matrix(const Node& node) {
    const std::string id = text_attribute(node, "id");
    if (set_.matrices.contains(id)) fail(node, fmt::format("the id \"{}\" is used twice", id));
    if (attribute(node, "matrix-inverted-already").value_or("false") == "true") {
      fail(node, "inverted matrices are not supported");
    }
    Spillover spillover;
    const auto names = [&](std::string_view list) {
      std::vector<std::string> found;
      for (const Node& child : children(only_child(node, list), "fcs-dimension")) {
        found.push_back(text_attribute(child, "name"));
      }
      return found;
    };
    spillover.dyes = names("fluorochromes");
    spillover.detectors = names("detectors");
    spillover.matrix = matrix(node, "spectrum", "coefficient", spillover.dyes.size(), spillover.detectors.size());
    if (spillover.dyes.size() > spillover.detectors.size()) fail(node, "there are more fluorochromes than detectors");
    set_.matrices.emplace(id, std::move(spillover));
  }

  [[nodiscard]] Vector values(const Node& node, std::string_view element, std::size_t count) const {
    const auto found = children(node, element);
    if (found.size() != count || count == 0) {
      fail(node,
           fmt::format("{} <{}> were expected, there are {}", std::max<std::size_t>(count, 1), element, found.size()));
    }
    Vector out(static_cast<Index>(count));
    for (std::size_t at = 0; at < count; ++at) out[static_cast<Index>(at)] = number(found[at], "value");
    return out;
  }

  [[nodiscard]] Matrix matrix(const Node& node, std::string_view row, std::string_view entry, std::size_t rows,
                              std::size_t columns) const {
    const auto found = children(node, row);
    if (found.size() != rows) fail(node, fmt::format("{} <{}> were expected, there are {}", rows, row, found.size()));
    std::vector<Vector> lines;
    for (const Node& line : found) lines.push_back(values(line, entry, columns));
    Matrix out(static_cast<Index>(rows), static_cast<Index>(columns));
    for (std::size_t at = 0; at < rows; ++at) out.row(static_cast<Index>(at)) = lines[at].transpose();
    return out;
  }

  void add_gate(const Node& node) {
    if (!local_name(node.name()).ends_with("Gate")) return;
    if (is(node, "RectangleGate")) {
      draft(node, rectangle(node));
    } else if (is(node, "PolygonGate")) {
      draft(node, polygon(node));
    } else if (is(node, "EllipsoidGate")) {
      draft(node, ellipsoid(node));
    } else if (is(node, "QuadrantGate")) {
      add_quadrants(node);
    } else if (is(node, "BooleanGate")) {
      add_boolean(node);
    } else {
      fail(node, "a rectangle, polygon, ellipsoid, quadrant or Boolean gate was expected");
    }
  }

  template <class Shape>
  Drafted& draft(const Node& node, Shape shape, const std::string& parent) {
    Drafted drafted{{text_attribute(node, "id"), std::nullopt, std::move(shape)}, node.offset_debug(), parent, {}};
    if (!positions_.emplace(drafted.gate.id, drafts_.size()).second) {
      fail(node, fmt::format("two gates have the id \"{}\"", drafted.gate.id));
    }
    drafts_.push_back(std::move(drafted));
    return drafts_.back();
  }

  template <class Shape>
  Drafted& draft(const Node& node, Shape shape) {
    return draft(node, std::move(shape), attribute(node, "parent_id").value_or(""));
  }

  [[nodiscard]] Dimension dimension(const Node& node) const {
    Dimension out;
    out.compensation = attribute(node, "compensation-ref").value_or(out.compensation);
    out.scale = attribute(node, "transformation-ref").value_or("");
    const auto derived = children(node, "new-dimension");
    if (derived.empty()) {
      out.of = text_attribute(only_child(node, "fcs-dimension"), "name");
    } else {
      const std::string id = text_attribute(derived.front(), "transformation-ref");
      const auto found = ratios_.find(id);
      if (found == ratios_.end()) fail(derived.front(), fmt::format("there is no fratio with the id \"{}\"", id));
      out.of = found->second;
    }
    const bool known =
        out.compensation == "uncompensated" || out.compensation == "FCS" || set_.matrices.contains(out.compensation);
    if (!known) {
      fail(node, fmt::format("compensation-ref = \"{}\"; uncompensated, FCS or the id of a spectrumMatrix was expected",
                             out.compensation));
    }
    if (!out.scale.empty() && !set_.scales.contains(out.scale)) {
      fail(node, fmt::format("there is no transformation with the id \"{}\"", out.scale));
    }
    return out;
  }

  [[nodiscard]] std::vector<Dimension> dimensions(const Node& node) const {
    std::vector<Dimension> out;
    for (const Node& child : children(node, "dimension")) out.push_back(dimension(child));
    if (out.empty()) fail(node, "at least one <dimension> was expected");
    return out;
  }

  [[nodiscard]] RectangleGate rectangle(const Node& node) const {
    RectangleGate gate;
    for (const Node& child : children(node, "dimension")) {
      RectangleGate::Side side{dimension(child), optional_number(child, "min"), optional_number(child, "max")};
      if (!side.lowest && !side.highest) fail(child, "min, max or both were expected");
      gate.sides.push_back(std::move(side));
    }
    if (gate.sides.empty()) fail(node, "at least one <dimension> was expected");
    return gate;
  }

  [[nodiscard]] PolygonGate polygon(const Node& node) const {
    const std::vector<Dimension> both = dimensions(node);
    if (both.size() != 2) fail(node, fmt::format("two <dimension> were expected, there are {}", both.size()));
    const std::size_t vertices = children(node, "vertex").size();
    if (vertices < 3) fail(node, fmt::format("at least three <vertex> were expected, there are {}", vertices));
    return {both[0], both[1], matrix(node, "vertex", "coordinate", vertices, 2)};
  }

  [[nodiscard]] EllipsoidGate ellipsoid(const Node& node) const {
    EllipsoidGate gate;
    gate.dimensions = dimensions(node);
    const std::size_t count = gate.dimensions.size();
    gate.mean = values(only_child(node, "mean"), "coordinate", count);
    const Node covariance_node = only_child(node, "covarianceMatrix");
    const Matrix covariance = matrix(covariance_node, "row", "entry", count, count);
    if (!covariance.isApprox(covariance.transpose())) fail(covariance_node, "a symmetric matrix was expected");
    const Eigen::LLT<Matrix> factors(covariance);
    if (factors.info() != Eigen::Success) fail(covariance_node, "a positive definite matrix was expected");
    gate.precision = factors.solve(Matrix::Identity(covariance.rows(), covariance.cols()));
    gate.distance_square = number(only_child(node, "distanceSquare"), "value");
    if (gate.distance_square < 0) fail(node, fmt::format("distanceSquare = {} is negative", gate.distance_square));
    return gate;
  }

  struct Divider {
    Dimension dimension;
    std::vector<double> values;
  };

  /// A quadrant is the box between the dividers around the locations it names.
  void add_quadrants(const Node& node) {
    std::map<std::string, Divider> dividers;
    for (const Node& child : children(node, "divider")) {
      Divider divider{dimension(child), {}};
      for (const Node& value : children(child, "value")) {
        divider.values.push_back(number_in(value, "value", element_text(value)));
      }
      if (divider.values.empty()) fail(child, "at least one <value> was expected");
      std::sort(divider.values.begin(), divider.values.end());
      const std::string id = text_attribute(child, "id");
      if (!dividers.emplace(id, std::move(divider)).second) fail(child, fmt::format("the id \"{}\" is used twice", id));
    }
    const auto quadrants = children(node, "Quadrant");
    if (quadrants.empty()) fail(node, "at least one <Quadrant> was expected");
    for (const Node& child : quadrants) {
      draft(child, quadrant(child, dividers), attribute(node, "parent_id").value_or(""));
    }
  }

  [[nodiscard]] RectangleGate quadrant(const Node& node, const std::map<std::string, Divider>& dividers) const {
    RectangleGate gate;
    for (const Node& position : children(node, "position")) {
      const std::string id = text_attribute(position, "divider_ref");
      const auto found = dividers.find(id);
      if (found == dividers.end()) fail(position, fmt::format("there is no divider with the id \"{}\"", id));
      const std::vector<double>& values = found->second.values;
      const auto above = std::upper_bound(values.begin(), values.end(), number(position, "location"));
      RectangleGate::Side side{found->second.dimension};
      if (above != values.begin()) side.lowest = *(above - 1);
      if (above != values.end()) side.highest = *above;
      gate.sides.push_back(std::move(side));
    }
    if (gate.sides.empty()) fail(node, "at least one <position> was expected");
    return gate;
  }

  void add_boolean(const Node& node) {
    using Operation = BooleanGate::Operation;
    std::vector<std::pair<Operation, Node>> found;
    for (const Node& child : node.children()) {
      if (is(child, "and")) found.emplace_back(Operation::conjunction, child);
      if (is(child, "or")) found.emplace_back(Operation::disjunction, child);
      if (is(child, "not")) found.emplace_back(Operation::negation, child);
    }
    if (found.size() != 1) fail(node, "one of <and>, <or>, <not> was expected");
    const auto [operation, list] = found.front();
    Drafted& drafted = draft(node, BooleanGate{operation, {}});
    for (const Node& reference : children(list, "gateReference")) {
      const std::string complement = attribute(reference, "use-as-complement").value_or("false");
      drafted.operands.emplace_back(text_attribute(reference, "ref"), complement == "true" || complement == "1");
    }
    const std::size_t count = drafted.operands.size();
    if (operation == Operation::negation && count != 1) fail(list, fmt::format("one gate was expected, not {}", count));
    if (count == 0) fail(list, "at least one <gateReference> was expected");
  }

  [[nodiscard]] std::size_t position_of(const std::string& id, const Drafted& by) const {
    const auto found = positions_.find(id);
    if (found != positions_.end()) return found->second;
    throw BadData(fmt::format("{}: gate \"{}\" refers to the gate \"{}\", which is not in the file", place(by.offset),
                              by.gate.id, id));
  }

  /// Looks names up and orders the gates so that each follows those it needs.
  void link() {
    std::vector<std::vector<std::size_t>> needs(drafts_.size());
    for (std::size_t at = 0; at < drafts_.size(); ++at) {
      Drafted& drafted = drafts_[at];
      if (!drafted.parent.empty()) {
        drafted.gate.parent = position_of(drafted.parent, drafted);
        needs[at].push_back(*drafted.gate.parent);
      }
      for (const auto& [id, complement] : drafted.operands) {
        const std::size_t operand = position_of(id, drafted);
        std::get<BooleanGate>(drafted.gate.shape).operands.push_back({operand, complement});
        needs[at].push_back(operand);
      }
    }
    order(needs);
    for (Drafted& drafted : drafts_) set_.gates.push_back(std::move(drafted.gate));
  }

  /// Kahn's algorithm; what is left over needs itself. No recursion: a chain of gates may be as long as the file.
  void order(const std::vector<std::vector<std::size_t>>& needs) {
    std::vector<std::vector<std::size_t>> needed_by(needs.size());
    std::vector<std::size_t> open(needs.size());
    for (std::size_t gate = 0; gate < needs.size(); ++gate) {
      open[gate] = needs[gate].size();
      for (const std::size_t need : needs[gate]) needed_by[need].push_back(gate);
      if (open[gate] == 0) set_.sequence.push_back(gate);
    }
    for (std::size_t at = 0; at < set_.sequence.size(); ++at) {
      for (const std::size_t gate : needed_by[set_.sequence[at]]) {
        if (--open[gate] == 0) set_.sequence.push_back(gate);
      }
    }
    for (std::size_t gate = 0; gate < needs.size(); ++gate) {
      if (open[gate] == 0) continue;
      throw BadData(fmt::format("{}: gate \"{}\" depends on itself, through its parent or a reference",
                                place(drafts_[gate].offset), drafts_[gate].gate.id));
    }
  }

  const std::string& content_;
  std::string source_;
  GateSet set_;
  std::map<std::string, Ratio> ratios_;
  std::vector<Drafted> drafts_;
  std::map<std::string, std::size_t> positions_;
};

}  // namespace

GateSet parse_gating_ml(const std::string& content, const std::string& source) {
  return Reader(content, source).read();
}

GateSet read_gating_ml(const std::string& path) { return parse_gating_ml(read_file(path), path); }

}  // namespace unshuffle::cytometry
