"""What a training step asks of the GPU: launches, copies and their bytes, waits, and calls that the host runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from build import Run

ROOT = Path(__file__).resolve().parents[2]
Counts = dict[str, Any]
# Of a step: a buffer goes to the GPU for each pass, and only the loss is waited for. The other download is the norm that
# gradients are clipped to, which comes with it.
ALWAYS = {"uploads": 2, "waits": 1, "downloads": 2, "bytes_downloaded": 12, "updates": 1, "on_host": 0, "cublas": 0}

TAGGER = """
import json
import numpy as np
import dynet_lite as dy

dy.configure(random_seed=7, device="cuda")
pc = dy.ParameterCollection()
words = pc.add_lookup_parameters((500, 16))
lstm = dy.BiRNNBuilder(1, 16, 16, pc, dy.VanillaLSTMBuilder)
w, b = pc.add_parameters((9, 16)), pc.add_parameters(9)
trainer = dy.AdamTrainer(pc)
rng = np.random.default_rng(1)
lengths = np.concatenate([[38], rng.integers(3, 38, size=63)])
sentences = [[int(i) for i in rng.integers(500, size=n)] for n in lengths]
for step in range(3):
    before = dy.stats()["device"]
    dy.renew_cg()
    losses = []
    for sentence in sentences:
        for word, h in zip(sentence, lstm.transduce([words[i] for i in sentence])):
            losses.append(dy.pickneglogsoftmax(dy.affine_transform([b, w, h]), word % 9))
    loss = dy.esum(losses)
    loss.backward()
    trainer.update()
    loss.value()
print(json.dumps({name: n - before[name] for name, n in dy.stats()["device"].items()}))
"""

# A task of benchmarks/ with networks of few units, its program and the one with calls for whole sequences.
TASK = f"""
import json, sys
sys.path[:0] = [{str(ROOT / "benchmarks")!r}]
import numpy as np
import dynet_lite as dy
from tasks.common import initial_weights
from tasks.registry import TASKS

