"""Rows of what the engine makes of other nodes before it plans: chains of elementwise ops, affine maps side by side.

A program (cext/op/fused.h) is written here as text: "t = tanh a; u = cmult t b; add u t" and so on, one step after another,
the last without a name. Letters a, b, c, ... are the inputs, numbers behind a formula its constants. Programs with results
that lie over an input change their argument and have no rows; tests/engine/test_fusing.py has them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from samples import A, Arg, Array, Row, nonzero, positive, unit
from samples_elementwise import UNARY, sigmoid

import dynet_lite as dy
from dynet_lite import _core

ROWS: list[Row] = []
KERNELS = Path(__file__).resolve().parents[2] / "cext" / "kernels"
MAX_INPUTS, MAX_STEPS = 16, 24
BINARY_BIT, OVER_BIT = 0x100, 0x200


def numbers(file: str) -> dict[str, int]:
    """Formulas and their numbers: their order in the file, with that of trigonometric ones where it is included."""
    text = (KERNELS / file).read_text(encoding="utf-8")
    trig = (KERNELS / "formulas_trig.h").read_text(encoding="utf-8")
    names = re.findall(r'FormulaInfo info = \{\s*"(\w+)"', text.replace('#include "kernels/formulas_trig.h"', trig))
    return {name: k for k, name in enumerate(names)}


UNARY_ID, BINARY_ID = numbers("formulas.h"), numbers("formulas_binary.h")

NUMPY: dict[str, Callable[..., Any]] = {
    **{name: f for name, (f, _) in UNARY.items()},
    "negate": np.negative,
    "add_const": lambda x, c: x + c,
    "const_minus": lambda x, c: c - x,
    "scale": lambda x, c: c * x,
    "const_div": lambda x, c: c / x,
    "pow_const": lambda x, c: x**c,
    "const_pow": lambda x, c: c**x,
    "elu": lambda x, c: np.where(x > 0, x, c * np.expm1(x)),
    "silu": lambda x, c: x * sigmoid(c * x),
    "add": np.add,
    "sub": np.subtract,
    "cmult": np.multiply,
    "cdiv": np.divide,
    "pow": np.power,
    "squared_difference": lambda x, y: (x - y) ** 2,
    "bmin": np.minimum,
    "bmax": np.maximum,
}


def word(formula: str, a: int, b: int = 0, over: bool = False) -> int:
    """One step as the engine reads it."""
    binary = formula in BINARY_ID
    number = BINARY_ID[formula] if binary else UNARY_ID[formula]
    return number | (BINARY_BIT if binary else 0) | (OVER_BIT if over else 0) | a << 10 | b << 18


class Program:
    """A program from text: words for the engine, and the same in NumPy."""

    def __init__(self, text: str) -> None:
        self.steps: list[tuple[str, list[int]]] = []
        self.constants: list[float] = []
        self.words: list[int] = []
        self._slices: list[list[float]] = []
        names: dict[str, int] = {}
        for k, step in enumerate(text.split(";")):
            left, _, right = step.rpartition("=")
            formula, *operands = right.split()
            places = [
                names[o] if o in names else ord(o) - ord("a") for o in operands if not re.fullmatch(r"[-\d.]+", o)
            ]
            constants = [float(o) for o in operands if re.fullmatch(r"[-\d.]+", o)]
            self.steps.append((formula, places))
            self._slices.append(constants)
            self.constants += constants
            self.words.append(word(formula, *places))
            names[left.strip()] = MAX_INPUTS + k

    def numpy(self, *inputs: Array) -> Array:
        results: list[Array] = []
        for (formula, places), constants in zip(self.steps, self._slices, strict=True):
            values = [results[p - MAX_INPUTS] if p >= MAX_INPUTS else inputs[p] for p in places]
            results.append(NUMPY[formula](*values, *constants))
        return results[-1]


def node(program: Program, parts: Sequence[int] = ()) -> Callable[..., Any]:
    if not program.constants:
        return lambda *es: _core._fused(es, program.words, parts)
    return lambda *es: _core._fused_with_constants(es, program.words, parts, program.constants)


def fused(text: str, *args: Arg, note: str = "", **more: Any) -> None:
    program = Program(text)
    name = "_fused_with_constants" if program.constants else "_fused"
    ROWS.append(Row(name, node(program), args, program.numpy, tol=8e-6, gtol=1e-4, note=note or text, **more))


def in_parts(text: str, size: int, parts: Sequence[tuple[int, int]], *args: Arg, **more: Any) -> None:
    """The inputs are parts of the arguments: for each the argument and where it begins."""
    program = Program(text)
    name = "_fused_with_constants" if program.constants else "_fused"
    told = [size, *(x for part in parts for x in part)]

    def ref(*arrays: Array) -> Array:
        return program.numpy(*(arrays[j][at : at + size] for j, at in parts))

    ROWS.append(Row(name, node(program, told), args, ref, tol=8e-6, gtol=1e-4, note=f"{text} of {parts}", **more))


# ---- good programs ----------------------------------------------------------------------------------------------------

UNEQUAL = [[(9,), (8,)], [(3, 4), (4, 3)], ["9x2", "9x3"], ["9x2", (9,)], [(9,), (1,)]]
GATES = "i = logistic a; g = tanh b; cmult i g"
fused(GATES, A(9), A(9), bad=UNEQUAL)
for _shape in ([A(3, 4), A(3, 4)], [A(5, batch=3), A(5, batch=3)], [A(3, 2, 2, batch=2), A(3, 2, 2, batch=2)], [A(200), A(200)],
               [A(1500), A(1500)], [A(1), A(1)]):  # fmt: skip
    fused(GATES, *_shape)
fused("tanh a", A(9), note="one step")
fused("add a b", A(9), A(9), note="one binary step", bad=UNEQUAL)
fused("cmult a a", A(9), note="one input twice in one step")
fused("t = exp a; s = square a; cmult t s", A(11), note="one input in two steps")
fused("t = tanh a; u = cmult t b; v = logistic a; w = cmult v c; x = add u w; sub x a", A(17), A(17), A(17),
      bad=[[(17,), (17,), (16,)]])  # fmt: skip
fused("s = add a b; t = add s c; u = add t d; tanh u", *[A(10)] * 4)
fused("t = negate a; u = square t; v = softplus u; w = sqrt v; reciprocal w", A(13), note="a chain")
fused("t = log a; u = rsqrt b; v = pow a b; w = cdiv v u; sub t w", A(9, draw=positive), A(9, draw=positive))
fused("t = asin a; u = atanh a; cmult t u", A(9, draw=unit))
fused("t = squared_difference a b; log1p t", A(9, batch=2), A(9, batch=2))
fused("; ".join(f"s{k} = tanh {'a' if k == 0 else f's{k - 1}'}" for k in range(MAX_STEPS - 1)) + f"; tanh s{MAX_STEPS - 2}",
      A(9), note="as many steps as there may be")  # fmt: skip
fused("s0 = add a b; " + "; ".join(f"s{k} = {'sub' if k % 3 else 'add'} s{k - 1} {chr(ord('b') + k)}" for k in range(1, 14))
      + "; cmult s13 p", *[A(9)] * 16, note="as many inputs as there may be")  # fmt: skip
fused("t = scale a 2.5; add_const t -0.5", A(9))
fused("t = const_minus a 1; u = cmult t b; v = cmult a c; add u v", A(9), A(9), A(9), bad=[[(9,), (9,), (9, 1, 2)]])
fused("t = const_minus a 1; u = cmult t b; v = scale u 3; tanh v", A(5, 2, batch=2), A(5, 2, batch=2))
fused("t = elu a 0.7; u = silu t 1.5; v = scale b 2; cmult u v", A(700, draw=nonzero), A(700))
fused(
    "t = pow_const a 1.5; u = const_pow a 2; v = const_div b 3; w = add t u; cdiv w v",
    A(9, draw=positive),
    A(9, draw=positive),
)

# ---- parts ----------------------------------------------------------------------------------------------------------

in_parts(GATES, 5, [(0, 0), (0, 5)], A(10), bad=[[(9,)], ["10x2"], [(10, 2)], [(5, 2)]])
in_parts(GATES, 5, [(0, 7), (0, 1)], A(13))  # what nobody reads gets no gradient
in_parts("f = logistic a; k = cmult f b; i = logistic c; g = tanh d; n = cmult i g; add k n", 6,
         [(0, 0), (1, 0), (0, 6), (0, 12)], A(18), A(6), bad=[[(18,), (5,)], [(17,), (6,)]])  # fmt: skip
in_parts("t = cmult a b; add t c", 4, [(0, 0), (0, 2), (0, 4)], A(8))  # parts that overlap
in_parts("t = tanh a; cmult t a", 110, [(0, 110)], A(220))
in_parts("t = scale a 2; sub t b", 5, [(1, 3), (0, 0)], A(5), A(9))

# ---- wrong programs --------------------------------------------------------------------------------------------------


def refused(words: Sequence[int], parts: Sequence[int] = (), inputs: int = 2, size: int = 8) -> Any:
    def call() -> Any:
        return _core._fused([dy.inputVector(np.ones(size)) for _ in range(inputs)], words, parts)

    return call, ValueError


def constants(values: Sequence[float]) -> Any:
    def call() -> Any:
        return _core._fused_with_constants(
            [dy.inputVector(np.ones(8))], Program("t = scale a 2; negate t").words, [], values
        )

    return call, ValueError


S = MAX_INPUTS
WRONG = [
    refused([]),
    refused([word("tanh", 0)] * (MAX_STEPS + 1)),
    refused([word("tanh", 0)], inputs=0),
    refused([word("tanh", 0)], inputs=MAX_INPUTS + 1),
    refused([word("tanh", 2)]),  # no such input
    refused([word("add", 0, 2)]),
    refused([word("tanh", S)]),  # its own result
    refused([word("tanh", S + 1), word("exp", 0)]),  # a result of later
    refused([word("tanh", 0), word("exp", 1)]),  # a result that nobody reads
    refused([word("tanh", 0), word("add", S, S)]),  # a result that is read twice
    refused([word("tanh", 0), word("exp", S), word("add", S, S + 1)]),
    refused([word("tanh", 0) | 1 << 30]),  # bits that mean nothing
    refused([200 | 0 << 10]),  # no such formula
    refused([200 | BINARY_BIT | 1 << 18]),
    refused([word("tanh", 0)], [0, 0, 0]),  # parts of no size
    refused([word("tanh", 0)], [4, 0, 5]),  # beyond the argument
    refused([word("tanh", 0)], [4, 2, 0]),  # no such argument
    refused([word("tanh", 0)], [4, 0]),  # a part without its place
    refused([word("tanh", 0)], [4, -1, 0]),
    refused([word("tanh", 0)], [4, 0, -1]),
    refused([word("tanh", 0)], [-4, 0, 0]),
    refused([word("tanh", 0)], [4, 0, 0x7FFFFFFF]),
    refused([word("tanh", 0)], [4] + [0, 0] * (MAX_INPUTS + 1)),
    refused([word("tanh", 0)], [4]),
    refused([word("tanh", 0, over=True), word("exp", S)]),  # over what is no part
    refused([word("tanh", 0, over=True)], [4, 0, 0]),  # the last result
    refused([word("square", 0, over=True), word("exp", S)], [4, 0, 0]),  # its gradient reads what would be gone
    refused([word("add", 0, 0, over=True), word("exp", S)], [4, 0, 0]),
    refused([word("exp", 0), word("tanh", S, over=True), word("exp", S + 1)], [4, 0, 0]),  # over a result
]
ROWS.append(Row("_fused", node(Program(GATES)), [A(9), A(9)], Program(GATES).numpy, wrong=WRONG, note="wrong programs"))
_scaled = Program("t = scale a 2; negate t")
ROWS.append(Row("_fused_with_constants", node(_scaled), [A(9)], _scaled.numpy, note="wrong constants",
                wrong=[constants([]), constants([1.0, 2.0])]))  # fmt: skip

# ---- affine maps side by side ----------------------------------------------------------------------------------------


def affines(inputs: int, bias: bool) -> tuple[Callable[..., Any], Callable[..., Array]]:
    step = inputs + bias

    def call(*es: Any) -> Any:
        return _core._affines(es[:inputs], es[inputs:], [0] * inputs, bias)

    def ref(*arrays: Array) -> Array:
        xs, weights = arrays[:inputs], arrays[inputs:]
        results = []
        for k in range(0, len(weights), step):
            ws = weights[k + bias : k + step]
            results.append(sum((w @ x for w, x in zip(ws, xs, strict=True)), weights[k] if bias else 0.0))
        return np.concatenate(results)

    return call, ref


def row_of_affines(columns: Sequence[int], rows: Sequence[int], bias: bool, bad: Any = (), wrong: Any = ()) -> None:
    """Maps with so many rows of inputs of such sizes."""
    call, ref = affines(len(columns), bias)
    args = [A(n) for n in columns]
    for m in rows:
        args += [A(m)] * bias + [A(m, n) for n in columns]
    ROWS.append(Row("_affines", call, args, ref, bad=bad, wrong=wrong, batches=False, tol=8e-6, gtol=8e-5,
                    note="bias" if bias else ""))  # fmt: skip


def no_maps(inputs: int) -> Any:
    return lambda: affines(inputs, True)[0](*[dy.inputVector(np.ones(3))] * inputs), ValueError


row_of_affines([4], [3, 5], False,
               bad=[[(4,), (3, 4), (5, 3)], [(4,), (3, 3), (5, 4)], [(4, 2), (3, 4), (5, 4)], ["4x2", (3, 4), (5, 4)],
                    [(4,), "3,4x2", (5, 4)], [(4,), (3, 4, 2), (5, 4)]], wrong=[no_maps(1)])  # fmt: skip
row_of_affines([4], [3, 5], True, bad=[[(4,), (4,), (3, 4), (5,), (5, 4)], [(4,), (3,), (3, 4), (5,)],
                                       [(4,), (3, 1, 2), (3, 4), (5,), (5, 4)], [(4,), "3x2", (3, 4), (5,), (5, 4)]])  # fmt: skip
row_of_affines([4, 3], [3, 5, 1], False, bad=[[(4,), (3,), (2, 4), (3, 3)], [(4,), (3,), (2, 4), (2, 3), (2, 4)]],
               wrong=[no_maps(2)])  # fmt: skip
row_of_affines([4, 3], [3], True, bad=[[(4,), (3,), (2,), (2, 4), (2, 2)], ["4x2", "3x3", (2,), (2, 4), (2, 3)]])
row_of_affines([17, 19], [16, 16, 16, 16], True)
row_of_affines([4, 3, 2], [3, 5], False, bad=[[(4,), (3,), (2,), (2, 4), (2, 3), (2, 1)]], wrong=[no_maps(3)])
row_of_affines([4, 3, 2], [3, 5, 2], True, bad=[[(4,), (3,), (2,), (2,), (2, 4), (2, 3), (3, 2)]])
row_of_affines([1], [1, 1], True)

# ---- one map: sums of products, and of parts of matrices -------------------------------------------------------------


def row_of_parts(
    parts: Sequence[tuple[int, int, int]], rows: int, bias: bool, batch: int = 1, bad: Any = (), wrong: Any = ()
) -> None:
    """Products of matrices with so many rows; of each its columns, the first one that takes part, and how many do."""
    columns, n = [first for _, first, _ in parts], len(parts)

    def call(*es: Any) -> Any:
        return _core._affine(es[:n], es[n:], columns, bias)

    def ref(*arrays: Array) -> Array:
        xs, weights = arrays[:n], arrays[n + bias :]
        sums = sum(np.einsum("ij,je->ie", w[:, first : first + k, 0], x)
                   for (_, first, k), w, x in zip(parts, weights, xs, strict=True))  # fmt: skip
        return np.asarray(sums + (arrays[n] if bias else 0.0))

    args = [A(k, batch=batch) for _, _, k in parts] + [A(rows)] * bias + [A(rows, width) for width, _, _ in parts]
    ROWS.append(Row("_affine", call, args, ref, whole=True, bad=bad, wrong=wrong, batches=False, tol=8e-6, gtol=8e-5))


row_of_parts([(4, 0, 4), (3, 0, 3)], 5, False, bad=[[(4,), (3,), (5, 4), (6, 3)], [(4,), (4,), (5, 4), (5, 3)], [(4,), (3,), (5, 4)]],
             wrong=[(lambda: _core._affine([], [], [], False), ValueError)])  # fmt: skip
row_of_parts([(17, 0, 17), (4, 0, 4), (33, 0, 33)], 20, False)


def wrong_parts(columns: Sequence[int], bias: bool = False) -> Any:
    """A vector of 2 numbers and a matrix of 5 columns."""
    w, x, b = dy.inputTensor(np.ones((3, 5))), dy.inputVector(np.ones(2)), dy.inputVector(np.ones(3))
    return _core._affine([x], [b, w] if bias else [w], columns, bias)


row_of_parts([(5, 0, 2), (5, 2, 3)], 3, False, bad=[[(2,), (3,), (3, 5), (4, 5)], [(2,), (3,), (3, 5), (3, 4)], [(2, 2), (3,), (3, 5), (3, 5)],
                                                    [(2,), (3,), "3,5x2", (3, 5)], ["2x2", "3x3", (3, 5), (3, 5)]],
             wrong=[(lambda: wrong_parts([]), ValueError), (lambda: wrong_parts([0, 1]), ValueError),
                    (lambda: wrong_parts([4]), ValueError), (lambda: wrong_parts([-1]), ValueError)])  # fmt: skip
row_of_parts([(5, 0, 2), (5, 2, 3)], 3, True, bad=[[(2,), (3,), (4,), (3, 5), (3, 5)], [(2,), (3,), "3x2", (3, 5), (3, 5)]],
             wrong=[(lambda: wrong_parts([4], bias=True), ValueError)])  # fmt: skip
row_of_parts([(40, 0, 16), (40, 16, 24), (7, 0, 7)], 33, True, batch=3)
row_of_parts([(9, 4, 3)], 1, False, batch=2)

# ---- layers over concatenations ----------------------------------------------------------------------------------------


def row_of_layer(formula: str, rows: int, parts: Sequence[int], bad: Any = (), wrong: Any = ()) -> None:
    def ref(b: Array, w: Array, *xs: Array) -> Array:
        return np.asarray(NUMPY[formula](b + w @ np.concatenate(xs)))

    def call(b: Any, w: Any, *xs: Any) -> Any:
        return _core._layer(b, w, xs, UNARY_ID[formula])

    args = [A(rows), A(rows, sum(parts)), *(A(n) for n in parts)]
    ROWS.append(Row("_layer", call, args, ref, bad=bad, wrong=wrong, batches=False, tol=8e-6, gtol=8e-5, note=formula))


def wrong_formula(number: int, parts: int = 1) -> Any:
    def call() -> Any:
        x = dy.inputVector(np.ones(3))
        return _core._layer(x, dy.inputTensor(np.ones((3, 3))), [x] * parts, number)

    return call, ValueError


row_of_layer("tanh", 5, [4, 3], bad=[[(5,), (5, 7), (4,), (4,)], [(4,), (5, 7), (4,), (3,)], [(5, 1, 2), (5, 7), (4,), (3,)],
                                     [(5,), (5, 7, 2), (4,), (3,)], [(5,), (5, 7), (4, 2), (3,)], [(5,), (5, 7), "4x2", "3x2"],
                                     ["5x2", (5, 7), (4,), (3,)], [(5,), "5,7x2", (4,), (3,)]],
             wrong=[wrong_formula(-1), wrong_formula(1000), wrong_formula(UNARY_ID["rectify"]), wrong_formula(UNARY_ID["elu"]),
                    wrong_formula(UNARY_ID["tanh"], parts=0)])  # fmt: skip
row_of_layer("logistic", 33, [16, 17, 1])
row_of_layer("tanh", 50, [50, 50])
