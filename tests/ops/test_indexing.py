"""expression[index] against NumPy: any mixture of ints, slices, lists, masks, None and ..., with and without a batch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dynet_lite as dy
from dynet_lite import _core


def random_index(rng: np.random.Generator, sizes: list[int], dots: bool) -> list[Any]:
    """An index for dims of these sizes (some, all, or all and the batch, which is last)."""
    nd = len(sizes) - 1
    index: list[Any] = []
    lists = 0
    for size in sizes[: nd + 1 if rng.random() < 0.3 else rng.integers(1, nd + 1)]:
        kind = rng.integers(0, 6)
        if kind == 0:
            index.append(int(rng.integers(-size, size)))
        elif kind == 1 and not lists:
            index.append(rng.integers(-size, size, rng.integers(1, 4)).tolist())
            lists += 1
        elif kind == 2 and not lists:
            mask = rng.random(size) < 0.7
            index.append(mask if rng.random() < 0.5 else mask.tolist())
            lists += 1
        elif kind == 3 and nd < 5:
            index += [None, slice(None)]
        else:
            ends = [None if rng.random() < 0.4 else int(rng.integers(-size - 1, size + 2)) for _ in range(2)]
            index.append(slice(*ends, [None, 1, 2, -1, -2][rng.integers(0, 5)]))
    used = sum(1 for i in index if i is not None)
    if dots and used <= nd:
        index.insert(int(rng.integers(0, len(index) + 1)), Ellipsis)
    return index


def select(x: np.ndarray, index: list[Any]) -> np.ndarray:
    """The same of an array whose last axis is the batch, one axis after another; the result has a batch too."""
    nd = x.ndim - 1
    used = sum(1 for i in index if i is not None and i is not Ellipsis)
    shape: list[int | None] = []
    at = 0
    for item in index:
        if item is None:
            shape.append(None)
            continue
        for one in [slice(None)] * max(0, nd - used) if item is Ellipsis else [item]:
            removed = isinstance(one, int)
            x = np.take(x, [one], axis=at) if removed else x[(slice(None),) * at + (one,)]
            if not removed and at < nd:
                shape.append(at)
            at += 1
    shape += list(range(at, nd))
    return x.reshape([*([1 if d is None else x.shape[d] for d in shape] or [1]), x.shape[-1]])


@pytest.mark.parametrize("seed", range(10))
def test_against_numpy(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(80):
        dots = rng.random() < 0.3
        batch = int(rng.integers(1, 4))
        nd = int(rng.integers(1, 5))
        shape = (batch,) * nd if dots else tuple(rng.integers(1, 5, nd).tolist())
        numbers = rng.standard_normal((*shape, batch)).astype(np.float32)
        index = random_index(rng, [*shape, batch], dots)
        wanted = select(numbers, index)
        _core.cg().renew()
        x = dy.inputTensor(numbers, batched=True)
        key = index[0] if len(index) == 1 and rng.random() < 0.5 else tuple(index)
        if wanted.size == 0:
            with pytest.raises(ValueError, match=r"^\[x\[\.\.\.\]\] "):
                x[key]
            continue
        y = x[key]
        assert y.dim() == (wanted.shape[:-1], wanted.shape[-1]), index
        assert np.array_equal(y.npvalue().reshape(wanted.shape), wanted), index
        weights = np.cos(np.arange(wanted.size, dtype=np.float32)).reshape(wanted.shape)
        dy.sum_batches(dy.dot_product(y, dy.inputTensor(weights, batched=True))).backward(full=True)
        gradient = np.zeros(numbers.size)
        np.add.at(gradient, select(np.arange(numbers.size).reshape(numbers.shape), index).ravel(), weights.ravel())
        assert np.allclose(x.gradient().reshape(numbers.shape), gradient.reshape(numbers.shape), atol=1e-6), index


@pytest.mark.parametrize(
    ("index", "error"),
    [
        (3, IndexError),
        (-4, IndexError),
        ((3,), IndexError),
        ((None, 3), IndexError),
        ((0, 1), IndexError),
        ((0, 0, 0), IndexError),
        ([0, 3], IndexError),
        ([True, False], IndexError),
        ((..., ...), IndexError),
        (([0], [0]), IndexError),
        (slice(2, 2), ValueError),
        (slice(None, None, 0), ValueError),
        ([], ValueError),
        (np.zeros(3, dtype=bool), ValueError),
        (1.0, TypeError),
        (True, TypeError),
        ("a", TypeError),
        ([0.5], TypeError),
        ([[0, 1]], TypeError),
        (10**30, IndexError),
    ],
)
def test_wrong_index(index: Any, error: type[Exception]) -> None:
    x = dy.inputVector([1.0, 2.0, 3.0])
    before = len(_core.cg())
    with pytest.raises(error):
        x[index]
    assert len(_core.cg()) == before
    assert x[0].value() == 1.0


def test_iteration_and_unpacking() -> None:
    assert [e.value() for e in dy.inputVector([1.0, 2.0, 3.0])] == [1.0, 2.0, 3.0]
    a, b = dy.inputTensor(np.arange(4.0).reshape(2, 2))
    assert (a.value(), b.value()) == ([0.0, 1.0], [2.0, 3.0])


def test_numpy_integers_and_parameters() -> None:
    p = _core.Parameters.make((3, 4), "/p")
    p.set_value(np.arange(12.0).reshape(3, 4))
    assert p[np.int64(1)].value() == [4.0, 5.0, 6.0, 7.0]
    assert p[:, np.int32(-1)].value() == [3.0, 7.0, 11.0]
    dy.sum_elems(p[1:, [0, 0, 3]]).backward()
    wanted = np.zeros((3, 4))
    wanted[1:, 0], wanted[1:, 3] = 2, 1
    assert np.array_equal(p.grad_as_array(), wanted)


@pytest.mark.filterwarnings("error")
def test_numpy_integers_of_few_bits() -> None:
    x = dy.inputVector(np.arange(300.0))
    assert dy.pick_range(x, np.uint8(200), 300).value() == list(range(200, 300))
    with pytest.raises(ValueError, match="the range is empty"):
        dy.pick_range(x, np.uint8(200), np.uint8(10))
    assert dy.fold_rows(x, np.uint8(100)).shape == (3, 1)
    assert dy.kmh_ngram(dy.reshape(x, (1, 300)), np.uint8(2)).shape == (1, 299)


def test_what_lies_in_one_piece_is_not_copied() -> None:
    x = dy.inputTensor(np.arange(24.0).reshape(2, 3, 4))
    for y in (x[:], x[:, :, 1], x[..., 1:3], x[:, :, 1:3][:, :, 1], x[..., -1][:, 2]):
        y.forward()
    assert _core.cg().stats()["nodes"] == 0
