"""Which kernels a GPU gets: of the package, of the cache, or compiled now."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from dynet_lite import device_code

TOOL = Path(__file__).resolve().parents[2] / "tools" / "device_image.py"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A package's images, as setup.py names them."""
    for arch in (*device_code.ARCHITECTURES, device_code.PTX_FOR):
        (tmp_path / device_code.name_of(arch)).write_text(arch)
    return tmp_path


@pytest.mark.parametrize(
    ("capability", "image"),
    [((7, 0), "sm_70"), ((7, 2), "sm_70"), ((7, 5), "sm_75"), ((8, 0), "sm_80"), ((8, 7), "sm_86"), ((8, 9), "sm_89"),
     ((9, 0), "sm_90"), ((10, 3), "sm_100"), ((11, 0), "compute_90"), ((12, 1), "sm_120"), ((13, 0), "compute_90")],
)  # fmt: skip
def test_a_gpu_gets_the_nearest_image(capability: tuple[int, int], image: str, folder: Path) -> None:
    found = device_code.packaged(capability, folder)
    assert found and found.read_text() == image


def test_older_gpus_get_none(folder: Path) -> None:
    assert device_code.packaged((6, 1), folder) is None


@pytest.fixture
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """A package without images, on a machine without a compiler."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(device_code, "packaged", lambda capability: None)
    monkeypatch.setattr(device_code, "find_compiler", lambda: None)
    monkeypatch.delenv("DYNET_LITE_CUDA_IMAGE", raising=False)
    return monkeypatch


def test_a_package_without_kernels_says_what_is_needed(bare: pytest.MonkeyPatch) -> None:
    with pytest.raises(device_code.NoDeviceCode, match=r"no kernels for compute capability 8\.6: install a wheel"):
        device_code.image((8, 6))


def test_a_user_without_a_home(bare: pytest.MonkeyPatch) -> None:
    """As in a container that runs under a number that no user has."""

    def none(cls: object) -> Path:
        raise RuntimeError("Could not determine home directory.")

    bare.setattr(Path, "home", classmethod(none))
    for variable in ("XDG_CACHE_HOME", "LOCALAPPDATA"):
        bare.delenv(variable, raising=False)
    assert device_code.problem((8, 6)).startswith("this package has no kernels")
    bare.setattr(device_code, "find_compiler", lambda: "a compiler")
    bare.setattr(device_code, "_architecture", lambda nvrtc, capability: "sm_86")
    bare.setattr(device_code, "compiled", lambda nvrtc, arch: (b"cubin", ""))
    assert device_code.image((8, 6)) == b"cubin"


def test_what_was_compiled_is_kept(bare: pytest.MonkeyPatch) -> None:
    asked = []

    def compiled(nvrtc: Any, arch: str) -> tuple[bytes, str]:
        asked.append(arch)
        return b"cubin of " + arch.encode(), ""

    bare.setattr(device_code, "find_compiler", lambda: "a compiler")
    bare.setattr(device_code, "_architecture", lambda nvrtc, capability: "sm_86")
    bare.setattr(device_code, "compiled", compiled)
    assert device_code.image((8, 6)) == device_code.image((8, 6)) == b"cubin of sm_86"
    assert asked == ["sm_86"]
    bare.setattr(device_code, "find_compiler", lambda: None)
    assert device_code.problem((8, 6)) == "" and device_code.problem((8, 9)) != ""
    bare.setattr(device_code, "source", lambda: {"all.h": "other kernels"})
    assert device_code.problem((8, 6)) != "", "another source has other images"


def test_a_file_may_be_named(bare: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "image").write_bytes(b"mine")
    bare.setenv("DYNET_LITE_CUDA_IMAGE", str(tmp_path / "image"))
    assert device_code.image((8, 6)) == b"mine"
    bare.setenv("DYNET_LITE_CUDA_IMAGE", str(tmp_path / "none"))
    with pytest.raises(device_code.NoDeviceCode, match="none: No such file"):
        device_code.image((8, 6))


def test_the_compiler_takes_the_kernels(tmp_path: Path) -> None:
    """PTX, which is the quicker half of its work; tools/device_image.py --check does all of it."""
    nvrtc = device_code.find_compiler()
    if nvrtc is None:
        pytest.skip("needs nvidia-cuda-nvrtc-cu12")
    image, _ = device_code.compiled(nvrtc, device_code.PTX_FOR)
    assert b".target sm_90" in image and b".entry lstm" in image


GREEDY = {
    "168 registers": (255, 16, "__launch_bounds__(64) void greedy", "registers"),
    "a spill": (400, 16, "__launch_bounds__(1024) void greedy", "bytes spill stores"),
    "36 KB of shared memory": (4, 10000, "void greedy", "40000 bytes of shared memory"),
}


@pytest.mark.parametrize("what", GREEDY)
def test_a_kernel_beyond_the_limits_is_named(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As tools/device_image.py --check looks at ours."""
    nvrtc = device_code.find_compiler()
    if nvrtc is None:
        pytest.skip("needs nvidia-cuda-nvrtc-cu12")
    held, shared, head, complaint = GREEDY[what]
    text = f"""extern "C" __global__ {head}(float* x) {{
      __shared__ float part[{shared}];
      float held[{held}];
      #pragma unroll
      for (int i = 0; i < {held}; ++i) held[i] = x[i * blockDim.x + threadIdx.x];
      part[threadIdx.x % {shared}] = held[0];
      __syncthreads();
      float sum = part[(threadIdx.x + 1) % {shared}];
      #pragma unroll
      for (int i = {held}; i-- > 0;) sum = sum * held[i] + held[(i * 7) % {held}];
      x[threadIdx.x] = sum;
    }}"""
    monkeypatch.setattr(device_code, "source", lambda: {"all.h": text})
    _, log = device_code.compiled(nvrtc, "sm_90")
    limits = re.search(r"MOST_REGISTERS, MOST_SHARED = (\d+), (\d+) \* 1024", TOOL.read_text())
    assert limits
    found = device_code.complaints(log, int(limits[1]), 1024 * int(limits[2]))
    assert any("greedy" in line and complaint in line for line in found), found or log
