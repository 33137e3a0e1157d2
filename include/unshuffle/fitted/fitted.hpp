// From two unlinked tables to a fitted regression.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "unshuffle/core/execution.hpp"
#include "unshuffle/core/export.hpp"
#include "unshuffle/estimators/estimators.hpp"
#include "unshuffle/estimators/result.hpp"
#include "unshuffle/fitted/predict.hpp"
#include "unshuffle/links/match.hpp"
#include "unshuffle/model/model.hpp"
#include "unshuffle/report/json.hpp"
#include "unshuffle/tables/problem.hpp"

namespace unshuffle UNSHUFFLE_EXPORT {

/// A coefficient with its uncertainty; NaN where unknown.
struct Coefficient {
  std::string name;
  double value;
  double std_error;
  double low, high;  ///< Ends of its interval.
};

/// One-to-one links, by response row.
using LinkSet = std::vector<KnownPair>;

/// A fit with everything needed to use it.
class Fitted {
 public:
  /// From a fit of `problem`, completed(), by a model bound to it; null: the tables were in pieces.
  Fitted(Result result, FitContext context, std::shared_ptr<const Model> bound,
         std::shared_ptr<const Problem> problem = nullptr);

  /// Parses the output of to_json(). Throws BadData naming `source` for anything else.
  [[nodiscard]] static Fitted from_json(const std::string& text, const std::string& source);
  [[nodiscard]] static Fitted load(const std::string& path);
  void save(const std::string& path) const;

  [[nodiscard]] const Result& result() const { return result_; }
  [[nodiscard]] const FitContext& context() const { return context_; }
  [[nodiscard]] const Model& model() const { return *bound_; }  ///< As it was bound when fitted.
  [[nodiscard]] const Vector& parameters() const { return result_.parameters; }
  [[nodiscard]] std::vector<Coefficient> coefficients(double level = 0.95) const;
  [[nodiscard]] Matrix intervals(double level = 0.95) const { return result_.intervals(level); }

  /// The response of complete rows. Of what is known of them, offsets and trials count; a fit that had an offset or
  /// trials needs them again, and throws InvalidInput without.
  [[nodiscard]] Matrix predict(const MatrixRef& x, const MatrixRef& z, const RowFacts& facts = {}) const;
  /// Throws InvalidInput when the fit has no standard errors.
  [[nodiscard]] Predictions predict_with_errors(const MatrixRef& x, const MatrixRef& z,
                                                const RowFacts& facts = {}) const;
  /// Ends of the intervals that hold this share of new responses.
  [[nodiscard]] Predictions::Interval predict_interval(const MatrixRef& x, const MatrixRef& z, double level = 0.95,
                                                       const RowFacts& facts = {}) const;

  /// One-to-one links of the fitted rows. Throws InvalidInput if they are not available.
  [[nodiscard]] Matching match(LinkRows rows = LinkRows::kept) const;
  /// Of other tables with the same columns.
  [[nodiscard]] Matching match(const Problem& problem, LinkRows rows = LinkRows::kept) const;
  /// Complete sets of links drawn from their posterior, for analyses to be repeated on each and pooled
  /// (links/pool.hpp). Every set has coefficients of its own, drawn as uncertain as they are. Throws InvalidInput for
  /// methods without a likelihood.
  [[nodiscard]] std::vector<LinkSet> sample_links(Index samples, std::uint64_t seed = 0) const;
  [[nodiscard]] std::vector<LinkSet> sample_links(const Problem& problem, Index samples, std::uint64_t seed = 0) const;
  /// That response i belongs to feature row i; empty if the estimator does not estimate it.
  [[nodiscard]] const Vector& link_probabilities() const { return result_.link_probabilities; }

  /// Settings of the plan at the answer.
  [[nodiscard]] EvaluatorOptions plan_options(const Problem& problem) const;

  [[nodiscard]] std::string summary() const;
  [[nodiscard]] std::string to_json() const;
  /// One HTML page; `truth`: the right links where they are known.
  [[nodiscard]] std::string report(std::vector<KnownPair> truth = {}) const;

  /// The course of the fit, including facts the estimator does not know.
  void set_course(Course course) { result_.course = std::move(course); }

  /// The columns and files the tables came from, for to_json().
  void remember_columns(ColumnChoice columns, bool one_table);

 private:
  [[nodiscard]] Vector noise_sds() const;  ///< Of every response.
  [[nodiscard]] const Family& family() const { return family_of(context_.law.family); }
  /// Predictors with their standard errors where the fit has some.
  [[nodiscard]] Predictions predict_eta(const MatrixRef& x, const MatrixRef& z, const RowFacts& facts,
                                        bool with_errors) const;

  Result result_;
  FitContext context_;
  std::shared_ptr<const Model> bound_;
  std::shared_ptr<const Problem> problem_;
};

/// Throws BadData for tables this model cannot be fitted to, SystemFailure if the plan, or a process's share of it in a
/// team, exceeds the free memory.
void require_feasible(const Problem& problem, const Model& bound, const Estimator& estimator, Team* team = nullptr);

[[nodiscard]] Fitted fit(Problem problem, const Model& model, const Estimator& estimator = Auto{},
                         const Execution& execution = {});

}  // namespace unshuffle
