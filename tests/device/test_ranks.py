"""Ranks with GPUs: each takes its own, and gradients are added up in the memory of the host."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from mpi import VARIABLES, mpiexec

from build import PACKAGE

RECIPE = Path(__file__).resolve().parents[2] / "recipes" / "bilstm_tagger.py"

# Trains a small tagger; prints the GPU and the sum of what it computed there, rank 0 writes the weights.
PROGRAM = """
import os, sys
import numpy as np
import dynet_lite as dy

world = dy.distributed.init()
device = sys.argv[1]
if device == "cuda":
    device = f"cuda:{world.device()}"
dy.configure(device=device)
dy.reset_random_seed(5)
rng = np.random.RandomState(3)
data = [(rng.randint(0, 30, rng.randint(2, 6)).tolist(), int(rng.randint(4))) for _ in range(24)]
m = dy.ParameterCollection()
words, lstm = m.add_lookup_parameters((30, 6)), dy.VanillaLSTMBuilder(1, 6, 8, m)
w, b = m.add_parameters((4, 8)), m.add_parameters(4)
trainer = dy.distributed.Trainer(dy.AdamTrainer(m, 0.01), bucket=400)
for step in range(6):
    batch = data[4 * step : 4 * step + 4]
    dy.renew_cg()
    losses = []
    for xs, y in world.share(batch, cost=lambda x: len(x[0])):
        h = lstm.initial_state().transduce([words[x] for x in xs])[-1]
        losses.append(dy.pickneglogsoftmax(dy.affine_transform([b, w, h]), y))
    if losses:
        trainer.backward(dy.esum(losses) * (1 / len(batch)))
    trainer.update()
trainer.check_weights()
calls = dy._core.backend_counts()["calls"]
os.write(1, f"{world.rank} {dy.config.get('device')} {calls > 0}\\n".encode())
if world.rank == 0:
    np.save(sys.argv[2], np.concatenate([p.as_array().ravel() for p in m.parameters_list() + m.lookup_parameters_list()]))
"""


def on_ranks(n: int, libcuda: Path, folder: Path, *words: object, gpus: int = 2, memory: str = "1") -> str:
    env = {**os.environ, **VARIABLES, "PYTHONPATH": str(PACKAGE), "DYNET_LITE_LIBCUDA": str(libcuda), "DYNET_LITE_STANDIN": f"gpus={gpus}",
           "XDG_CACHE_HOME": str(folder / "cache"), "DYNET_LITE_SHARED_MEMORY": memory}  # fmt: skip
    command = [mpiexec(), "-n", str(n), sys.executable, *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, env=env, cwd=folder, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]
    return done.stdout


@pytest.mark.parametrize("memory", ["1", "0"], ids=["memory", "messages"])
def test_each_rank_takes_a_gpu(libcuda: Path, tmp_path: Path, memory: str) -> None:
    import numpy as np

    said = on_ranks(2, libcuda, tmp_path, "-c", PROGRAM, "cuda", "gpu.npy", memory=memory)
    assert sorted(said.splitlines()) == ["0 cuda:0 True", "1 cuda:1 True"]
    said = on_ranks(2, libcuda, tmp_path, "-c", PROGRAM, "cpu", "cpu.npy", memory=memory)
    assert sorted(said.splitlines()) == ["0 cpu False", "1 cpu False"]
    gpu, cpu = np.load(tmp_path / "gpu.npy"), np.load(tmp_path / "cpu.npy")
    assert np.abs(gpu - cpu).max() < 1e-4 * np.abs(cpu).max()


def test_ranks_take_turns_if_there_are_fewer_gpus(libcuda: Path, tmp_path: Path) -> None:
    said = on_ranks(3, libcuda, tmp_path, "-c", PROGRAM, "cuda", "gpu.npy")
    assert sorted(said.splitlines()) == ["0 cuda:0 True", "1 cuda:1 True", "2 cuda:0 True"]


def test_a_recipe_gives_each_rank_a_gpu(libcuda: Path, tmp_path: Path) -> None:
    program = f"""
import os, runpy, sys
import dynet_lite as dy
begin = dy.distributed.Trainer.__init__
def noted(self, *arguments):
    os.write(1, f"device {{dy.distributed.current().rank}} {{dy.config.get('device')}}\\n".encode())
    begin(self, *arguments)
dy.distributed.Trainer.__init__ = noted
sys.argv = ["tagger", "--smoke", "--device", "cuda"]
runpy.run_path({str(RECIPE)!r}, run_name="__main__")
"""
    said = on_ranks(2, libcuda, tmp_path, "-c", program)
    assert sorted(line for line in said.splitlines() if line.startswith("device")) == [
        "device 0 cuda:0",
        "device 1 cuda:1",
    ], said
