"""Pictures: what is drawn and where, the three formats, and the page in a real browser."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

import dynet_lite as dy
from dynet_lite import viz
from dynet_lite.viz.layout import layout
from dynet_lite.viz.picture import MOST, picture


class Tagger:
    """A small tagger: LSTM, projection, loss."""

    def __init__(self) -> None:
        model = dy.ParameterCollection()
        self.words = model.add_lookup_parameters((50, 8), name="E")
        self.lstm = dy.LSTMBuilder(1, 8, 8, model)
        self.W = model.add_parameters((5, 8), name="W")

    def loss(self, *words: int) -> dy.Expression:
        states = self.lstm.initial_state().transduce([self.words[w] for w in words])
        return dy.esum([dy.pickneglogsoftmax(self.W * h, 2) for h in states])


@pytest.fixture
def losses() -> Iterator[list[dy.Expression]]:
    tagger = Tagger()
    dy.renew_cg()
    yield [tagger.loss(1, 2, 3), tagger.loss(4, 5)]
    del tagger  # weights have names as long as somebody has them


# ---- what is drawn -----------------------------------------------------------------------------------------------------


def test_what_is_drawn(losses: list[dy.Expression]) -> None:
    p = picture()
    sorts = {box.sort for box in p.boxes}
    assert sorts == {"op", "lookup"}  # no weights, and cell states are part of their step
    assert len([b for b in p.boxes if b.title == "lstm_step"]) == 3
    numbers = {b.number for b in p.boxes}
    assert all(a in numbers and b in numbers and a < b for a, b in p.arrows)
    with_weights = picture(weights=True)
    assert {"parameter", "table"} <= {b.sort for b in with_weights.boxes}


def test_of_one_sentence(losses: list[dy.Expression]) -> None:
    one, whole = picture(losses[1]), picture()
    assert len([b for b in one.boxes if b.sort == "lookup"]) == 2
    assert {b.number for b in one.boxes} < {b.number for b in whole.boxes}
    step = next(b for b in one.boxes if b.title == "lstm_step")
    assert step.total == 2 and "of 2 nodes" in step.words  # the other member is of the other sentence
    assert "drawn: nodes of" in one.caption


def test_words_of_a_node() -> None:
    dy.renew_cg(check_validity=True)
    loss = dy.pickneglogsoftmax(dy.inputVector([1.0, 2.0]), 1)
    box = picture(loss).boxes[-1]
    assert box.details == "v=[1]" and box.words.startswith("node 1: pickneglogsoftmax {1}, v=[1], batch 0 of 1 node, ")
    assert Path(__file__).name in box.words


def test_rows_have_names() -> None:
    words, letters = (dy.ParameterCollection().add_lookup_parameters((9, 2), name=name) for name in ("E", "C"))
    x = words[3] + letters[4]
    boxes = picture(x, names=lambda table, row: f"word {row}" if table == "/E" else None).boxes
    assert [box.title for box in boxes] == ["word 3", "C[4]", "add"] and "E[3]" in boxes[0].words
    for function in (viz.text, viz.dot, viz.svg, viz.html):
        assert "WORD" in function(x, names=lambda table, row: "WORD")  # type: ignore[operator]


def test_rows_of_a_batch_are_not_all_called_like_the_first() -> None:
    words = dy.ParameterCollection().add_lookup_parameters((9, 2), name="E")
    (box,) = picture(words.batch([3, 4]), names=lambda table, row: f"word {row}").boxes
    assert box.title == "word 3..." and box.details == "E[3...]"


def test_names_that_are_no_words(tmp_path: Path) -> None:
    x = dy.ParameterCollection().add_lookup_parameters((9, 2), name="E")[3]
    for wrong in ("E", lambda table, row: row):
        with pytest.raises(TypeError, match=r"\[viz\] names: "):
            viz.text(x, names=wrong)  # type: ignore[arg-type]
    for named, shown in (("\n", r"\n"), ("a\x0c\udc80 é", r"a\x0c\udc80 é")):  # letters of a file are rows, too
        assert f"  {shown} {{2}}\n" in viz.text(x, names=lambda table, row, named=named: named)
        viz.save(tmp_path / "g.svg", x, names=lambda table, row, named=named: named)
        assert ElementTree.parse(tmp_path / "g.svg").find(".//{*}text").text == shown  # type: ignore[union-attr]


def test_wrong_things(losses: list[dy.Expression]) -> None:
    for wrong in ([], [1], 3):
        with pytest.raises(TypeError, match="viz"):
            viz.svg(wrong)  # type: ignore[arg-type]
    with dy.graph():
        with pytest.raises(ValueError, match="another graph"):
            viz.svg([dy.inputVector([1.0]), losses[0]])
    with pytest.raises(ValueError, match="ends in"):
        viz.save("graph.png")


def test_too_large() -> None:
    dy.esum([dy.tanh(dy.scalarInput(1.0)) for _ in range(MOST // 2)])
    with pytest.raises(ValueError, match="too many for a picture"):
        viz.svg()


# ---- places ------------------------------------------------------------------------------------------------------------


def test_places_keep_their_distance() -> None:
    rng = np.random.default_rng(1)
    for _ in range(30):
        n = int(rng.integers(1, 60))
        arrows = sorted({(int(a), b) for b in range(1, n) for a in rng.integers(0, b, size=rng.integers(0, 3))})
        places = layout(range(n), arrows)
        assert set(places) == set(range(n))
        assert all(places[a][0] < places[b][0] for a, b in arrows)
        columns = defaultdict(list)
        for column, row in places.values():
            columns[column].append(row)
        for rows in columns.values():
            assert all(b - a > 1 - 1e-6 for a, b in zip(sorted(rows), sorted(rows)[1:], strict=False))


def test_sentences_have_bands() -> None:
    """Two chains that only a sum joins do not mix."""
    chains = [(0, 1), (1, 2), (3, 4), (4, 5), (2, 6), (5, 6)]
    places = layout(range(7), chains, joins={6})
    assert {places[n][1] for n in (0, 1, 2)} == {0} and {places[n][1] for n in (3, 4, 5)} == {1.5}
    assert places[6] == (3, 0.75)


def test_inputs_stand_before_their_use() -> None:
    """0 -> 1 -> 2 -> 4 with 3 -> 4: the late input is drawn next to 4."""
    assert layout(range(5), [(0, 1), (1, 2), (2, 4), (3, 4)])[3][0] == 2


def test_joins_in_one_place_stand_below_one_another() -> None:
    """Of as many as a picture may have: those of the same things have the same middle."""
    many = MOST // 2
    places = layout(range(7 + many), [(a, 7 + b) for b in range(many) for a in range(7)])
    assert [places[7 + b] for b in range(many)] == [(1, 4.5 + b) for b in range(many)]


# ---- formats -----------------------------------------------------------------------------------------------------------


def test_text(losses: list[dy.Expression]) -> None:
    text = viz.text()
    assert text.startswith(f"{dy.stats()['nodes']} nodes in {dy.stats()['batches']} batches")
    assert re.search(r"^ +\d+  E\[4\] \{8\}$", text, re.MULTILINE)
    assert re.search(r"^ +\d+  lstm_step \{8\} of \d+ \d+ +batch \d+$", text, re.MULTILINE)
    assert re.search(r"^batch +\d+  pickneglogsoftmax\(matmul\) \{1\} x 5:", text, re.MULTILINE)


def test_dot(losses: list[dy.Expression]) -> None:
    dot = viz.dot()
    assert dot.startswith("digraph G {") and dot.rstrip().endswith("}")
    nodes = re.findall(r'^  N(\d+) \[label="[^"]+", fillcolor="#[0-9a-f]{6}", tooltip="[^"]+"\];$', dot, re.MULTILINE)
    assert len(nodes) == len(picture().boxes)
    assert len(re.findall(r"^  N\d+ -> N\d+;$", dot, re.MULTILINE)) == len(picture().arrows)


def test_svg(losses: list[dy.Expression]) -> None:
    root = ElementTree.fromstring(viz.svg())
    space = {"s": "http://www.w3.org/2000/svg"}
    nodes = root.findall(".//s:g[@data-node]", space)
    fills = defaultdict(set)
    for node in nodes:
        if "data-batch" in node.attrib:
            fills[node.attrib["data-batch"]].add(node.find("s:rect", space).attrib["fill"])  # type: ignore[union-attr]
    assert len(nodes) == len(picture().boxes)
    assert all(len(colours) == 1 for colours in fills.values())
    assert len(set.union(*fills.values())) == len(fills)


def test_names_are_escaped() -> None:
    model = dy.ParameterCollection()
    E = model.add_lookup_parameters((3, 2), name='a<b>"&')
    x = dy.tanh(E[1])
    assert "a&lt;b&gt;&quot;&amp;[1]" in viz.svg(x)
    ElementTree.fromstring(viz.svg(x))
    assert '\\"' in viz.dot(x)


def test_save(tmp_path: Path, losses: list[dy.Expression]) -> None:
    for ending, start in ((".txt", "17 nodes"), (".dot", "digraph"), (".svg", "<svg"), (".html", "<!DOCTYPE html>")):
        viz.save(tmp_path / f"g{ending}", losses[0])
        assert (tmp_path / f"g{ending}").read_text().startswith(start)


def test_a_picture_that_cannot_be_made_leaves_the_old_one(tmp_path: Path, losses: list[dy.Expression]) -> None:
    path = tmp_path / "g.html"
    path.write_text("old")
    with pytest.raises(RuntimeError, match="no names"):
        viz.save(path, losses[0], names=lambda table, row: (_ for _ in ()).throw(RuntimeError("no names")))
    assert path.read_text() == "old" and list(tmp_path.iterdir()) == [path]


def test_page_stands_alone(losses: list[dy.Expression]) -> None:
    page = viz.html(losses[0], title="A <sentence>")
    assert "A &lt;sentence&gt;" in page
    found = re.findall(r"""(?:src|href)=|https?://(?!www\.w3\.org/2000/svg)|@import""", page)
    assert not found


