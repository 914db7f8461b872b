#!/usr/bin/env python
"""Compiles the card's kernels (cext/backends/cuda/kernels) with NVIDIA's runtime compiler, for which no card is needed.

    python tools/device_image.py --check                 # every kind of card: compiles, no spills, limits kept
    python tools/device_image.py --out images            # also writes images/sm_70.cubin ... and images/newer.ptx

The compiler is a package, nvidia-cuda-nvrtc-cu12, or what the system has. Exit status 3: there is none.
"""

from __future__ import annotations

import argparse
import ctypes
import ctypes.util
import importlib.util
import re
import sys
from pathlib import Path

CEXT = Path(__file__).resolve().parents[1] / "cext"
KERNELS = CEXT / "backends" / "cuda" / "kernels"
ARCHITECTURES = ["sm_70", "sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120"]
PTX_FOR = "compute_120"  # newer cards compile it themselves
# Of one kernel: more registers would leave an SM with few threads, more memory a block with no neighbours.
MOST_REGISTERS, MOST_SHARED = 168, 16 * 1024


class CompileError(Exception):
    """What the compiler says."""


def find_compiler() -> ctypes.CDLL | None:
    """NVRTC: of the package, or of the system."""
    spec = importlib.util.find_spec("nvidia")
    for folder in spec.submodule_search_locations or [] if spec else []:
        for path in sorted(Path(folder).glob("*/lib/libnvrtc.so.*"), reverse=True):
            if "builtins" not in path.name and ".alt." not in path.name:
                return ctypes.CDLL(str(path))
    name = ctypes.util.find_library("nvrtc")
    return ctypes.CDLL(name) if name else None


def headers() -> dict[str, str]:
    """Every text that the kernels include, by the name that they include it by."""
    shared = [CEXT / "kernels" / name for name in ("formula_info.h", "gamma.h")] + [
        *(CEXT / "kernels").glob("formulas*.h")
    ]
    own = {path.name: path.read_text(encoding="utf-8") for path in KERNELS.glob("*.h")}
    return own | {f"kernels/{path.name}": path.read_text(encoding="utf-8") for path in shared}


def compiled(nvrtc: ctypes.CDLL, arch: str) -> tuple[bytes, str]:
    """The image for one architecture (a cubin for sm_..., PTX for compute_...), and what the compiler says of it."""
    texts = headers()
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
        raise CompileError(f"nvrtcCreateProgram: error {made}")
    options = ["--std=c++17", "-default-device", f"-arch={arch}"] + (["-Xptxas=-v"] if arch.startswith("sm") else [])
    failed = nvrtc.nvrtcCompileProgram(
        program, len(options), (ctypes.c_char_p * len(options))(*[o.encode() for o in options])
    )
    log = taken(nvrtc, program, "ProgramLog").decode(errors="replace").rstrip("\0")
    if failed:
        raise CompileError(f"{arch}: {log}")
    image = taken(nvrtc, program, "CUBIN" if arch.startswith("sm") else "PTX")
    nvrtc.nvrtcDestroyProgram(ctypes.byref(program))
    return image, log


def taken(nvrtc: ctypes.CDLL, program: ctypes.c_void_p, what: str) -> bytes:
    size = ctypes.c_size_t()
    getattr(nvrtc, f"nvrtcGet{what}Size")(program, ctypes.byref(size))
    room = ctypes.create_string_buffer(size.value)
    getattr(nvrtc, f"nvrtcGet{what}")(program, room)
    return room.raw


def complaints(log: str) -> list[str]:
    """Kernels beyond the limits, of what ptxas says: name, registers, shared memory, spills."""
    found, name, kernels = [], "", 0
    for line in log.splitlines():
        if match := re.search(r"Compiling entry function '(\w+)'", line):
            name, kernels = match[1], kernels + 1
        if (match := re.search(r"(\d+) bytes spill stores, (\d+) bytes spill loads", line)) and match[1] + match[
            2
        ] != "00":
            found.append(f"{name}: {line.strip()}")
        if (match := re.search(r"Used (\d+) registers", line)) and int(match[1]) > MOST_REGISTERS:
            found.append(f"{name}: {match[1]} registers")
        if (match := re.search(r"(\d+) bytes smem", line)) and int(match[1]) > MOST_SHARED:
            found.append(f"{name}: {match[1]} bytes of shared memory")
    return found if kernels else ["the compiler names no kernel"]


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--check", action="store_true", help="only compile, and look at registers, memory and spills")
    parser.add_argument("--out", type=Path, help="folder for the images")
    parser.add_argument("--arch", action="append", help=f"one of {', '.join(ARCHITECTURES)} (default: all)")
    args = parser.parse_args()
    nvrtc = find_compiler()
    if nvrtc is None:
        print("there is no NVRTC: pip install nvidia-cuda-nvrtc-cu12", file=sys.stderr)
        return 3
    bad = []
    for arch in args.arch or [*ARCHITECTURES, PTX_FOR]:
        try:
            image, log = compiled(nvrtc, arch)
        except CompileError as error:
            bad.append(str(error))
            continue
        bad += [f"{arch}: {what}" for what in complaints(log)] if arch.startswith("sm") else []
        print(f"{arch}: {len(image)} bytes")
        if args.out and not args.check:
            args.out.mkdir(parents=True, exist_ok=True)
            (args.out / (f"{arch}.cubin" if arch.startswith("sm") else "newer.ptx")).write_bytes(image)
    print("\n".join(bad), file=sys.stderr)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
