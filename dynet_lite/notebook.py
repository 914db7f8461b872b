"""What notebooks show: tables in HTML for the things that print as text elsewhere.

A notebook asks an object for ``_repr_html_()`` or ``_repr_svg_()``. Sees the standard library only.
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence

__all__ = ["table"]


def table(head: Sequence[str], rows: Iterable[Sequence[object]], about: str = "") -> str:
    """A table with a line of text above it; everything is escaped, numbers stand on the right."""
    first = "".join(f'<th style="text-align: left">{html.escape(name)}</th>' for name in head)
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows)
    words = f"<p>{html.escape(about)}</p>" if about else ""
    return f"{words}<table><thead><tr>{first}</tr></thead><tbody>{body}</tbody></table>"


def _cell(value: object) -> str:
    number = isinstance(value, (int, float))
    text = f"{value:,}" if number else str(value)
    return f'<td style="text-align: {"right" if number else "left"}">{html.escape(text)}</td>'
