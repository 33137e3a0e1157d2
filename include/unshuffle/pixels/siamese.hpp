// The regression function f on pixels: a Siamese network, SiamRPN (Li et al. 2018) or NanoTrack, finds a track's target
// in the next frame, and is taught from detections alone.
//
// Everything but the network itself is here; the network is the torch component, loaded when first asked for.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "unshuffle/core/export.hpp"
#include "unshuffle/pixels/picture_files.hpp"
#include "unshuffle/tracking/tracker.hpp"

namespace unshuffle {
namespace pixels UNSHUFFLE_EXPORT {

/// Feature channels after conv1 ... conv5 and of the two heads. Anchors, strides and kernels never change.
using Channels = std::array<std::int64_t, 6>;
constexpr Channels published_channels{96, 256, 384, 384, 256, 256};

/// The published numbers times `width`, rounded, at least one each. Throws InvalidInput unless 0 < width ≤ 2.
[[nodiscard]] Channels scaled_channels(double width);

/// How a network's answer becomes a box.
enum class Decoding {
  best,  ///< The box of the best place.
  mean,  ///< The mean of the boxes of the best place and its neighbours, weighted by a softmax of their scores.
};

struct Learning {
  int frozen = 3;  ///< SiamRPN: of the five convolutions of the backbone, so many first ones are not trained.
  /// Instead: only parameters whose names begin so are trained. NanoTrack without any: its head.
  std::vector<std::string> layers{};
  Decoding decoding = Decoding::best;
};

/// Of a fresh SiamRPN.
struct SiameseShape {
  Channels channels = published_channels;
  Learning learning{};
  std::uint64_t seed = 1;  ///< Of the first weights.
};

/// A target to look for.
struct Sight {
  std::shared_ptr<const Crop> target;  ///< Around its first box, in its first frame.
  Crop search;                         ///< Around its last box, in this frame.
  tracking::Box last;
};

/// What links predicted boxes and detections of a frame.
struct LinkOptions {
  double epsilon = 0.02;   ///< Smoothing of the plan; costs are between 0 and 1.
  double unmatched = 0.2;  ///< Share of tracks and of detections that may stay unmatched; 0: none (plain ROBOT).
  double rho = 0;          ///< If above 0, instead: the paper's bound of ‖μ̄-μ‖² on the simplex.
};

/// What a frame teaches.
struct Teaching {
  std::vector<tracking::Box> detections;
  double diagonal = 1;  ///< Of the image.
  LinkOptions links{};
  std::vector<Index> known{};  ///< Where links are known: of each track its detection, -1: none.
};

struct Lesson {
  std::vector<tracking::Found> found;  ///< Predicted.
  double loss = 0;                     ///< <C, Γ>·min(n, m) of them; of known links, the sum of their costs.
};

class SiameseNetwork {
 public:
  virtual ~SiameseNetwork() = default;

  /// Parameters and running statistics by name, as torch.load reads them.
  [[nodiscard]] virtual std::string state_dictionary() const = 0;

  /// Sets the running statistics of batch normalisation, which are otherwise left alone, to those of these crops.
  virtual void measure_statistics(const std::vector<Sight>& sights) = 0;

  [[nodiscard]] virtual std::vector<tracking::Found> predict(const std::vector<Sight>& sights) = 0;

  /// Pixels on a side of the crop it searches.
  [[nodiscard]] virtual int search_side() const = 0;
  virtual void decode(Decoding decoding) = 0;

  /// Predicts, and adds the gradient of the robust transport cost between predicted boxes and detections to those of
  /// the frames since the last step.
  virtual Lesson learn(const std::vector<Sight>& sights, const Teaching& teaching) = 0;

  /// The same without learning, as `predict` sees it.
  virtual Lesson judge(const std::vector<Sight>& sights, const Teaching& teaching) = 0;

  /// One step of Adam down the gradients so far. A parameter moves by about learning_rate; in SiamRPN, which begins
  /// with nothing learnt, only a bias does, and a weight among n that are added up by learning_rate / (100 n).
  virtual void step(double learning_rate) = 0;

  /// Weights, their average and the state of Adam, for resuming.
  [[nodiscard]] virtual std::string checkpoint() const = 0;
  virtual void restore(const std::string& content, const std::string& source) = 0;

  [[nodiscard]] virtual std::int64_t parameter_count() const = 0;
};

/// A fresh network: drawn weights, but offsets zero and scores even, so it begins by leaving boxes about where they
/// are. Throws InvalidInput saying what to install when the component is missing.
[[nodiscard]] std::unique_ptr<SiameseNetwork> make_network(const SiameseShape& shape);

/// The network of a state dictionary as torch.save(model.state_dict(), file) writes it, SiamRPN or NanoTrack:
/// parameters by name, as wide as the tensors say. Throws BadData naming the file, the parameter and what was expected.
[[nodiscard]] std::unique_ptr<SiameseNetwork> load_network(const std::string& path, const Learning& learning = {});

/// The same from memory; `source` is its name in messages.
[[nodiscard]] std::unique_ptr<SiameseNetwork> parse_network(const std::string& content, const std::string& source,
                                                            const Learning& learning = {});

/// Whether a file is an archive of torch rather than a motion model in JSON.
[[nodiscard]] bool is_state_dictionary(const std::string& path);

/// What a track is known by.
enum class Likeness {
  first,  ///< How it looked in its first frame; computed once.
  last,   ///< In the frame before: nearer to how it looks now, but whoever covers it takes its place.
};

/// The network as eyes of a tracker.
class SiameseEyes : public tracking::Appearance {
 public:
  SiameseEyes(SiameseNetwork& network, Film& film, Likeness likeness = Likeness::first)
      : network_(network), film_(film), likeness_(likeness) {}
  std::vector<tracking::Found> find(int frame, const std::vector<tracking::Sighting>& sightings) override;

