"""The CUDA backend on a stand-in for the driver (standin.cc): the same kernels and the same records, on the host.

Its memory cannot be followed by the host, is NaN before it is written, and ends in a page that is not there; work runs
as late as it may. So what would go wrong on a GPU ends these tests.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from kernel_cases import UNUSED
from opencl import kernels

import build
from build import PACKAGE, Mistake, Run

HERE = Path(__file__).resolve().parent


def run(
    program: str, libcuda: Path | str, folder: Path, faults: str = "", backend: str = "cpu"
) -> subprocess.CompletedProcess[str]:
    place = {**os.environ, "PYTHONPATH": str(PACKAGE), "DYNET_LITE_LIBCUDA": str(libcuda), "DYNET_LITE_STANDIN": faults}
    place["DYNET_LITE_BACKEND"] = backend
    command = [sys.executable, "-X", "faulthandler", "-c", program]
    return subprocess.run(command, capture_output=True, text=True, env=place, cwd=folder, timeout=600)


def said(done: subprocess.CompletedProcess[str]) -> str:
    assert done.returncode == 0, f"{done.returncode}\n{done.stdout}\n{done.stderr[-3000:]}"
    return done.stdout


def test_the_checks_of_the_kernels(libcuda: Path, tmp_path: Path) -> None:
    """Those of tests/kernels, 46 million of them, on the kernels of the GPU."""
    openblas = pytest.importorskip("scipy_openblas32", reason="needs scipy-openblas32 (a build requirement)")
    check = build.table_check(tmp_path, openblas.get_lib_dir())
    place = {**os.environ, "DYNET_LITE_LIBCUDA": str(libcuda), "DYNET_LITE_STANDIN": "open"}
    done = subprocess.run([check], capture_output=True, text=True, env=place, timeout=900)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert " 0 failures" in done.stdout


ON_DEVICE = f"runpy.run_path({str(HERE / 'on_device.py')!r}, run_name='__main__')"


def test_the_numbers_are_those_of_the_cpu(libcuda: Path, tmp_path: Path) -> None:
    """The op table, random programs and training loops; and twice the same to the last bit."""
    few = "sys.argv.append('--few'); " if build.SANITIZERS and not build.ALL else ""
    assert "the same" in said(run(f"import runpy, sys; {few}{ON_DEVICE}", libcuda, tmp_path))


def test_there_is_a_case_for_every_kernel(on_gpu: Run, tmp_path: Path) -> None:
    """That oclgrind looks at each of them (test_opencl.py)."""
    launched = tmp_path / "launched"
    done = on_gpu(str(HERE / "kernel_cases.py"), DYNET_LITE_STANDIN_LAUNCHES=str(launched))
    said(done)
    assert set(kernels()) - set(launched.read_text().split()) == UNUSED


MISTAKES = {
    "what lies outside of the matrix is not set to 0": (
        "products.h",
        "row(rows, l0 + e)[i] : 0.0f;",
        "row(rows, l0 + e)[i] : 1.0f;",
    ),
    "a sum leaves a number out": (
        "rows.h",
        "for (int l = 1; l < kLanes; ++l) sum += part",
        "for (int l = 2; l < kLanes; ++l) sum += part",
    ),
    "what is there is overwritten": ("rows.h", "row(r.from, m)[j], r.add);", "row(r.from, m)[j], false);"),
}


@pytest.mark.parametrize("what", MISTAKES)
def test_a_mistake_in_a_kernel_is_seen(what: str, mistake: Mistake, tmp_path: Path) -> None:
    wrong = build.stand_in(tmp_path, mistake(*MISTAKES[what]))
    done = run(f"import runpy, sys; sys.argv.append('--few'); {ON_DEVICE}", wrong, tmp_path)
    seen = "Not equal" in done.stderr or "is bad: nan" in done.stderr  # another number, or one that nobody wrote
    assert done.returncode == 1 and seen, done.stdout + done.stderr[-2000:]


def test_threads_that_do_not_wait_together_end_the_program(mistake: Mistake, tmp_path: Path) -> None:
    wrong = build.stand_in(tmp_path, mistake("rows.h", "part[lane][column] = sum;\n    DNL", "if (lane) DNL"))
    done = run(f"import runpy, sys; sys.argv.append('--few'); {ON_DEVICE}", wrong, tmp_path)
    assert done.returncode not in (0, 1) and "threads of a block wait for" in done.stderr, done.stderr[-2000:]


@pytest.mark.skipif(not build.SANITIZERS, reason="for tests/sanitize.sh")
def test_the_address_sanitizer_sees_what_lies_outside(
    mistake: Mistake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UBSAN_OPTIONS", "halt_on_error=0")  # which sees it, too, and first
    wrong = build.stand_in(
        tmp_path, mistake("rows.h", "float part[kLanes][kColumns];", "float part[kLanes - 1][kColumns];")
    )
    done = run(f"import runpy, sys; sys.argv.append('--few'); {ON_DEVICE}", wrong, tmp_path)
    assert "AddressSanitizer: global-buffer-overflow" in done.stderr and "sum_rows" in done.stderr, done.stderr[-3000:]


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
    assert counts["launches"] <= 58  # for 38 calls of ops, most of several kernels, and what lies between them
    assert counts["on_host"] == 0
    assert counts["waits"] == counts["downloads"] == 1  # the wait is for the loss
    assert counts["uploads"] == 2  # the forward pass goes ahead of the backward pass
    assert counts["updates"] == 1


SHARED_STATES = """
import numpy as np
import dynet_lite as dy

