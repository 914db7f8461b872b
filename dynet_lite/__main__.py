"""The command line, `python -m dynet_lite COMMAND`:

    recipes                     lists the included recipes; `recipes copy NAME` copies one into this folder
    train NAME ...              trains a recipe: an included one by its name, or a file; takes the recipe's options
    predict NAME --load M ...   answers with a saved model
    evaluate NAME --load M ...  scores a saved model on files
    export NAME --load M ...    writes a saved model as an ONNX file
    serve MODEL                 answers over HTTP with a saved model
    compare NAME                measures a recipe with automatic batching on and off
    run script.py ...           runs a program written for DyNet
    info                        shows versions, processor, matrix library and settings

Each has --help.
"""

from __future__ import annotations

import argparse
import itertools
import os
import platform
import runpy
import sys

import numpy as np

import dynet_lite
from dynet_lite import _core, compat, config, gpus
from dynet_lite.errors import DataError, DeviceError, ModelFileError, SettingError
from dynet_lite.pipes import until_cut

# Commands that read the rest of the command line themselves.
DELEGATED = {
    "train": "train a recipe",
    "predict": "answer with a saved model",
    "evaluate": "score a saved model on files",
    "export": "write a saved model as an ONNX file",
    "serve": "answer over HTTP with a saved model",
    "compare": "measure a recipe with automatic batching on and off",
}


def _parser() -> argparse.ArgumentParser:
    about = dynet_lite.__doc__.splitlines()[0] if dynet_lite.__doc__ else None  # -OO leaves it out
    parser = argparse.ArgumentParser(prog="python -m dynet_lite", description=about)
    parser.add_argument("--version", action="version", version=f"dynet_lite {dynet_lite.__version__}")
    commands = parser.add_subparsers(dest="command", required=True)
    what = "Run a script as Python does, except that `import dynet` imports dynet_lite."
    run = commands.add_parser("run", help="run a program written for DyNet", description=what)
    run.add_argument("-m", dest="module", action="store_true", help="the program is a module, as in `python -m`")
    run.add_argument("script", help="the program's file (or the module's name)")
    run.add_argument("arguments", nargs=argparse.REMAINDER, help="everything after it goes to the program")
    for name, about in DELEGATED.items():  # main() gives them away before it parses
        commands.add_parser(name, help=about, add_help=False)
    recipes = commands.add_parser("recipes", help="list the included recipes, or copy one")
    recipes.add_argument("action", nargs="?", choices=("list", "copy"), default="list", help="default: list")
    recipes.add_argument("name", nargs="?", help="copy: the recipe")
    recipes.add_argument("--to", metavar="FOLDER", default=".", help="copy: the folder (default: this one)")
    commands.add_parser("info", help="show versions, processor, matrix library and settings")
    return parser


def _recipe(command: str, arguments: list[str]) -> int:
    """`train|predict|evaluate|export NAME ...`: as `python NAME.py [COMMAND] ...`. With `--load FILE` but for `train` the name
    may be left out: the file says it.
    """
    from dynet_lite.harness import called, catalogue, find

    if command != "train" and arguments and not _is_recipe(arguments[0]) and (model := _loaded(arguments)):
        arguments = [find.program_of(model), *arguments]
    if not arguments or arguments[0].startswith("-"):
        asked = any(word in ("-h", "--help") for word in arguments)
        text = f"usage: python -m dynet_lite {command} RECIPE [options]; {command} RECIPE --help lists them\n"
        if command != "train":
            text += "With --load FILE, the name of an included recipe may be left out.\n"
        names = f"recipes: {', '.join(catalogue.programs())}, or a file such as my_recipe.py"
        print(text + names, file=sys.stdout if asked else sys.stderr)
        return 0 if asked else 2
    path = str(catalogue.program(arguments[0]))
    if not catalogue.has_options(path):
        if {"-h", "--help"} & {*arguments}:
            print(catalogue.summary(path) + "\nIt has no options.")
            return 0
        if command != "train":
            raise DataError(f"{arguments[0]} saves no model, so there is nothing to {command}")
    called.by_name(arguments[0] if arguments[0] in catalogue.programs() else "")
    sys.argv = [path, *([] if command == "train" else [command]), *arguments[1:]]
    folder = os.path.dirname(os.path.realpath(path))
    sys.path.insert(0, folder)  # it may import what lies beside it
    try:
        runpy.run_path(path, run_name="__main__")
    finally:
        called.by_name("")
        if folder in sys.path:
            sys.path.remove(folder)
    return 0


