"""What notebooks show: tables in HTML for the things that print as text elsewhere.

A notebook asks an object for ``_repr_html_()`` or ``_repr_svg_()``. Sees the standard library only.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Sequence

__all__ = ["table"]


NUMBER = re.compile(r"[\d.,]+( (s|ms|us|B|KB|MB|GB))?|[\d.]+%")


def table(head: Sequence[str], rows: Iterable[Sequence[object]], about: str = "") -> str:
    """A table with a line of text above it. Everything is escaped; columns of numbers stand on the right."""
    cells = [[f"{value:,}" if isinstance(value, (int, float)) else str(value) for value in row] for row in rows]
    right = [bool(cells) and all(NUMBER.fullmatch(row[k]) for row in cells) for k in range(len(head))]
    first = _row("th", head, right)
    body = "".join(_row("td", row, right) for row in cells)
    words = f"<p>{html.escape(about)}</p>" if about else ""
    return f"{words}<table><thead>{first}</thead><tbody>{body}</tbody></table>"


def _row(tag: str, cells: Sequence[str], right: Sequence[bool]) -> str:
    places = ("right" if one else "left" for one in right)
    made = (
        f'<{tag} style="text-align: {place}">{html.escape(text)}</{tag}>'
        for text, place in zip(cells, places, strict=True)
    )
    return f"<tr>{''.join(made)}</tr>"
