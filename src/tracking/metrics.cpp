#include "unshuffle/tracking/metrics.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <unordered_map>

#include "tracking/pairing.hpp"
#include "unshuffle/core/error.hpp"

namespace unshuffle::tracking {
namespace {

using Frames = std::vector<std::vector<LabelledBox>>;

constexpr double match_threshold = 0.5;
// Overlaps that are mathematically equal differ in the last digit; both public evaluators tolerate that.
constexpr double rounding = std::numeric_limits<double>::epsilon();

bool is_distractor(int category, Benchmark benchmark) {
  const bool common = category == 2 || category == 7 || category == 8 || category == 12;
  return common || (benchmark == Benchmark::mot20 && category == 6);
}

std::vector<Edge> overlapping(const std::vector<LabelledBox>& rows, const std::vector<LabelledBox>& columns,
                              double least) {
  std::vector<Edge> edges;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    for (std::size_t j = 0; j < columns.size(); ++j) {
      const double share = overlap(rows[i].box, columns[j].box);
      if (share > 0 && share >= least) edges.push_back({Index(i), Index(j), share});
    }
  }
  return edges;
}

/// Ids of a table as 0 .. count-1 with the number of boxes of each.
struct Identities {
  std::map<long, Index> number;
  std::vector<double> boxes;
  std::vector<std::vector<Index>> of_frame;

  explicit Identities(const Frames& frames) : of_frame(frames.size()) {
    for (std::size_t at = 0; at < frames.size(); ++at) {
      for (const LabelledBox& entry : frames[at]) {
        const auto [found, fresh] = number.emplace(entry.id, Index(boxes.size()));
        if (fresh) boxes.push_back(0);
        boxes[std::size_t(found->second)] += 1;
        of_frame[at].push_back(found->second);
      }
    }
  }
  [[nodiscard]] Index size() const { return Index(boxes.size()); }
};

/// Both sides of a sequence after the benchmark's rules, and every pair of boxes that overlap.
struct Comparison {
  Identities truth;
  Identities results;
  std::vector<std::vector<Edge>> edges;  ///< Per frame; rows are ground truth, the weight is the overlap.

  Comparison(const Frames& truth_frames, const Frames& result_frames) : truth(truth_frames), results(result_frames) {
    for (std::size_t at = 0; at < truth_frames.size(); ++at) {
      edges.push_back(overlapping(truth_frames[at], result_frames[at], 0));
    }
  }
  [[nodiscard]] std::size_t frames() const { return edges.size(); }
};

/// CLEAR MOT (Bernardin & Stiefelhagen 2008): a pair of the past is kept while it overlaps enough; what is left is
/// matched with as many pairs as possible and, among those, the largest total overlap.
class Clear {
 public:
  explicit Clear(const Comparison& both)
      : both_(both),
        last_partner_(std::size_t(both.truth.size()), none),
        tracked_(std::size_t(both.truth.size()), 0),
        state_(std::size_t(both.truth.size()), State::never) {}

  void run(Counts& counts) {
    for (std::size_t at = 0; at < both_.frames(); ++at) step(at, counts);
    for (std::size_t track = 0; track < tracked_.size(); ++track) {
      const double share = tracked_[track] / both_.truth.boxes[track];
      counts.mostly_tracked += share >= 0.8 ? 1 : 0;
      counts.mostly_lost += share < 0.2 ? 1 : 0;
    }
  }

 private:
  static constexpr Index none = -1;
  enum class State : char { never, tracked, interrupted };

