"""Run as a program: small work for every kernel of the GPU, the numbers beside those of the CPU.

For machines that run kernels slowly and look at each access (oclgrind); the op table has many more sizes. Arguments: names
of cases, or a part of all of them such as 1/2.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).parents[1] / "engine"), str(Path(__file__).parents[1] / "ops")]

import apart_memory  # noqa: E402

import dynet_lite as dy  # noqa: E402
from dynet_lite import _core  # noqa: E402

# Of the op table the first row of each of these, or those of ROWS.
OPS = ("_lstm_start _lstm_step _lstm_gates _gru_step _tree_lstm_leaf conv2d maxpooling2d circ_conv esum inverse logdet add "
       "_affines dropout dropout_batch _std_dims l2_norm dot_product sum_elems max_dim cumsum logsumexp_dim _argmax "
       "kmax_pooling logsumexp _segment_sum _segment_max softmax _log_softmax_restricted sparsemax sparsemax_loss "
       "constrained_softmax hinge layer_norm _attention_scores _fused _fused_with_constants").split()  # fmt: skip
# Every op has kernels today. This one is sent to the host, the way of an op without: it copies there and back.
ON_HOST = "circ_corr"
if __name__ == "__main__":  # not for the tests that import this
    os.environ["DYNET_LITE_CUDA_ON_HOST"] = ON_HOST
OPS.append(ON_HOST)
# Both are repeated, one is a number; a line is long; as many steps and inputs as there may be, parts that overlap.
ROWS = {"add": (0, 7, 8), "sum_elems": (0, 6), "_fused": (0, 17, 18, 22)}
# Ops of the GPU's do without; ops that run on the CPU alone use them there. tests/kernels checks them on the stand-in.
UNUSED = {"exp_below", "exp_shifted", "scale_rows", "transpose"}


def long_sum() -> Iterator[Any]:
    """More terms than one thread adds."""
    xs = [dy.inputTensor([0.1 * i, 1.0]) for i in range(70)]
    loss = dy.sum_elems(dy.square(dy.esum(xs)))
    yield loss.npvalue()
    loss.backward(full=True)
    yield xs[3].gradient()


def alike_steps() -> Iterator[Any]:
    """First steps of equal sums, and cells whose states are parts of the gates of others: gradients have one place."""
    x, a, b = (dy.inputTensor([0.1 * i - s for i in range(8)]) for s in (0.3, 0.1, 0.4))
    steps = [_core._lstm_start(x) for _ in range(3)]
    steps += [dy.vanilla_lstm_c(dy.pick_range(a, 3, 5), b), dy.vanilla_lstm_c(dy.pick_range(b, 2, 4), a)]
    loss = dy.esum([dy.sum_elems(dy.square(h)) for h in steps])
    yield loss.npvalue()
    loss.backward(full=True)
    yield from (e.gradient() for e in (x, a, b))


def cases() -> dict[str, Any]:
    """By name: a function that gives arrays."""
    every = apart_memory.rows()
    rows = {op: [row for row in every if row.op == op] for op in OPS}

    def row(op: str) -> Any:
        apart_memory.rows = lambda: [rows[op][i] for i in ROWS.get(op, (0,))]
        return apart_memory.op_table()

    found = {op: lambda op=op: row(op) for op in OPS}
    found["long sum"] = long_sum
    found["alike steps"] = alike_steps
    found["training"] = lambda: islice(apart_memory.training(3, words=2), 4)  # a step, and what the next makes of it
    return found


def on(backend: str, case: Any) -> list[Any]:
    with dy.configure(backend=backend, random_seed=1):
        dy.renew_cg()
        return list(case())


if __name__ == "__main__":
    every = cases()
    wanted = sys.argv[1:] or list(every)
    if "/" in wanted[0]:
        part, parts = map(int, wanted[0].split("/"))
        wanted = list(every)[part - 1 :: parts]
    for name in wanted:
        case = every[name]
        print(name, end=" ", flush=True)
        print(name, file=sys.stderr, flush=True)  # in front of what is said of it
        apart_memory.same(on("cpu", case), on("cuda", case), exact=False)
        print("the same", flush=True)
    os._exit(0)  # OpenCL's libraries end in their own time
