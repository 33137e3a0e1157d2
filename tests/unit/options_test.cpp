// An option is declared once: parsing, rejection, keys and flags follow from the declaration.
#include "unshuffle/core/options.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <regex>
#include <set>

#include "estimator_options.hpp"
#include "support/complaint.hpp"
#include "support/fits.hpp"
#include "unshuffle/core/wording.hpp"
#include "unshuffle/estimators/estimators.hpp"

namespace unshuffle {
namespace {

enum class Colour { red, blue };
constexpr std::array colour_words{Word<Colour>{"red", Colour::red}, Word<Colour>{"blue", Colour::blue}};
constexpr std::span<const Word<Colour>> words_of(Colour) { return colour_words; }

/// One option of each kind.
struct Dummy {
  double share = 0.25;
  int count = 3;
  bool loud = false;
  Colour colour = Colour::red;
  StartChoice start{};

  template <class Self, class Visit>
  static void describe(Self& self, Visit&& visit) {
    visit(OptionText{"dummy_share", "How much of it.", proper_share}, self.share);
    visit(OptionText{"dummy_count", "How many times.", at_least_one, self.loud, "dummy_loud"}, self.count);
    visit(OptionText{"dummy_loud", "So that it is heard."}, self.loud);
    visit(OptionText{"dummy_colour", "What it looks like."}, self.colour);
    visit(OptionText{"dummy_start", "Where it begins."}, self.start);
  }
};

std::string set(Dummy& dummy, const char* name, const OptionValue& value) {
  return complaint<InvalidInput>([&] { EXPECT_TRUE(set_option(dummy, name, value)); });
}

std::string word(const char* text) { return text; }

TEST(Options, description_tells_kind_constraint_words_and_default) {
  const std::vector<OptionInfo> infos = describe_options<Dummy>();
  ASSERT_EQ(infos.size(), 5U);
  const std::vector<std::string> kinds{"number", "whole number", "switch", "word", "word"};
  const std::vector<std::string> constraints{"above 0 and below 1", "at least 1", "", "", ""};
  const std::vector<std::string> defaults{"0.25", "3", "false", "red", "auto"};
  for (std::size_t k = 0; k < 5; ++k) {
    EXPECT_EQ(infos[k].kind, kinds[k]);
    EXPECT_EQ(infos[k].constraint, constraints[k]);
    EXPECT_EQ(text_of(infos[k].standard), defaults[k]);
  }
  EXPECT_EQ(infos[0].name, "dummy_share");
  EXPECT_EQ(infos[0].help, "How much of it.");
  EXPECT_EQ(infos[3].words, (std::vector<std::string>{"red", "blue"}));
  EXPECT_EQ(infos[4].words, (std::vector<std::string>{"auto", "ls", "ransac", "group-means", "random"}));
}

TEST(Options, are_set_by_values_and_by_their_text) {
  for (const bool as_text : {false, true}) {
    Dummy dummy;
    const auto given = [&](const OptionValue& value) { return as_text ? OptionValue(text_of(value)) : value; };
    EXPECT_EQ(set(dummy, "dummy_share", given(0.1)), "");
    EXPECT_EQ(set(dummy, "dummy_count", given(std::int64_t{7})), "");
    EXPECT_EQ(set(dummy, "dummy_loud", given(true)), "");
    EXPECT_EQ(set(dummy, "dummy_colour", word("blue")), "");
    EXPECT_EQ(set(dummy, "dummy_start", word("ls")), "");
    EXPECT_EQ(dummy.share, 0.1);
    EXPECT_EQ(dummy.count, 7);
    EXPECT_TRUE(dummy.loud);
    EXPECT_EQ(dummy.colour, Colour::blue);
    EXPECT_EQ(dummy.start.kind, StartKind::least_squares);
  }
  Dummy dummy;
  EXPECT_EQ(set(dummy, "dummy_count", 4.0), "");  // a whole number all the same
  EXPECT_EQ(dummy.count, 4);
  EXPECT_EQ(set(dummy, "dummy_start", std::vector<double>{1, 2}), "");
  EXPECT_EQ(dummy.start.kind, StartKind::user);
  EXPECT_EQ(dummy.start.parameters, (Vector{{1, 2}}));
  EXPECT_EQ(std::get<std::vector<double>>(option_values(dummy).back().second), (std::vector<double>{1, 2}));
  EXPECT_FALSE(set_option(dummy, "dummy_size", 1.0));
}

TEST(Options, what_will_not_do_is_refused_naming_option_value_and_what_was_expected) {
  Dummy dummy;
  EXPECT_EQ(set(dummy, "dummy_share", word("much")), "dummy_share = much must be a number above 0 and below 1");
  EXPECT_EQ(set(dummy, "dummy_share", word("0.1x")), "dummy_share = 0.1x must be a number above 0 and below 1");
  EXPECT_EQ(set(dummy, "dummy_share", 2.0), "dummy_share = 2 must be above 0 and below 1");
  EXPECT_NE(set(dummy, "dummy_share", std::nan("")), "");
  EXPECT_EQ(set(dummy, "dummy_count", 2.5), "dummy_count = 2.5 must be a whole number at least 1");
  EXPECT_EQ(set(dummy, "dummy_count", word("10000000000")),
            "dummy_count = 10000000000 must be a whole number at least 1");
  EXPECT_EQ(set(dummy, "dummy_count", std::int64_t{0}), "dummy_count = 0 must be at least 1");
  EXPECT_EQ(set(dummy, "dummy_loud", word("maybe")), "dummy_loud = maybe must be true or false");
  EXPECT_EQ(set(dummy, "dummy_colour", word("green")), "dummy_colour = green must be one of red, blue");
  EXPECT_EQ(set(dummy, "dummy_colour", std::int64_t{1}), "dummy_colour = 1 must be one of red, blue");
  EXPECT_EQ(set(dummy, "dummy_start", word("here")),
            "dummy_start = here must be one of auto, ls, ransac, group-means, random");
}

TEST(Options, auto_stands_for_the_default_of_any_of_them) {
  Dummy dummy{.share = 0.5, .count = 9, .loud = true, .colour = Colour::blue, .start = {StartKind::random}};
  for (const OptionInfo& info : describe_options<Dummy>()) EXPECT_EQ(set(dummy, info.name.c_str(), word("auto")), "");
  EXPECT_EQ(option_values(dummy), option_values(Dummy{}));
}

TEST(Options, validation_sees_values_that_were_never_set_by_name_and_options_that_are_not_read) {
  const auto said = [](const Dummy& dummy, const std::vector<std::string>& given) {
    return complaint<InvalidInput>([&] { validate_options(dummy, given); });
  };
  EXPECT_EQ(said({}, {"dummy_share", "dummy_loud"}), "");
  EXPECT_EQ(said({.share = 1}, {}), "dummy_share = 1 must be above 0 and below 1");
  EXPECT_EQ(said({}, {"dummy_count"}), "dummy_count applies only with dummy_loud");
  EXPECT_EQ(said({.count = 5}, {}), "dummy_count applies only with dummy_loud");
  EXPECT_EQ(said({.count = 5, .loud = true}, {"dummy_count"}), "");
  EXPECT_EQ(unread_options(Dummy{}), std::vector<std::string>{"dummy_count"});
  EXPECT_EQ(unread_options(Dummy{.loud = true}), std::vector<std::string>{});
}

TEST(Estimators, option_names_are_unique_and_snake_case) {
  const std::regex snake_case("[a-z][a-z0-9]*(_[a-z0-9]+)*");
  for (const auto& [traits, options] : all_estimators()) {
    std::set<std::string> names;
    for (const OptionInfo& info : options) {
      EXPECT_TRUE(names.insert(info.name).second) << traits.name << " has two of " << info.name;
      EXPECT_TRUE(std::regex_match(info.name, snake_case)) << info.name;
      EXPECT_FALSE(info.help.empty()) << info.name;
    }
  }
}

TEST(Estimators, an_option_of_several_means_the_same_to_all_of_them) {
  std::map<std::string, OptionInfo> known;
  for (const auto& [traits, options] : all_estimators()) {
    for (const OptionInfo& info : options) {
      const OptionInfo& first = known.emplace(info.name, info).first->second;
      EXPECT_EQ(info.kind, first.kind) << traits.name << " " << info.name;
      EXPECT_EQ(info.words, first.words) << traits.name << " " << info.name;
      EXPECT_EQ(info.constraint, first.constraint) << traits.name << " " << info.name;
    }
  }
}

TEST(Estimators, defaults_read_back_from_their_text) {
  for (const auto& [traits, options] : all_estimators()) {
    const Estimator standard = *estimator_named(traits.name);
    for (const OptionInfo& info : options) {
      Estimator same = standard;
      // A radius or an ε that is not given is none.
      const bool stands_for_nothing = info.name == "rho1" || info.name == "rho2" || info.name == "epsilon_abs";
      set_option(same, info.name, stands_for_nothing ? word("auto") : text_of(info.standard));
      EXPECT_EQ(all_as_text(same), all_as_text(standard)) << traits.name << " " << info.name;
      EXPECT_EQ(option_values(same), option_values(standard)) << traits.name << " " << info.name;
    }
    EXPECT_EQ(complaint([&] { validate(standard); }), "") << traits.name;
  }
}

/// With its defaults, but an optimiser that reads all options of steps.
Estimator stepwise(std::string_view name) {
  const Estimator with_momentum = with_option_if_read(*estimator_named(name), "optimizer", word("momentum"));
  return with_option_if_read(with_momentum, "am_step", word("gradient"));
}

/// Some other value that the option may have beside these.
OptionValue another_value(const Estimator& standard, const OptionInfo& info) {
  std::vector<OptionValue> others;
  if (const auto* on = std::get_if<bool>(&info.standard)) others = {!*on};
  if (const auto* whole = std::get_if<std::int64_t>(&info.standard)) others = {*whole + 1, *whole + 2};
  if (const auto* number = std::get_if<double>(&info.standard))
    others = {std::nextafter(*number, 1), std::nextafter(*number, 0), 0.5};
  for (const std::string& one : info.words) others.emplace_back(one);
  for (const OptionValue& value : others) {
    Estimator changed = standard;
    const std::string said = complaint([&] {
      set_option(changed, info.name, value);
      validate(changed);
    });
    if (said.empty() && all_as_text(changed) != all_as_text(standard)) return value;
  }
  ADD_FAILURE() << "no other value of " << info.name;
  return info.standard;
}

TEST(Estimators, text_of_all_options_tells_any_change_of_one) {
  std::set<std::string> texts;
  std::size_t count = 0;
  const auto add = [&](const Estimator& estimator) {
    ++count;
    EXPECT_TRUE(texts.insert(all_as_text(estimator)).second) << all_as_text(estimator);
  };
  for (const auto& [traits, options] : all_estimators()) {
    const Estimator standard = stepwise(traits.name);
    add(standard);
    for (const OptionInfo& info : options) {
      Estimator changed = standard;
      set_option(changed, info.name, another_value(standard, info));
      add(changed);
      if (info.name != "start") continue;
      for (const std::vector<double>& start : {std::vector<double>{1, 2}, {2, 1}, {1}}) {
        set_option(changed, "start", start);
        add(changed);
      }
    }
  }
  EXPECT_EQ(texts.size(), count);
}

TEST(Estimators, options_that_are_not_read_are_refused_naming_those_who_read_them) {
  const auto said = [](Estimator estimator, const char* name, const OptionValue& value) {
    return complaint<InvalidInput>([&] { set_option(estimator, name, value); });
  };
  EXPECT_EQ(said(Robot{}, "gw_epsilon", 0.1), "gw_epsilon applies only with method = sinkhorn-gw");
  EXPECT_EQ(said(Mixture{}, "em_chains", std::int64_t{2}), "em_chains applies only with method = em, hard-em");
  EXPECT_EQ(said(Ls{}, "no_such", 1.0), "there is no option no_such");
  EXPECT_EQ(said(Robot{}, "epsilon", -1.0), "epsilon = -1 must be > 0");
  const auto together = [](const Estimator& estimator, const std::vector<std::string>& given) {
    return complaint<InvalidInput>([&] { validate(estimator, given); });
  };
  EXPECT_EQ(together(Robot{}, {"epsilon", "epsilon_abs"}), "epsilon and epsilon_abs exclude each other");
  EXPECT_EQ(together(Robot{.descent = {.epsilon_start = 1e-5}}, {}), "epsilon_start = 1e-05 must be above ε = 0.0001");
  EXPECT_EQ(together(RobotRobust{.rho1 = 0, .rho2 = 0}, {}), "rho2 = 0 must be > 0 where rho1 = 0");
  EXPECT_EQ(together(Am{}, {"learning_rate"}), "learning_rate applies only with gradient steps");
  EXPECT_EQ(together(Am{.matched_step = MatchedStep::gradient}, {"learning_rate"}), "");
}

TEST(Wording, options_are_named_in_the_terms_of_the_reader) {
  const std::string marked =
      fmt::format("ε: try {}, {} or {}{}", option("gw_epsilon"), option("hint", "rows"), option("start"), option("k"));
  EXPECT_EQ(in_terms_of(Dialect::cpp, marked), "ε: try gw_epsilon, hint = rows or startk");
  EXPECT_EQ(in_terms_of(Dialect::command_line, marked), "ε: try --gw-epsilon, --hint rows or --start--k");
  EXPECT_EQ(in_terms_of(Dialect::python, marked), "ε: try gw_epsilon, hint=\"rows\" or startk");
  for (const Dialect dialect : {Dialect::cpp, Dialect::command_line, Dialect::python}) {
    EXPECT_EQ(in_terms_of(dialect, "no option at all"), "no option at all");
    EXPECT_EQ(in_terms_of(dialect, in_terms_of(dialect, marked)), in_terms_of(dialect, marked));
  }
  EXPECT_EQ(flag_of("epsilon_abs"), "--epsilon-abs");
}

class Flags : public testing::Test {
 protected:
  Flags() {
    for (const OptionInfo& info : describe_options<Dummy>()) entries_.front().options.push_back(info);
  }
  void parse(const std::string& line) { app_.parse(line); }

