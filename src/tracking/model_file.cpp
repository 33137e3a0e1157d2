#include "unshuffle/tracking/model_file.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/checksum.hpp"
#include "core/read_json.hpp"
#include "core/text.hpp"
#include "unshuffle/core/error.hpp"
#include "unshuffle/tables/table.hpp"

namespace unshuffle::tracking {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* model_format = "unshuffle motion model 1";
constexpr const char* checkpoint_format = "unshuffle tracker training 1";

Json to_array(const Vector& values) { return std::vector<double>(values.begin(), values.end()); }

Vector numbers(const Json& json, const char* key, const std::string& source) {
  const auto values = json_value<std::vector<double>>(json, key, source);
  return Eigen::Map<const Vector>(values.data(), Index(values.size()));
}

MotionModel model_of(const Json& json, const char* key, const std::string& source) {
  MotionModel model(json_value<int>(json, "hidden", source));
  model.set_values(numbers(json, key, source));
  return model;
}

/// Reads JSON of a known format.
template <class Result>
Result parsed(const std::string& content, const std::string& source, const char* format,
              const std::function<Result(const Json&)>& read) {
  try {
    const Json json = read_json<Json>(content, source);
    if (!json.is_object()) throw BadData(fmt::format("{}: a JSON object was expected", source));
    const auto found = json_value<std::string>(json, "format", source);
    if (found != format) {
      throw BadData(fmt::format("{}: format \"{}\"; \"{}\" was expected", source, found, format));
    }
    return read(json);
  } catch (const InvalidInput& error) {
    throw BadData(fmt::format("{}: {}", source, error.what()));
  }
}

}  // namespace

std::string to_json(const SavedModel& saved) {
  const Json json{{"format", model_format},
                  {"hidden", saved.model.hidden()},
                  {"inputs", {"1", "x", "y", "last_dx", "last_dy", "last_dlogh", "mean_dx", "mean_dy", "mean_dlogh"}},
                  {"outputs", {"dx", "dy", "dlogh"}},
                  {"values", to_array(saved.model.values())},
                  {"camera", saved.camera},
                  {"objective", saved.objective},
                  {"trained_on", saved.trained_on}};
  return json_text(json, 2);
}

SavedModel model_from_json(const std::string& content, const std::string& source) {
  return parsed<SavedModel>(content, source, model_format, [&](const Json& json) {
    return SavedModel{.model = model_of(json, "values", source),
                      .camera = json_value<bool>(json, "camera", source),
                      .objective = json_value<double>(json, "objective", source),
                      .trained_on = json_value<std::vector<std::string>>(json, "trained_on", source)};
  });
}

SavedModel load_model(const std::string& name) {
  if (name == "identity") return {.model = MotionModel(), .camera = false, .objective = 0, .trained_on = {}};
  if (name == "constant-velocity") {
    return {.model = MotionModel::constant_velocity(), .camera = false, .objective = 0, .trained_on = {}};
  }
  if (std::filesystem::path(name).extension().empty() && !std::filesystem::exists(name)) {
    throw InvalidInput(
        fmt::format("model {}: identity, constant-velocity or a file written by train-tracker was expected", name));
  }
  return model_from_json(read_file(name), name);
}

std::string checkpoint_json(const TrainState& state, const std::string& belongs_to) {
  const Json json{{"format", checkpoint_format},
                  {"belongs_to", as_utf8(belongs_to)},
                  {"hidden", state.model.hidden()},
                  {"model", to_array(state.model.values())},
                  {"tracked", to_array(state.tracked.values())},
                  {"best", to_array(state.best.values())},
                  {"first_moment", to_array(state.first_moment)},
                  {"second_moment", to_array(state.second_moment)},
                  {"steps", state.steps},
                  {"objectives", state.objectives},
                  {"best_objective", state.best_objective},
                  {"round_epochs", state.round_epochs},
                  {"epochs_since_gain", state.epochs_since_gain},
                  {"settled", state.settled}};
  return with_checksum(json_text(json, 2));
}

TrainState state_from_json(const std::string& content, const std::string& source, const std::string& belongs_to) {
  if (!checksum_holds(content))
    throw BadData(fmt::format(
        "{}: is not a checkpoint of a tracker's training, or damaged; remove it to begin anew, or name another file",
        source));
  return parsed<TrainState>(content, source, checkpoint_format, [&](const Json& json) {
    const auto owner = json_value<std::string>(json, "belongs_to", source);
    if (owner != as_utf8(belongs_to)) {
      throw BadData(fmt::format("{}: was written for other videos or options: {}; now: {}", source, owner, belongs_to));
    }
    TrainState state(model_of(json, "model", source));
    state.tracked = model_of(json, "tracked", source);
    state.best = model_of(json, "best", source);
    state.first_moment = numbers(json, "first_moment", source);
    state.second_moment = numbers(json, "second_moment", source);
    if (state.first_moment.size() != state.model.size() || state.second_moment.size() != state.model.size()) {
      throw BadData(fmt::format("{}: moments of {} and {} numbers; {} were expected", source, state.first_moment.size(),
                                state.second_moment.size(), state.model.size()));
    }
    state.steps = json_value<int>(json, "steps", source);
    state.objectives = json_value<std::vector<double>>(json, "objectives", source);
    state.best_objective = json_value<double>(json, "best_objective", source);
    state.round_epochs = json_value<int>(json, "round_epochs", source);
    state.epochs_since_gain = json_value<int>(json, "epochs_since_gain", source);
    state.settled = json_value<bool>(json, "settled", source);
    if (state.round_epochs < 0 || state.round_epochs > state.epochs()) {
      throw BadData(fmt::format("{}: round_epochs = {} of {} epochs", source, state.round_epochs, state.epochs()));
    }
    return state;
  });
}

// The number of epochs is excluded: a checkpoint exists to continue for longer.
std::string fingerprint(const std::vector<Detections>& videos, const TrainOptions& options, int hidden) {
  std::string text;
  for (const Detections& video : videos) {
    std::size_t boxes = 0;
    for (const auto& frame : video.frames) boxes += frame.size();
    text += fmt::format("{} ({} frames, {} boxes), ", video.info.name, video.info.length, boxes);
  }
  const TrackerOptions& tracker = options.tracker;
  const CameraOptions& camera = tracker.camera_options;
  text += fmt::format(
      "hidden {}, round {}, batch {}, learning rate {}, epsilon {}, unmatched {}, patience {}, gain {}, seed {}, ",
      hidden, options.round, options.batch, options.learning_rate, options.epsilon, options.unmatched, options.patience,
      options.least_gain, options.seed);
  text += fmt::format("trust {} {} {}, widening {}, ", tracker.trust.birth, tracker.trust.match, tracker.trust.least,
                      tracker.widening);
  text += fmt::format("overlaps {} {} {} {}, birth {}, death {}, smoothing {}, confidence {}, association {}, ",
                      tracker.least_overlap, tracker.recovery_overlap, tracker.birth_overlap, tracker.suppress_overlap,
                      tracker.birth_wait, tracker.longest_absence, tracker.smoothing, tracker.least_confidence,
                      int(tracker.association));
  text += fmt::format("camera {} {} {} {} {} {} {}", tracker.camera, camera.epsilon, camera.tolerance, camera.shift_sd,
                      camera.slope_sd, camera.persistence, camera.iterations);
  return text;
}

}  // namespace unshuffle::tracking
