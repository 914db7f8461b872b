"""Settings of a recipe: a dataclass whose fields are options of the command line and keys of a TOML file.

What the command line says wins over the file, the file over the defaults. Unknown names and wrong types are errors.
Knows nothing of models or data.
"""

from __future__ import annotations

import argparse
import difflib
import importlib
import math
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, ClassVar, NoReturn, TypeVar, get_args, get_origin, get_type_hints

from dynet_lite import distributed, gpus
from dynet_lite.errors import DataError

from . import called
from .schedule import SCHEDULES

__all__ = ["Settings", "StreamSettings", "from_dict", "option", "parse_settings", "read_config", "to_dict"]

S = TypeVar("S", bound="Settings")


def option(default: Any, help: str = "", *, choices: Sequence[Any] = ()) -> Any:
    """A field of a settings class: its default, a line of help, and the values it may have (empty: anything of its
    type).

    A field that a base class has takes over its help. Types are bool, int, float, str, tuple[int, ...] and tuple[str,
    ...]. A tuple is given as `--name A B C`, and in TOML as a list.
    """
    return field(default=default, metadata={"help": help, "choices": tuple(choices)})


@dataclass
class Settings:
    """The settings that every recipe has.

    A recipe derives its own settings from this class, and changes a default by naming the field again. `unused` lists
    the names of settings that make no sense for the recipe; they are not offered as options.
    """

    unused: ClassVar[tuple[str, ...]] = ()
    noise: ClassVar[tuple[str, ...]] = ("dropout",)  # these are 0 in comparisons: the engine draws by batch

    train: tuple[str, ...] = option((), "files to train on (default: the recipe's own data)")
    dev: tuple[str, ...] = option((), "files that choose the best epoch (default: the last tenth of the training data)")
    test: tuple[str, ...] = option((), "files to test the best model on, after training")
    nltk: str = option("", "train on this NLTK corpus")

    epochs: int = option(20, "passes over the training data")
    patience: int = option(4, "stop after this many epochs without a better dev score; 0: never")
    batch: int = option(16, "examples per update")
    learning_rate: float = option(1e-3, "highest learning rate")
    schedule: str = option("constant", "how the learning rate changes", choices=SCHEDULES)
    warmup: int = option(0, "updates over which the learning rate rises from 0")
    average: float = option(
        0.0, "evaluate and save a moving average of the weights with this decay, such as 0.999; 0: none"
    )
    seed: int = option(1, "seed of the random numbers")
    autobatch: bool = option(True, "automatic batching")
    strategy: str = option("greedy", "how batches are chosen", choices=("greedy", "auto", "agenda", "depth", "none"))
    threads: int = option(1, "threads that share the examples of a mini-batch")
    device: str = option("", "where to compute: cpu, cuda or cuda:1 (default: cpu)")

    compare: bool = option(False, "train with automatic batching on and off, and print how much faster it is")
    smoke: bool = option(False, "a tiny run that shows whether everything works")
    save_every: int = option(0, "with --save: also write FILE.state every N updates; 0: only after each epoch")
    save: str = option("", "write the best model to this file; FILE.state is for --resume")
    load: str = option("", "start from the weights, vocabularies and settings of this saved model")
    resume: str = option("", "continue the training that --save FILE started, as if it had never stopped")
    log: str = option("", "write one line of JSON per update and per epoch to this file")
    tensorboard: str = option("", "write curves for TensorBoard to this folder")
    plot: str = option("", "draw the learning curve into this file (.png, .svg, .pdf)")
    config: str = option("", "read settings from this TOML file")


@dataclass
class StreamSettings(Settings):
    """Settings of recipes that can read training files piece by piece."""

    stream: str = option(
        "auto",
        "read the training files piece by piece instead of whole; auto: if they are larger than 256 MB",
        choices=("auto", "on", "off"),
    )
    window: int = option(200, "with --stream: how many mini-batches are in memory and shuffled together")


# What to do with a run, and not what it computes: not saved with a model.
NOT_SAVED = ("device", "compare", "smoke", "save", "load", "resume", "log", "tensorboard", "plot", "config")
# How it is computed, for all commands.
ENGINE = ("autobatch", "strategy", "threads")
# What the text of an option is, if it is not the name of a file; for help.
WORDS = {"nltk": "NAME", "tensorboard": "FOLDER", "device": "DEVICE"}
# What may differ when a run is resumed.
MAY_CHANGE = (*NOT_SAVED, "save_every", "epochs", "patience", "threads", "test")


