"""Functions on expressions that are made of others, or whose arguments Python may give in more than one form.

The functions of single ops come from ``_core``; losses and normalisers are in ``ops_loss``, random ones in
``ops_random``, sums by segment in ``ops_segment``. Shapes are written as in DyNet: ``{d1,d2} X b`` is a tensor of two dims
with a mini-batch of b. Wrong shapes and options are ValueErrors, indices out of range IndexErrors, raised when the
expression is made.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from itertools import zip_longest
from typing import Any

import numpy as np

from dynet_lite import _core
from dynet_lite._core import (
    Expression,
    cmult,
    concatenate,
    dot_product,
    esum,
    l2_norm,
    mean_batches,
    mean_elems,
    sum_elems,
    zeros,
)
from dynet_lite.errors import OutOfRangeError
from dynet_lite.needs import shown
from dynet_lite.told import told

__all__ = [
    "argmax",
    "average_cols",
    "binary_log_loss",
    "ceil",
    "colwise_add",
    "concatenate_cols",
    "const_parameter",
    "contract3d_1d_1d_bias",
    "contract3d_1d_bias",
    "floor",
    "fold_rows",
    "huber_distance",
    "kmh_ngram",
    "l1_distance",
    "mean_dim",
    "moment_batches",
    "moment_dim",
    "moment_elems",
    "pairwise_rank_loss",
    "parameter",
    "pick",
    "pick_batch",
    "pick_batch_elems",
    "pick_range",
    "pickrange",
    "poisson_loss",
    "relu",
    "round",
    "select_cols",
    "select_rows",
    "squared_distance",
    "squared_norm",
    "std_batches",
    "std_dim",
    "std_elems",
    "strided_select",
    "sum_cols",
    "sum_dim",
    "sum_rows",
    "trace_of_product",
    "transpose",
    "weight_norm",
    "zeroes",
]


def as_expression(x: Any) -> Any:
    """x itself, or an input made of an array or a number."""
    if isinstance(x, Expression):
        return x
    if not isinstance(x, (np.ndarray, np.number, int, float, list, tuple)):
        raise TypeError(f"[Expression] an expression, an array or a number is needed; got {shown(x)}")
    return _core.inputTensor(np.atleast_1d(np.asarray(x)))


def _shape(x: Any) -> tuple[int, ...]:
    """The dims without the batch."""
    dims: tuple[int, ...] = x.dim()[0]
    return dims


def _text(x: Any) -> str:
    """The shape as messages write it: {2,3}X4."""
    shape, batch = x.dim()
    return "{" + ",".join(map(str, shape)) + "}" + (f"X{batch}" if batch != 1 else "")


def _like(a: tuple[int, ...], b: tuple[int, ...]) -> bool:
    """Are the shapes equal when missing trailing dims count as 1?"""
    return all(i == k for i, k in zip_longest(a, b, fillvalue=1))


def _same_shape(op: str, x: Any, y: Any) -> tuple[Any, Any]:
    """Two expressions of one shape (trailing dims of 1 may be missing); the ops below them would broadcast."""
    if _core._alike(x, y):
        return x, y
    x, y = as_expression(x), as_expression(y)
    if not _like(_shape(x), _shape(y)):
        raise ValueError(f"[{op}] the shapes must be equal; got {_text(x)}, {_text(y)}")
    return x, y


def _plain(v: Any) -> Any:
    """A number to reckon with: NumPy's integers of few bits wrap around, or refuse larger numbers beside them."""
    return int(v) if isinstance(v, np.integer) else v


def _whole(v: Any, what: str) -> int:
    """A whole number to reckon with. A fraction is an error, but in a program that imports DyNet, which cuts it off."""
    try:
        n = int(v)
    except OverflowError:  # infinity
        n = None
    if n is None or (n != v and not _core.settings.is_dynet):
        raise ValueError(f"{what} must be a whole number; got {shown(v)}")
    return n


def _straight_through(op: str, mode: str) -> bool:
    if mode not in ("zero_gradient", "straight_through_gradient"):
        raise ValueError(f"[{op}] gradient_mode is 'zero_gradient' or 'straight_through_gradient'; got {mode!r}")
    return mode == "straight_through_gradient"


# ---- parameters and constants --------------------------------------------------------------------------------------