  void step(std::size_t frame, Counts& counts) {
    const auto& rows = both_.truth.of_frame[frame];
    const auto& columns = both_.results.of_frame[frame];
    std::vector<Index> partner(rows.size(), none);
    std::vector<char> taken(columns.size(), 0);
    std::vector<Edge> near;
    for (const Edge& edge : both_.edges[frame]) {
      if (edge.weight >= match_threshold - rounding) near.push_back(edge);
    }
    for (const Edge& edge : near) {
      const bool kept = last_partner_[std::size_t(rows[std::size_t(edge.row)])] == columns[std::size_t(edge.column)];
      if (kept && taken[std::size_t(edge.column)] == 0) match(edge, partner, taken, counts);
    }
    std::erase_if(near, [&](const Edge& edge) {
      return partner[std::size_t(edge.row)] != none || taken[std::size_t(edge.column)] != 0;
    });
    // One more pair outweighs any loss of overlap.
    std::vector<Edge> counted = near;
    const double pair_value = 1 + double(std::min(rows.size(), columns.size()));
    for (Edge& edge : counted) edge.weight += pair_value;
    for (const std::size_t at : heaviest_pairs(counted, Index(rows.size()), Index(columns.size()))) {
      match(near[at], partner, taken, counts);
    }
    record(rows, columns, partner, counts);
  }

  static void match(const Edge& edge, std::vector<Index>& partner, std::vector<char>& taken, Counts& counts) {
    partner[std::size_t(edge.row)] = edge.column;
    taken[std::size_t(edge.column)] = 1;
    counts.overlap += edge.weight;
    ++counts.matches;
    --counts.misses;
    --counts.false_positives;
  }

  void record(const std::vector<Index>& rows, const std::vector<Index>& columns, const std::vector<Index>& partner,
              Counts& counts) {
    counts.misses += long(rows.size());
    counts.false_positives += long(columns.size());
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const auto track = std::size_t(rows[i]);
      State& state = state_[track];
      if (partner[i] == none) {
        if (state == State::tracked) state = State::interrupted;
        continue;
      }
      const Index result = columns[std::size_t(partner[i])];
      if (last_partner_[track] != none && last_partner_[track] != result) ++counts.switches;
      if (state == State::interrupted) ++counts.fragmentations;
      last_partner_[track] = result;
      state = State::tracked;
      tracked_[track] += 1;
    }
  }

  const Comparison& both_;
  std::vector<Index> last_partner_;
  std::vector<double> tracked_;
  std::vector<State> state_;
};

/// Sums over frames for pairs of a ground-truth track and a result track, in order of first appearance.
class PairSums {
 public:
  double& operator()(Index row, Index column) {
    const auto [found, fresh] = place_.emplace((std::uint64_t(row) << 32U) | std::uint64_t(column), entries_.size());
    if (fresh) entries_.push_back({row, column, 0});
    return entries_[found->second].weight;
  }
  [[nodiscard]] const std::vector<Edge>& entries() const { return entries_; }

 private:
  std::unordered_map<std::uint64_t, std::size_t> place_;
  std::vector<Edge> entries_;
};

/// IDTP (Ristani et al. 2016): whole tracks are paired so that as many boxes as possible agree. Minimising
/// IDFP + IDFN = truth + results - 2 IDTP is the same as maximising the boxes in common.
long identity_true_positives(const Comparison& both) {
  PairSums together;
  for (std::size_t at = 0; at < both.frames(); ++at) {
    for (const Edge& edge : both.edges[at]) {
      if (edge.weight < match_threshold - rounding) continue;
      together(both.truth.of_frame[at][std::size_t(edge.row)], both.results.of_frame[at][std::size_t(edge.column)]) +=
          1;
    }
  }
  double agreed = 0;
  for (const std::size_t at : heaviest_pairs(together.entries(), both.truth.size(), both.results.size())) {
    agreed += together.entries()[at].weight;
  }
  return std::lround(agreed);
}

/// HOTA (Luiten et al. 2021). First pass: how well whole tracks go together, from soft matches of every frame.
/// Second pass: one assignment per frame on that alignment times the overlap, then every threshold filters it.
class Hota {
 public:
  explicit Hota(const Comparison& both) : both_(both) {
    for (std::size_t at = 0; at < both.frames(); ++at) add_soft_matches(at);
  }

