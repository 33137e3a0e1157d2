import inspect
import json
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import cross_val_score
from sklearn.utils.estimator_checks import parametrize_with_checks

from unshuffle import ConvergenceWarning, RobustShuffledRegressor, ShuffledRegressor, simulate


# A weight is the mass of a row among those it may be linked with; a row of weight 2 is not two rows, each with its own partner.
WEIGHTS_ARE_MASSES = {"expected_failed_checks": lambda estimator: {
    "check_sample_weight_equivalence_on_dense_data": "weights are masses, not counts",
    "check_sample_weight_equivalence_on_sparse_data": "weights are masses, not counts",
}} if "expected_failed_checks" in inspect.signature(parametrize_with_checks).parameters else {}


@pytest.mark.filterwarnings("ignore::unshuffle.ConvergenceWarning")
@parametrize_with_checks([ShuffledRegressor(), RobustShuffledRegressor()], **WEIGHTS_ARE_MASSES)
def test_is_a_scikit_learn_estimator(estimator, check):
    check(estimator)


def test_finds_the_coefficients_of_half_shuffled_rows(half_shuffled):
    model = ShuffledRegressor().fit(half_shuffled.z, half_shuffled.y)
    np.testing.assert_allclose(model.coef_, half_shuffled.coefficients, atol=0.1)
    assert model.score(half_shuffled.test_z, half_shuffled.test_y) > 0.97
    assert list(model.coef_names_) == ["z1", "z2", "z3"]
    assert "half" not in model.summary() and "z3" in model.summary()


def test_answers_as_the_library_whatever_the_layout(half_shuffled):
    z, y = half_shuffled.z, half_shuffled.y
    same = ShuffledRegressor().fit(z, y).coef_
    wide = np.repeat(z, 2, axis=1)
    for table in (np.ascontiguousarray(z), np.asfortranarray(z), wide[:, ::2]):
        assert np.array_equal(ShuffledRegressor().fit(table, y).coef_, same)


def test_two_tables_of_unequal_length(unlinked):
    model = ShuffledRegressor("entropic").fit_tables(y=unlinked.y[:250], z=unlinked.z)
    np.testing.assert_allclose(model.coef_, unlinked.coefficients, rtol=0.1)
    assert len(model.pairs_) == 250
    assert len(model.unmatched_features_) == 50 and len(model.unmatched_responses_) == 0
    assert set(model.pairs_["feature_row"]) | set(model.unmatched_features_) == set(range(300))
    assert np.all((model.pairs_["probability"] >= 0) & (model.pairs_["probability"] <= 1))


def test_features_on_both_sides():
    sample = simulate("linear", 300, dim_x=2, dim_z=1, shuffle=0.3, noise=0.01, seed=3)
    model = ShuffledRegressor("robot", hint="rows").fit_tables(x=sample.x, y=sample.y, z=sample.z)
    np.testing.assert_allclose(model.coef_, sample.coefficients, atol=0.1)
    together = np.hstack([sample.test_x, sample.test_z])
    assert model.n_features_in_ == 3
    assert model.score(together, sample.test_y) > 0.95
    with pytest.raises(ValueError, match="expecting 3 features"):
        model.predict(sample.test_z)


def test_several_responses():
    rng = np.random.default_rng(0)
    z = rng.normal(1, 1, (200, 2))
    y = z @ np.array([[1.0, -2.0], [3.0, 0.5]]) + [1, 2]
    model = ShuffledRegressor("ls").fit(z, y)
    np.testing.assert_allclose(model.coef_, [[1, 3], [-2, 0.5]])
    np.testing.assert_allclose(model.intercept_, [1, 2])
    np.testing.assert_allclose(model.predict(z), y)


def test_groups_of_any_label_and_known_pairs(unlinked):
    labels = np.where(unlinked.y > np.median(unlinked.y), "high", "low")
    by_feature = np.empty(300, object)
    by_feature[unlinked.permutation] = labels
    model = ShuffledRegressor("robot").fit_tables(y=unlinked.y, z=unlinked.z, groups=(labels, by_feature))
    assert all(labels[i] == by_feature[j] for i, j, _ in model.pairs_)
    known = list(enumerate(unlinked.permutation))
    model = ShuffledRegressor("oracle").fit_tables(y=unlinked.y, z=unlinked.z, known=known)
    np.testing.assert_allclose(model.coef_, unlinked.coefficients, rtol=0.05)


@pytest.mark.parametrize("missing", [np.nan, None, ""])
def test_rows_without_a_group(unlinked, missing):
    labels = np.full(300, "a", object)
    labels[[4, 9]] = missing
    with pytest.raises(ValueError, match=r"groups of the features: row 4 has no label \(2 of 300 rows\)"):
        ShuffledRegressor().fit_tables(y=unlinked.y, z=unlinked.z, groups=(["a"] * 300, labels))


