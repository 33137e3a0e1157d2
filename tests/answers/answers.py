"""The parts of a fit that are stored, and how they are compared with those of another program."""

import hashlib
import json
import math
import os

EXPECTED = os.path.join(os.path.dirname(os.path.abspath(__file__)), "expected.json")

# What users see is compared to the last printed digit. The numbers in JSON have all their digits, the last of which
# depend on the CPU the program was compiled for (-march=native), on the compiler and on how sums are taken; a descent
# that ends at a tolerance turns them into differences of some 1e-9.
TOLERANCE = 1e-7

FIELDS = ("status", "method", "coefficients", "intercept", "std_errors", "intervals", "noise_sd", "objective",
          "transport_cost", "epsilon", "matched_share")


def fingerprint(text):
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def of_tables(problem):
    """Tells a problem that is no longer drawn as it was from an answer that changed."""
    return fingerprint(json.dumps([problem.responses, problem.features, problem.known, problem.prior]))


def of_fit(fit):
    """The stored part of a fit's JSON."""
    answer = {name: fit[name] for name in FIELDS}
    answer["chosen"] = fit.get("choice", fit["method"]).split(":")[0]
    answer["verdict"] = fit["identifiable"]["verdict"]
    return answer


def of_pairs(pairs):
    """Pairs of (response row, feature row, probability); None stands for a partner that is missing."""
    return {
        "count": len(pairs),
        "links": fingerprint(json.dumps([pair[:2] for pair in pairs])),
        "sum of probabilities": math.fsum(pair[2] or 0 for pair in pairs),
        "first": pairs[:5],
    }


def is_number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def differences(expected, got, field=""):
    """(field, expected, got) for everything that differs."""
    if isinstance(expected, dict) and isinstance(got, dict):
        keys = [*expected, *(key for key in got if key not in expected)]
        parts = [(f"{field}.{key}" if field else key, expected.get(key), got.get(key)) for key in keys]
    elif isinstance(expected, list) and isinstance(got, list) and len(expected) == len(got):
        parts = [(f"{field}[{at}]", *both) for at, both in enumerate(zip(expected, got))]
    elif is_number(expected) and is_number(got):
        return [] if math.isclose(expected, got, rel_tol=TOLERANCE) else [(field, expected, got)]
    else:
        return [] if expected == got else [(field, expected, got)]
    return [difference for name, left, right in parts for difference in differences(left, right, name)]


def stored():
    with open(EXPECTED) as file:
        return json.load(file)
