"""HTML pages that need nothing else: the frame that all have, and the page of a graph."""

from __future__ import annotations

import json
from html import escape
from typing import Any

from .formats import colour, to_svg
from .picture import Picture

BASE = """
:root { color-scheme: light dark; --paper: #fff; --ink: #1c1c1c; --quiet: #666; --line: #ccc; --mark: #d4380d; }
@media (prefers-color-scheme: dark) {
  :root { --paper: #181a1b; --ink: #e6e6e6; --quiet: #a0a0a0; --line: #444; --mark: #ff8a4c; }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink); font: 15px/1.45 system-ui, sans-serif; }
h1 { font-size: 1.25rem; margin: 0; }
h2 { font-size: 1.05rem; margin: 1.6rem 0 .4rem; }
"""


def frame(title: str, body: str, style: str = "", script: str = "", data: Any = None) -> str:
    """A page. `body` is HTML, the rest is escaped; `data` is what the script finds in DATA."""
    known = json.dumps(data).replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
    code = f"<script>\nconst DATA = {known};\n{script}</script>\n" if script else ""
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{BASE}{style}</style>\n</head>\n<body>\n{body}\n{code}</body>\n</html>\n"
    )


STYLE = """
body { display: grid; grid-template: auto 1fr / 1fr 21rem; height: 100vh; }
header { grid-column: 1 / 3; padding: .6rem 1rem; border-bottom: 1px solid var(--line); }
header p { margin: .2rem 0 0; color: var(--quiet); }
.bar { display: flex; gap: .8rem; align-items: center; margin-top: .4rem; }
.bar input { flex: 1; max-width: 30rem; }
.bar output { min-width: 15rem; }
main { overflow: auto; }
aside { border-left: 1px solid var(--line); overflow: auto; padding: .6rem; }
#about { min-height: 5.5rem; white-space: pre-line; overflow-wrap: anywhere; }
#batches { list-style: none; margin: .6rem 0 0; padding: 0; }
#batches button { width: 100%; display: flex; gap: .5rem; align-items: center; padding: .2rem .4rem; cursor: pointer;
  border: 1px solid transparent; border-radius: 4px; background: none; color: inherit; font: inherit; text-align: left; }
#batches button:hover { border-color: var(--line); }
#batches button[aria-pressed=true] { border-color: var(--mark); font-weight: 600; }
#batches .what { flex: 1; overflow-wrap: anywhere; }
#batches .many { color: var(--quiet); white-space: nowrap; }
.swatch { width: 1rem; height: 1rem; border: 1px solid #555; border-radius: 3px; flex: none; }
.node { cursor: pointer; outline: none; }
.node.later rect { fill: var(--paper) !important; }
.node.later text { fill: var(--quiet) !important; }
.node.apart { opacity: .18; }
.node.chosen rect, .node:focus-visible rect { stroke: var(--mark) !important; stroke-width: 2.5 !important; }
.node.leaf rect { fill: var(--paper); }
.node.leaf text { fill: var(--ink) !important; }
.arrow.touched { stroke: var(--mark) !important; stroke-width: 2 !important; }
@media (max-width: 45rem) { body { grid-template: auto 1fr 40vh / 1fr; } header { grid-column: 1; }
  aside { border-left: 0; border-top: 1px solid var(--line); } }
"""

