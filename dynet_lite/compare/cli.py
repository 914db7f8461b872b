"""The command line of `python -m dynet_lite compare`: finds the recipe in a script, runs it, writes what came out."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

from dynet_lite import _core
from dynet_lite.errors import DataError, DeviceError
from dynet_lite.files import replacing
from dynet_lite.harness import Diverged, Recipe, Settings, parse_settings
from dynet_lite.harness.catalogue import program
from dynet_lite.harness.find import load_program

from .measure import CLOCKS, OFF, Comparison, Way, compare
from .plot import draw
from .report import page, table

ABOUT = """Trains a recipe for some mini-batches with automatic batching on and off, at several batch sizes,
and tells how fast that is, why, and whether the losses are the same.

    python -m dynet_lite compare bilstm_tagger
    python -m dynet_lite compare treelstm_sentiment --batch-sizes 1,64 --strategies off,greedy --threads 1,2
    python -m dynet_lite compare my_recipe.py -- --hidden 200 --train en.conllu
"""


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m dynet_lite compare", description=ABOUT, formatter_class=argparse.RawDescriptionHelpFormatter,
        usage="%(prog)s RECIPE [options] [-- options of the recipe]",
    )  # fmt: skip
    parser.add_argument("script", metavar="RECIPE", help="the name of an included recipe, or a file")
    parser.add_argument("--batch-sizes", type=_numbers(1), default="1,8,64,256", metavar="N,N,...",
                        help="examples per mini-batch (default: 1,8,64,256)")  # fmt: skip
    parser.add_argument("--strategies", type=_strategies, default="off,greedy,agenda", metavar="NAME,...",
                        help="off, greedy, auto, agenda, depth (default: off,greedy,agenda)")  # fmt: skip
    parser.add_argument(
        "--threads", type=_numbers(1), default="1", metavar="N,N,...", help="numbers of threads (default: 1)"
    )
    parser.add_argument("--device", default="", metavar="NAME",
                        help="where to compute: cpu, cuda or cuda:1 (default: cpu)")  # fmt: skip
    parser.add_argument("--sentences", type=_count, default=0, metavar="N",
                        help="training examples to use (default: two of the largest mini-batches)")  # fmt: skip
    parser.add_argument(
        "--rounds", type=int, default=3, metavar="N", help="timings per setting; the best counts (default: 3)"
    )
    parser.add_argument("--clock", choices=sorted(CLOCKS), default="wall",
                        help="cpu: of this program alone, for one thread on a busy machine (default: wall)")  # fmt: skip
    parser.add_argument(
        "--out", default="runs", metavar="FOLDER", help="folder for the page and the data (default: runs)"
    )
    return parser


def _numbers(least: int) -> Callable[[str], list[int]]:
    def convert(text: str) -> list[int]:
        try:
            found = sorted({int(word) for word in text.split(",")})
        except ValueError:
            found = []
        if not found or found[0] < least:
            raise argparse.ArgumentTypeError(f"numbers of at least {least} with commas between them; got {text!r}")
        return found

    return convert


def _count(text: str) -> int:
    if not text.strip().isdecimal():
        raise argparse.ArgumentTypeError(f"a number of at least 0 is needed; got {text!r}")
    return int(text)


def _strategies(text: str) -> list[str]:
    names = list(dict.fromkeys(OFF if name == "none" else name for name in text.split(",")))
    for name in names:
        try:
            _core.check_setting("strategy", "none" if name == OFF else name)
        except ValueError:
            raise argparse.ArgumentTypeError(
                f"off, greedy, auto, agenda, depth with commas between them; got {text!r}"
            ) from None
    return names


def main(argv: Sequence[str]) -> int:
    """Runs the comparison that the command line asks for; the exit status. What follows "--" is for the recipe.
    0: fine. 2: wrong command line or data. 130: Ctrl-C."""
    words = list(argv)
    cut = words.index("--") if "--" in words else len(words)
    options = _parser().parse_args(words[:cut])
    try:
        module = load_program(program(options.script))
        kind, settings = find_recipe(module)
        s, _ = parse_settings(settings, module.__doc__, words[cut + 1 :], kind.smoke, kind.files)
        ways = [Way(batch, strategy, threads) for batch in options.batch_sizes for strategy in options.strategies
                for threads in options.threads]  # fmt: skip
        s = replace(s, device=options.device or s.device)
        data = kind.load_data(s)
        print(data, flush=True)
        Path(options.out).mkdir(parents=True, exist_ok=True)
        c = compare(kind, s, data, ways, sentences=options.sentences, rounds=max(1, options.rounds),
                    clock=options.clock, say=_progress)  # fmt: skip
        c.recipe = Path(options.script).stem
    except BrokenPipeError:
        raise
    except FileExistsError as error:
        print(f"error: --out {error.filename}: a folder is needed, and this is a file", file=sys.stderr)
        return 2
    except (DataError, DeviceError, Diverged, OSError, UnicodeError) as error:
        _progress("")
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        _progress("")
        return 130
    _progress("")
    print(table(c))
    for path in write(c, Path(options.out)):
        print(f"wrote {path}")
    return 0


def _progress(text: str) -> None:
    """One line that is written over, on a terminal only."""
    if sys.stderr.isatty():
        print(f"\r{text:<78}\r" if not text else f"\r{text:<78}", end="", file=sys.stderr, flush=True)


def write(c: Comparison, folder: Path) -> list[Path]:
    """The page, the numbers and, with matplotlib, a picture; what was written."""
    folder.mkdir(parents=True, exist_ok=True)
    stem = folder / f"compare-{c.recipe}"
    texts = {".html": page(c), ".json": json.dumps(c.to_dict(), indent=1)}
    written = []
    for ending, text in texts.items():
        path = stem.with_name(stem.name + ending)
        with replacing(str(path)) as file:
            file.write(text.encode())
        written.append(path)
    picture = stem.with_name(stem.name + ".png")
    return [*written, picture] if draw(c, picture) else written


# ---- the recipe in a script ----------------------------------------------------------------------------------------


def find_recipe(module: ModuleType) -> tuple[type[Recipe[Any, Any]], type[Settings]]:
    """The recipe class and the settings class of a script: RECIPE and SETTINGS, or the last ones that it defines."""
    kind = getattr(module, "RECIPE", None) or _last(module, Recipe)
    if kind is None:
        name = getattr(module, "__file__", None) or module.__name__
        raise DataError(f"{name}: expected a subclass of harness.Recipe in the script")
    return kind, getattr(module, "SETTINGS", None) or _last(module, Settings) or Settings


def _last(module: ModuleType, base: type) -> Any:
    """The last subclass among the names of a module; those it defines itself come before those it imports."""
    found = [c for c in vars(module).values() if isinstance(c, type) and issubclass(c, base) and c is not base]
    own = [c for c in found if c.__module__ == module.__name__]
    candidates: Sequence[Any] = own or found
    return candidates[-1] if candidates else None
