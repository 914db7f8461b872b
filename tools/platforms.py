"""Does the engine compile for systems that are not at hand? Needs ziglang, which brings compilers and headers for them.

    python tools/platforms.py                     macOS, Windows and musl, all files: none is linked or run
    python tools/platforms.py x86_64-windows-gnu  for some systems alone
    python tools/platforms.py --seconds 110       what can be done in that time, each system's own code first

Every cext/**/*.cc is checked with warnings as errors, and the wrapper that Cython makes is not: it needs Python's headers for the
system. Exits with 1 when a file does not compile.
"""

from __future__ import annotations

import argparse
import itertools
import os
import re
import shlex
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TRIPLES = ["x86_64-windows-gnu", "aarch64-macos", "x86_64-macos", "x86_64-linux-musl", "aarch64-linux-musl"]
ZIG = [sys.executable, "-m", "ziglang"]
STANDARD = "algorithm atomic chrono cmath condition_variable cstdint functional map memory mutex string thread unordered_map vector"
# Where systems differ: these files are checked first.
OWN = re.compile(r"_WIN32|__APPLE__|__linux__|__unix__|__GLIBC__|_MSC_VER|__aarch64__")
# But for what a system has no use for.
WARNINGS = "-Wall -Wextra -Werror -Wno-unused-private-field -Wno-unused-parameter".split()
QUIET = "-Wno-unused-command-line-argument"
ISA = {"isa_avx2.cc": "-mavx2 -mfma -mf16c -mbmi -mbmi2",
       "isa_avx512.cc": "-mavx512f -mavx512vl -mavx512dq -mavx512bw -mavx2 -mfma -mf16c -mbmi -mbmi2"}  # fmt: skip


def compiler(triple: str, folder: Path) -> list[str]:
    """The call of clang that zig makes for a file of this system, without the file. zig itself is slower by half a second a file:
    it reads and hashes what the file includes.
    """
    probe = folder / "probe.cc"
    probe.write_text(f"// {folder}, which is new: else zig would take the object that it has\nint probe;\n")
    call = [
        *ZIG,
        *f"c++ -target {triple} -std=c++17 -fno-sanitize=all -c".split(),
        str(probe),
        "-o",
        str(folder / "probe.o"),
    ]
    out = subprocess.run(call, capture_output=True, text=True, env={**os.environ, "ZIG_VERBOSE_CC": "1"}, check=True)
    words = next(shlex.split(line) for line in out.stderr.splitlines() if str(probe) in line)
    flags, drop = [], False
    for word in words[1:]:
        if drop or word in ("-MF", "-o"):
            drop = not drop
        elif word not in (str(probe), "-MD", "-MV", "-c"):
            flags.append(word)
    return [words[0], *flags, QUIET]


def prepared(call: list[str], folder: Path) -> list[str]:
    """Options that save reading the standard headers anew for each file."""
    header = folder / "standard.h"
    header.write_text("".join(f"#include <{name}>\n" for name in STANDARD.split()))
    ready = folder / "standard.pch"
    subprocess.run([*call, "-x", "c++-header", str(header), "-o", str(ready)], check=True)
    return ["-include-pch", str(ready)]


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("triples", nargs="*", default=TRIPLES, metavar="TRIPLE", help=", ".join(TRIPLES))
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop after this time; default: never")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="files at once")
    args = parser.parse_args()
    end = time.monotonic() + args.seconds
    sources = sorted((ROOT / "cext").rglob("*.cc"), key=lambda p: (not OWN.search(p.read_text(encoding="utf-8")), p))

    with tempfile.TemporaryDirectory() as name, ThreadPoolExecutor(args.jobs) as pool:
        calls = {}
        for triple in args.triples:
            folder = Path(name) / triple
            folder.mkdir()
            call = compiler(triple, folder)
            calls[triple] = (call, prepared(call, folder))

        def check(task: tuple[Path, str]) -> tuple[str, bool | None]:
            source, triple = task
            if time.monotonic() > end:
                return triple, None
            call, with_headers = calls[triple]
            own = ISA.get(source.name, "").split() if triple.startswith("x86_64") else []
            file = str(source.relative_to(ROOT))
            options = [*(own or with_headers), "-fsyntax-only", *WARNINGS, "-Icext"]
            out = subprocess.run([*call, *options, file], cwd=ROOT, capture_output=True, text=True)
            if out.returncode:
                print(f"{triple}: {file}\n{out.stderr}", file=sys.stderr)
            return triple, out.returncode == 0

        results = list(pool.map(check, itertools.product(sources, args.triples)))
    for triple in args.triples:
        of = [ok for name, ok in results if name == triple]
        left = f", {of.count(None)} not checked for want of time" if None in of else ""
        print(f"{triple}: {of.count(True)} files compile, {of.count(False)} do not{left}")
    return int(any(ok is False for _, ok in results))


if __name__ == "__main__":
    sys.exit(main())