# ---- the page in a browser -----------------------------------------------------------------------------------------------


@pytest.fixture
def page(tmp_path: Path, losses: list[dy.Expression], open_page: Any) -> Any:
    viz.save(tmp_path / "graph.html", losses[0])
    return open_page(tmp_path / "graph.html")


def chosen(page: Any) -> set[str]:
    return {n.get_attribute("data-node") for n in page.all(".node.chosen")}


def test_page_colours(page: Any, losses: list[dy.Expression]) -> None:
    """What is painted: one colour per batch, another for each."""
    painted = page.run(
        "return [...document.querySelectorAll('.node[data-batch]')].map(n =>"
        " [n.dataset.batch, getComputedStyle(n.querySelector('rect')).fill])"
    )
    by_batch = defaultdict(set)
    for batch, fill in painted:
        by_batch[batch].add(fill)
    assert len(painted) == len([box for box in picture(losses[0]).boxes if box.batch is not None])
    assert all(len(fills) == 1 for fills in by_batch.values())
    assert len(set.union(*by_batch.values())) == len(by_batch)
    assert page.errors() == []


def test_click_shows_what_ran_together(page: Any) -> None:
    step = page.one(".node[data-batch]")
    batch = step.get_attribute("data-batch")
    step.click()
    together = {n.get_attribute("data-node") for n in page.all(f'.node[data-batch="{batch}"]')}
    assert chosen(page) == together
    (pressed,) = page.all("#batches button[aria-pressed=true]")
    assert pressed.get_attribute("data-batch") == batch
    page.one("body").send_keys("\ue00c")  # Escape
    assert chosen(page) == set()
    pressed.click()
    assert chosen(page) == together
    assert f"batch {batch}:" in page.one("#about").text
    assert page.errors() == []


