"""Response laws and what is known of rows, through the Python package."""

import numpy as np
import pytest

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
