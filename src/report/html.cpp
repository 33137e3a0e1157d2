#include "unshuffle/report/html.hpp"

#include <map>
#include <nlohmann/json.hpp>

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

/// Inside a script element nothing may look like its end.
std::string inside_script(const std::string& json) {
  std::string out;
  for (const char c : json) {
    if (c == '/' && !out.empty() && out.back() == '<') out += '\\';
    out += c;
  }
  return out;
}

void replace(std::string& page, const std::string& place, const std::string& content) {
  const std::size_t at = page.find(place);
  page.replace(at, place.size(), content);
}

}  // namespace

std::string html_report(const ReportInput& input) {
  const Json data{{"fit", Json::parse(unshuffle::to_json(input.result, input.context))},
                  {"names", input.result.names},
                  {"parameters", std::vector<double>(input.result.parameters.begin(), input.result.parameters.end())},
                  {"unmatched",
                   {{"responses", input.matching.unmatched_responses.size()},
                    {"features", input.matching.unmatched_features.size()}}},
                  {"distributions", to_array(distributions(input))},
                  {"correspondence", to_json(correspondence(input))},
                  {"descents", descents(input.result.course)},
                  {"ends", ends(input.result.course)},
                  {"landscape", to_json(landscape(input))},
                  {"calibration", to_array(calibration(input))}};
  std::string page = report_page;
  replace(page, "<!--summary-->", escaped(summary_of(input.result, input.context)));
  replace(page, "/*data*/", inside_script(data.dump(-1, ' ', false, Json::error_handler_t::replace)));
  return page;
}

}  // namespace unshuffle
