"""Wages in one table, people in another, with only the city in common."""

import numpy as np
import pandas as pd

from unshuffle import ShuffledRegressor

rng = np.random.default_rng(0)
cities = np.repeat(["Bern", "Basel", "Zug", "Chur"], 100)
people = pd.DataFrame({"age": rng.gamma(4, 10, 400), "years": rng.exponential(6, 400)})
wages = 1000 + 30 * people["age"] + 110 * people["years"] + rng.normal(0, 20, 400)

lost = np.concatenate([100 * city + rng.permutation(100) for city in range(4)])
model = ShuffledRegressor("entropic").fit_tables(
    y=wages.iloc[lost].rename("wage"), z=people, groups=(cities[lost], cities)
)
print(model.summary())
print(pd.DataFrame({"coefficient": model.coefficients_, "truth": {"age": 30, "years": 110}}).round(1))

links = pd.DataFrame(model.pairs_)
print(links.head())
print("links found right:", np.mean(lost[links["response_row"]] == links["feature_row"]))
