"""The command line of a recipe: training (with nothing but options), `predict`, `evaluate`, --compare."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import fields, replace
from typing import Any

import dynet_lite as dy
from dynet_lite import distributed
from dynet_lite.errors import DataError, DeviceError, ModelFileError
from dynet_lite.pipes import until_cut

from .answer import features_option, predict, saved_parser
from .labels import check_shared, check_training
from .loop import Diverged, Training, check_same
from .onoff import compare
from .ranks import complain, follower, silent, wait, without_files
from .recipe import Recipe
from .report import Report, keep_apart
from .settings import ENGINE, Settings, add_options, from_dict, of_engine, parse_settings
from .state import load_recipe, make_recipe, read

__all__ = ["main"]

GROUP = 64  # lines that are answered together
DATA = ("train", "dev", "test", "nltk", "features")  # settings that name data


def main(
    recipe: type[Recipe[Any, Any]],
    settings: type[Settings],
    about: str | None = None,
    argv: Sequence[str] | None = None,
) -> int:
    """Runs a recipe as `argv` (by default the command line) says. Returns the exit status.

    0: fine. 1: the training diverged. 2: wrong command line or data. 130: Ctrl-C. 141: nobody reads the output any more.
    """
    argv = sys.argv[1:] if argv is None else list(argv)
    try:
        distributed.init()
    except (RuntimeError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    with silent():
        return until_cut(lambda: _main(recipe, settings, about, argv))


def _main(recipe: type[Recipe[Any, Any]], settings: type[Settings], about: str | None, argv: Sequence[str]) -> int:
    """Errors that are the user's become one line and a status; with several processes all of them end there."""
    try:
        if argv[:1] in (["predict"], ["evaluate"], ["export"]) and follower():
            return wait()
        if argv[:1] == ["predict"]:
            return predict(recipe, settings, argv[1:])
        if argv[:1] == ["evaluate"]:
            return evaluate(recipe, settings, argv[1:])
        if argv[:1] == ["export"]:
            return export(recipe, settings, argv[1:])
        with silent(errors=True):
            s, given = parse_settings(settings, about, argv, recipe.smoke, recipe.files)
        return run(recipe, s, given)
    except BrokenPipeError:  # `| head` has read enough
        raise
    except OSError as error:
        where = f"{error.filename}: {error.strerror}" if error.filename else str(error)
        return complain(where, 2)
    except (DataError, DeviceError, ModelFileError, UnicodeError, distributed.NotAlike) as error:
        return complain(str(error), 2)
    except Diverged as error:
        return complain(str(error), 1)
    except KeyboardInterrupt:
        return 130


def run(kind: type[Recipe[Any, Any]], s: Settings, given: dict[str, Any]) -> int:
    """Training or comparison, from the start, from a saved model or from where a run was stopped."""
    cls = type(s)
    file: dy.Checkpoint | None = None
    if s.resume:
        if s.resume.endswith(".state") and not os.path.exists(s.resume + ".state"):  # both files are the run's
            s = replace(s, resume=s.resume.removesuffix(".state"))
            given["resume"] = s.resume
        file = read(s.resume + ".state", kind)
        check_same(given, file.config["settings"], s.resume)
        small = {"smoke": bool(file.config.get("smoke"))}  # goes on with the few examples that it had
        s = from_dict(cls, {**file.config["settings"], **small, **given, "save": s.save or s.resume}, s.resume)
    elif s.load:
        file = read(s.load, kind)
        check_built(kind, given, file.config["settings"], s.load)
        saved = old_files(file.config["settings"], given)
        s = from_dict(cls, {**saved, **given}, s.load)
    keep_apart(
        {"--save": s.save, "--save's state": s.save and s.save + ".state", "--log": s.log, "--plot": s.plot},
        [*s.train, *s.dev, *s.test, *getattr(s, "features", ()), getattr(s, "vectors", ""), s.config],
    )
    keep_apart({"--log": s.log, "--plot": s.plot}, [s.load])
    s = without_files(s)
    with engine(s):
        if s.compare and follower():
            return wait()
        data = kind.load_data(s)
        print(data, flush=True)
        if s.smoke:
            data = data.small()
        parts = file.config["parts"] if file else kind.build(s, data.train)
        recipe = make_recipe(kind, s, parts)
        if s.load:
            check_training(recipe, data.train)
        check_shared(recipe, data.dev, "dev data")
        check_shared(recipe, data.test, "test data")
        if s.compare:
            return compare(kind, s, parts, data)
        training = Training(recipe, data, Report(s, resumed=bool(s.resume)))
        if s.resume and file:
            training.restore(file)
        else:
            if file:
                begin_with(recipe, file, given)
            else:
                training.recipe.begin()
            training.report.start(s, str(data))
        return training.run()


