"""docs/recipes.md: the recipe that it shows runs, and every option that it names is there."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest

from dynet_lite.harness import Recipe
from dynet_lite.harness.settings import StreamSettings

PAGE = Path(__file__).resolve().parents[2] / "docs" / "recipes.md"


def test_the_recipe_of_the_page(tmp_path):
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    (code,) = [block for block in blocks if "class LastLetter" in block]
    (tmp_path / "last_letter.py").write_text(code, encoding="utf-8")

    def run(*args: str, stdin: str = "") -> list[str]:
        done = subprocess.run([sys.executable, "last_letter.py", *args], cwd=tmp_path, input=stdin, text=True,
                              capture_output=True, timeout=60)  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()

    assert "ten words: 50 sentences" in run("--smoke")[0]
    assert "accuracy 100%" in run("--save", "model", "--learning-rate", "0.02")[-1]
    assert run("predict", "--load", "model", "-", stdin="tree\nplan\n") == ["e", "n"]
    with pytest.raises(AssertionError, match="this recipe reads no files"):
        run("evaluate", "--load", "model", "words.txt")


def test_the_page_names_all_that_a_recipe_may_define():
    page = PAGE.read_text(encoding="utf-8")
    names = [name for name in dir(Recipe) if not name.startswith("_")]
    assert len(names) > 20
    assert [name for name in names if not re.search(rf"`{name}(\(\))?`|\b{name}( =|\()", page)] == []
    for name in ("unused", "noise"):
        assert hasattr(StreamSettings, name) and f"| `{name}`, in the settings |" in page


def test_every_option_of_the_page_is_there():
    names = {"--" + f.name.replace("_", "-") for f in fields(StreamSettings)} | {
        "--help",
        "--output",
        "--form",
        "--column",
        "--to",
        "--no-autobatch",
        "--no-smoke",
    }
    root = PAGE.parents[1]
    for recipe in [*root.glob("recipes/*.py"), *root.glob("dynet_lite/**/*.py")]:  # the fields of their own settings
        names |= {
            "--" + name.replace("_", "-") for name in re.findall(r"^    (\w+): ", recipe.read_text("utf-8"), re.M)
        }
    assert set(re.findall(r"--[a-z]+(?:-[a-z]+)*", PAGE.read_text(encoding="utf-8"))) <= names
