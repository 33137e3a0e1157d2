#include "unshuffle/report/html.hpp"

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "report/escape.hpp"
#include "report/page.hpp"
#include "report/pictures.hpp"

namespace unshuffle {
namespace {

using Json = nlohmann::ordered_json;

Json to_json(const Distribution& made) {
  return {
      {"response", made.response}, {"edges", made.edges}, {"observed", made.observed}, {"predicted", made.predicted}};
}

Json to_json(const Correspondence& made) {
  return {{"rows", made.rows},
          {"row_mass", made.row_mass},
          {"feature_from", made.feature_from},
          {"feature_mass", made.feature_mass},
          {"share", made.share}};
}

Json to_json(const Landscape& made) {
  return {{"direction", made.direction},
          {"offset", made.offset},
          {"objective", made.objective},
          {"objective_name", made.objective_name}};
}

Json to_json(const CalibrationBin& bin) {
  return {{"from", bin.from},
          {"to", bin.to},
          {"mean_probability", bin.mean_probability},
          {"pairs", bin.pairs},
          {"right", bin.right}};
}

template <class Item>
Json to_array(const std::vector<Item>& items) {
  Json array = Json::array();
  for (const Item& item : items) array.push_back(to_json(item));
  return array;
}

/// [iteration, objective] of every start, long ones thinned.
Json descents(const Course& course) {
  constexpr std::size_t most = 200;
  std::map<int, std::vector<const TracePoint*>> by_start;
  for (const TracePoint& point : course.trace) by_start[point.start].push_back(&point);
  Json all = Json::array();
  for (const auto& [start, points] : by_start) {
    Json line = Json::array();
    const std::size_t stride = 1 + points.size() / most;
    for (std::size_t at = 0; at < points.size(); ++at) {
      if (at % stride != 0 && at + 1 != points.size()) continue;
      line.push_back({points[at]->iteration, points[at]->objective});
    }
    all.push_back({{"start", start}, {"points", line}});
  }
  return all;
}

Json ends(const Course& course) {
  Json all = Json::array();
  for (const Candidate& candidate : course.candidates) {
    all.push_back({{"start", candidate.start},
                   {"objective", candidate.objective},
                   {"converged", candidate.converged},
                   {"iterations", candidate.iterations}});
  }
  return all;
}

/// JSON as a script element may hold it: names of columns are anyone's, and none of them may begin a tag or a comment.
std::string inside_script(const Json& data) {
  constexpr bool only_ascii = true;
  std::string out;
  for (const char c : data.dump(-1, ' ', only_ascii, Json::error_handler_t::replace)) {
    if (c == '<') {
      out += "\\u003c";
    } else {
      out += c;
    }
  }
  return out;
}

/// The page with a content in each of its places, which come in this order; what looks like a place within a content
/// stays as it is.
std::string filled(std::string_view page, const std::vector<std::pair<std::string_view, std::string>>& contents) {
  std::string out;
  for (const auto& [place, content] : contents) {
    const std::size_t at = page.find(place);
    out.append(page.substr(0, at)).append(content);
    page.remove_prefix(at + place.size());
  }
  return out.append(page);
}

}  // namespace

std::string html_report(const ReportInput& input) {
  const Json data{{"fit", Json::parse(unshuffle::to_json(input.result, input.context))},
                  {"names", input.result.names},
                  {"parameters", std::vector<double>(input.result.parameters.begin(), input.result.parameters.end())},
                  {"standardisation", standardisation(input)},
                  {"unmatched",
                   {{"responses", input.matching.unmatched_responses.size()},
                    {"features", input.matching.unmatched_features.size()}}},
                  {"distributions", to_array(distributions(input))},
                  {"correspondence", to_json(correspondence(input))},
                  {"descents", descents(input.result.course)},
                  {"ends", ends(input.result.course)},
                  {"landscape", to_json(landscape(input))},
                  {"calibration", to_array(calibration(input))}};
  return filled(report_page, {{"<!--summary-->", escaped(summary_of(input.result, input.context))},
                              {"/*data*/", inside_script(data)}});
}

}  // namespace unshuffle
