#include <fmt/format.h>

#include <array>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <numeric>

#include "core/random.hpp"
#include "core/read_json.hpp"
#include "unshuffle/core/error.hpp"
#include "unshuffle/core/output_file.hpp"
#include "unshuffle/tables/simulate.hpp"
#include "unshuffle/version.hpp"

namespace unshuffle {
namespace {

constexpr std::array towns{"Basel", "Bern", "Chur", "Genf", "Lugano", "Sion", "Winterthur", "Zürich"};
constexpr std::array trainings{"apprenticeship", "university", "none"};
constexpr std::array<double, 3> by_training{0, 1150, -420};
constexpr double base = 1900, by_age = 34, by_years = 62, by_night = 380, noise_sd = 60;

struct Person {
  double age, years;
  std::size_t training, town;
  bool night;

  [[nodiscard]] double wage(RandomStream& random) const {
    return base + by_age * age + by_years * years + by_training[training] + (night ? by_night : 0) +
           noise_sd * random.normal();
  }
};

double rounded(double value, double step) { return std::round(value / step) * step; }

Person draw_person(RandomStream& random) {
  Person person{};
  person.age = rounded(20 + 42 * std::pow(random.uniform(), 1.4), 0.1);
  person.years = rounded(std::min(person.age - 18, -6 * std::log(random.uniform())), 0.1);
  const double training = random.uniform();
  person.training = training < 0.55 ? 0 : training < 0.82 ? 1 : 2;
  person.town = static_cast<std::size_t>(random.below(Index(towns.size())));
  person.night = random.uniform() < 0.3;
  return person;
}

/// Two in a hundred are not known.
std::string cell(std::string text, const char* missing, RandomStream& random) {
  constexpr double share = 0.02;
  return random.uniform() < share ? missing : text;
}

std::string line_of(const Person& person) {
  return fmt::format("{:.1f},{:.1f},{},{},{}\n", person.age, person.years, trainings[person.training],
                     person.night ? "yes" : "no", towns[person.town]);
}

std::string line_with_gaps(const Person& person, RandomStream& random) {
  return fmt::format("{},{:.1f},{},{},{}\n", cell(fmt::format("{:.1f}", person.age), "NA", random), person.years,
                     cell(trainings[person.training], "", random), person.night ? "yes" : "no", towns[person.town]);
}

constexpr const char* people_header = "age,years,training,night,town\n";

std::string truth_of(const std::vector<Index>& permutation, Index rows, std::uint64_t seed) {
  nlohmann::ordered_json truth{{"coefficients",
                                {{"age", by_age},
                                 {"years", by_years},
                                 {"training[T.none]", by_training[2]},
                                 {"training[T.university]", by_training[1]},
                                 {"night", by_night}}},
                               {"intercept", base},
                               {"permutation", permutation},
                               {"design", "wages"},
                               {"options", {{"n", rows}, {"seed", seed}}},
                               {"version", version}};
  return json_text(truth, 2);
}

}  // namespace

void write_wages(Index rows, std::uint64_t seed, const std::string& directory) {
  if (rows < 20) throw InvalidInput(fmt::format("n = {} must be at least 20", rows));
  RandomStream random(seed, Stream::start);
  const Index more = rows + rows / 10;  // of whom no wage is known
  std::vector<Person> people;
  for (Index k = 0; k < more; ++k) people.push_back(draw_person(random));
  std::vector<Index> order(static_cast<std::size_t>(more));
  std::iota(order.begin(), order.end(), Index{0});
  shuffle(order, random);
  std::string wages = "wage,city\n", known = people_header, test = "wage," + std::string(people_header);
  order.resize(static_cast<std::size_t>(rows));
  for (const Index row : order) {
    const Person& person = people[static_cast<std::size_t>(row)];
    wages += fmt::format("{:.0f},{}\n", person.wage(random), towns[person.town]);
  }
  for (const Person& person : people) known += line_with_gaps(person, random);
  for (Index k = 0; k < rows; ++k) {
    const Person person = draw_person(random);
    test += fmt::format("{:.0f},{}", person.wage(random), line_of(person));
  }
  make_folder(directory);
  const std::filesystem::path folder(directory);
  write_whole_file((folder / "wages.csv").string(), wages);
  write_whole_file((folder / "people.csv").string(), known);
  write_whole_file((folder / "test.csv").string(), test);
  write_whole_file((folder / "truth.json").string(), truth_of(order, rows, seed));
}

}  // namespace unshuffle