def parameter(*parameters: Any, update: bool = True) -> Any:
    """The parameters themselves: they are expressions. Kept for DyNet programs. One item, or a list.

    With update=False, or ``parameter(p, False)``, what const_parameter() gives, as in DyNet 1.
    """
    if len(parameters) == 2 and isinstance(parameters[-1], bool):
        parameters, update = parameters[:-1], parameters[-1]
    if not update:
        return const_parameter(*parameters)
    return parameters[0] if len(parameters) == 1 else list(parameters)


def const_parameter(*parameters: Any) -> Any:
    """The parameters as constants, which get no gradient here. One item, or a list."""
    if len(parameters) == 1:
        return _core.nobackprop(parameters[0])
    return [_core.nobackprop(p) for p in parameters]


def zeroes(dim: int | Sequence[int], batch_size: int = 1) -> Expression:
    """Zeros of shape dim; the same as zeros()."""
    return zeros(dim, batch_size)


# ---- rounding and argmax -------------------------------------------------------------------------------------------


def round(x: Any, gradient_mode: str = "zero_gradient") -> Expression:
    """Nearest whole number, ties to even. Any shape; the result has the same shape.

    gradient_mode: "zero_gradient", or "straight_through_gradient": as if the result were x. ValueError for anything else.
    """
    return _core.round(x, _straight_through("round", gradient_mode))


def ceil(x: Any, gradient_mode: str = "zero_gradient") -> Expression:
    """Whole number at or above x. Any shape; the result has the same shape.

    gradient_mode: "zero_gradient", or "straight_through_gradient": as if the result were x. ValueError for anything else.
    """
    return _core.ceil(x, _straight_through("ceil", gradient_mode))


def floor(x: Any, gradient_mode: str = "zero_gradient") -> Expression:
    """Whole number at or below x. Any shape; the result has the same shape.

    gradient_mode: "zero_gradient", or "straight_through_gradient": as if the result were x. ValueError for anything else.
    """
    return _core.floor(x, _straight_through("floor", gradient_mode))


def argmax(x: Any, gradient_mode: str = "zero_gradient", d: int = 0) -> Expression:
    """1 at the largest element along dim d (the first of equal ones), 0 elsewhere. The result has the shape of x.

    gradient_mode: "zero_gradient", or "straight_through_gradient": as if the result were x. ValueError for anything else, or
    if x has no dim d.
    """
    return _core._argmax(x, _straight_through("argmax", gradient_mode), d)


def relu(x: Any) -> Expression:
    """max(x, 0), element by element: another name of rectify()."""
    return _core.rectify(x)


# ---- shape ---------------------------------------------------------------------------------------------------------


def transpose(x: Any, dims: Sequence[int] = (1, 0)) -> Expression:
    """The dims of x in another order: dim i of the result is dim dims[i] of x.

    {2,3} -> {3,2}; a vector {n} -> {1,n}; dims=(2, 0, 1) takes {a,b,c} to {c,a,b}. ValueError unless dims is a
    permutation of all dims.
    """
    return _core._transpose(x, dims)


def concatenate_cols(xs: Iterable[Any]) -> Expression:
    """Joins columns or matrices side by side: {m}, {m} -> {m,2}; {m,2}, {m,3} -> {m,5}.

    Batch sizes must be equal or 1. ValueError for other shapes or an empty list.
    """
    return concatenate(xs, 1)


# ---- choosing ------------------------------------------------------------------------------------------------------


def pick(e: Any, index: int | Sequence[int] = 0, dim: int = 0) -> Expression:
    """Element `index` along a dim, which is removed: {n} -> {1}; {m,n} -> {n} (dim=0) or {m} (dim=1).

    A list of indices is pick_batch(). Negative indices count from the end. IndexError when out of range.
    """
    if type(index) is int or isinstance(index, (float, np.bool_, str)) or _is_index(index):
        return _core._pick(e, index, dim)  # type: ignore[arg-type]  # hasattr says it is one index
    several: Expression = _pick_several(e, index, dim)
    return several


def _is_index(index: Any) -> bool:
    """One whole number? All arrays have __index__. An argument of a cell is asked for nothing else: it would be a value."""
    return hasattr(index, "__index__") and not (issubclass(type(index), np.ndarray) and index.ndim > 0)


@partial(told, name="pick")
def _pick_several(e: Any, index: Sequence[int], dim: int) -> Expression:
    return pick_batch(e, index, dim)


def pick_batch(e: Any, indices: Sequence[int], dim: int = 0) -> Expression:
    """One index per batch element along a dim, which is removed: {m,n} X b, b indices -> {n} X b.

    e without a batch is used for every index. IndexError when one is out of range.
    """
    indices = list(indices)
    return _core._pick_batch(e, indices, dim, len(indices))