  CLI::App app_;
  std::vector<EstimatorEntry> entries_ = all_estimators();
};

TEST_F(Flags, a_declaration_makes_a_flag_with_its_help) {
  const app::EstimatorFlags flags(app_, entries_);
  const std::string help = app_.help();
  for (const EstimatorEntry& entry : entries_) {
    for (const OptionInfo& info : entry.options) {
      EXPECT_NE(help.find(flag_of(info.name) + " "), std::string::npos) << info.name;
    }
  }
  const auto says = [&](const char* pattern) { return std::regex_search(help, std::regex(pattern)); };
  EXPECT_TRUE(says("--dummy-share X.*0\\.25.*\\s+auto: How much of it\\.")) << help;
  EXPECT_TRUE(says("--dummy-count N.*3.*\\s+auto: How many times\\.")) << help;
  EXPECT_TRUE(says("--dummy-loud\\s+auto: So that it is heard\\.")) << help;
  EXPECT_TRUE(says("--dummy-colour WORD.*red.*\\s+auto: What it looks like\\. \\(red, blue\\)")) << help;
}

TEST_F(Flags, what_was_given_is_known_and_refused_by_estimators_that_do_not_read_it) {
  const app::EstimatorFlags flags(app_, entries_);
  parse("--dummy-loud --epsilon 0.5");
  EXPECT_EQ(flags.given(), (std::vector<std::string>{"dummy_loud", "epsilon"}));
  EXPECT_TRUE(flags.gives("dummy_loud"));
  EXPECT_FALSE(flags.gives("dummy_count"));
  Estimator robot = Robot{};
  EXPECT_EQ(complaint<InvalidInput>([&] { flags.apply(robot); }), "there is no option dummy_loud");
  flags.apply_what_is_read(robot);
  EXPECT_EQ(std::get<Robot>(robot).smoothing.epsilon, 0.5);
}

TEST_F(Flags, what_only_some_have_a_use_for_is_passed_over_by_the_others) {
  const app::EstimatorFlags flags(app_, entries_);
  parse("--optimizer momentum --learning-rate 0.01 --batch 50");
  Estimator robot = Robot{}, am = Am{}, stepping = Am{.matched_step = MatchedStep::gradient};
  for (Estimator* one : {&robot, &am, &stepping}) flags.apply_what_is_read(*one);
  EXPECT_EQ(std::get<Robot>(robot).descent.step.batch, 50);
  EXPECT_EQ(all_as_text(am), all_as_text(Am{}));  // exact steps have no size
  EXPECT_EQ(std::get<Am>(stepping).step.learning_rate, 0.01);
  EXPECT_EQ(complaint<InvalidInput>([&] { flags.apply(am); }),
            "optimizer applies only with method = robot, robot-robust, robot-unrolled");
}

TEST_F(Flags, every_flag_sets_its_option) {
  for (const auto& [traits, options] : all_estimators()) {
    const Estimator standard = stepwise(traits.name);
    for (const OptionInfo& info : options) {
      const OptionValue value = another_value(standard, info);
      CLI::App app;
      const app::EstimatorFlags flags(app, all_estimators());
      const std::string flag = flag_of(info.name);
      app.parse(info.kind == "switch" ? flag : fmt::format("{}={}", flag, text_of(value)));
      Estimator by_flag = standard, by_name = standard;
      flags.apply_what_is_read(by_flag);
      set_option(by_name, info.name, value);
      EXPECT_EQ(all_as_text(by_flag), all_as_text(by_name)) << traits.name << " " << info.name;
    }
  }
}

}  // namespace
}  // namespace unshuffle
