"""Settings: where they come from and in which order, bad values, DyNet's objects; nothing happens at import."""

from __future__ import annotations

import inspect
import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
from real_dynet import python

import dynet_lite as dy

REPORT = "import dynet_lite as dy, json, sys\n{code}\nprint(json.dumps(out))"


def child(code: str, *argv: str, **environment: str) -> Any:
    """The value of `out` after running code in a fresh process."""
    done = python("-W", "always", "-c", REPORT.format(code=code), *argv, **environment)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def failing(code: str, *argv: str, **environment: str) -> str:
    done = python("-c", "import dynet_lite as dy\n" + code, *argv, **environment)
    assert done.returncode == 1, (done.returncode, done.stdout, done.stderr)
    return done.stderr.strip().splitlines()[-1]


FIRST_USES = ["dy.renew_cg()", "dy.ParameterCollection()", "dy.configure(seed=1)", "dy.inputVector([1.0])"]
DRAW = "dy.ParameterCollection().add_parameters((3, 3)).as_array().tolist()"


@pytest.mark.parametrize(
    "argv",
    [
        ("--dynet-seed", "7"),
        ("--dynet_seed", "7"),
        ("--dynet-seed=7",),
        ("--dynet_seed=7",),
        ("a", "--x", "--dynet-seed=7", "b"),
    ],
)
def test_every_spelling_of_a_flag(argv: tuple[str, ...]) -> None:
    out = child("out = [dy.config.get('seed'), sys.argv[1:], " + DRAW + "]", *argv)
    assert out[0] == 7 and out[1] == list(argv)
    assert out[2] == child(f"dy.configure(seed=7); out = {DRAW}")


def test_all_flags() -> None:
    flags = ["--dynet-mem", "512,128,1,1", "--dynet-autobatch", "0", "--dynet-profiling", "1", "--dynet-weight-decay",
             "0.25", "--dynet-threads=2", "--dynet-strategy=agenda", "--dynet-backend", "null", "--dynet-verify=1", "--dynet-keep-weights=1",
             "--dynet-fuse=0", "--dynet-overlap=0", "--dynet-keep-plans=0", "--dynet-rewrites=-join,-dead",
             "--dynet-shared-parameters", "1", "--dynet-devices", "CPU", "--dynet-unknown", "--dynet-unknown=3"]  # fmt: skip
    out = child("out = dy.config.settings(); out['collection'] = dy.ParameterCollection().get_weight_decay()", *flags)
    assert out == {"mem": "512,128,1,1", "seed": 0, "autobatch": False, "strategy": "agenda", "cells": "recorded", "compile": True, "threads": 2,
                   "device": "null", "fuse": False, "rewrites": "-dead,-join", "overlap": False, "keep_plans": False, "verify": True, "profile": True, "keep_weights": True, "weight_decay": 0.25,
                   "collection": 0.25}  # fmt: skip


def test_all_variables_reach_the_engine() -> None:
    of_engine = {"autobatch": False, "strategy": "agenda", "cells": "inline", "compile": False, "threads": 2, "fuse": False,
                 "overlap": False, "keep_plans": False, "verify": True, "profile": True}  # fmt: skip
    others = {"device": "null", "mem": "5", "seed": 7, "rewrites": "-join", "keep_weights": True, "weight_decay": 0.25}
    assert {*of_engine, *others} == set(dy.config.OPTIONS)
    names = [*of_engine, "backend", "passes_off"]
    code = f"out = [dy.config.settings(), {{n: getattr(dy._core.settings, n) for n in {names}}}, dy._core.pass_bit('join')]"
    variables = {f"DYNET_LITE_{name.upper()}": str(value) for name, value in (of_engine | others).items()}
    told, engine, join = child(code, **variables)
    assert told == of_engine | others
    assert engine == of_engine | {"backend": "null", "passes_off": join}


@pytest.mark.parametrize("flags", ["--dynet-gpu", "--dynet_gpu", "--dynet-gpus 1", "--dynet_gpus=2", "--dynet-devices CPU,GPU:0",
                                   "--dynet_devices=GPU:1"])  # fmt: skip
