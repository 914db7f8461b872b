"""Files are whole, old or new: whoever writes the same name at the same time, and whenever a writer is killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from programs import run_code

import dynet_lite as dy
from dynet_lite import files


def filled(value: float, size: int = 500) -> dy.ParameterCollection:
    m = dy.ParameterCollection()
    m.add_parameters(size, init=np.full(size, value), name="W")
    return m


def only_value(path: Path) -> float:
    m = filled(0)
    m.populate(path)
    values = set(m.parameters_list()[0].as_array().tolist())
    assert len(values) == 1
    return values.pop()


def in_threads(*works: Callable[[], None]) -> None:
    errors: list[BaseException] = []

    def guarded(work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as e:
            errors.append(e)

    threads = [threading.Thread(target=guarded, args=(work,)) for work in works]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not errors, errors


def killed_at(step: str, program: str, folder: Path) -> None:
    """Run a program that is killed where it first calls this function."""
    owner, name = step.rsplit(".", 1)
    text = f"""
import os, signal
import numpy as np
import dynet_lite as dy
from dynet_lite import files
def made(value, size=500):
    m = dy.ParameterCollection()
    m.add_parameters(size, init=np.full(size, value), name="W")
    return m
def arm():
    {owner}.{name} = lambda *a, **k: os.kill(os.getpid(), signal.SIGKILL)
{program}
"""
    done = subprocess.run(
        [sys.executable, "-c", text], cwd=folder, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    )
    assert done.returncode == -signal.SIGKILL


def test_threads_that_save_to_one_name(tmp_path: Path) -> None:
    path = tmp_path / "model"
    models = [filled(k) for k in range(4)]
    models[0].save(path)

    def writer(m: dy.ParameterCollection) -> Callable[[], None]:
        return lambda: [m.save(path) for _ in range(25)] and None

    in_threads(*map(writer, models), lambda: [only_value(path) for _ in range(60)] and None)
    assert os.listdir(tmp_path) == ["model"]


def test_threads_that_save_a_pair(tmp_path: Path) -> None:
    """Objects of different kinds: the description belongs to the data at any time."""
    base = tmp_path / "pair"
    objects = []
    for k in range(3):
        m = dy.ParameterCollection()
        objects.append([m.add_parameters(20, init=k, name=f"p{i}") for i in range(k + 1)])
    dy.save(base, objects[0])

    def read() -> None:
        for _ in range(60):
            parameters = dy.load(base, dy.ParameterCollection())
            assert {p.as_array()[0] for p in parameters} == {len(parameters) - 1}

    in_threads(*(lambda mine=mine: [dy.save(base, mine) for _ in range(20)] and None for mine in objects), read)
    assert sorted(os.listdir(tmp_path)) == ["pair.data", "pair.meta"]


def test_threads_that_append(tmp_path: Path) -> None:
    path = tmp_path / "model"
    parts = [filled(k, 50).parameters_list()[0] for k in range(4)]
    in_threads(*(lambda k=k, p=p: [p.save(path, f"/p{k}/{i}", append=True) for i in range(8)] and None
                 for k, p in enumerate(parts)))  # fmt: skip
    m = dy.ParameterCollection()
    for k in range(4):
        for i in range(8):
            assert m.load_param(path, f"/p{k}/{i}").as_array()[0] == k
    assert os.listdir(tmp_path) == ["model"]


@pytest.mark.parametrize("step", ["files.Pending.complete", "os.fsync", "files.Pending.take_place"])
@pytest.mark.parametrize("call", ["m.save('model')", "m.save('model', append=True)", "dy.save_checkpoint('model', m)"])
def test_what_a_killed_writer_leaves_goes_with_the_next_save(call: str, step: str, tmp_path: Path) -> None:
    path = tmp_path / "model"
    filled(1).save(path)
    before = path.read_bytes()
    killed_at(step, f"m = made(2)\narm()\n{call}", tmp_path)
    assert path.read_bytes() == before
    assert len(os.listdir(tmp_path)) > 1, "the test is to leave something behind"
    other = tmp_path / "model.keep.tmp"
    other.write_text("not ours")
    filled(3).save(path)
    assert only_value(path) == 3
    filled(3).save(path, append=True)
    assert sorted(os.listdir(tmp_path)) == ["model", "model.keep.tmp"]


def test_a_full_disk_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    resource = pytest.importorskip("resource")
    p = dy.ParameterCollection().add_parameters(3)  # less than a buffer: the disk is full when it is flushed
    p.save(str(tmp_path / "p"))
    before = (tmp_path / "p").read_bytes()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, limits[1]))
    try:
        for save in (p.save, lambda path: p.save(path, append=True)):
            with pytest.raises(OSError, match="File too large: '.*p'$"):  # which file, too
                save(str(tmp_path / "p"))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert (tmp_path / "p").read_bytes() == before
    assert [one.name for one in tmp_path.iterdir()] == ["p"]


def test_a_writer_at_work_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "model"
    with files.replacing(path) as f:
        f.write(b"late")
        filled(3).save(path)
        assert only_value(path) == 3
        assert len(os.listdir(tmp_path)) == 2
    assert path.read_bytes() == b"late"
    assert os.listdir(tmp_path) == ["model"]


PAIR = """
m = made(2)
real, count = files.Pending.move, [0]
def move(self, path):
    if count[0] == {moves}:
        os.kill(os.getpid(), signal.SIGKILL)
    count[0] += 1
    real(self, path)
