"""Does the extension module link for Windows and macOS? Needs ziglang, and the sources of the CPython that runs this script.

    python tools/linked.py ~/Python-3.11.2                    x86_64-windows-gnu, aarch64-macos, x86_64-macos
    python tools/linked.py ~/Python-3.11.2 aarch64-macos      for some systems alone

First build in the source tree (python setup.py build_ext --inplace), which makes Cython's wrapper. Every file is compiled
without optimisation, and all are linked: for Windows with OpenBLAS's wheel and an import library of what Python's headers
export, for macOS with Python's names left open. Nothing is run. Two things stand in for others: this machine's pyconfig.h
for macOS's, and MinGW's libraries for MSVC's.
Exits with 1 when something does not compile or is missing.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import sysconfig
import tempfile
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from platforms import ISA, ROOT, ZIG, compiler, prepared

TRIPLES = ["x86_64-windows-gnu", "aarch64-macos", "x86_64-macos"]
WRAPPER = ROOT / "build" / "cython" / "release" / "cext" / "bindings" / "_core.cpp"
VERSION = f"python{sys.version_info.major}{sys.version_info.minor}"
EXPORTED = re.compile(r"PyAPI_(FUNC|DATA)\([^()]*(?:\([^()]*\))?\)\s*(?:_Py_NO_RETURN\s+)?\**\s*(\w+)")


def headers(python: Path, triple: str) -> list[str]:
    """Options of the compiler that find Python's headers."""
    own = python / "PC" if "windows" in triple else Path(sysconfig.get_config_h_filename()).parent
    windows = ["-DMS_WIN64", "-DMS_WINDOWS"] if "windows" in triple else []
    return [*windows, f"-I{python / 'Include'}", f"-I{own}"]


def import_library(python: Path, folder: Path) -> Path:
    """For Windows: the library of a DLL with every name that the headers export."""
    names: dict[str, str] = {}
    for header in sorted((python / "Include").rglob("*.h")):
        for kind, name in EXPORTED.findall(header.read_text(encoding="utf-8")):
            names[name] = kind
    lines = [f"  {name}{' DATA' if kind == 'DATA' else ''}" for name, kind in names.items()]
    definition, library = folder / f"{VERSION}.def", folder / f"lib{VERSION}.a"
    definition.write_text(f"LIBRARY {VERSION}.dll\nEXPORTS\n" + "\n".join(lines) + "\n")
    call = [*ZIG, *f"dlltool -m i386:x86-64 -D {VERSION}.dll -d {definition} -l {library}".split()]
    subprocess.run(call, check=True)
    return library


def blas(folder: Path) -> Path:
    """For Windows, where OpenBLAS is linked and not loaded: its import library, from its wheel."""
    call = [
        sys.executable,
        *"-m pip download -q --no-deps --only-binary=:all: --platform win_amd64 -d".split(),
        str(folder),
    ]
    subprocess.run([*call, "scipy-openblas32>=0.3.29,<0.4"], check=True)
    with zipfile.ZipFile(next(folder.glob("*.whl"))) as wheel:
        name = next(n for n in wheel.namelist() if n.endswith((".lib", ".dll.a")))
        return Path(wheel.extract(name, folder))


def link(triple: str, python: Path, folder: Path, pool: ThreadPoolExecutor) -> str | None:
    """What is wrong, or None."""
    call = compiler(triple, folder)
    with_headers = prepared(call, folder)
    objects = []

    def made(source: Path) -> str:
        own = ISA.get(source.name, "").split() if triple.startswith("x86_64") else []
        wrapper = ["-w", *headers(python, triple)] if source == WRAPPER else []
        target = folder / (source.relative_to(ROOT).as_posix().replace("/", "-") + ".o")
        options = [*(own or wrapper or with_headers), "-Icext", "-c", str(source), "-o", str(target)]
        objects.append(str(target))
        out = subprocess.run([*call, *options], cwd=ROOT, capture_output=True, text=True)
        return f"{source}\n{out.stderr}" if out.returncode else ""

    wrong = list(filter(None, pool.map(made, [WRAPPER, *sorted((ROOT / "cext").rglob("*.cc"))])))
    if wrong:
        return "\n".join(wrong)
    module = folder / ("_core.pyd" if "windows" in triple else "_core.so")
    windows = "windows" in triple
    rest = [str(import_library(python, folder)), str(blas(folder))] if windows else ["-undefined", "dynamic_lookup"]
    out = subprocess.run([*ZIG, "c++", "-target", triple, "-shared", *sorted(objects), *rest, "-o", str(module)],
                         cwd=folder, capture_output=True, text=True)  # fmt: skip
    if out.returncode:
        return out.stderr
    print(f"{triple}: {len(objects)} files compile and link, {module.stat().st_size / 1e6:.1f} MB; not run", flush=True)
    return None


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("python", type=Path, help="the source tree of CPython, of this version")
    parser.add_argument("triples", nargs="*", default=TRIPLES, metavar="TRIPLE", help=", ".join(TRIPLES))
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="files at once")
    args = parser.parse_args()
    if not WRAPPER.exists():
        parser.error("no wrapper in build/cython: run python setup.py build_ext --inplace")
    failed = False
    with tempfile.TemporaryDirectory() as name, ThreadPoolExecutor(args.jobs) as pool:
        for triple in args.triples:
            folder = Path(name) / triple
            folder.mkdir()
            wrong = link(triple, args.python.resolve(), folder, pool)
            if wrong:
                print(f"{triple}: does not link\n{wrong}", file=sys.stderr)
                failed = True
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
