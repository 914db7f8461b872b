"""What a build from source says when something is missing, and what the package says of itself. Nothing is compiled here."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.skipif(
    not (ROOT / "setup.py").exists() or os.name == "nt", reason="needs the source tree and a shell"
)
pytest.importorskip("Cython")
pytest.importorskip("setuptools", minversion="77")


def built(tmp_path: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    command = [
        sys.executable,
        "setup.py",
        "-q",
        "build_ext",
        "--build-temp",
        str(tmp_path / "temp"),
        "--build-lib",
        str(tmp_path / "lib"),
    ]
    env = {**{k: v for k, v in os.environ.items() if k not in ("CC", "CXX")}, **variables}
    return subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=120)


def test_a_missing_compiler_is_one_sentence(tmp_path: Path) -> None:
    missing = str(tmp_path / "no-such-compiler")
    done = built(tmp_path, CC=missing, CXX=missing)
    assert done.returncode == 1
    assert f"needs a C++17 compiler, and '{missing}' was not found: install one" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_missing_system_blas_is_one_sentence(tmp_path: Path) -> None:
    """The compiler here cannot link anything."""
    compiler = tmp_path / "c++"
    compiler.write_text("#!/bin/sh\nexit 1\n")
    compiler.chmod(0o755)
    done = built(tmp_path, CC=str(compiler), CXX=str(compiler), DYNET_LITE_BLAS="system")
    assert done.returncode == 1
    assert "DYNET_LITE_BLAS=system found no BLAS with the C interface (cblas_sgemm): install one" in done.stderr
    assert "Traceback" not in done.stderr


def test_versions_agree() -> None:
    """Of the package, the module, the citation and the changelog; a tag of another version is refused."""
    checked = [sys.executable, str(ROOT / "tools" / "release.py")]
    assert subprocess.run(checked, capture_output=True, timeout=60).returncode == 0
    refused = subprocess.run([*checked, "v999.0"], capture_output=True, text=True, timeout=60)
    assert refused.returncode == 1
    for name in ("pyproject.toml", "dynet_lite/__init__.py", "CITATION.cff", "CHANGELOG.md"):
        assert re.search(rf"^{re.escape(name)} has version [\d.]+, not 999\.0$", refused.stdout, re.MULTILINE)


@pytest.mark.parametrize("home", ["https://example.org/us/project", ""])
def test_links_of_the_package(home: str, tmp_path: Path) -> None:
    """They lead to the repository that the package was built in, if that is known; none is made up."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("GITHUB_")} | {"DYNET_LITE_HOME": home}
    command = [sys.executable, "setup.py", "-q", "egg_info", "-e", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    about = (tmp_path / "dynet_lite.egg-info" / "PKG-INFO").read_text(encoding="utf-8")
    assert (f"Project-URL: Changelog, {home}/blob/main/CHANGELOG.md" in about) == bool(home)
    assert ("](docs/recipes.md)" in about) == (not home)
    assert (f"]({home}/blob/main/docs/recipes.md)" in about) == bool(home)


class Compiler:
    """Stands in for that of setuptools: notes what is to be made, and makes empty files."""

    compiler_type = "unix"
    include_dirs: list[str] = []
    library_dirs: list[str] = []

    def __init__(self) -> None:
        self.compiler_so, self.compiler_so_cxx, self.linker_so_cxx = ["cc"], ["c++"], ["c++", "-shared"]
        self.made: list[str] = []

    def object_filenames(self, sources: list[str], output_dir: str) -> list[str]:
        return [str(Path(output_dir) / "one.o")]

    def compile(self, sources: list[str], output_dir: str, **options: object) -> None:
        self._make(self.object_filenames(sources, output_dir)[0])

    def link_shared_object(self, objects: list[str], target: str, **options: object) -> None:
        self._make(target)

    def _make(self, file: str) -> None:
        Path(file).write_text("")
        self.made.append(Path(file).name)


def test_another_compiler_or_other_flags_make_everything_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also those of C++ alone: CXX and CXXFLAGS change no command of C."""
    import runpy

    import setuptools

    monkeypatch.setattr(setuptools, "setup", lambda **_: None)
    monkeypatch.chdir(ROOT)
    build = runpy.run_path("setup.py")["BuildCore"](setuptools.Distribution())
    build.compiler, build.msvc, build.system_blas, build.force = Compiler(), False, [], False
    build.of_standard_library = []
    build.objects_dir = build.build_temp = tmp_path
    source, module = Path("cext/base/wait.cc"), setuptools.Extension("dynet_lite._core", [])

    def made() -> list[str]:
        build.compiler.made.clear()
        one, fresh = build.compile_one(source, False)
        build.link(module, tmp_path / "core.so", [one], fresh)
        return build.compiler.made

    assert made() == ["one.o", "core.so"]
    assert made() == []
    build.compiler.compiler_so_cxx = ["c++", "-g"]
    assert made() == ["one.o", "core.so"]
    build.compiler.linker_so_cxx = ["c++", "-shared", "-s"]
    assert made() == ["core.so"]
    assert made() == []
