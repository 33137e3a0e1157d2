#include "starts/sorted_alternation.hpp"

#include "unshuffle/links/assignment.hpp"

namespace unshuffle {

SortedAlternation sorted_alternation(const Problem& problem, const Model& bound, const Vector& w) {
  constexpr int most_steps = 50;
  const AdditiveModel& model = *bound.additive();
  const Matrix z = bound.basis(Side::feature, problem.z);
  const Matrix x = problem.x.cols() > 0 ? bound.basis(Side::response, problem.x) : Matrix();
  SortedAlternation found{w, {}, 0};
  for (int step = 0; step < most_steps; ++step) {
    Vector t = problem.y.col(0);
    if (x.cols() > 0) t -= model.part(Side::response, x, found.parameters).col(0);
    const std::vector<Index> partner = assign_on_line(t, model.part(Side::feature, z, found.parameters).col(0));
    Links links;
    for (std::size_t i = 0; i < partner.size(); ++i) {
      if (partner[i] < 0) continue;
      links.responses.push_back(static_cast<Index>(i));
      links.features.push_back(partner[i]);
    }
    if (links == found.links) break;
    found.links = std::move(links);
    LinkedRows rows;
    if (x.cols() > 0) rows.x = x(found.links.responses, Eigen::all);
    rows.z = z(found.links.features, Eigen::all);
    rows.y = problem.y(found.links.responses, Eigen::all);
    const LeastSquares solved = least_squares(bound, rows, found.parameters);
    found.parameters = solved.parameters;
    found.squares = solved.squares;
  }
  return found;
}

}  // namespace unshuffle
