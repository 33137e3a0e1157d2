// Maximum likelihood over all links: search, standard errors, verdict.
#include <fmt/format.h>

#include <Eigen/Cholesky>
#include <algorithm>
#include <cmath>
#include <optional>

#include "core/normal.hpp"
#include "estimators/family_regression.hpp"
#include "likelihood/bootstrap.hpp"
#include "likelihood/calibration.hpp"
#include "likelihood/search.hpp"
#include "objective/backend.hpp"
#include "objective/batch.hpp"
#include "objective/whitened.hpp"
#include "tables/equal_weights.hpp"
#include "unshuffle/core/error.hpp"
#include "unshuffle/core/wording.hpp"
#include "verdict/identifiability.hpp"

namespace unshuffle {

namespace {

LikelihoodOptions accurate(const Entropic& options) {
  LikelihoodOptions made;
  made.evaluator.backend = options.precision.backend;
  made.evaluator.tolerance = std::max(options.precision.tolerance, 1e-8);
  made.evaluator.accuracy = std::max(options.precision.accuracy, 1e-8);
  made.known_noise_sd = options.noise.sd;
  made.noise_covariance = options.response_noise.covariance;
  return made;
}

/// What `auto` means for these responses.
Entropic resolved_for(Entropic options, const Problem& problem) {
  NoiseCovariance& asked = options.response_noise.covariance;
  const bool one = problem.outputs() == 1 || options.noise.sd > 0;
  asked = one ? NoiseCovariance::equal : resolved(asked, problem.outputs());
  return options;
}

Matrix bootstrap_covariance(const Entropic& options, const Input& input, const Optimum& best) {
  const Matrix covariance = LinkLikelihood(input.problem, input.bound, accurate(options)).noise_covariance(best);
  const Matrix root = covariance.llt().matrixL();
  return spread_of_refits(input.run, options.bootstrap.samples, [&](int k) {
    RandomStream random = bootstrap_stream(input.run.seed, k);
    const Links links = random_links(input.problem, random);
    const Problem drawn = drawn_from(input.problem, input.bound, best.parameters, root, links, random);
    LinkLikelihood likelihood(drawn, input.bound, accurate(options));
    return likelihood.most_likely_near(best, 60).parameters;
  });
}

Candidate as_candidate(const FoundOptimum& found) {
  const Optimum& optimum = found.optimum;
  return {found.start, optimum.parameters, optimum.nats, optimum.converged, optimum.iterations, optimum.message};
}

/// Adds the images of the answer under symmetries of the features to the search.
std::vector<Symmetry> try_symmetries(const SearchOptions& options, const Input& input, SearchResult& found) {
  if (blocks_of(input.problem).size() > 1 || input.problem.has_prior()) return {};
  const Optimum best = found.optima.front().optimum;
  std::vector<Symmetry> symmetries = symmetries_of(input.problem, input.bound, best.parameters);
  std::vector<FoundOptimum> images;
  for (const Symmetry& symmetry : symmetries) {
    FoundOptimum image;
    image.optimum.parameters = symmetry.parameters;
    image.optimum.epsilon = best.epsilon;
    image.start = symmetry.name;
    images.push_back(std::move(image));
  }
  refine_into(found, input.problem, input.bound, options, input.run, images);
  return symmetries;
}

/// Covariance of the coefficients from the observed information; empty if that is not positive definite.
Matrix curvature_covariance(const Entropic& options, const Input& input, const Optimum& best) {
  LinkLikelihood likelihood(input.problem, input.bound, accurate(options));
  const Eigen::LLT<Matrix> factor(likelihood.information(best.theta()));
  if (factor.info() != Eigen::Success) return {};
  const Index p = best.parameters.size(), all = best.theta().size();
  return factor.solve(Matrix::Identity(all, all)).topLeftCorner(p, p);
}

/// The rows that have weight, where some have none.
std::optional<Problem> rows_that_count(const Problem& problem) {
  const auto with_weight = [](const Vector& weights) {
    std::vector<Index> rows;
    for (Index k = 0; k < weights.size(); ++k)
      if (weights(k) > 0) rows.push_back(k);
    return rows;
  };
  const std::vector<Index> responses = with_weight(problem.response_weights);
  const std::vector<Index> features = with_weight(problem.feature_weights);
  if (Index(responses.size()) == problem.responses() && Index(features.size()) == problem.features()) return {};
  return some_rows(problem, responses, features);
}

/// Samples of the model are drawn with equal weights, so they do not represent weighted rows.
bool can_be_simulated(const Problem& problem, Backend backend, const Model& bound) {
  return backend_for(problem, bound, backend) == Backend::sorted && equal_weights(problem.response_weights) &&
         equal_weights(problem.feature_weights);
}

/// Why the likelihood's errors cannot be estimated; empty if they can.
Identifiability doubts(const Entropic& options, const Input& input) {
  constexpr double many = 0.1;
  Identifiability made;
  made.verdict = Verdict::weakly_identified;
  const auto [responses, features] = rows_left_over(input.problem);
  if (responses > 0 && features > 0) {
    made.reason = fmt::format(
        "in their groups, {} responses and {} features have no partner; if keys are wrong it may be in another "
        "group, and the error may exceed its estimate",
        responses, features);
    made.advice = fmt::format("correct the keys, or state how often partners agree on them ({})", option("soft_group"));
  } else if (responses > 0 && !leaves_responses_out(input.problem, input.bound, accurate(options))) {
    made.reason = fmt::format(
        "{} responses belong to features that are not in the table; these are assumed to be like those in the table, "
        "and the answer depends on that",
        responses);
    made.advice = fmt::format(
        "add the missing rows, try {}, which may leave rows out, or give pairs ({}) or a key both tables share ({})",
        option("method", "robot-robust"), option("known"), option("group"));
  } else if (double(responses) > many * double(input.problem.responses())) {
    made.reason = fmt::format(
        "{} of {} responses have no partner; their distribution is an assumption, and with so many of them the error "
        "may exceed its estimate",
        responses, input.problem.responses());
    made.advice =
        fmt::format("add the missing rows of the features, or give pairs ({}) or a key both tables share ({})",
                    option("known"), option("group"));
  }
  return made;
}

/// By bootstrap if requested, else from `answer`; profiles need a calibrated one.
void set_errors(const Entropic& options, const Input& input, const Calibrated& answer, const Matrix& profile,
                bool doubted, Estimate& estimate) {
  if (options.bootstrap.samples > 0) {
    if (!estimate.stopped) estimate.covariance = bootstrap_covariance(options, input, answer.optimum);
    estimate.stopped = estimate.covariance.size() == 0;
    estimate.std_error_note = bootstrap_note(options.bootstrap.samples, estimate.covariance);
    return;
  }
  estimate.covariance = answer.covariance.size() > 0 ? answer.doubted_covariance() : Matrix();
  if (doubted) {
    estimate.errors_are_too_small = true;
    estimate.std_error_note = fmt::format(
        "none: they would ignore the uncertainty about rows without a partner; try {}", option("bootstrap"));
    return;
  }
  if (answer.covariance.size() == 0) {
    estimate.std_error_note = fmt::format(
        "not available: the likelihood's curvature is unknown or not positive; try {}", option("bootstrap"));
  } else if (profile.size() == 0) {
    estimate.std_error_note = "from the curvature of the likelihood over all links";
  } else {
    estimate.margins = answer.margins(profile);
    estimate.std_error_note =
        "from the likelihood over all links, its spread in samples of the fitted model and over groups left out, and "
        "from "
        "what other laws of the noise would change; intervals from its profile where that is wider";
  }
}

std::shared_ptr<const Model> borrowed(const Model& model) { return {std::shared_ptr<void>(), &model}; }

/// In units of the noise, whatever its covariance.
Identifiability judged(const Entropic& options, const Input& input, const SearchResult& found,
                       const std::vector<Symmetry>& symmetries, const Calibrated& answer) {
  if (options.response_noise.covariance == NoiseCovariance::equal)
    return judge(found, symmetries, input.problem, input.bound, answer);
  const Optimum& best = found.optima.front().optimum;
  const Matrix covariance = LinkLikelihood(input.problem, input.bound, accurate(options)).noise_covariance(best);
  const WhitenedProblem white =
      whitened(input.problem, borrowed(input.bound), whitening(covariance) * std::sqrt(best.epsilon / 2));
  return judge(found, symmetries, *white.problem, *white.model, answer);
}

/// Noise and links of the answer.
void describe(const Entropic& options, const Input& input, const Optimum& best, Estimate& made) {
  const LinkLikelihood likelihood(input.problem, input.bound, accurate(options));
  made.noise_sd = std::sqrt(best.epsilon / 2);
  made.epsilon = best.epsilon;
  if (likelihood.sums().any()) made.law.link_sums = likelihood.sums().in_words();
  if (options.response_noise.covariance != NoiseCovariance::equal)
    made.law.noise_covariance = likelihood.noise_covariance(best);
}

Estimate most_likely(const Entropic& options, const Input& input) {
  const SearchOptions search{options.precision, options.starts, options.noise.sd, options.response_noise.covariance};
  SearchResult found = search_optima(input.problem, input.bound, search, input.run);
  const std::vector<Symmetry> symmetries = try_symmetries(search, input, found);
  if (input.run.progress) (void)input.run.progress(1, 1);
  Optimum& best = found.optima.front().optimum;
  const bool by_simulation = can_be_simulated(input.problem, options.precision.backend, input.bound);
  Calibrated answer{best, {}, {}};
  if (!found.stopped && !by_simulation) answer.covariance = curvature_covariance(options, input, best);
  if (!found.stopped && by_simulation) {
    answer = calibrated(input.problem, input.bound, accurate(options), best, input.run.seed);
    best = answer.optimum;
    if (!options.sensitivity.quick) question(answer, input.problem, input.bound, accurate(options), input.run.seed);
  }
  Estimate made;
  for (const FoundOptimum& one : found.optima) made.candidates.push_back(as_candidate(one));
  made.objective_name = "negative log-likelihood";
  made.evaluations = found.evaluations;
  made.stopped = found.stopped;
  describe(options, input, best, made);
  made.identifiable = judged(options, input, found, symmetries, answer);
  Matrix profile;
  const bool parabola = answer.exact && input.problem.responses() > many_rows;
  if (by_simulation && !parabola && answer.covariance.size() > 0 &&
      made.identifiable.verdict != Verdict::not_identifiable) {
    profile = profile_of(answer, input.problem, input.bound, accurate(options));
    answer.widen(profile.rowwise().mean() / normal_quantile);  // the widest of all margins counts
    made.identifiable = judged(options, input, found, symmetries, answer);
  }
  if (options.sensitivity.quick && made.identifiable.verdict != Verdict::not_identifiable)
    made.identifiable.reason += "; other assumptions were not tried";
  Identifiability doubt = doubts(options, input);
  const bool doubted = !doubt.reason.empty();
  if (doubted && made.identifiable.verdict == Verdict::not_identifiable) {
    made.identifiable.reason += "; " + doubt.reason;
  } else if (doubted) {
    doubt.alternatives = std::move(made.identifiable.alternatives);
    made.identifiable = std::move(doubt);
  }
  if (made.identifiable.verdict != Verdict::not_identifiable)
    set_errors(options, input, answer, profile, doubted, made);
  return made;
}

/// Several responses are fitted in units of their spread, so that their units do not matter.
Estimate most_likely_in_like_units(const Entropic& options, const Input& input) {
  const Vector spread = column_spreads(input.problem.y);
  const WhitenedProblem like =
      whitened(input.problem, borrowed(input.bound), spread.cwiseInverse().asDiagonal().toDenseMatrix());
  Estimate made = most_likely(options, {*like.problem, *like.model, input.run});
  const double log_units = double(input.problem.responses()) * spread.array().log().sum();
  for (Candidate& one : made.candidates) one.objective += log_units;
  for (Alternative& one : made.identifiable.alternatives) one.objective += log_units;
  Matrix& covariance = made.law.noise_covariance;
  covariance = (spread.asDiagonal() * covariance * spread.asDiagonal()).eval();
  made.noise_sd = std::sqrt(covariance.trace() / double(spread.size()));
  made.epsilon = 2;  // of whitened responses
  return made;
}

}  // namespace

Estimate estimate(const Entropic& asked, const Input& given) {
  if (!asked.family.is_gaussian()) return estimate_family_links(asked, given);
  if (asked.bootstrap.samples > 0 && given.problem.has_prior()) {
    throw InvalidInput("bootstrap draws links evenly, so it cannot be had with prior weights of pairs or soft groups");
  }
  const std::optional<Problem> fewer = rows_that_count(given.problem);
  const Input input{fewer ? *fewer : given.problem, given.bound, given.run};
  const Entropic options = resolved_for(asked, input.problem);
  if (options.response_noise.covariance == NoiseCovariance::equal) return most_likely(options, input);
  return most_likely_in_like_units(options, input);
}

}  // namespace unshuffle
