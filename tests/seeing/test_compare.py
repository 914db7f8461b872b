"""`python -m dynet_lite compare`: figures that fit together, a page that works, and what is said of wrong command lines."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from dynet_lite.__main__ import main
from dynet_lite.compare import Comparison, Way, compare, table
from dynet_lite.compare.chart import bars, lines, short, ticks
from dynet_lite.compare.cli import find_recipe, write
from dynet_lite.errors import DataError
from dynet_lite.harness.find import load_program
from dynet_lite.harness.settings import from_dict

ROOT = Path(__file__).resolve().parents[2]

# A recipe small enough to be run often.
SCRIPT = '''"""A recipe for tests."""
from dataclasses import dataclass
import sys
import dynet_lite as dy
from dynet_lite import harness


@dataclass
class Settings(harness.Settings):
    hidden: int = harness.option(4, "size")
    dropout: float = harness.option(0.5, "noise")


class Chains(harness.Recipe[Settings, int]):
    """Chains of so many steps."""
    unit = "chains"

    @classmethod
    def load_data(cls, s):
        return harness.Data("chains", "free", [1 + i % 5 for i in range(20)], [1, 2], unit="chains")

    @classmethod
    def build(cls, s, train):
        return {}

    def __init__(self, s, parts):
        super().__init__(s, parts)
        self.W = self.model.add_parameters((s.hidden, s.hidden))

    def loss(self, batch):
        ends = []
        for n in batch:
            x = dy.inputVector([0.5] * self.settings.hidden)
            for _ in range(n):
                x = dy.tanh(self.W * x)
            ends.append(dy.sum_elems(dy.dropout(x, self.settings.dropout)))
        return dy.esum(ends)


if __name__ == "__main__":
    sys.exit(harness.main(Chains, Settings, __doc__))
'''


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "chains.py"
    path.write_text(SCRIPT)
    return path


@pytest.fixture
def result(script: Path) -> Comparison:
    kind, settings = find_recipe(load_program(script))
    s = settings()
    ways = [Way(b, strategy, 1) for b in (1, 8, 64) for strategy in ("off", "greedy", "depth")]
    c = compare(kind, s, kind.load_data(s), ways, rounds=2)
    c.recipe = "chains"
    return c


def test_figures(result: Comparison) -> None:
    assert {m.way.batch for m in result.measurements} == {1, 8}  # there are 20 examples
    assert any("batch size 64 is left out" in note for note in result.notes)
    assert any("dropout is off" in note for note in result.notes)
    off, greedy, depth = (result.find(8, name) for name in ("off", "greedy", "depth"))
    assert off and greedy and depth
    assert off.nodes == greedy.nodes == depth.nodes == off.batches
    assert greedy.lower_bound == off.lower_bound == depth.lower_bound
    assert greedy.lower_bound and greedy.lower_bound <= greedy.batches <= depth.batches < off.batches
    assert off.examples == greedy.examples == 20
    assert greedy.mean_batch == greedy.nodes / greedy.batches > 1 and off.mean_batch == 1
    assert result.gain(off) == 1 and result.gain(greedy) == greedy.speed / off.speed
    assert greedy.agreement and greedy.agreement[1] < 1e-5 and off.agreement is None
    for m in result.measurements:
        assert len(m.rounds) == 2 and len(m.rounds[0]) == len(m.losses)
        assert m.seconds <= sum(m.rounds[0])
        assert sum(o["nodes"] for o in m.ops) == m.nodes and sum(o["batches"] for o in m.ops) == m.batches
        assert m.memory["values"] > 0 and m.phases["forward"] > 0


def test_table(result: Comparison) -> None:
    text = table(result)
    assert "chains/s" in text.splitlines()[0]
    rows = [line.split() for line in text.splitlines() if re.match(r" +\d", line)]
    assert [(row[0], row[1]) for row in rows] == [(b, s) for b in "18" for s in ("off", "greedy", "depth")]


def test_numbers_as_json(result: Comparison, tmp_path: Path) -> None:
    written = write(result, tmp_path / "out")
    assert {p.name for p in written} >= {"compare-chains.html", "compare-chains.json"}
    data = json.loads((tmp_path / "out" / "compare-chains.json").read_text())
    assert len(data["measurements"]) == 6 and data["measurements"][0]["gain"] == 1


def test_picture(result: Comparison, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    (picture,) = [p for p in write(result, tmp_path) if p.suffix == ".png"]
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_processor_time(script: Path) -> None:
    kind, settings = find_recipe(load_program(script))
    s = settings()
    c = compare(kind, s, kind.load_data(s), [Way(4, "greedy", 1)], rounds=1, clock="cpu")
    assert c.measurements[0].seconds > 0 and "times are processor times" in c.notes
    with pytest.raises(DataError, match="one thread"):
        compare(kind, s, kind.load_data(s), [Way(4, "greedy", 2)], clock="cpu")


# ---- the command line --------------------------------------------------------------------------------------------------


def test_command(script: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "runs"
    words = ["compare", str(script), "--batch-sizes", "4,2", "--strategies", "none,agenda", "--threads", "1,2", "--rounds", "1",
             "--sentences", "8", "--out", str(out), "--", "--hidden", "3"]  # fmt: skip
    assert main(words) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("chains: 20 chains to train on")
    assert len(re.findall(r"^ +[24] +(?:off|agenda) +[12] ", printed, re.MULTILINE)) == 8
    assert f"wrote {out / 'compare-chains.html'}" in printed


def test_ctrl_c(script: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def compared(*_: Any, **__: Any) -> Comparison:
        raise KeyboardInterrupt

    monkeypatch.setattr("dynet_lite.compare.cli.compare", compared)
    assert main(["compare", str(script), "--out", str(tmp_path)]) == 130 and not list(tmp_path.glob("compare-*"))


RECIPES = sorted(p for p in (ROOT / "recipes").glob("*.py") if "harness.main" in p.read_text())


@pytest.mark.parametrize("path", RECIPES, ids=lambda p: p.stem)
def test_recipes_of_the_project(path: Path, tmp_path: Path) -> None:
    """Batching on and off, each recipe has the same losses, and needs fewer batches."""
    kind, settings = find_recipe(load_program(path))
    files = {}
    if path.stem == "attention_seq2seq":  # its own data comes from another package, and takes seconds to read
        pairs = tmp_path / "pairs.tsv"
        pairs.write_text(
            "".join(f"{' '.join(w)}\t{' '.join(w[::-1])}\n" for w in "abc abcd bcda cab dab bad dcba acb".split())
        )
        files = {"train": (str(pairs),), "dev": (str(pairs),)}
    s = from_dict(settings, {**kind.smoke, "smoke": True, **files}, path.stem)
    data = kind.load_data(s).small()
    ways = [Way(4, strategy, 1) for strategy in ("off", "greedy")]
    c = compare(kind, s, data, ways, sentences=8, rounds=1)
    off, on = c.measurements
    assert on.agreement and on.agreement[1] < 1e-4
    assert on.nodes == off.nodes and on.lower_bound and on.lower_bound <= on.batches < off.batches


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--batch-sizes", "0,4"], "numbers of at least 1"),
        (["--batch-sizes", "a"], "numbers of at least 1"),
        (["--strategies", "greedy,clever"], "off, greedy, auto, agenda, depth"),
        (["--", "--hiden", "3"], "unrecognized arguments"),
        (["--sentences", "-5"], "a number of at least 0"),
    ],
)
def test_wrong_options(script: Path, words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["compare", str(script), *words])
    assert stop.value.code == 2 and said in capsys.readouterr().err


def test_what_cannot_be_measured(script: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    small = ["compare", str(script), "--batch-sizes", "4", "--sentences", "8", "--rounds", "1"]
    assert main([*small, "--batch-sizes", "64,128", "--out", str(tmp_path)]) == 2
    assert "no batch size is that small: there are 8 chains" in capsys.readouterr().err
    assert main([*small, "--out", str(script)]) == 2  # said before anything is measured
    printed = capsys.readouterr()
    assert "chains.py: a folder is needed" in printed.err and "loss differs" not in printed.out
    small[1] = str(script.with_name("endless.py"))
    Path(small[1]).write_text(SCRIPT.replace("return dy.esum(ends)", "return dy.esum(ends) * 1e38 * 1e38"))
    assert main([*small, "--out", str(tmp_path)]) == 2
    assert "error: epoch 1, mini-batch 1: the loss is " in capsys.readouterr().err


def test_wrong_scripts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", str(tmp_path / "none.py")]) == 2
    assert "expected a recipe first" in capsys.readouterr().err
    (tmp_path / "empty.py").write_text("x = 1\n")
    assert main(["compare", str(tmp_path / "empty.py")]) == 2
    assert f"{tmp_path / 'empty.py'}: expected a subclass of harness.Recipe" in capsys.readouterr().err


def test_which_classes_are_taken(script: Path) -> None:
    module = load_program(script)
    kind, settings = find_recipe(module)
    assert (kind.__name__, settings.__name__) == ("Chains", "Settings")
    module.RECIPE = other = type("Other", (kind,), {})  # type: ignore[attr-defined]
    assert find_recipe(module)[0] is other
    with pytest.raises(DataError):
        find_recipe(sys)


def test_help_names_it(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])
    assert "compare" in capsys.readouterr().out


# ---- charts and the page -----------------------------------------------------------------------------------------------


def testticks() -> None:
    assert ticks(9, 110) == [10, 20, 50, 100]
    assert ticks(0.5, 1500) == [1, 10, 100, 1000]


def test_marks_of_a_narrow_axis() -> None:
    """A single point, or points of nearly one height: between 2 and 5 there would be no mark."""
    assert ticks(2.4, 3.75) == [2.5, 3, 3.5] and ticks(5.2, 9.8) == [6, 7, 8, 9] and ticks(101, 190)[0] == 110
    for y in (*range(100, 1000, 7), 0.0031):
        marks = ticks(y / 1.25, y * 1.25)
        assert 2 <= len(marks) <= 10 and len({short(v) for v in marks}) == len(marks)
        assert all(abs(float(short(v).replace(",", "")) - v) < 1e-9 for v in marks)


def test_short_numbers_have_no_exponents() -> None:
    given = (0, 0.351, 9.96, 99.7, 99.96, 1200, 9999.7, 12345, 99960, 999_400, 999_700, 12_345_678, 1e9)
    assert [short(v) for v in given] == ["0", "0.351", "9.96", "99.7", "100", "1,200", "10,000", "12.3k", "100k", "999k",
                                         "1M", "12.3M", "1,000M"]  # fmt: skip


def test_charts_with_little_to_show() -> None:
    assert "nothing" in lines([], "x", "y") and "nothing" in lines([("a", [(1, 0.0)])], "x", "y")
    assert lines([("a <b>", [(8, 3.0)])], "x", "y").count("<circle") == 1
    assert "a &lt;b&gt;" in lines([("a <b>", [(8, 3.0)])], "x", "y")
    assert bars([], ["a"], "ms").endswith("</svg>")


def test_page(result: Comparison, tmp_path: Path, open_page: Any) -> None:
    write(result, tmp_path)
    page = open_page(tmp_path / "compare-chains.html")
    assert page.errors() == []
    assert "chains" in page.one("h1").text
    assert len(page.all("#figures tbody tr")) == len(result.measurements) == len(page.all("#way option"))
    assert len(page.all("svg.chart")) == 3
    # A circle per measurement in the chart of speed; the other chart has the lower bounds too.
    assert [len(c.find_elements("css selector", "circle")) for c in page.all("figure")] == [6, 8]
    for k, m in enumerate(result.measurements):
        page.run(f"const w = document.getElementById('way'); w.value = {k}; w.onchange();")
        first = [cell.text for cell in page.all("#ops tr:first-child td")]
        assert first[0] == m.ops[0]["op"] and first[1] == f"{m.ops[0]['batches']:,}"
        assert len(page.all("#ops tr")) == len(m.ops)


def test_page_stands_alone(result: Comparison, tmp_path: Path) -> None:
    write(result, tmp_path)
    text = (tmp_path / "compare-chains.html").read_text()
    assert not re.findall(r"""(?:src|href)=|https?://(?!www\.w3\.org/2000/svg)|@import""", text)
