"""NumPy's functions over expressions: refused, for gradients would be lost; objects, as in DyNet, in the stand-in."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from real_dynet import python

import dynet_lite as dy

REFUSED: dict[str, Callable[[Any, Any], Any]] = {
    "array": lambda x, y: np.array([x, y]),
    "array of one": lambda x, y: np.array(x),
    "nested": lambda x, y: np.array([[x, y], [y, x]]),
    "sum": lambda x, y: np.sum([x, y]),
    "mean": lambda x, y: np.mean([x, y]),
    "roll": lambda x, y: np.roll([x, y], 1),
    "append": lambda x, y: np.append([x], [y]),
    "permutation": lambda x, y: np.random.default_rng(0).permutation([x, y]),
    "stack": lambda x, y: np.stack([x, y]),
    "tanh": lambda x, y: np.tanh(x),
    "argmax": lambda x, y: np.argmax(x),
    "mixed": lambda x, y: np.array([np.ones(2), y]),
    "inputTensor": lambda x, y: dy.inputTensor([x, y]),
    "inputVector": lambda x, y: dy.inputVector([dy.pick(x, 0), dy.pick(y, 0)]),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    """Expressions of tables, parameters and inputs alike."""
    model = dy.ParameterCollection()
    table, weight = model.add_lookup_parameters((3, 2)), model.add_parameters(2)
    dy.renew_cg()
    for x in (table[0], weight, dy.inputVector([1, 2])):
        with pytest.raises(TypeError, match=r"\[Expression\] NumPy .*dy.tanh\(x\).*x.npvalue\(\)"):
            REFUSED[name](x, table[1])


@pytest.mark.parametrize("kind", [np.uint8, np.uint16, np.uint32, np.uint64, np.int8, np.int16, np.float16, np.float64])
def test_numbers_beside_an_expression(kind: Any) -> None:
    """Those without a sign, or with few bits, too, whose negative is another number."""
    dy.renew_cg()
    x = dy.inputVector([10, 20])
    for number in (kind(3), kind(-128) if kind is np.int8 else kind(100)):
        c = float(number)
        assert (x - number).npvalue().tolist() == [10 - c, 20 - c]
        assert (number - x).npvalue().tolist() == [c - 10, c - 20]
        assert (x + number).npvalue().tolist() == [10 + c, 20 + c] == (number + x).npvalue().tolist()
        assert (x * number).npvalue().tolist() == [10 * c, 20 * c] == (number * x).npvalue().tolist()


AS_NUMBERS: dict[str, Callable[[Any], Any]] = {
    "scalarInput": dy.scalarInput,
    "constant": lambda x: dy.constant(2, x),
    "elu": lambda x: dy.elu(dy.inputVector([1, 2]), x),
    "hinge": lambda x: dy.hinge(dy.inputVector([1, 2]), 1, x),
    "noise": lambda x: dy.noise(dy.inputVector([1, 2]), x),
    "dropout": lambda x: dy.dropout(dy.inputVector([1, 2]), x),
    "random_normal": lambda x: dy.random_normal((2,), x),
    "scale": lambda x: dy.ParameterCollection().add_parameters(2).scale(x),
}


@pytest.mark.parametrize("name", AS_NUMBERS)
def test_an_expression_for_a_number(name: str) -> None:
    """A learned slope or width of noise would have no gradient. DyNet refuses it, too."""
    dy.renew_cg()
    with pytest.raises(TypeError, match=r"must be a number; got an expression, whose gradient would be lost"):
        AS_NUMBERS[name](dy.sum_elems(dy.inputVector([0.1, 0.2])))


def test_numbers_that_are_asked_for() -> None:
    dy.renew_cg()
    x, y = dy.inputVector([1, 2]), dy.inputVector([3, 4])
    assert np.asarray(x, dtype=np.float32).tolist() == [1, 2]
    assert np.array([x, y], dtype=float).tolist() == [[1, 2], [3, 4]]
    objects = np.array([x, y], dtype=object)
    assert objects.shape == (2,)
    assert dy.esum(objects).value() == [4, 6]


def test_operators_with_arrays() -> None:
    """They make expressions, also with the array on the left."""
    dy.renew_cg()
    x = dy.inputVector([1, 2])
    for e, value in ((np.ones((2, 2)) * x, [3, 3]), (np.ones(2) + x, [2, 3]), (np.float64(2) * x, [2, 4]),
                     (np.ones(2) - x, [0, -1]), (np.ones(2) / x, [1, 0.5]), (np.ones((2, 2)) @ x, [3, 3])):  # fmt: skip
        assert isinstance(e, dy.Expression)
        assert e.value() == value
    assert (np.ones(2) == x) is False


PROGRAM = """
import sys
{install}
import numpy as np
import dynet as dy
model = dy.ParameterCollection()
E = model.add_lookup_parameters((5, 3), init=dy.ConstInitializer(1.0))
W = model.add_parameters((1, 3), init=dy.ConstInitializer(1.0))
dy.renew_cg()
rows = [E[0], E[1], E[2]]
out = []
for a in (np.array(rows), np.array([rows, rows]), np.array(rows[0]), np.array([W]), np.roll(rows, 1), np.append(rows, rows),
          np.random.permutation(rows), np.vstack(rows), np.concatenate([rows, rows]), np.array([E[0], 3])):
    out.append((a.dtype.kind, list(a.shape)))
total = np.sum(np.random.permutation(rows))
out.append(isinstance(total, dy.Expression))
loss = W * (total + np.sum(rows))
out.append(float(loss.value()))
loss.backward()
out.append(E.grad_as_array().tolist())
print("RESULT", out)
sys.stdout.flush()
import os
os._exit(0)
"""


def result(install: str) -> str:
    done = python("-c", PROGRAM.format(install=install))
    lines = [line for line in done.stdout.splitlines() if line.startswith("RESULT")]
    assert lines, done.stderr
    return lines[0]


def test_standing_in_for_dynet() -> None:
    """Arrays of objects, sums that are expressions, and gradients that arrive."""
    assert "[[2.0, 2.0, 2.0], [2.0, 2.0, 2.0], [2.0, 2.0, 2.0], [0.0" in result(
        "import dynet_lite; dynet_lite.install_as_dynet()"
    )


def test_as_the_real_dynet() -> None:
    pytest.importorskip("_dynet")
    assert result("sys.argv = ['x', '--dynet-mem', '64']") == result("import dynet_lite; dynet_lite.install_as_dynet()")


def test_a_dim_that_is_an_array() -> None:
    dy.renew_cg()
    x = dy.inputTensor(np.arange(12.0).reshape(4, 3))
    for f in (dy.sum_dim, dy.mean_dim, dy.std_dim):
        np.testing.assert_array_equal(f(x, np.array(1)).npvalue(), f(x, 1).npvalue())
