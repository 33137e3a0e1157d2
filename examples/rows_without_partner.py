"""Some responses have no partner in the feature table: they stay unmatched instead of distorting the fit."""

import numpy as np
from sklearn.linear_model import LinearRegression

from unshuffle import RobustShuffledRegressor, simulate

sample = simulate("sensing", 500, dim_z=3, shuffle=0.3, snr=1000, mean=1, seed=1)
y = sample.y.copy()
strangers = np.arange(50)
y[strangers] = np.random.default_rng(1).normal(40, 5, 50)

plain = LinearRegression().fit(sample.z, y)
robust = RobustShuffledRegressor(unmatched=0.1).fit(sample.z, y)
print("true coefficients  ", sample.coefficients.round(3))
print("rows as they stand ", plain.coef_.round(3))
print("some left unmatched", robust.coef_.round(3))
found = np.isin(strangers, robust.unmatched_responses_).mean()
print(f"{found:.0%} of the strangers stayed without a partner, {len(robust.unmatched_responses_)} rows in all")
