"""Arrays whose numbers are not what float32 can hold, or are masked: an error wherever numbers enter, and no warning of NumPy's."""

from __future__ import annotations

import decimal
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from programs import run_code

import dynet_lite as dy

LARGEST = float(np.finfo(np.float32).max)
END = float(np.nextafter(2.0**128 - 2.0**103, 0))  # the greatest double whose nearest float32 is finite


def weight(way: Callable[[Any, Any], Any], x: Any) -> Any:
    p = dy.ParameterCollection().add_parameters((2, 1), init=0)
    way(p, x)
    return np.concatenate([p.as_array().ravel(), p.grad_as_array().ravel()])


def table(way: Callable[[Any, Any], Any], x: Any) -> Any:
    t = dy.ParameterCollection().add_lookup_parameters((2, 1), init=0)
    way(t, x)
    return np.concatenate([t.as_array().ravel(), t.grad_as_array().ravel()])


def replaced(e: Any, x: Any) -> Any:
    e.set(x)
    return e.npvalue()


def value(e: Any) -> Any:
    return e.npvalue().ravel()


# Each takes two numbers, (2,) or (2, 1), and gives what was made of them.
WAYS: dict[str, Callable[[Any], Any]] = {
    "inputTensor": lambda x: value(dy.inputTensor(x)),
    "batched": lambda x: value(dy.inputTensor(x, batched=True)),
    "list of arrays": lambda x: value(dy.inputTensor([np.asanyarray(x)[:1], np.asanyarray(x)[1:]])),
    "set": lambda x: replaced(dy.inputVector([0, 0]), x).ravel(),
    "inputTensorTranspose": lambda x: value(dy.inputTensorTranspose(x, (2,))),
    "x + y": lambda x: value(dy.zeros(2) + np.asanyarray(x).reshape(2)),
    "compiled": lambda x: np.array(dy.compile(lambda a: dy.inputTensor(a) * 1)(np.asanyarray(x).reshape(2))),
    "init": lambda x: dy.ParameterCollection().add_parameters((2,), init=dy.NumpyInitializer(x)).as_array(),
    "set_value": lambda x: weight(lambda p, x: p.set_value(x), np.asanyarray(x).reshape(2, 1)),
    "set_grad": lambda x: weight(lambda p, x: p.set_grad(x), np.asanyarray(x).reshape(2, 1)),
    "init_from_array": lambda x: table(lambda t, x: t.init_from_array(x), np.asanyarray(x).reshape(2, 1)),
    "set_rows_grad": lambda x: table(lambda t, x: t.set_rows_grad([1, 0], x), np.asanyarray(x).reshape(2, 1)),
}  # fmt: skip
FORMS: dict[str, Callable[[list[float]], Any]] = {
    "list": lambda x: x,
    "doubles": np.array,
    "gaps": lambda x: np.array([[v, 0] for v in x])[:, 0],
    "backwards": lambda x: np.array(x[::-1])[::-1],
    "other bytes": lambda x: np.array(x, dtype=">f8"),
    "long": lambda x: np.array(x, dtype=np.longdouble),
}


@pytest.fixture(autouse=True)
def _new_graph() -> Any:
    dy.renew_cg()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("way", WAYS)
def test_too_large(way: str, form: str) -> None:
    for large in (1e300, -1e39, float(np.nextafter(END, np.inf))):
        with pytest.raises(ValueError, match=r"numbers must fit a float32 \(3.4028235e\+38 at most\); got -?[13]"):
            WAYS[way](FORMS[form]([1.0, large]))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("way", WAYS)
def test_the_largest_that_fit(way: str, form: str) -> None:
    for x in ([LARGEST, -END], [np.inf, -np.inf], [np.nan, np.inf], [5e-324, -0.0]):
        made = WAYS[way](FORMS[form](list(x)))
        wanted = np.array([min(max(v, -LARGEST), LARGEST) if np.isfinite(v) else v for v in x], dtype=np.float32)
        found = {repr(float(v)) for v in made}
        assert {repr(float(v)) for v in wanted} <= found | {repr(-0.0)}, (made, wanted)