def test_flags_of_gpus(flags: str) -> None:
    """They are accepted with a warning: what is computed is the same."""
    done = python("-c", "import dynet_lite as dy; dy.inputVector([1]); print(dy.config.get('seed'), dy.available_devices())",
                  *flags.split(), "--dynet-seed", "4")  # fmt: skip
    assert done.stdout.strip() == "4 ['CPU']" and "runs on the CPU" in done.stderr, done.stderr


@pytest.mark.parametrize("flags", ["--dynet-viz", "--dynet_viz", "--dynet-devices CPU", "--dynet-mem 5,6,7,8"])
def test_flags_without_effect(flags: str) -> None:
    done = python("-c", "import dynet_lite as dy; dy.inputVector([1]); print(dy.config.get('seed'))", *flags.split(),
                  "--dynet_seed=4")  # fmt: skip
    assert done.stdout.strip() == "4" and not done.stderr


def test_flags_are_known_by_their_beginning() -> None:
    """As in DyNet: --dynet-autobatching is --dynet-autobatch; schedules 2 and 3, profiling 2."""
    out = child(
        "out = dy.config.settings()", "--dynet-memory", "100", "--dynet_autobatching=3", "--dynet-profiling", "2"
    )
    assert out["mem"] == "100" and out["autobatch"] is True and out["profile"] is True


@pytest.mark.parametrize("how", ["flag", "dynet_config", "configure"])
def test_profiling_shows_times_at_the_end(how: str) -> None:
    """As in DyNet; configure(profile=True) is for stats()."""
    code = "import dynet_lite as dy\n" + {
        "flag": "", "dynet_config": "dy.dynet_config.set(profiling=1)", "configure": "dy.configure(profile=True)"}[how] + """
x = dy.tanh(dy.ParameterCollection().add_parameters((3, 3)) * dy.inputVector([1, 2, 3]))
dy.squared_norm(x).backward()
dy.renew_cg()
"""  # fmt: skip
    done = python("-c", code, *(["--dynet-profiling", "1"] if how == "flag" else []))
    assert done.returncode == 0 and not done.stdout
    if how == "configure":
        assert not done.stderr
    else:
        assert "Timing Info" in done.stderr and "FWD tanh" in done.stderr and "BWD matmul" in done.stderr


def test_flags_reach_the_engine() -> None:
    code = """
dy.renew_cg()
x = dy.esum([dy.tanh(dy.inputVector([float(i), 2.0])) for i in range(8)])
x.forward()
out = dy.stats()["batches"]
"""
    assert child(code, "--dynet-autobatch", "0") == 9
    assert child(code, "--dynet-autobatch", "1") == child(code) == 2
    assert child(code, DYNET_LITE_AUTOBATCH="no") == 9
    assert child("dy.configure(autobatch=False)" + code) == 9
    assert child("import dynet_lite.dynet_config as c; c.set(autobatch=0)" + code) == 9


def test_the_order_of_sources() -> None:
    code = "{}\nout = [dy.config.get('seed'), dy.config.get('threads'), dy.config.get('autobatch')]"
    flags = ("--dynet-seed=1", "--dynet-threads=1", "--dynet-autobatch=0")
    assert child(code.format(""), *flags) == [1, 1, False]
    assert child(code.format(""), *flags, DYNET_LITE_SEED="2") == [2, 1, False]
    conf = "import dynet_lite.dynet_config as c; c.set(random_seed=3)"
    assert child(code.format(conf), *flags, DYNET_LITE_SEED="2") == [3, 1, False]  # what it does not name stays
    both = "dy.configure(seed=4); " + conf
    assert child(code.format(both), *flags, DYNET_LITE_SEED="2") == [4, 1, False]


