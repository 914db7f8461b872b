"""Docstrings for the site, an extension of griffe: those of the compiled module, which its stub has not, and all of
them as Markdown.

In the sources a docstring explains parameters as lines "name: what it is" (or with blanks in place of the colon); on the site
these become a list.
"""

from __future__ import annotations

import inspect
import re
from typing import Any

import griffe

PARAMETER = re.compile(r"^(\*{0,2}\w+(?:, \w+)*)(?:: | {2,})(?=\S)")
CODE = re.compile(r"(``[^`]+``|`[^`]+`)")


SIGNATURE = re.compile(r"[\w.]+\(.*\)(?: ->.*)?(?:\n|$)|\w+: \w+(?:\n|$)")


def unsigned(text: str) -> str:
    """Without the signature that Cython puts above a docstring."""
    found = SIGNATURE.match(text)
    return text[found.end() :].strip() if found else text


def compiled(path: str) -> str | None:
    """The docstring of a thing in dynet_lite._core."""
    import dynet_lite._core

    thing: Any = dynet_lite._core
    for name in path.split(".")[2:]:
        thing = inspect.getattr_static(thing, name, None) or getattr(thing, name, None)
    return inspect.getdoc(thing) if thing is not None else None


def escaped(line: str) -> str:
    """Outside of code, signs that Markdown or HTML would take for their own."""
    return "".join(
        part if CODE.fullmatch(part) else re.sub(r"([*_\[])", r"\\\1", part).replace("<", "&lt;")
        for part in CODE.split(line)
    )


def markdown(text: str) -> str:
    """Parameters as a list, examples as code, the rest as paragraphs."""
    lines: list[str] = []
    kind = "text"
    for line in text.splitlines():
        parameter = PARAMETER.match(line)
        if not line.strip():
            kind = "text" if kind == "parameter" else kind
            lines.append("")
        elif line.startswith("    ") and kind != "parameter" and (not lines or not lines[-1] or kind == "code"):
            kind = "code"
            lines.append(line)
        elif parameter:
            if kind != "parameter":
                lines.append("")
            kind = "parameter"
            lines.append(f"- `{parameter[1]}`: {escaped(line[parameter.end() :])}")
        else:
            kind = "parameter" if kind == "parameter" and line.startswith(" ") else "text"
            lines.append(("  " if kind == "parameter" else "") + escaped(line.strip()))
    return "\n".join(lines)


class Docstrings(griffe.Extension):
    """Called by griffe for each object it has read."""

    def on_object(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        text = obj.docstring.value if obj.docstring else None
        if obj.path.startswith("dynet_lite._core."):
            text = unsigned(text or compiled(obj.path) or "")
        if text:
            obj.docstring = griffe.Docstring(markdown(inspect.cleandoc(text)), parent=obj)
        elif obj.docstring:
            obj.docstring = None
