"""The pages say what is so: programs print what is shown, figures are those measured, settings exist, links lead somewhere."""

from __future__ import annotations

import ast
import gzip
import re
from pathlib import Path

import pytest

import dynet_lite as dy
from dynet_lite import _core, config
from dynet_lite.__main__ import main

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted(
    [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("benchmarks/*.md"), *ROOT.glob("data/**/*.md")]
)


def text_of(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


def blocks(page: str, kind: str) -> list[str]:
    return re.findall(rf"^```{kind}\n(.*?)^```", text_of(page), re.MULTILINE | re.DOTALL)


def test_readme_program_prints_what_it_says(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """In an empty folder, to two hundredths: instruction sets add in another order."""
    monkeypatch.chdir(tmp_path)
    exec(compile(blocks("README.md", "python")[-1], "README.md", "exec"), {"__name__": "__main__"})
    shown, printed = (text.splitlines() for text in (blocks("README.md", "text")[0], capsys.readouterr().out))
    losses = [[float(line.split()[-1]) for line in lines[:-1]] for lines in (shown, printed)]
    assert losses[1] == pytest.approx(losses[0], abs=0.02)
    assert printed[-1] == shown[-1]


def test_readme_is_one_screen_and_its_excerpts_run() -> None:
    """The two programs side by side are pieces of the page about PyTorch, whose programs run in tests/compat."""
    assert len(text_of("README.md").splitlines()) <= 120
    page = {line.strip() for line in text_of("docs/coming_from_pytorch.md").splitlines()}
    theirs, ours, _ = blocks("README.md", "python")
    lines = [line.strip() for line in (theirs + ours).splitlines() if line.strip()]
    assert len(lines) > 10 and [line for line in lines if line not in page] == []


def test_readme_speeds_are_those_of_the_benchmarks() -> None:
    names = {"BiLSTM tagger": "tagger", "tree LSTM": "treelstm", "stack-LSTM parser": "parser",
             "encoder and decoder with attention": "seq2seq"}  # fmt: skip
    rows = re.findall(
        r"^\| ([\w -]+) \| ([\d,]+) \| ([\d,]+) \| \*\*([\d,]+)\*\* \|$", text_of("README.md"), re.MULTILINE
    )
    assert [row[0] for row in rows] == list(names)
    command, _, table = text_of("benchmarks/README.md").partition("Training, base, ")[2].partition("\n\n")
    for name, *speeds in rows:
        cells = next(line for line in table.splitlines() if line.startswith(f"| `{names[name]}` |")).split("|")
        assert [cells[2].strip(), cells[3].strip(), cells[5].strip()] == speeds, name
    assert re.search(r"`(run\.py .*?)`", command)[1] in text_of("README.md")  # type: ignore[index]


def test_the_page_of_benchmarks_has_all() -> None:
    page = text_of("benchmarks/README.md")
    scripts = [path for path in (ROOT / "benchmarks").glob("*.py") if "__main__" in path.read_text(encoding="utf-8")]
    assert len(scripts) > 10 and [path.name for path in scripts if f"benchmarks/{path.name}" not in page] == []


def test_programs_that_read_files_or_train_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Those of several processes in a world of one."""
    monkeypatch.chdir(tmp_path)
    for name in ("a.txt.gz", "b.txt.gz", "b.de.gz", "b.en.gz"):
        (tmp_path / name).write_bytes(gzip.compress(b"so do I\nshe sleeps\n"))
    for name in ("a.de", "a.en"):
        (tmp_path / name).write_text("so do I\n", encoding="utf-8")
    model = dy.ParameterCollection()
    W = model.add_parameters(3)
    train, stream = blocks("docs/distributed.md", "python")
    space: dict[str, object] = {"model": model, "batches": [["a", "b"], ["c"]], "loss_of": lambda x: dy.squared_norm(W)}
    before = W.as_array()
    exec(compile(train, "distributed.md", "exec"), space)
    assert (W.as_array() != before).all()
    exec(compile(stream, "distributed.md", "exec"), space)
    assert sorted(map(len, space["mine"])) == [2, 2, 3, 3]  # type: ignore[call-overload]
    exec(compile(blocks("docs/recipes.md", "python")[0], "recipes.md", "exec"), space)
    assert len(space["pairs"]) == 3  # type: ignore[arg-type]


def test_seeing_prints_its_plan(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    exec(compile(blocks("docs/seeing.md", "python")[0], "seeing.md", "exec"), {"__name__": "__main__"})
    assert capsys.readouterr().out == blocks("docs/seeing.md", "text")[0]
    assert [path.name for path in tmp_path.iterdir()] == ["two_sentences.html"]


def test_seeing_times_a_part(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    space = {"dy": dy, "train_some_steps": lambda: dy.tanh(dy.inputVector([1.0])).value()}
    exec(compile(blocks("docs/seeing.md", "python")[1], "seeing.md", "exec"), space)
    assert "tanh" in capsys.readouterr().out and (tmp_path / "trace.json").stat().st_size > 100
    assert "share" in str(dy.explain_batches(profile=space["p"]))  # type: ignore[arg-type]


def test_using_a_model_answers(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With the keys that are shown; a tiny model's tags are others."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", ["dynet_lite"])
    with pytest.raises(SystemExit, match="0"):
        main(["train", "bilstm_tagger", "--smoke", "--save", "tagger.model"])
    capsys.readouterr()
    (tmp_path / "large.txt").write_text("The dog sleeps .\n" * 70, encoding="utf-8")
    load, pipe, _ = blocks("docs/using_models.md", "python")
    exec(compile(f"{load}\n{pipe}", "using_models.md", "exec"), {})
    first, *answers = (ast.literal_eval(line) for line in capsys.readouterr().out.splitlines())
    shown = ast.literal_eval(next(x for x in text_of("docs/using_models.md").splitlines() if x.startswith("{'words'")))
    assert first.keys() == shown.keys() and first["words"] == shown["words"]
    assert answers == [first["tags"]] * 70


def rows(page: str) -> list[list[str]]:
    """The cells of all tables of a page, row by row, without backquotes."""
    lines = re.findall(r"^\| (.*) \|$", text_of(page), re.MULTILINE)
    return [[cell.strip().replace("`", "") for cell in line.split("|")] for line in lines]


def test_the_page_of_settings_has_all_with_their_defaults() -> None:
    words = {"True": "on", "False": "off", "None": "", "0.0": "0"}
    wanted = {name: words.get(str(default), str(default)) for name, (_, _, default) in config.OPTIONS.items()}
    wanted["keep_weights"] = "off"  # unless a test has made this process stand in for DyNet
    assert {row[0]: row[1] for row in rows("docs/settings.md") if row[0] in wanted} == wanted


def test_pages_list_strategies_and_passes() -> None:
    names = re.search(r"kNames\[\] = {(.*?)};", text_of("cext/schedule/plan.cc"))
    assert names
    strategies = set(re.findall(r'"(\w+)"', names[1]))
    (told,) = [row[2] for row in rows("docs/settings.md") if row[0] == "strategy"]
    for words in (re.findall(r"\w+", told.partition("): ")[2]), [row[0] for row in rows("docs/engine/plans.md")]):
        assert strategies <= set(words)
    passes = [name for name, _, _ in _core.passes()]
    page = [row[0] for row in rows("docs/engine/rewrites.md")]
    assert [name for name in page if name in passes] == passes * 2
    counted = "one two three four five six seven eight nine ten eleven twelve".split()[len(passes) - 1]
    assert f"{counted.capitalize()} passes " in text_of("ARCHITECTURE.md")


def test_the_table_of_tests_has_every_folder() -> None:
    table = text_of("ARCHITECTURE.md").partition("\n## Tests\n")[2]
    folders = {path.relative_to(ROOT).as_posix() for path in (ROOT / "tests").iterdir() if list(path.glob("test_*.py"))}
    assert folders and [folder for folder in folders if f"`{folder}/`" not in table] == []


def test_the_page_of_the_cuda_backend_has_every_test() -> None:
    page = text_of("docs/engine/device.md").partition("\n## How it is tested\n")[2]
    names = [path.name for path in (ROOT / "tests" / "device").glob("test_*.py")]
    assert names and [name for name in names if f"`{name}`" not in page] == []


def test_excerpts_of_contributing_are_in_the_files() -> None:
    """What surrounds a line that is added; of a file that is only shown, all lines."""
    found = 0
    for block in blocks("CONTRIBUTING.md", "diff"):
        for a, b, lines in re.findall(
            r"^(?:--- a/(\S+)\n)?\+\+\+ (\S+)\n((?:[ +].*\n|\n)+?)(?=---|\+\+\+ |\Z)", block, re.MULTILINE
        ):
            if a or b == "cext/ops/dot.cc":
                found += 1
                sign = " " if a else "+"
                shown = "".join(line[1:] for line in lines.splitlines(keepends=True) if line[:1] == sign)
                assert shown in text_of(a or b), shown
    assert found == 5


def test_pages_name_functions_that_exist() -> None:
    """All but the op that CONTRIBUTING.md adds."""
    for page in [*PAGES, *ROOT.glob("docs/tutorials/*.py")]:
        for names in re.findall(r"\bdy\.(\w+(?:\.\w+)*)", page.read_text(encoding="utf-8")):
            thing: object = dy
            for name in names.split("."):
                assert hasattr(thing, name) or names == "mish", f"{page.name}: dy.{names}"
                thing = getattr(thing, name, None)


def anchors(text: str) -> set[str]:
    """The anchors that headings get, as GitHub and the site make them."""
    outside = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    heads = re.findall(r"^#+ (.+)$", outside, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.strip().lower()).replace(" ", "-") for head in heads}


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(page: Path) -> None:
    outside = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    for link in re.findall(r"\]\(([^)\s]+)\)", outside):
        target, _, anchor = link.partition("#")
        if "://" in link or target.startswith("mailto:"):
            continue
        path = (page.parent / target).resolve() if target else page
        assert path.exists(), link
        assert not anchor or path.suffix != ".md" or anchor in anchors(path.read_text(encoding="utf-8")), link
