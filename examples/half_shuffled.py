"""One table whose response column was partly shuffled: a fit, its standard errors and a plot, as with scikit-learn."""

import sys

from unshuffle import ShuffledRegressor, simulate

sample = simulate("sensing", 1000, dim_z=5, shuffle=0.5, snr=100, mean=1, seed=0)
model = ShuffledRegressor().fit(sample.z, sample.y)
print(model.summary())
print("R² on linked rows:", round(model.score(sample.test_z, sample.test_y), 4))

try:
    import matplotlib
except ImportError:
    sys.exit("matplotlib is not installed: no plot")

matplotlib.use("Agg")
import matplotlib.pyplot as plt

errors = [1.96 * model.std_errors_[name] for name in model.coef_names_]
plt.errorbar(model.coef_, model.coef_names_, xerr=errors, fmt="o", label="fitted, 95 %")
plt.plot(sample.coefficients, model.coef_names_, "x", label="true")
plt.legend()
plt.savefig("half_shuffled.png")
