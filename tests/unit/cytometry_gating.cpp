#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>

#include "support/complaint.hpp"
#include "support/test_data.hpp"
#include "unshuffle/core/error.hpp"
#include "unshuffle/cytometry/gating.hpp"

namespace unshuffle::cytometry {
namespace {

std::string document(const std::string& body) { return "<g:Gating-ML xmlns:g=\"x\">\n" + body + "\n</g:Gating-ML>"; }

std::string on(const std::string& channel, const std::string& attributes = "") {
  return "<g:dimension " + attributes + "><d:fcs-dimension d:name=\"" + channel + "\"/></g:dimension>";
}

std::string range(const std::string& id, const std::string& channel, const std::string& limits,
                  const std::string& attributes = "") {
  return "<g:RectangleGate g:id=\"" + id + "\" " + attributes + ">" + on(channel, limits) + "</g:RectangleGate>";
}

FcsFile points(const Matrix& values) {
  FcsFile file;
  file.source = "t.fcs";
  file.events = values;
  for (const char* name : {"A", "B"}) file.channels.push_back({.name = name, .range = 1024});
  return file;
}

/// Membership in the last gate of the document.
std::vector<bool> members(const std::string& body, const FcsFile& file) {
  return membership(parse_gating_ml(document(body), "g.xml"), file).back();
}

std::string complaint(const std::string& content) {
  return unshuffle::complaint([&] { (void)parse_gating_ml(content, "g.xml"); });
}

using Bools = std::vector<bool>;

const FcsFile& line() {
  static const FcsFile file = points((Matrix(4, 2) << 0, 0, 1, 0, 2, 5, 3, 5).finished());
  return file;
}

TEST(Gating, a_range_holds_its_lower_end_and_not_its_upper) {
  EXPECT_EQ(members(range("r", "A", "g:min=\"1\" g:max=\"3\""), line()), (Bools{false, true, true, false}));
  EXPECT_EQ(members(range("r", "A", "g:min=\"2\""), line()), (Bools{false, false, true, true}));
  EXPECT_EQ(members(range("r", "A", "g:max=\"2\""), line()), (Bools{true, true, false, false}));
}

std::string polygon(const std::vector<std::pair<int, int>>& vertices) {
  std::string out = "<g:PolygonGate g:id=\"p\">" + on("A") + on("B");
  for (const auto& [x, y] : vertices) {
    out += fmt::format("<g:vertex><g:coordinate d:value=\"{}\"/><g:coordinate d:value=\"{}\"/></g:vertex>", x, y);
  }
  return out + "</g:PolygonGate>";
}

TEST(Gating, a_polygon_holds_its_outline) {
  const FcsFile file = points((Matrix(6, 2) << 2, 2, 0, 0, 4, 2, 2, 4, 5, 2, -1, 4).finished());
  EXPECT_EQ(members(polygon({{0, 0}, {4, 0}, {4, 4}, {0, 4}}), file), (Bools{true, true, true, true, false, false}));
}

TEST(Gating, points_on_a_slanted_edge_are_inside_whatever_their_digits) {
  const std::string triangle = polygon({{5, 5}, {500, 5}, {500, 500}});
  Matrix diagonal(400, 2);
  for (Index row = 0; row < diagonal.rows(); ++row) {
    diagonal.row(row).setConstant(std::pow(10.0, 4.0 * static_cast<double>(row + 200) / 1024));
  }
  const Bools inside = members(triangle, points(diagonal));
  EXPECT_EQ(std::count(inside.begin(), inside.end(), true), 400);
}

TEST(Gating, a_polygon_that_crosses_itself_is_even_odd) {
  // A five-pointed star drawn in one stroke: its middle is wound around twice, and so outside.
  const std::string star = polygon({{0, 100}, {59, -81}, {-95, 31}, {95, 31}, {-59, -81}});
  const FcsFile file = points((Matrix(3, 2) << 0, 0, 0, 80, 50, -20).finished());
  EXPECT_EQ(members(star, file), (Bools{false, true, false}));
}

TEST(Gating, an_ellipse_is_within_a_distance_in_its_own_metric) {
  const std::string ellipse =
      "<g:EllipsoidGate g:id=\"e\">" + on("A") + on("B") +
      "<g:mean><g:coordinate d:value=\"1\"/><g:coordinate d:value=\"0\"/></g:mean><g:covarianceMatrix>"
      "<g:row><g:entry d:value=\"4\"/><g:entry d:value=\"0\"/></g:row>"
      "<g:row><g:entry d:value=\"0\"/><g:entry d:value=\"1\"/></g:row></g:covarianceMatrix>"
      "<g:distanceSquare d:value=\"1\"/></g:EllipsoidGate>";
  const FcsFile file = points((Matrix(4, 2) << 1, 0, 3, 0, 1, 1.1, 3.1, 0).finished());
  EXPECT_EQ(members(ellipse, file), (Bools{true, true, false, false}));
}

TEST(Gating, quadrants_take_the_interval_their_location_is_in) {
  const std::string quadrants =
      "<g:QuadrantGate g:id=\"q\"><g:divider g:id=\"a\"><d:fcs-dimension d:name=\"A\"/><g:value>2</g:value>"
      "<g:value>1</g:value></g:divider><g:Quadrant g:id=\"middle\"><g:position g:divider_ref=\"a\" "
      "g:location=\"1.5\"/></g:Quadrant></g:QuadrantGate>";
  EXPECT_EQ(members(quadrants, line()), (Bools{false, true, false, false}));
}

TEST(Gating, boolean_gates_may_stand_before_what_they_refer_to) {
  const auto combined = [](const std::string& operation, const std::string& references) {
    const std::string body = "<g:BooleanGate g:id=\"b\"><g:" + operation + ">" + references + "</g:" + operation +
                             "></g:BooleanGate>" + range("low", "A", "g:max=\"2\"") + range("even", "B", "g:max=\"1\"");
    return membership(parse_gating_ml(document(body), "g.xml"),
                      points((Matrix(3, 2) << 0, 0, 1, 5, 3, 0).finished()))[0];
  };
  const std::string low = "<g:gateReference g:ref=\"low\"/>";
  const std::string even = "<g:gateReference g:ref=\"even\"/>";
  const std::string not_even = "<g:gateReference g:ref=\"even\" g:use-as-complement=\"true\"/>";
  EXPECT_EQ(combined("and", low + even), (Bools{true, false, false}));
  EXPECT_EQ(combined("or", low + even), (Bools{true, true, true}));
  EXPECT_EQ(combined("not", low), (Bools{false, false, true}));
  EXPECT_EQ(combined("and", low + not_even), (Bools{false, true, false}));
}

TEST(Gating, a_child_is_within_its_parent) {
  const std::string body =
      range("parent", "B", "g:min=\"5\"") + range("child", "A", "g:max=\"3\"", "g:parent_id=\"parent\"");
  EXPECT_EQ(members(body, line()), (Bools{false, false, true, false}));
}

TEST(Gating, a_chain_of_many_parents_is_no_trouble) {
  std::string body;
  for (int at = 20000; at > 0; --at) {
    body += range(fmt::format("g{}", at), "A", "g:min=\"1\"", fmt::format("g:parent_id=\"g{}\"", at - 1));
  }
  body += range("g0", "A", "g:max=\"3\"");
  const GateSet gates = parse_gating_ml(document(body), "g.xml");
  EXPECT_EQ(membership(gates, line()).front(), (Bools{false, true, true, false}));
}

TEST(Gating, scales_bounds_and_ratios_are_applied_before_the_gate) {
  const std::string scale =
      "<t:transformation t:id=\"s\" t:boundMin=\"0.25\"><t:flin t:T=\"4\" t:A=\"0\"/></t:transformation>";
  EXPECT_EQ(members(scale + range("r", "A", "g:transformation-ref=\"s\" g:min=\"0.5\""), line()),
            (Bools{false, false, true, true}));
  EXPECT_EQ(members(scale + range("r", "A", "g:transformation-ref=\"s\" g:min=\"0.2\" g:max=\"0.3\""), line()),
            (Bools{true, true, false, false}));
  const std::string ratio =
      "<t:transformation t:id=\"q\"><t:fratio t:A=\"1\" t:B=\"0\" t:C=\"0\"><d:fcs-dimension d:name=\"A\"/>"
      "<d:fcs-dimension d:name=\"B\"/></t:fratio></t:transformation><g:RectangleGate g:id=\"r\"><g:dimension "
      "g:min=\"0.5\"><d:new-dimension d:transformation-ref=\"q\"/></g:dimension></g:RectangleGate>";
  EXPECT_EQ(members(ratio, line()), (Bools{false, true, false, true}));  // 0/0, 1/0, 2/5, 3/5
}

TEST(Gating, dyes_are_unmixed_by_the_files_matrix_or_by_one_of_the_document) {
  FcsFile file = points((Matrix(1, 2) << 10, 5).finished());
  file.keywords["$SPILLOVER"] = "2,A,B,1,0.5,0,1";  // B sees half of A: its own signal is 0.
  EXPECT_EQ(members(range("r", "B", "g:compensation-ref=\"uncompensated\" g:min=\"1\""), file), (Bools{true}));
  EXPECT_EQ(members(range("r", "B", "g:compensation-ref=\"FCS\" g:min=\"1\""), file), (Bools{false}));
  const std::string matrix =
      "<t:spectrumMatrix t:id=\"m\"><t:fluorochromes><d:fcs-dimension d:name=\"dye\"/></t:fluorochromes><t:detectors>"
      "<d:fcs-dimension d:name=\"A\"/><d:fcs-dimension d:name=\"B\"/></t:detectors><t:spectrum><t:coefficient "
      "t:value=\"1\"/><t:coefficient t:value=\"0.5\"/></t:spectrum></t:spectrumMatrix>";
  EXPECT_EQ(members(matrix + range("r", "dye", "g:compensation-ref=\"m\" g:min=\"9.99\" g:max=\"10.01\""), file),
            (Bools{true}));
}

TEST(Gating, patterns_name_the_gates_an_event_is_in) {
  const GateSet gates =
      parse_gating_ml(document(range("low", "A", "g:max=\"2\"") + range("zero", "A", "g:max=\"1\"")), "g.xml");
  EXPECT_EQ(gate_patterns(gates, membership(gates, line())),
            (std::vector<std::string>{"low+zero", "low", "none", "none"}));
}

TEST(GatingRefusal, says_file_line_element_and_value) {
  EXPECT_EQ(complaint(document("<g:RectangleGate g:id=\"r\">\n" + on("A", "g:min=\"low\"") + "</g:RectangleGate>")),
            "g.xml:3: <g:dimension>: min = \"low\"; a number was expected");
  EXPECT_NE(complaint("nonsense").find("g.xml:1: this is not XML"), std::string::npos);
  EXPECT_NE(complaint("<a/>").find("<gating:Gating-ML> of version 2.0 was expected"), std::string::npos);
  EXPECT_NE(complaint(document("")).find("there is no gate"), std::string::npos);
  EXPECT_NE(complaint(document("<g:PolytopeGate g:id=\"p\"/>")).find("Boolean gate was expected"), std::string::npos);
  EXPECT_NE(complaint(document(range("r", "A", ""))).find("min, max or both"), std::string::npos);
  EXPECT_NE(complaint(document(range("r", "A", "g:min=\"1\"", "g:parent_id=\"x\""))).find("gate \"x\""),
            std::string::npos);
  EXPECT_NE(complaint(document(range("r", "A", "g:min=\"1\"", "g:parent_id=\"r\""))).find("\"r\" depends on itself"),
            std::string::npos);
  EXPECT_NE(complaint(document(range("r", "A", "g:min=\"1\"") + range("r", "B", "g:min=\"1\""))).find("two gates"),
            std::string::npos);
  EXPECT_NE(complaint(document(range("r", "A", "g:min=\"1\" g:transformation-ref=\"s\""))).find("id \"s\""),
            std::string::npos);
  EXPECT_NE(complaint(document(range("r", "A", "g:min=\"1\" g:compensation-ref=\"m\""))).find("spectrumMatrix"),
            std::string::npos);
  EXPECT_NE(complaint(document(polygon({{0, 0}, {1, 1}}))).find("three <vertex>"), std::string::npos);
  EXPECT_NE(complaint(document("<t:transformation t:id=\"s\"><t:logicle t:T=\"1\" t:W=\"9\" t:M=\"4\" t:A=\"0\"/>"
                               "</t:transformation>"))
                .find("W = 9 must be"),
            std::string::npos);
  EXPECT_NE(complaint(document("<t:transformation t:id=\"s\"><t:flog t:T=\"-1\" t:M=\"4\"/></t:transformation>"))
                .find("do not define an increasing scale"),
            std::string::npos);
}

TEST(GatingRefusal, a_channel_the_file_does_not_have) {
  const GateSet gates = parse_gating_ml(document(range("r", "CD4", "g:min=\"1\"")), "g.xml");
  EXPECT_THROW((void)membership(gates, line()), BadData);
}

TEST(GatingRefusal, entities_are_not_expanded) {
  const std::string content =
      "<!DOCTYPE x [<!ENTITY file SYSTEM \"/etc/passwd\">]>" + document(range("&file;", "A", "g:min=\"1\""));
  EXPECT_EQ(parse_gating_ml(content, "g.xml").gates[0].id, "&file;");
}

struct Truth {
  const char* file;
  const char* gate;
};

void PrintTo(const Truth& truth, std::ostream* out) { *out << truth.gate << " of " << truth.file; }

class GatingTruth : public ::testing::TestWithParam<Truth> {};

TEST_P(GatingTruth, every_event_is_where_the_published_result_has_it) {
  const std::filesystem::path folder = test_data("../../../shared/data/cytometry/gating");
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << "the gate files are not here";
  const GateSet gates = read_gating_ml((folder / GetParam().file).string());
  const Membership all = membership(gates, read_fcs((folder / "data1.fcs").string()));
  std::size_t at = 0;
  while (gates.gates.at(at).id != GetParam().gate) ++at;
  std::ifstream expected(folder / ("Results_" + std::string(GetParam().gate) + ".txt"));
  std::size_t event = 0;
  std::size_t wrong = 0;
  for (int inside = 0; expected >> inside; ++event) wrong += all[at].at(event) != (inside == 1) ? 1U : 0U;
  EXPECT_EQ(event, 13367U);
  EXPECT_EQ(wrong, 0U);
}

INSTANTIATE_TEST_SUITE_P(
    Published, GatingTruth,
    ::testing::Values(Truth{"gml_boolean_and1_gate.xml", "And1"}, Truth{"gml_ellipse1_gate.xml", "Ellipse1"},
                      Truth{"gml_poly1_gate.xml", "Polygon1"}, Truth{"gml_poly2_gate.xml", "Polygon2"},
                      Truth{"gml_quadrant1_gate.xml", "FL2N-FL4N"}, Truth{"gml_quadrant1_gate.xml", "FL2N-FL4P"},
                      Truth{"gml_quadrant1_gate.xml", "FL2P-FL4N"}, Truth{"gml_quadrant1_gate.xml", "FL2P-FL4P"},
                      Truth{"gml_range_gate.xml", "Range1"}, Truth{"gml_rect1_gate.xml", "Rectangle1"},
                      Truth{"gml_rect2_gate.xml", "Rectangle2"}));

}  // namespace
}  // namespace unshuffle::cytometry
