"""The kernels as an OpenCL program: through PoCL, whose compiler is not the host's, and in oclgrind, which sees races
between threads, reads of what nobody wrote and what lies outside of a buffer, a case for each kernel. Mistakes that are
put in are found.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import opencl
import pytest

import build
from build import Mistake

RUNTIME = Path("/usr/lib/oclgrind/liboclgrind-rt.so")
PROGRAM = """
import dynet_lite as dy

def losses(device, trainer):
    with dy.configure(device=device, random_seed=3):
        pc = dy.ParameterCollection()
        words, lstm = pc.add_lookup_parameters((9, 7)), dy.BiRNNBuilder(1, 7, 6, pc, dy.LSTMBuilder)
        W, b = pc.add_parameters((5, 6)), pc.add_parameters(5)
        update, out = trainer(pc), []
        for _ in range(2):
            dy.renew_cg()
            hs = [h for n in (2, 3) for h in lstm.transduce([words[i] for i in range(n)])]
            loss = dy.esum([dy.pickneglogsoftmax(dy.tanh(dy.affine_transform([b, W, h])), i) for i, h in enumerate(hs)])
            loss.backward()
            out.append(loss.value())
            update.update()
        return out

for trainer in (dy.SimpleSGDTrainer, dy.AdamTrainer):
    here, there = losses("cpu", trainer), losses("cuda", trainer)
    assert all(abs(a - b) < 1e-5 * abs(a) for a, b in zip(here, there)), (here, there)
print("the same")
"""

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or build.compiler() is None or opencl.missing() != "",
    reason=f"needs {opencl.missing() or 'Linux and a C++ compiler'} (apt: clang-14, llvm-14)",
)
needs_pocl = pytest.mark.skipif(
    not any(Path("/etc/OpenCL/vendors").glob("pocl*.icd")), reason="needs PoCL (apt: pocl-opencl-icd)"
)
needs_oclgrind = pytest.mark.skipif(not RUNTIME.is_file(), reason="needs oclgrind (apt)")


@pytest.fixture(scope="session")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("opencl") / "libcuda.so.1"
    source = str(build.HERE / "standin_opencl.cc")
    build.run([build.compiler() or "c++", *build.FLAGS, "-shared", source, "-o", str(out), "-ldl"])
    return out


@pytest.fixture(scope="session")
def kernels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return opencl.program(tmp_path_factory.mktemp("kernels"))


def run(
    driver: Path, kernels: Path, folder: Path, words: tuple[str, ...] = ("-c", PROGRAM), **more: str
) -> subprocess.CompletedProcess[str]:
    place = {**os.environ, "PYTHONPATH": str(build.PACKAGE), "DYNET_LITE_LIBCUDA": str(driver)}
    place |= {
        "DYNET_LITE_OPENCL_PROGRAM": str(kernels),
        "DYNET_LITE_STANDIN_LAUNCHES": str(folder / "launched"),
        **more,
    }
    command = [sys.executable, "-X", "faulthandler", *words]
    return subprocess.run(command, capture_output=True, text=True, env=place, cwd=folder, timeout=900)


def in_oclgrind(driver: Path, kernels: Path, folder: Path, *cases: str) -> subprocess.CompletedProcess[str]:
    watch = {"OCLGRIND_DATA_RACES": "1", "OCLGRIND_UNINITIALIZED": "1"}
    watch |= {"OCLGRIND_MAX_ERRORS": "3", "OCLGRIND_GLOBAL_MEM_SIZE": "4000000000", "OCLGRIND_LOCAL_MEM_SIZE": "49152"}
    words = (str(build.HERE / "kernel_cases.py"), *cases)
    return run(driver, kernels, folder, words, DYNET_LITE_OPENCL=str(RUNTIME), **watch)


def test_every_kernel_is_one_of_opencl(kernels: Path) -> None:
    """And no pointer is left whose kind of memory is not known: oclgrind would end there."""
    text = (kernels.parent / "kernels.moved.ll").read_text()
    assert all(f"define spir_kernel void @{name}(" in text for name in opencl.kernels())
    assert "addrspacecast" not in text and "unreachable" not in text


@needs_pocl
def test_pocl_gives_the_numbers_of_the_cpu(driver: Path, kernels: Path, tmp_path: Path) -> None:
    done = run(driver, kernels, tmp_path, DYNET_LITE_STANDIN_FILL="1")
    assert done.returncode == 0 and "the same" in done.stdout, done.stdout + done.stderr[-3000:]
    launched = set((tmp_path / "launched").read_text().split())
    assert {"product", "outer", "lstm", "lstm_back", "sum_rows", "update"} <= launched


@needs_pocl
def test_pocl_shows_a_wrong_formula(driver: Path, mistake: Mistake, tmp_path: Path) -> None:
    cext = mistake("cells.h", "c = *f * or_zero", "c = -*f * or_zero")
    done = run(driver, opencl.program(tmp_path, cext), tmp_path, DYNET_LITE_STANDIN_FILL="1")
    assert done.returncode == 1 and "AssertionError" in done.stderr, done.stdout + done.stderr[-3000:]


@needs_oclgrind
@pytest.mark.parametrize("part", ["1/3", "2/3", "3/3"])
def test_oclgrind_finds_nothing(part: str, driver: Path, kernels: Path, tmp_path: Path) -> None:
    """A case for each kernel: test_device.py shows that there is one."""
    done = in_oclgrind(driver, kernels, tmp_path, part)
    assert done.returncode == 0 and "the same" in done.stdout, done.stdout + done.stderr[-3000:]
    assert "Oclgrind" not in done.stderr and "At line" not in done.stderr, done.stderr[:3000]


MISTAKES = {
    "a barrier of a warp is missing": (
        ("products.h", "right.keep(next_b, b);\n    DNL_WARP_BARRIER();", "right.keep(next_b, b);"),
        "conv2d", "depends on uninitialized value"),
    "a barrier of the block is missing": (
        ("products.h", "k, shared);\n    DNL_BARRIER();", "k, shared);"), "conv2d", "data race"),
    "shared memory is too small": (
        ("elementwise.h", "double part[128];", "double part[100];"), "add", "local memory address"),
    "a number lies outside": (
        ("rows.h", "row(r.y, i / r.n)[i % r.n] = r.v", "row(r.y, i / r.n)[i % r.n + (i64(1) << 34)] = r.v"),
        "_lstm_start", "Invalid write of size 4 at global memory address"),
    "shared memory is read that nobody wrote": (
        ("elementwise.h", "double part[128];", "double part[129];\n  if (part[128] > 0) return;"),
        "add", "depends on uninitialized value"),
    "what nobody wrote is added to": (
        ("memory.h", "*at = add ? *at + v : v;", "*at += v;"),
        "dot_product", "Uninitialized value written to global memory"),
}  # fmt: skip


@needs_oclgrind
@pytest.mark.parametrize("what", MISTAKES)
def test_oclgrind_finds_a_mistake(what: str, driver: Path, mistake: Mistake, tmp_path: Path) -> None:
    place, case, report = MISTAKES[what]
    done = in_oclgrind(driver, opencl.program(tmp_path, mistake(*place)), tmp_path, case)
    assert report in done.stderr and "Kernel: " in done.stderr, done.stdout + done.stderr[-3000:]
