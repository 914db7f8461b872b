"""segment_sum, segment_mean and segment_max of lists: any degrees run in one signature, and the numbers are NumPy's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from harness import graph

import dynet_lite as dy

REDUCERS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "sum": (dy.segment_sum, np.sum),
    "mean": (dy.segment_mean, np.mean),
    "max": (dy.segment_max, np.max),
}
every_one = pytest.mark.parametrize("name", REDUCERS)


def degrees(rng: np.random.Generator, sizes: list[int]) -> list[int]:
    return rng.permutation([i for i, size in enumerate(sizes) for _ in range(size)]).tolist()


@every_one
@pytest.mark.parametrize("sizes", [[1], [1, 1, 1], [2, 3], [4, 5], [7, 1, 16], [17, 65, 2]])
def test_values_and_gradients(name: str, sizes: list[int]) -> None:
    ours, reference = REDUCERS[name]
    rng = np.random.default_rng(1)
    ids, array = degrees(rng, sizes), rng.standard_normal((sum(sizes), 3)).astype(np.float32)
    weights = rng.standard_normal((len(sizes), 3)).astype(np.float32)
    with graph():
        xs = [dy.inputVector(x) for x in array]
        for x in xs:
            x.forward()
        outs = ours(xs, ids)
        assert isinstance(outs, list)
        for s, out in enumerate(outs):
            np.testing.assert_allclose(
                out.npvalue(), reference(array[np.array(ids) == s], axis=0), rtol=1e-5, atol=1e-6
            )
        matrix = dy.inputTensor(array.T)
        wide = ours(matrix, ids, len(sizes))
        np.testing.assert_allclose(
            wide.npvalue().reshape(3, -1), np.array([out.npvalue() for out in outs]).T, rtol=1e-5, atol=1e-6
        )
        loss = dy.esum([dy.dot_product(out, dy.inputVector(w)) for out, w in zip(outs, weights, strict=True)])
        other = dy.sum_elems(dy.cmult(wide, dy.inputTensor(weights.T)))
        (loss + other).backward(full=True)
        np.testing.assert_allclose(np.array([x.gradient() for x in xs]).T, matrix.gradient(), rtol=1e-5, atol=1e-6)
        if name == "sum":
            np.testing.assert_allclose(matrix.gradient(), weights[ids].T, rtol=1e-6)


@every_one
def test_one_signature_whatever_the_degrees(name: str) -> None:
    """Two graphs with nodes of 2 to 70 neighbours: as many batches as the tree of 70 is deep, 4 + 4 * 4 + ...: four."""
    ours, _ = REDUCERS[name]
    rng = np.random.default_rng(2)
    with graph():
        results = []
        for sizes in ([2, 3, 70, 4], [9, 17, 2]):
            ids = degrees(rng, sizes)
            results += ours([dy.inputVector(rng.standard_normal(5)) for _ in ids], ids)
        dy.concatenate(results).forward()
        about = dy.explain_batches()
        kinds = [kind for kind in about.kinds if kind.op.startswith(("sum_some", "max_some"))]
        assert len(kinds) == 1 and len(kinds[0].batches) == 4 and sum(kinds[0].sizes) == kinds[0].nodes


def layer(model: Any, edges: list[tuple[int, int]], n: int) -> Any:
    """A step of message passing in a graph of n nodes."""
    table, W, U = model
    h = [table[i] for i in range(n)]
    received = dy.segment_sum([W * h[a] for a, _ in edges], [b for _, b in edges], n)
    return dy.esum([dy.sum_elems(dy.tanh(U * x + r)) for x, r in zip(h, received, strict=True)])


@pytest.mark.parametrize("settings", [{}, {"fuse": False}, {"autobatch": False}, {"threads": 2}, {"strategy": "depth"}])
def test_message_passing_under_every_setting(settings: dict[str, Any]) -> None:
    """Graphs of unlike sizes in one mini-batch, each by itself, and one by one: equal losses and gradients."""
    rng = np.random.default_rng(3)
    graphs = [
        (n, [tuple(rng.integers(0, n, 2).tolist()) for _ in range(m)]) for n, m in ((3, 4), (9, 40), (5, 0), (2, 7))
    ]
    m = dy.ParameterCollection()
    model = m.add_lookup_parameters((9, 4), init="normal"), m.add_parameters((4, 4)), m.add_parameters((4, 4))

    def run(together: bool) -> list[np.ndarray]:
        m.reset_gradient()
        losses = []
        for batch in [graphs] if together else [[g] for g in graphs]:
            dy.renew_cg()
            loss = (
                dy.esum([layer(model, edges, n) for n, edges in batch if edges]) if any(e for _, e in batch) else None
            )
            if loss is not None:
                losses.append(loss.value())
                loss.backward()
        return [np.array(sum(losses)), *(p.grad_as_array() for p in m._all)]

    with dy.configure(**settings):
        for a, b in zip(run(True), run(False), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


def test_what_is_empty() -> None:
    with graph():
        xs = [dy.inputVector([1.0, 2.0]), dy.inputVector([3.0, 4.0])]
        assert [x.value() for x in dy.segment_sum(xs, [3, 3])] == [[0, 0], [0, 0], [0, 0], [4, 6]]
        assert [x.value() for x in dy.segment_mean(xs, [1, 1], 3)] == [[0, 0], [2, 3], [0, 0]]
        assert dy.segment_mean(dy.concatenate_cols(xs), [1, 1], 3).npvalue().tolist() == [[0, 2, 0], [0, 3, 0]]
        assert dy.segment_sum([], []) == [] == dy.segment_max([], [], 0)
        with pytest.raises(ValueError, match=r"\[segment_max\] segment 0 is empty"):
            dy.segment_max(xs, [1, 1])
        with pytest.raises(ValueError, match=r"\[segment_max\] segment 2 is empty"):
            dy.segment_max(dy.concatenate_cols(xs), [0, 1], 3)


@every_one
@pytest.mark.parametrize("ids", [[0, 0, 0], [0, 1, 2], [2, 0, 1], [1, 0, 1]])
def test_arrays_and_numbers(name: str, ids: list[int]) -> None:
    """Results are expressions, also of what is alone in its segment."""
    ours, _ = REDUCERS[name]
    with graph():
        arrays = [np.array([1.0, 5.0]), np.array([4.0, 2.0]), np.array([2.0, 7.0])]
        wanted = [out.value() for out in ours([dy.inputVector(a) for a in arrays], ids)]
        assert [out.value() for out in ours(arrays, ids)] == wanted
        assert [out.value() for out in ours([float(a[0]) for a in arrays], ids)] == [value[0] for value in wanted]


def test_wrong_use() -> None:
    with graph():
        x, y = dy.inputVector([1.0, 2.0]), dy.inputVector([1.0])
        for call, error, text in (
            (lambda: dy.segment_sum([x, y], [0, 0]), ValueError, r"\[segment_sum\] all shapes"),
            (lambda: dy.segment_mean([x, x], [0]), ValueError, r"\[segment_mean\] one id for each"),
            (lambda: dy.segment_mean(x, [0]), ValueError, r"\[segment_mean\] needs 2 ids, got 1"),
            (lambda: dy.segment_max([x, x], [0, 2], 2), IndexError, r"\[segment_max\] id 2"),
            (lambda: dy.segment_sum([x], [-1]), IndexError, "id -1"),
            (lambda: dy.segment_sum([x], ["a"]), TypeError, "whole numbers"),
            (lambda: dy.segment_sum([x], [0], -1), ValueError, "num_segments"),
            (lambda: dy.segment_sum([x], [0], 2**40), ValueError, r"\[segment_sum\] .* 10000000 segments at most"),
            (lambda: dy.segment_mean([x], [2**31]), ValueError, r"\[segment_mean\] .* 10000000 segments at most"),
            (lambda: dy.segment_sum([], [], 2), ValueError, "the list is empty"),
            (lambda: dy.segment_sum([x, None], [0, 0]), TypeError, "None"),
            (lambda: dy.segment_max([x, None], [0, 1]), TypeError, r"\[segment_max\] .* None"),
        ):
            with pytest.raises(error, match=text):
                call()
        assert dy.segment_sum([x, x], np.array([0, 0]))[0].value() == [2, 4]
    dy.renew_cg()
    with pytest.raises(dy.StaleExpressionError):
        dy.segment_sum([x, x], [0, 0])[0].value()
