#include <algorithm>
#include <array>

#include "methods/method.hpp"

namespace unshuffle {

namespace {

constexpr std::array entries{
    MethodEntry{{Method::automatic, "auto", "looks at the data, chooses one of the others and says why", false, true},
                estimate_auto},
    MethodEntry{{Method::mixture, "mixture", "rows in order are linked rightly or not: estimates which, and how many"},
                estimate_mixture},
    MethodEntry{
        {Method::adjusted, "adjusted", "regression on rows in order, adjusted for the share that is linked wrongly"},
        estimate_adjusted},
    MethodEntry{{Method::entropic, "entropic",
                 "maximum likelihood over all links, noise estimated, searched from many starts", false, true},
                estimate_entropic},
    MethodEntry{{Method::robot, "robot", "descent on the transport cost by its exact gradient; every row has a partner",
                 false, true},
                estimate_robot},
    MethodEntry{{Method::robot_robust, "robot-robust", "the same where rows may stay without a partner", false, true},
                estimate_robot_robust},
    MethodEntry{{Method::robot_unrolled, "robot-unrolled",
                 "as robot, by the gradient of a fixed number of Sinkhorn iterations (for comparison)", true},
                estimate_robot_unrolled},
    MethodEntry{{Method::ls, "ls", "ordinary regression as if rows were linked in the order given"}, estimate_ls},
    MethodEntry{{Method::oracle, "oracle", "ordinary regression on known pairs (--known or --truth)"}, estimate_oracle},
    MethodEntry{{Method::am, "am", "alternating minimisation: best matching, refit, again"}, estimate_am},
    MethodEntry{{Method::em, "em", "stochastic EM: refit on the average of sampled matchings"}, estimate_em},
    MethodEntry{{Method::hard_em, "hard-em", "EM with the single best matching sampled"}, estimate_hard_em},
    MethodEntry{{Method::rr, "rr", "robust regression on rows in the order given, then outliers are matched anew"},
                estimate_rr},
    MethodEntry{{Method::rs, "rs", "random sample consensus over small sets of rows"}, estimate_rs},
    MethodEntry{{Method::one_step, "one-step", "rows matched anew by a regression on rows in order, then regression"},
                estimate_one_step},
    MethodEntry{{Method::sliced_gw, "sliced-gw", "links from sliced Gromov-Wasserstein alignment, then regression"},
                estimate_sliced_gw},
    MethodEntry{
        {Method::sinkhorn_gw, "sinkhorn-gw", "links from entropic Gromov-Wasserstein alignment, then regression", true},
        estimate_sinkhorn_gw},
};

}  // namespace

const MethodEntry& entry_of(Method method) {
  return *std::find_if(entries.begin(), entries.end(),
                       [&](const MethodEntry& entry) { return entry.info.method == method; });
}

std::vector<MethodInfo> known_methods() {
  std::vector<MethodInfo> infos;
  for (const MethodEntry& entry : entries) infos.push_back(entry.info);
  return infos;
}

const char* name_of(Method method) { return entry_of(method).info.name.data(); }

std::optional<Method> method_named(std::string_view name) {
  for (const MethodEntry& entry : entries) {
    if (entry.info.name == name) return entry.info.method;
  }
  return std::nullopt;
}

}  // namespace unshuffle
