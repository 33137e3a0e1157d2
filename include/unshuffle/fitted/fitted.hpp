// From two unlinked tables to a regression that can be asked.
#pragma once

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

namespace UNSHUFFLE_EXPORT unshuffle {

/// A coefficient and how far to trust it; NaN where nothing is known of that.
struct Coefficient {
  std::string name;
  double value;
  double std_error;
  double low, high;  ///< Ends of its interval.
};

/// A fit with everything that using it takes.
class Fitted {
 public:
  /// Of a fit that was made on `problem`, completed(), by a model bound to it; none: the tables were in pieces.
  Fitted(Result result, FitContext context, std::shared_ptr<const Model> bound,
         std::shared_ptr<const Problem> problem = nullptr);

  /// What to_json() wrote. Throws BadData naming `source` for what is no fit.
  [[nodiscard]] static Fitted from_json(const std::string& text, const std::string& source);
  [[nodiscard]] static Fitted load(const std::string& path);
  void save(const std::string& path) const;

  [[nodiscard]] const Result& result() const { return result_; }
  [[nodiscard]] const FitContext& context() const { return context_; }
  [[nodiscard]] const Model& model() const { return *bound_; }  ///< As it was bound when fitted.
  [[nodiscard]] const Vector& parameters() const { return result_.parameters; }
  [[nodiscard]] std::vector<Coefficient> coefficients(double level = 0.95) const;
  [[nodiscard]] Matrix intervals(double level = 0.95) const { return result_.intervals(level); }

  /// Of complete rows.
  [[nodiscard]] Matrix predict(const MatrixRef& x, const MatrixRef& z) const;
  /// Throws InvalidInput when the fit has no standard errors.
  [[nodiscard]] Predictions predict_with_errors(const MatrixRef& x, const MatrixRef& z) const;

  /// One-to-one links of the rows that were fitted. Throws InvalidInput where they are not at hand.
  [[nodiscard]] Matching match(LinkRows rows = LinkRows::kept) const;
  /// Of other tables with the same columns.
  [[nodiscard]] Matching match(const Problem& problem, LinkRows rows = LinkRows::kept) const;
  /// That response i belongs to the feature row beside it; empty where the estimator does not tell.
  [[nodiscard]] const Vector& link_probabilities() const { return result_.link_probabilities; }

  /// What the plan at the answer is made with.
  [[nodiscard]] EvaluatorOptions plan_options(const Problem& problem) const;

  [[nodiscard]] std::string summary() const;
  [[nodiscard]] std::string to_json() const;
  /// One HTML page; `truth`: the right links where they are known.
  [[nodiscard]] std::string report(std::vector<KnownPair> truth = {}) const;

  /// How the fit went, where more is known of it than the estimator does.
  void set_course(Course course) { result_.course = std::move(course); }

  /// Which columns of which files the tables came from, for to_json() and those who read it.
  void remember_columns(ColumnChoice columns, bool one_table);

 private:
  Result result_;
  FitContext context_;
  std::shared_ptr<const Model> bound_;
  std::shared_ptr<const Problem> problem_;
};

/// Throws BadData for tables that no fit of this model could make sense of, SystemFailure when the plan would not fit
/// into the memory that is free, or a process's share of it where a team can share it.
void require_feasible(const Problem& problem, const Model& bound, const Estimator& estimator, Team* team = nullptr);

[[nodiscard]] Fitted fit(Problem problem, const Model& model, const Estimator& estimator = Auto{},
                         const Execution& execution = {});

}  // namespace unshuffle
