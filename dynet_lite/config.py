"""Settings: what new graphs take over, the random seed, the default weight decay.

Four places, the first that names a setting wins:

1. ``dy.configure(autobatch=False, seed=1)``, at any time; also ``with dy.configure(...):`` for a block,
2. ``dynet_config.set(...)``, DyNet's call,
3. variables ``DYNET_LITE_SEED``, ``DYNET_LITE_AUTOBATCH``, ...,
4. DyNet's flags in ``sys.argv``: ``--dynet-seed 1``, ``--dynet_seed=1``, ...

Variables and flags are read once, at first use (the first graph, parameter collection or random number), never at
import; ``sys.argv`` is left as it was. Flags that are not known are ignored, a bad value is a SettingError (a ValueError).
Who may import: the modules of the package; users reach it as ``dy.configure`` and ``dy.config``.
"""

from __future__ import annotations

import atexit
import difflib
import os
import re
import sys
import threading
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from dynet_lite import _core, gpus
from dynet_lite.errors import DeviceError, SettingError

__all__ = [
    "DynetParams",
    "configure",
    "init",
    "init_from_params",
    "reset_random_seed",
]

_PREFIX = "DYNET_LITE_"  # of variables
SOURCES = ("configure", "dynet_config", "environment", "flag")  # highest first


def _flag(value: Any) -> bool:
    if isinstance(value, str):
        text = value.strip().lower()
        if text in ("true", "yes", "on"):
            return True
        if text in ("false", "no", "off", ""):
            return False
        value = int(text)
    if value != int(value) or value < 0:
        raise ValueError
    return bool(value)


def _whole(least: int) -> Callable[[Any], int]:
    def convert(value: Any) -> int:
        number = int(value)
        if number < least or (not isinstance(value, str) and number != value):
            raise ValueError
        return number

    return convert


def _fraction(value: Any) -> float:
    number = float(value)
    if not 0 <= number < 1:
        raise ValueError
    return number


def _memory(value: Any) -> str:
    parts = [int(part) for part in str(value).split(",")]
    if len(parts) not in (1, 4) or min(parts) < 0:
        raise ValueError
    return str(value)


def _known(what: str) -> Callable[[Any], str]:
    def convert(value: Any) -> str:
        _core.check_setting(what, str(value))
        return str(value)

    return convert


def _rewrites(value: Any) -> str:
    """As "-join,-merge" or a list of such: the passes that are off, in their order."""
    items = value.replace(",", " ").split() if isinstance(value, str) else [str(item) for item in value]
    names = [item.removeprefix("-") for item in items]
    known = [name for name, _, _ in _core.passes()]
    if any(name == item or name not in known for name, item in zip(names, items, strict=True)):
        raise ValueError(value)
    return ",".join(f"-{name}" for name in known if name in names)


def _cells(value: Any) -> str:
    if value not in ("recorded", "inline", "check"):
        raise ValueError(value)
    return str(value)


