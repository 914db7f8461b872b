"""Which ops the GPU leaves to the host: none of the op table's. test_counts.py has the tasks that are measured, and
test_device.py the recipes.
"""

from __future__ import annotations

from pathlib import Path

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


def test_ops(on_gpu: Run) -> None:
    """Forward and backward of every row of the op table."""
    done = on_gpu("-c", OPS, DYNET_LITE_BACKEND="cuda")
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.strip() == f"calls True on the host {sorted(ON_THE_HOST)}"


HOST_OPS = "circ_corr,tanh,matmul,_lstm_step,softmax,esum"


def test_ops_without_a_kernel_run_on_the_host(on_gpu: Run) -> None:
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
    done = on_gpu("-c", program, DYNET_LITE_CUDA_ON_HOST=HOST_OPS)
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.strip() == "on the host True"


LOSS = f"""
import sys
sys.path[:0] = [{str(ROOT / "tests" / "engine")!r}]
import apart_memory
import dynet_lite as dy
from dynet_lite import _core

def on(backend):
    with dy.configure(backend=backend, random_seed=1):
        return list(apart_memory.training(0))
apart_memory.same(on("cpu"), on("cuda"), exact=False)
_core.settings.backend = "cuda"
print("on the host", dy.stats()["device"]["on_host"])
"""


def test_what_keeps_addresses_does_not_run_on_the_host(on_gpu: Run) -> None:
    """Its outputs go back to the GPU, the addresses of the host's copy with them: the pass that makes it is off instead."""
    done = on_gpu("-c", LOSS, DYNET_LITE_CUDA_ON_HOST="_affine_loss")
    assert done.stdout.strip() == "on the host 0", done.stdout + done.stderr[-3000:]


EXPLAINED = """
import dynet_lite as dy

dy.configure(device="cuda")
xs = [dy.inputTensor([0.1 * i, 1.0, 2.0]) for i in range(4)]
rolled = [dy.circ_corr(x, dy.softmax(x)) for x in xs]
rolled += [dy.circ_corr(dy.inputTensor([1.0, i]), dy.inputTensor([i, 1.0])) for i in range(2)]
dy.esum([dy.sum_elems(dy.tanh(x)) for x in rolled]).value()
calls = dy.stats()["device"]["on_host"]
seen = dy.explain_batches()
lines = [line for line in str(seen).splitlines() if "host" in line]
print(calls, seen.on_host, seen.to_dict()["on_host"] == seen.on_host, [kind.op for kind in seen.kinds if kind.on_host])
print(seen._repr_html_().count("on the host"), len(lines), *lines[:1])
"""


def test_explain_batches_names_them(on_gpu: Run) -> None:
    """With as many batches as there were calls."""
    done = on_gpu("-c", EXPLAINED, DYNET_LITE_CUDA_ON_HOST="circ_corr,softmax")
    assert done.stdout.splitlines() == [
        "3 {'circ_corr': 2, 'softmax': 1} True ['circ_corr', 'softmax', 'circ_corr']",
        "3 4 the GPU has no kernels for these ops, which ran on the host: circ_corr (2 batches), softmax (1 batch)",
    ], done.stdout + done.stderr[-3000:]
    assert on_gpu("-c", EXPLAINED).stdout.splitlines() == ["0 {} True []", "0 0"]
