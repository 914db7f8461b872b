"""Pictures of a graph and of the plan it was run by: text, graphviz, SVG, and an HTML page to look around in.

    from dynet_lite import viz

    viz.save("graph.html", loss)   # or .svg, .dot, .txt; loss: what to draw; without it the whole current graph

Each function takes a graph (default: the current one), an expression or a list of expressions (then what they depend on is
drawn). Nodes of one batch have one colour. Weights are left out unless ``weights=True``. `names` gives rows of tables a name:
``names=lambda table, row: words.word(row) if table == "/E" else None``. What is pending is run first.
`import dynet_lite` does not import this package.
"""

from __future__ import annotations

import os
from pathlib import Path

from dynet_lite.files import replacing

from .formats import to_dot, to_svg, to_text
from .page import to_html
from .picture import Names, What, picture

__all__ = ["dot", "html", "save", "svg", "text"]


def text(what: What = None, weights: bool = False, names: Names = None) -> str:
    """A line for each node with its arguments and its batch, then a line for each batch."""
    return to_text(picture(what, weights, names))


def dot(what: What = None, weights: bool = False, names: Names = None) -> str:
    """The graph in the language of graphviz, one colour per batch."""
    return to_dot(picture(what, weights, names))


def svg(what: What = None, weights: bool = False, names: Names = None) -> str:
    """The graph as an SVG picture, one colour per batch. ValueError for more than 4000 nodes."""
    return to_svg(picture(what, weights, names))


def html(what: What = None, weights: bool = False, names: Names = None, title: str = "Computation graph") -> str:
    """A page that stands alone: point at nodes, click on batches, follow the order of execution."""
    return to_html(picture(what, weights, names), title)


def save(path: str | os.PathLike[str], what: What = None, weights: bool = False, names: Names = None) -> None:
    """Writes the picture to a file. The ending decides the format: .txt, .dot, .gv, .svg or .html."""
    formats = {".txt": text, ".dot": dot, ".gv": dot, ".svg": svg, ".html": html}
    ending = Path(path).suffix.lower()
    if ending not in formats:
        raise ValueError(f"[viz] a file name ends in {', '.join(formats)}; got {os.fspath(path)!r}")
    drawn = formats[ending](what, weights, names).encode("utf-8", "backslashreplace")
    with replacing(os.fspath(path)) as file:
        file.write(drawn)
