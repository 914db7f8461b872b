"""What each pass does to a small graph, alone: the graph before and after as text, in tests/golden/rewrites/.

DYNET_LITE_WRITE_GOLDEN=1 writes the files anew; look at the difference before you commit it.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fused_programs import Model

import dynet_lite as dy
from dynet_lite import _core

GOLDEN = Path(__file__).parents[1] / "golden" / "rewrites"
PASSES = [name for name, _, _ in _core.passes()]
N = 16


def unused_state(model: Model) -> Any:
    h = dy.tanh(model.weight("W", N, N) * model.table(N)[1])
    dy.exp(dy.softmax(h))
    return dy.sum_elems(h)


def words_again(model: Model) -> Any:
    words, w = model.table(N), model.weight("W", N, N)
    return dy.esum([dy.logsumexp_dim(dy.softmax(w * words[k])) for k in (1, 2, 1)])


def scores_of_three_kinds(model: Model) -> Any:
    out, c = model.weight("O", 20, N), model.weight("c", 20)
    h = dy.softmax(model.table(N)[1])
    scores = [dy.affine_transform([c, out, h]), out * h + c, out * h]
    return dy.esum([dy.pickneglogsoftmax(s, 3) for s in scores])


def sums_of_products(model: Model) -> Any:
    w, u, b = model.weight("W", N, N), model.weight("U", N, N), model.weight("b", N)
    x, h = model.table(N)[1], dy.softmax(model.table(N)[2])
    return dy.logsumexp_dim(w * x + u * h + b) + dy.logsumexp_dim(w * h + b + x)


def attention(model: Model) -> Any:
    words, v, u = model.table(N), model.weight("v", 1, N), model.weight("U", N, N)
    keys = dy.concatenate_cols([words[k] for k in (1, 2, 3)])
    return dy.sum_elems(v * dy.tanh(dy.colwise_add(u * keys, words[4])))


def gates(model: Model) -> Any:
    x, h = model.table(N)[1], dy.softmax(model.table(N)[2])
    i, g = (dy.affine_transform([model.weight(f"{k}{part}", *shape) for part, shape in (("b", (N,)), ("W", (N, N)))] + [x]
                                + [model.weight(f"{k}U", N, N), h]) for k in "ig")  # fmt: skip
    return dy.logsumexp_dim(dy.cmult(dy.logistic(i), dy.tanh(g)))


def word_and_state(model: Model) -> Any:
    words, h = model.table(N), dy.softmax(model.table(N)[2])
    one, other = (dy.concatenate([words[k], h]) for k in (1, 3))
    return dy.esum(
        [dy.logsumexp_dim(model.weight(name, N, 2 * N) * x) for name, x in (("P", one), ("Q", one), ("P", other))]
    )


def nodes_of_a_tree(model: Model) -> Any:
    words, w, b = model.table(N), model.weight("W", N, 2 * N), model.weight("b", N)
    h = words[1]
    for k in (2, 3):
        h = dy.tanh(dy.affine_transform([b, w, dy.concatenate([h, words[k]])]))
    return dy.logsumexp_dim(h)


def batch_by_hand(model: Model) -> Any:
    states = [dy.softmax(model.table(N)[k]) for k in (1, 2, 3)]
    many = dy.affine_transform([model.weight("c", 20), model.weight("O", 20, N), dy.concatenate_to_batch(states)])
    return dy.sum_batches(dy.logsumexp_dim(many))


PROGRAMS: dict[str, Callable[[Model], Any]] = {
    "dead": unused_state, "merge": words_again, "loss": scores_of_three_kinds, "sum": sums_of_products, "attention": attention,
    "join": gates, "fuse": gates, "concat": word_and_state,
    "layer": nodes_of_a_tree, "bundle": batch_by_hand,
}  # fmt: skip


@pytest.mark.parametrize("name", PASSES)
def test_golden(name: str) -> None:
    alone = [f"-{other}" for other in PASSES if other != name]
    with dy.configure(rewrites=alone):
        texts = {}
        for after in ("made", name):
            dy.renew_cg()
            loss = PROGRAMS[name](Model())
            texts[after] = dy.plan_text(after=after)
            loss.value()
    text = f"{texts['made']}\nafter {name}\n\n{texts[name]}"
    path = GOLDEN / f"{name}.txt"
    if os.environ.get("DYNET_LITE_WRITE_GOLDEN"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    wanted = path.read_text()
    assert text == wanted, "".join(
        difflib.unified_diff(wanted.splitlines(True), text.splitlines(True), "wanted", "now")
    )
    assert texts["made"] != texts[name]


def test_every_pass_has_a_program() -> None:
    assert set(PROGRAMS) == set(PASSES)
