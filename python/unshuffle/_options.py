"""Parameters for the options of estimators, generated from their declarations in C++."""

import inspect
from typing import Any

import numpy as np

from ._deprecated import value_of

_keyword = inspect.Parameter.KEYWORD_ONLY
_positional = inspect.Parameter.POSITIONAL_OR_KEYWORD


def declared(estimators: Any, renamed: Any) -> Any:
    """Every option of these estimators by name, each with the names of those that read it; some have other names in Python."""
    options: dict[str, Any] = {}
    for estimator in estimators:
        for option in estimator["options"]:
            known = options.setdefault(renamed.get(option["name"], option["name"]), {**option, "read_by": []})
            known["read_by"].append(estimator["name"])
    return options


def signature_of(own: Any, options: Any) -> Any:
    """The signature of an __init__ with its own parameters (name → default), then one for every option.

    The first of its own parameters may be given by position.
    """
    parameters = [inspect.Parameter("self", _positional)]
    for name, default in own.items():
        kind = _positional if len(parameters) == 1 else _keyword
        parameters.append(inspect.Parameter(name, kind, default=default))
    for name, option in options.items():
        if name not in own:
            parameters.append(inspect.Parameter(name, _keyword, default=option["default"]))
    return inspect.Signature(parameters)


def documentation_of(options: Any) -> Any:
    """One line for every option, as the parameters of a docstring."""
    lines = []
    for name, option in options.items():
        words = f" One of {', '.join(option['words'])}." if option["words"] else ""
        must = f" Must be {option['constraint']}." if option["constraint"] else ""
        lines.append(f"    {name} : {option['help']}{words}{must} Read by {', '.join(option['read_by'])}.")
    return "\n".join(lines)


def takes_options(own: Any, options: Any) -> Any:
    """A class decorator: parameters, their defaults and their documentation from the declaration."""

    def decorate(cls: Any) -> Any:
        signature = signature_of(own, options)

        def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
            bound = signature.bind(self, *args, **kwargs)
            bound.apply_defaults()
            for name, value in list(bound.arguments.items())[1:]:
                setattr(self, name, value)

        __init__.__signature__ = signature  # type: ignore[attr-defined]
        cls.__init__ = __init__
        cls.__doc__ = cls.__doc__.replace("    {options}", documentation_of(options))
        return cls

    return decorate


def plain(value: Any) -> Any:
    """A value as the compiled part expects it: numpy scalars and arrays as Python objects."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, (list, tuple, np.ndarray)):
        return [float(one) for one in np.asarray(value, float).ravel()]
    return value


def given(estimator: Any, options: Any) -> Any:
    """(name, value) of every option of the estimator object that is not at its default; None means the default."""
    defaults = inspect.signature(type(estimator)).parameters
    chosen = []
    for name, option in options.items():
        value = plain(value_of(estimator, name) if name != option["name"] else getattr(estimator, name))
        if value is not None and value != defaults[name].default:
            chosen.append((option["name"], value))
    return chosen