def pick_range(x: Any, s: int, e: int, d: int = 0) -> Expression:
    """Elements s..e-1 along dim d: {n} -> {e-s}. IndexError when out of range, ValueError when empty."""
    if type(s) is not int or type(e) is not int:
        s, e = _plain(s), _plain(e)
    return _core._pick_range(x, s, e - s, d)


def pickrange(x: Any, s: int, e: int, d: int = 0) -> Expression:
    """Old name of pick_range(), which DyNet still has."""
    return pick_range(x, s, e, d)


def pick_batch_elems(x: Any, vs: Sequence[int]) -> Expression:
    """Batch elements vs[0], vs[1], ... as a mini-batch: {..} X b -> {..} X len(vs). IndexError when out of range."""
    vs = list(vs)
    return _core._pick_batch_elems(x, vs, len(vs))


def select_rows(x: Any, rs: Sequence[int]) -> Expression:
    """Rows rs[0], rs[1], ... (elements along the first dim); a row may come several times. {m,n} -> {len(rs),n}.

    Negative indices count from the end. IndexError if one is out of range, ValueError if there are none.
    """
    rs = list(rs)
    return _core._select(x, rs, 0, len(rs))


def select_cols(x: Any, cs: Sequence[int]) -> Expression:
    """Columns cs[0], cs[1], ... (elements along the second dim): {m,n} -> {m,len(cs)}.

    Negative indices count from the end. IndexError if one is out of range, ValueError if there are none, or if x is a vector.
    """
    cs = list(cs)
    return _core._select(x, cs, 1, len(cs))