task, small = TASKS[sys.argv[1]], json.loads(sys.argv[2])
sizes = {{name: small.get(name, max(n // 8, 2)) for name, n in task.SIZES["base"].items()}}
data = task.data(np.random.RandomState(1), sizes["batch"], sizes)
found = []
for kind in (task.Program, getattr(task, "Idiomatic", task.Program)):
    losses = {{"cpu": [], "cuda": []}}
    for device in losses:
        with dy.configure(device=device):
            program = kind(dy, sizes, initial_weights(task.shapes(sizes), 1))
            trainer = dy.AdamTrainer(program.model)
            for _ in range(3):
                before = dy.stats()["device"]
                dy.renew_cg()
                loss = program.batch_loss(data)
                losses[device].append(loss.value())
                loss.backward()
                trainer.update()
            counts = {{name: n - before[name] for name, n in dy.stats()["device"].items()}}
    found.append(counts | losses)
print(json.dumps(found))
"""


def counted(run: Run, *words: str, **more: str) -> Any:
    done = run("-c", *words, **more)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)


def same_always(counts: Counts) -> None:
    assert {name: counts[name] for name in ALWAYS} == ALWAYS


def test_a_tagger(on_gpu: Run) -> None:
    """64 sentences of up to 38 words, clipping included: both directions of a level in one launch."""
    counts: Counts = counted(on_gpu, TAGGER)
    same_always(counts)
    assert counts["launches"] <= 148 and counts["bytes_uploaded"] <= 415_000


def test_a_step_that_asks_for_more_is_seen(on_gpu: Run) -> None:
    """A value that is read on the way, and an op that is left to the host."""
    last = "    loss = dy.esum(losses)"
    read = counted(on_gpu, TAGGER.replace(last, "    losses[0].value()\n" + last))
    assert read["waits"] == 2 and read["uploads"] == 3 and read["on_host"] == 0
    left = counted(on_gpu, TAGGER, DYNET_LITE_CUDA_ON_HOST="esum")
    assert left["waits"] > 1 and left["on_host"] > 0
    for counts in (read, left):
        with pytest.raises(AssertionError):
            same_always(counts)


# The most launches and bytes of a step, of the program and of the other one.
TASKS = {
    "tagger": ((167, 82_000), (164, 76_000)),
    "tagger_char": ((245, 110_000), (242, 103_000)),
    "treelstm": ((176, 103_000), (96, 38_000)),
    "parser": ((496, 196_000), (493, 184_000)),
    "rnnlm": ((162, 51_000), (159, 41_000)),
    "rnnlm_hand": ((162, 57_000), (199, 47_000)),
    "biaffine": ((239, 143_000), (258, 159_000)),
    "seq2seq": ((700, 265_000), (701, 273_000)),
}


@pytest.mark.parametrize("task", TASKS)
def test_tasks(task: str, on_gpu: Run) -> None:
    """Mini-batches of four. Launches grow with the length of sequences, not with their number; losses are the CPU's."""
    found: list[Counts] = counted(on_gpu, TASK, task, json.dumps({"words": 60, "batch": 4}))
    for counts, (launches, uploaded) in zip(found, TASKS[task], strict=True):
        same_always(counts)
        assert counts["calls"] > 20 and counts["cuda"] == pytest.approx(counts["cpu"], rel=1e-5)
        assert counts["launches"] <= launches and counts["bytes_uploaded"] <= uploaded, counts


def test_translation_has_a_call_for_all_sources(on_gpu: Run) -> None:
    """32 sentences, whose sources have 20 lengths: eight calls for each of the 52 steps of the longest target."""
    found: list[Counts] = counted(on_gpu, TASK, "seq2seq", json.dumps({"emb": 8, "hidden": 8, "batch": 32}))
    for counts, calls in zip(found, (1017, 1007), strict=True):
        same_always(counts)
        assert counts["calls"] <= calls and counts["launches"] <= 940, counts


ATTENTION = f"""
import json, sys
sys.path[:0] = [{str(ROOT / "tests" / "engine")!r}]
import dynet_lite as dy
from fused_programs import Model
from ragged_programs import KINDS, decoded

def launches(kind, lengths, steps):
    dy.renew_cg()
    model = Model()
    counts = [dy.stats()["device"]["launches"]]
    loss = decoded(model, lengths, steps, kind)
    loss.value()
    counts.append(dy.stats()["device"]["launches"])
    loss.backward()
    model.gradients()
    counts.append(dy.stats()["device"]["launches"])
    return counts[1] - counts[0], counts[2] - counts[1]

dy.configure(device="cuda")
every = ([12] * 6, [12, 11, 8, 16, 12, 10], [12, 11, 8, 16, 12, 40])  # 8 numbers or more: chains are fused
print(json.dumps([[[launches(kind, lengths, steps) for steps in (4, 8)] for lengths in every] for kind in KINDS]))
"""


def test_all_lengths_of_a_level_are_one_launch(on_gpu: Run) -> None:
    """Sources of many lengths take as many launches as sources of one length: three ways to weigh their columns."""
    for alike, *others in counted(on_gpu, ATTENTION):
        for lengths in others:
            for (forward, backward), (forward_alike, backward_alike) in zip(lengths, alike, strict=True):
                assert forward == forward_alike
                assert backward_alike <= backward <= backward_alike + 1  # what is done once, not at each step


CHAINS = """
import json
import dynet_lite as dy

dy.configure(device="cuda")

def launches(members, width, again):
    pc = dy.ParameterCollection()
    table = pc.add_lookup_parameters((2 * members, width))
    dy.renew_cg()
    losses = []
    for m in range(members):  # rows that lie anywhere, and one that all read
        x, y = table[7 * m % members], table[members if again else 2 * members - 1 - m]
        losses.append(dy.sum_elems(dy.cmult(dy.tanh(x * (m + 0.5)), dy.logistic(y - x))))
    loss = dy.esum(losses)
    counts = [dy.stats()["device"]["launches"]]
    loss.value()
    counts.append(dy.stats()["device"]["launches"])
    loss.backward()
    table.grad_as_array()
    counts.append(dy.stats()["device"]["launches"])
    assert "cmult(tanh(scale(x0, c0)), logistic(sub(x1, x0)))" in dy.plan_text(), dy.plan_text()
    return counts[1] - counts[0], counts[2] - counts[1]

print(json.dumps([[launches(*size, again) for size in ((4, 16), (4, 200), (40, 200))] for again in (False, True)]))
"""


def test_fused_nodes_are_one_launch(on_gpu: Run) -> None:
    """However many run together, how long they are, and whether a row is read by several: a launch each way, and adding."""
    for sizes in counted(on_gpu, CHAINS):
        assert all(counts == sizes[0] for counts in sizes), sizes
