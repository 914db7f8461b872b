#!/usr/bin/env python
"""Does the thread sanitizer see mistakes between threads? Puts some in on purpose, one at a time, and looks for its report.

    python tests/thread_mutations.py            all of them: some minutes once the build is there
    python tests/thread_mutations.py bins wait  these

Works on a copy of the tree in build/thread-mutations, builds it as `tests/sanitize.sh --thread` does and runs the tests named
with the mistake. A mistake that is not reported is an error, and so is one whose place in the source is gone. Linux and gcc.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
COPY = ROOT / "build" / "thread-mutations"


@dataclass
class Mutation:
    """A piece of a file that is replaced by another."""

    what: str
    file: str
    old: str
    new: str
    tests: str = "tests/engine/test_shared_gradients.py"


MUTATIONS = {
    "handover": Mutation(
        "what a lane has written is not released to who waits for it",
        "cext/exec/pool.cc",
        "done_.fetch_add(1, std::memory_order_release);",
        "done_.fetch_add(1, std::memory_order_relaxed);",
    ),
    "acquire": Mutation(
        "who waits for lanes does not acquire what they have written",
        "cext/exec/pool.cc",
        "done_.load(std::memory_order_acquire) < n",
        "done_.load(std::memory_order_relaxed) < n",
    ),
    "task": Mutation(
        "what a step in the background has written is not released",
        "cext/exec/pool.cc",
        "task_state_.store(kDone, std::memory_order_release);",
        "task_state_.store(kDone, std::memory_order_relaxed);",
        "tests/engine/test_overlap.py",
    ),
    "wait": Mutation(
        "gradients of shared arguments are formed before the lane is done",
        "cext/exec/backward.cc",
        "if (before != kNoNode && !progress.wait(before - stage.task)) return;",
        "static_cast<void>(before);",
    ),
    "bins": Mutation(
        "two lanes add to one weight at the same time: a bin waits for its lane, not for the lane before",
        "cext/exec/backward.cc",
        "if (before != kNoNode && !progress.wait(before - stage.task)) return;",
        "if (before != kNoNode && before == task.after[0] && !progress.wait(before - stage.task)) return;",
    ),
    "transposes": Mutation(
        "a transpose is read without having been released",
        "cext/kernels/transposes.h",
        "e->made.store(true, std::memory_order_release);",
        "e->made.store(true, std::memory_order_relaxed);",
        "tests/engine/test_transposes.py",
    ),
}


def copy_tree() -> None:
    """The files of the working tree, and what has been built for the sanitizer, for that saves most of the time."""
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    for name in listed.stdout.splitlines():
        source, target = ROOT / name, COPY / name
        if source.is_file() and not (target.exists() and target.read_bytes() == source.read_bytes()):
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target)
    built = Path("build") / "sanitize-thread"
    if (ROOT / built).is_dir() and not (COPY / built).exists():
        shutil.copytree(ROOT / built, COPY / built)


def reported(tests: str) -> tuple[bool, str]:
    """Did the sanitizer report a race? And what the run printed."""
    done = subprocess.run(
        ["bash", "tests/sanitize.sh", "--thread", tests, "-k", "not fork and not process"],
        cwd=COPY, capture_output=True, text=True, env={**os.environ, "PYTHON": sys.executable},
    )  # fmt: skip
    found = [path.read_text() for path in (COPY / "build" / "sanitize-thread").glob("report.*")]
    return any("ThreadSanitizer: data race" in text for text in found), done.stdout[-2000:] + done.stderr[-2000:]


def missed(name: str, mutation: Mutation) -> bool:
    """Tries one. The copy is as it was afterwards."""
    path = COPY / mutation.file
    text = path.read_text()
    if text.count(mutation.old) != 1:
        print(f"{name}: {mutation.file} no longer has one place that reads\n    {mutation.old}")
        return True
    path.write_text(text.replace(mutation.old, mutation.new))
    try:
        found, output = reported(mutation.tests)
    finally:
        path.write_text(text)
    print(f"{name}: {'reported' if found else 'NOT REPORTED'} ({mutation.what})", flush=True)
    if not found:
        print(output)
    return not found


def main() -> int:
    """The exit status: 0 if each was reported, and nothing without any."""
    names = sys.argv[1:] or list(MUTATIONS)
    if unknown := [name for name in names if name not in MUTATIONS]:
        print(f"unknown: {', '.join(unknown)}; there are {', '.join(MUTATIONS)}", file=sys.stderr)
        return 2
    copy_tree()
    return int(sum(missed(name, MUTATIONS[name]) for name in names) > 0)


if __name__ == "__main__":
    sys.exit(main())
