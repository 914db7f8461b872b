"""Checking gradients against differences of values.

``gradcheck(fn, *params)`` builds a loss anew for each value it needs; ``check_grad(model, expr)`` is DyNet's check of an
expression that exists already. Values are float32, so a difference of two of them is only good to three or four digits:
a five-point formula with a wide step along random directions is used (its error falls with the fourth power of the
step), and the loss should be smooth within the step and not random.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from dynet_lite import _core

__all__ = ["GradientError", "check_grad", "gradcheck"]

_STENCIL = ((-2.0, 1.0 / 12), (-1.0, -8.0 / 12), (1.0, 8.0 / 12), (2.0, -1.0 / 12))


class GradientError(AssertionError):
    """A gradient and the differences of the values do not agree.

    Example: an op whose backward function forgets a factor of 2. The message names the parameter, the two numbers, and
    the entry that is furthest off.
    """


def _numbers(p: Any) -> np.ndarray:
    """A copy of the numbers of a parameter, a table or an array, as float64."""
    return np.array(p if isinstance(p, np.ndarray) else p.as_array(), dtype=np.float64)


def _put(p: Any, values: np.ndarray) -> None:
    if isinstance(p, _core.LookupParameters):
        p.init_from_array(values)
    else:
        p.set_value(values)


@contextmanager
def _unfrozen(params: Iterable[Any]) -> Iterator[None]:
    """In graphs that are built meanwhile frozen parameters have a gradient, too."""
    frozen = [p for p in params if not isinstance(p, np.ndarray) and not p.is_updated()]
    for p in frozen:
        p.set_updated(True)
    try:
        yield
    finally:
        for p in frozen:
            p.set_updated(False)


class _Problem:
    """A loss as a function of the numbers of some parameters and arrays."""

    def __init__(self, fn: Callable[..., Any], params: tuple[Any, ...]) -> None:
        for p in params:
            if not isinstance(p, np.ndarray | _core.Parameters | _core.LookupParameters):
                told = type(p).__name__
                if hasattr(p, "parameters_list"):
                    told += ": write *model.parameters_list(), *model.lookup_parameters_list()"
                raise TypeError(f"[gradcheck] params must be weights, tables and arrays; got a {told}")
        self.fn = fn
        self.params = params
        self.start = [_numbers(p) for p in params]

    def _run(self, values: list[np.ndarray], gradient: bool) -> tuple[float, list[np.ndarray]]:
        """The loss at `values`, and the gradients when asked for, in a graph of its own."""
        with _core.ComputationGraph():
            inputs = []
            for p, v in zip(self.params, values, strict=True):
                if isinstance(p, np.ndarray):
                    inputs.append(_core.inputTensor(v))
                else:
                    _put(p, v)
            loss = self.fn(*inputs)
            if not isinstance(loss, _core.Expression):
                raise TypeError(f"[gradcheck] fn must return an expression; got a {type(loss).__name__}")
            value = loss.scalar_value()
            if not gradient:
                return value, []
            for p in self.params:
                if not isinstance(p, np.ndarray):
                    p.zero_gradient()
            loss.backward(full=True)
            left = iter(inputs)
            grads = [
                next(left).gradient() if isinstance(p, np.ndarray) else p.grad_as_array().astype(np.float64)
                for p in self.params
            ]
        return value, grads

    def gradients(self) -> list[np.ndarray]:
        with _unfrozen(self.params):
            return self._run(self.start, True)[1]

    def slope(self, which: int, direction: np.ndarray, step: float) -> float:
        """Difference quotient along a direction in one parameter."""
        total = 0.0
        for at, weight in _STENCIL:
            values = list(self.start)
            values[which] = self.start[which] + at * step * direction
            total += weight * self._run(values, False)[0]
        return total / step

    def restore(self) -> None:
        for p, v in zip(self.params, self.start, strict=True):
            if not isinstance(p, np.ndarray):
                _put(p, v)
                p.zero_gradient()


def _worst_entry(problem: _Problem, which: int, grad: np.ndarray, step: float, limit: int = 64) -> str:
    """Entry by entry, the one that is furthest off; for the message."""
    worst = (-1.0, "")
    for flat in range(min(grad.size, limit)):
        at = np.unravel_index(flat, grad.shape)
        unit = np.zeros(grad.shape)
        unit[at] = 1.0
        slope = problem.slope(which, unit, step)
        off = abs(slope - grad[at])
        if off > worst[0]:
            place = ", ".join(str(int(i)) for i in at)
            worst = (off, f"entry [{place}]: backward gives {grad[at]:.6g}, differences give {slope:.6g}")
    return worst[1]


def gradcheck(
    fn: Callable[..., Any],
    *params: Any,
    directions: int = 3,
    step: float = 1e-2,
    rtol: float = 2e-3,
    atol: float = 1e-4,
    seed: int = 0,
) -> float:
    """Compare the gradients of ``fn`` with differences of its value.

    ``fn`` builds and returns a scalar expression in the current graph; ``params`` are the Parameters and
    LookupParameters it uses, and arrays, which it gets as expressions in their order. Along each of ``directions``
    random directions of unit length per parameter, ``abs(difference) <= atol + rtol * slope`` must hold.

    Returns the largest difference relative to the larger of 1 and the slope. Raises GradientError naming the parameter
    and the entry that is furthest off, ValueError when the loss is not a scalar or there are no params. Parameters are
    as before afterwards; their gradients are zero.

    >>> gradcheck(lambda x: dy.squared_norm(W * x), W, np.ones(3))   # doctest: +SKIP
    """
    rng = np.random.default_rng(seed)
    problem = _Problem(fn, params)
    worst = 0.0
    try:
        grads = problem.gradients()
        if not params:
            raise ValueError("[gradcheck] params are needed: gradcheck(fn, W, E)")
        for which, grad in enumerate(grads):
            for _ in range(directions):
                direction = rng.standard_normal(grad.shape)
                direction /= np.linalg.norm(direction)
                expected = problem.slope(which, direction, step)
                given = float(np.sum(grad * direction))
                off = abs(expected - given)
                worst = max(worst, off / max(1.0, abs(expected)))
                if not off <= atol + rtol * abs(expected):
                    p = params[which]
                    name = f"array {which}" if isinstance(p, np.ndarray) else f"parameter {p.name()}"
                    raise GradientError(
                        f"[gradcheck] {name} {grad.shape}: along a random direction backward gives {given:.6g}, "
                        f"differences give {expected:.6g}; {_worst_entry(problem, which, grad, step)}"
                    )
    finally:
        problem.restore()
    return worst


def _all_parameters(model: Any) -> list[Any]:
    if hasattr(model, "parameters_list"):
        return [*model.parameters_list(), *model.lookup_parameters_list()]
    return [model] if isinstance(model, _core.Expression) else list(model)  # parameters are expressions


def check_grad(
    model: Any, expr: Any, verbosity: int = 1, step: float = 1e-2, rtol: float = 2e-3, atol: float = 1e-4
) -> bool:
    """Compare the gradients of an expression with differences of its value, for every parameter of a collection.

    ``expr`` is a scalar of the current graph; it is evaluated again with changed parameters, so its graph must not be
    random. ``model`` is a collection, a parameter or a list of some. True if all agree. Those that do not are printed on
    stderr, unless verbosity is 0; with 2, all are. Frozen parameters have no gradient and are left out. Gradients of the
    parameters are zero afterwards.
    """
    params = [p for p in _all_parameters(model) if p.is_updated()]
    for p in params:
        p.zero_gradient()
    expr.scalar_value()
    expr.backward()
    rng = np.random.default_rng(0)
    good = True
    for p in params:
        start, grad = _numbers(p), p.grad_as_array().astype(np.float64)
        p.zero_gradient()
        direction = rng.standard_normal(start.shape)
        direction /= np.linalg.norm(direction)
        slope = 0.0
        try:
            for at, weight in _STENCIL:
                _put(p, start + at * step * direction)
                slope += weight * expr.scalar_value(recalculate=True) / step
        finally:
            _put(p, start)
        given = float(np.sum(grad * direction))
        fits = abs(slope - given) <= atol + rtol * abs(slope)
        good = good and fits
        if verbosity > 1 or (verbosity and not fits):
            told = "agrees" if fits else "DIFFERS"
            print(f"[check_grad] {p.name()}: backward {given:.6g}, differences {slope:.6g}: {told}", file=sys.stderr)
    expr.scalar_value(recalculate=True)
    return good
