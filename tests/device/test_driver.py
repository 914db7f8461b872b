"""The stand-in for the driver does what a GPU would do to a program that makes a mistake: each one is made on purpose."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from build import Run

DRIVER = """
import ctypes, sys
cuda = ctypes.CDLL(sys.argv[1])
device, pinned = ctypes.c_uint64(), ctypes.c_void_p()
assert cuda.cuInit(0) == 0
assert cuda.cuMemAlloc_v2(ctypes.byref(device), ctypes.c_size_t(64)) == 0
assert cuda.cuMemHostAlloc(ctypes.byref(pinned), ctypes.c_size_t(64), 0) == 0
there, here = device.value, ctypes.cast(pinned, ctypes.POINTER(ctypes.c_float))

def up(n=16):
    return cuda.cuMemcpyHtoDAsync_v2(ctypes.c_uint64(there), here, ctypes.c_size_t(4 * n), None)

def down():
    got = (ctypes.c_float * 16)()
    assert cuda.cuMemcpyDtoHAsync_v2(got, ctypes.c_uint64(there), ctypes.c_size_t(64), None) == 0
    assert cuda.cuStreamSynchronize(None) == 0
    return list(got)
"""


def test_memory_is_full_of_nan(libcuda: Path, on_gpu: Run) -> None:
    done = on_gpu("-c", DRIVER + "print(all(x != x for x in down()))", str(libcuda))
    assert done.stdout.strip() == "True", done.stderr


def test_a_buffer_that_is_written_too_early_gives_other_numbers(libcuda: Path, on_gpu: Run) -> None:
    """The copy is asked for while it has 1, and made when the stream is waited for."""
    late = "here[0] = 1.0; up(); here[0] = 2.0; print(down()[0])"
    waited = "here[0] = 1.0; up(); cuda.cuStreamSynchronize(None); here[0] = 2.0; print(down()[0])"
    assert [on_gpu("-c", DRIVER + text, str(libcuda)).stdout.strip() for text in (late, waited)] == ["2.0", "1.0"]


@pytest.mark.parametrize("access", ["ctypes.string_at(there, 4)", "ctypes.memset(there, 0, 4)"])
def test_the_host_cannot_follow_an_address_of_the_gpu(access: str, libcuda: Path, on_gpu: Run) -> None:
    done = on_gpu("-c", f"{DRIVER}up(); down(); {access}; print('went on')", str(libcuda))
    assert done.returncode == -signal.SIGSEGV and not done.stdout


def test_copies_end_where_memory_ends(libcuda: Path, on_gpu: Run) -> None:
    assert on_gpu("-c", DRIVER + "print(up(16), up(17))", str(libcuda)).stdout.strip() == "0 1"
