"""The command line: `python -m dynet_lite run script.py ...` runs a DyNet program, `compare recipes/X.py` trains a recipe
with automatic batching on and off, `info` tells what this build is.
"""

from __future__ import annotations

import argparse
import sys

import dynet_lite
from dynet_lite import _core, compat, config


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m dynet_lite", description=dynet_lite.__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    what = "Runs a script as Python does, except that `import dynet` gives it dynet_lite."
    run = commands.add_parser("run", help="run a program written for DyNet", description=what)
    run.add_argument("-m", dest="module", action="store_true", help="the program is a module, as in `python -m`")
    run.add_argument("script", help="file of the program (or name of the module)")
    run.add_argument("arguments", nargs=argparse.REMAINDER, help="everything after it is the program's own")
    commands.add_parser("compare", help="train a recipe with automatic batching on and off")  # main() gives it away
    commands.add_parser("info", help="version, engine and settings")
    return parser


def _info() -> None:
    print(f"dynet_lite {dynet_lite.__version__}, Python {sys.version.split()[0]}")
    for name, value in {**_core.describe(), **config.settings()}.items():
        print(f"  {name}: {value}")


def main(arguments: list[str] | None = None) -> int:
    """Run a command; its exit status."""
    arguments = sys.argv[1:] if arguments is None else arguments
    if arguments[:1] == ["compare"]:
        from dynet_lite import compare  # imports the harness and what recipes need

        return compare.main(arguments[1:])
    options = _parser().parse_args(arguments)
    if options.command == "info":
        _info()
        return 0
    try:
        (compat.run_module if options.module else compat.run)(options.script, options.arguments)
    except (SystemExit, KeyboardInterrupt):
        raise
    except BaseException as error:
        compat.report(error)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