def gradients(backend):
    with dy.configure(backend=backend, random_seed=3):
        pc = dy.ParameterCollection()
        words = pc.add_lookup_parameters((9, 6))
        builders = [dy.VanillaLSTMBuilder(1, 6, 5, pc), dy.GRUBuilder(1, 6, 5, pc)]
        dy.renew_cg()
        losses = []
        for builder in builders:
            first = [builder.initial_state().add_input(words[i]) for i in range(3)]
            losses += [dy.sum_elems(dy.square(first[k % 3].add_input(words[k]).output())) for k in range(7)]
        loss = dy.esum(losses)
        loss.backward()
        return [loss.npvalue(), words.grad_as_array(), *(p.grad_as_array() for p in pc.parameters_list())]

cpu, GPU, again = gradients("cpu"), gradients("cuda"), gradients("cuda")
assert all(np.allclose(a, b, rtol=1e-3, atol=1e-5) for a, b in zip(cpu, GPU))
assert all(np.array_equal(a, b) for a, b in zip(GPU, again))
print("the same", len(cpu))
"""


def test_gradients_of_a_state_that_several_steps_read(libcuda: Path, tmp_path: Path) -> None:
    """They have one place, which threads of one launch must not all add to."""
    assert "the same" in said(run(SHARED_STATES, libcuda, tmp_path))


RECIPES = sorted(path.stem for path in (HERE.parents[1] / "recipes").glob("*.py"))


@pytest.mark.parametrize("name", RECIPES)
def test_recipes_leave_nothing_to_the_host(name: str, libcuda: Path, tmp_path: Path) -> None:
    program = f"""
import runpy, sys
from dynet_lite import _core
sys.argv = ["{name}", "--smoke"]
try:
    runpy.run_path({str(HERE.parents[1] / "recipes" / f"{name}.py")!r}, run_name="__main__")
except SystemExit as end:
    assert not end.code, end.code
_core.settings.backend = "cuda"
counts = _core.backend_counts()
print("calls", counts["calls"] > 0, "on the host", counts["on_host"])
"""
    assert "calls True on the host 0" in said(run(program, libcuda, tmp_path, backend="cuda"))


@pytest.mark.parametrize(
    ("faults", "error"),
    [
        ("gpus=0", "DeviceError: [cuda] the NVIDIA driver finds no GPU"),
        ("image", "RuntimeError: [cuda] loading the kernels: CUDA_ERROR_INVALID_IMAGE (200)"),
        ("memory=3000000", "OutOfMemoryError: [cuda] taking memory"),
        ("launches=3", "RuntimeError: [cuda] "),
    ],
)
def test_a_gpu_that_fails_is_an_error(faults: str, error: str, libcuda: Path, tmp_path: Path) -> None:
    program = (
        STEP
        + """
try:
    with dy.configure(device="cuda"):
        Steps().step()
except (RuntimeError, MemoryError) as e:
    print(f"{type(e).__name__}: {e}")
