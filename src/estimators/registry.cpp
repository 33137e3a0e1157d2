#include <algorithm>
#include <array>

#include "estimators/method.hpp"

namespace unshuffle {

namespace {

constexpr std::array entries{
    MethodEntry{{.method = Method::automatic,
                 .name = "auto",
                 .help = "looks at the data, chooses one of the others and says why",
                 .prior = true},
                estimate_auto},
    MethodEntry{{.method = Method::mixture,
                 .name = "mixture",
                 .help = "rows in order are linked rightly or not: estimates which, and how many"},
                estimate_mixture},
    MethodEntry{{.method = Method::adjusted,
                 .name = "adjusted",
                 .help = "regression on rows in order, adjusted for the share that is linked wrongly"},
                estimate_adjusted},
    MethodEntry{{.method = Method::entropic,
                 .name = "entropic",
                 .help = "maximum likelihood over all links, noise estimated, searched from many starts",
                 .prior = true},
                estimate_entropic},
    MethodEntry{{.method = Method::robot,
                 .name = "robot",
                 .help = "descent on the transport cost by its exact gradient; every row has a partner",
                 .prior = true,
                 .traced = true},
                estimate_robot},
    MethodEntry{{.method = Method::robot_robust,
                 .name = "robot-robust",
                 .help = "the same where rows may stay without a partner",
                 .prior = true,
                 .traced = true},
                estimate_robot_robust},
    MethodEntry{{.method = Method::robot_unrolled,
                 .name = "robot-unrolled",
                 .help = "as robot, by the gradient of a fixed number of Sinkhorn iterations (for comparison)",
                 .dense = true,
                 .traced = true},
                estimate_robot_unrolled},
    MethodEntry{
        {.method = Method::ls, .name = "ls", .help = "ordinary regression as if rows were linked in the order given"},
        estimate_ls},
    MethodEntry{
        {.method = Method::oracle, .name = "oracle", .help = "ordinary regression on known pairs (--known or --truth)"},
        estimate_oracle},
    MethodEntry{{.method = Method::am,
                 .name = "am",
                 .help = "alternating minimisation: best matching, refit, again",
                 .traced = true},
                estimate_am},
    MethodEntry{{.method = Method::em,
                 .name = "em",
                 .help = "stochastic EM: refit on the average of sampled matchings",
                 .traced = true},
                estimate_em},
    MethodEntry{{.method = Method::hard_em,
                 .name = "hard-em",
                 .help = "EM with the single best matching sampled",
                 .traced = true},
                estimate_hard_em},
    MethodEntry{{.method = Method::rr,
                 .name = "rr",
                 .help = "robust regression on rows in the order given, then outliers are matched anew"},
                estimate_rr},
    MethodEntry{{.method = Method::rs, .name = "rs", .help = "random sample consensus over small sets of rows"},
                estimate_rs},
    MethodEntry{{.method = Method::one_step,
                 .name = "one-step",
                 .help = "rows matched anew by a regression on rows in order, then regression"},
                estimate_one_step},
    MethodEntry{{.method = Method::sliced_gw,
                 .name = "sliced-gw",
                 .help = "links from sliced Gromov-Wasserstein alignment, then regression"},
                estimate_sliced_gw},
    MethodEntry{{.method = Method::sinkhorn_gw,
                 .name = "sinkhorn-gw",
                 .help = "links from entropic Gromov-Wasserstein alignment, then regression",
                 .dense = true},
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

const MethodInfo& info_of(Method method) { return entry_of(method).info; }

const char* name_of(Method method) { return info_of(method).name.data(); }

std::optional<Method> method_named(std::string_view name) {
  for (const MethodEntry& entry : entries) {
    if (entry.info.name == name) return entry.info.method;
  }
  return std::nullopt;
}

}  // namespace unshuffle
