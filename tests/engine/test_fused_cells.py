"""Cells written by hand, gate by gate: against NumPy in double precision, and against DyNet where it is installed.

The cells are a text, so that a process with DyNet can run the same lines. L has the functions of a library, P its weights.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import textwrap
from functools import cache
from typing import Any

import numpy as np
import pytest
from fused_programs import STRATEGIES, Array, engine, near, ops

import dynet_lite as dy

CELLS = """
def lstm(L, P, xs):
    h, c = L.zeros(), L.zeros()
    for x in xs:
        def gate(k):
            return L.affine_transform([P["b" + k], P["W" + k], x, P["U" + k], h])
        i, f, o, g = L.logistic(gate("i")), L.logistic(gate("f")), L.logistic(gate("o")), L.tanh(gate("g"))
        c = L.cmult(f, c) + L.cmult(i, g)
        h = L.cmult(o, L.tanh(c))
    return h

def lstm_of_products(L, P, xs):
    h, c = P["h0"], P["c0"]
    for x in xs:
        def gate(k):
            return L.mul(P["W" + k], x) + L.mul(P["U" + k], h) + P["b" + k]
        c = L.cmult(L.logistic(gate("f")), c) + L.cmult(L.logistic(gate("i")), L.tanh(gate("g")))
        h = L.cmult(L.logistic(gate("o")), L.tanh(c))
    return h

def peephole_lstm(L, P, xs):
    h, c = L.zeros(), L.zeros()
    for x in xs:
        def gate(k):
            return L.affine_transform([P["b" + k], P["W" + k], x, P["U" + k], h])
        i = L.logistic(gate("i") + L.cmult(P["vi"], c))
        c = L.cmult(L.one_minus(i), c) + L.cmult(i, L.tanh(gate("g")))
        h = L.cmult(L.logistic(gate("o") + L.cmult(P["vo"], c)), L.tanh(c))
    return h

def gru(L, P, xs):
    h = L.zeros()
    for x in xs:
        z = L.logistic(L.mul(P["Wi"], x) + L.mul(P["Ui"], h) + P["bi"])
        r = L.logistic(L.mul(P["Wf"], x) + L.mul(P["Uf"], h) + P["bf"])
        u = L.tanh(L.mul(P["Wg"], x) + L.mul(P["Ug"], L.cmult(r, h)) + P["bg"])
        h = L.cmult(L.one_minus(z), h) + L.cmult(z, u)
    return h

def three_inputs(L, P, xs):
    h, last = L.zeros(), L.zeros()
    for x in xs:
        def gate(k):
            return L.affine_transform([P["b" + k], P["W" + k], x, P["U" + k], h, P["V" + k], last])
        h, last = L.cmult(L.logistic(gate("i")), L.tanh(gate("g"))) + L.cmult(L.one_minus(L.logistic(gate("f"))), h), x
    return h

def highway(L, P, xs):
    h = xs[0]
    for x in xs:
        t = L.logistic(L.affine_transform([P["bi"], P["Wi"], h]))
        h = L.cmult(t, L.tanh(L.affine_transform([P["bg"], P["Wg"], h]))) + L.cmult(L.one_minus(t), h) + x * 0.25
    return h

def child_sum_tree(L, P, xs):
    def node(words):
        if len(words) == 1:
            c = L.cmult(L.logistic(L.mul(P["Wi"], words[0]) + P["bi"]), L.tanh(L.mul(P["Wg"], words[0]) + P["bg"]))
            return L.cmult(L.logistic(L.mul(P["Wo"], words[0]) + P["bo"]), L.tanh(c)), c
        k = (len(words) + 2) // 3
        children = [node(words[s:s + k]) for s in range(0, len(words), k)]
        total = L.esum([h for h, c in children])
        i = L.logistic(L.mul(P["Ui"], total) + P["bi"])
        o = L.logistic(L.mul(P["Uo"], total) + P["bo"])
        g = L.tanh(L.mul(P["Ug"], total) + P["bg"])
        kept = [L.cmult(L.logistic(L.mul(P["Uf"], h) + P["bf"]), c) for h, c in children]
        c = L.esum([L.cmult(i, g)] + kept)
        return L.cmult(o, L.tanh(c)), c
    return node(xs)[0]

