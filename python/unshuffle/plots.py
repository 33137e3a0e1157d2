"""Pictures of a fit with matplotlib. Each function draws on the axes it is given, or on new ones, and returns them."""

from __future__ import annotations

import json
from typing import Any

import numpy as np


def plot_coefficients(model: Any, ax: Any = None, level: float = 0.95) -> Any:
    """Every coefficient with its interval; a dot alone has none."""
    ax = _axes(ax)
    names = [name for name in model.parameter_names_ if name in model.coefficients_]
    ends = model.conf_int(level)[[list(model.parameter_names_).index(name) for name in names]]
    values = np.array([model.coefficients_[name] for name in names])
    places = np.arange(len(names))[::-1]
    known = np.isfinite(ends).all(axis=1)
    ax.hlines(places[known], ends[known, 0], ends[known, 1])
    ax.plot(values, places, "o")
    ax.axvline(0, color="grey", linewidth=0.8)
    ax.set_yticks(places, names)
    ax.set_xlabel(f"coefficient and {100 * level:g} % interval")
    ax.set_title(model.verdict_)
    return ax


def plot_distribution(model: Any, ax: Any = None, response: int = 0) -> Any:
    """The distribution of the responses beside that of what the fit predicts for the features, with its noise."""
    ax = _axes(ax)
    data = _data(model)["distributions"][response]
    ax.stairs(data["observed"], data["edges"], fill=True, alpha=0.4, label="observed")
    ax.stairs(data["predicted"], data["edges"], label="predicted")
    ax.set_xlabel(data["response"])
    ax.set_ylabel("share of rows")
    ax.legend()
    return ax


def plot_links(model: Any, ax: Any = None) -> Any:
    """How many links have which probability."""
    ax = _axes(ax)
    ax.hist(model.pairs_["probability"], bins=np.linspace(0, 1, 21))
    ax.set_xlim(0, 1)
    ax.set_xlabel("probability of a link")
    ax.set_ylabel("links")
    return ax


def plot_landscape(model: Any, ax: Any = None) -> Any:
    """The objective along the direction in which it is flattest; the answer is at 0."""
    ax = _axes(ax)
    data = _data(model)["landscape"]
    ax.plot(data["offset"], data["objective"])
    ax.axvline(0, color="grey", linewidth=0.8)
    ax.set_xlabel("distance from the answer along the flattest direction")
    ax.set_ylabel(data["objective_name"])
    return ax


def _axes(ax: Any) -> Any:
    if ax is not None:
        return ax
    try:
        import matplotlib.pyplot as plt
    except ImportError as missing:
        raise ImportError("plots need the package matplotlib") from missing
    return plt.subplots()[1]


def _data(model: Any) -> Any:
    """What the report shows, as its page holds it."""
    page = model._report([])
    return json.loads(page.split('id="data">')[1].split("</script>")[0])