def _is_recipe(word: str) -> bool:
    """A recipe's name or program, and no option, nor a file that is to be read."""
    from dynet_lite.harness import catalogue

    return word in catalogue.programs() or not (word.startswith("-") or (os.path.isfile(word) and word[-3:] != ".py"))


def _loaded(arguments: list[str]) -> str:
    """The file after --load; empty if there is none."""
    for word, following in itertools.pairwise([*arguments, ""]):
        if word == "--load" or word.startswith("--load="):
            return following if word == "--load" else word.partition("=")[2]
    return ""


def _recipes(action: str, name: str | None, folder: str) -> int:
    from dynet_lite.harness import catalogue

    if action == "list":
        known = catalogue.programs()
        for short, path in known.items():
            print(f"{short:{max(map(len, known)) + 2}}{catalogue.summary(path)}")
        return 0
    if name is None:
        raise DataError("recipes copy: which one? `python -m dynet_lite recipes` lists them")
    print(catalogue.copy(name, folder))
    return 0


def _processors() -> str:
    count, usable = os.cpu_count() or 1, config.processors()
    return f"{count} processors" + f", of which this process may use {usable}" * (usable < count)


def _info() -> None:
    print(f"dynet_lite {dynet_lite.__version__}, Python {sys.version.split()[0]}, numpy {np.__version__}")
    print(f"  {platform.platform()}, {platform.machine()}, {_processors()}")
    for name, value in _core.describe().items():
        print(f"  {name}: {value}")
    print("devices:")
    for device in gpus.devices():
        print(f"  {device}")
    print("settings:")
    for name, value in config.settings().items():
        print(f"  {name}: {'none' if value in (None, '') else value}")
    for variable, setting in config.misspelt().items():
        print(f"{variable} is set, but is not read: did you mean {setting}?")


def main(arguments: list[str] | None = None) -> int:
    """Run a command; its exit status."""
    arguments = sys.argv[1:] if arguments is None else arguments
    return until_cut(lambda: _answered(arguments))


def _answered(arguments: list[str]) -> int:
    """Errors that are the user's become one line and a status."""
    try:
        return _command(arguments)
    except BrokenPipeError:
        raise
    except FileExistsError as error:
        print(f"error: {error.filename} is there already", file=sys.stderr)
    except OSError as error:
        print(f"error: {error.filename}: {error.strerror}" if error.filename else f"error: {error}", file=sys.stderr)
    except (DataError, DeviceError, ModelFileError) as error:
        print(f"error: {error}", file=sys.stderr)
    return 2


def _command(arguments: list[str]) -> int:
    command, rest = arguments[:1], arguments[1:]
    if command == ["compare"]:
        from dynet_lite import compare  # imports the harness and what recipes need

        return compare.main(rest)
    if command == ["serve"]:
        from dynet_lite.harness import serve

        return serve.main(rest)
    if command and command[0] in DELEGATED:
        return _recipe(command[0], rest)
    if not arguments:
        _parser().print_help(sys.stderr)
        return 2
    options = _parser().parse_args(arguments)
    if options.command == "info":
        _info()
        return 0
    if options.command == "recipes":
        return _recipes(options.action, options.name, options.to)
    return _run(options)


def _run(options: argparse.Namespace) -> int:
    try:
        (compat.run_module if options.module else compat.run)(options.script, options.arguments)
    except (SystemExit, KeyboardInterrupt, SettingError):
        raise
    except BaseException as error:
        compat.report(error)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