def processors() -> int:
    """Those that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _threads(value: Any) -> int:
    number = _whole(0)(value) or processors()
    if number > MOST_THREADS:
        raise ValueError
    return number


def _device(value: Any) -> str:
    gpus.choose(str(value))  # DeviceError where it cannot be used
    return str(value)


MOST_THREADS = 1024

# Of settings that are no flags: conversion, what is wanted.
_CONVERSIONS: dict[str, tuple[Callable[[Any], Any], str]] = {
    "strategy": (_known("strategy"), "none, depth, agenda, greedy or auto"),
    "cells": (_cells, "recorded, inline or check"),
    "threads": (_threads, f"a whole number from 0 to {MOST_THREADS} (0: one per processor)"),
    "device": (_device, "cpu, cuda or cuda:N (N: the number of a GPU)"),
}
# Those that are attributes of _core.settings; cext/exec/options.h declares them. What users call a device is a backend
# there, and the number of a GPU is told to the backend (devices.choose).
_OF_ENGINE = {
    "device" if name == "backend" else name: default for name, default, internal in _core.SETTINGS if not internal
}

# name: (conversion, what is wanted, default)
OPTIONS: dict[str, tuple[Callable[[Any], Any], str, Any]] = {
    "mem": (_memory, "a number of MB, or four of them with commas (a hint; memory grows by itself)", None),
    "seed": (_whole(0), "a whole number (0 takes one at random)", 0),
    **{name: (*_CONVERSIONS.get(name, (_flag, "0 or 1")), default) for name, default in _OF_ENGINE.items()},
    "rewrites": (_rewrites, f"a list such as -join,-merge (of {', '.join(row[0] for row in _core.passes())})", ""),
    "keep_weights": (_flag, "0 or 1", False),
    "weight_decay": (_fraction, "a number >= 0 and < 1", 0.0),
}
# Variables that the compiled engine reads by itself, when it is loaded: (values, where describe() tells what came of it).
ENGINE = {
    "DYNET_LITE_ISA": (("baseline", "avx2", "avx512", "neon"), "isa"),
    "DYNET_LITE_BLAS": (("openblas", "mkl", "system"), "blas"),
}
ALIASES = {"random_seed": "seed", "profiling": "profile", "backend": "device"}
# DyNet's flags that ask for a GPU, and those that change nothing: the number of words that follow.
_OF_GPUS = {"gpu": 0, "gpus": 1, "devices": 1, "gpu_ids": 1}
_IGNORED = {"shared_parameters": 1, "viz": 0, "dynamic_mem": 0}
_BY_PREFIX = ("mem", "weight_decay", "seed", "autobatch", "profiling", "gpus", "devices")

_given: dict[str, dict[str, Any]] = {source: {} for source in SOURCES}
_started = False  # have variables and flags been read?
_starting = threading.RLock()  # of the thread that reads them


def _convert(name: str, value: Any, where: str) -> Any:
    convert, wanted, _ = OPTIONS[name]
    try:
        return convert(value)
    except (ValueError, TypeError, OverflowError):
        raise ValueError(f"[config] {where}: {wanted} is needed; got {value!r}") from None


def get(name: str) -> Any:
    """The value of a setting that is in force."""
    start()
    name = ALIASES.get(name, name)
    if name not in OPTIONS:
        raise ValueError(f"[config] there is no setting {name!r}; there are {', '.join(OPTIONS)}")
    return _effective(name)


def settings() -> dict[str, Any]:
    """All settings in force."""
    start()
    return {name: _effective(name) for name in OPTIONS}


def _effective(name: str) -> Any:
    for source in SOURCES:
        if name in _given[source]:
            return _given[source][name]
    return OPTIONS[name][2]


def _apply(names: Sequence[str]) -> None:
    """Hand the settings in force to the engine."""
    _core.settle_steps()
    for name in names:
        value = _effective(name)
        if name == "seed":
            _core.set_seed(value or int.from_bytes(os.urandom(7), "little"))
        elif name == "keep_weights":
            _core.keep_weights(value)
        elif name == "rewrites":
            _core.settings.passes_off = sum(_core.pass_bit(off.removeprefix("-")) for off in value.split(",") if off)
        elif name == "device":
            _core.settings.backend = value.partition(":")[0]
        elif name in _OF_ENGINE:
            setattr(_core.settings, name, value)
        if name == "profile" and value and "profile" not in _given["configure"]:
            atexit.unregister(_report_times)
            atexit.register(_report_times)


def _report_times() -> None:
    """What --dynet-profiling shows when the program ends: time by op of the main thread's graph, on stderr."""
    g = _core.existing_cg()
    rows = [(f"{p} {op}", t[what]) for op, t in (g.op_profile() if g else {}).items() for p, what in
            (("FWD", "forward"), ("BWD", "backward"))]  # fmt: skip
    total = sum(seconds for _, seconds in rows)
    if not total or sys.stderr is None:
        return
    lines = [f"{1000 * s:11.4g}  {s / total:6.1%}  {name}" for name, s in sorted(rows, key=lambda r: r[1]) if s]
    sys.stderr.write("\n".join(["Timing Info (ms):", *lines, f"{1000 * total:11.4g}    100%  (total time)", ""]))


