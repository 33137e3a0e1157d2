"""Data frames of any kind, with text and missing cells, and formulas: the fits of the command line's files."""

import json
import os
import pickle
import random
import shutil
import subprocess
import warnings
from pathlib import Path

import numpy as np
import pytest

from unshuffle import ConvergenceWarning, ShuffledRegressor, TableWarning

pandas = pytest.importorskip("pandas")
PROGRAM = Path(__file__).parents[2] / "build" / "release" / "unshuffle"


def columns(rows=120, seed=1):
    """wage = 3 + 2 age + 15 (south) + 8 (west) + 5 (member), almost; some cells are missing."""
    draw = random.Random(seed)
    made = {"wage": [], "age": [], "region": [], "member": []}
    for row in range(rows):
        age, region, member = draw.randrange(2000, 6500) / 100, draw.choice(["north", "north", "south", "west"]), draw.random() < 0.4
        made["wage"].append(3 + 2 * age + {"north": 0, "south": 15, "west": 8}[region] + 5 * member + draw.gauss(0, 0.1))
        made["age"].append(None if row in (3, 40) else age)
        made["region"].append(None if row == 7 else region)
        made["member"].append(member)
    return made


def frames():
    made = columns()
    yield "pandas", pandas.DataFrame(made)
    yield "categories", pandas.DataFrame(made).astype({"region": "category", "age": "Float64"})
    for name in ("polars", "pyarrow"):
        package = pytest.importorskip(name)
        yield name, package.DataFrame(made) if name == "polars" else package.table(made)


def halves(frame):
    """Responses and features of one frame, of its own kind."""
    import narwhals.stable.v1 as nw

    rows = nw.from_native(frame, eager_only=True)
    return rows.select("wage").to_native(), rows.select("age", "region", "member").to_native()


@pytest.fixture(scope="module")
def from_pandas():
    wages, people = halves(pandas.DataFrame(columns()))
    with pytest.warns(TableWarning, match=r"3 of 120 rows of features dropped \(age: 2, region: 1\)"):
        return ShuffledRegressor("ls", hint="rows").fit_tables(y=wages, z=people)


def test_categories_and_missing_cells_are_those_of_the_command_line(from_pandas):
    assert list(from_pandas.coef_names_) == ["age", "region[T.south]", "region[T.west]", "member"]
    np.testing.assert_allclose(from_pandas.coef_, [2, 15, 8, 5], atol=0.15)
    assert "column \"region\" is a category of 3 levels; reference north" in "".join(from_pandas.notes_)
    assert list(from_pandas.feature_names_in_) == ["age", "region", "member"]