  void run(Counts& counts) {
    std::array<PairSums, hota_thresholds> matches;
    for (std::size_t at = 0; at < both_.frames(); ++at) match(at, counts, matches);
    for (std::size_t level = 0; level < hota_thresholds; ++level) {
      HotaCounts& hota = counts.hota[level];
      hota.misses = double(counts.truth_boxes) - hota.true_positives;
      hota.false_positives = double(counts.result_boxes) - hota.true_positives;
      for (const Edge& pair : matches[level].entries()) {
        const double m = pair.weight;
        const double g = both_.truth.boxes[std::size_t(pair.row)];
        const double r = both_.results.boxes[std::size_t(pair.column)];
        hota.association += m * m / (g + r - m);
        hota.association_recall += m * m / g;
        hota.association_precision += m * m / r;
      }
    }
  }

 private:
  void add_soft_matches(std::size_t frame) {
    const auto& rows = both_.truth.of_frame[frame];
    const auto& columns = both_.results.of_frame[frame];
    std::vector<double> row_sum(rows.size(), 0);
    std::vector<double> column_sum(columns.size(), 0);
    for (const Edge& edge : both_.edges[frame]) {
      row_sum[std::size_t(edge.row)] += edge.weight;
      column_sum[std::size_t(edge.column)] += edge.weight;
    }
    for (const Edge& edge : both_.edges[frame]) {
      const double all = row_sum[std::size_t(edge.row)] + column_sum[std::size_t(edge.column)] - edge.weight;
      soft_(rows[std::size_t(edge.row)], columns[std::size_t(edge.column)]) += edge.weight / all;
    }
  }

  double alignment(Index track, Index result) {
    const double p = soft_(track, result);
    return p / (both_.truth.boxes[std::size_t(track)] + both_.results.boxes[std::size_t(result)] - p);
  }

  void match(std::size_t frame, Counts& counts, std::array<PairSums, hota_thresholds>& matches) {
    const auto& rows = both_.truth.of_frame[frame];
    const auto& columns = both_.results.of_frame[frame];
    std::vector<Edge> weighted = both_.edges[frame];
    for (Edge& edge : weighted) {
      edge.weight *= alignment(rows[std::size_t(edge.row)], columns[std::size_t(edge.column)]);
    }
    for (const std::size_t at : heaviest_pairs(weighted, Index(rows.size()), Index(columns.size()))) {
      const Edge& edge = both_.edges[frame][at];
      for (std::size_t level = 0; level < hota_thresholds; ++level) {
        if (edge.weight < 0.05 * double(level + 1) - rounding) break;
        counts.hota[level].true_positives += 1;
        counts.hota[level].overlap += edge.weight;
        matches[level](rows[std::size_t(edge.row)], columns[std::size_t(edge.column)]) += 1;
      }
    }
  }

  const Comparison& both_;
  PairSums soft_;
};

void require_distinct_ids(const Frames& frames, const char* what) {
  for (std::size_t at = 0; at < frames.size(); ++at) {
    std::vector<long> ids;
    for (const LabelledBox& entry : frames[at]) ids.push_back(entry.id);
    std::sort(ids.begin(), ids.end());
    const auto twice = std::adjacent_find(ids.begin(), ids.end());
    if (twice != ids.end()) throw BadData(fmt::format("{}: id {} occurs twice in frame {}", what, *twice, at + 1));
  }
}

/// NaN when there is nothing to divide by.
double ratio(double part, double whole) { return whole > 0 ? part / whole : std::numeric_limits<double>::quiet_NaN(); }

}  // namespace

Benchmark benchmark_of(const std::string& name, const Labels& ground_truth) {
  if (name.starts_with("MOT20-")) return Benchmark::mot20;
  if (name.starts_with("MOT16-") || name.starts_with("MOT17-") || ground_truth.columns == 9) return Benchmark::mot17;
  return Benchmark::mot15;
}

