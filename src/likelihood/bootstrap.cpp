#include "likelihood/bootstrap.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/share_work.hpp"

namespace unshuffle {

Problem drawn_from(const Problem& problem, const Model& bound, const Vector& w, const Matrix& noise_root,
                   const Links& links, RandomStream& random) {
  Problem drawn = problem;
  const LinkedRows rows = link(problem, bound, links.responses, links.features);
  const Matrix f = predict_pairs(bound, rows.x, rows.z, w);
  for (Index k = 0; k < links.size(); ++k) {
    const Vector noise = Vector::NullaryExpr(f.cols(), [&] { return random.normal(); });
    drawn.y.row(links.responses[std::size_t(k)]) = f.row(k) + (noise_root * noise).transpose();
  }
  return drawn;
}

namespace {

// Rows of the population that `seen` was drawn from. The population is not the sample; the weights of the Bayesian
// bootstrap (Rubin 1981) draw one that is compatible with it.
std::vector<Index> like_these(const std::vector<Index>& seen, Index count, RandomStream& random) {
  std::vector<Index> drawn;
  if (count <= 0) return drawn;
  std::vector<double> up_to;
  double total = 0;
  for (std::size_t k = 0; k < seen.size(); ++k) up_to.push_back(total -= std::log1p(-random.uniform()));
  for (Index k = 0; k < count; ++k) {
    const auto at = std::upper_bound(up_to.begin(), std::prev(up_to.end()), total * random.uniform());
    drawn.push_back(seen[std::size_t(at - up_to.begin())]);
  }
  return drawn;
}

}  // namespace

Links random_links(const Problem& problem, RandomStream& random) {
  Links links;
  for (const Block& block : blocks_of(problem)) {
    std::vector<Index> order = block.feature_rows;
    shuffle(order, random);
    const std::vector<Index> unseen =
        like_these(order, Index(block.response_rows.size()) - Index(order.size()), random);
    order.insert(order.end(), unseen.begin(), unseen.end());
    for (std::size_t k = 0; k < block.response_rows.size(); ++k) {
      links.responses.push_back(block.response_rows[k]);
      links.features.push_back(order[k]);
    }
  }
  return links;
}

namespace {

Vector refit_once(const Run& run, const std::function<Vector(int)>& refit, int k) {
  WorkKey key("bootstrap");
  key.add(double(k));
  const auto pack = [](const Vector& w) { return std::optional(to_hex(w)); };
  return finished_or(
      run, key, [&] { return refit(k); }, pack, from_hex);
}

}  // namespace

Matrix spread_of_refits(const Run& run, int samples, const std::function<Vector(int)>& refit) {
  constexpr int round = 16;
  std::vector<Vector> found(static_cast<std::size_t>(samples));
  for (int done = 0; done < samples; done += round) {
    if (run.progress && !run.progress(done, samples)) return {};
    share_work(run, std::size_t(std::min(round, samples - done)),
               [&](std::size_t k) { found[std::size_t(done) + k] = refit_once(run, refit, done + int(k)); });
  }
  if (run.progress) (void)run.progress(samples, samples);
  Matrix all(samples, found.front().size());
  for (Index k = 0; k < samples; ++k) all.row(k) = found[std::size_t(k)];
  all.rowwise() -= all.colwise().mean().eval();
  return all.transpose() * all / std::max(1.0, double(samples - 1));
}

std::string bootstrap_note(int samples, const Matrix& covariance, std::string_view of_what) {
  if (covariance.size() == 0) return "not estimated: the fit was stopped";
  return fmt::format("from {} samples of {}", samples, of_what);
}

RandomStream bootstrap_stream(std::uint64_t seed, int k) { return {seed, Stream::bootstrap, std::uint64_t(k)}; }

}  // namespace unshuffle
