// Scores against published numbers, two independent evaluators and brute force; SORT against its authors' numbers.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>

#include "support/test_data.hpp"
#include "tracking/pairing.hpp"
#include "unshuffle/core/error.hpp"
#include "unshuffle/tracking/metrics.hpp"
#include "unshuffle/tracking/sort.hpp"

namespace unshuffle::tracking {
namespace {

namespace fs = std::filesystem;

const fs::path videos = test_data("../../../shared/data/mot");

LabelledBox at(long id, double left, double confidence = 1, int category = 1) {
  return {.id = id, .box = {left, 0, 10, 20}, .confidence = confidence, .category = category};
}

Labels labels(std::vector<std::vector<LabelledBox>> frames) { return {.frames = std::move(frames), .columns = 10}; }

Labels sort_results(const Detections& video) {
  const fs::path path = fs::temp_directory_path() / ("unshuffle_sort_" + video.info.name + ".txt");
  std::ofstream(path) << to_mot(track_by_sort(video));  // As a file has them: two decimals.
  const Labels read = read_labels(path.string(), video.info.length);
  fs::remove(path);
  return read;
}

double best_by_enumeration(const Matrix& weight) {
  std::vector<Index> order(std::size_t(weight.cols()));
  for (std::size_t k = 0; k < order.size(); ++k) order[k] = Index(k);
  double best = 0;
  do {
    double total = 0;
    for (Index i = 0; i < std::min(weight.rows(), weight.cols()); ++i) total += weight(i, order[std::size_t(i)]);
    best = std::max(best, total);
  } while (std::next_permutation(order.begin(), order.end()));
  return best;
}

TEST(HeaviestPairs, are_as_heavy_as_the_best_permutation_of_a_sparse_graph) {
  std::mt19937_64 engine(5);
  std::uniform_real_distribution<double> uniform;
  for (int trial = 0; trial < 200; ++trial) {
    const Index size = 1 + trial % 6;
    Matrix weight = Matrix::Zero(size, size);
    std::vector<Edge> edges;
    for (Index i = 0; i < size; ++i) {
      for (Index j = 0; j < size; ++j) {
        if (uniform(engine) > 0.4) continue;
        weight(i, j) = uniform(engine);
        edges.push_back({i, j, weight(i, j)});
      }
    }
    double total = 0;
    std::vector<int> rows(std::size_t(size), 0), columns(std::size_t(size), 0);
    for (const std::size_t edge : heaviest_pairs(edges, size, size)) {
      total += edges[edge].weight;
      EXPECT_EQ(rows[std::size_t(edges[edge].row)]++, 0);
      EXPECT_EQ(columns[std::size_t(edges[edge].column)]++, 0);
    }
    EXPECT_NEAR(total, best_by_enumeration(weight), 1e-12);
  }
}

TEST(Scores, counts_of_a_case_done_by_hand) {
  std::vector<std::vector<LabelledBox>> truth, results;
  for (int frame = 0; frame < 8; ++frame) {
    truth.push_back({at(1, 0)});
    results.push_back({});
    if (frame < 4) results.back().push_back(at(7, 0));
    if (frame >= 3) results.back().push_back(at(8, 500));
  }
  const Counts counts = evaluate(labels(truth), labels(results), Benchmark::mot15);
  EXPECT_EQ(counts.matches, 4);
  EXPECT_EQ(counts.misses, 4);
  EXPECT_EQ(counts.false_positives, 5);
  EXPECT_EQ(counts.switches, 0);
  const Scores scores = scores_of(counts);
  EXPECT_DOUBLE_EQ(scores.mota, -0.125);
  EXPECT_DOUBLE_EQ(scores.idf1, 8.0 / 17);
  // At every threshold TP = 4, FN = 4, FP = 5, and the one pair has M = 4, g = 8, r = 4.
  EXPECT_NEAR(scores.det_a, 4.0 / 13, 1e-12);
  EXPECT_NEAR(scores.ass_a, 4.0 / 8, 1e-12);
  EXPECT_NEAR(scores.hota, std::sqrt(4.0 / 13 * 0.5), 1e-12);
}

TEST(Scores, a_kept_match_beats_a_closer_newcomer_and_a_new_id_is_a_switch) {
  const Labels truth = labels({{at(1, 0)}, {at(1, 0)}, {at(1, 0)}, {at(1, 0)}});
  const Labels results = labels({{at(5, 1)}, {at(5, 2), at(6, 0)}, {}, {at(6, 0)}});
  const Counts counts = evaluate(truth, results, Benchmark::mot15);
  EXPECT_EQ(counts.matches, 3);
  EXPECT_EQ(counts.false_positives, 1);
  EXPECT_EQ(counts.switches, 1);
  EXPECT_EQ(counts.fragmentations, 1);
}

TEST(Scores, as_many_pairs_as_possible_come_before_overlap) {
  // Taking the closest pair (1 with 5) first would leave 2 alone.
  const Labels truth = labels({{at(1, 0), at(2, 3)}});
  const Labels results = labels({{at(5, 0.5), at(6, -3)}});
  EXPECT_EQ(evaluate(truth, results, Benchmark::mot15).matches, 2);
}

TEST(Scores, distractors_take_their_results_away_and_unmarked_truth_does_not_count) {
  const Labels truth = labels({{at(1, 0), at(2, 100, 1, 7), at(3, 200, 0, 1), at(4, 300, 1, 6), at(5, 400, 1, 3)}});
  const Labels results = labels({{at(1, 0), at(2, 100), at(3, 200), at(4, 300), at(5, 400)}});
  const Counts mot17 = evaluate(truth, results, Benchmark::mot17);
  EXPECT_EQ(mot17.truth_boxes, 1);
  EXPECT_EQ(mot17.result_boxes, 4);
  EXPECT_EQ(evaluate(truth, results, Benchmark::mot20).result_boxes, 3);
  const Counts mot15 = evaluate(truth, results, Benchmark::mot15);
  EXPECT_EQ(mot15.truth_boxes, 4);
  EXPECT_EQ(mot15.result_boxes, 5);
}

TEST(Scores, empty_sides_divide_nothing_by_zero) {
  const Counts nothing = evaluate(labels({{}, {}}), labels({{}, {}}), Benchmark::mot15);
  EXPECT_TRUE(std::isnan(scores_of(nothing).mota));
  const Counts missed = evaluate(labels({{at(1, 0)}}), labels({}), Benchmark::mot15);
  EXPECT_EQ(missed.misses, 1);
  EXPECT_EQ(scores_of(missed).mota, 0);
  EXPECT_EQ(scores_of(missed).hota, 0);
  EXPECT_EQ(evaluate(labels({{}}), labels({{at(1, 0)}}), Benchmark::mot15).false_positives, 1);
}

TEST(Scores, an_id_twice_in_a_frame_is_refused) {
  EXPECT_THROW((void)evaluate(labels({{at(1, 0), at(1, 50)}}), labels({}), Benchmark::mot15), BadData);
}

TEST(Scores, sequences_combine_by_adding_counts) {
  const Labels truth = labels({{at(1, 0)}, {at(1, 0)}});
  Counts all = evaluate(truth, labels({{at(1, 0)}, {at(1, 0)}}), Benchmark::mot15);
  all += evaluate(truth, labels({{at(3, 500)}}), Benchmark::mot15);
  EXPECT_EQ(all.truth_boxes, 4);
  EXPECT_DOUBLE_EQ(scores_of(all).mota, 1 - 3.0 / 4);
  EXPECT_DOUBLE_EQ(scores_of(all).ass_a, 1);
}

TEST(Scores, published_numbers_of_the_tud_campus_fixture) {
  const fs::path folder = videos / "fixtures" / "TUD-Campus";
  if (!fs::exists(folder)) GTEST_SKIP() << "no ../shared/data/mot";
  const Counts counts = evaluate(read_labels((folder / "gt.txt").string()), read_labels((folder / "test.txt").string()),
                                 Benchmark::mot15);
  const Scores scores = scores_of(counts);
  EXPECT_NEAR(scores.idf1, 0.557659, 5e-7);
  EXPECT_NEAR(scores.id_precision, 0.729730, 5e-7);
  EXPECT_NEAR(scores.id_recall, 0.451253, 5e-7);
  EXPECT_NEAR(scores.recall, 0.582173, 5e-7);
  EXPECT_NEAR(scores.precision, 0.941441, 5e-7);
  EXPECT_NEAR(scores.mota, 0.526462, 5e-7);
  EXPECT_NEAR(1 - scores.motp, 0.277201, 5e-7);
  EXPECT_EQ(counts.truth_tracks, 8);
  EXPECT_EQ(counts.mostly_tracked, 1);
  EXPECT_EQ(counts.partly_tracked(), 6);
  EXPECT_EQ(counts.mostly_lost, 1);
  EXPECT_EQ(counts.false_positives, 13);
  EXPECT_EQ(counts.misses, 150);
  EXPECT_EQ(counts.switches, 7);
  EXPECT_EQ(counts.fragmentations, 7);
}

TEST(Scores, agree_with_motmetrics_and_trackeval_on_every_sequence) {
  if (!fs::exists(videos)) GTEST_SKIP() << "no ../shared/data/mot";
  const auto oracle = nlohmann::json::parse(std::ifstream(test_data("tracking_scores.json")));
  ASSERT_GE(oracle.size(), 11U);
  for (const auto& sequence : oracle.items()) {
    const std::string& name = sequence.key();
    const nlohmann::json& expected = sequence.value();
    SCOPED_TRACE(name);
    const Detections video = read_detections((videos / name).string());
    const Labels truth = read_labels((videos / name / "gt" / "gt.txt").string(), video.info.length);
    const Counts counts = evaluate(truth, sort_results(video), benchmark_of(name, truth));
    const Scores scores = scores_of(counts);
    const auto near = [&](const char* key, double value) {
      EXPECT_NEAR(value, expected[key].get<double>(), 1e-9) << key;
    };
    near("hota", scores.hota);
    near("det_a", scores.det_a);
    near("ass_a", scores.ass_a);
    near("loc_a", scores.loc_a);
    near("det_recall", scores.det_recall);
    near("det_precision", scores.det_precision);
    near("ass_recall", scores.ass_recall);
    near("ass_precision", scores.ass_precision);
    near("mota", scores.mota);
    near("motp_distance", 1 - scores.motp);
    near("idf1", scores.idf1);
    near("idp", scores.id_precision);
    near("idr", scores.id_recall);
    near("recall", scores.recall);
    near("precision", scores.precision);
    near("gt", double(counts.truth_tracks));
    near("mt", double(counts.mostly_tracked));
    near("pt", double(counts.partly_tracked()));
    near("ml", double(counts.mostly_lost));
    near("fp", double(counts.false_positives));
    near("fn", double(counts.misses));
    near("ids", double(counts.switches));
    near("fm", double(counts.fragmentations));
  }
}

TEST(SortTracker, reaches_the_published_counts_on_its_authors_detections) {
  const fs::path folder = videos / "fixtures" / "sort-detections" / "TUD-Campus";
  if (!fs::exists(folder)) GTEST_SKIP() << "no ../shared/data/mot";
  Detections video = read_detections(folder.string());
  const Labels truth = read_labels((videos / "TUD-Campus" / "gt" / "gt.txt").string(), 71);
  video.info.length = 71;
  const Counts counts = evaluate(truth, sort_results(video), Benchmark::mot15);
  EXPECT_NEAR(double(counts.false_positives), 15, 5);
  EXPECT_NEAR(double(counts.misses), 113, 5);
  EXPECT_NEAR(double(counts.switches), 6, 5);
  EXPECT_NEAR(100 * scores_of(counts).motp, 73.7, 1.5);
}

TEST(SortTracker, keeps_an_identity_through_one_missed_frame_and_no_more) {
  const auto ids = [](int missed) {
    Sort sort;
    std::vector<LabelledBox> last;
    for (int frame = 0; frame < 20; ++frame) {
      const bool seen = frame < 10 || frame >= 10 + missed;
      last = sort.step(seen ? std::vector<Detection>{{.box = {4.0 * frame, 0, 40, 80}}} : std::vector<Detection>{});
    }
    return last.empty() ? -1 : last.front().id;
  };
  EXPECT_EQ(ids(1), 1);
  EXPECT_EQ(ids(2), 2);
}

TEST(SortTracker, refuses_impossible_options) {
  EXPECT_THROW(Sort({.least_overlap = 1.5}), InvalidInput);
  EXPECT_THROW(Sort({.longest_absence = -1}), InvalidInput);
}

}  // namespace
}  // namespace unshuffle::tracking
