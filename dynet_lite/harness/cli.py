"""The command line of a recipe: training (with nothing but options), `predict`, `evaluate`, --compare."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any, TextIO

import dynet_lite as dy
from dynet_lite.errors import DataError, ModelFileError

from .loop import Diverged, Training, check_same
from .onoff import compare
from .recipe import Recipe
from .report import Report
from .settings import Settings, add_options, from_dict, parse_settings
from .state import load_recipe, make_recipe, read

__all__ = ["main"]

GROUP = 64  # lines that are answered together


def main(
    recipe: type[Recipe[Any, Any]], settings: type[Settings], about: str | None = None, argv: Sequence[str] | None = None
) -> int:
    """Runs a recipe as `argv` (default: the command line) says; its exit status.

    0 fine, 1 the training diverged, 2 wrong command line or data, 130 Ctrl-C.
    """
    argv = sys.argv[1:] if argv is None else list(argv)
    try:
        if argv[:1] == ["predict"]:
            return predict(recipe, settings, argv[1:])
        if argv[:1] == ["evaluate"]:
            return evaluate(recipe, settings, argv[1:])
        s, given = parse_settings(settings, about, argv, recipe.smoke)
        return run(recipe, s, given)
    except BrokenPipeError:  # `| head` has read enough: the interpreter must not try to write the rest
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 141
    except OSError as error:
        where = f"{error.filename}: {error.strerror}" if error.filename else str(error)
        print(f"error: {where}", file=sys.stderr)
        return 2
    except (DataError, ModelFileError, UnicodeError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except Diverged as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


def run(kind: type[Recipe[Any, Any]], s: Settings, given: dict[str, Any]) -> int:
    """Training or comparison, from the start, from a saved model or from where a run was stopped."""
    cls = type(s)
    file: dy.Checkpoint | None = None
    if s.resume:
        file = read(s.resume + ".state", kind)
        check_same(given, file.config["settings"], s.resume)
        s = from_dict(cls, {**file.config["settings"], **given, "save": s.save or s.resume}, s.resume)
    elif s.load:
        file = read(s.load, kind)
        s = from_dict(cls, {**file.config["settings"], **given}, s.load)
    with engine(s):
        data = kind.load_data(s)
        print(data, flush=True)
        if s.smoke:
            data = data.small()
        parts = file.config["parts"] if file else kind.build(s, data.train)
        if s.compare:
            return compare(kind, s, parts, data)
        training = Training(make_recipe(kind, s, parts), data, Report(s, resumed=bool(s.resume)))
        if s.resume and file:
            training.restore(file)
        else:
            if file:
                file.restore(training.recipe.model)
            else:
                training.recipe.begin()
            training.report.start(s, str(data))
        return training.run()


def engine(s: Settings) -> ExitStack:
    """The engine works as the settings say, until the end of the `with`."""
    stack = ExitStack()
    stack.enter_context(dy.configure(autobatch=s.autobatch, strategy=s.strategy, threads=s.threads))
    return stack


# ---- predict and evaluate ------------------------------------------------------------------------------------------


def predict(kind: type[Recipe[Any, Any]], settings: type[Settings], argv: Sequence[str]) -> int:
    """`predict --load FILE INPUT...`: what the model says of each line (or block of lines) of the files."""
    parser = _parser("predict", "What a saved model says of each line of the files.")
    parser.add_argument("--output", metavar="FILE", default="", help="write there and not to standard output")
    add_options(parser, settings, only=[*kind.predict_options, "autobatch", "strategy", "threads"])
    parser.add_argument("input", nargs="+", metavar="INPUT", help="a file; - is standard input")
    given = vars(parser.parse_args(argv))
    path, inputs, output = given.pop("load"), given.pop("input"), given.pop("output")
    recipe = load_recipe(kind, settings, path, given)
    with ExitStack() as stack:
        stack.enter_context(engine(recipe.settings))
        out = stack.enter_context(open(output, "w", encoding="utf-8")) if output else sys.stdout
        for name in inputs:
            file = stack.enter_context(open(0 if name == "-" else name, encoding="utf-8", closefd=name != "-"))
            for group in groups(file, kind.blocks):
                for answer in recipe.predict(group):
                    print(answer, file=out)
                out.flush()
    return 0


def evaluate(kind: type[Recipe[Any, Any]], settings: type[Settings], argv: Sequence[str]) -> int:
    """`evaluate --load FILE INPUT...`: the score of a saved model on the examples of the files."""
    parser = _parser("evaluate", "The score of a saved model on the examples of files in the format of --train.")
    add_options(parser, settings, only=["autobatch", "strategy", "threads"])
    parser.add_argument("input", nargs="+", metavar="INPUT", help="a file")
    given = vars(parser.parse_args(argv))
    path, inputs = given.pop("load"), tuple(given.pop("input"))
    if "train" in settings.unused:
        raise DataError("this recipe reads no files")
    recipe = load_recipe(kind, settings, path, given)
    with engine(recipe.settings):
        data = kind.load_data(replace(recipe.settings, train=inputs, dev=inputs, test=(), nltk=""))
        score = recipe.evaluate(data.train)
    print(f"{data.name}: {len(data.train):,} {data.unit}: {score.text}")
    return 0


def _parser(command: str, about: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=f"{Path(sys.argv[0]).name} {command}", description=about)
    parser.add_argument("--load", required=True, metavar="FILE", help="the model that --save wrote")
    return parser


def groups(file: TextIO, blocks: bool) -> Iterator[list[str]]:
    """Lines or blocks of lines without their ends: 64 at a time, or one by one from somebody who types."""
    items: Iterable[str] = _blocks(file) if blocks else (line.rstrip("\r\n") for line in file)
    items = iter(items)
    size = 1 if file.isatty() else GROUP
    while group := list(islice(items, size)):
        yield group


def _blocks(lines: Iterable[str]) -> Iterator[str]:
    block: list[str] = []
    for line in lines:
        if line.strip():
            block.append(line)
        elif block:
            yield "".join(block).rstrip("\r\n")
            block = []
    if block:
        yield "".join(block).rstrip("\r\n")