def start(strict: bool = True) -> None:
    """Read variables and flags, once. Everything that needs a setting calls it first.

    strict: a bad value of a flag is an error; otherwise the flag is passed over.
    """
    global _started
    if _started:
        return
    with _starting:  # others wait: none may draw from a generator that has no seed yet
        if _started:
            return
        try:
            environment = _from_environment(os.environ)
            flags = _from_argv(sys.argv, strict)
        except ValueError as error:  # of who starts the program, not of the program
            raise SettingError(str(error)) from None
        _given["environment"].update(environment)
        _given["flag"].update(flags)
        _apply(list(OPTIONS))
        _started = True
        _core.settings.start = None


def as_dynet() -> None:
    """From now on the defaults are those that DyNet's programs build on."""
    OPTIONS["keep_weights"] = (*OPTIONS["keep_weights"][:2], True)
    _core.settings.is_dynet = True
    if _started:
        _apply(["keep_weights"])


def is_dynet() -> bool:
    """Whether dynet_lite stands in for DyNet in this process."""
    return _core.settings.is_dynet


_core.settings.start = start


def _new_lock() -> None:
    """In the child of a fork: it does not have the thread that may have held the lock."""
    global _starting
    _starting = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_new_lock)


def _from_environment(environ: Mapping[str, str]) -> dict[str, Any]:
    out = {}
    for name in OPTIONS:
        variable = _PREFIX + name.upper()
        if name == "device" and not environ.get(variable):
            variable = "DYNET_LITE_BACKEND"
        if environ.get(variable, "") != "":
            out[name] = _convert(name, environ[variable], variable)
    for variable, (known, what) in ENGINE.items():
        value = environ.get(variable, "")
        if value and value not in known:
            raise ValueError(f"[config] {variable}: {', '.join(known[:-1])} or {known[-1]} is needed; got {value!r}")
        if value and not _core.describe()[what].startswith(value):
            raise ValueError(f"[config] {variable}: {value} is not available here; this is {_core.describe()[what]}")
    return out


def misspelt() -> dict[str, str]:
    """Variables that are set and no settings, but nearly the names of some: which."""
    known = [name.upper() for name in OPTIONS] + [name.removeprefix(_PREFIX) for name in ENGINE]
    words = sorted(name.removeprefix(_PREFIX) for name in os.environ if name.startswith(_PREFIX))
    near = {word: difflib.get_close_matches(word, known, 1, 0.7) for word in words if word not in [*known, "BACKEND"]}
    return {_PREFIX + word: _PREFIX + names[0] for word, names in near.items() if names}


def _from_argv(argv: Sequence[str], strict: bool = True) -> dict[str, Any]:
    """Settings from --dynet-x value, --dynet-x=value, --dynet_x value, --dynet_x=value; later flags win."""
    out: dict[str, Any] = {}
    rest = iter(argv)
    for word in rest:
        if not (isinstance(word, str) and word.startswith(("--dynet-", "--dynet_"))):
            continue
        flag, equals, value = word.partition("=")
        name = flag[len("--dynet-") :].replace("-", "_")
        if name not in {*OPTIONS, *ALIASES, *_OF_GPUS, *_IGNORED}:  # DyNet looks at how the word begins
            name = next((known for known in _BY_PREFIX if name.startswith(known)), name)
        if name in _IGNORED or name in _OF_GPUS:
            if not equals and (_IGNORED | _OF_GPUS)[name]:
                value = next(rest, "")
            out.update(_gpu_of_flag(name, value, flag))
            continue
        name = ALIASES.get(name, name)
        if name not in OPTIONS:
            continue
        if not equals:
            value = next(rest, "")
        try:
            out[name] = _convert(name, value, flag)
        except ValueError:
            if strict:
                raise
    return out


def _gpu_of_flag(name: str, value: str, flag: str) -> dict[str, str]:
    """What a flag of DyNet's says about a GPU: the setting, or nothing."""
    if name == "gpu" or (name == "gpus" and value != "0"):
        return gpu_if_any("cuda", flag)
    number = re.search(r"GPU:?(\d*)" if name == "devices" else r"^(\d+)", value)
    if number is None or name not in _OF_GPUS or name == "gpus":
        return {}
    return gpu_if_any(f"cuda:{number[1] or 0}", flag)


