"""The problems stored in tests/answers have the same answers here as on the command line."""

import sys
from pathlib import Path

import pytest

from unshuffle import RobustShuffledRegressor, ShuffledRegressor

pandas = pytest.importorskip("pandas")
sys.path.insert(0, str(Path(__file__).parents[2] / "tests" / "answers"))

import answers  # noqa: E402
from problems import all_problems  # noqa: E402

COMMAND_LINE_ONLY = {"soft-group", "stream"}
ABOUT_TABLES = {"group", "weights", "robust", "no-intercept"}

EXPECTED = answers.stored()
PROBLEMS = [problem for problem in all_problems() if not COMMAND_LINE_ONLY & problem.options.keys()]


def regressor(options):
    robust = "robust" in options or options.get("method") == "robot-robust"
    parameters = {{"seed": "random_state", "max-iterations": "max_iter"}.get(name, name.replace("-", "_")): value for name, value in options.items() if name not in ABOUT_TABLES}
    if "paper_settings" in parameters:  # which ask for robot on the command line
        parameters.setdefault("method", "robot")
    kind = RobustShuffledRegressor if robust else ShuffledRegressor
    return kind(**parameters, fit_intercept="no-intercept" not in options, n_jobs=2)


def fitted(problem):
    model = regressor(problem.options)
    responses, features = pandas.DataFrame(problem.responses), pandas.DataFrame(problem.features)
    names = problem.response.split(",")
    y = responses[names if len(names) > 1 else names[0]]
    if not problem.features:
        return model.fit(responses[problem.columns(problem.responses)], y)
    x = problem.columns(problem.responses)
    weights, keys = problem.options.get("weights"), problem.options.get("group", "").split("=")
    return model.fit_tables(
        y=y, z=features[problem.columns(problem.features)], x=responses[x] if x else None,
        response_weights=responses[weights] if weights else None,
        groups=(responses[keys[0]], features[keys[-1]]) if keys[0] else None,
        known=problem.known or None, prior=problem.prior or None,
    )


def pairs_of(model):
    return [
        *([int(i), int(j), float(probability)] for i, j, probability in model.pairs_),
        *([int(i), None, None] for i in model.unmatched_responses_),
        *([None, int(j), None] for j in model.unmatched_features_),
    ]


@pytest.mark.filterwarnings("ignore::unshuffle.ConvergenceWarning")
@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda problem: problem.name)
def test_answers_as_the_command_line(problem):
    expected, model = EXPECTED[problem.name], fitted(problem)
    assert answers.differences(expected["fit"], answers.of_fit(model.result_)) == []
    if problem.pairs:
        assert answers.differences(expected["pairs"], answers.of_pairs(pairs_of(model))) == []
    if problem.predict:
        rows = pandas.DataFrame(model.predict(pandas.DataFrame(problem.complete_rows())), columns=problem.response.split(","))
        stored = [{name: row[name] for name in rows} for row in expected["predictions"]]
        assert answers.differences(stored, rows.to_dict("records")) == []
