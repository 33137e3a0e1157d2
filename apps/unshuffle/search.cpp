#include "search.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "unshuffle/core/error.hpp"
#include "unshuffle/report/json.hpp"
#include "unshuffle/tables/table.hpp"

namespace unshuffle::app {
namespace {

void add_method_settings(CLI::App& app, SearchOptions& options) {
  const auto special = [&](CLI::Option* option, std::vector<Method> methods) {
    options.special.push_back({option->capture_default_str(), std::move(methods)});
  };
  special(app.add_option("--am-step", options.am_step, "am: refit exactly after each matching, or one gradient step.")
              ->check(CLI::IsMember({"exact", "gradient"})),
          {Method::am});
  special(app.add_option("--em-chains", options.em_chains, "em, hard-em: independent chains over matchings."),
          {Method::em, Method::hard_em});
  special(app.add_option("--em-swaps", options.em_swaps, "em, hard-em: swaps proposed per row, chain and iteration."),
          {Method::em, Method::hard_em});
  special(app.add_option("--rr-threshold", options.rr_threshold,
                         "rr: residuals beyond so many noise standard deviations count as wrong links."),
          {Method::rr});
  special(app.add_option("--rs-samples", options.rs_samples, "rs: hypotheses tried."), {Method::rs});
  special(app.add_option("--rs-threshold", options.rs_threshold,
                         "rs: largest residual of a row that agrees, in standard deviations of the response."),
          {Method::rs});
  special(app.add_option("--gw-slices", options.gw_slices, "sliced-gw: directions tried."), {Method::sliced_gw});
  special(app.add_option("--gw-epsilon", options.gw_epsilon, "sinkhorn-gw: smoothing, relative to the largest cost."),
          {Method::sinkhorn_gw});
  special(app.add_option("--unroll", options.unroll, "robot-unrolled: Sinkhorn iterations differentiated through."),
          {Method::robot_unrolled});
}

StartKind to_start_kind(const std::string& start) {
  if (start == "auto") return StartKind::automatic;
  if (start == "ls") return StartKind::least_squares;
  if (start == "ransac") return StartKind::ransac;
  if (start == "group-means") return StartKind::group_means;
  if (start == "random") return StartKind::random;
  return StartKind::user;
}

}  // namespace

void add_search_options(CLI::App& app, SearchOptions& options) {
  app.add_option(
         "--hint", options.hint,
         "rows: row i of one table probably belongs to row i of the other; none: the order says nothing. Without it, "
         "auto looks whether it does, and other methods take rows for one table, none for two.")
      ->check(CLI::IsMember({"rows", "none"}));
  app.add_option(
      "--known", options.known,
      "CSV with columns response_row,feature_row, counted from 0: links that are certain. Methods keep them; "
      "oracle uses nothing else.");
  app.add_option(
      "--prior", options.prior,
      "CSV with columns response_row,feature_row,weight, rows counted from 0: the prior odds > 0 of that pair relative "
      "to the pairs not listed, which have 1. Needs a matrix of all pairs; methods auto, entropic, robot and "
      "robot-robust.");
  options.special.push_back({app.add_option("--truth", options.truth,
                                            "truth.json of unshuffle simulate; the oracle takes the links from it."),
                             {Method::oracle}});
  app.add_option("--start", options.start, "auto, ls, ransac, group-means, random, or a fit.json to start from.")
      ->capture_default_str();
  app.add_option("--starts", options.starts, "How many starts; 0 chooses.")->capture_default_str();
  app.add_option("--max-iterations", options.max_iterations, "Per start; 0 chooses.")->capture_default_str();
  options.special.push_back(
      {app.add_flag("--paper-settings", options.paper_settings,
                    "Train as the paper does: momentum on mini-batches of 500 rows, rate 1e-4, 2000 steps (models that "
                    "are not linear: 80 steps, smaller batches), epsilon 1e-4 of the largest cost."),
       {Method::robot, Method::robot_robust, Method::am}});
  add_method_settings(app, options);
  options.special.push_back(
      {app.add_option("--noise-sd", options.noise_sd, "Standard deviation of the noise when it is known; 0: estimated.")
           ->capture_default_str(),
       {Method::automatic, Method::mixture, Method::entropic}});
  options.special.push_back(
      {app.add_option(
              "--bootstrap", options.bootstrap,
              "Standard errors from so many samples of the fitted model (adjusted: of the rows); 0: by formula.")
           ->capture_default_str(),
       {Method::automatic, Method::mixture, Method::entropic, Method::adjusted}});
  app.add_option("--seed", options.seed, "Of everything random; same seed, same result.")->capture_default_str();
}

void require_read_by(Method method, const SearchOptions& options) {
  for (const auto& [option, methods] : options.special) {
    std::string names;
    for (const Method one : methods) names += fmt::format("{}{}", names.empty() ? "--method " : ", ", name_of(one));
    require_meaning(*option, std::find(methods.begin(), methods.end(), method) != methods.end(), names);
  }
}

void apply(const SearchOptions& options, bool one_table, FitOptions& fit) {
  require(options.starts >= 0, "--starts", options.starts, "at least 0");
  require(options.max_iterations >= 0, "--max-iterations", options.max_iterations, "at least 0");
  require(options.em_chains >= 1, "--em-chains", options.em_chains, "at least 1");
  require(options.em_swaps > 0 && std::isfinite(options.em_swaps), "--em-swaps", options.em_swaps, "> 0");
  require(options.rr_threshold > 0 && std::isfinite(options.rr_threshold), "--rr-threshold", options.rr_threshold,
          "> 0");
  require(options.rs_samples >= 1, "--rs-samples", double(options.rs_samples), "at least 1");
  require(options.rs_threshold > 0 && std::isfinite(options.rs_threshold), "--rs-threshold", options.rs_threshold,
          "> 0");
  require(options.gw_slices >= 1, "--gw-slices", options.gw_slices, "at least 1");
  require(options.gw_epsilon > 0 && std::isfinite(options.gw_epsilon), "--gw-epsilon", options.gw_epsilon, "> 0");
  require(options.unroll >= 1, "--unroll", options.unroll, "at least 1");
  fit.row_hint = options.hint == "rows" || (options.hint == "auto" && one_table);
  fit.start_kind = to_start_kind(options.start);
  fit.starts = options.starts;
  fit.max_iterations = options.max_iterations;
  fit.seed = options.seed;
  fit.am_step = options.am_step == "gradient" ? MatchedStep::gradient : MatchedStep::exact;
  fit.em_chains = options.em_chains;
  fit.em_swaps = options.em_swaps;
  fit.rr_threshold = options.rr_threshold;
  fit.rs_samples = options.rs_samples;
  fit.rs_threshold = options.rs_threshold;
  fit.gw_slices = options.gw_slices;
  fit.gw_epsilon = options.gw_epsilon;
  fit.unroll = options.unroll;
  require(options.bootstrap == 0 || options.bootstrap >= 2, "--bootstrap", options.bootstrap, "0 or at least 2");
  fit.bootstrap = options.bootstrap;
  require(options.noise_sd >= 0 && std::isfinite(options.noise_sd), "--noise-sd", options.noise_sd, "0 or more");
  fit.known_noise_sd = options.noise_sd;
  fit.row_order_unrelated = options.hint == "none";
}

void apply_to_model(const SearchOptions& options, const Problem& problem, const Model& bound, FitOptions& fit) {
  if (fit.start_kind == StartKind::user) {
    const NamedParameters start = parameters_from_json(read_file(options.start), options.start);
    fit.start = in_order(start, bound.parameter_names(), options.start);
  }
  if (options.paper_settings) fit = with_paper_settings(fit, problem.responses(), bound.linear_in_parameters());
  if (options.paper_settings && options.max_iterations > 0) fit.max_iterations = options.max_iterations;
}

std::vector<KnownPair> known_pairs(const SearchOptions& options) {
  if (options.known.empty()) return {};
  return known_pairs_of(read_csv(options.known));
}

std::vector<PairWeight> pair_weights(const SearchOptions& options) {
  if (options.prior.empty()) return {};
  return pair_weights_of(read_csv(options.prior));
}

std::vector<KnownPair> true_pairs(const std::string& path) {
  const auto parsed = nlohmann::json::parse(read_file(path), nullptr, false);
  const auto found = parsed.is_object() ? parsed.find("permutation") : parsed.end();
  if (!parsed.is_object() || found == parsed.end() || !found->is_array()) {
    throw BadData(fmt::format("{}: a truth.json with the key \"permutation\" was expected", path));
  }
  std::vector<KnownPair> pairs;
  for (const auto& row : *found) {
    if (!row.is_number_unsigned()) {
      throw BadData(fmt::format("{}: \"permutation\" holds {}; row numbers from 0 were expected", path,
                                row.dump().substr(0, 40)));
    }
    pairs.push_back({Index(pairs.size()), row.get<Index>()});
  }
  return pairs;
}

}  // namespace unshuffle::app