@pytest.mark.parametrize(
    "argv,environment,what",
    [
        (("--dynet-seed", "x"), {}, "--dynet-seed"),
        (("--dynet-seed",), {}, "--dynet-seed"),
        (("--dynet-seed=-1",), {}, "--dynet-seed"),
        (("--dynet_mem", "12,x"), {}, "--dynet_mem"),
        (("--dynet-weight-decay=1",), {}, "--dynet-weight-decay"),
        (("--dynet-autobatch=maybe",), {}, "--dynet-autobatch"),
        (("--dynet-strategy=magic",), {}, "--dynet-strategy"),
        ((), {"DYNET_LITE_THREADS": "many"}, "DYNET_LITE_THREADS"),
        ((), {"DYNET_LITE_BACKEND": "abacus"}, "DYNET_LITE_BACKEND"),
    ],
)
def test_bad_values_from_outside(argv: tuple[str, ...], environment: dict[str, str], what: str) -> None:
    """An error at each use; it is not forgotten after the first."""
    code = f"out = []\nfor use in {FIRST_USES}:\n  try: exec(use)\n  except dy.errors.SettingError as e: out.append(str(e))"
    told = child(code, *argv, **environment)
    assert len(told) == len(FIRST_USES) and {line.startswith(f"[config] {what}") for line in told} == {True}, told


@pytest.mark.parametrize("use", FIRST_USES)
def test_each_first_use_ends_with_a_bad_value(use: str) -> None:
    assert failing(use, "--dynet-seed", "x").startswith("dynet_lite.errors.SettingError: [config] --dynet-seed")


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="this system gives each process all processors")
def test_a_thread_for_each_processor_that_may_be_used() -> None:
    code = "import os\nos.sched_setaffinity(0, {min(os.sched_getaffinity(0))})\nout = dy.config.get('threads')"
    assert child(code, DYNET_LITE_THREADS="0") == 1
    code = "import os\nout = [dy.config.get('threads'), len(os.sched_getaffinity(0))]"
    assert len({*child(code, DYNET_LITE_THREADS="0")}) == 1


@pytest.mark.parametrize(
    "options",
    [{"seed": -1}, {"seed": 1.5}, {"threads": -1}, {"strategy": "x"}, {"backend": "x"}, {"weight_decay": 1},
     {"weight_decay": float("nan")}, {"mem": "a"}, {"autobatch": None}, {"autobatch": 0.5}, {"verify": "perhaps"},
     {"seed": 5, "threads": "two"}],
)  # fmt: skip
def test_bad_values_of_configure_change_nothing(options: dict[str, Any]) -> None:
    before, state = dy.config.settings(), dy._core.get_seed_state()
    with pytest.raises(ValueError, match="config"):
        dy.configure(**options)
    assert dy.config.settings() == before and dy._core.get_seed_state() == state
    with pytest.raises(TypeError, match="no setting 'speed'"):
        dy.configure(speed=3)
    with pytest.raises(ValueError, match="no setting"):
        dy.config.get("speed")


def test_configure_for_a_block() -> None:
    dy.reset_random_seed(5)
    dy.random_normal((2,)).value()
    state = dy._core.get_seed_state()
    with dy.configure(autobatch=False, strategy="depth", seed=3):
        assert dy.config.get("autobatch") is False and dy._core.settings.strategy == "depth"
        with dy.configure(autobatch=True):
            assert dy._core.settings.autobatch
        assert not dy._core.settings.autobatch
        inside = dy.ParameterCollection().add_parameters(4).as_array()
    assert dy._core.settings.autobatch and dy._core.settings.strategy == "greedy"
    assert dy._core.get_seed_state() == state
    with dy.configure(random_seed=3):
        assert (dy.ParameterCollection().add_parameters(4).as_array() == inside).all()


def test_counts_of_a_device() -> None:
    """There are none on the processor."""
    assert dy.stats()["device"] == {}
    with dy.configure(device="null"):
        dy.renew_cg()
        assert {"launches", "waits", "on_host"} <= set(dy.stats()["device"])


def test_a_change_of_backend() -> None:
    dy.renew_cg()
    with dy.configure(backend="null"):
        g = dy.renew_cg()
        assert g.backend == "null" and dy.cg() is g
        dy.tanh(dy.inputVector([1.0, 2.0])).forward()
        with dy.graph() as h:
            assert h.backend == "null" and dy.renew_cg() is h
    with dy.graph() as g:
        with dy.configure(backend="null"):
            assert dy.renew_cg() is g and g.backend == "cpu"  # a graph of a block stays
    assert dy.renew_cg().backend == "cpu"
    assert dy.tanh(dy.inputVector([0.0])).value() == 0


