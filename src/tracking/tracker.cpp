#include "unshuffle/tracking/tracker.hpp"

#include <algorithm>
#include <cmath>

#include "tracking/box_cost.hpp"
#include "tracking/box_grid.hpp"
#include "tracking/pairing.hpp"
#include "tracking/require.hpp"
#include "unshuffle/transport/solver.hpp"

namespace unshuffle::tracking {
namespace {

// Boxes lost for longer may be anywhere; they carry no information about the motion of the camera or of people.
constexpr int trusted_absence = 5;

/// Pairs that are each other's likeliest in the robust plan and hold most of the mass on both sides.
std::vector<std::size_t> likeliest_pairs(const std::vector<Edge>& edges, Index rows, Index columns) {
  if (edges.empty()) return {};
  Matrix cost = Matrix::Ones(rows, columns);
  for (const Edge& edge : edges) cost(edge.row, edge.column) = 1 - edge.weight;
  transport::SolverOptions options{.epsilon = 0.02, .relative = false};
  options.rows = options.columns = transport::Ball{.spread = 0.5};
  options.tolerance = 1e-6;
  const Matrix plan = transport::solve(cost, options).plan();
  const Vector row_sums = plan.rowwise().sum();
  const Vector column_sums = plan.colwise().sum();
  std::vector<std::size_t> chosen;
  for (std::size_t at = 0; at < edges.size(); ++at) {
    const double mass = plan(edges[at].row, edges[at].column);
    if (mass > 0.5 * row_sums(edges[at].row) && mass > 0.5 * column_sums(edges[at].column)) chosen.push_back(at);
  }
  return chosen;
}

std::vector<Box> boxes_of(const std::vector<Detection>& detections) {
  std::vector<Box> boxes;
  for (const Detection& detection : detections) boxes.push_back(detection.box);
  return boxes;
}

}  // namespace

void validate(const TrackerOptions& options) {
  const auto share = [](double value) { return value >= 0 && value <= 1; };
  require(share(options.least_overlap), "least_overlap", options.least_overlap, "from 0 to 1");
  require(share(options.recovery_overlap), "recovery_overlap", options.recovery_overlap, "from 0 to 1");
  require(share(options.trust.birth), "trust birth", options.trust.birth, "from 0 to 1");
  require(share(options.trust.match), "trust match", options.trust.match, "from 0 to 1");
  require(share(options.trust.least), "trust least", options.trust.least, "from 0 to 1");
  require(options.widening >= 0, "widening", options.widening, "at least 0");
  require(share(options.birth_overlap), "birth_overlap", options.birth_overlap, "from 0 to 1");
  require(share(options.suppress_overlap), "suppress_overlap", options.suppress_overlap, "from 0 to 1");
  require(options.smoothing > 0 && options.smoothing <= 1, "smoothing", options.smoothing, "above 0 and at most 1");
  require(options.birth_wait >= 1, "birth_wait", options.birth_wait, "at least 1");
  require(options.longest_absence >= 0, "longest_absence", options.longest_absence, "at least 0");
  require(options.longest_gap >= 0, "longest_gap", options.longest_gap, "at least 0");
  require(!std::isnan(options.least_confidence), "least_confidence", options.least_confidence, "a number");
  require(share(options.appearance.share), "appearance share", options.appearance.share, "from 0 to 1");
  require(!std::isnan(options.appearance.survival_score), "survival_score", options.appearance.survival_score,
          "a number");
  require(options.appearance.longest_survival >= 0, "longest_survival", options.appearance.longest_survival,
          "at least 0");
  validate(options.camera_options);
}

Tracker::Tracker(MotionModel model, Image image, TrackerOptions options, std::shared_ptr<Appearance> appearance)
    : model_(std::move(model)), image_(image), options_(options), appearance_(std::move(appearance)) {
  validate(options_);
  require(image.width > 0 && image.height > 0, "image width", image.width, "> 0, and the height too");
}

std::vector<LabelledBox> Tracker::step(const std::vector<Detection>& detections) {
  ++frame_;
  const std::vector<Detection> used = trusted(detections);
  predict();
  look();
  follow_camera(used);
  associate(used);
  keep_found();
  begin_tracks(used);
  suppress();
  end_tracks();
  std::vector<LabelledBox> shown;
  for (const Track& track : tracks_) {
    if (track.certain() && track.absence == 0) shown.push_back({.id = track.id, .box = track.state.box});
  }
  return shown;
}

void Tracker::set_confidence(Confidence confidence) {
  confidence_ = std::move(confidence);
  confidence_given_ = true;
}

/// Those to use, with trust in place of the detector's score.
std::vector<Detection> Tracker::trusted(const std::vector<Detection>& detections) {
  if (!confidence_given_) confidence_.add(detections);
  std::vector<Detection> used;
  for (const Detection& detection : detections) {
    if (detection.confidence < options_.least_confidence) continue;
    const double trust = confidence_(detection.confidence);
    if (trust >= options_.trust.least) used.push_back({detection.box, trust});
  }
  return used;
}

void Tracker::predict() {
  predictions_.clear();
  for (Track& track : tracks_) {
    const MotionInput input = motion_input(track.state, image_);
    if (++track.absence <= trusted_absence) predictions_.push_back({.from = track.state.box, .input = input});
    const Motion motion = model_.predict(input);
    track.state.box = moved(track.state.box, motion);
    track.state.last = motion;  // Until the next detection; a lost track must not repeat old jitter.
  }
}

void Tracker::look() {
  if (!appearance_) return;
  std::vector<Sighting> sightings;
  std::vector<Track*> seen;
  for (Track& track : tracks_) {
    if (track.absence > 1) continue;
    const auto& [first_frame, first] = track.history.front();
    sightings.push_back({.first_frame = first_frame, .first = first, .last = track.history.back().second});
    seen.push_back(&track);
  }
  if (seen.empty()) return;
  const std::vector<Found> found = appearance_->find(frame_, sightings);
  for (std::size_t at = 0; at < seen.size(); ++at) {
    Track& track = *seen[at];
    track.state.box = between(track.state.box, found[at].box, options_.appearance.share);
    track.found = found[at].score;
  }
}

/// Tracks without a detection go on where they were surely found.
void Tracker::keep_found() {
  if (!appearance_) return;
  const AppearanceOptions& options = options_.appearance;
  for (Track& track : tracks_) {
    if (!track.certain() || track.absence != 1) continue;
    if (track.found < options.survival_score || track.undetected >= options.longest_survival) continue;
    track.anchor = track.state.box;
    track.absence = 0;
    ++track.undetected;
    track.history.emplace_back(frame_, track.state.box);
  }
}

void Tracker::follow_camera(const std::vector<Detection>& detections) {
  if (!options_.camera) return;
  std::vector<Box> predicted;
  std::vector<Box> detected;
  for (const Track& track : tracks_) {
    if (track.absence <= trusted_absence) predicted.push_back(track.state.box);
  }
  for (const Detection& detection : detections) {
    if (detection.confidence >= options_.trust.match) detected.push_back(detection.box);
  }
  camera_.field *= options_.camera_options.persistence;
  const CameraMotion expected = camera_;
  camera_ = estimate_camera(predicted, detected, image_, expected, options_.camera_options);
  std::vector<CameraMotion> of_half{camera_, camera_};
  if (options_.camera_options.cross_fitted) {
    for (const std::size_t half : {0U, 1U}) {
      std::vector<Box> others;
      for (std::size_t at = 1 - half; at < predicted.size(); at += 2) others.push_back(predicted[at]);
      of_half[half] = estimate_camera(others, detected, image_, expected, options_.camera_options);
    }
  }
  for (std::size_t at = 0; at < predicted.size(); ++at) {
    const Box shifted = of_half[at % 2].apply(predicted[at], image_);
    predictions_[at].camera = {shifted.left - predicted[at].left, shifted.top - predicted[at].top};
  }
  for (Track& track : tracks_) {
    track.state.box = camera_.apply(track.state.box, image_);
    track.anchor = camera_.apply(track.anchor, image_);
  }
}

void Tracker::associate(const std::vector<Detection>& detections) {
  taken_.assign(detections.size(), 0);
  std::vector<std::size_t> confirmed;
  std::vector<std::size_t> tentative;
  for (std::size_t at = 0; at < tracks_.size(); ++at) (tracks_[at].certain() ? confirmed : tentative).push_back(at);
  const Stage sure{options_.trust.match};
  match(confirmed, detections, sure);
  // A detection that is little trusted is more likely real where a track expects one.
  std::erase_if(confirmed, [&](std::size_t at) { return tracks_[at].absence == 0; });
  match(confirmed, detections, {options_.trust.least, options_.trust.match});
  match(tentative, detections, sure);
}

double Tracker::gate_of(const Track& track) const {
  if (track.absence <= 1) return options_.least_overlap;
  return options_.recovery_overlap - options_.widening * (track.absence - 1);
}

void Tracker::match(const std::vector<std::size_t>& tracks, const std::vector<Detection>& detections,
                    const Stage& stage) {
  std::vector<Edge> edges;
  const BoxGrid grid(boxes_of(detections));
  for (std::size_t i = 0; i < tracks.size(); ++i) {
    const Box& box = tracks_[tracks[i]].state.box;
    const double gate = gate_of(tracks_[tracks[i]]);
    for (const std::size_t j : grid.near(box)) {
      const double trust = detections[j].confidence;
      if (taken_[j] != 0 || trust < stage.least_trust || trust >= stage.below) continue;
      const double share = overlap(box, detections[j].box);
      if (share <= 0 || share < gate) continue;
      edges.push_back({Index(i), Index(j), 1 - box_cost(box, detections[j].box, image_.diagonal())});
    }
  }
  const auto pair = options_.association == Association::plan ? &likeliest_pairs : &heaviest_pairs;
  for (const std::size_t at : pair(edges, Index(tracks.size()), Index(detections.size()))) {
    const auto column = std::size_t(edges[at].column);
    observe(tracks_[tracks[std::size_t(edges[at].row)]], detections[column]);
    taken_[column] = 1;
  }
}

void Tracker::observe(Track& track, const Detection& detection) {
  const Box& now = detection.box;
  const Box& before = track.anchor;
  if (track.detections > 0) {
    const Motion step =
        Motion((now.center_x() - before.center_x()) / before.height,
               (now.center_y() - before.center_y()) / before.height, std::log(now.height / before.height)) /
        track.absence;
    // The first displacements count equally, later ones fade.
    const double weight = std::max(options_.smoothing, 1.0 / track.detections);
    track.state.last = step;
    track.state.smooth += weight * (step - track.state.smooth);
  }
  track.state.box = track.anchor = now;
  track.absence = track.undetected = 0;
  ++track.detections;
  track.history.emplace_back(frame_, now);
  if (!track.certain() && track.detections >= options_.birth_wait) track.id = ++last_id_;
}

void Tracker::begin_tracks(const std::vector<Detection>& detections) {
  std::vector<Box> boxes = boxes_of(detections);  // where tracks may begin, and then those there are
  for (const Track& track : tracks_) boxes.push_back(track.state.box);
  const BoxGrid grid(boxes);
  std::vector<char> active(detections.size(), 0);
  for (const Track& track : tracks_) active.push_back(track.certain() && track.absence == 0 ? 1 : 0);
  for (std::size_t j = 0; j < detections.size(); ++j) {
    if (taken_[j] != 0 || detections[j].confidence < options_.trust.birth) continue;
    const std::vector<std::size_t> near = grid.near(boxes[j]);
    const bool covered = std::any_of(near.begin(), near.end(), [&](std::size_t at) {
      return active[at] != 0 && overlap(boxes[at], boxes[j]) > options_.birth_overlap;
    });
    if (covered) continue;
    Track fresh;
    fresh.anchor = detections[j].box;
    observe(fresh, detections[j]);
    active[j] = fresh.certain() ? 1 : 0;
    tracks_.push_back(std::move(fresh));
  }
}

void Tracker::suppress() {
  std::vector<Box> boxes;
  for (const Track& track : tracks_) boxes.push_back(track.state.box);
  const BoxGrid grid(boxes);
  std::vector<char> over(tracks_.size(), 0);
  for (std::size_t young = tracks_.size(); young-- > 0;) {
    const Track& track = tracks_[young];
    if (!track.certain() || track.absence > 0) continue;
    const std::vector<std::size_t> near = grid.near(boxes[young]);
    const bool hidden = std::any_of(near.begin(), near.end(), [&](std::size_t at) {
      const Track& other = tracks_[at];
      return over[at] == 0 && other.certain() && other.absence == 0 && other.id < track.id &&
             overlap(boxes[at], boxes[young]) > options_.suppress_overlap;
    });
    if (!hidden) continue;
    tracks_[young].history.pop_back();
    tracks_[young].undetected = std::max(0, track.undetected - 1);
    over[young] = 1;
  }
  retire(over);
}

void Tracker::end_tracks() {
  std::vector<char> over;
  for (const Track& track : tracks_)
    over.push_back(track.absence > (track.certain() ? options_.longest_absence : 0) ? 1 : 0);
  retire(over);
}

void Tracker::retire(const std::vector<char>& over) {
  std::size_t kept = 0;
  for (std::size_t at = 0; at < tracks_.size(); ++at) {
    if (over[at] == 0) {
      if (kept != at) tracks_[kept] = std::move(tracks_[at]);
      ++kept;
    } else if (tracks_[at].certain()) {
      ended_.push_back(std::move(tracks_[at]));
    }
  }
  tracks_.resize(kept);
}

std::vector<std::vector<LabelledBox>> Tracker::results() const {
  std::vector<std::vector<LabelledBox>> frames(static_cast<std::size_t>(frame_));
  const auto add = [&](const Track& track) {
    const std::size_t boxes = track.history.size() - std::size_t(track.undetected);
    for (std::size_t k = 0; k < boxes; ++k) {
      const auto& [frame, box] = track.history[k];
      frames[std::size_t(frame) - 1].push_back({.id = track.id, .box = box});
      if (k + 1 == boxes) continue;
      const auto& [next, end] = track.history[k + 1];
      if (next - frame - 1 > options_.longest_gap) continue;
      for (int gap = frame + 1; gap < next; ++gap) {
        const double share = double(gap - frame) / (next - frame);
        frames[std::size_t(gap) - 1].push_back({.id = track.id, .box = between(box, end, share)});
      }
    }
  };
  for (const Track& track : ended_) add(track);
  for (const Track& track : tracks_) {
    if (track.certain()) add(track);
  }
  for (auto& frame : frames) {
    std::sort(frame.begin(), frame.end(), [](const auto& a, const auto& b) { return a.id < b.id; });
  }
  return frames;
}

std::vector<std::vector<LabelledBox>> track(const Detections& detections, const MotionModel& model,
                                            const TrackerOptions& options, std::shared_ptr<Appearance> appearance) {
  Tracker tracker(model, {detections.info.width, detections.info.height}, options, std::move(appearance));
  tracker.set_confidence(Confidence::of(detections.frames));
  for (const auto& frame : detections.frames) tracker.step(frame);
  return tracker.results();
}

}  // namespace unshuffle::tracking