SCRIPT = """
const nodes = [...document.querySelectorAll('.node')], arrows = [...document.querySelectorAll('.arrow')];
const about = document.getElementById('about'), list = document.getElementById('batches');
const step = document.getElementById('step'), told = document.getElementById('told');
const buttons = new Map();
let chosen = null;  // number of a batch
const batchOf = node => node.dataset.batch === undefined ? null : Number(node.dataset.batch);

for (const b of DATA.batches) {
  const item = list.appendChild(document.createElement('li'));
  const button = item.appendChild(document.createElement('button'));
  button.dataset.batch = b.number;
  const part = (name, text) => {
    const one = button.appendChild(document.createElement('span'));
    one.className = name;
    one.textContent = text;
    return one;
  };
  part('swatch', '').style.background = b.colour;
  part('what', b.number + '  ' + b.what);
  part('many', b.drawn === b.nodes ? 'x ' + b.nodes : b.drawn + ' of ' + b.nodes);
  button.title = b.why;
  button.onclick = () => choose(chosen === b.number ? null : b.number);
  buttons.set(b.number, button);
}

function choose(batch) {
  chosen = batch;
  for (const node of nodes) {
    node.classList.toggle('chosen', batch !== null && batchOf(node) === batch);
    node.classList.toggle('apart', batch !== null && batchOf(node) !== batch);
  }
  for (const [number, button] of buttons) button.setAttribute('aria-pressed', number === batch);
  const b = DATA.batches.find(b => b.number === batch);
  about.textContent = b ? 'batch ' + b.number + ': ' + b.what + '\\n' + b.nodes + ' nodes together' +
    (b.drawn === b.nodes ? '' : ', ' + b.drawn + ' of them drawn') + '\\n' + b.why : DATA.hint;
  if (b) buttons.get(batch).scrollIntoView({ block: 'nearest' });
}

function show(node) {
  if (node) about.textContent = node.querySelector('title').textContent;
  const number = node && node.dataset.node;
  for (const a of arrows) a.classList.toggle('touched', Boolean(node) && (a.dataset.from === number || a.dataset.to === number));
  if (!node) choose(chosen);
}

for (const node of nodes) {
  node.onmouseenter = node.onfocus = () => show(node);
  node.onmouseleave = node.onblur = () => show(null);
  node.onclick = () => { const b = batchOf(node); choose(b === null || b === chosen ? null : b); show(node); };
  node.onkeydown = e => { if (e.key === 'Enter') node.onclick(); };
}
document.onkeydown = e => { if (e.key === 'Escape') choose(null); };

step.oninput = () => {
  const n = Number(step.value), last = DATA.batches[n - 1];
  for (const node of nodes) {
    const b = batchOf(node);
    node.classList.toggle('later', b !== null && (!last || b > last.number));
  }
  told.textContent = n === DATA.batches.length ? 'all batches have run' :
    last ? 'batch ' + last.number + ' has run: ' + last.what : 'nothing has run';
};
step.max = DATA.batches.length;  // first: no value is above it, and it is 100 by itself
step.value = step.max;
step.oninput();
choose(null);
"""

HINT = "Point at a node to see what it is; click it, or a batch below, to see what ran together."


def to_html(p: Picture, title: str = "Computation graph") -> str:
    """The page of a graph: nodes coloured by batch, the batches as a list, a slider through the order of execution."""
    s = p.structure
    drawn: dict[int, int] = {}
    for box in p.boxes:
        if box.batch is not None and box.sort == "op":
            drawn[box.batch] = drawn.get(box.batch, 0) + 1
    batches = []
    for number in p.batches:
        nodes = s.batches[number].nodes
        first = s.nodes[nodes[0]]
        about = s.signatures[first.signature]
        shared = [s.nodes[n].name or s.nodes[n].title for how, n in about.arguments if how == "shared"]
        why = f"weights: {', '.join(shared)}" if shared else "no weights"
        batches.append({"number": number, "what": f"{first.title} {first.shape}", "nodes": len(nodes),
                        "drawn": drawn.get(number, 0), "colour": colour(number), "why": why})  # fmt: skip
    body = f"""<header><h1>{escape(title)}</h1><p>{escape(p.caption)}</p>
<div class="bar"><label for="step">order of execution</label><input id="step" type="range" min="0" value="0">
<output id="told" for="step"></output></div></header>
<main>{to_svg(p)}</main>
<aside><div id="about" aria-live="polite"></div><ul id="batches"></ul></aside>"""
    return frame(title, body, STYLE, SCRIPT, {"batches": batches, "hint": HINT})
