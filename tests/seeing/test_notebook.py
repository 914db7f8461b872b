"""Notebooks: what objects show of themselves, the progress bar, and the tutorial from top to bottom."""

from __future__ import annotations

import json
import os
import sys
import types
from pathlib import Path
from typing import Any

import pytest

import dynet_lite as dy
from dynet_lite import viz
from dynet_lite.harness import progress

TUTORIAL = Path(__file__).resolve().parents[2] / "docs" / "tutorials" / "notebook.ipynb"


def graph() -> dy.Expression:
    dy.renew_cg()
    W = dy.ParameterCollection().add_parameters((3, 3), name="<W>")
    return dy.esum([dy.tanh(W * dy.inputVector([k, 1, 2])) for k in range(2)])


def test_a_graph_is_a_picture() -> None:
    dy.renew_cg()
    assert dy.cg()._repr_svg_() is None, "an empty graph has none"
    x = graph()
    assert dy.cg()._repr_svg_() == viz.svg(dy.cg())
    for _ in range(300):
        x = dy.tanh(x)
    assert dy.cg()._repr_svg_() is None, "too large to be read"


def test_explanations_are_tables() -> None:
    graph()
    rewrites = dy.explain_rewrites()._repr_html_()
    assert "<td" in rewrites and "elementwise" in rewrites
    with dy.profile() as profile:
        graph().value()
    assert profile.ops() and all(f">{op.op}</td>" in profile._repr_html_() for op in profile.ops())
    batches = dy.explain_batches()
    shown = batches._repr_html_()
    assert shown.count("<tr>") == 1 + len(batches.kinds)
    assert "&lt;W&gt;" in dy.summary(x_model())._repr_html_() and "<W>" not in shown


def x_model() -> dy.ParameterCollection:
    model = dy.ParameterCollection()
    model.add_parameters((3, 3), name="<W>")
    return model


def test_a_bar_is_shown_in_a_notebook(monkeypatch: pytest.MonkeyPatch) -> None:
    class ZMQInteractiveShell:
        pass

    assert list(progress.bar([1, 2], quiet=True)) == [1, 2]
    assert progress.bar([1]).disable, "no terminal here"
    shell: Any = types.ModuleType("IPython")
    shell.get_ipython = ZMQInteractiveShell
    monkeypatch.setitem(sys.modules, "IPython", shell)
    bar = progress.bar([1])
    assert not bar.disable
    bar.close()
    assert progress.bar([1], quiet=True).disable


def test_the_tutorial_is_stripped() -> None:
    cells = [cell for cell in json.loads(TUTORIAL.read_text(encoding="utf-8"))["cells"] if cell["cell_type"] == "code"]
    assert len(cells) >= 4 and all(cell["outputs"] == [] and cell["execution_count"] is None for cell in cells)


def test_the_tutorial_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nbformat = pytest.importorskip("nbformat")
    client = pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    monkeypatch.setenv("PYTHONPATH", str(Path(dy.__file__).parents[1]))
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "1")
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    book = nbformat.read(TUTORIAL, as_version=4)
    client.NotebookClient(
        book, timeout=120, kernel_name="python3", resources={"metadata": {"path": os.fspath(tmp_path)}}
    ).execute()
    outputs = [output for cell in book.cells if cell.cell_type == "code" for output in cell.outputs]
    kinds = {kind for output in outputs for kind in output.get("data", {})}
    assert {"image/svg+xml", "text/html"} <= kinds
    assert any("epoch 6  loss per word" in output.get("text", "") for output in outputs)
    assert "('book', 'NOUN')" in str(outputs[-1]["data"]["text/plain"])
