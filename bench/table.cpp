// How fast CSV is read: a million rows of six numbers.
#include "unshuffle/tables/table.hpp"

#include <benchmark/benchmark.h>

#include <cmath>

namespace {

std::string million_rows() {
  std::string content = "a,b,c,d,e,f\n";
  for (int row = 0; row < 1'000'000; ++row) {
    for (int column = 0; column < 6; ++column) {
      if (column > 0) content += ',';
      unshuffle::append_number(content, std::sin(row * 6 + column));
    }
    content += '\n';
  }
  return content;
}

void parse_csv(benchmark::State& state) {
  const std::string content = million_rows();
  for (auto unused : state) {
    (void)unused;
    benchmark::DoNotOptimize(unshuffle::parse_csv(content, "memory"));
  }
  state.SetBytesProcessed(state.iterations() * static_cast<long>(content.size()));
}

BENCHMARK(parse_csv)->Unit(benchmark::kMillisecond)->UseRealTime();  // it reads on all threads

}  // namespace

BENCHMARK_MAIN();
