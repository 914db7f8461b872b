"""`predict` as a part of a pipe, as JSON lines and of plain text; values and options that cannot be."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from queue import SimpleQueue

import pytest

import dynet_lite as dy
from dynet_lite import harness
from dynet_lite.harness import catalogue, make_recipe, save_recipe
from dynet_lite.harness.answer import as_they_come, tokenized
from dynet_lite.harness.find import load_program
from dynet_lite.harness.settings import Parser, add_options, from_dict, parse_settings

TAGGER = catalogue.program("bilstm_tagger")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    module = load_program(TAGGER)
    s = from_dict(module.Settings, module.Tagger.smoke, "test")
    path = str(tmp_path_factory.mktemp("answer") / "tagger.model")
    save_recipe(make_recipe(module.Tagger, s, module.Tagger.build(s, module.Tagger.load_data(s).train)), path)
    return path


def command(*arguments: str) -> list[str]:
    return [sys.executable, str(TAGGER), *arguments]


ENV = {**os.environ, "PYTHONPATH": str(Path(dy.__file__).parents[1])}


def test_what_has_come_is_answered() -> None:
    queue: SimpleQueue[str | None] = SimpleQueue()
    groups = as_they_come(iter(queue.get, None), size=3)
    for item in "abcd":
        queue.put(item)
    assert next(groups) == ["a", "b", "c"]
    assert next(groups) == ["d"]  # though the source has not ended
    queue.put("e")
    assert next(groups) == ["e"]
    queue.put(None)
    assert list(groups) == []


def test_a_fast_source_is_not_read_to_its_end() -> None:
    """It may be larger than the memory."""
    taken: list[int] = []

    def source() -> Iterator[str]:
        for i in range(100_000):
            taken.append(i)
            yield str(i)

    groups = as_they_come(source(), 3)
    for first in (0, 3, 6):
        assert next(groups) == [str(first + i) for i in range(3)]
        time.sleep(0.05)
        assert len(taken) < 50


def test_errors_of_the_source_arrive() -> None:
    def source() -> Iterator[str]:
        yield "a"
        raise dy.DataError("broken")

    found = []
    with pytest.raises(dy.DataError, match="broken"):
        found.extend(as_they_come(source(), 5))
    assert found in ([], [["a"]])


def test_a_program_that_waits_for_each_answer_gets_it(model: str) -> None:
    process = subprocess.Popen(command("predict", "--load", model, "-"), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                               text=True, env=ENV)  # fmt: skip
    assert process.stdin and process.stdout
    timer = threading.Timer(120, process.kill)
    timer.start()
    try:
        for line in ("the dog", "a", "the dog sleeps"):
            process.stdin.write(line + "\n")
            process.stdin.flush()
            answer = process.stdout.readline()
            assert [pair.split("_")[0] for pair in answer.split()] == line.split()
        process.stdin.close()
        assert process.wait() == 0
    finally:
        timer.cancel()
        process.kill()


def test_json_lines(model: str, tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_text("the dog\n\nthe dog sleeps .\n")
    done = subprocess.run(command("predict", "--load", model, "--json", "--scores", "--group", "2", "in.txt"), cwd=tmp_path,
                          env=ENV, capture_output=True, text=True)  # fmt: skip
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert [answer["words"] for answer in answers] == [["the", "dog"], [], ["the", "dog", "sleeps", "."]]
    assert all(len(answer["tags"]) == len(answer["words"]) == len(answer["probabilities"]) for answer in answers)


CONLLU = """# a note
# text = the dog
1\tthe\tthe\t_\tX\tF=1\t2\tdet\t_\tNote
1.1\tempty\t_\t_\t_\t_\t_\t_\t_\t_
2\tdog\tdog\t_\t_\t_\t0\troot\t_\t_

# newdoc