files.Pending.move = move
dy.save("pair", [m.parameters_list()[0], m.add_parameters(3, init=2, name="b")])
"""


@pytest.mark.parametrize(("moves", "expected"), [(0, [1]), (1, [1]), (2, [2, 2])])
def test_a_pair_is_whole_after_a_kill(moves: int, expected: list[float], tmp_path: Path) -> None:
    base = tmp_path / "pair"
    dy.save(base, filled(1).parameters_list())
    killed_at("os.fdatasync", PAIR.format(moves=moves), tmp_path)
    assert [p.as_array()[0] for p in dy.load(base, dy.ParameterCollection())] == expected
    dy.save(base, filled(1).parameters_list())
    assert [p.as_array()[0] for p in dy.load(base, dy.ParameterCollection())] == [1]
    assert sorted(os.listdir(tmp_path)) == ["pair.data", "pair.meta"]


def test_the_same_objects_saved_again_change_one_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So that other readers of the format find a whole pair at any time, too."""
    base = tmp_path / "pair"
    dy.save(base, filled(1).parameters_list())
    moved = []
    real = files.Pending.move
    monkeypatch.setattr(files.Pending, "move", lambda self, path: (moved.append(Path(path).name), real(self, path)))
    dy.save(base, filled(2).parameters_list())
    assert moved == ["pair.data"]


LAST = """
import sys, atexit
import numpy as np
import dynet_lite as dy
dy.configure(threads=2, overlap=True)
atexit.register(print, "other exit functions run")
m = dy.ParameterCollection()
W = m.add_parameters((4, 4), init=1)
t = dy.SimpleSGDTrainer(m)
for scale in (1.0, {scale}):
    dy.renew_cg()
    loss = dy.sum_elems(W * dy.inputTensor(np.full(4, scale)))
    loss.value()
    loss.backward()
    t.update()
"""


@pytest.mark.parametrize("scale", ["1.0", "float('inf')"])
def test_a_bad_gradient_in_the_very_last_update(scale: str, tmp_path: Path) -> None:
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", LAST.format(scale=scale)], cwd=tmp_path, capture_output=True, text=True, env=env
    )
    assert "other exit functions run" in done.stdout
    assert done.returncode == (0 if scale == "1.0" else 1)
    assert ("Magnitude of gradient is bad" in done.stderr) == (scale != "1.0")


@pytest.mark.skipif(not os.path.exists("/dev/stdout"), reason="no such name")
def test_the_standard_output_is_written_to_where_it_is_a_pipe(tmp_path: Path) -> None:
    code = """if True:
        import dynet_lite as dy
        m = dy.ParameterCollection()
        m.add_parameters(1, init=2.0)
        m.save("/dev/stdout")
        m.save("/dev/stdout", append=True)
    """
    done = run_code(code, tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "#Parameter# /_0 {1} 17 ZERO_GRAD\n+2.00000000e+00 \n" * 2