def test_every_kind_of_frame_and_file_has_the_same_fit(from_pandas, tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fits = {}
        for name, frame in frames():
            wages, people = halves(frame)
            fits[name] = ShuffledRegressor("ls", hint="rows").fit_tables(y=wages, z=people).coef_
        frame = pandas.DataFrame(columns())
        frame.to_parquet(tmp_path / "rows.parquet")
        frame.to_csv(tmp_path / "rows.csv", index=False)
        for name, again in (("parquet", pandas.read_parquet(tmp_path / "rows.parquet")), ("csv", pandas.read_csv(tmp_path / "rows.csv"))):
            wages, people = halves(again)
            fits[name] = ShuffledRegressor("ls", hint="rows").fit_tables(y=wages, z=people).coef_
    for name, coefficients in fits.items():
        assert np.array_equal(coefficients, from_pandas.coef_), name


@pytest.mark.skipif(not PROGRAM.exists(), reason="the program is not built")
def test_files_have_the_same_fit_on_the_command_line(from_pandas, tmp_path):
    wages, people = halves(pandas.DataFrame(columns()))
    wages.to_csv(tmp_path / "wages.csv", index=False)
    for name in ("people.csv", "people.csv.gz"):
        people.to_csv(tmp_path / name, index=False)
        done = subprocess.run([PROGRAM, "fit", "wages.csv", name, "--response", "wage", "--method", "ls", "--hint", "rows", "--json"],
                              cwd=tmp_path, capture_output=True)
        assert list(json.loads(done.stdout)["coefficients"].values()) == list(from_pandas.coef_)


def test_predictions_take_raw_frames(from_pandas):
    rows = pandas.DataFrame(columns(seed=2)).dropna()
    np.testing.assert_allclose(from_pandas.predict(rows), rows["wage"], atol=1)
    with pytest.raises(ValueError, match='column "region" holds "east"; the fit knows the levels north, south, west only'):
        from_pandas.predict(rows.assign(region="east"))
    with pytest.raises(ValueError, match="needs a frame"):
        from_pandas.predict(rows[["age"]].to_numpy())
    again = pickle.loads(pickle.dumps(from_pandas))
    assert np.array_equal(again.predict(rows), from_pandas.predict(rows))


def test_pairs_count_the_rows_that_were_given(from_pandas):
    pairs, responses, features = from_pandas.match()
    assert len(pairs) == 117 and list(responses) == list(features) == [3, 7, 40]
    assert set(pairs["response_row"]) == set(range(120)) - {3, 7, 40}


@pytest.mark.filterwarnings("ignore::unshuffle.TableWarning")
def test_formulas():
    made = pandas.DataFrame(columns())
    wages, people = halves(made)
    model = ShuffledRegressor("ls", hint="rows").fit_tables(formula="wage ~ age + C(region) + member", y=wages, z=people)
    assert list(model.coef_names_) == ["age", "C(region)[T.south]", "C(region)[T.west]", "member"]
    rows = made.dropna()
    np.testing.assert_allclose(model.predict(rows), rows["wage"], atol=1)
    through_origin = ShuffledRegressor("ls", hint="rows").fit_tables(formula="wage ~ age - 1", y=wages, z=people)
    assert through_origin.intercept_ == 0
    with pytest.raises(ValueError, match="formula, character 12"):
        ShuffledRegressor().fit_tables(formula="wage ~ age age", y=wages, z=people)
    restored = ShuffledRegressor.from_json(model.to_json())
    assert np.array_equal(restored.predict(rows), model.predict(rows))


@pytest.mark.filterwarnings("ignore::unshuffle.TableWarning")
def test_what_to_do_about_missing_cells_is_an_option():
    wages, people = halves(pandas.DataFrame(columns()))
    with pytest.raises(ValueError, match=r"cells are missing in 3 of 120 rows of features \(age: 2, region: 1\)"):
        ShuffledRegressor(missing="error").fit_tables(y=wages, z=people)
    model = ShuffledRegressor("ls", missing="indicator", hint="rows").fit_tables(y=wages, z=people)
    assert "age[missing]" in model.coef_names_
    with pytest.raises(ValueError, match="missing = maybe must be one of drop, error, indicator"):
        ShuffledRegressor(missing="maybe").fit_tables(y=wages, z=people)


@pytest.mark.filterwarnings("ignore::unshuffle.TableWarning", "ignore::unshuffle.ConvergenceWarning")
def test_keys_are_names_of_columns():
    made = pandas.DataFrame(columns()).dropna().reset_index(drop=True)
    order = np.random.default_rng(1).permutation(len(made))
    left, right = made[["wage", "region"]].rename(columns={"region": "town"}), made[["age", "member", "region"]].iloc[order].reset_index(drop=True)
    model = ShuffledRegressor("robot", starts=1).fit_tables(y=left, z=right, groups=("town", "region"))
    assert list(model.coef_names_) == ["age", "member"]
    pairs = model.match()[0]
    assert all(left["town"][i] == right["region"][j] for i, j, _ in pairs)
    labels = ShuffledRegressor("robot", starts=1).fit_tables(y=left[["wage"]], z=right[["age", "member"]], groups=(left["town"], right["region"]))
    assert np.array_equal(labels.coef_, model.coef_)


def test_fit_takes_a_frame_with_text():
    made = pandas.DataFrame(columns())
    with pytest.warns(TableWarning):
        model = ShuffledRegressor("ls").fit(made[["age", "region", "member"]], made["wage"])
    np.testing.assert_allclose(model.coef_, [2, 15, 8, 5], atol=0.15)


def test_keys_and_known_pairs_of_one_table_with_text():
    frame = pandas.DataFrame(columns()).dropna().reset_index(drop=True)
    shuffled = frame["wage"].sample(frac=1, random_state=1).to_numpy()
    known = [(int(np.flatnonzero(shuffled == wage)[0]), row) for row, wage in enumerate(frame["wage"])]
    people = frame.drop(columns="wage")
    with pytest.warns(TableWarning):
        all_known = ShuffledRegressor("oracle").fit(people, shuffled, known=known)
    np.testing.assert_allclose(all_known.coef_, [2, 15, 8, 5], atol=0.15)
    assert all_known.score(people, shuffled, known=known[:50]) > 0.99
    with pytest.raises(ValueError, match="known: 1 pairs"):
        all_known.score(people, shuffled, known=known[:1])

    # Within regions the order is lost: the name of a column and its labels say the same.
    within = frame.groupby("region")["wage"].transform(lambda wages: wages.sample(frac=1, random_state=2).to_numpy()).to_numpy()
    ages = people[["age", "member", "region"]]
    numbers = people[["age", "member"]].astype(float)
    with pytest.warns(ConvergenceWarning, match="not identifiable"):
        by_name = ShuffledRegressor("entropic", hint="none").fit(ages, within, groups="region")
    with pytest.warns(ConvergenceWarning, match="not identifiable"):
        by_labels = ShuffledRegressor("entropic", hint="none").fit(numbers, within, groups=people["region"].tolist())
    np.testing.assert_allclose(by_name.coef_, by_labels.coef_, rtol=1e-6)
    assert (ages["region"].to_numpy()[by_name.pairs_["response_row"]] == ages["region"].to_numpy()[by_name.pairs_["feature_row"]]).all()


def test_dates_are_days():
    days = np.arange(40) * 17 % 300
    hired = pandas.Timestamp("2020-01-01") + pandas.to_timedelta(days, "D")
    people = pandas.DataFrame({"hired": hired, "age": days % 7.0})
    with pytest.warns(TableWarning, match='column "hired" holds dates, year-first: days since 1970-01-01'):
        fitted = ShuffledRegressor("ls").fit(people, 2.0 * days)
    np.testing.assert_allclose(fitted.coefficients_["hired"], 2)
    np.testing.assert_allclose(fitted.predict(people), 2.0 * days, atol=1e-6)
    texts = pandas.DataFrame({"hired": [f"{1 + k % 12}/{1 + k // 12}/2024" for k in range(40)], "age": days % 7.0})
    with pytest.raises(ValueError, match="no cell tells day and month apart"):
        ShuffledRegressor("ls").fit(texts, 2.0 * days)
    with pytest.warns(TableWarning, match="month-first"):
        ShuffledRegressor("ls", dates="month-first").fit(texts, 2.0 * days)


def test_inference(half_shuffled):
    model = ShuffledRegressor().fit(half_shuffled.z, half_shuffled.y)
    assert model.verdict_ == "identified" and model.alternatives_ == model.result_["identifiable"]["alternatives"]
    assert list(model.parameter_names_) == ["intercept", "z1", "z2", "z3"]
    np.testing.assert_allclose(np.sqrt(np.diag(model.vcov_)), [model.std_errors_[name] for name in model.parameter_names_])
    wide, narrow = model.conf_int(0.99), model.conf_int(0.5)
    assert np.all(wide[:, 0] < narrow[:, 0]) and np.all(wide[:, 1] > narrow[:, 1])
    test = model.wald_test("z1")
    assert test["statistic"] == pytest.approx((model.coefficients_["z1"] / model.std_errors_["z1"]) ** 2)
    assert model.wald_test(["z1", "z2"])["df"] == 2
    assert model.wald_test([[0, 1, 0, 0]], model.coefficients_["z1"])["p_value"] == pytest.approx(1)
    with pytest.raises(ValueError, match="there is no parameter z9; there are intercept, z1, z2, z3"):
        model.wald_test("z9")
    assert model.summary()._repr_html_().startswith("<pre>")


def test_a_score_does_not_punish_a_right_fit(unlinked):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = ShuffledRegressor("entropic").fit_tables(y=unlinked.y, z=unlinked.z)
    assert model.score(unlinked.z, unlinked.y) > 0.98
    assert model.score(unlinked.z, unlinked.y, linked=True) < 0.9  # these rows are in no order
    wrong = pickle.loads(pickle.dumps(model))
    assert wrong.score(unlinked.z, unlinked.y + 3 * np.std(unlinked.y)) < 0


@pytest.mark.parametrize("old, new, value", [("seed", "random_state", 3), ("threads", "n_jobs", 1), ("max_iterations", "max_iter", 50)])
def test_old_names_still_work_with_a_warning(half_shuffled, old, new, value):
    with pytest.warns(FutureWarning, match=f"{old} is called {new} now"):
        before = ShuffledRegressor("robot", **{old: value}).fit(half_shuffled.z, half_shuffled.y)
    after = ShuffledRegressor("robot", **{new: value}).fit(half_shuffled.z, half_shuffled.y)
    assert np.array_equal(before.coef_, after.coef_)


def test_two_tables_are_named():
    with pytest.raises(TypeError, match="positional"):
        ShuffledRegressor().fit_tables(np.ones((5, 1)), np.ones(5))


@pytest.mark.filterwarnings("ignore::unshuffle.ConvergenceWarning")
def test_pictures(half_shuffled):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    model = ShuffledRegressor().fit(half_shuffled.z, half_shuffled.y)
    axes = model.plot_coefficients()
    assert [label.get_text() for label in axes.get_yticklabels()] == ["z1", "z2", "z3"]
    assert len(model.plot_distribution().patches) == 2
    assert len(model.plot_landscape().lines[0].get_xdata()) > 5
    assert sum(bar.get_height() for bar in model.plot_links().patches) == len(model.pairs_)
