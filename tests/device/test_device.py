"""The CUDA backend on a stand-in for the driver (standin.cc): the same kernels and the same records, on the host.

Its memory cannot be followed by the host, is NaN before it is written, and ends in a page that is not there; work runs
as late as it may. So what would go wrong on a card ends these tests.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dynet_lite import _core

HERE = Path(__file__).resolve().parent
PACKAGE = Path(_core.__file__).parents[1]

sys.path.insert(0, str(HERE))
import build  # noqa: E402

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or build.compiler() is None or not build.CEXT.is_dir(),
    reason="needs Linux, a C++ compiler and the source tree",
)


@pytest.fixture(scope="session")
def libcuda(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build.stand_in(tmp_path_factory.mktemp("standin"))


def run(program: str, libcuda: Path | str, folder: Path, faults: str = "") -> subprocess.CompletedProcess[str]:
    place = {**os.environ, "PYTHONPATH": str(PACKAGE), "DYNET_LITE_LIBCUDA": str(libcuda), "DYNET_LITE_STANDIN": faults}
    command = [sys.executable, "-X", "faulthandler", "-c", program]
    return subprocess.run(command, capture_output=True, text=True, env=place, cwd=folder, timeout=600)


def said(done: subprocess.CompletedProcess[str]) -> str:
    assert done.returncode == 0, f"{done.returncode}\n{done.stdout}\n{done.stderr[-3000:]}"
    return done.stdout


def test_the_checks_of_the_kernels(libcuda: Path, tmp_path: Path) -> None:
    """Those of tests/kernels, 44 million of them, on the kernels of the card."""
    openblas = pytest.importorskip("scipy_openblas32", reason="needs scipy-openblas32 (a build requirement)")
    check = build.table_check(tmp_path, openblas.get_lib_dir())
    place = {**os.environ, "DYNET_LITE_LIBCUDA": str(libcuda), "DYNET_LITE_STANDIN": "open"}
    done = subprocess.run([check], capture_output=True, text=True, env=place, timeout=900)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert " 0 failures" in done.stdout


def test_the_numbers_are_those_of_the_cpu(libcuda: Path, tmp_path: Path) -> None:
    """The op table, random programs and training loops; and twice the same to the last bit."""
    program = f"import runpy; runpy.run_path({str(HERE / 'on_device.py')!r}, run_name='__main__')"
    assert "the same" in said(run(program, libcuda, tmp_path))


STEP = """
import numpy as np
import dynet_lite as dy
from dynet_lite import _core

dy.configure(random_seed=7)

class Steps:
    def __init__(self):
        self.pc = dy.ParameterCollection()
        self.words, self.lstm = self.pc.add_lookup_parameters((20, 8)), dy.BiRNNBuilder(1, 8, 8, self.pc, dy.LSTMBuilder)
        self.w, self.b = self.pc.add_parameters((5, 8)), self.pc.add_parameters(5)
        self.trainer = dy.SimpleSGDTrainer(self.pc, 1e-3)
        self.trainer.set_clip_threshold(0)

    def step(self):
        before = _core.backend_counts()
        dy.renew_cg()
        losses = []
        for k in range(16):
            xs = [self.words[(k * i) % 20] for i in range(4 + k % 3)]
            for i, h in enumerate(self.lstm.transduce(xs)):
                losses.append(dy.sum_elems(dy.square(dy.affine_transform([self.b, self.w, h]))))
        loss = dy.esum(losses)
        loss.backward()
        value = loss.value()
        self.trainer.update()
        return value, {name: n - before[name] for name, n in _core.backend_counts().items()}
"""


def test_what_a_step_costs(libcuda: Path, tmp_path: Path) -> None:
    """Both directions of all sentences in few launches; only the loss is waited for."""
    program = STEP + "dy.configure(backend='cuda'); s = Steps(); s.step(); s.step(); print(s.step()[1])"
    counts: dict[str, Any] = eval(said(run(program, libcuda, tmp_path)))
    assert counts["launches"] <= 150  # 38 calls of ops, most of several kernels, and what lies between them
    assert counts["on_host"] == 2  # sum_elems, forward and backward
    assert counts["downloads"] == 3  # its arguments and its gradient's, and the loss
    assert counts["updates"] == 1


@pytest.mark.parametrize(
    ("faults", "error"),
    [
        ("cards=0", "RuntimeError: [cuda] there is no card 0: the driver knows 0"),
        ("image", "RuntimeError: [cuda] loading the kernels: CUDA_ERROR_INVALID_IMAGE (200)"),
        ("memory=3000000", "OutOfMemoryError: [cuda] taking memory"),
        ("launches=3", "RuntimeError: [cuda] "),
    ],
)
def test_a_card_that_fails_is_an_error(faults: str, error: str, libcuda: Path, tmp_path: Path) -> None:
    program = (
        STEP
        + """
with dy.configure(backend="cuda"):
    try:
        Steps().step()
    except (RuntimeError, MemoryError) as e:
        print(f"{type(e).__name__}: {e}")
dy.renew_cg()
print("goes on:", dy.tanh(dy.inputTensor([0.0])).value())
"""
    )
    text = said(run(program, libcuda, tmp_path, faults))
    assert text.startswith(error) and "goes on: 0.0" in text, text


def test_no_driver_is_an_error(tmp_path: Path) -> None:
    program = STEP + "dy.configure(backend='cuda')\ntry: Steps().step()\nexcept RuntimeError as e: print(e)"
    text = said(run(program, tmp_path / "none.so", tmp_path))
    assert text.startswith("[cuda] there is no NVIDIA driver (") and "none.so cannot be loaded" in text


def test_importing_loads_no_driver(libcuda: Path, tmp_path: Path) -> None:
    program = STEP + "s = Steps(); s.step(); print(sum('libcuda' in line for line in open('/proc/self/maps')))"
    assert said(run(program, libcuda, tmp_path)).strip() == "0"


def test_files_go_from_one_memory_to_the_other(libcuda: Path, tmp_path: Path) -> None:
    program = (
        STEP
        + """
s = Steps()
with dy.configure(backend="cuda"):
    s.step(); s.pc.save("card"); there = s.step()[0]
t = Steps(); t.pc.populate("card"); here = t.step()[0]
print(abs(here - there) < 1e-4 * abs(here))
"""
    )
    assert said(run(program, libcuda, tmp_path)).strip() == "True"


def test_numpy_sees_the_same(libcuda: Path, tmp_path: Path) -> None:
    program = (
        STEP
        + """
s = Steps()
with dy.configure(backend="cuda"):
    for _ in range(3): s.step()
    s.w.scale(0.5)
    print(float(np.abs(s.w.as_array()).sum()), float(s.words.as_array().sum()))
"""
    )
    card = np.array(said(run(program + "", libcuda, tmp_path)).split(), dtype=float)
    cpu = np.array(
        said(run(program.replace('backend="cuda"', 'backend="cpu"'), libcuda, tmp_path)).split(), dtype=float
    )
    assert np.allclose(card, cpu, rtol=1e-4)
