"""Random inputs, dropout and noise: what the compiled functions leave to Python.

Dropout with p = 0 and noise with stddev = 0 give an expression back as it is: no node is made. All functions draw new
numbers at each evaluation; seed with ``dy.reset_random_seed``.
"""

from __future__ import annotations

from typing import Any

from dynet_lite import _core
from dynet_lite._core import Expression, random_bernoulli, random_gumbel, random_normal, random_uniform

__all__ = [
    "block_dropout",
    "dropout",
    "dropout_batch",
    "dropout_dim",
    "noise",
    "random_bernoulli",
    "random_gumbel",
    "random_normal",
    "random_uniform",
]


def _nothing_to_do(x: Any, amount: float) -> bool:
    """Is this call the identity? Arrays are turned into expressions by the op, so they are not."""
    return amount == 0 and isinstance(x, Expression)


def dropout(x: Any, p: float) -> Expression:
    """Each number of x becomes 0 with probability p and is divided by 1 - p otherwise (Srivastava et al., 2014).

    Same shape. ValueError unless 0 <= p < 1: with p = 1 there is nothing left to scale up (zeros are dy.zeros(...), or
    block_dropout(x, 1)). With p = 0 the result is x itself.
    """
    return x if _nothing_to_do(x, p) else _core.dropout(x, p)


def dropout_batch(x: Any, p: float) -> Expression:
    """Dropout of whole batch elements of x: each becomes 0 with probability p and is divided by 1 - p otherwise.

    Same shape. ValueError unless 0 <= p < 1.
    """
    return x if _nothing_to_do(x, p) else _core.dropout_batch(x, p)


def dropout_dim(x: Any, d: int, p: float) -> Expression:
    """Dropout of whole lines of x along dim d: of {r, c}, d=0 drops columns and d=1 drops rows.

    What is kept is divided by 1 - p. Same shape. ValueError unless 0 <= p < 1 and d is a dim of x.
    """
    if _nothing_to_do(x, p) and 0 <= d < x.ndim:
        return x  # type: ignore[no-any-return]
    return _core.dropout_dim(x, d, p)


def block_dropout(x: Any, p: float) -> Expression:
    """x as a whole, all batch elements together, becomes 0 with probability p and is divided by 1 - p otherwise.

    Same shape. ValueError unless 0 <= p <= 1; p = 1 gives zeros.
    """
    return x if _nothing_to_do(x, p) else _core.block_dropout(x, p)


def noise(x: Any, stddev: float) -> Expression:
    """x plus Gaussian noise of mean 0. Same shape. ValueError when stddev is negative or not finite."""
    return x if _nothing_to_do(x, stddev) else _core.noise(x, stddev)
