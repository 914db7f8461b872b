"""What goes wrong on one rank ends all of them, with one message that names the rank and the cause."""

from __future__ import annotations

import os
import random
import re
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

START = r"""
import os, signal, sys, time
import dynet_lite as dy
world = dy.distributed.init({limit})
os.write(1, b"process %d\n" % os.getpid())  # at once, so that lines of ranks do not mix
m = dy.ParameterCollection()
w = m.add_parameters({size})
trainer = dy.distributed.Trainer(dy.SimpleSGDTrainer(m, {rate}))
def step(scale=1.0):
    dy.renew_cg()
    dy.sum_elems(w * scale).backward()
    trainer.update()
"""


def program(body: str, limit: str = "", size: str = "4", rate: str = "0.1") -> str:
    return START.format(limit=limit, size=size, rate=rate) + body


def all_gone(output: str, count: int = 2) -> bool:
    """Have all the processes that the output names ended?"""
    pids = [int(n) for n in re.findall(r"process (\d+)\n", output)]
    assert len(pids) == count, output
    for _ in range(100):
        if not any(os.path.exists(f"/proc/{pid}") for pid in pids):
            return True
        time.sleep(0.05)
    return False


def messages(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith("[distributed]")]


def test_a_rank_that_raises(ranks: Any) -> None:
    done = ranks(
        3,
        program("for k in range(100):\n    step()\n    if world.rank == 1 and k == 5: open('/nowhere/at/all')"),
        ok=False,
    )
    assert done.returncode == 1
    assert len(messages(done.stderr)) == 1, done.stderr
    assert re.match(r"\[distributed\] rank 1 of 3 \(process \d+ on .*\) failed, all ranks end: Traceback", done.stderr)
    assert "FileNotFoundError" in done.stderr and done.stderr.count("Traceback") == 1
    assert all_gone(done.stdout, 3)


@pytest.mark.parametrize("before", ["sys.stdout.close()", "sys.stdout = None", "print('so far')"])
def test_a_rank_that_raises_whatever_its_streams_are(ranks: Any, before: str) -> None:
    """At once, and not when the others have given up; also with letters that no file takes."""
    body = f"step()\nif world.rank == 1:\n    {before}\n    raise ValueError('file \\udce9')\nstep()\nstep()"
    start = time.monotonic()
    done = ranks(2, program(body), ok=False)
    assert done.returncode == 1 and len(messages(done.stderr)) == 1, done.stderr
    assert "rank 1 of 2" in done.stderr and done.stderr.count(r"ValueError: file \udce9") == 1, done.stderr
    assert time.monotonic() - start < 12 and all_gone(done.stdout)


def test_all_ranks_raise_alike(ranks: Any) -> None:
    done = ranks(2, program("step()\nraise ValueError('both')"), ok=False)
    assert done.stderr.count("Traceback") == 1 and "ValueError: both" in done.stderr, done.stderr


def test_a_rank_that_is_killed(ranks: Any) -> None:
    body = "for k in range(1000):\n    step()\n    if world.rank == 1 and k == 20: os.kill(os.getpid(), signal.SIGKILL)"
    done = ranks(2, program(body), ok=False)
    assert done.returncode != 0
    assert len(messages(done.stderr)) == 1, done.stderr
    assert re.search(r"\[distributed\] rank 1 \(process \d+ on .*\) was killed or ended without a word", done.stderr)
    assert all_gone(done.stdout)


def test_a_rank_that_closes_all_its_files_lives_on(ranks: Any) -> None:
    body = """
if world.rank == 1:
    os.close(world._sign.number)
for k in range(50):
    step()
world.barrier()
os.write(1, b"done\\n")
"""
    assert ranks(2, program(body)).stdout.count("done\n") == 2


def test_a_rank_that_hangs(ranks: Any) -> None:
    body = "step()\nstep()\nif world.rank == int(sys.argv[1]): time.sleep(1000)\nstep()"
    with ThreadPoolExecutor(2) as pool:
        runs = list(pool.map(lambda victim: ranks(2, program(body, limit="1.0"), victim, ok=False), (0, 1)))
    for victim, done in enumerate(runs):
        assert done.returncode != 0
        assert len(messages(done.stderr)) == 1, done.stderr
        assert re.match(rf"\[distributed\] rank {victim} of 2 .* did nothing for 1 s: it hangs", done.stderr), (
            done.stderr
        )
        assert all_gone(done.stdout)


def test_a_rank_that_ends_too_early(ranks: Any) -> None:
    done = ranks(2, program("for k in range(4 + world.rank):\n    step()"), ok=False)
    assert done.returncode != 0 and "rank 0 is at close" in done.stderr and "rank 1 at update" in done.stderr, (
        done.stderr
    )
    assert all_gone(done.stdout)


def test_ranks_that_disagree(ranks: Any) -> None:
    for change, text in (({"size": "4 + world.rank"}, r"parameters\[0\]: .*\(4,\).* on rank 0, .*\(5,\).* on rank 1"),
                         ({"rate": "0.1 * (1 + world.rank)"}, r"settings\._learning_rate: 0\.1 on rank 0, 0\.2 on rank 1")):  # fmt: skip
        done = ranks(2, program("step()", **change), ok=False)
        assert done.returncode == 1
        assert re.search(r"NotAlike: \[distributed\] the ranks disagree; " + text, done.stderr), done.stderr
        assert done.stderr.count("Traceback") == 1
    done = ranks(2, program("step()\nif world.rank: w.set_updated(False)\nstep()"), ok=False)
    assert "the ranks are not in the same step" in done.stderr, done.stderr
    done = ranks(2, program("step()\nif world.rank: w.scale(2)\ntrainer.check_weights()"), ok=False)
    assert "the ranks disagree; weights[0]: " in done.stderr, done.stderr