def test_pointing_says_what_a_node_is(page: Any) -> None:
    page.run("document.querySelector('.node[data-batch]').dispatchEvent(new MouseEvent('mouseenter'))")
    about = page.one("#about").text
    assert about.startswith("node ") and "batch" in about and "{" in about
    assert page.all(".arrow.touched")


def test_slider_follows_the_order(page: Any) -> None:
    step = "const s = document.getElementById('step'); s.value = %d; s.oninput();"
    page.run(step % 0)
    assert len(page.all(".node.later")) == len(page.all(".node[data-batch]"))
    page.run(step % 1)
    first = min(int(n.get_attribute("data-batch")) for n in page.all(".node[data-batch]"))
    done = page.run("return [...document.querySelectorAll('.node[data-batch]:not(.later)')].map(n => +n.dataset.batch)")
    assert set(done) == {first}
    assert page.one("#told").text.startswith(f"batch {first} has run")
    page.run(step % 999)
    assert not page.all(".node.later") and page.one("#told").text == "all batches have run"


def test_slider_of_a_long_graph(tmp_path: Path, open_page: Any) -> None:
    """A slider goes up to 100 by itself."""
    x = dy.scalarInput(0.5)
    for _ in range(60):
        x = dy.concatenate([x, dy.tanh(x)[:1]])
    viz.save(tmp_path / "graph.html", x)
    page = open_page(tmp_path / "graph.html")
    assert len(page.all("#batches button")) > 100
    assert page.one("#told").text == "all batches have run" and not page.all(".node.later")