@pytest.mark.parametrize("way", WAYS)
def test_masked(way: str) -> None:
    masked = np.ma.array([1.0, 2.0], mask=[False, True])
    with pytest.raises(dy.InputTypeError, match=r"an array of which 1 are masked. Write array.filled\(number\)"):
        WAYS[way](masked)
    assert 2 in WAYS[way](np.ma.array([1.0, 2.0]))


SINGLE: dict[str, Callable[[Any], Any]] = {
    "scalarInput": dy.scalarInput,
    "constant": lambda v: dy.constant(2, v),
    "set": lambda v: dy.scalarInput(0).set(v),
    "defval": lambda v: dy.sparse_inputTensor([[0]], [1], (2,), defval=v),
    "graph": lambda v: dy.cg().inputSparseTensor([0], [1], (2,), defval=v),
    "init_row": lambda v: dy.ParameterCollection().add_lookup_parameters((2, 1)).init_row(0, [v]),
    "init": lambda v: dy.ParameterCollection().add_parameters(2, init=v),
    "ConstInitializer": dy.ConstInitializer,
    "inputVector": lambda v: dy.inputVector([v]),
    "fractions": lambda v: dy.inputVector([decimal.Decimal(v)]),
}


@pytest.mark.parametrize("name", SINGLE)
def test_one_number(name: str) -> None:
    with pytest.raises(ValueError, match="must fit a float32"):
        SINGLE[name](1e300)
    SINGLE[name](float("-inf"))
    SINGLE[name](float("nan"))


def test_ints_of_hundreds_of_digits() -> None:
    for call in (lambda v: dy.inputVector([v]), lambda v: dy.ParameterCollection().add_parameters(1, init=v)):
        with pytest.raises(ValueError, match=r"^\[(inputVector|add_parameters).*\] .*must (fit|be a number)"):
            call(10**400)


def test_what_is_refused_leaves_everything() -> None:
    x, p = dy.inputVector([1, 2]), dy.ParameterCollection().add_parameters(2, init=3)
    nodes = len(dy.cg())
    for way in (dy.inputTensor, dy.inputVector, x.set, p.set_value):
        for form in FORMS.values():
            with pytest.raises(ValueError, match="must fit"):
                way(form([7.0, 1e300]))
    assert len(dy.cg()) == nodes
    assert x.value() == [1, 2]
    assert p.value() == [3, 3]


def test_bounds_that_do_not_fit() -> None:
    """clip_inplace() moves nothing that lies between them."""
    p = dy.ParameterCollection().add_parameters(3, init=[1.0, -np.inf, LARGEST])
    p.clip_inplace(-1e300, 1e300)
    assert p.as_array().tolist() == [1, -np.inf, LARGEST]


def test_programs_for_dynet(tmp_path: Path) -> None:
    """Infinity, as in DyNet: some mask scores with numbers like -1e100."""
    code = """
import numpy as np, dynet as dy
print(dy.inputTensor([1.0, -1e100]).value(), dy.inputTensor(np.array([[1e100, 2]])).value(), dy.scalarInput(1e300).value())
p = dy.ParameterCollection().add_parameters((2,), init=1e300)
p.set_value(np.array([1, 1e39]))
print(p.as_array())
"""
    done = run_code("import dynet_lite; dynet_lite.install_as_dynet()\n" + code, tmp_path)
    assert done.stdout.split("\n")[:2] == ["[1.0, -inf] [[inf  2.]] inf", "[ 1. inf]"], done.stderr
    assert "Warning" not in done.stderr


def test_a_list_of_arrays_without_dims_is_a_batch() -> None:
    """As in DyNet. Of numbers of NumPy's that are no arrays it is a vector."""
    assert dy.inputTensor([np.array(1.0), np.array(2.0)]).dim() == ((1,), 2)
    assert dy.inputTensor([np.float64(1.0), np.float64(2.0)]).dim() == ((2,), 1)