def gpu_if_any(device: str, asked_by: str) -> dict[str, str]:
    """The setting of this device, for what DyNet's programs say; where it cannot be used, a warning tells why."""
    try:
        gpus.choose(device)
    except DeviceError as error:
        warnings.warn(f"{asked_by}: {error}; dynet_lite runs on the CPU", stacklevel=3)
        return {}
    return {"device": device}


def _put(source: str, options: Mapping[str, Any]) -> None:
    unknown = [name for name in options if ALIASES.get(name, name) not in OPTIONS]
    if unknown:
        raise TypeError(f"[config] there is no setting {unknown[0]!r}; there are {', '.join(OPTIONS)}")
    values = {}
    for key, value in options.items():
        name = ALIASES.get(key, key)
        values[name] = _convert(name, value, f"{source}({key}=...)")
    # A program that calls dynet_config may have flags of its own under DyNet's names: --dynet-autobatch without a number.
    start(strict=source != "dynet_config")
    _given[source].update(values)
    _apply([name for name in values if source == "configure" or name not in _given["configure"]])


class Change:
    """What configure() gives back: as a context manager it undoes the change at the end of the block."""

    def __init__(self, names: Sequence[str]) -> None:
        self._before = {name: _given["configure"].get(name) for name in names}
        self._seed_state = _core.get_seed_state()

    def __enter__(self) -> Change:
        return self

    def __exit__(self, *exc: object) -> None:
        for name, value in self._before.items():
            if value is None:
                _given["configure"].pop(name, None)
            else:
                _given["configure"][name] = value
        _apply([name for name in self._before if name != "seed"])
        if "seed" in self._before:
            _core.set_seed_state(self._seed_state)

    def __repr__(self) -> str:
        return f"configure({', '.join(f'{name}={_effective(name)!r}' for name in self._before)})"


def configure(**options: Any) -> Change:
    """Change settings now; graphs made or renewed from now on follow them.

    mem            accepted for DyNet's sake; memory grows and shrinks as needed
    seed           of the random generator; 0 takes one at random
    autobatch      automatic batching (default on)
    strategy       none, depth, agenda, greedy (default), auto
    threads        worker threads of a graph (default 1; 0: one per processor that may be used)
    device         where data are stored and computed: cpu (default), cuda or cuda:1 (an NVIDIA GPU, see dy.devices()); null
                   runs nothing. DeviceError when the GPU cannot be used. `backend` is another name of this setting
    fuse           rewrite graphs before they run: several ops run as one, equal ops run once, unneeded ops do not run (default
                   on). Expressions that the program still holds keep their values. Numbers stay the same, up to rounding
                   in losses and sums. explain_rewrites() shows what was done
    rewrites       passes to switch off, to find the cause of a problem: "-join,-merge" or ["-join"] (default: none);
                   explain_rewrites() names them
    overlap        with threads: backward and update of a step run while the next graph is built; with ranks: the update waits
                   for the others meanwhile (default on)
    cells          recorded (default); inline: run a cell's function at each call; check: run it and compare with the
                   recording, CellError when they differ
    compile        compiled functions are recorded once per structure (default on); off: they run at each call
    keep_plans     keep plans of small graphs for graphs with the same structure (default on); numbers are the same
    verify         check every rewritten graph and every plan before it runs
    profile        time every op, see stats(). Set by a variable or a flag, it also prints a table when the program ends
    keep_weights   a graph used after an update keeps the weights it started with, as in DyNet (default: only in programs that
                   `import dynet`; updates may then take 1.5 times as long)
    weight_decay   default for new parameter collections

    ``with dy.configure(autobatch=False):`` restores the settings at the end of the block (with a seed, the random
    generator continues where it was). TypeError for an unknown name, ValueError for a bad value; then nothing changes.
    """
    start()
    change = Change([ALIASES.get(name, name) for name in options])
    _put("configure", options)
    return change


