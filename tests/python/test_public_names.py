"""What dir(dynet_lite) shows a newcomer, and what messages about wrong arguments call the function that was used."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dynet_lite as dy
from dynet_lite.compat import names, old_names

LIST = Path(__file__).with_name("public_names.txt")


def test_dir_lists_what_a_newcomer_needs() -> None:
    """A new name is added to the file, or to UNLISTED in dynet_lite/compat/names.py."""
    assert dir(dy) == LIST.read_text(encoding="utf-8").split()
    assert not [name for name in dir(dy) if inspect.ismodule(getattr(dy, name))]
    unlisted = set(dy.__all__) - set(dir(dy))
    assert {
        *old_names.__all__,
        "scalarInput",
        "init_from_params",
        "HAVE_CUDA",
        "zeroes",
        "distributed",
        "dynet_config",
    } <= unlisted
    assert unlisted <= {*old_names.__all__, *names.UNLISTED, "distributed", "config", "dynet_config"}
    assert not set(names.UNLISTED) & set(dir(dy))


@pytest.mark.parametrize("name", [
    *names.UNLISTED, *old_names.__all__, *old_names.functions(), "config", "distributed", "dynet_config", "nn", "text", "viz",
])  # fmt: skip
def test_what_is_not_listed_can_be_had(name: str) -> None:
    scope: dict[str, Any] = {}
    exec(f"from dynet_lite import {name}", scope)
    assert name in scope and name not in dir(dy)


def matrix(*shape: int) -> Any:
    return dy.inputTensor(np.ones(shape))


def batch(*shape: int) -> Any:
    return dy.inputTensor(np.ones(shape), batched=True)


WRONG: dict[str, Callable[[], Any]] = {
    "sum_dim": lambda: dy.sum_dim(matrix(2, 2), 5),
    "mean_dim": lambda: dy.mean_dim(matrix(2, 2), -3),
    "std_dim": lambda: dy.std_dim(matrix(2, 2), [0, 0]),
    "moment_dim": lambda: dy.moment_dim(matrix(2, 2), 5, 2),
    "sum_cols": lambda: dy.sum_cols(matrix(2)),
    "average_cols": lambda: dy.average_cols(matrix(2)),
    "select_rows": lambda: dy.select_rows(matrix(2, 2), [9]),
    "select_cols": lambda: dy.select_cols(matrix(2, 2), []),
    "strided_select": lambda: dy.strided_select(matrix(2, 2), [1], [0], [9]),
    "concatenate_cols": lambda: dy.concatenate_cols([matrix(2), matrix(3)]),
    "colwise_add": lambda: dy.colwise_add(batch(2, 3), batch(2, 4)),
    "weight_norm": lambda: dy.weight_norm(batch(2, 3), batch(1, 4)),
    "trace_of_product": lambda: dy.trace_of_product(matrix(2, 2), matrix(3)),
    "squared_distance": lambda: dy.squared_distance(batch(2, 3), batch(2, 4)),
    "l1_distance": lambda: dy.l1_distance(batch(2, 3), batch(2, 4)),
    "huber_distance": lambda: dy.huber_distance(batch(2, 3), batch(2, 4)),
    "binary_log_loss": lambda: dy.binary_log_loss(batch(2, 3), batch(2, 4)),
    "pairwise_rank_loss": lambda: dy.pairwise_rank_loss(batch(2, 3), batch(2, 4)),
    "poisson_loss": lambda: dy.poisson_loss(batch(2, 3), batch(2, 4)),
    "hinge_batch": lambda: dy.hinge_batch(batch(3, 2), [0, 9]),
    "pickneglogsoftmax_batch": lambda: dy.pickneglogsoftmax_batch(batch(3, 2), [0]),
    "contract3d_1d_bias": lambda: dy.contract3d_1d_bias(matrix(2, 2), matrix(2), matrix(2)),
    "contract3d_1d_1d_bias": lambda: dy.contract3d_1d_1d_bias(matrix(2, 2), matrix(2), matrix(2), matrix(2)),
    "log_softmax": lambda: dy.log_softmax(matrix(2), [9]),
    "segment_mean": lambda: dy.segment_mean(matrix(2, 2), [0, 9], 3),
    "segment_sum": lambda: dy.segment_sum(matrix(2, 2), [0]),
    "x + y": lambda: matrix(2) + matrix(3),
    "x - y": lambda: matrix(2) - matrix(3),
}


@pytest.mark.parametrize("called", WRONG)
def test_messages_name_the_function_that_was_called(called: str) -> None:
    dy.renew_cg()
    with pytest.raises((ValueError, IndexError)) as raised:
        WRONG[called]()
    assert str(raised.value).startswith(f"[{called}] "), raised.value


def test_plans_name_public_functions() -> None:
    dy.renew_cg()
    x = dy.sum_dim(dy.select_cols(dy.sin(matrix(2, 9)), [3, 0]), 1)
    dy.forward([x, dy.mean_dim(x, 0), dy.segment_mean(dy.sin(matrix(2, 2)), [0, 0])])
    ops = {line.split("\t")[1].split()[0] for line in dy.plan_text().splitlines()[1:]}
    assert ops == {"sin", "select_cols", "sum_dim", "mean_dim", "segment_mean"}
