"""The recipes and the data that come with the package: where they lie and what they are called.

In an installed package they lie in dynet_lite/recipes, with the treebank in dynet_lite/data; in a source tree, in recipes/
and data/ beside the package. Runs none of them.
"""

from __future__ import annotations

import ast
import difflib
import shutil
from pathlib import Path

import dynet_lite
from dynet_lite.errors import DataError

__all__ = ["copy", "program", "programs", "summary", "treebank"]


def _home(name: str) -> Path:
    """The folder `name` (recipes or data) of the installed package, or of the source tree that the package lies in."""
    package = Path(dynet_lite.__file__).resolve().parent
    for folder in (package / name, package.parent / name):
        if folder.is_dir():
            return folder
    raise DataError(
        f"the folder {name}/ is missing from this build of dynet_lite: install it from a wheel or a full checkout"
    )


def treebank() -> Path:
    """The folder of the small treebank in the package: train and dev as .conllu, .ptb, .sst, and names as .iob."""
    return _home("data") / "treebank"


def programs() -> dict[str, Path]:
    """name: file of every recipe, in the order of the alphabet."""
    return {path.stem: path for path in sorted(_home("recipes").glob("*.py")) if not path.stem.startswith("_")}


def program(name: str) -> Path:
    """The file of a recipe: one of ours by its name, or any file of Python. DataError names the recipe that was meant."""
    if Path(name).suffix or Path(name).name != name:  # a file
        if not (name.endswith(".py") and Path(name).is_file()):
            raise DataError(
                f"{name}: expected a recipe first, its name or a file such as my_recipe.py; then options, such as --load "
                "MODEL, and other files"
            )
        return Path(name)
    known = programs()
    if name in known:
        return known[name]
    near = difflib.get_close_matches(name, known, 1)
    hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(known)}"
    raise DataError(f"there is no recipe {name!r}; {hint}")


def summary(path: str | Path) -> str:
    """The first line of a recipe's docstring."""
    return (ast.get_docstring(ast.parse(Path(path).read_bytes())) or "").partition("\n")[0]


def has_options(path: str | Path) -> bool:
    """Whether a recipe has a command line: it hands it to `harness.main`, or reads it by itself."""
    text = Path(path).read_bytes()  # Python says what is wrong with its coding
    return any(word in text for word in (b"harness.main(", b"import main", b"argv", b"argparse"))


def copy(name: str, folder: str | Path = ".") -> Path:
    """Copies a recipe into a folder, to start from; a file that is there already stays as it is (FileExistsError)."""
    source = program(name)
    target = Path(folder) / source.name
    with source.open("rb") as old, target.open("xb") as new:
        shutil.copyfileobj(old, new)
    return target
