"""Kills processes while they save, and while recipes train; what is left must be whole, and go on as if nothing had been.

    python tests/kill_campaign.py saves --kills 100
    python tests/kill_campaign.py training --kills 20 --threads 2 --recipe bilstm_tagger

Saves: a process saves models whose numbers are all the same, by every way of saving, until SIGKILL; each file must then load, be of
one save, and nothing else be left after the next save. Training: a recipe with --save is killed again and again and resumed; the
model and the log in the end are, to the byte, those of a run that nobody killed (but for lines that tell of a start).
tests/python/test_kills.py runs a little of both.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import dynet_lite as dy

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = Path(dy.__file__).resolve().parents[1]
RECIPES = {
    "bilstm_tagger": ["--epochs", "2", "--hidden", "8", "--mlp", "8", "--word-dim", "8"],
    "dan_classifier": ["--epochs", "3", "--hidden", "8", "--word-dim", "8"],
}

SAVER = """
import sys
import numpy as np
import dynet_lite as dy

def model(value):
    m = dy.ParameterCollection()
    return m, m.add_parameters((50, 40), init=np.full((50, 40), value), name="W")

print("ready", flush=True)
k = 0
while True:
    k += 1
    m, W = model(k)
    m.save("plain")
    dy.save_checkpoint("checkpoint", m)
    dy.save("pair", [W] * (1 + k % 3) if k % 2 else [m.add_parameters(9, init=k, name=f"b{i}") for i in range(k % 4 + 1)])
    W.save("appended", f"/k{k}", append=k % 10 != 1)
"""


def _env() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(PACKAGE), *filter(None, [os.environ.get("PYTHONPATH")])])}


def _kill(process: subprocess.Popen[Any]) -> None:
    process.send_signal(signal.SIGKILL)
    process.wait()


# ---- saves ---------------------------------------------------------------------------------------------------------


def check_files(folder: Path) -> None:
    """Every file that is there is whole and of one save."""
    m = dy.ParameterCollection()
    W = m.add_parameters((50, 40), name="W")
    if (folder / "plain").exists():
        m.populate(folder / "plain")
        assert len(set(W.as_array().ravel().tolist())) == 1, "plain: numbers of several saves"
    if (folder / "checkpoint").exists():
        dy.load_checkpoint(folder / "checkpoint", m)
        assert len(set(W.as_array().ravel().tolist())) == 1, "checkpoint: numbers of several saves"
    if (folder / "pair.meta").exists():
        parts = dy.load(folder / "pair", dy.ParameterCollection())
        values = {v for p in parts for v in p.as_array().ravel().tolist()}
        assert len(values) == 1, f"pair: numbers of several saves: {values}"
        k = int(values.pop())
        assert len(parts) == (1 + k % 3 if k % 2 else k % 4 + 1), f"pair: not the objects of save {k}"
    if (folder / "appended").exists():
        text = (folder / "appended").read_bytes()
        keys = [int(line.split()[1][2:]) for line in text.splitlines() if line.startswith(b"#")]
        assert keys == list(range(keys[0], keys[-1] + 1)), f"appended: {keys}"
        for k in keys:
            assert dy.ParameterCollection().load_param(folder / "appended", f"/k{k}").as_array()[0, 0] == k


def next_save(folder: Path) -> None:
    """Saves once more by every way; nothing that killed processes left is there afterwards."""
    m = dy.ParameterCollection()
    W = m.add_parameters((50, 40), init=1, name="W")
    m.save(folder / "plain")
    dy.save_checkpoint(folder / "checkpoint", m)
    dy.save(folder / "pair", [W] * 2)
    W.save(folder / "appended", "/k1")
    W.save(folder / "appended", "/k2", append=True)
    left = {path.name for path in folder.iterdir()} - {"plain", "checkpoint", "pair.data", "pair.meta", "appended"}
    assert not left, f"left behind: {left}"


def kill_saves(kills: int, seed: int = 1) -> None:
    rng = random.Random(seed)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for _ in range(kills):
            process = subprocess.Popen(
                [sys.executable, "-c", SAVER], cwd=folder, env=_env(), stdout=subprocess.PIPE, text=True
            )
            try:
                assert process.stdout is not None
                assert process.stdout.readline() == "ready\n", "the process ended by itself"
                time.sleep(rng.uniform(0.005, 0.15))
                assert process.poll() is None, "the process ended by itself"
            finally:
                _kill(process)
                process.stdout.close()
            check_files(folder)
        next_save(folder)


# ---- training ------------------------------------------------------------------------------------------------------


def _command(recipe: str, folder: Path, threads: int, resume: bool) -> list[str]:
    begin = [sys.executable, str(ROOT / "recipes" / f"{recipe}.py"), "--log", str(folder / "log")]
    if resume:
        return [*begin, "--resume", str(folder / "model")]
    return [*begin, *RECIPES[recipe], "--save", str(folder / "model"), "--threads", str(threads)]


def _updates(folder: Path) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in (folder / "log").read_text().splitlines()]
    return [line for line in lines if line["event"] == "update"]


def _weights(folder: Path) -> dict[str, bytes]:
    return {name: a.tobytes() for name, a in dy.read_checkpoint(folder / "model").parameters.items()}


def kill_training(recipe: str, threads: int, kills: int, seed: int = 1) -> int:
    """How often it was killed: once at least."""
    rng = random.Random(seed)
    with tempfile.TemporaryDirectory() as name:
        whole, cut = Path(name, "whole"), Path(name, "cut")
        whole.mkdir()
        cut.mkdir()
        begin = time.perf_counter()
        subprocess.run(_command(recipe, whole, threads, False), env=_env(), check=True, capture_output=True)
        seconds, killed = time.perf_counter() - begin, 0
        while True:
            command = _command(recipe, cut, threads, (cut / "model.state").exists())
            with open(cut / "errors", "wb") as errors:
                process = subprocess.Popen(command, env=_env(), stdout=subprocess.DEVNULL, stderr=errors)
                if killed < kills:
                    try:
                        process.wait(rng.uniform(0.3, 1.0) * seconds)
                    except subprocess.TimeoutExpired:
                        _kill(process)
                        killed += 1
                        continue
                code = process.wait()
            assert code == 0, (cut / "errors").read_text()
            if killed or not kills:
                break
            seconds /= 2  # it was much faster than the run that was timed: once more, and killed sooner
            shutil.rmtree(cut)
            cut.mkdir()
        assert _updates(cut) == _updates(whole), "the losses are not those of the run that nobody killed"
        assert _weights(cut) == _weights(whole), "the model is not that of the run that nobody killed"
        left = {path.name for path in cut.iterdir()} - {"model", "model.state", "log", "errors"}
        assert not left, f"left behind: {left}"
        return killed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["saves", "training"])
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--recipe", choices=list(RECIPES), default="bilstm_tagger")
    args = parser.parse_args()
    if args.what == "saves":
        kill_saves(args.kills, args.seed)
    else:
        print(f"{kill_training(args.recipe, args.threads, args.kills, args.seed)} kills")
    print("all is whole")


if __name__ == "__main__":
    main()