1\tsleeps\t_\tVERB\t_\t_\t_\t_\t_\t_
"""


def tags_and_rest(text: str) -> tuple[list[str], list[list[str]]]:
    rows = [line.split("\t") for line in text.strip().split("\n")]
    words = [row for row in rows if row[0].isdigit()]
    return [row[3] for row in words], [row[:3] + row[4:] for row in rows]


def test_conllu_in_conllu_out(model: str, tmp_path: Path) -> None:
    """Comments, empty nodes and other columns stay; the tags are those of the same words as plain text."""
    (tmp_path / "in.conllu").write_text(CONLLU)
    (tmp_path / "plain.txt").write_text("the dog\nsleeps\n")
    done = subprocess.run(
        command("predict", "--load", model, "in.conllu"), cwd=tmp_path, env=ENV, capture_output=True, text=True
    )
    tags, rest = tags_and_rest(done.stdout)
    assert rest == tags_and_rest(CONLLU)[1] and "_" not in tags
    piped = subprocess.run(
        command("predict", "--load", model, "-"), input=CONLLU, env=ENV, capture_output=True, text=True
    )
    assert piped.stdout == done.stdout
    plain = subprocess.run(
        command("predict", "--load", model, "--conllu", "plain.txt"),
        cwd=tmp_path,
        env=ENV,
        capture_output=True,
        text=True,
    )
    assert tags_and_rest(plain.stdout)[0] == tags and plain.stdout.count("\n\n") == 2
    found = subprocess.run(
        command("predict", "--load", model, "--json", "in.conllu"),
        cwd=tmp_path,
        env=ENV,
        capture_output=True,
        text=True,
    )
    assert [json.loads(line)["tags"] for line in found.stdout.splitlines()] == [tags[:2], [], tags[2:]]


def test_conllu_whose_tabs_are_lost_is_not_tagged(model: str, tmp_path: Path) -> None:
    (tmp_path / "a.conllu").write_text("# text = a\n1  a  a  DET  _  _  0  root  _  _\n\n", encoding="utf-8")
    (tmp_path / "plain.txt").write_text("1 of ten words in plain text that has _\n", encoding="utf-8")
    done = subprocess.run(
        command("predict", "--load", model, str(tmp_path / "a.conllu")), env=ENV, capture_output=True, text=True
    )
    assert (done.returncode, done.stdout) == (
        2,
        "",
    ) and "a.conllu: expected columns of CoNLL-U separated by tabs" in done.stderr
    done = subprocess.run(
        command("predict", "--load", model, str(tmp_path / "plain.txt")), env=ENV, capture_output=True, text=True
    )
    assert done.returncode == 0 and len(done.stdout.split()) == 10


def test_a_tagger_and_a_parser_as_a_pipe(model: str, tmp_path: Path) -> None:
    module = load_program(catalogue.program("biaffine_parser"))
    s = from_dict(module.Settings, module.BiaffineParser.smoke, "test")
    data = module.BiaffineParser.load_data(s)
    path = str(tmp_path / "parser.model")
    save_recipe(make_recipe(module.BiaffineParser, s, module.BiaffineParser.build(s, data.train)), path)
    tagged = subprocess.run(
        command("predict", "--load", model, "-"), input=CONLLU, env=ENV, capture_output=True, text=True
    )
    program = [sys.executable, str(catalogue.program("biaffine_parser")), "predict", "--load", path, "-"]
    parsed = subprocess.run(program, input=tagged.stdout, env=ENV, capture_output=True, text=True)
    before, after = ([line.split("\t") for line in done.stdout.split("\n")] for done in (tagged, parsed))
    assert [row[:6] for row in before] == [row[:6] for row in after]
    assert [row[6] for row in after if row[0] == "1" and len(row) > 1][1] == "0"  # the only word of the second sentence
    words = subprocess.run(program, input="the dog\n", env=ENV, capture_output=True, text=True)
    assert words.returncode == 2 and "for the tags of the words; got 'the dog'" in words.stderr


def test_plain_text_is_tokenized(model: str) -> None:
    assert tokenized(["Cats don't sleep.", "Why?"]) == ["Cats do n't sleep .", "Why ?"]
    done = subprocess.run(command("predict", "--load", model, "--tokenize", "-"), input="Cats don't sleep.\n", env=ENV,
                          capture_output=True, text=True)  # fmt: skip
    assert [pair.split("_")[0] for pair in done.stdout.split()] == ["Cats", "do", "n't", "sleep", "."]


@pytest.mark.parametrize(
    "options, said",
    [(["--scores", "-"], "--scores needs --json"), (["--group", "0", "-"], "expected at least 1; got 0"),
     (["--jsno", "-"], "did you mean --json?")],
)  # fmt: skip
def test_wrong_options_of_predict(model: str, options: list[str], said: str) -> None:
    done = subprocess.run(command("predict", "--load", model, *options), env=ENV, capture_output=True, text=True)
    assert done.returncode == 2 and said in done.stderr.splitlines()[-1]


@dataclass
class Settings(harness.Settings):
    hidden: int = harness.option(8, "size")
    char_hidden: int = harness.option(8, "size, or 0")
    widths: tuple[int, ...] = harness.option((3, 4), "widths")
    column: int = harness.option(-1, "column; -1 is the last")
    dropout: float = harness.option(0.5, "share")
    temperature: float = harness.option(0.5, "of a sample")


@pytest.mark.parametrize(
    "name, value, said",
    [
        ("hidden", 0, "at least 1, got 0"),
        ("batch", 0, "at least 1, got 0"),
        ("epochs", -2, "at least 1, got -2"),
        ("threads", 0, "from 1 to 1024, got 0"),
        ("threads", 1025, "from 1 to 1024, got 1025"),
        ("patience", -1, "at least 0, got -1"),
        ("char_hidden", -1, "at least 0, got -1"),
        ("column", -2, "at least -1, got -2"),
        ("widths", (3, 0), "at least 1, got 0"),
        ("dropout", 1.0, "at least 0 and below 1, got 1.0"),
        ("dropout", float("nan"), "at least 0 and below 1, got nan"),
        ("learning_rate", 0.0, "more than 0, got 0.0"),
        ("learning_rate", float("inf"), "more than 0, got inf"),
        ("temperature", -1.0, "at least 0, got -1.0"),
    ],
)
def test_numbers_that_cannot_be(name: str, value: object, said: str) -> None:
    with pytest.raises(dy.DataError, match=f"{name}: expected {said}"):
        from_dict(Settings, {name: value}, "file.toml")


def test_numbers_that_can_be() -> None:
    s = from_dict(
        Settings, {"patience": 0, "char_hidden": 0, "column": -1, "dropout": 0.0, "temperature": 0.0}, "file.toml"
    )
    assert (s.patience, s.char_hidden, s.column, s.dropout, s.temperature) == (0, 0, -1, 0.0, 0.0)


def test_help_of_a_saved_model_tells_no_defaults_of_new_ones() -> None:
    parser = Parser(prog="predict")
    add_options(parser, Settings, only=["threads", "column", "device"])
    text = " ".join(parser.format_help().split())
    assert "threads that share the examples of a mini-batch (default: as in training)" in text
    assert "-1 is the last (default: as in training)" in text and "(default: cpu)" in text


@pytest.mark.parametrize("name", catalogue.programs())
def test_defaults_of_all_recipes_can_be(name: str) -> None:
    module = load_program(catalogue.program(name)) if name != "xor" else None
    for kind in vars(module).values() if module else ():
        if isinstance(kind, type) and issubclass(kind, harness.Settings) and kind is not harness.Settings:
            s = kind()
            from_dict(kind, {f.name: getattr(s, f.name) for f in fields(kind) if f.name not in kind.unused}, name)


def test_an_unknown_option_says_which_was_meant(capsys: pytest.CaptureFixture[str]) -> None:
    for words, said in (
        (["--hiden", "3"], "unrecognized arguments: --hiden 3; did you mean --hidden?"),
        (["--zyx", "3"], "unrecognized arguments: --zyx 3; see --help"),
        (["--hidden", "x"], "argument --hidden: invalid int value: 'x'; see --help"),
        (["--hidden"], "argument --hidden: expected one argument; see --help"),
    ):
        with pytest.raises(SystemExit) as stop:
            parse_settings(Settings, "", words)
        (line,) = capsys.readouterr().err.splitlines()
        assert stop.value.code == 2 and line.endswith(said)
