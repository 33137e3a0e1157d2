#include "reproduce/pages.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "report/escape.hpp"
#include "unshuffle/version.hpp"

namespace unshuffle::app {
namespace {

const char* verdict(const Claim& claim) { return claim.holds ? "holds" : "does not hold"; }

std::string table_html(const Listing& table) {
  std::string out = "<table>\n<tr>";
  for (const std::string& name : table.head) out += fmt::format("<th scope=\"col\">{}</th>", escaped(name));
  out += "</tr>\n";
  for (const auto& row : table.rows) {
    out += "<tr>";
    for (const std::string& cell : row) out += fmt::format("<td>{}</td>", escaped(cell));
    out += "</tr>\n";
  }
  return out + "</table>\n";
}

std::string table_markdown(const Listing& table) {
  std::string out = fmt::format("\n| {} |\n|", fmt::join(table.head, " | "));
  for (std::size_t k = 0; k < table.head.size(); ++k) out += "---|";
  out += '\n';
  for (const auto& row : table.rows) out += fmt::format("| {} |\n", fmt::join(row, " | "));
  return out;
}

std::string section(const Reproduced& result) {
  std::string out = fmt::format("<section id=\"{0}\">\n<h2>{0}</h2>\n<p>{1}</p>\n", result.experiment.name,
                                escaped(result.experiment.content));
  out += fmt::format(
      "<object type=\"image/svg+xml\" data=\"{0}.svg\" role=\"img\" aria-label=\"{1}\">Not drawn yet. In this folder, "
      "run: <code>python3 figures.py</code></object>\n",
      result.experiment.name, escaped(result.experiment.content));
  out +=
      "<table>\n<tr><th scope=\"col\">The paper says</th><th scope=\"col\">Here</th><th "
      "scope=\"col\">Found</th></tr>\n";
  for (const Claim& claim : result.findings.claims) {
    out += fmt::format("<tr><td>{}</td><td class=\"{}\">{}</td><td>{}</td></tr>\n", escaped(claim.paper),
                       claim.holds ? "yes" : "no", verdict(claim), escaped(claim.found));
  }
  out += "</table>\n";
  if (!result.findings.table.rows.empty()) out += table_html(result.findings.table);
  return out + fmt::format("<p><a href=\"{0}.csv\">Every single run</a></p>\n</section>\n", result.experiment.name);
}

constexpr const char* style = R"(
body { font: 16px/1.5 system-ui, sans-serif; max-width: 70rem; margin: 2rem auto; padding: 0 1rem; color: #22222a; }
object { display: block; width: 100%; max-width: 56rem; background: #fff; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; vertical-align: top; padding: .4rem .8rem .4rem 0; border-top: 1px solid #ddd; }
td.yes { color: #00664a; font-weight: 600; white-space: nowrap; }
td.no { color: #a3271c; font-weight: 600; white-space: nowrap; }
)";

}  // namespace

std::string index_html(const std::vector<Reproduced>& results) {
  std::string out = fmt::format(
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" "
      "content=\"width=device-width\">\n<title>Experiments of the ROBOT "
      "paper</title>\n<style>{}</style>\n</head>\n<body>\n"
      "<h1>Experiments of the ROBOT paper</h1>\n<p>Made by unshuffle {}. Lines are means over runs, bands the middle "
      "half of the runs.</p>\n<nav>\n",
      style, version);
  for (const Reproduced& result : results) {
    out += fmt::format("<a href=\"#{0}\">{0}</a>\n", result.experiment.name);
  }
  out += "</nav>\n";
  for (const Reproduced& result : results) out += section(result);
  return out + "</body>\n</html>\n";
}

std::string results_markdown(const std::vector<Reproduced>& results) {
  std::string out =
      "# The paper's experiments, run here\n\nWritten by `unshuffle reproduce`, which checks every claim against the "
      "measurements in its CSV files. In the figures, lines are means over runs and bands the middle half of the "
      "runs.\n";
  for (const Reproduced& result : results) {
    out += fmt::format("\n## {0}\n\n{1}\n\n![{1}]({0}.svg)\n\n| the paper says | here | found |\n|---|---|---|\n",
                       result.experiment.name, result.experiment.content);
    for (const Claim& claim : result.findings.claims) {
      out += fmt::format("| {} | {} | {} |\n", claim.paper, verdict(claim), claim.found);
    }
    if (!result.findings.table.rows.empty()) out += table_markdown(result.findings.table);
  }
  return out;
}

}  // namespace unshuffle::app