def binary_tree(L, P, xs):
    def node(words):
        if len(words) == 1:
            return L.tanh(L.mul(P["Wg"], words[0])), words[0]
        (hl, cl), (hr, cr) = node(words[:len(words) // 2]), node(words[len(words) // 2:])
        def gate(k, k2):
            return L.affine_transform([P["b" + k], P["W" + k], hl, P["U" + k2], hr])
        c = L.esum([L.cmult(L.logistic(gate("i", "i")), L.tanh(gate("g", "g"))),
                    L.cmult(L.logistic(gate("f", "f")), cl), L.cmult(L.logistic(gate("f", "o")), cr)])
        return L.cmult(L.logistic(gate("o", "f")), L.tanh(c)), c
    return node(xs)[0]
"""
NAMES = ("lstm", "lstm_of_products", "peephole_lstm", "gru", "three_inputs", "highway", "child_sum_tree", "binary_tree")
SPACE: dict[str, Any] = {}
exec(CELLS, SPACE)  # the text above
N, LENGTHS = 11, (1, 4, 2, 7)


class Numpy:
    """The functions of L in double precision."""

    tanh = staticmethod(np.tanh)
    cmult = staticmethod(np.multiply)
    mul = staticmethod(np.matmul)
    esum = staticmethod(sum)

    @staticmethod
    def zeros() -> Array:
        return np.zeros(N)

    @staticmethod
    def one_minus(x: Array) -> Array:
        return 1 - x

    @staticmethod
    def logistic(x: Array) -> Array:
        return 1 / (1 + np.exp(-x))

    @staticmethod
    def affine_transform(es: list[Array]) -> Array:
        return es[0] + sum(w @ x for w, x in zip(es[1::2], es[2::2], strict=True))


LIBRARY = f"""
class L:
    tanh, cmult, logistic, affine_transform, esum = dy.tanh, dy.cmult, dy.logistic, dy.affine_transform, dy.esum
    mul = staticmethod(lambda w, x: w * x)
    one_minus = staticmethod(lambda x: -x + 1.0 if dy.__name__ == "dynet" else 1 - x)  # DyNet has none with the number first
    zeros = staticmethod(lambda: dy.inputVector([0.0] * {N}))
"""
RUN = (
    CELLS
    + LIBRARY
    + """
out = {}
weights = {k: np.asarray(v) for k, v in data["weights"].items()}
for name in data["names"]:
    pc = dy.ParameterCollection()
    P = {k: pc.parameters_from_numpy(v) for k, v in weights.items()}
    dy.renew_cg()
    hs = [globals()[name](L, P, [dy.inputVector(x) for x in xs]) for xs in data["inputs"]]
    loss = dy.esum([dy.dot_product(h, dy.inputVector(w)) for h, w in zip(hs, data["into"])])
    value = loss.value()
    loss.backward()
    out[name] = [value, {k: p.grad_as_array().tolist() for k, p in P.items()}]
"""
)


@cache
def numbers() -> tuple[dict[str, Array], list[list[Array]], list[Array]]:
    """Weights, inputs of sentences, and what the last states are weighted with; all exact in float32."""
    rng = np.random.default_rng(4)

    def draw(*shape: int) -> Array:
        return (rng.normal(size=shape) / np.sqrt(shape[-1] if len(shape) > 1 else 2)).astype(np.float32).astype(float)

    weights = {s + k: draw(N, N) for k in "ifgo" for s in "WUV"} | {"b" + k: draw(N) for k in "ifgo"}
    weights |= {name: draw(N) for name in ("vi", "vo", "h0", "c0")}
    return weights, [[draw(N) for _ in range(n)] for n in LENGTHS], [draw(N) for _ in LENGTHS]


def loss_by_numpy(name: str, weights: dict[str, Array]) -> float:
    _, inputs, into = numbers()
    return float(sum(SPACE[name](Numpy, weights, xs) @ w for xs, w in zip(inputs, into, strict=True)))


def run_here(name: str) -> tuple[float, dict[str, Array]]:
    """Loss and gradients by dynet_lite, under the settings of now."""
    weights, inputs, into = numbers()
    space: dict[str, Any] = {"dy": dy}
    exec(LIBRARY, space)
    pc = dy.ParameterCollection()
    p = {key: pc.parameters_from_numpy(w) for key, w in weights.items()}
    # States are not held: h and c of a step run inside what reads them where they can.
    hs = [SPACE[name](space["L"], p, [dy.inputVector(x) for x in xs]) for xs in inputs]
    loss = dy.esum([dy.dot_product(h, dy.inputVector(w)) for h, w in zip(hs, into, strict=True)])
    value = loss.value()
    loss.backward()
    return value, {key: q.grad_as_array() for key, q in p.items()}


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("name", NAMES)
def test_against_numpy(name: str, strategy: str) -> None:
    """The loss, and its slope along random directions of each weight."""
    weights = numbers()[0]
    wanted = loss_by_numpy(name, weights)
    rng = np.random.default_rng(8)
    for threads in (1, 2):
        with engine(strategy=strategy, threads=threads):
            value, gradients = run_here(name)
            assert "fused" in ops()
        assert value == pytest.approx(wanted, rel=1e-5, abs=1e-5)
        for key, w in weights.items():
            for _ in range(2):
                d = rng.normal(size=w.shape)
                step = 1e-5
                slope = (
                    loss_by_numpy(name, {**weights, key: w + step * d})
                    - loss_by_numpy(name, {**weights, key: w - step * d})
                ) / (2 * step)
                near(np.array(np.sum(gradients[key] * d)), np.array(slope), 2e-5, f"{name}: {key}", atol=2e-5)


@pytest.mark.parametrize("name", NAMES)
def test_fewer_nodes_and_the_same(name: str) -> None:
    """Gates are joined in all of them."""
    found = []
    for fuse in (True, False):
        with engine(fuse=fuse):
            found.append((*run_here(name), ops()))
    (value, gradients, names), (other, plain, others) = found
    assert value == pytest.approx(other, rel=1e-6, abs=1e-6)
    for key, gradient in gradients.items():
        near(gradient, plain[key], 1e-5, key, atol=1e-6)
    assert len(names) < 0.55 * len(others) and "joined" in names, (len(names), len(others))


@pytest.mark.skipif(importlib.util.find_spec("_dynet") is None, reason="DyNet (dyNET38) is not installed")
def test_against_dynet() -> None:
    weights, inputs, into = numbers()
    data = {"names": NAMES, "weights": {k: w.tolist() for k, w in weights.items()},
            "inputs": [[x.tolist() for x in xs] for xs in inputs], "into": [w.tolist() for w in into]}  # fmt: skip
    head = "import sys, json, os\nsys.argv = ['x', '--dynet-mem', '64']\nimport numpy as np\nimport dynet as dy\n"
    head += "data = json.load(sys.stdin)\n"
    tail = "print('RESULT' + json.dumps(out))\nsys.stdout.flush()\nos._exit(0)\n"
    done = subprocess.run([sys.executable, "-c", head + textwrap.dedent(RUN) + tail], input=json.dumps(data), capture_output=True,
                          text=True, timeout=300, env={**os.environ})  # fmt: skip
    results = [line for line in done.stdout.splitlines() if line.startswith("RESULT")]
    assert results, done.stderr[-2000:]
    for name, (value, gradients) in json.loads(results[0][len("RESULT") :]).items():
        with engine():
            mine, my_gradients = run_here(name)
        assert mine == pytest.approx(value, rel=1e-5, abs=1e-5), name
        for key, gradient in gradients.items():
            near(my_gradients[key], np.array(gradient), 2e-5, f"{name}: {key}", atol=2e-6)