dy.renew_cg()
print("goes on:", dy.tanh(dy.inputTensor([0.0])).value())
"""
    )
    text = said(run(program, libcuda, tmp_path, faults))
    assert text.startswith(error) and "goes on: 0.0" in text, text


def test_work_goes_on_after_a_launch_for_which_there_was_no_memory(libcuda: Path, tmp_path: Path) -> None:
    """With that launch: nothing is added twice."""
    program = """
import numpy as np
import dynet_lite as dy

def numbers(backend):
    with dy.configure(backend=backend, random_seed=7):
        pc = dy.ParameterCollection()
        W, words = pc.add_parameters((4, 4)), pc.add_lookup_parameters((5, 4))
        trainer, out = dy.MomentumSGDTrainer(pc, 0.1), []
        for _ in range(3):
            dy.renew_cg()
            hs = [dy.tanh(W * words[i % 5]) for i in range(7)]
            loss = dy.esum([dy.squared_norm(W * h) for h in hs])
            loss.backward()
            try:
                out.append(loss.npvalue())
            except dy.OutOfMemoryError:
                print("no memory")
                out.append(loss.npvalue())
            trainer.update()
        return [*out, W.as_array(), words.as_array()]

print(all(np.allclose(a, b, rtol=1e-4) for a, b in zip(numbers("cpu"), numbers("cuda"))))
"""
    assert said(run(program, libcuda, tmp_path, "refused=30")).split("\n")[:2] == ["no memory", "True"]


def test_no_driver_is_an_error(tmp_path: Path) -> None:
    program = STEP + "try: dy.configure(device='cuda')\nexcept dy.DeviceError as e: print(e)"
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
    s.step(); s.pc.save("GPU"); there = s.step()[0]
t = Steps(); t.pc.populate("GPU"); here = t.step()[0]
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
    gpu = np.array(said(run(program + "", libcuda, tmp_path)).split(), dtype=float)
    cpu = np.array(
        said(run(program.replace('backend="cuda"', 'backend="cpu"'), libcuda, tmp_path)).split(), dtype=float
    )
    assert np.allclose(gpu, cpu, rtol=1e-4)


def test_equal_numbers_of_kmax_pooling(libcuda: Path, tmp_path: Path) -> None:
    """-0 and 0 are: the first of them gets the gradient."""
    program = """
import dynet_lite as dy
x = dy.inputVector([-0.0, 0.0, 0.0])
dy.sum_elems(dy.kmax_pooling(x, 2, 0)).backward(full=True)
print(x.gradient().tolist())
"""
    assert said(run(program, libcuda, tmp_path, backend="cuda")).strip() == "[1.0, 1.0, 0.0]"


def test_memory_that_one_call_takes_lies_apart(libcuda: Path, tmp_path: Path) -> None:
    """However much it is: gradients of arguments that occur twice are written beside those of others."""
    program = """
import numpy as np
import dynet_lite as dy

def gradients(backend):
    with dy.configure(backend=backend):
        dy.renew_cg()
        x, y, w = (dy.inputTensor(np.random.RandomState(i).randn(400_000).astype("f")) for i in range(3))
        dy.sum_elems(dy.cmult(w, dy.logsumexp([x, x, y, y]))).backward(full=True)
        return x.gradient(), y.gradient()

print([bool(np.allclose(a, b, atol=1e-5)) for a, b in zip(gradients("cpu"), gradients("cuda"))])
"""
    assert said(run(program, libcuda, tmp_path)).strip() == "[True, True]"


def test_a_gpu_that_was_full_is_used_again(libcuda: Path, tmp_path: Path) -> None:
    """The buffer that an array goes through could not be had; smaller ones can."""
    program = """
import numpy as np
import dynet_lite as dy

def double(n):
    dy.renew_cg()
    return dy.mean_elems(2 * dy.inputTensor(np.ones(n, "f"))).value()

dy.configure(device="cuda")
print(double(3))
try:
    double(8_000_000)
except dy.OutOfMemoryError as e:
    print(str(e)[:18])
print(*(double(n) for n in (3, 4, 5, 6)))
"""
    text = said(run(program, libcuda, tmp_path, "memory=60000000")).split("\n")
    assert text[:3] == ["2.0", "[cuda] taking memo", "2.0 2.0 2.0 2.0"], text


def test_lists_of_a_record_that_fill_several_buffers(libcuda: Path, tmp_path: Path) -> None:
    """A sum of 330 terms, of 5000 members at once, whose terms lie anywhere: 13 MB of addresses."""
    program = """