 protected:
  [[nodiscard]] std::vector<Sight> sights(int frame, const std::vector<tracking::Sighting>& sightings);
  SiameseNetwork& network_;

 private:
  struct Target {
    int frame;
    tracking::Box box;
    std::shared_ptr<const Crop> crop;
  };
  Film& film_;
  Likeness likeness_;
  std::vector<Target> targets_;  ///< Of the last frame.
};

struct SiameseTrainOptions {
  int epochs = 20;
  int batch = 8;                ///< Frames per step.
  double learning_rate = 1e-2;  ///< Of Adam.
  int hold_out = 0;             ///< Last frames of every video that are not used at all.
  double hold_back = 0.2;       ///< Last share of the others: not learned from, they say which epoch was best.
  int patience = 5;             ///< Epochs without gain in the frames held back that end training.
  LinkOptions links{};
  Likeness likeness = Likeness::first;
  tracking::TrackerOptions tracker{};
  /// Of every video: learn from the true links, which shows what losing them costs. Empty: they are lost.
  std::vector<tracking::Labels> truth{};
};

/// Throws InvalidInput naming the option, its value and what was expected.
void validate(const SiameseTrainOptions& options);

/// Running statistics from the first frame of the videos that has detections; for networks that were not loaded.
void prepare(SiameseNetwork& network, const PictureFiles& files, const std::vector<tracking::Detections>& videos);

/// Mean losses per pair of an epoch; 0 without pairs.
struct SiameseEpoch {
  double objective = 0;  ///< Of the frames learned from, while learning.
  double judged = 0;     ///< Of the frames held back, after that; without any, the objective.
};

/// One epoch: every video tracked from its first frame by the network as it is, which learns as it goes. `watch` is
/// called after every frame with the number of frames done in this epoch.
SiameseEpoch train_epoch(SiameseNetwork& network, const PictureFiles& files,
                         const std::vector<tracking::Detections>& videos, const SiameseTrainOptions& options,
                         const std::function<void(int)>& watch = {});

/// The same without learning: what training has to improve on.
SiameseEpoch judge_epoch(SiameseNetwork& network, const PictureFiles& files,
                         const std::vector<tracking::Detections>& videos, const SiameseTrainOptions& options);

[[nodiscard]] int frames_per_epoch(const std::vector<tracking::Detections>& videos, const SiameseTrainOptions& options);

/// How well boxes are predicted one frame ahead where the truth is known: sums, so that videos add up.
struct Foresight {
  double overlap = 0;   ///< Σ IoU of predicted and true box.
  double standing = 0;  ///< The same for boxes that stay where they were.
  int predictions = 0;
  int frames = 0;
  double seconds = 0;

  Foresight& operator+=(const Foresight& other);
};

/// Over the last `frames` frames of a video. Every true box is looked for around its place in the frame before; the
/// first frame in which it is known is the first of these that it is in.
[[nodiscard]] Foresight foresight(SiameseNetwork& network, Film& film, const tracking::Labels& truth, int frames,
                                  Likeness likeness = Likeness::first);

/// How far training is. Its file also says, as text, which options and videos it belongs to.
struct SiameseCheckpoint {
  std::vector<double> objectives;  ///< Of every epoch.
  std::vector<double> judged;      ///< Before the first epoch and after every one.
  std::string network;
  std::string best;  ///< State dictionary of the epoch judged best.

  /// How many epochs the network judged best has learned for.
  [[nodiscard]] int best_epoch() const;
  /// Whether the last `patience` epochs brought nothing.
  [[nodiscard]] bool settled(int patience) const;
};

/// Where training begins: nothing learnt, and what there is to improve on.
[[nodiscard]] SiameseCheckpoint untrained(SiameseNetwork& network, const PictureFiles& files,
                                          const std::vector<tracking::Detections>& videos,
                                          const SiameseTrainOptions& options);

/// Called after every frame with the number of frames done in this epoch, and after every epoch.
struct SiameseWatch {
  std::function<void(int)> frame{};
  std::function<void()> epoch{};
};

/// Trains from there until the last epoch, or until `patience` epochs brought nothing.
void train(SiameseNetwork& network, SiameseCheckpoint& state, const PictureFiles& files,
           const std::vector<tracking::Detections>& videos, const SiameseTrainOptions& options,
           const SiameseWatch& watch = {});

[[nodiscard]] std::string to_bytes(const SiameseCheckpoint& checkpoint, const std::string& belongs_to);
[[nodiscard]] SiameseCheckpoint checkpoint_from(const std::string& bytes, const std::string& source,
                                                const std::string& belongs_to);

}  // namespace pixels
}  // namespace unshuffle