def strided_select(
    x: Any, strides: Sequence[int], range_from: Sequence[int] = (), range_to: Sequence[int] = ()
) -> Expression:
    """Every strides[i]-th element of range_from[i]..range_to[i]-1 along dim i; then comes the batch.

    Lists may be short: the rest is stride 1, from 0, to the end. ValueError for a stride below 1, an empty range or a fraction,
    IndexError for a range that is out of bounds.
    """
    found = _core._strided(x, strides, range_from, range_to)
    if found is not None:
        return found
    x = as_expression(x)
    sizes = [*_shape(x), x.batch_size]
    given = {"strides": strides, "range_from": range_from, "range_to": range_to}
    steps, start, stop = ([_whole(v, f"[strided_select] {name}") for v in vs] for name, vs in given.items())
    k = max(len(steps), len(start), len(stop))
    if k > len(sizes):
        raise ValueError(f"[strided_select] {k} positions are too many for {_text(x)} (the last one is the batch)")
    steps += [1] * (k - len(steps))
    start += [0] * (k - len(start))
    stop += sizes[len(stop) : k]
    for i, (a, b, step) in enumerate(zip(start, stop, steps, strict=True)):
        if step < 1:
            raise ValueError(f"[strided_select] strides must be positive; got {step}")
        if not 0 <= a <= b <= sizes[i]:
            raise OutOfRangeError(f"[strided_select] range {a}..{b} is out of bounds at position {i} of {_text(x)}")
    return _core._slice(x, start, steps, [-((a - b) // s) for a, b, s in zip(start, stop, steps, strict=True)])


# ---- sums, means, moments ------------------------------------------------------------------------------------------


def sum_dim(x: Any, d: int | Sequence[int], b: bool = False, n: int = 0) -> Expression:
    """Sum over the dims d, which are removed: {a,b,c} -> {b} with d=[0, 2]; if none are left, {1}.

    With b=True over the mini-batch, too. n is not used. ValueError if x has no such dim, or if one is given twice.
    """
    x = as_expression(x)
    return _core._sum_dims(x, _core._dims_of(x, d, "[sum_dim] dims"), b)


def mean_dim(x: Any, d: int | Sequence[int], b: bool = False, n: int = 0) -> Expression:
    """Mean over the dims d, which are removed: {a,b,c} -> {b} with d=[0, 2]; if none are left, {1}.

    With b=True over the mini-batch, too. n > 0 is divided by instead of the count. ValueError if x has no such dim, or if one
    is given twice.
    """
    x = as_expression(x)
    return _core._mean_dims(x, _core._dims_of(x, d, "[mean_dim] dims"), b, n)


def std_dim(x: Any, d: int | Sequence[int], b: bool = False, n: int = 0) -> Expression:
    """Population standard deviation over the dims d, which are removed: {a,b,c} -> {b} with d=[0, 2].

    With b=True over the mini-batch, too. n is not used. ValueError if x has no such dim, or if one is given twice.
    """
    x = as_expression(x)
    return _core._std_dims(x, _core._dims_of(x, d, "[std_dim] dims"), b)


def moment_dim(x: Any, d: int | Sequence[int], r: int, b: bool = False, n: int = 0) -> Expression:
    """Mean of x ** r over the dims d, which are removed: {a,b,c} -> {b} with d=[0, 2].

    b, n and errors as in mean_dim().
    """
    return mean_dim(_power(x, r), d, b, n)


def _power(x: Any, r: int) -> Expression:
    """x ** r, without a node where that is x."""
    return as_expression(x) if r == 1 else _core._pow_const(x, r)


def std_elems(x: Any) -> Expression:
    """Population standard deviation of all elements of each batch element: {..} X b -> {1} X b."""
    x = as_expression(x)
    return _core._std_dims(x, range(x.ndim), False)


def moment_elems(x: Any, r: int) -> Expression:
    """Mean of x ** r over all elements of each batch element: {..} X b -> {1} X b."""
    return mean_elems(_power(x, r))


def std_batches(x: Any) -> Expression:
    """Population standard deviation over the mini-batch: {..} X b -> {..}."""
    return _core._std_dims(x, (), True)


def moment_batches(x: Any, r: int) -> Expression:
    """Mean of x ** r over the mini-batch: {..} X b -> {..}."""
    return mean_batches(_power(x, r))


def sum_rows(x: Any) -> Expression:
    """Sum of the rows of a matrix: {m,n} -> {n}. The same as sum_dim(x, 0)."""
    return _core._sum_dims(x, (0,), False)


def sum_cols(x: Any) -> Expression:
    """Sum of the columns of a matrix: {m,n} -> {m}. The same as sum_dim(x, 1), so ValueError if x is a vector."""
    return _core._sum_dims(x, (1,), False)


def average_cols(x: Any) -> Expression:
    """Mean of the columns of a matrix: {m,n} -> {m}. The same as mean_dim(x, 1), so ValueError if x is a vector."""
    return _core._mean_dims(x, (1,), False, 0)


# ---- distances, norms and losses -----------------------------------------------------------------------------------


def squared_distance(x: Any, y: Any) -> Expression:
    """Sum of (x - y) squared. x and y have one shape; the result is {1}.

    Batch sizes must be equal or 1. ValueError for different shapes.
    """
    found = _core._sum_of_squares(x, y)
    return sum_elems(_core._squared_difference(*_same_shape("squared_distance", x, y))) if found is None else found


def l1_distance(x: Any, y: Any) -> Expression:
    """Sum of abs(x - y), whose gradient is 0 where they are equal. x and y have one shape; the result is {1}.

    Batch sizes must be equal or 1. ValueError for different shapes.
    """
    found = _core._sum_of_differences(x, y)
    return sum_elems(_core._abs_difference(*_same_shape("l1_distance", x, y))) if found is None else found


def huber_distance(x: Any, y: Any, c: float = 1.345) -> Expression:
    """Sum of d * d / 2 where d = abs(x - y) is at most c, and of c * d - c * c / 2 elsewhere (Huber, 1964).

    x and y have one shape; the result is {1}. Batch sizes must be equal or 1. ValueError for different shapes.
    """
    return sum_elems(_core._huber(*_same_shape("huber_distance", x, y), c))


def squared_norm(x: Any) -> Expression:
    """Sum of the squares of all elements of each batch element: {..} X b -> {1} X b."""
    x = as_expression(x)
    return dot_product(x, x)


def binary_log_loss(x: Any, y: Any) -> Expression:
    """Sum of -(y log x + (1 - y) log(1 - x)); x are probabilities, y targets. Logarithms are bounded below.

    x and y have one shape; the result is {1}. Batch sizes must be equal or 1. ValueError for different shapes.
    """
    found = _core._sum_of_log_losses(x, y)
    return sum_elems(_core._binary_log_loss_terms(*_same_shape("binary_log_loss", x, y))) if found is None else found


def pairwise_rank_loss(x: Any, y: Any, m: float = 1.0) -> Expression:
    """max(0, m - x + y), element by element: x should be larger than y by the margin m.

    x and y have one shape, which is also that of the result. Batch sizes must be equal or 1. ValueError for different shapes.
    """
    return _core._pairwise_rank(*_same_shape("pairwise_rank_loss", x, y), m)


def poisson_loss(log_lambda: Any, x: Any) -> Expression:
    """-log of the Poisson probability of x (a number or an expression) at the rate exp(log_lambda), element by element.

    Shapes must be equal or broadcast, as for cmult(). ValueError otherwise.
    """
    return _core._poisson(log_lambda, x)


def colwise_add(x: Any, y: Any) -> Expression:
    """A vector added to every column of a matrix: {m,n}, {m} -> {m,n}. ValueError for other shapes."""
    found = _core._added_to_columns(x, y)
    if found is not None:
        return found
    x, y = as_expression(x), as_expression(y)
    a, b = x.dim()[0], y.dim()[0]
    if len(a) > 2 or len(b) > 2 or b[1:] not in ((), (1,)) or b[0] != a[0]:
        raise ValueError(f"[colwise_add] needs a matrix {{m,n}} and a vector {{m}}; got {_text(x)}, {_text(y)}")
    added: Expression = x + y
    return added


def weight_norm(w: Any, g: Any) -> Expression:
    """g * w / norm(w): a weight with its length apart from its direction (Salimans, Kingma, 2016).

    w of any shape, g {1}; the result has the shape of w. ValueError if g is more than one number.
    """
    found = _core._normed(w, g)
    if found is not None:
        return found
    g = as_expression(g)
    if not _like(_shape(g), (1,)):
        raise ValueError(f"[weight_norm] g must be one number; got {_text(g)}")
    return cmult(w, _core.cdiv(g, l2_norm(w)))


def trace_of_product(x: Any, y: Any) -> Expression:
    """Trace of x times the transpose of y, which is the sum of the products of their elements.

    x and y have one shape; the result is {1}. Batch sizes must be equal or 1. ValueError for different shapes.
    """
    return dot_product(x, y)


# ---- convolutions and tensors --------------------------------------------------------------------------------------


def fold_rows(x: Any, nrows: int = 2) -> Expression:
    """Sums of nrows consecutive rows: {m,n} -> {m/nrows,n}; {m} -> {m/nrows,1}. ValueError when m is not a multiple."""
    found = _core._folded_rows(x, nrows)
    if found is not None:
        return found
    x, nrows = as_expression(x), _whole(nrows, "[fold_rows] nrows")
    rows, *rest = _shape(x)
    if nrows < 1 or rows % nrows:
        raise ValueError(f"[fold_rows] the number of rows must be a multiple of nrows={nrows}; got {_text(x)}")
    return _core._sum_dims(_core.reshape(x, (nrows, rows // nrows, *(rest or [1])), x.batch_size), (0,), False)


def kmh_ngram(x: Any, v: int) -> Expression:
    """Sums of v neighbouring columns: {m,k} -> {m,k-v+1}. ValueError when v is not 1..k."""
    found = _core._ngrams(x, v)
    if found is not None:
        return found
    x, v = as_expression(x), _whole(v, "[kmh_ngram] v")
    shape = _shape(x)
    if len(shape) != 2 or not 1 <= v <= shape[1]:
        raise ValueError(f"[kmh_ngram] needs a matrix of at least v={v} columns, v >= 1; got {_text(x)}")
    places = shape[1] - v + 1
    return esum([_core._pick_range(x, j, places, 1) for j in range(v)])


def contract3d_1d_bias(x: Any, y: Any, b: Any) -> Expression:
    """contract3d_1d(x, y) + b: x {m,n,k}, y {k}, b {m,n} -> {m,n}. ValueError for other shapes."""
    x, b = _with_bias("contract3d_1d_bias", x, b, 2)
    added: Expression = _core.contract3d_1d(x, y) + b
    return added


def contract3d_1d_1d_bias(x: Any, y: Any, z: Any, b: Any) -> Expression:
    """contract3d_1d_1d(x, y, z) + b: x {m,n,k}, y {k}, z {n}, b {m} -> {m}. ValueError for other shapes."""
    x, b = _with_bias("contract3d_1d_1d_bias", x, b, 1)
    added: Expression = _core.contract3d_1d_1d(x, y, z) + b
    return added


def _with_bias(op: str, x: Any, b: Any, nd: int) -> tuple[Any, Any]:
    """Two expressions; b has the first nd dims of x, which are those of the result. `+` would broadcast."""
    if _core._begins_like(x, b, nd):
        return x, b
    x, b = as_expression(x), as_expression(b)
    if not _like((*_shape(x), 1)[:nd], _shape(b)):
        raise ValueError(f"[{op}] b must have the shape of the result; got {_text(x)}, {_text(b)}")
    return x, b
