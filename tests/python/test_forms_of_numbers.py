"""Numbers and indices in every form that Python and NumPy have for them: the same result to the bit, or an exception, never another number."""

from __future__ import annotations

import array
import collections
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import dynet_lite as dy

V, M = np.array([1.5, -2.25, 3e-5], np.float32), np.array([[1.5, 2.1, 3], [4, -5.7, 6e8]], np.float32)
WHOLE = np.array([[1, 2, 3], [0, 5, 1]], np.float32)
ROWS, BATCH = np.arange(20.0).reshape(5, 4), np.arange(12.0).reshape(4, 3)


def floats(a: np.ndarray) -> Iterator[tuple[str, Any]]:
    """An array of float32 in other forms."""
    back, twice = (slice(None, None, -1),) * a.ndim, (slice(None, None, 2),) * a.ndim
    apart = np.zeros([2 * n for n in a.shape], np.float32)
    apart[twice] = a
    fixed = a.copy()
    fixed.flags.writeable = False
    yield from ((f"dtype {t}", a.astype(t)) for t in ("f4", "f8", ">f4", ">f8", "g", "O"))
    yield from (
        ("Fortran", np.asfortranarray(a)),
        ("backwards", a[back].copy()[back]),
        ("apart", apart[twice]),
        ("fixed", fixed),
    )
    yield from (("list", a.tolist()), ("scalars", list(a) if a.ndim == 1 else a.tolist()), ("masked", np.ma.array(a)))
    yield "not aligned", np.frombuffer(b"x" + a.tobytes(), np.uint8)[1:].view(np.float32).reshape(a.shape)
    yield "field", np.rec.array([(x,) for x in a.ravel()], dtype=[("v", "f4")]).v.reshape(a.shape)
    if a.ndim == 1:
        yield from (("array", array.array("f", a)), ("view", memoryview(a)), ("items", (float(x) for x in a)))
    if np.array_equal(a, np.round(a)):
        yield from ((f"dtype {t}", a.astype(t)) for t in ("i1", "u1", ">i2", "u4", ">i8", "u8", "f2", ">f2"))


def integers(ids: list[int]) -> Iterator[tuple[str, Any]]:
    """Indices in other forms; of some of them no index can be made."""
    a = np.array(ids)
    yield from (
        (f"dtype {t}", a.astype(t))
        for t in ("i1", "u1", "i2", ">u2", "i4", ">i4", "u8", ">i8", "f8", "O", "c16", "m8[s]")
    )
    yield from (
        ("backwards", a[::-1].copy()[::-1]),
        ("apart", np.repeat(a, 2)[::2]),
        ("row", a[None]),
        ("column", a[:, None]),
    )
    yield from (
        (f"list of {t}", [getattr(np, t)(i) for i in ids]) for t in ("int64", "uint64", "int8", "float32", "array")
    )
    yield from (
        ("tuple", tuple(ids)),
        ("items", iter(ids)),
        ("floats", [float(i) for i in ids]),
        ("array", array.array("i", ids)),
    )
    yield from (
        ("view", memoryview(a)),
        ("deque", collections.deque(ids)),
        ("text", [str(i) for i in ids]),
        ("bytes", bytes(ids)),
    )


def too_large(ids: list[int]) -> Iterator[tuple[str, Any]]:
    """Indices that are these where numbers are cut to 32 or 64 bits."""
    a = np.array(ids)
    yield from (("32 bits", [i + 2**32 for i in ids]), ("64 bits", [i + 2**64 for i in ids]), ("int64", a + 2**32))
    yield from (("float64", a + 2.0**32), ("uint64", a.astype(np.uint64) + np.uint64(2**63)), ("NaN", a * np.nan))


def weight(x: Any, way: Callable[[Any, Any], Any]) -> np.ndarray:
    p = dy.ParameterCollection().add_parameters((2, 3), init=0)
    way(p, x)
    return np.concatenate([p.as_array(), p.grad_as_array()])


def table(x: Any, way: Callable[[Any, Any], Any]) -> np.ndarray:
    t = dy.ParameterCollection().add_lookup_parameters((2, 3), init=0)
    way(t, x)
    return np.concatenate([t.as_array(), t.grad_as_array()])


def replaced(e: Any, x: Any) -> np.ndarray:
    e.set(x)
    return e.npvalue()  # type: ignore[no-any-return]


def rows() -> Any:
    return dy.ParameterCollection().lookup_parameters_from_numpy(ROWS)


def batch() -> Any:
    return dy.inputTensor(BATCH, batched=True)


def mapped(t: Any, ids: Any) -> Any:
    return dy.concatenate(dy.map(dy.cell(lambda i: dy.square(t[i])), ids))


