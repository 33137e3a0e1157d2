"""Response laws and what is known of rows, through the Python package."""

import numpy as np
import pytest

import unshuffle
from unshuffle import ShuffledRegressor


def counts(rows=400, seed=3):
    random = np.random.default_rng(seed)
    z = random.normal(size=(rows, 2))
    exposure = random.uniform(0.5, 2, rows)
    return z, random.poisson(exposure * np.exp(0.3 + z @ [0.6, -0.4])).astype(float), np.log(exposure)


def test_poisson_with_an_offset_predicts_means():
    z, y, offset = counts()
    fitted = ShuffledRegressor(method="ls", family="poisson").fit(z, y, feature_offset=offset)
    assert np.allclose(fitted.coef_, [0.6, -0.4], atol=0.15)
    mean = fitted.predict(z, offset=offset)
    assert mean.sum() == pytest.approx(y.sum(), rel=1e-8)  # the score of the intercept
    low, high = fitted.predict_interval(z, 0.9, offset=offset)
    assert ((y >= low) & (y <= high)).mean() > 0.85
    assert fitted.result_["law"]["family"] == "poisson"


def test_plain_counts_are_told():
    z, y, _ = counts()
    assert "poisson may fit better" in ShuffledRegressor(method="ls").fit(z, y).summary()


def test_what_is_known_of_links_reaches_the_mixture():
    random = np.random.default_rng(5)
    z = random.normal(size=(1000, 2))
    y = 1 + z @ [2.0, -1.0] + 0.3 * random.normal(size=1000)
    probability = random.uniform(0.3, 1, 1000)
    wrong = np.flatnonzero(random.uniform(size=1000) > probability)
    y[wrong] = y[np.roll(wrong, 1)]
    safe = np.zeros(1000, bool)
    safe[np.flatnonzero(probability > 0.97)] = True
    safe[wrong] = False
    fitted = ShuffledRegressor(method="mixture").fit(z, y, link_probability=probability, safe=safe)
    slope = fitted.result_["law"]["mismatch"]["logit(link_probability)"]
    assert abs(slope["value"] - 1) < 4 * slope["std_error"]
    assert np.allclose(fitted.coef_, [2, -1], atol=0.1)
    with pytest.raises(ValueError, match="wrong_rate|wrong-rate"):
        ShuffledRegressor(method="ls").fit(z, y, wrong_rate=0.2)


def survival(rows=300, seed=7):
    random = np.random.default_rng(seed)
    z = random.normal(size=(rows, 2))
    time, limit = random.exponential(np.exp(-z @ [0.9, -0.5])), random.exponential(2.0, rows)
    return z, np.minimum(time, limit), (time <= limit).astype(float)


def test_cox_has_no_intercept_and_predicts_hazard_ratios():
    z, time, event = survival()
    fitted = ShuffledRegressor(method="ls", family="cox").fit(z, time, event=event)
    assert fitted.coef_.shape == (2,) and np.allclose(fitted.coef_, [0.9, -0.5], atol=0.3)
    assert np.allclose(fitted.predict(z), np.exp(z @ fitted.coef_))
    with pytest.raises(ValueError, match="event"):
        ShuffledRegressor(method="ls", family="cox").fit(z, time)
    with pytest.raises(ValueError, match="no intervals for new times"):
        fitted.predict_interval(z)


def test_sampled_links_are_complete_and_can_be_pooled():
    random = np.random.default_rng(9)
    groups = np.repeat(np.arange(60), 5)
    z = random.normal(size=(300, 1))
    y = 1 + 2 * z[:, 0] + 0.5 * random.normal(size=300)
    order = np.concatenate([5 * g + random.permutation(5) for g in range(60)])
    model = ShuffledRegressor(method="entropic").fit_tables(y=y[order], z=z, groups=(groups, groups))
    sets = model.match(samples=8, random_state=2)
    assert len(sets) == 8
    slopes, errors = [], []
    for links in sets:
        assert sorted(links["response_row"]) == sorted(links["feature_row"]) == list(range(300))
        assert (groups[links["response_row"]] == groups[links["feature_row"]]).all()
        x, response = z[links["feature_row"], 0], y[order][links["response_row"]]
        slope, intercept = np.polyfit(x, response, 1)
        residual = response - slope * x - intercept
        slopes.append(slope)
        errors.append(np.sqrt(residual.var(ddof=2) / ((x - x.mean()) ** 2).sum()))
    pooled = unshuffle.pool(slopes, errors, dof=298)
    assert pooled.low[0] < 2 < pooled.high[0]
    assert pooled.std_errors[0] > np.mean(errors) and 0 < pooled.information_lost[0] < 1
    with pytest.raises(ValueError, match="at least 2"):
        unshuffle.pool(slopes[:1], errors[:1])
    with pytest.raises(ValueError, match="do not fit"):
        unshuffle.pool(slopes, np.ones((8, 3)))


class Analysis:
    def __init__(self, params, covariance):
        self.params, self.df_resid, self._covariance = np.asarray(params), 30, np.asarray(covariance)

    def cov_params(self):
        return self._covariance


def test_pool_takes_analyses():
    analyses = [Analysis([k, 1.0], np.diag([0.5, 0.2])) for k in (1.0, 2.0, 3.0)]
    by_arrays = unshuffle.pool([[k, 1.0] for k in (1.0, 2.0, 3.0)], [np.diag([0.5, 0.2])] * 3, dof=30)
    pooled = unshuffle.pool(analyses)
    assert np.array_equal(pooled.vcov, by_arrays.vcov) and np.array_equal(pooled.dof, by_arrays.dof)
    assert pooled.vcov[0, 0] == pytest.approx(0.5 + 4 / 3) and "estimate 2" in str(pooled)
    with pytest.raises(TypeError, match="no coefficients"):
        unshuffle.pool([1.0, 2.0])
