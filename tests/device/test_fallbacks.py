"""Which ops the card leaves to the host: none of the op table's, none in the tasks that are measured, none in recipes."""

from __future__ import annotations

from pathlib import Path

import pytest

from build import Run

ROOT = Path(__file__).resolve().parents[2]
# Ops that run on the host, wherever they occur. An op that gets a kernel goes from here.
ON_THE_HOST: set[str] = set()

OPS = f"""
import sys
sys.path[:0] = [{str(ROOT / "tests" / "ops")!r}]
import dynet_lite as dy
from dynet_lite import _core
from harness import as_input, loss_of, sample
from samples import rows

found, calls = {{}}, 0
for row in rows():
    for seed in range(2):
        before = _core.backend_counts()["on_host"]
        dy.renew_cg()
        arrays, attrs = sample(row, seed)
        inputs = [as_input(a) for a in arrays]
        loss = loss_of(row, row.call(*inputs, **attrs))
        dy.sum_batches(loss).value()
        forward = _core.backend_counts()["on_host"]
        dy.sum_batches(dy.sum_elems(loss)).backward(full=True)
        counts = _core.backend_counts()
        calls += counts["calls"]
        if counts["on_host"] > before:
            found[row.op] = (forward - before, counts["on_host"] - forward)
print("calls", calls > 1000, "on the host", sorted(found))
"""

TASK = f"""
import sys
sys.path[:0] = [{str(ROOT / "benchmarks")!r}]
import numpy as np
import dynet_lite as dy
from dynet_lite import _core
from tasks.common import initial_weights
from tasks.registry import TASKS

task = TASKS[sys.argv[1]]
small = {{"words": 60, "batch": 4}}
sizes = {{name: small.get(name, max(n // 8, 2)) for name, n in task.SIZES["base"].items()}}
calls = 0
for kind in (task.Program, getattr(task, "Idiomatic", task.Program)):
    weights = initial_weights(task.shapes(sizes), 1)
    data = task.data(np.random.RandomState(1), sizes["batch"], sizes)
    program = kind(dy, sizes, weights)
    trainer = dy.AdamTrainer(program.model)
    for _ in range(2):
        dy.renew_cg()
        loss = program.batch_loss(data)
        loss.value()
        loss.backward()
        trainer.update()
counts = _core.backend_counts()
print("calls", counts["calls"] > 20, "on the host", counts["on_host"])
"""


def test_ops(on_card: Run) -> None:
    """Forward and backward of every row of the op table."""
    done = on_card("-c", OPS, DYNET_LITE_BACKEND="cuda")
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.strip() == f"calls True on the host {sorted(ON_THE_HOST)}"


HOST_OPS = "circ_corr,tanh,matmul,_lstm_step,softmax,esum"


def test_ops_without_a_kernel_run_on_the_host(on_card: Run) -> None:
    """With the same numbers, and they are counted: no op is such an op today, so some are named."""
    program = f"""
import sys
sys.path[:0] = [{str(ROOT / "tests" / "engine")!r}]
import apart_memory
import dynet_lite as dy
from dynet_lite import _core

names = {HOST_OPS!r}.split(",")
every = apart_memory.rows()
apart_memory.rows = lambda: [row for row in every if row.op in names]
def on(backend):
    with dy.configure(backend=backend, random_seed=1):
        return list(apart_memory.op_table())
apart_memory.same(on("cpu"), on("cuda"), exact=False)
_core.settings.backend = "cuda"
print("on the host", dy.stats()["device"]["on_host"] >= 2 * len(names))
"""
    done = on_card("-c", program, DYNET_LITE_CUDA_ON_HOST=HOST_OPS)
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.strip() == "on the host True"


@pytest.mark.parametrize(
    "task", ["tagger", "tagger_char", "treelstm", "parser", "rnnlm", "rnnlm_hand", "biaffine", "seq2seq"]
)
def test_tasks(task: str, on_card: Run) -> None:
    """A training step of each task that benchmarks/ measures; test_device.py has the recipes."""
    done = on_card("-c", TASK, task, DYNET_LITE_BACKEND="cuda")
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.strip() == "calls True on the host 0"