def test_seeds() -> None:
    one, two = child(f"out = {DRAW}"), child(f"out = {DRAW}")
    assert one != two  # without a seed every run is another, as in DyNet
    code = f"dy.reset_random_seed(3); a = {DRAW}; dy.reset_random_seed(3); out = [a, {DRAW}]"
    a, b = child(code, "--dynet-seed", "9")
    assert a == b
    with pytest.raises(ValueError, match="reset_random_seed"):
        dy.reset_random_seed("x")  # type: ignore[arg-type]


@pytest.mark.parametrize("first", ["dy.init()", "pass"])
def test_threads_that_begin_at_once(first: str) -> None:
    """None draws before the seed is there, none seeds again what another has drawn from."""
    code = f"""
import threading
sys.setswitchinterval(1e-6)
barrier, seeds = threading.Barrier(8), []
def begin():
    barrier.wait()
    {first}
    seeds.append(dy.cg().seed_state)
threads = [threading.Thread(target=begin) for _ in range(8)]
for t in threads: t.start()
for t in threads: t.join()
dy.reset_random_seed(7)
out = sorted(seeds) == sorted(dy.ComputationGraph().seed_state for _ in range(8))
"""
    assert all(child(code, DYNET_LITE_SEED="7") for _ in range(3))


def test_dynets_objects() -> None:
    code = """
p = dy.DynetParams()
p.from_args(); p.set_mem(512); p.set_random_seed(5); p.set_autobatch(1); p.set_weight_decay(0.5); p.set_profiling(0)
p.set_shared_parameters(False); p.set_requested_gpus(0); p.set_gpu_mask([]); p.set_cpu_mode()
p.init()
dy.init_from_params(p)
dy.init()
out = [dy.config.get("seed"), dy.config.get("autobatch"), dy.config.get("weight_decay"), dy.config.get("threads")]
"""
    assert child(code, "--dynet-threads", "3", "--dynet-autobatch", "0") == [5, True, 0.5, 3]
    code = """
c = dy.dynet_config
before = [c.get(), c.gpu()]
c.set(mem="512", random_seed=9, autobatch=False, profiling=0, weight_decay=0, shared_parameters=0, requested_gpus=0,
      gpu_mask=None)
c.set_gpu()
out = [before, c.get()["seed"], c.gpu(), dy.config.get("seed"), dy.config.get("autobatch")]
q = dy.DynetParams(); q.from_config(c.get()); q.init()
"""
    assert child(code) == [[None, None], 9, True, 9, False]


def test_configure_tells_about_every_setting() -> None:
    told = re.findall(r"^(\w+) {2,}\S", inspect.getdoc(dy.configure) or "", re.MULTILINE)
    assert sorted(told) == sorted(dy.config.OPTIONS)


def test_import_does_nothing() -> None:
    """No output, no threads, no heavy modules, argv not read (a bad flag is only seen at first use)."""
    code = """
import sys, threading, os
import numpy
def state():
    return list(sys.argv), os.environ.copy(), len(os.listdir("/proc/self/task")) if os.path.isdir("/proc/self/task") else 0
before = state()
import dynet_lite
assert state() == before, (state()[2], before[2])
assert threading.active_count() == 1
heavy = [m for m in ("nltk", "tqdm", "matplotlib", "torch", "scipy", "pandas", "dynet_lite.text", "multiprocessing",
                     "asyncio", "unittest", "dynet", "_dynet", "importlib.metadata") if m in sys.modules]
assert not heavy, heavy
import builtins
assert not [n for n in vars(builtins) if "dynet" in n.lower()]
"""
    done = python("-c", code, "--dynet-seed", "bad")
    assert done.returncode == 0, done.stderr
    assert done.stdout == done.stderr == ""


def test_import_is_fast(tmp_path: Path) -> None:
    """Not much slower than numpy's, in the same process: machines differ, and others may be at work on them.

    With bytecode, as installed packages have it.
    """
    code = (
        "import time; t = time.process_time; a = t(); import numpy, numpy.random; b = t(); import dynet_lite; "
        "print((t() - b) / (b - a))"
    )
    ratios = [
        float(python("-c", code, PYTHONDONTWRITEBYTECODE="", PYTHONPYCACHEPREFIX=str(tmp_path)).stdout)
        for _ in range(5)
    ]
    assert min(ratios) <= 0.8, ratios
