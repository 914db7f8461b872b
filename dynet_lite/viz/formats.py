"""A picture as text, in the language of graphviz, and as SVG. Same colours everywhere: one for each batch."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape

from .layout import layout
from .picture import Box, Picture

WIDE, HIGH = 7.4, 34.0  # of a letter, of a box
ROW, GAP, MARGIN = 46.0, 34.0, 14.0
SUMS = ("esum", "average")  # of numbers: they join sentences, and do not hold them together


def colour(batch: int | None) -> str:
    """Light enough for black letters; batches that follow one another are far apart on the colour circle."""
    if batch is None:
        return "#ffffff"
    return f"hsl({batch * 137.5 % 360:.0f}, 65%, {72 if batch % 2 else 80}%)"


# ---- text ------------------------------------------------------------------------------------------------------------


def to_text(p: Picture) -> str:
    """A line per node (number, what, arguments, batch), then a line per batch."""
    s, lines = p.structure, [p.caption, ""]
    arguments: dict[int, list[int]] = {box.number: [] for box in p.boxes}
    for a, b in p.arrows:
        arguments[b].append(a)
    for box in p.boxes:
        of = f" of {' '.join(map(str, arguments[box.number]))}" if arguments[box.number] else ""
        where = f"batch {box.batch}" if box.batch is not None else ""
        lines.append(f"{box.number:6}  {box.title + ' ' + box.shape + of:<44}  {where}".rstrip())
    lines.append("")
    for number in p.batches:
        nodes = s.batches[number].nodes
        first = s.nodes[nodes[0]]
        shown = " ".join(map(str, nodes[:12])) + (" ..." if len(nodes) > 12 else "")
        lines.append(f"batch {number:3}  {first.title} {first.shape} x {len(nodes)}:  {shown}")
    return "\n".join(lines) + "\n"


# ---- graphviz --------------------------------------------------------------------------------------------------------


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def to_dot(p: Picture) -> str:
    """For graphviz: `dot -Tsvg`."""
    lines = ["digraph G {", f"  label={_quoted(p.caption)};", "  rankdir=LR;", "  nodesep=.15;",
             '  node [shape=box, style="rounded,filled", fontname="sans-serif", fontsize=10, height=.3];']  # fmt: skip
    for box in p.boxes:
        label = _quoted(f"{box.title}\n{_second_line(box)}")
        fill, tip = _quoted(_hex(colour(box.batch))), _quoted(box.words)
        lines.append(f"  N{box.number} [label={label}, fillcolor={fill}, tooltip={tip}];")
    lines += [f"  N{a} -> N{b};" for a, b in p.arrows]
    return "\n".join([*lines, "}"]) + "\n"


def _hex(hsl: str) -> str:
    """graphviz has no hsl()."""
    if not hsl.startswith("hsl"):
        return hsl
    import colorsys

    h, s, light = (float(v.strip(" %")) for v in hsl[4:-1].split(","))
    return "#" + "".join(f"{round(255 * v):02x}" for v in colorsys.hls_to_rgb(h / 360, light / 100, s / 100))


def _second_line(box: Box) -> str:
    return box.shape + (f"  b{box.batch}" if box.batch is not None else "")


# ---- SVG -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Rectangle:
    x: float
    y: float
    w: float

    @property
    def middle(self) -> float:
        return self.y + HIGH / 2


def _rectangles(p: Picture) -> tuple[dict[int, _Rectangle], float, float]:
    """node -> where it is drawn; width and height of the whole."""
    sums = {box.number for box in p.boxes if box.title in SUMS and box.shape == "{1}"}
    places = layout([box.number for box in p.boxes], p.arrows, sums)
    wide: dict[int, float] = {}
    for box in p.boxes:
        letters = max(len(box.title), len(_second_line(box)))
        column = places[box.number][0]
        wide[column] = max(wide.get(column, 0.0), letters * WIDE + 14)
    left, x = {}, MARGIN
    for column in sorted(wide):
        left[column] = x
        x += wide[column] + GAP
    out = {}
    for box in p.boxes:
        column, row = places[box.number]
        w = max(len(box.title), len(_second_line(box))) * WIDE + 14
        out[box.number] = _Rectangle(left[column] + (wide[column] - w) / 2, MARGIN + row * ROW, w)
    height = max((r.y for r in out.values()), default=0.0) + HIGH + MARGIN
    return out, max(x - GAP, MARGIN) + MARGIN, height


STYLE = """
.node rect { stroke: #555; stroke-width: 1; }
.node.leaf rect { stroke: #aaa; stroke-dasharray: 3 2; }
.node.alias rect { stroke-dasharray: 3 2; }
.node text { font: 12px ui-monospace, Menlo, Consolas, monospace; fill: #111; text-anchor: middle; }
.node .small { font-size: 10px; fill: #444; }
.arrow { fill: none; stroke: #999; stroke-width: 1; }
"""


def to_svg(p: Picture) -> str:
    """A picture that stands alone; each node is a <g class="node" data-node data-batch> with its words as title."""
    at, width, height = _rectangles(p)
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" '
        f'height="{height:.0f}" role="img" aria-label="{escape(p.caption)}">',
        f"<style>{STYLE}</style>",
        '<defs><marker id="tip" viewBox="0 0 6 6" refX="6" refY="3" markerWidth="6" markerHeight="6" orient="auto">'
        '<path d="M0,0 L6,3 L0,6 z" fill="#999"/></marker></defs>',
    ]
    for a, b in p.arrows:
        r, q = at[a], at[b]
        x, y, u, v = r.x + r.w, r.middle, q.x, q.middle
        bend = max(12.0, (u - x) / 2)
        out.append(f'<path class="arrow" data-from="{a}" data-to="{b}" marker-end="url(#tip)" '
                   f'd="M{x:.1f},{y:.1f} C{x + bend:.1f},{y:.1f} {u - bend:.1f},{v:.1f} {u:.1f},{v:.1f}"/>')  # fmt: skip
    out += [_node(box, at[box.number]) for box in p.boxes]
    return "\n".join([*out, "</svg>"]) + "\n"


def _node(box: Box, r: _Rectangle) -> str:
    kind = {"op": "", "alias": " alias"}.get(box.sort, " leaf")
    batch = f' data-batch="{box.batch}"' if box.batch is not None else ""
    x = r.x + r.w / 2
    return (
        f'<g class="node{kind}" data-node="{box.number}"{batch} tabindex="0"><title>{escape(chr(10).join(box.lines))}</title>'
        f'<rect x="{r.x:.1f}" y="{r.y:.1f}" width="{r.w:.1f}" height="{HIGH}" rx="6" fill="{colour(box.batch)}"/>'
        f'<text x="{x:.1f}" y="{r.y + 14:.1f}">{escape(box.title)}</text>'
        f'<text class="small" x="{x:.1f}" y="{r.y + 27:.1f}">{escape(_second_line(box))}</text></g>'
    )