# These may be 0, whatever their default is.
ZERO = ("patience", "warmup", "seed", "char_hidden", "case_dim", "hops", "subwords", "min_count")


def _range(name: str, kind: Any, default: Any) -> tuple[str, Callable[[Any], bool]]:
    """What the number of a setting may be, in words and as a test, by its name and its default."""
    if (
        name in ("average", "dropout", "ngrams", "smoothing", "weight_drop", "words")
        or name.endswith("_dropout")
        and default < 1
        and name != "word_dropout"
    ):
        return "at least 0 and below 1", lambda x: 0 <= x < 1
    if name == "threads":
        return "from 1 to 1024", lambda x: 1 <= x <= 1024
    if name == "learning_rate":
        return "more than 0", lambda x: 0 < x < math.inf
    if kind is float:
        return "at least 0", lambda x: 0 <= x < math.inf
    least = -1 if default < 0 or name == "column" else 0 if default == 0 or name in ZERO else 1
    return f"at least {least}", lambda x: x >= least


class Parser(argparse.ArgumentParser):
    """argparse, whose errors are one line, and which tells also which option an unknown one may have meant."""

    def error(self, message: str) -> NoReturn:
        unknown = re.search(r"unrecognized arguments: --([\w-]+)", message)
        names = [name[2:] for name in self._option_string_actions if name.startswith("--")]
        near = difflib.get_close_matches(unknown[1], names, 1) if unknown else []
        self.exit(2, f"{self.prog}: error: {message}; {f'did you mean --{near[0]}?' if near else 'see --help'}\n")


def _options(cls: type[Settings]) -> dict[str, tuple[Any, Any, str, tuple[Any, ...]]]:
    """name: (type, default, help, choices) of every option of the class."""
    hints = get_type_hints(cls)
    out = {}
    for f in fields(cls):
        if f.name in cls.unused:
            continue
        inherited = [base.__dataclass_fields__.get(f.name) for base in cls.__mro__ if issubclass(base, Settings)]
        about = [g.metadata for g in (f, *inherited) if g is not None and g.metadata.get("help")]
        if not about:
            raise TypeError(f"[harness] {cls.__name__}.{f.name} needs option(default, help)")
        choices = f.metadata.get("choices") or about[0].get("choices") or ()
        out[f.name] = hints[f.name], f.default, about[0]["help"], tuple(choices)
    return out


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    return " ".join(map(str, value)) if isinstance(value, tuple) else str(value)


def add_options(parser: argparse.ArgumentParser, cls: type[Settings], only: Sequence[str] = ()) -> None:
    """Options for the fields; if `only` is given for those in it, of a saved model. What is not on the command line is not in
    the result."""
    for name, (kind, default, about, choices) in _options(cls).items():
        if only and name not in only:
            continue
        how: dict[str, Any] = {}
        if kind is bool:
            how["action"] = argparse.BooleanOptionalAction  # --no-x also takes back what a file has set
        elif get_origin(kind) is tuple:
            of = get_args(kind)[0]
            how.update(type=of, nargs="+", metavar="N" if of is int else "FILE")
        else:
            how.update(type=kind, metavar=WORDS.get(name, "FILE") if kind is str else "N")
        if choices:
            how["choices"] = choices
            del how["metavar"]
        if only and name not in NOT_SAVED:
            about += " (default: as in training)"
        elif default not in ("", (), False):
            about += f" (default: {_shown(default)})"
        parser.add_argument(_flag(name), default=argparse.SUPPRESS, help=about.replace("%", "%%"), **how)


def parse_settings(
    cls: type[S],
    about: str | None = None,
    argv: Sequence[str] | None = None,
    smoke: Mapping[str, Any] | None = None,
    files: Mapping[str, Any] | None = None,
) -> tuple[S, dict[str, Any]]:
    """The settings that the command line asks for, and a dict of those that it or the TOML file has set.

    files: defaults that change when --train is given
    smoke: defaults that change with --smoke

    A wrong command line ends the program with status 2, as in argparse. A wrong file is a DataError.
    """
    parser = Parser(
        prog=called.command(),
        description=called.shown(about or ""),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
        epilog=called.then(),
    )
    add_options(parser, cls)
    if files:
        changed = ", ".join(f"{_flag(name)} {_shown(value)}" for name, value in files.items())
        parser.epilog = f"Defaults with --train: {changed}. {parser.epilog}".replace("%", "%%")
    named = {k: tuple(v) if isinstance(v, list) else v for k, v in vars(parser.parse_args(argv)).items()}
    given = {**(read_config(cls, str(named["config"])) if named.get("config") else {}), **named}
    if given.get("nltk") and (given.get("train") or given.get("dev")):
        parser.error("give either --nltk or --train/--dev, not both")
    if given.get("resume") and given.get("load"):
        parser.error("give either --resume or --load, not both")
    defaults = {**((files or {}) if given.get("train") else {}), **((smoke or {}) if given.get("smoke") else {})}
    return from_dict(cls, {**defaults, **given}, "settings"), given