import numpy as np
import dynet_lite as dy

def sums(backend):
    with dy.configure(backend=backend):
        dy.renew_cg()
        random = np.random.RandomState(1)
        table = dy.ParameterCollection().add_lookup_parameters((500, 1), init=random.randn(500, 1).astype("f"))
        rows = [table[i] for i in range(500)]
        lists = random.randint(500, size=(5000, 330))
        return dy.concatenate([dy.esum([rows[i] for i in some]) for some in lists]).npvalue()

print(np.allclose(sums("cpu"), sums("cuda"), rtol=1e-4, atol=1e-3))
"""
    assert said(run(program, libcuda, tmp_path)).strip() == "True"


def test_records_are_sent_before_they_fill_a_buffer(libcuda: Path, tmp_path: Path) -> None:
    """However many there are: sending them takes no more memory, which there may be none of."""
    program = """
import numpy as np
import dynet_lite as dy
from dynet_lite import _core

def numbers(backend):
    with dy.configure(backend=backend):
        dy.renew_cg()
        x = dy.inputTensor([0.5, -1.0])
        for _ in range(200_000):
            x = dy.tanh(x)
        return x.npvalue(), _core.backend_counts()

cpu, _ = numbers("cpu")
gpu, counts = numbers("cuda")
sent = counts["bytes_uploaded"]
print(np.allclose(cpu, gpu, rtol=1e-2), sent > 2**22, sent <= counts["uploads"] * 2**22)
"""
    assert said(run(program, libcuda, tmp_path)).strip() == "True True True"


def test_lists_of_tree_nodes_that_fill_several_buffers(libcuda: Path, tmp_path: Path) -> None:
    """5000 nodes at once, of 330 children each, whose cells lie anywhere: 13 MB of addresses."""
    program = """
import numpy as np
import dynet_lite as dy
from dynet_lite import _core

def states(backend):
    with dy.configure(backend=backend):
        dy.renew_cg()
        random = np.random.RandomState(1)
        pc = dy.ParameterCollection()
        table = pc.add_lookup_parameters((500, 1), init=random.randn(500, 1).astype("f"))
        iog, f, uiog, uf = (pc.add_parameters(d, init=0.1) for d in (3, 1, (3, 1), (1, 1)))
        rows = [table[i] for i in range(500)]
        lists = random.randint(500, size=(5000, 330))
        children = ([e for i in some for e in (rows[0], rows[i])] for some in lists)
        nodes = [_core._child_sum_tree_lstm(iog, f, uiog, uf, some) for some in children]
        return dy.concatenate(nodes).npvalue()

print(np.allclose(states("cpu"), states("cuda"), rtol=1e-3, atol=1e-3))
"""
    assert said(run(program, libcuda, tmp_path)).strip() == "True"


def test_an_array_beside_another_takes_no_more_memory(libcuda: Path, tmp_path: Path) -> None:
    """A buffer of its size, not of 16 times that: it has 16 MB, the GPU 200."""
    program = """
import numpy as np
import dynet_lite as dy

dy.configure(device="cuda")
a, b = dy.inputTensor([1.0, 2.0]), dy.inputTensor(np.ones(4_000_000, "f"))
print(dy.concatenate([a, b]).npvalue().sum())
"""
    assert said(run(program, libcuda, tmp_path, "memory=200000000")).strip() == "4000003.0"


def test_a_large_array_goes_through_small_buffers(libcuda: Path, tmp_path: Path) -> None:
    """They stay, so weights took twice their memory: 120 MB of numbers, and the GPU has 200."""
    program = """
import numpy as np
import dynet_lite as dy

dy.configure(device="cuda")
numbers = np.arange(30_000_000, dtype="f") % 1000
x = dy.inputTensor(numbers)
print(dy.sum_elems(x).value() == np.float32(numbers.sum(dtype="d")), np.array_equal(x.npvalue(), numbers))
"""
    assert said(run(program, libcuda, tmp_path, "memory=200000000")).strip() == "True True"


@pytest.mark.parametrize("op", ["dot_product", "circ_conv"])
def test_gradients_wait_for_the_arguments(op: str, libcuda: Path, tmp_path: Path) -> None:
    """Which are made many launches later than the gradient of the result. One occurs twice, in some calls."""
    program = f"""