def test_prior_odds_of_pairs():
    rng = np.random.default_rng(3)
    z, order = rng.normal(size=(100, 1)), rng.permutation(100)
    y = 2 * z[order, 0] + rng.normal(0, 0.1, 100)
    candidates = np.where(rng.random(100) < 0.7, order, rng.integers(0, 100, 100))
    prior = [(i, j, 0.7 / 0.3 * 99) for i, j in enumerate(candidates)]
    model = ShuffledRegressor("entropic").fit_tables(y=y, z=z, prior=prior)
    assert model.coef_ == pytest.approx([2], abs=0.1)
    with pytest.raises(ValueError, match="am cannot use prior weights"):
        ShuffledRegressor("am").fit_tables(y=y, z=z, prior=prior)


def test_weights_are_row_masses():
    z = np.linspace(0, 1, 20)[:, None]
    y = np.where(z[:, 0] < 0.5, z[:, 0], 5 + 3 * z[:, 0])
    known = [(i, i) for i in range(20)]
    weights = (z[:, 0] < 0.5).astype(float)
    model = ShuffledRegressor("oracle").fit_tables(
        y=y, z=z, known=known, response_weights=weights, feature_weights=weights
    )
    assert model.coef_ == pytest.approx([1])
    with pytest.raises(ValueError, match="weight"):
        ShuffledRegressor("oracle").fit_tables(y=y, z=z, known=known, response_weights=-weights)


def test_robust_leaves_rows_unmatched():
    sample = simulate("sensing", 300, dim_z=2, shuffle=0.2, snr=1000, mean=1, seed=4)
    y = sample.y.copy()
    y[:30] += 100
    model = RobustShuffledRegressor(unmatched=0.15).fit(sample.z, y)
    assert set(range(30)) <= set(model.unmatched_responses_)
    np.testing.assert_allclose(model.coef_, sample.coefficients, atol=0.1)


def test_robust_on_one_side_only():
    sample = simulate("sensing", 200, dim_z=2, shuffle=0.2, snr=1000, mean=1, seed=4)
    model = RobustShuffledRegressor(rho1=0, rho2=1e-3).fit(sample.z, sample.y)
    assert model.result_["rho1"] == 0 and model.result_["matched_share"] == pytest.approx(1)
    with pytest.raises(ValueError, match="rho2 = 0 must be > 0 where rho1 = 0"):
        RobustShuffledRegressor(rho1=0, rho2=0).fit(sample.z, sample.y)
    with pytest.raises(ValueError, match="rho1 = -1 must be at least 0"):
        RobustShuffledRegressor(rho1=-1).fit(sample.z, sample.y)


def test_column_names_reach_the_coefficients(half_shuffled):
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    people = pandas.DataFrame(half_shuffled.z, columns=["age", "height", "years"])
    wages = pandas.Series(half_shuffled.y, name="wage")
    model = ShuffledRegressor().fit(people, wages)
    assert list(model.coef_names_) == list(model.coefficients_) == ["age", "height", "years"]
    assert list(model.feature_names_in_) == ["age", "height", "years"]
    assert model.result_["columns"]["response"] == ["wage"]
    assert "height" in model.summary()
    tables = ShuffledRegressor(hint="rows").fit_tables(y=wages, z=people[["age", "years"]], x=people[["height"]])
    assert list(tables.coef_names_) == ["height", "age", "years"]
    assert len(tables.predict(people[["height", "age", "years"]])) == 400
    with pytest.raises(ValueError, match="feature names"):
        tables.predict(people)


def test_models_and_cross_validation(half_shuffled):
    z, y = half_shuffled.z, half_shuffled.y
    spline = ShuffledRegressor("ls", model="spline:3").fit(half_shuffled.test_z, half_shuffled.test_y)
    assert spline.score(half_shuffled.test_z, half_shuffled.test_y) > 0.95
    assert len(spline.coef_) == 3 * 6
    through_origin = ShuffledRegressor(fit_intercept=False).fit(z, y)
    assert through_origin.intercept_ == 0
    assert cross_val_score(ShuffledRegressor(), half_shuffled.test_z, half_shuffled.test_y, cv=3).min() > 0.9


def test_survives_pickling(half_shuffled):
    model = ShuffledRegressor().fit(half_shuffled.z, half_shuffled.y)
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(again.predict(half_shuffled.z), model.predict(half_shuffled.z))
    assert np.array_equal(again.pairs_, model.pairs_)
    assert again.summary() == model.summary()
    assert not hasattr(clone(model), "coef_")