def read_config(cls: type[Settings], path: str) -> dict[str, Any]:
    """Settings from a TOML file of `name = value` lines; '-' in a name is as good as '_'."""
    toml = _toml()
    with open(path, "rb") as file:
        try:
            values = toml.load(file)
        except (toml.TOMLDecodeError, UnicodeDecodeError) as error:
            raise DataError(f"{path}: expected a TOML file: {error}") from None
    return checked(cls, {name.replace("-", "_"): value for name, value in values.items()}, path)


def _toml() -> Any:
    """The standard library's reader, or on Python 3.10 its forerunner, which then is a dependency of this package."""
    return importlib.import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")


def checked(cls: type[Settings], values: Mapping[str, Any], where: str) -> dict[str, Any]:
    """The values as their fields want them; DataError for an unknown name or a value of another type."""
    options = _options(cls)
    out = {}
    for name, value in values.items():
        if name not in options:
            if isinstance(value, dict):
                raise DataError(f"{where}: settings stand in no section; leave out the line [{name}]")
            near = difflib.get_close_matches(name, options, 1)
            hint = f"; did you mean {near[0]!r}?" if near else f"; there are {', '.join(options)}"
            raise DataError(f"{where}: there is no setting {name!r}{hint}")
        kind, default, _, choices = options[name]
        try:
            out[name] = _as(kind, value)
        except TypeError:
            many = get_origin(kind) is tuple
            wanted = f"a list of {get_args(kind)[0].__name__}" if many else kind.__name__
            raise DataError(f"{where}: {name}: expected {wanted}, got {value!r}") from None
        numbers = out[name] if isinstance(out[name], tuple) else (out[name],)
        if any(isinstance(text, str) and "\0" in text for text in numbers):
            raise DataError(f"{where}: {name}: expected text without the character 0, got {value!r}")
        if kind in (int, float, tuple[int, ...]):
            words, fits = _range(name, kind, (*default, 0)[0] if isinstance(default, tuple) else default)
            for number in numbers:
                if not fits(number):
                    raise DataError(f"{where}: {name}: expected {words}, got {number}")
        if choices and out[name] not in choices:
            raise DataError(f"{where}: {name}: expected one of {', '.join(map(str, choices))}, got {value!r}")
    return out


def _as(kind: Any, value: Any) -> Any:
    if get_origin(kind) is tuple:
        if isinstance(value, (str, int, float)):
            value = [value]
        if not isinstance(value, (list, tuple)):
            raise TypeError
        return tuple(_as(get_args(kind)[0], v) for v in value)
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if isinstance(value, bool) is not (kind is bool) or not isinstance(value, kind):
        raise TypeError
    return value


def from_dict(cls: type[S], values: Mapping[str, Any], where: str) -> S:
    """Settings with these values; DataError as `checked`."""
    return replace(cls(), **checked(cls, values, where))


def of_engine(s: Settings) -> dict[str, Any]:
    """What dy.configure() is to be told; a device only if one is named, for a variable may name it, too.

    Of several processes on one machine, which all are told `cuda`, each takes another GPU.
    """
    try:
        gpus.parse(s.device or "cpu")
    except ValueError:
        raise DataError(f"settings: device: expected cpu, cuda or cuda:N, got {s.device!r}") from None
    out = {name: getattr(s, name) for name in (*ENGINE, *(["device"] if s.device else []))}
    world = distributed.current()
    if s.device == "cuda" and world.size > 1 and (count := gpus.count()):
        out["device"] = f"cuda:{world.device(count)}"
    return out


def to_dict(s: Settings) -> dict[str, Any]:
    """What json.dump can write and from_dict reads: all settings but those about the run."""
    return {k: v for k, v in asdict(s).items() if k not in NOT_SAVED and k not in s.unused}
