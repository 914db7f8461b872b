"""`predict`: what a saved model says of files, or of lines as they come through a pipe."""

from __future__ import annotations

import argparse
import json
import sys
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from itertools import chain, islice
from queue import Empty, Queue
from typing import Any

import dynet_lite as dy
from dynet_lite.errors import DataError
from dynet_lite.text import is_conllu, numbered_lines

from . import called
from .features import FeaturesOfLines
from .recipe import Recipe
from .report import keep_apart
from .settings import ENGINE, Parser, Settings, add_options, of_engine
from .state import load_recipe

__all__ = ["features_option", "predict", "saved_parser"]

AHEAD = 4  # groups of lines of standard input that wait to be answered
IDLE = 0.02  # seconds without a new line on standard input after which those that came are answered


def saved_parser(command: str, about: str) -> argparse.ArgumentParser:
    """The parser of a command that uses a saved model."""
    parser = Parser(prog=called.command(command), description=about, allow_abbrev=False)
    parser.add_argument("--load", required=True, metavar="FILE", help="the model, a file written by --save")
    return parser


def features_option(parser: argparse.ArgumentParser, settings: type[Settings]) -> None:
    """--features, if the recipe has it; here once for each input."""
    if hasattr(settings, "features"):
        parser.add_argument("--features", action="append", default=[], metavar="FILE",
                            help="a file with numbers for each word (.npz, .safetensors), for each input")  # fmt: skip


def predict(kind: type[Recipe[Any, Any]], settings: type[Settings], argv: Sequence[str]) -> int:
    """`predict --load FILE INPUT...`: what the model says of each line (or block of lines) of the files."""
    parser = saved_parser("predict", "Print the answer of a saved model to each line of the files.")
    parser.add_argument("--output", metavar="FILE", default="", help="write to this file instead of standard output")
    parser.add_argument("--json", action="store_true", help="answer in JSON, one line each")
    parser.add_argument("--scores", action="store_true", help="with --json: add probabilities")
    parser.add_argument("--group", type=int, default=64, metavar="N",
                        help="lines to answer together, at most (default: 64); of standard input, those that have arrived")  # fmt: skip
    if not kind.blocks:
        parser.add_argument(
            "--tokenize", action="store_true", help="the lines are plain text: separate words from punctuation (nltk)"
        )
    add_options(parser, settings, only=[*kind.predict_options, *ENGINE, "device"])
    features_option(parser, settings)
    parser.add_argument("input", nargs="+", metavar="INPUT", help="a file; - is standard input")
    given = vars(parser.parse_args(argv))
    features: list[str] = given.pop("features", [])
    path, inputs, output, size = (given.pop(name) for name in ("load", "input", "output", "group"))
    as_json, scores, tokenize = given.pop("json"), given.pop("scores"), given.pop("tokenize", False)
    if size < 1:
        parser.error(f"--group: expected at least 1; got {size}")
    if scores and not as_json:
        parser.error("--scores needs --json")
    if features and len(features) != len(inputs):
        parser.error(f"--features: expected one for each of {len(inputs)} inputs; got {len(features)}")
    keep_apart({"--output": output}, [path, *inputs, *features])
    recipe = load_recipe(kind, settings, path, given)
    s = recipe.settings
    with ExitStack() as stack:
        stack.enter_context(dy.configure(**of_engine(s)))
        out = stack.enter_context(open(output, "w", encoding="utf-8")) if output else sys.stdout
        for name, beside in zip(inputs, features or [""] * len(inputs), strict=True):
            numbers = FeaturesOfLines(beside) if beside else None
            for group in groups(name, kind, size):
                lines = tokenized(group) if tokenize else group
                more = {"features": numbers.of(lines)} if numbers else {}
                for answer in recipe.answers(lines, scores, **more) if as_json else recipe.predict(lines, **more):
                    print(json.dumps(answer, ensure_ascii=False) if as_json else answer, file=out)
                out.flush()
            if numbers:
                numbers.finished(name)
    return 0


def tokenized(lines: list[str]) -> list[str]:
    """Words and punctuation marks of plain text with blanks between them, as in the Penn Treebank."""
    from nltk.tokenize import NLTKWordTokenizer

    tokenizer = NLTKWordTokenizer()
    return [line if is_conllu(line) else " ".join(tokenizer.tokenize(line)) for line in lines]


def groups(name: str, kind: type[Recipe[Any, Any]], size: int) -> Iterator[list[str]]:
    """Lines or blocks of lines of a file, as the recipe wants them, `size` at a time. Of standard input (-) those that
    have come: whoever waits for an answer before writing the next line, a person or a program, gets it."""
    lines = numbered_lines(0, "standard input") if name == "-" else numbered_lines(name)
    items: Iterator[str] = (line for _, line in lines)
    if kind.conllu:
        items, found = _looked_at(items, name)
    if kind.blocks or (kind.conllu and found):
        items = _blocks(items)
    if name == "-":
        yield from as_they_come(items, size)
    else:
        while group := list(islice(items, size)):
            yield group


def as_they_come(items: Iterator[str], size: int) -> Iterator[list[str]]:
    """Groups of what a slow source has given so far: up to `size`, or what there is when nothing comes for a moment. A fast one
    is read a few groups ahead, however much it holds."""
    queue: Queue[str | BaseException | None] = Queue(AHEAD * size)

    def read() -> None:
        try:
            for item in items:
                queue.put(item)
            queue.put(None)
        except BaseException as error:  # raised again where the items are used
            queue.put(error)

    threading.Thread(target=read, daemon=True).start()
    while True:
        group: list[str] = []
        item = queue.get()
        while isinstance(item, str):
            group.append(item)
            if len(group) == size:
                break
            try:
                item = queue.get(timeout=IDLE)
            except Empty:
                break
        if group:
            yield group
        if isinstance(item, BaseException):
            raise item
        if item is None:
            return


def _looked_at(lines: Iterator[str], name: str) -> tuple[Iterator[str], bool]:
    """All lines of a file, and whether they are CoNLL-U, by the first that is no comment. DataError if its tabs are lost."""
    seen: list[str] = []
    for line in lines:
        seen.append(line)
        if line.strip() and not line.startswith("# " if name == "-" else "#"):
            columns = line.split()
            if "\t" not in line and columns.count("_") > 1 and is_conllu("\t".join(columns)):
                where = "standard input" if name == "-" else name
                raise DataError(f"{where}: expected columns of CoNLL-U separated by tabs, got blanks between them")
            return chain(seen, lines), bool(is_conllu(line))
    return iter(seen), False


def _blocks(lines: Iterable[str]) -> Iterator[str]:
    block: list[str] = []
    for line in lines:
        if line.strip():
            block.append(line)
        elif block:
            yield "\n".join(block)
            block = []
    if block:
        yield "\n".join(block)