NUMBERS: dict[str, tuple[Callable[[Any], Any], tuple[np.ndarray, ...]]] = {
    "inputVector": (lambda x: dy.inputVector(x), (V,)),
    "inputTensor": (lambda x: dy.inputTensor(x), (V, M, WHOLE)),
    "batched": (lambda x: dy.inputTensor(x, batched=True), (V, M, WHOLE)),
    "of an input": (lambda x: replaced(dy.inputTensor(np.zeros((2, 3))), x), (M, WHOLE)),
    "of a vector": (lambda x: replaced(dy.inputVector([0, 0, 0]), x), (V,)),
    "set_value": (lambda x: weight(x, lambda p, x: p.set_value(x)), (M, WHOLE)),
    "set_grad": (lambda x: weight(x, lambda p, x: p.set_grad(x)), (M, WHOLE)),
    "init_from_array": (lambda x: table(x, lambda t, x: t.init_from_array(x)), (M, WHOLE)),
    "init_row": (lambda x: table(x, lambda t, x: t.init_row(1, x)), (V,)),
    "set_rows_grad": (lambda x: table(x, lambda t, x: t.set_rows_grad([1, 0], x)), (M, WHOLE)),
    "init": (lambda x: dy.ParameterCollection().add_parameters((2, 3), init=x).as_array(), (M, WHOLE)),
    "NumpyInitializer": (lambda x: dy.ParameterCollection().add_lookup_parameters((2, 3), init=dy.NumpyInitializer(x)).as_array(), (M,)),
    "from_numpy": (lambda x: dy.ParameterCollection().parameters_from_numpy(x).as_array(), (V, M, WHOLE)),
    "x + y": (lambda x: dy.inputVector([0, 1, 2]) + x, (V,)),
    "y * x": (lambda x: x * dy.inputTensor(np.eye(3)[:2]), (WHOLE[:, :2],)),
    "square": (lambda x: dy.square(x), (V, M, WHOLE)),
    "esum": (lambda x: dy.esum([dy.inputVector([1, 1, 1]), x]), (V,)),
    "sparse_inputTensor": (lambda x: dy.sparse_inputTensor([[0, 2, 1]], x, (3,)), (V,)),
}  # fmt: skip

INDICES: dict[str, tuple[Callable[[Any], Any], list[int]]] = {
    "lookup_batch": (lambda i: dy.lookup_batch(rows(), i), [3, 0, 2]),
    "rows": (lambda i: dy.concatenate(rows().rows(i)), [3, 0, 2]),
    "of rows": (lambda i: replaced(rows().batch([0, 0, 0]), i), [3, 0, 2]),
    "pick_batch": (lambda i: dy.pick_batch(batch(), i), [3, 0, 2]),
    "pickneglogsoftmax_batch": (lambda i: dy.pickneglogsoftmax_batch(batch(), i), [3, 0, 2]),
    "hinge_batch": (lambda i: dy.hinge_batch(batch(), i), [3, 0, 2]),
    "hinge_dim": (lambda i: dy.hinge_dim(dy.inputTensor(BATCH), i, 0), [3, 0, 2]),
    "one_hot": (lambda i: dy.one_hot(5, i), [3, 0, 2]),
    "select_rows": (lambda i: dy.select_rows(dy.inputTensor(ROWS), i), [3, 0, 2]),
    "select_cols": (lambda i: dy.select_cols(dy.inputTensor(ROWS), i), [3, 0, 2]),
    "pick_batch_elems": (lambda i: dy.pick_batch_elems(batch(), i), [1, 0, 2]),
    "restrict": (lambda i: dy.log_softmax(dy.inputVector([1, 2, 3, 4, 5]), restrict=i), [3, 0, 2]),
    "segment_sum": (lambda i: dy.concatenate(dy.segment_sum([dy.inputVector(x) for x in BATCH.T], i, 4)), [3, 0, 2]),
    "sparsemax_loss": (lambda i: dy.sparsemax_loss(dy.inputVector([1, 2, 3, 4, 5]), i), [3, 0, 2]),
    "sum_dim": (lambda i: dy.sum_dim(dy.inputTensor(BATCH.reshape(2, 2, 3)), i), [0, 2]),
    "transpose": (lambda i: dy.transpose(dy.inputTensor(BATCH.reshape(2, 2, 3)), i), [2, 0, 1]),
    "reshape": (lambda i: dy.reshape(dy.inputTensor(BATCH), i), [2, 2, 3]),
    "zeros": (lambda i: dy.zeros(i), [2, 2, 3]),
    "places": (lambda i: dy.sparse_inputTensor([i], [1.0, 2, 3], (5,)), [3, 0, 2]),
    "map": (lambda i: mapped(rows(), i), [3, 0, 2]),
}  # fmt: skip


def value(x: Any) -> np.ndarray:
    return x.npvalue() if isinstance(x, dy.Expression) else np.asarray(x)


def same_or_refused(call: Callable[[Any], Any], plain: Any, forms: Iterator[tuple[str, Any]]) -> set[str]:
    """The forms that are taken; they give what `plain` does. After the others the graph is as it was."""
    dy.renew_cg()
    wanted, taken = value(call(plain)), set()
    for form, x in forms:
        dy.renew_cg()
        before = dy.inputVector([2.0])
        try:
            found = value(call(x))
        except (TypeError, ValueError, IndexError):
            assert dy.square(before).value() == 4
            continue
        np.testing.assert_array_equal(found, wanted, err_msg=form)
        taken.add(form)
    return taken


@pytest.mark.filterwarnings("ignore:overflow")
@pytest.mark.parametrize("name", NUMBERS)
def test_numbers(name: str) -> None:
    call, arrays = NUMBERS[name]
    for a in arrays:
        taken = same_or_refused(call, a, floats(a))
        assert {
            "dtype f4",
            "dtype f8",
            "dtype >f4",
            "dtype >f8",
            "Fortran",
            "backwards",
            "apart",
            "fixed",
            "not aligned",
            "field",
        } <= taken


@pytest.mark.parametrize("name", INDICES)
def test_indices(name: str) -> None:
    call, ids = INDICES[name]
    taken = same_or_refused(call, ids, integers(ids))
    assert {
        "dtype i1",
        "dtype >u2",
        "dtype >i4",
        "dtype u8",
        "dtype >i8",
        "backwards",
        "apart",
        "list of int8",
        "tuple",
    } <= taken
    assert not taken & {"dtype c16", "dtype m8[s]", "text"}


@pytest.mark.parametrize("name", INDICES)
def test_indices_of_more_bits(name: str) -> None:
    call, ids = INDICES[name]
    assert not same_or_refused(call, ids, too_large(ids))
