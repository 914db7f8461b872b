#!/usr/bin/env python
"""Compiles the GPU's kernels (cext/backends/cuda/kernels) with NVIDIA's runtime compiler, for which no GPU is needed.

    python tools/device_image.py --check                 # every kind of GPU: compiles, no spills, limits kept
    python tools/device_image.py --out images            # also writes images/sm_70.cubin ... and images/newer.ptx

The compiler is a package, nvidia-cuda-nvrtc-cu12, or what the system has. Exit status 3: there is none. The compiling
itself is in dynet_lite/device_code.py, which does it at run time where a package has no kernels for a GPU.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType

# Of one kernel: more registers would leave an SM with few threads, more memory a block with no neighbours.
MOST_REGISTERS, MOST_SHARED = 168, 36 * 1024


def device_code() -> ModuleType:
    """dynet_lite/device_code.py of this tree, without the package around it, which may not be built."""
    path = Path(__file__).resolve().parents[1] / "dynet_lite" / "device_code.py"
    spec = importlib.util.spec_from_file_location("device_code", path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def main() -> int:
    code = device_code()
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--check", action="store_true", help="only compile, and look at registers, memory and spills")
    parser.add_argument("--out", type=Path, help="folder for the images")
    parser.add_argument("--arch", action="append", help=f"one of {', '.join(code.ARCHITECTURES)} (default: all)")
    args = parser.parse_args()
    nvrtc = code.find_compiler()
    if nvrtc is None:
        print(f"there is no NVRTC: pip install {code.COMPILER}", file=sys.stderr)
        return 3
    if args.out:
        args.out.mkdir(parents=True, exist_ok=True)

    def complaints(arch: str) -> list[str]:
        try:
            image, log = code.compiled(nvrtc, arch)
        except code.NoDeviceCode as error:
            return [str(error)]
        print(f"{arch}: {len(image)} bytes", flush=True)
        if args.out and not args.check:
            (args.out / code.name_of(arch)).write_bytes(image)
        found = code.complaints(log, MOST_REGISTERS, MOST_SHARED) if arch.startswith("sm") else []
        return [f"{arch}: {what}" for what in found]

    with ThreadPoolExecutor(os.cpu_count()) as pool:  # the compiler keeps one processor busy
        bad = sum(pool.map(complaints, args.arch or [*code.ARCHITECTURES, code.PTX_FOR]), [])
    if bad:
        print("\n".join(bad), file=sys.stderr)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
