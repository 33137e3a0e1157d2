"""An option that an estimator declares is a parameter here, without anybody writing it down again."""

import copy
import inspect

import pytest

from unshuffle import ShuffledRegressor, _core, _options
from unshuffle._deprecated import renamed


def test_every_declared_option_is_a_parameter_with_its_default():
    parameters = inspect.signature(ShuffledRegressor).parameters
    for estimator in _core.estimators():
        for option in estimator["options"]:
            name = renamed.get(option["name"], option["name"])
            assert parameters[name].default == option["default"]
            assert f"{name} : {option['help']}" in ShuffledRegressor.__doc__


def test_an_option_that_is_added_to_a_declaration_is_found_everywhere():
    estimators = copy.deepcopy(_core.estimators())
    added = {"name": "dummy", "help": "A dummy.", "kind": "number", "constraint": "> 0", "words": [], "default": 2.5}
    next(one for one in estimators if one["name"] == "rr")["options"].append(added)
    options = _options.declared(estimators, renamed)
    assert options["dummy"]["read_by"] == ["rr"]
    assert _options.signature_of({"method": "auto"}, options).parameters["dummy"].default == 2.5
    assert "dummy : A dummy. Must be > 0. Read by rr." in _options.documentation_of(options)


@pytest.mark.parametrize(
    ("parameters", "says"),
    [
        ({"method": "mixture", "epsilon": 0.1}, "epsilon applies only with method="),
        ({"method": "robot", "epsilon": -1.0}, "epsilon = -1 must be > 0"),
        ({"method": "robot", "starts": 1.5}, "starts = 1.5 must be a whole number at least 0"),
        ({"method": "oracle"}, "oracle needs known pairs (known)"),
    ],
)
def test_what_will_not_do_is_refused_in_python_terms(parameters, says):
    with pytest.raises(ValueError) as refused:
        ShuffledRegressor(**parameters).fit([[1.0], [2.0], [3.0], [5.0]], [1.0, 2.0, 3.5, 5.0])
    assert says in str(refused.value)
    assert "--" not in str(refused.value)


def test_an_option_that_nobody_declares_is_no_parameter():
    with pytest.raises(TypeError, match="nonsense"):
        ShuffledRegressor(nonsense=1)