Prepared prepare(const Labels& ground_truth, const Labels& results, Benchmark benchmark) {
  require_distinct_ids(ground_truth.frames, "ground truth");
  require_distinct_ids(results.frames, "results");
  Prepared prepared{ground_truth.frames, results.frames};
  const std::size_t frames = std::max(prepared.truth.size(), prepared.results.size());
  prepared.truth.resize(frames);
  prepared.results.resize(frames);
  for (std::size_t at = 0; at < frames; ++at) {
    auto& truth = prepared.truth[at];
    auto& found = prepared.results[at];
    if (benchmark != Benchmark::mot15) {
      const auto near = overlapping(truth, found, match_threshold - rounding);
      std::vector<char> away(found.size(), 0);
      for (const std::size_t pair : heaviest_pairs(near, Index(truth.size()), Index(found.size()))) {
        if (is_distractor(truth[std::size_t(near[pair].row)].category, benchmark)) {
          away[std::size_t(near[pair].column)] = 1;
        }
      }
      std::size_t position = 0;
      std::erase_if(found, [&](const LabelledBox&) { return away[position++] != 0; });
    }
    std::erase_if(truth, [&](const LabelledBox& entry) {
      return entry.confidence == 0 || (benchmark != Benchmark::mot15 && entry.category != 1);
    });
  }
  return prepared;
}

Counts evaluate(const Labels& ground_truth, const Labels& results, Benchmark benchmark) {
  const Prepared prepared = prepare(ground_truth, results, benchmark);
  const Comparison both(prepared.truth, prepared.results);
  Counts counts;
  counts.frames = long(both.frames());
  for (const double boxes : both.truth.boxes) counts.truth_boxes += std::lround(boxes);
  for (const double boxes : both.results.boxes) counts.result_boxes += std::lround(boxes);
  counts.truth_tracks = long(both.truth.size());
  counts.result_tracks = long(both.results.size());
  Clear(both).run(counts);
  counts.identity_true_positives = identity_true_positives(both);
  Hota(both).run(counts);
  return counts;
}

Counts& Counts::operator+=(const Counts& other) {
  for (const auto member :
       {&Counts::frames, &Counts::truth_boxes, &Counts::result_boxes, &Counts::truth_tracks, &Counts::result_tracks,
        &Counts::matches, &Counts::misses, &Counts::false_positives, &Counts::switches, &Counts::fragmentations,
        &Counts::mostly_tracked, &Counts::mostly_lost, &Counts::identity_true_positives}) {
    this->*member += other.*member;
  }
  overlap += other.overlap;
  for (std::size_t level = 0; level < hota_thresholds; ++level) {
    for (const auto member :
         {&HotaCounts::true_positives, &HotaCounts::misses, &HotaCounts::false_positives, &HotaCounts::association,
          &HotaCounts::association_recall, &HotaCounts::association_precision, &HotaCounts::overlap}) {
      hota[level].*member += other.hota[level].*member;
    }
  }
  return *this;
}

Scores scores_of(const Counts& counts) {
  Scores scores{};
  for (const HotaCounts& level : counts.hota) {
    const double hits = level.true_positives;
    const double detection = ratio(hits, hits + level.misses + level.false_positives);
    const auto per_hit = [&](double sum, double without) { return hits > 0 ? sum / hits : without; };
    scores.det_a += detection / hota_thresholds;
    scores.det_recall += ratio(hits, hits + level.misses) / hota_thresholds;
    scores.det_precision += ratio(hits, hits + level.false_positives) / hota_thresholds;
    scores.ass_a += per_hit(level.association, 0) / hota_thresholds;
    scores.ass_recall += per_hit(level.association_recall, 0) / hota_thresholds;
    scores.ass_precision += per_hit(level.association_precision, 0) / hota_thresholds;
    scores.loc_a += per_hit(level.overlap, 1) / hota_thresholds;
    scores.hota += std::sqrt(detection * per_hit(level.association, 0)) / hota_thresholds;
  }
  const auto truth = double(counts.truth_boxes);
  const auto results = double(counts.result_boxes);
  const auto agreed = double(counts.identity_true_positives);
  scores.mota = 1 - ratio(double(counts.misses + counts.false_positives + counts.switches), truth);
  scores.motp = ratio(counts.overlap, double(counts.matches));
  scores.recall = ratio(double(counts.matches), truth);
  scores.precision = ratio(double(counts.matches), results);
  scores.idf1 = ratio(2 * agreed, truth + results);
  scores.id_precision = ratio(agreed, results);
  scores.id_recall = ratio(agreed, truth);
  return scores;
}

}  // namespace unshuffle::tracking