import numpy as np
import dynet_lite as dy

def gradients(backend):
    with dy.configure(backend=backend):
        dy.renew_cg()
        random = np.random.RandomState(1)
        W = dy.inputTensor(random.randn(4, 4).astype("f"))
        us, ys = ([dy.inputTensor(random.randn(4).astype("f")) for _ in range(n)] for n in (2, 3))
        deep = list(us)
        for _ in range(12):
            deep = [dy.tanh(W * u) for u in deep]
        dy.esum([dy.sum_elems(dy.{op}(deep[k // 2], y)) for k, y in enumerate(ys)]).backward(full=True)
        return [e.gradient() for e in (*us, *ys)]

print(all(np.allclose(a, b, atol=1e-5) for a, b in zip(gradients("cpu"), gradients("cuda"))))
"""
    assert said(run(program, libcuda, tmp_path)).strip() == "True"


def test_an_infinite_gradient_of_a_first_step(libcuda: Path, tmp_path: Path) -> None:
    """The forget gate has none, as there is no state: not infinity times 0."""
    program = """
import numpy as np
import dynet_lite as dy
from dynet_lite import _core

def gradient(backend):
    with dy.configure(backend=backend):
        dy.renew_cg()
        x = dy.inputTensor([0.1 * i for i in range(8)])
        dy.sum_elems(dy.cmult(_core._lstm_start(x), dy.inputTensor([np.inf, 1.0]))).backward(full=True)
        return x.gradient()

cpu, gpu = gradient("cpu"), gradient("cuda")
print(gpu[2:4].tolist(), np.allclose(cpu, gpu, equal_nan=True))
"""
    assert said(run(program, libcuda, tmp_path)).strip() == "[0.0, 0.0] True"


def test_bounds_below_zero(libcuda: Path, tmp_path: Path) -> None:
    """Which roundings make of bounds that others used up: constrained_softmax() ends, with the numbers of the CPU."""
    program = """
import numpy as np
import dynet_lite as dy

def numbers(backend):
    with dy.configure(backend=backend):
        dy.renew_cg()
        x, u = dy.inputTensor([1.0, 2.0, 0.5]), dy.inputTensor([-1e-3, 0.5, 0.9])
        y = dy.constrained_softmax(x, u)
        dy.sum_elems(dy.square(y)).backward(full=True)
        return [y.npvalue(), x.gradient(), u.gradient()]

print(all(np.allclose(a, b) for a, b in zip(numbers("cpu"), numbers("cuda"))))
"""
    assert said(run(program, libcuda, tmp_path)).strip() == "True"


def test_numbers_that_are_nearly_zero(libcuda: Path, tmp_path: Path) -> None:
    """-0 is -0 wherever it is moved, and layer_norm() of differences below all normal numbers is its bias."""
    program = """
import numpy as np
import dynet_lite as dy

def numbers(backend):
    with dy.configure(backend=backend):
        dy.renew_cg()
        x = dy.inputTensor([[-0.0, 1.0, -0.0], [2.0, -0.0, 0.0]])
        moved = [dy.transpose(x), dy.strided_select(x, [1, 2], [0, 0]), dy.pick(x, 1, 0), dy.pick_range(x, 0, 1, 0)]
        tiny = dy.inputTensor([0.0, 1e-40, 2e-40, 1e-40])
        y = dy.layer_norm(tiny, dy.inputTensor(np.ones(4)), dy.inputTensor(np.full(4, 0.5)))
        dy.dot_product(y, dy.inputTensor([1.0, 2.0, 0.0, -1.0])).backward(full=True)
        return [np.signbit(e.npvalue()) for e in moved], y.npvalue(), tiny.gradient()

cpu, gpu = numbers("cpu"), numbers("cuda")
print(all(np.array_equal(a, b) for a, b in zip(cpu[0], gpu[0])), gpu[0][2].tolist())
print(gpu[1].tolist(), np.array_equal(cpu[2], gpu[2]))
"""
    text = said(run(program, libcuda, tmp_path)).splitlines()
    assert text == ["True [False, True, False]", "[0.5, 0.5, 0.5, 0.5] True"]