def test_same_numbers_as_json(half_shuffled):
    model = ShuffledRegressor().fit(half_shuffled.z, half_shuffled.y)
    said = json.loads(model.to_json())
    assert list(said["coefficients"].values()) == list(model.coef_)
    assert said["identifiable"]["verdict"] == "identified"
    assert said["std_errors"]["z1"] > 0


def test_predictions_have_standard_errors_and_intervals(half_shuffled):
    model = ShuffledRegressor().fit(half_shuffled.z, half_shuffled.y)
    predictions, errors = model.predict(half_shuffled.test_z, return_std=True)
    assert np.array_equal(predictions, model.predict(half_shuffled.test_z))
    covariance = np.asarray(model.result_["covariance"]["rows"])
    names = model.result_["covariance"]["names"]
    design = np.column_stack([np.ones(len(predictions)), half_shuffled.test_z])
    order = [names.index(name) for name in ["intercept", *model.coef_names_]]
    expected = np.sqrt(np.einsum("ij,jk,ik->i", design, covariance[np.ix_(order, order)], design))
    np.testing.assert_allclose(errors, expected, rtol=1e-9)
    low, high = model.predict_interval(half_shuffled.test_z)
    inside = np.mean((low < half_shuffled.test_y) & (half_shuffled.test_y < high))
    assert 0.85 < inside <= 1
    with pytest.raises(ValueError, match="no standard errors"):
        ShuffledRegressor("robot").fit(half_shuffled.z, half_shuffled.y).predict_interval(half_shuffled.test_z)


def test_writes_a_report(half_shuffled, tmp_path):
    model = ShuffledRegressor().fit(half_shuffled.z, half_shuffled.y)
    model.report(tmp_path / "report.html", truth=enumerate(half_shuffled.permutation))
    page = (tmp_path / "report.html").read_text()
    said = json.loads(page.split('id="data">')[1].split("</script>")[0])
    assert said["fit"] == model.result_
    assert sum(part["pairs"] for part in said["calibration"]) == 400
    again = pickle.loads(pickle.dumps(model))
    again.report(tmp_path / "again.html")
    page = (tmp_path / "again.html").read_text()
    assert json.loads(page.split('id="data">')[1].split("</script>")[0])["fit"] == model.result_
    with pytest.raises(ValueError, match="unpickled"):
        again.report(tmp_path / "again.html", truth=enumerate(half_shuffled.permutation))


@pytest.mark.parametrize(
    "parameters, sentence",
    [
        ({"method": "magic"}, "method = magic must be one of auto, mixture"),
        ({"model": "magic"}, "magic"),
        ({"epsilon": -1, "method": "robot"}, "epsilon = -1 must be > 0"),
        ({"starts": -1}, "starts = -1 must be at least 0"),
        ({"hint": "maybe"}, "hint = maybe must be one of"),
        ({"start": "nowhere"}, "start = nowhere must be one of"),
        ({"method": "em", "em_chains": 0}, "em_chains = 0 must be at least 1"),
        ({"method": "robot", "epsilon": 1, "epsilon_abs": 1}, "exclude"),
    ],
)
def test_refuses_bad_options_in_words(half_shuffled, parameters, sentence):
    with pytest.raises(ValueError, match=sentence):
        ShuffledRegressor(**parameters).fit(half_shuffled.z, half_shuffled.y)


def test_refuses_bad_tables_in_words(half_shuffled):
    z, y = half_shuffled.z, half_shuffled.y
    with pytest.raises(ValueError, match="unmatched = 2 must be above 0 and below 1"):
        RobustShuffledRegressor(unmatched=2).fit(z, y)
    with pytest.raises(ValueError, match="NaN"):
        ShuffledRegressor().fit_tables(y=y, z=np.where(z > 2, np.nan, z))
    with pytest.raises(ValueError, match="z1.*in every row"):
        ShuffledRegressor().fit_tables(y=y, z=np.ones((400, 1)))


def test_warns_when_it_did_not_converge(half_shuffled):
    with pytest.warns(ConvergenceWarning, match="outer did not converge after 1 iterations"):
        model = ShuffledRegressor("robot", max_iter=1).fit_tables(y=half_shuffled.y, z=half_shuffled.z)
    assert model.result_["status"] == "outer not converged"
    assert issubclass(ConvergenceWarning, RuntimeWarning)


def test_warns_when_the_data_does_not_tell():
    rng = np.random.default_rng(0)
    with pytest.warns(ConvergenceWarning, match="not identifiable"):
        ShuffledRegressor(hint="none").fit_tables(y=rng.normal(size=100), z=rng.normal(size=(100, 2)))


