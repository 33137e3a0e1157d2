#include "verdict/order.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "unshuffle/core/wording.hpp"
#include "verdict/rule.hpp"

namespace unshuffle {

namespace {

constexpr double nothing_told = 1e-2;    // chance beyond which the order tells nothing,
constexpr double certainly_told = 1e-4;  // and below which it certainly does
constexpr double regression_disagrees = 1e-4;
constexpr double links_depend = 1e-3;
constexpr double links_depend_perhaps = 1e-2;  // which is enough where normal noise says so, too
constexpr double rows_per_parameter = 5;
constexpr double displaced = 13;  // nats; a hundred orders are tried, and none comes so far by chance
constexpr double similar = 3;     // nats; at most 0.9 where wrong links go anywhere

std::string other_evidence() {
  return fmt::format("leave the hint out ({}), or give known pairs ({}) or groups ({})", option("hint", "none"),
                     option("known"), option("group"));
}

std::string fewer_unknowns() { return fmt::format("add known pairs ({}), or use fewer features", option("known")); }

std::string another_model() {
  return fmt::format("try a model that bends ({}), another scale of the response, or give known pairs ({})",
                     option("model", "spline:5"), option("known"));
}

std::string share_of(const OrderEvidence& e) {
  return fmt::format("about {:.0f} of {:.0f} rows are linked in the order given", e.linked, e.rows);
}

std::string uncertain(const OrderEvidence& e) {
  return fmt::format("{}, which leaves predictions uncertain by {:.2f} standard deviations of the noise", share_of(e),
                     e.error);
}

std::string only_tied(const OrderEvidence& e) {
  return fmt::format(
      "{} of {:.0f} responses have the same value, and the likelihood takes only these rows to be linked rightly, "
      "whatever their features are; it finds no other solution",
      e.tied, e.rows);
}

std::string partly_tied(const OrderEvidence& e) {
  return fmt::format(
      "{}; {} responses have the same value, and with less noise than it was allowed the likelihood takes only those "
      "rows to be linked rightly",
      share_of(e), e.tied);
}

std::string fits_displaced(const OrderEvidence& e) {
  const Index places = e.displacement.places;
  return fmt::format(
      "rows fit best displaced by {}: response {} beside row {} of the features and so on, {:.0f} nats better than in "
      "the order given",
      std::abs(places), 1 + std::max<Index>(0, -places), 1 + std::max<Index>(0, places), e.displacement.nats);
}

std::string depends_on_features(const OrderEvidence& e) {
  return fmt::format(
      "{}, but which are not depends on the features (p = {:.1g}): the model is too simple, or links to some rows are "
      "worse than to others",
      share_of(e), e.independence);
}

std::string no_better_than_chance(const OrderEvidence& e, const char* no_or_little) {
  return fmt::format("the row order explains the response {} better than chance (p = {:.2g})", no_or_little, e.chance);
}

std::string shift_or_sort() {
  return "shift one of the tables if rows were inserted or lost, or sort both by a common key";
}

std::string pairs_or_key() {
  return fmt::format("give known pairs ({}), or a key both tables share ({})", option("known"), option("group"));
}

/// An estimated law of the noise may take for its own what wrong links that depend on the features do to it.
bool wrong_links_depend(const OrderEvidence& e) {
  return e.independence < (e.normal_independence < links_depend ? links_depend_perhaps : links_depend);
}

/// The first that holds is the verdict.
std::vector<Rule> rules(const OrderEvidence& e) {
  return {
      {e.tied > 0 && (e.only_ties || order_is_chance(e)), Verdict::not_identifiable, [&] { return only_tied(e); },
       another_model},
      {e.displacement.nats > displaced, Verdict::not_identifiable, [&] { return fits_displaced(e); }, shift_or_sort},
      {order_is_chance(e), Verdict::not_identifiable, [&] { return no_better_than_chance(e, "no"); }, other_evidence},
      {!(e.error <= known_at_all), Verdict::not_identifiable, [&] { return uncertain(e); }, fewer_unknowns},
      {!(e.chance < certainly_told), Verdict::weakly_identified, [&] { return no_better_than_chance(e, "little"); },
       other_evidence},
      {e.tied > 0, Verdict::weakly_identified, [&] { return partly_tied(e); }, another_model},
      {e.similar_partners > similar, Verdict::weakly_identified,
       [&] {
         return fmt::format(
             "{}, and wrong links seem to point to rows with similar features ({:.0f} nats), which hides them",
             share_of(e), e.similar_partners);
       },
       pairs_or_key},
      {e.agreement < regression_disagrees, Verdict::weakly_identified,
       [&] {
         return fmt::format("{}, but regression on all rows contradicts them (p = {:.1g}): the model is too simple",
                            share_of(e), e.agreement);
       },
       another_model},
      {wrong_links_depend(e), Verdict::weakly_identified, [&] { return depends_on_features(e); }, another_model},
      {e.limited, Verdict::weakly_identified,
       [&] {
         return fmt::format(
             "{}; the likelihood alone would call more of them wrong than contradict each other, so the model may be "
             "too simple",
             share_of(e));
       },
       another_model},
      {e.told_by_few, Verdict::weakly_identified,
       [&] {
         return fmt::format(
             "{}, as far as responses of two values can tell: how many links are wrong is known poorly, and intervals "
             "are too short",
             share_of(e));
       },
       [] {
         return fmt::format("say how many links are wrong ({}), or which are right ({}, {})", option("wrong_rate"),
                            option("safe"), option("known"));
       }},
      {e.error > known_well || e.linked < rows_per_parameter * double(e.parameters), Verdict::weakly_identified,
       [&] { return uncertain(e); }, fewer_unknowns},
      {true, Verdict::identified, [&] { return fmt::format("{}; rests on {}", share_of(e), e.rests_on); }},
  };
}

}  // namespace

bool order_is_chance(const OrderEvidence& evidence) { return !(evidence.chance < nothing_told); }

bool contradicted(const OrderEvidence& evidence) {
  // Wrong links to similar rows attenuate some coefficients more than others; regression is then the worse answer.
  if (evidence.similar_partners > similar) return false;
  return evidence.agreement < regression_disagrees || wrong_links_depend(evidence);
}

Identifiability judge(const OrderEvidence& evidence) { return first_that_holds(rules(evidence)); }

double error_in_noise(const LinkedRows& rows, const Model& bound, const Vector& w, const Matrix& covariance,
                      double noise_variance) {
  const Matrix jacobian = linked_jacobian(bound, rows, w);
  const double mean = (jacobian * covariance).cwiseProduct(jacobian).sum() / double(jacobian.rows());
  return std::sqrt(std::max(0.0, mean) / noise_variance);
}

}  // namespace unshuffle
