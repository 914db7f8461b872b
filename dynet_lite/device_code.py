"""The kernels for a GPU, as its driver loads them: of the package, of a cache, or compiled when they are first needed.

A wheel has images for all GPUs since compute capability 7.0 (``device/images``), and every package has the source
(``device/source``), which NVIDIA's runtime compiler NVRTC compiles: the package nvidia-cuda-nvrtc-cu12, or a toolkit.
No driver and no GPU is needed for that. Standard library only: setup.py and tools/device_image.py load this file
before there is a package.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import glob
import hashlib
import importlib.util
import os
import re
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

HERE = Path(__file__).resolve().parent
CEXT = HERE.parent / "cext"  # of a source tree
# A cubin runs on GPUs of the same major number whose minor number is not smaller.
ARCHITECTURES = ("sm_70", "sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120")
PTX_FOR = "compute_90"  # drivers of GPUs for which there is no cubin compile it themselves
PTX_FILE = "newer.ptx"
COMPILER = "nvidia-cuda-nvrtc-cu12"

Capability = tuple[int, int]


class NoDeviceCode(RuntimeError):
    """There are no kernels for this GPU, and why."""


# ---- the source ----------------------------------------------------------------------------------------------------


def source_files(cext: Path = CEXT) -> dict[str, Path]:
    """In a source tree: the files of the kernels, by the names that they include one another by."""
    own = {path.name: path for path in sorted((cext / "backends" / "cuda" / "kernels").glob("*.h"))}
    shared = [cext / "kernels" / "formula_info.h", cext / "kernels" / "gamma.h"]
    shared += sorted((cext / "kernels").glob("formulas*.h"))
    return own | {f"kernels/{path.name}": path for path in shared}


def source() -> dict[str, str]:
    """The same as texts, wherever this package lies."""
    packed = HERE / "device" / "source"
    if packed.is_dir():
        files = {path.relative_to(packed).as_posix(): path for path in sorted(packed.rglob("*.h"))}
    else:
        files = source_files()
    return {name: path.read_text(encoding="utf-8") for name, path in files.items()}


# ---- the compiler --------------------------------------------------------------------------------------------------


def find_compiler() -> ctypes.CDLL | None:
    """NVRTC: of a package, of the toolkit that CUDA_HOME names, or of the system."""
    for path in _candidates("nvrtc"):
        try:
            return ctypes.CDLL(path)
        except OSError:
            continue
    return None


def find_cublas() -> str:
    """The file of NVIDIA's library for matrix products in a package, or the toolkit that CUDA_HOME names; "" if in none.

    What the system itself finds need not be looked for here. Nothing is loaded.
    """
    return next((path for path in _candidates("cublas") if os.path.isabs(path)), "")


def _candidates(library: str) -> Iterable[str]:
    names = (f"{library}64_*.dll",) if sys.platform == "win32" else (f"lib{library}.so.*", f"lib{library}.so")
    spec = importlib.util.find_spec("nvidia")
    folders = [os.path.join(f, "*", sub) for f in (spec.submodule_search_locations or [] if spec else [])
               for sub in ("lib", "bin", os.path.join("bin", "*"))]  # fmt: skip
    homes = [os.environ[name] for name in ("CUDA_HOME", "CUDA_PATH") if os.environ.get(name)] + ["/usr/local/cuda"]
    folders += [os.path.join(home, sub) for home in homes for sub in ("lib64", "lib", "bin")]
    for folder in folders:
        for name in names:
            found = sorted(glob.glob(os.path.join(folder, name)), reverse=True)
            yield from (path for path in found if "builtins" not in path and ".alt." not in path)
    if on_system := ctypes.util.find_library(library):
        yield on_system


def compiled(nvrtc: ctypes.CDLL, arch: str) -> tuple[bytes, str]:
    """The image for one architecture (a cubin for sm_..., PTX for compute_...), and what the compiler says of it."""
    texts = source()
    strings = ctypes.c_char_p * len(texts)
    program = ctypes.c_void_p()
    made = nvrtc.nvrtcCreateProgram(
        ctypes.byref(program),
        b'#include "all.h"\n',
        b"dynet_lite.cu",
        len(texts),
        strings(*[text.encode() for text in texts.values()]),
        strings(*[name.encode() for name in texts]),
    )
    if made:
        raise NoDeviceCode(f"nvrtcCreateProgram: error {made}")
    options = ["--std=c++17", "-default-device", f"-arch={arch}"] + (["-Xptxas=-v"] if arch.startswith("sm") else [])
    failed = nvrtc.nvrtcCompileProgram(
        program, len(options), (ctypes.c_char_p * len(options))(*[o.encode() for o in options])
    )
    log = _taken(nvrtc, program, "ProgramLog").decode(errors="replace").rstrip("\0")
    if failed:
        raise NoDeviceCode(f"{arch}: {log}")
    image = _taken(nvrtc, program, "CUBIN" if arch.startswith("sm") else "PTX")
    nvrtc.nvrtcDestroyProgram(ctypes.byref(program))
    return image, log


def _taken(nvrtc: ctypes.CDLL, program: ctypes.c_void_p, what: str) -> bytes:
    size = ctypes.c_size_t()
    getattr(nvrtc, f"nvrtcGet{what}Size")(program, ctypes.byref(size))
    room = ctypes.create_string_buffer(size.value)
    getattr(nvrtc, f"nvrtcGet{what}")(program, room)
    return room.raw


def _architecture(nvrtc: ctypes.CDLL, capability: Capability) -> str | None:
    """What this compiler can make for such a GPU: its own architecture, or PTX of the nearest older one."""
    count = ctypes.c_int()
    if nvrtc.nvrtcGetNumSupportedArchs(ctypes.byref(count)):
        return None
    known = (ctypes.c_int * count.value)()
    nvrtc.nvrtcGetSupportedArchs(known)
    wanted = capability[0] * 10 + capability[1]
    if wanted in known:
        return f"sm_{wanted}"
    older = [arch for arch in known if arch < wanted]
    return f"compute_{max(older)}" if older else None


# ---- images --------------------------------------------------------------------------------------------------------


def name_of(arch: str) -> str:
    """The file of an image in a package."""
    return f"{arch}.cubin" if arch.startswith("sm") else PTX_FILE


def packaged(capability: Capability, folder: Path | None = None) -> Path | None:
    """The image of the package for such a GPU: the nearest cubin of the same major number, or PTX."""
    folder = folder or HERE / "device" / "images"
    fits: list[tuple[int, Path]] = []
    for path in folder.glob("sm_*.cubin"):
        major, minor = divmod(int(path.stem[3:]), 10)
        if major == capability[0] and minor <= capability[1]:
            fits.append((minor, path))
    if fits:
        return max(fits)[1]
    ptx = folder / PTX_FILE
    least = divmod(int(PTX_FOR.removeprefix("compute_")), 10)
    return ptx if capability >= least and ptx.is_file() else None


def _home() -> Path:
    """Of the user; in a container one may have none, and nothing is kept."""
    try:
        return Path.home()
    except RuntimeError:
        return Path(os.devnull)


def cache_file(capability: Capability) -> Path:
    """Where the image that is compiled for such a GPU is kept; another source has another name."""
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or str(_home() / "AppData" / "Local")
    else:
        base = os.environ.get("XDG_CACHE_HOME") or str(_home() / ".cache")
    digest = hashlib.sha256()
    for name, text in sorted(source().items()):
        digest.update(f"{name}\0{text}\0".encode())
    return Path(base) / "dynet_lite" / "device" / f"{capability[0]}.{capability[1]}-{digest.hexdigest()[:24]}"


def problem(capability: Capability) -> str:
    """Why there are no kernels for such a GPU; "" if there are, or if they can be made."""
    if os.environ.get("DYNET_LITE_CUDA_IMAGE") or packaged(capability) or cache_file(capability).is_file():
        return ""
    nvrtc = find_compiler()
    if nvrtc is None:
        return (
            f"this package has no kernels for compute capability {capability[0]}.{capability[1]}: install a wheel of "
            f"dynet_lite, or NVIDIA's compiler (pip install {COMPILER}), which makes them when they are first needed"
        )
    if _architecture(nvrtc, capability) is None:
        return f"NVIDIA's compiler that was found makes no code for compute capability {capability[0]}.{capability[1]}"
    return ""


def image(capability: Capability) -> bytes:
    """The kernels for such a GPU. Compiles them, which takes some seconds, if nobody has; NoDeviceCode if nobody can."""
    if named := os.environ.get("DYNET_LITE_CUDA_IMAGE"):
        try:
            return Path(named).read_bytes()
        except OSError as error:
            raise NoDeviceCode(f"DYNET_LITE_CUDA_IMAGE: {named}: {error.strerror}") from None
    if found := packaged(capability):
        return found.read_bytes()
    kept = cache_file(capability)
    if kept.is_file():
        return kept.read_bytes()
    if why := problem(capability):
        raise NoDeviceCode(why)
    nvrtc = find_compiler()
    arch = _architecture(nvrtc, capability) if nvrtc else None
    assert nvrtc and arch, "problem() has looked"
    made, _ = compiled(nvrtc, arch)
    _keep(kept, made)
    return made


def _keep(path: Path, content: bytes) -> None:
    """Whole or not at all; a cache that cannot be written is done without."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
            file.write(content)
        os.replace(file.name, path)
    except OSError:
        pass


def complaints(log: str, registers: int, shared: int) -> list[str]:
    """Kernels beyond the limits, of what the compiler says of a cubin: registers, bytes of shared memory, any spills."""
    found, name, kernels = [], "", 0
    for line in log.splitlines():
        if match := re.search(r"Compiling entry function '(\w+)'", line):
            name, kernels = match[1], kernels + 1
        spills = re.search(r"(\d+) bytes spill stores, (\d+) bytes spill loads", line)
        if spills and spills[1] + spills[2] != "00":
            found.append(f"{name}: {line.strip()}")
        if (match := re.search(r"Used (\d+) registers", line)) and int(match[1]) > registers:
            found.append(f"{name}: {match[1]} registers")
        if (match := re.search(r"(\d+) bytes smem", line)) and int(match[1]) > shared:
            found.append(f"{name}: {match[1]} bytes of shared memory")
    return found if kernels else ["the compiler names no kernel"]