def test_progress_is_reported_and_can_stop(half_shuffled):
    z, y = half_shuffled.z, half_shuffled.y
    seen = []
    ShuffledRegressor("robot", starts=2, progress=lambda done, total: seen.append(done / total)).fit_tables(y=y, z=z)
    assert seen == sorted(seen) and seen[-1] == 1

    with pytest.warns(ConvergenceWarning):
        model = ShuffledRegressor("robot", starts=2, progress=lambda done, total: False).fit_tables(y=y, z=z)
    assert model.result_["status"] == "stopped"

    def fail(done, total):
        raise LookupError("from the callback")

    with pytest.raises(LookupError, match="from the callback"):
        ShuffledRegressor("robot", starts=2, progress=fail).fit_tables(y=y, z=z)


def test_progress_bar_of_tqdm(half_shuffled, capsys):
    pytest.importorskip("tqdm", reason="tqdm is not installed")
    ShuffledRegressor("robot", starts=2, progress=True).fit_tables(y=half_shuffled.y, z=half_shuffled.z)
    assert "step" in capsys.readouterr().err


def test_other_threads_run_meanwhile():
    sample = simulate("sensing", 3000, dim_z=3, shuffle=1, seed=5)
    ticks = []
    done = threading.Event()

    def tick():
        while not done.wait(0.01):
            ticks.append(time.monotonic())

    thread = threading.Thread(target=tick)
    thread.start()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        begin = time.monotonic()
        ShuffledRegressor("robot", starts=2, n_jobs=1).fit_tables(y=sample.y, z=sample.z)
        taken = time.monotonic() - begin
    done.set()
    thread.join()
    assert len(ticks) > 0.2 * taken / 0.01


LONG_FIT = """
import unshuffle
sample = unshuffle.simulate("sensing", 2000, dim_z=4, shuffle=1, seed=5)
print("begun", flush=True)
unshuffle.ShuffledRegressor({}).fit_tables(y=sample.y, z=sample.z)
"""


@pytest.mark.parametrize("options", ["'robot', starts=100000", "'mixture', bootstrap=100000, hint='rows'"])
def test_ctrl_c_stops_cleanly(options):
    # A shell ignores SIGINT in what it runs in the background, and so would everything below it.
    process = subprocess.Popen([sys.executable, "-c", LONG_FIT.format(options)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
    assert process.stdout.readline() == "begun\n"
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    begin = time.monotonic()
    _, complaint = process.communicate(timeout=600)
    assert time.monotonic() - begin < 20
    assert complaint.rstrip().endswith("KeyboardInterrupt")
    assert process.returncode in (-signal.SIGINT, 130, 1), os.strerror(process.returncode)


def masked(values):
    mask = np.zeros(np.shape(values), bool)
    mask[3] = True
    return np.ma.array(values, mask=mask)


def test_masked_entries_are_refused():
    rng = np.random.default_rng(0)
    z, y = rng.normal(size=(30, 2)), rng.normal(size=30)
    fitted = ShuffledRegressor(method="ls").fit(np.ma.array(z), y)
    for refused in (
        lambda: ShuffledRegressor().fit(masked(z), y),
        lambda: ShuffledRegressor().fit(z, masked(y)),
        lambda: ShuffledRegressor().fit_tables(y=y, z=masked(z)),
        lambda: ShuffledRegressor().fit_tables(y=y, z=z, x=masked(y)),
        lambda: ShuffledRegressor().fit_tables(y=y, z=z, response_weights=masked(np.ones(30))),
        lambda: ShuffledRegressor().fit_tables(y=y, z=z, groups=(masked(np.ones(30)), np.ones(30))),
        lambda: fitted.predict(masked(z)),
    ):
        with pytest.raises(ValueError, match="masked array whose row 3 is masked"):
            refused()


def test_rows_of_pairs_are_whole_numbers():
    rng = np.random.default_rng(0)
    z, y = rng.normal(size=(30, 2)), rng.normal(size=30)
    for name, pairs in (("known", [(0.5, 0)]), ("known", [(0, float("nan"))]), ("prior", [(1, 2.25, 3.0)])):
        with pytest.raises(ValueError, match=f"{name}: .* is not the number of a row"):
            ShuffledRegressor().fit_tables(y=y, z=z, **{name: pairs})
    ShuffledRegressor(method="oracle").fit_tables(y=y, z=z, known=np.column_stack([np.arange(30.0), np.arange(30.0)]))


@pytest.mark.parametrize("method", ["auto", "robot", "entropic", "am"])
def test_a_start_of_the_wrong_length_is_refused(method):
    sample = simulate("sensing", 100, dim_z=2, shuffle=0.2, snr=100, mean=1)
    with pytest.raises(ValueError, match="start has 2 values; 3 were expected: intercept, z1, z2"):
        ShuffledRegressor(method=method, start=[1.0, 2.0]).fit(sample.z, sample.y)
