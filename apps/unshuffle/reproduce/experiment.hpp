// The paper's experiments: each measures (slow, writes numbers) and judges (fast, reads them). Claims and figures come
// from the same CSV files that a reader gets; figures.py draws the figures.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace unshuffle::app {

/// One number of one run, in long form: a row of the experiment's CSV.
struct Measurement {
  std::string panel;     ///< Part of the figure.
  double x = 0;          ///< The setting on its axis.
  int run = 0;           ///< Repetition; of a matrix, the column.
  std::string method;    ///< Who.
  std::string quantity;  ///< What.
  double value = 0;
};
using Measurements = std::vector<Measurement>;

[[nodiscard]] std::string to_csv(const Measurements& measurements);
/// Throws BadData naming file and line for anything to_csv would not have written.
[[nodiscard]] Measurements measurements_from_csv(const std::string& content, const std::string& source);

/// A claim of the paper, and the result here.
struct Claim {
  std::string paper;
  bool holds = false;
  std::string found;
};

struct Listing {
  std::vector<std::string> head{};
  std::vector<std::vector<std::string>> rows{};
};

struct Findings {
  std::vector<Claim> claims{};
  Listing table{};  ///< Empty when the figure suffices.
};

struct Settings {
  bool quick = false;
  std::uint64_t seed = 0;
  std::string cytometry_file;                    ///< FCS file; empty: simulated events.
  std::string cytometry_response;                ///< Its channel to predict from the others.
  std::string mot_folder;                        ///< MOTChallenge sequences with ground truth; empty: none.
  std::string mot_weights;                       ///< Of the pretrained network that tracks on frames; empty: none.
  std::function<bool(double, double)> progress;  ///< (done, total) of one experiment.

  [[nodiscard]] int repetitions() const { return quick ? 2 : 10; }
};

struct Experiment {
  std::string name;
  std::string content;  ///< What it is, in one sentence.
  Measurements (*measure)(const Settings&);
  Findings (*judge)(const Measurements&);  ///< Throws BadData when measurements are missing or impossible.
};

Experiment sensing_experiment();
Experiment nonlinear_experiment();
Experiment cytometry_experiment();
Experiment initialisation_experiment();
Experiment autodiff_experiment();
Experiment em_correspondence_experiment();
Experiment ransac_experiment();
Experiment rho_experiment();
Experiment alignment_experiment();
Experiment linear_residual_experiment();
Experiment landscape_experiment();
Experiment conditioning_experiment();
Experiment mot_experiment();
Experiment mot_frames_experiment();

/// All of the above, in the paper's order.
[[nodiscard]] std::vector<Experiment> all_experiments();

}  // namespace unshuffle::app