@pytest.mark.parametrize("overlap", [True, False])
def test_nan_on_one_rank_stops_all_alike(ranks: Any, overlap: bool) -> None:
    body = (
        f"dy.configure(overlap={overlap})"
        + """
for k in range(5):
    try:
        step(float("nan") if world.rank == 1 and k == 2 else 1.0)
    except RuntimeError as error:
        sys.stdout.write(f"update {k}: {error}\\n")
    sys.stdout.flush()
trainer.check_weights()
os.write(1, f"{trainer.updates} updates\\n".encode())
"""
    )
    done = ranks(2, program(body))
    said = "[SimpleSGDTrainer] Magnitude of gradient is bad: nan"
    # Put off, it is told when the next mini-batch is run, which then has no update either.
    want = f"update 3: {said}; in the update of the mini-batch before" if overlap else f"update 2: {said}\n"
    assert done.stdout.count(want) == 2 and len(re.findall(r"^update \d", done.stdout, re.MULTILINE)) == 2, done.stdout
    assert done.stdout.count(f"{3 if overlap else 4} updates\n") == 2


def test_what_the_last_update_could_not(ranks: Any) -> None:
    """It is put off to the end of the program: one message, and not a good end."""
    done = ranks(2, program("step(float('nan') if world.rank else 1.0)"), ok=False)
    assert done.returncode == 1 and done.stderr.count("Magnitude of gradient is bad: nan") == 1, done.stderr
    assert all_gone(done.stdout)


def test_what_the_last_update_could_not_after_graphs_of_before(ranks: Any) -> None:
    """Where graphs have run before the ranks met, the world is closed before the engine looks for what is left to do."""
    body = program("step(float('nan') if world.rank else 1.0)")
    done = ranks(2, body.replace("world =", "dy.inputTensor([1.0]).value()\nworld ="), ok=False)
    assert done.returncode == 1 and done.stderr.count("Magnitude of gradient is bad: nan") == 1, done.stderr
    assert len(messages(done.stderr)) <= 1 and "without a word" not in done.stderr, done.stderr
    assert all_gone(done.stdout)


def test_an_update_that_cannot_begin(ranks: Any) -> None:
    """Its gradients are added up all the same, and the next update has its own."""
    body = """
class Sometimes(dy.SimpleSGDTrainer):
    def coefficients(self):
        if scale == 10:
            raise ValueError("not now")
        return super().coefficients()

trainer = dy.distributed.Trainer(Sometimes(m, 1.0))
trainer.set_clip_threshold(0)
w.zero()
for scale in (1.0, 10.0, 100.0):
    try:
        step(scale * (1 + world.rank))
    except ValueError:
        m.reset_gradient()
os.write(1, f"{w.as_array().tolist()}\\n".encode())
"""
    done = ranks(2, program(body, size="2"))
    assert done.stdout.count("[-303.0, -303.0]\n") == 2, done.stdout


def test_parameters_that_came_later(ranks: Any) -> None:
    body = (
        "step()\nv = m.add_parameters(3)\ntry:\n    step()\nexcept ValueError as e:\n    sys.stdout.write(f'{e}\\n')\n"
    )
    done = ranks(2, program(body + "trainer.share_weights()\nstep()\ntrainer.check_weights()"))
    assert done.stdout.count("parameters were added after distributed.Trainer was made; call share_weights()") == 2


def test_without_mpi4py_there_is_an_error(ranks: Any) -> None:
    body = "import sys; sys.modules['mpi4py'] = None; import dynet_lite as dy; dy.distributed.init()"
    done = ranks(0, body, ok=False, PMI_SIZE="2")
    assert (
        "RuntimeError: [distributed] this is one of several processes of mpiexec, but there is no mpi4py" in done.stderr
    )


@pytest.mark.parametrize("text", ["0", "-1", "nan", "soon"])
def test_time_limits_that_cannot_be(ranks: Any, text: str) -> None:
    from dynet_lite.distributed.world import _limit

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DYNET_LITE_TIMEOUT", text)
        with pytest.raises(ValueError, match=r"\[distributed\] "):
            _limit(None)


def test_random_ranks_are_killed_at_random_times(ranks: Any) -> None:
    """30 times, in all stages of a run; four runs at once, so that the machine is loaded."""
    body = """
import threading
if world.rank == int(sys.argv[1]):
    threading.Timer(float(sys.argv[2]), lambda: os.kill(os.getpid(), signal.SIGKILL)).start()
while True:
    step()
"""
    rng = random.Random(1)
    kills = [(rng.randrange(2), rng.uniform(0, 0.2)) for _ in range(30)]
    with ThreadPoolExecutor(4) as pool:
        runs = list(pool.map(lambda kill: ranks(2, program(body), *kill, ok=False), kills))
    for (victim, _), done in zip(kills, runs, strict=True):
        assert done.returncode != 0
        assert len(messages(done.stderr)) == 1 and f"rank {victim} (" in messages(done.stderr)[0], done.stderr
        assert all_gone(done.stdout)
