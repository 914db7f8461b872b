"""The site is built with warnings as errors where MkDocs is installed; what it is made of holds without it."""

from __future__ import annotations

import importlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import dynet_lite as dy

ROOT = Path(__file__).resolve().parent.parent
SITE = ROOT / "tools" / "site"


@pytest.fixture
def site_modules(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(SITE))


def test_every_public_name_is_on_a_page_of_the_api(site_modules: None) -> None:
    import reference

    pages = reference.pages()
    for name in ("tanh", "Expression", "LSTMBuilder", "AdamTrainer", "profile", "configure", "load_recipe"):
        assert sum(f"::: dynet_lite.{name}\n" in text for text in pages.values()) == 1, name
    assert "::: dynet_lite.text.minibatches\n" in pages["api/text.md"]
    assert "`SHIFT` = " in pages["api/nn.md"]


def test_methods_of_hidden_bases_are_described(site_modules: None) -> None:
    import reference

    attention = reference.pages()["api/nn.md"].partition("nn.MLPAttention\n")[2].partition(":::")[0]
    assert "inherited_members: [__call__, logits, remember, weights]" in attention


API = sorted((SITE / "api").glob("*.md"))


@pytest.mark.parametrize("page", API, ids=lambda path: path.stem)
def test_examples_of_the_api_print_what_they_say(
    page: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The programs of a page run one after the other in one module, each followed by its output."""
    monkeypatch.chdir(tmp_path)
    space: dict[str, object] = {"__name__": "__main__"}
    examples = re.findall(
        r"^```python\n(.*?)^```\n+(?:```text\n(.*?)^```)?", page.read_text(encoding="utf-8"), re.M | re.S
    )
    assert examples or page.stem in ("harness", "onnx")
    for program, printed in examples:
        exec(compile(program, page.name, "exec"), space)
        assert capsys.readouterr().out == printed


def test_pages_of_the_api_name_what_exists_once(site_modules: None) -> None:
    import reference

    for page, (title, _, modules) in reference.GROUPS.items():
        names = reference.mentioned(page)
        public = set(dy.__all__ if modules else importlib.import_module(title).__all__)
        assert len(names) == len(set(names)) and set(names) <= public, page
    assert {path.stem for path in API} == set(reference.GROUPS)


def test_a_tutorial_becomes_a_page(site_modules: None, tmp_path: Path) -> None:
    import tutorials

    script = tmp_path / "small.py"
    script.write_text(
        '"""Small.\n\n    python small.py\n\nA few lines.\n"""\n\n# %% 1. First\n# Some words.\nx = 3\n\n# %% 2. Second\nprint(x)\n'
    )
    page = tutorials.render(script)
    assert page.text == (
        "# Small\n\n    python small.py\n\nA few lines.\n\n## 1. First\n\nSome words.\n\n```python\nx = 3\n```\n\n"
        "## 2. Second\n\n\n\n```python\nprint(x)\n```\n\n```text\n3\n```\n\n"
    )
    script.write_text('"""Bad."""\n# %% 1. Fails\n1 / 0\n')
    with pytest.raises(ZeroDivisionError):
        tutorials.render(script)


def test_a_tutorial_runs_in_a_process_of_its_own(site_modules: None, tmp_path: Path) -> None:
    import tutorials

    script = tmp_path / "small.py"
    script.write_text(
        '"""Small."""\n\n# %% 1. First\nimport os\n\nimport dynet_lite as dy\nfrom dynet_lite import viz\n\n'
        f'print(os.getpid() != {os.getpid()})\nviz.save("a.svg", dy.tanh(dy.zeros(2)))\n'
    )
    page = tutorials.rendered_apart(script)
    assert "```text\nTrue\n```" in page.text and "[![small-a.svg](small-a.svg)](small-a.svg)" in page.text
    assert page.pictures["small-a.svg"].startswith(b"<svg")


@pytest.mark.skipif(importlib.util.find_spec("mkdocs") is None, reason="needs the extra docs")
def test_links_to_pictures_stay(site_modules: None) -> None:
    import pages

    text = "[![a.svg](a.svg)](a.svg) [code](../cext/op/op.h) [page](../seeing.md)"
    linked = pages.relinked(text, "docs/tutorials/x.py", "tutorials/x.md", {"a.svg"})
    assert linked == "[![a.svg](a.svg)](a.svg) code [page](../seeing.md)"


@pytest.mark.skipif(importlib.util.find_spec("griffe") is None, reason="needs the extra docs")
def test_docstrings_become_markdown(site_modules: None) -> None:
    import docstrings

    text = "Does a * b, a < b.\n\nseed: where it *starts*,\n    or None\npool: see `a_b`\n\n    code(here)"
    assert docstrings.markdown(text).splitlines() == [
        "Does a \\* b, a &lt; b.", "", "", "- `seed`: where it \\*starts\\*,", "  or None", "- `pool`: see `a_b`", "", "    code(here)",
    ]  # fmt: skip
    assert docstrings.unsigned("Graph.f(self, a=1)\n\nSays.") == "Says."
    assert docstrings.compiled("dynet_lite._core.ComputationGraph.checkpoint")


@pytest.mark.skipif(
    not (shutil.which("mkdocs") and importlib.util.find_spec("mkdocstrings")), reason="needs the extra docs"
)
@pytest.mark.skipif("DYNET_LITE_SITE_BUILT" in os.environ, reason=".ci/run has built it")
def test_the_site_is_built_without_a_warning(tmp_path: Path) -> None:
    env = {**os.environ, "PYTHONPATH": str(Path(dy.__file__).parents[1]), "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run([sys.executable, "-m", "mkdocs", "build", "-q", "--strict", "-f", str(ROOT / "mkdocs.yml"), "-d", str(tmp_path / "site")],
                          cwd=tmp_path, env=env, capture_output=True, text=True)  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    trees = (tmp_path / "site" / "tutorials" / "trees.html").read_text(encoding="utf-8")
    assert "loss per phrase" in trees and 'src="trees-one_tree.svg"' in trees and 'href="trees-trees.html"' in trees
    notebook = (tmp_path / "site" / "tutorials" / "notebook.html").read_text(encoding="utf-8")
    assert 'src="notebook-0.svg"' in notebook and "/birnn/" in notebook
    assert "Hyperbolic tangent" in (tmp_path / "site" / "api" / "ops.html").read_text(encoding="utf-8")