def reset_random_seed(seed: int) -> None:
    """Seed the generator from which graphs, initializers and random ops draw.

    A graph takes its random numbers from a seed of its own, drawn by renew_cg(). So the current graph keeps its numbers, and
    the next one has new ones.

    The main thread seeds the generator of all threads. Any other thread gets a generator of its own, so that its numbers
    do not depend on what the others do; programs that ``import dynet`` have one for all threads, as in DyNet.
    """
    start()
    own = threading.current_thread() is not threading.main_thread() and not is_dynet()
    _core.set_seed(_convert("seed", seed, "reset_random_seed()"), own)


class DynetParams:
    """DyNet's object of settings: fill it in, then init(). configure() does the same in one call."""

    def __init__(self) -> None:
        self._options: dict[str, Any] = {}

    def from_args(self, shared_parameters: Any = None) -> None:
        """Take the flags of sys.argv."""
        self._options.update(_from_argv(sys.argv))

    def from_config(self, conf: Mapping[str, Any]) -> None:
        """Take what dynet_config.get() gives. DyNet's default of autobatch in it is no wish to turn batching off."""
        options = from_dynet_config(conf)
        if not options.get("autobatch"):
            options.pop("autobatch", None)
        self._options.update(options)

    def set_mem(self, mem: Any) -> None:
        """Memory in megabytes: a hint, memory grows as needed."""
        self._options["mem"] = mem

    def set_random_seed(self, random_seed: int) -> None:
        """The seed; 0 takes one at random."""
        self._options["seed"] = random_seed

    def set_autobatch(self, autobatch: Any) -> None:
        """Automatic batching: 0 or False is off."""
        self._options["autobatch"] = autobatch

    def set_profiling(self, profiling: Any) -> None:
        """Time by op: 0 or False is off."""
        self._options["profile"] = profiling

    def set_weight_decay(self, weight_decay: float) -> None:
        """The default of new parameter collections, 0 <= weight_decay < 1."""
        self._options["weight_decay"] = weight_decay

    def set_shared_parameters(self, shared_parameters: Any) -> None:
        """Accepted; parameters are not shared between processes."""

    def set_requested_gpus(self, requested_gpus: int) -> None:
        """More than 0 asks for a GPU, and one is used; where there is none, a warning says why."""
        self._options.update(gpu_if_any("cuda", "set_requested_gpus()") if requested_gpus else {})

    def set_gpu_mask(self, gpu_mask: Sequence[int]) -> None:
        """Asks for the first GPU whose number has a 1 in the list; where there is none, a warning says why."""
        wanted = [f"cuda:{number}" for number, wish in enumerate(gpu_mask) if wish]
        self._options.update(gpu_if_any(wanted[0], "set_gpu_mask()") if wanted else {})

    def set_cpu_mode(self) -> None:
        """Computes on the processor."""
        self._options["device"] = "cpu"

    def init(self) -> None:
        """Put the settings in force."""
        _put("dynet_config", self._options)


def from_dynet_config(conf: Mapping[str, Any]) -> dict[str, Any]:
    """Our settings out of a dict of dynet_config; TypeError for what is no dict."""
    if not isinstance(conf, Mapping):
        raise TypeError(f"[from_config] expected a dict of settings, got {conf!r}")
    names = {"mem": "mem", "seed": "seed", "autobatch": "autobatch", "profiling": "profile",
             "weight_decay": "weight_decay"}  # fmt: skip
    options = {ours: conf[theirs] for theirs, ours in names.items() if theirs in conf}
    return options | (gpu_if_any("cuda", "dynet_config") if conf.get("requested_gpus") else {})


def init(shared_parameters: Any = None) -> None:
    """Read variables and flags now instead of at first use."""
    start()


def init_from_params(params: DynetParams) -> None:
    """Put the settings of a DynetParams in force."""
    if not isinstance(params, DynetParams):
        raise TypeError(f"[init_from_params] DynetParams are needed; got {type(params).__name__}")
    params.init()
