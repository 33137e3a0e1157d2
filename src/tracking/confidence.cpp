#include "unshuffle/tracking/confidence.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "tracking/box_grid.hpp"

namespace unshuffle::tracking {
namespace {

// Two boxes of neighbouring frames that overlap this much, and no others more, are taken for one person.
constexpr double confirming_overlap = 0.4;
// Every pool of scores starts with this many confirmed detections, so that scores are trusted until they fail.
constexpr double trusted_start = 2;
// The steps are fitted again when there are this many times as many detections, so that fitting costs little.
constexpr double refit_growth = 1.1;

/// For each box the one of the other frame it overlaps most; -1: none enough.
struct Nearest {
  std::vector<int> of_first;
  std::vector<int> of_second;
};

Nearest nearest_boxes(const std::vector<Detection>& first, const std::vector<Detection>& second) {
  Nearest nearest{std::vector<int>(first.size(), -1), std::vector<int>(second.size(), -1)};
  std::vector<double> best(second.size(), confirming_overlap);
  std::vector<Box> boxes;
  for (const Detection& detection : second) boxes.push_back(detection.box);
  const BoxGrid grid(boxes);
  for (std::size_t i = 0; i < first.size(); ++i) {
    double most = confirming_overlap;
    for (const std::size_t j : grid.near(first[i].box)) {
      const double share = overlap(first[i].box, boxes[j]);
      if (share >= most) {
        most = share;
        nearest.of_first[i] = static_cast<int>(j);
      }
      if (share >= best[j]) {
        best[j] = share;
        nearest.of_second[j] = static_cast<int>(i);
      }
    }
  }
  return nearest;
}

/// Neighbouring scores that share one value.
struct Pool {
  double score;
  double confirmed;
  double count;
  [[nodiscard]] double share() const { return (confirmed + trusted_start) / (count + trusted_start); }
};

/// Pool adjacent violators: the monotone shares closest to the observed ones.
std::vector<Pool> pooled(const std::vector<std::pair<double, bool>>& sorted) {
  std::vector<Pool> pools;
  for (const auto& [score, confirmed] : sorted) {
    const double one = confirmed ? 1 : 0;
    if (!pools.empty() && pools.back().score == score) {
      pools.back().confirmed += one;
      pools.back().count += 1;
    } else {
      pools.push_back({score, one, 1});
    }
  }
  std::vector<Pool> monotone;
  for (const Pool& next : pools) {
    monotone.push_back(next);
    while (monotone.size() > 1 && monotone[monotone.size() - 2].share() >= monotone.back().share()) {
      const Pool last = monotone.back();
      monotone.pop_back();
      monotone.back().confirmed += last.confirmed;
      monotone.back().count += last.count;
    }
  }
  return monotone;
}

}  // namespace

void Confidence::add(const std::vector<Detection>& frame) {
  if (!std::exchange(begun_, true)) {
    last_ = frame;
    return;
  }
  const Nearest nearest = nearest_boxes(last_, frame);
  const auto mutual = [](const std::vector<int>& there, const std::vector<int>& back, std::size_t at) {
    return there[at] >= 0 && back[std::size_t(there[at])] == static_cast<int>(at);
  };
  for (std::size_t i = 0; i < last_.size(); ++i) {
    seen_.emplace_back(last_[i].confidence, mutual(nearest.of_first, nearest.of_second, i));
  }
  for (std::size_t j = 0; j < frame.size(); ++j) {
    seen_.emplace_back(frame[j].confidence, mutual(nearest.of_second, nearest.of_first, j));
  }
  last_ = frame;
  if (double(seen_.size()) >= refit_growth * double(fitted_)) fit();
}

void Confidence::fit() {
  std::sort(seen_.begin(), seen_.end());
  fitted_ = seen_.size();
  steps_.clear();
  for (const Pool& pool : pooled(seen_)) steps_.push_back({pool.score, pool.share()});
  if (steps_.empty()) return;
  const double best = steps_.back().trust;
  for (Step& step : steps_) step.trust /= best;
}

double Confidence::operator()(double score) const {
  if (steps_.empty()) return 1;
  const auto above = std::upper_bound(steps_.begin(), steps_.end(), score,
                                      [](double value, const Step& step) { return value < step.score; });
  return above == steps_.begin() ? steps_.front().trust : std::prev(above)->trust;
}

double Confidence::least_score(double trust) const {
  for (const Step& step : steps_) {
    if (step.trust >= trust) return step.score;
  }
  return std::numeric_limits<double>::infinity();
}

Confidence Confidence::of(const std::vector<std::vector<Detection>>& frames) {
  Confidence confidence;
  for (const auto& frame : frames) confidence.add(frame);
  confidence.fit();
  return confidence;
}

}  // namespace unshuffle::tracking
