"""A tutorial as a page: the script is run cell by cell, and each cell is followed by what it prints and draws.

As a program, `python tutorials.py FILE`, it writes the page as JSON: each tutorial has a process of its own, for one of them lets
dynet_lite stand in for DyNet.
"""

from __future__ import annotations

import ast
import base64
import contextlib
import io
import json
import os
import re
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dynet_lite import viz

CELL = re.compile(r"^# %% (.+)$", re.MULTILINE)


@dataclass
class Tutorial:
    """A page in Markdown, and the pictures that lie beside it: name -> content."""

    text: str = ""
    pictures: dict[str, bytes] = field(default_factory=dict)


def cells(source: str) -> Iterator[tuple[str, str, str, int]]:
    """(title, prose, code, first line of the code) of each cell; what stands before the first belongs to it."""
    marks = list(CELL.finditer(source))
    for k, mark in enumerate(marks):
        end = marks[k + 1].start() if k + 1 < len(marks) else len(source)
        body = source[mark.end() : end].lstrip("\n")
        prose = re.match(r"(?:#[^\n]*\n)*", body)
        assert prose
        words = "\n".join(line.lstrip("#").strip() for line in prose[0].splitlines())
        before = source[: mark.end()].count("\n") + 1 + prose[0].count("\n")
        yield mark[1], words, body[prose.end() :].strip("\n"), before


@contextlib.contextmanager
def kept_pictures(name: str, pictures: dict[str, bytes]) -> Iterator[None]:
    """What viz.save() writes meanwhile is kept, too."""
    save = viz.save

    def also(path: Any, *args: Any, **kwargs: Any) -> None:
        save(path, *args, **kwargs)
        pictures[f"{name}-{Path(path).name}"] = Path(path).read_bytes()

    viz.save = also  # type: ignore[assignment]
    try:
        yield
    finally:
        viz.save = save


def shown(pictures: list[str]) -> str:
    """Pictures in the page; pages in a frame."""
    parts = []
    for picture in pictures:
        if picture.endswith(".html"):
            parts.append(
                f'<iframe src="{picture}" width="100%" height="560" title="{picture}"></iframe>\n\n[On a page of its own]({picture})'
            )
        else:
            parts.append(f"[![{picture}]({picture})]({picture})")
    return "".join(part + "\n\n" for part in parts)


def of_notebook(file: Path) -> Tutorial:
    """A notebook as a page: its cells are run here, and the last expression of each is shown as a notebook shows it."""
    page = Tutorial()
    space: dict[str, Any] = {"__name__": "__main__"}
    for cell in json.loads(file.read_text(encoding="utf-8"))["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            page.text += source + "\n\n"
            continue
        page.text += f"```python\n{source}\n```\n\n"
        tree = ast.parse(source)
        last = ast.Expression(tree.body.pop().value) if isinstance(tree.body[-1], ast.Expr) else None  # type: ignore[attr-defined]
        output = io.StringIO()
        with contextlib.redirect_stdout(output):
            exec(compile(tree, str(file), "exec"), space)
            value = eval(compile(last, str(file), "eval"), space) if last else None
        if output.getvalue():
            page.text += f"```text\n{output.getvalue()}```\n\n"
        page.text += displayed(value, f"{file.stem}-{len(page.pictures)}.svg", page.pictures)
    return page


def displayed(value: Any, name: str, pictures: dict[str, bytes]) -> str:
    """A value as a notebook shows it: picture, table or text."""
    picture = value._repr_svg_() if hasattr(value, "_repr_svg_") else None
    if picture:
        pictures[name] = picture.encode()
        return shown([name])
    if hasattr(value, "_repr_html_"):
        return value._repr_html_() + "\n\n"
    return "" if value is None else f"```text\n{value!r}\n```\n\n"


def render(script: Path) -> Tutorial:
    """Runs a tutorial in an empty folder; an exception in it is one here."""
    source = script.read_text(encoding="utf-8")
    title, _, about = (ast.get_docstring(ast.parse(source)) or script.stem).partition("\n")
    page = Tutorial(f"# {title.rstrip('.')}\n\n{about.strip(chr(10))}\n\n")
    space: dict[str, Any] = {"__name__": "__main__", "__file__": str(script)}
    here = os.getcwd()
    with tempfile.TemporaryDirectory() as folder, kept_pictures(script.stem, page.pictures), warnings.catch_warnings():
        os.chdir(folder)
        try:
            for name, prose, code, line in cells(source):
                seen = set(page.pictures)
                output = io.StringIO()
                with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
                    exec(compile("\n" * line + code, str(script), "exec"), space)
                page.text += f"## {name}\n\n{prose}\n\n" + (f"```python\n{code}\n```\n\n" if code else "")
                if output.getvalue().strip():
                    page.text += "```text\n" + output.getvalue().rstrip("\n") + "\n```\n\n"
                page.text += shown([p for p in page.pictures if p not in seen])
        finally:
            os.chdir(here)
    return page


def rendered(file: Path) -> Tutorial:
    """The page of a script or a notebook."""
    return of_notebook(file) if file.suffix == ".ipynb" else render(file)


def rendered_apart(file: Path) -> Tutorial:
    """The same, from a process of its own, in which dynet_lite is the one of this process."""
    path = os.pathsep.join([str(Path(viz.__file__).parents[2]), *filter(None, [os.environ.get("PYTHONPATH")])])
    command = [sys.executable, __file__, str(file)]
    done = subprocess.run(command, stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": path}, check=True)
    page = json.loads(done.stdout)
    return Tutorial(page["text"], {name: base64.b64decode(content) for name, content in page["pictures"].items()})


if __name__ == "__main__":
    made = rendered(Path(sys.argv[1]))
    print(
        json.dumps({"text": made.text, "pictures": {n: base64.b64encode(c).decode() for n, c in made.pictures.items()}})
    )