def check_built(kind: type[Recipe[Any, Any]], given: dict[str, Any], saved: dict[str, Any], path: str) -> None:
    """DataError if a setting that made the vocabularies and the like of a saved model was given another value."""
    for name in kind.build_options:
        old = tuple(saved[name]) if isinstance(saved.get(name), list) else saved.get(name)
        weight = isinstance(old, float) and old > 0  # of something that the model has
        if name in given and name in saved and given[name] != old and not weight:
            raise DataError(f"--load: {path} was made with {name} = {old!r}; with {given[name]!r} train without --load")


def begin_with(recipe: Recipe[Any, Any], file: dy.Checkpoint, given: dict[str, Any]) -> None:
    """Takes the weights of a saved model. DataError with the recipe's settings that differ from its own, if they do not fit."""
    try:
        file.restore(recipe.model)
    except ModelFileError:
        saved = from_dict(type(recipe.settings), file.config["settings"], file.path)
        own = {name: getattr(saved, name) for name in given.keys() - {field.name for field in fields(Settings)}}
        other = [f"{name} = {old!r}, not {given[name]!r}" for name, old in sorted(own.items()) if old != given[name]]
        if not other:
            raise
        raise DataError(f"--load: weights do not fit; {file.path} was made with {'; '.join(other)}") from None


def old_files(saved: dict[str, Any], given: dict[str, Any]) -> dict[str, Any]:
    """The settings of a loaded model without the files of its own training, where others are named now. If neither --train nor
    --nltk is, the old files are trained on once more, which is said."""
    named = given.get("train") or given.get("nltk")
    old = {name: saved[name] for name in DATA if saved.get(name) and not given.get(name)}
    if named:
        return {name: value for name, value in saved.items() if name not in DATA}
    if old:
        files = " ".join(f"--{name} {' '.join(x) if isinstance(x, (list, tuple)) else x}" for name, x in old.items())
        print(f"files of the saved training: {files}", flush=True)
    return saved


def engine(s: Settings) -> ExitStack:
    """The engine works as the settings say, until the end of the `with`."""
    stack = ExitStack()
    stack.enter_context(dy.configure(**of_engine(s)))
    return stack


# ---- evaluate ------------------------------------------------------------------------------------------


def evaluate(kind: type[Recipe[Any, Any]], settings: type[Settings], argv: Sequence[str]) -> int:
    """`evaluate --load FILE INPUT...`: the score of a saved model on the examples of the files."""
    parser = saved_parser("evaluate", "The score of a saved model on the examples of files in the format of --train.")
    add_options(parser, settings, only=["form", "column", "types", *kind.evaluate_options, *ENGINE, "device"])
    features_option(parser, settings)
    parser.add_argument("input", nargs="+", metavar="INPUT", help="a file")
    given = vars(parser.parse_args(argv))
    path, inputs, features = given.pop("load"), tuple(given.pop("input")), tuple(given.pop("features", ()))
    if "train" in settings.unused:
        raise DataError("this recipe reads no files")
    recipe = load_recipe(kind, settings, path, given)
    with engine(recipe.settings):
        more: dict[str, Any] = {"features": features * 2} if hasattr(recipe.settings, "features") else {}
        if hasattr(recipe.settings, "stream"):  # a stream looks for each example from its start
            more["stream"] = "off"
        data = kind.load_data(replace(recipe.settings, train=inputs, dev=inputs, test=(), nltk="", **more))
        check_shared(recipe, data.train, data.name)
        score = recipe.evaluate(data.train)
    print(f"{data.name}: {len(data.train):,} {data.unit}: {score.text}")
    return 0


def export(kind: type[Recipe[Any, Any]], settings: type[Settings], argv: Sequence[str]) -> int:
    """`export --load FILE --to FILE.onnx`: the networks of a saved model as ONNX files."""
    from dynet_lite import onnx

    parser = saved_parser("export", "The networks of a saved model as ONNX files: docs/onnx.md.")
    parser.add_argument(
        "--to", required=True, metavar="FILE", help="the file to write; additional networks are written beside it"
    )
    given = vars(parser.parse_args(argv))
    keep_apart({"--to": given["to"]}, [given["load"]])
    recipe = load_recipe(kind, settings, given["load"])
    try:
        written = onnx.export_recipe(recipe, given["to"])
    except (ImportError, onnx.Unsupported) as error:
        raise DataError(str(error)) from None
    for path in written:
        print(f"{path}: {path.stat().st_size:,} bytes, opset {onnx.OPSET}")
    return 0
