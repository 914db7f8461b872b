"""What is written down holds: no machine's paths, examples that run, pages that name files which exist."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


TEXT_FILES = (".py", ".pyi", ".pyx", ".pxd", ".pxi", ".h", ".cc", ".md", ".toml", ".yaml", ".in", ".sh")
SKIPPED = ("build", "dist", ".git", "node_modules")
# A path that begins at the root of somebody's machine.
ABSOLUTE = re.compile(
    r"""(?:^|[\s"'`=(:,])((?:/(?:work|tmp|root|home|Users|mnt|opt|var|srv)\b|[A-Z]:\\\\)[^\s"'`),]*)"""
)


def is_ours(folder: Path) -> bool:
    """Neither what was built nor a virtual environment, whatever it is called."""
    made = folder.name in SKIPPED or folder.name.endswith((".egg-info", "_cache", "__pycache__"))
    return not made and not (folder / "pyvenv.cfg").exists()


def files() -> Iterator[Path]:
    for folder, below, names in os.walk(ROOT):
        here = Path(folder).relative_to(ROOT).parts
        below[:] = [d for d in below if is_ours(Path(folder) / d)]
        for name in names:
            if name.endswith(TEXT_FILES) or here[:1] == (".ci",):
                yield Path(folder) / name


def test_names_of_test_files_are_unique() -> None:
    """pytest takes two of one name for the same file; .ci/run, which runs tests/device by itself, would not see it."""
    counted = Counter(path.name for path in files() if path.match("test_*.py"))
    assert counted and not [name for name, n in counted.items() if n > 1]


def test_no_absolute_paths() -> None:
    found = []
    for path in files():
        if path == Path(__file__).resolve():
            continue
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            for match in ABSOLUTE.finditer(line):
                in_tests = path.relative_to(ROOT).parts[0] == "tests" and match[1].startswith("/tmp")
                if not in_tests:
                    found.append(f"{name_of(path)}:{number}: {match[1]}")
    assert not found, "\n".join(found)


def test_absolute_paths_are_recognised() -> None:
    for line in ('open("/home/me/x")', "see /tmp/log", "PATH=/opt/x", r'"C:\\data"'):
        assert ABSOLUTE.search(line), line
    for line in (
        '"/encoder/_0"',
        "#!/usr/bin/env bash",
        "https://example.org/home",
        "a /b",
        "./tmp",
        "https://x.org/var/",
    ):
        assert not ABSOLUTE.search(line), line


def blocks(page: str, kind: str) -> list[str]:
    return re.findall(rf"^```{kind}\n(.*?)^```", (ROOT / page).read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def test_architecture_example_prints_its_plan(capsys: pytest.CaptureFixture[str]) -> None:
    exec(compile(blocks("ARCHITECTURE.md", "python")[0], "ARCHITECTURE.md", "exec"), {"__name__": "__main__"})
    assert capsys.readouterr().out == blocks("ARCHITECTURE.md", "text")[0]


PAGES = [
    name_of(path) for pattern in ("*.md", "docs/**/*.md", "benchmarks/*.md") for path in sorted(ROOT.glob(pattern))
]


@pytest.mark.parametrize("page", PAGES)
def test_pages_name_files_that_exist(page: str) -> None:
    """Every path in backquotes that looks like one of the repository's."""
    words = (ROOT / page).read_text(encoding="utf-8")
    named = re.findall(
        r"`((?:cext|dynet_lite|tests|recipes|benchmarks|data|docs|tools|\.ci|\.github)/[\w./-]*)`", words
    )
    missing = sorted({p for p in named if "NAME" not in p and not (ROOT / p).exists()})
    assert not missing


def test_sources_name_files_that_exist() -> None:
    """Every path, such as exec/update.h, that begins with a folder of the repository, of cext/ or of the package."""
    known = [name_of(path) for path in files()]
    ends = {name[at:] for name in known for at in [0, *(m.end() for m in re.finditer("/", name))]}
    tops = (ROOT, ROOT / "cext", ROOT / "dynet_lite")
    folders = {path.name for top in tops for path in top.iterdir() if path.is_dir() and is_ours(path)}
    path = re.compile(
        rf"(?<![\w./*-])(?:{'|'.join(map(re.escape, folders))})/(?:[\w-]+/)*[a-z_\d-]{{2,}}\.(?:cc|h|pxi|pyx|py|sh|md)\b"
    )
    missing = [
        f"{name}: {found}"
        for name in known
        if not name.endswith(".md")
        for found in path.findall((ROOT / name).read_text(encoding="utf-8"))
        if found not in ends
    ]
    assert not missing, "\n".join(missing)


def test_the_same_pythons_everywhere() -> None:
    """Those that wheels are made for are those of the classifiers, and the oldest and newest are tested on all systems."""
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    wheels = re.findall(r"cp3(\d+)-\*", re.search(r'^build = "(.*)"', project, re.MULTILINE)[1])  # type: ignore[index]
    assert re.findall(r"Python :: 3\.(\d+)", project) == wheels
    assert re.search(r'requires-python = ">=3\.(\d+)"', project)[1] == wheels[0]  # type: ignore[index]
    workflow = (ROOT / ".github/workflows/tests.yml").read_text(encoding="utf-8")
    assert f'python: ["3.{wheels[0]}", "3.{wheels[-1]}"]' in workflow
    assert f"for Python 3.{wheels[0]} to 3.{wheels[-1]}" in (ROOT / "docs/installing.md").read_text(encoding="utf-8")
