"""Help pages show commands that work for whoever reads them."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from dynet_lite.__main__ import main
from dynet_lite.harness import called, catalogue


def test_help_shows_commands_that_work_without_a_clone(monkeypatch: pytest.MonkeyPatch) -> None:
    about = "About.\n\n    python recipes/x.py            # trains\n    python recipes/x.py predict -  # answers"
    monkeypatch.setattr(sys, "argv", ["recipes/x.py"])
    assert called.shown(about) == about and called.command("predict") == "x.py predict" and called.command() == "x.py"
    monkeypatch.setattr(called, "_name", "x")
    assert called.shown(about).splitlines()[2:] == [
        "    python -m dynet_lite train x      # trains",
        "    python -m dynet_lite predict x -  # answers",
    ]
    assert called.command("predict") == "python -m dynet_lite predict x"


def test_a_program_without_options_has_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "xor", "--help"]) == 0 and "It has no options" in capsys.readouterr().out
    assert main(["predict", "xor", "--load", "x"]) == 2 and "saves no model" in capsys.readouterr().err


def test_a_program_imports_what_lies_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "beside_the_recipe.py").write_text("NAME = 'beside'\n")
    program = tmp_path / "mine.py"
    program.write_text("import beside_the_recipe\nprint(beside_the_recipe.NAME)  # harness.main(\n")
    monkeypatch.setattr(sys, "argv", ["dynet_lite"])
    before = sys.path[:]
    assert main(["train", str(program)]) == 0 and capsys.readouterr().out == "beside\n"
    assert sys.path == before


def test_a_program_in_another_coding(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program = tmp_path / "old.py"
    program.write_bytes("# -*- coding: latin-1 -*-\n'''Für alle'''\nprint('harness.main(')\n".encode("latin-1"))
    assert main(["train", str(program)]) == 0 and capsys.readouterr().out == "harness.main(\n"
    assert catalogue.summary(program) == "Für alle"
