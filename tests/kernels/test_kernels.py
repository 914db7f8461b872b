"""Runs the C++ checks beside this file on every instruction set here.

The kernels are those that setup.py has compiled, or, where there are none that are up to date, compiled with its flags.

DYNET_LITE_TEST_SANITIZE=1 compiles the checks and the kernels with the address and undefined-behaviour sanitizers.
"""

import ast
import os
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from cxx import built, compiler

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
SANITIZE = os.environ.get("DYNET_LITE_TEST_SANITIZE", "0") not in ("", "0")


def isa_flags():
    """GCC_ISA_FLAGS of setup.py: one place says how kernels are compiled."""
    for node in ast.parse((ROOT / "setup.py").read_text()).body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "GCC_ISA_FLAGS":
            return ast.literal_eval(node.value)
    raise AssertionError("setup.py has no GCC_ISA_FLAGS")


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    cxx = compiler()
    if cxx is None or not (ROOT / "cext" / "kernels").is_dir():
        pytest.skip("needs a C++ compiler and the source tree")
    openblas = pytest.importorskip("scipy_openblas32", reason="needs scipy-openblas32 (a build requirement) for gemm")
    out = tmp_path_factory.mktemp("kernels")
    x86 = os.uname().machine in ("x86_64", "amd64")
    flags = ["-std=c++17", f"-I{ROOT / 'cext'}", f"-I{HERE}", "-fno-math-errno", "-fno-trapping-math"]
    flags += ["-Wall", "-Wextra", "-Werror"]
    if SANITIZE:
        flags += ["-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=undefined"]
    isa = isa_flags() if x86 else {}  # here: CPython 3.11 cannot parse in two threads at once

    def compile_one(source):
        ours = SANITIZE or source.parent == HERE or source.name == "blas.cc"  # which may be for a BLAS of the system
        if not ours and (there := built(source)):
            return str(there)
        obj = out / (source.stem + ".o")
        speed = ["-O1"] if SANITIZE or source.parent == HERE else ["-O3"]
        done = subprocess.run([cxx, *flags, *speed, *isa.get(source.name, []), "-c", str(source), "-o", str(obj)],
                              capture_output=True, text=True)  # fmt: skip
        assert done.returncode == 0, done.stderr[-4000:]
        return str(obj)

    sources = [
        *sorted(HERE.glob("*.cc")),
        *sorted((ROOT / "cext" / "kernels").glob("*.cc")),
        ROOT / "cext" / "base" / "outer_later.cc",
    ]
    with ThreadPoolExecutor(2) as pool:
        objects = list(pool.map(compile_one, sources))
    exe = out / "kernel_check"
    (out / ".libs").symlink_to(openblas.get_lib_dir())  # where blas.cc looks
    link = [cxx, *objects, "-o", str(exe)]
    if os.uname().sysname == "Linux":
        link += ["-ldl", "-lpthread"]
    if SANITIZE:
        link += ["-fsanitize=address,undefined"]
    done = subprocess.run(link, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-4000:]
    return exe


def test_every_kernel_of_every_instruction_set(program):
    done = subprocess.run([program], capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-6000:]
    assert "baseline: " in done.stdout and done.stdout.rstrip().endswith(" 0 failures")


def test_the_isa_switch_is_heard(program):
    env = dict(os.environ, DYNET_LITE_ISA="baseline")
    done = subprocess.run([program, "--chosen"], capture_output=True, text=True, env=env, timeout=60)
    assert done.stdout.strip() == "baseline"


def test_objects_hold_no_code_another_instruction_set_could_get(program):
    """A weak symbol in a kernel object could be taken by the linker for all: there must be none."""
    if SANITIZE or not shutil.which("nm"):
        pytest.skip("needs nm and an optimised build")
    for name in ("isa_baseline", "isa_avx2", "isa_avx512", "isa_neon"):
        listing = subprocess.run(["nm", "-C", program.parent / f"{name}.o"], capture_output=True, text=True).stdout
        shared = [line for line in listing.splitlines() if line[17:18] in "WVu" or line[17:18] == "T"]
        assert not shared, f"{name}: {shared[:5]}"
