"""No address is followed outside of a backend: everything runs on "apart", whose memory the host cannot reach."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import dynet_lite as dy
from dynet_lite import _core

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there is no such memory there")


@pytest.mark.parametrize("threads", [1, 2])
def test_the_numbers_are_those_of_the_cpu(threads: int, tmp_path: Path) -> None:
    """The op table, random programs and training loops, in a process of their own."""
    program = Path(__file__).parent / "apart_memory.py"
    place = {**os.environ, "PYTHONPATH": str(Path(_core.__file__).parents[1])}
    command = [sys.executable, "-X", "faulthandler", str(program), str(threads)]
    run = subprocess.run(command, capture_output=True, text=True, env=place, cwd=tmp_path)
    assert run.returncode == 0 and "the same" in run.stdout, f"{run.returncode}\n{run.stdout}\n{run.stderr}"


class Steps:
    """Training steps of a small tagger, and what each moved."""

    def __init__(self) -> None:
        self.pc = dy.ParameterCollection()
        self.words, self.lstm = self.pc.add_lookup_parameters((20, 8)), dy.VanillaLSTMBuilder(1, 8, 8, self.pc)
        self.w, self.b = self.pc.add_parameters((5, 8)), self.pc.add_parameters(5)
        self.trainer = dy.AdamTrainer(self.pc)

    def step(self) -> dict[str, int]:
        before = _core.backend_counts()
        dy.renew_cg()
        losses = []
        for k in range(6):
            xs = [self.words[(k * i) % 20] for i in range(3)] + [dy.inputVector([0.5] * 8)]
            hs = self.lstm.initial_state().transduce(xs)
            losses += [dy.pickneglogsoftmax(dy.affine_transform([self.b, self.w, h]), k % 5) for h in hs]
        loss = dy.esum(losses)
        loss.backward()
        loss.value()
        self.trainer.update()
        after = _core.backend_counts()
        return {name: after[name] - before[name] for name in after}


def test_what_a_step_moves() -> None:
    """Inputs once, the loss back, and with it the norm of the last update's gradients; all weights in one update."""
    with dy.configure(backend="apart"):
        steps = Steps()
        steps.step()
        two, three = steps.step(), steps.step()
        dy.renew_cg()
    assert two == three
    assert {name: three[name] for name in ("uploads", "downloads", "updates")} == {
        "uploads": 1,
        "downloads": 1,
        "updates": 1,
    }
    inputs = 6 * 64  # bytes: eight numbers each, and where they begin
    assert three["bytes_uploaded"] == inputs - 64 + 32 and three["bytes_downloaded"] == 4 * (1 + 2)


def test_clipping_does_not_wait(capsys: pytest.CaptureFixture[str]) -> None:
    """What became of an update is told later; a bad one changes nothing, and the next update says so and is not made."""
    with dy.configure(backend="apart"):
        pc = dy.ParameterCollection()
        w = pc.add_parameters(2, init=np.array([3.0, 4.0]))
        trainer = dy.SimpleSGDTrainer(pc, 1.0)
        trainer.set_clip_threshold(1.0)

        def update(factor: float) -> None:
            dy.renew_cg()
            (0.5 * dy.squared_norm(w) * factor).backward()
            before = _core.backend_counts()["downloads"]
            trainer.update()
            assert _core.backend_counts()["downloads"] == before

        update(1.0)
        np.testing.assert_allclose(w.as_array(), [2.4, 3.2], rtol=1e-6)
        trainer.status()
        assert "clips=1 updates=1" in capsys.readouterr().err
        update(float("inf"))
        np.testing.assert_allclose(w.as_array(), [2.4, 3.2], rtol=1e-6)
        assert not w.grad_as_array().any()
        with pytest.raises(
            RuntimeError, match="Magnitude of gradient is bad: (inf|nan); in the update of the mini-batch before$"
        ):
            update(0.1)
        assert trainer.updates == 1
        trainer.update()  # that of the gradients that are there, of norm 0.4
        np.testing.assert_allclose(w.as_array(), [2.16, 2.88], rtol=1e-6)
        trainer.status()
        assert "clips=0" in capsys.readouterr().err
        dy.renew_cg()


@pytest.mark.parametrize("use", [dy.AdamTrainer.restart, dy.AdamTrainer.state_dict, dy.AdamTrainer.status])
def test_a_bad_gradient_is_told_before_updates_are_counted_anew(use: Callable[[dy.Trainer], object]) -> None:
    with dy.configure(backend="apart"):
        pc = dy.ParameterCollection()
        w = pc.add_parameters(2, init=np.array([3.0, 4.0]))
        trainer = dy.AdamTrainer(pc)
        for factor in (float("inf"), 1.0, 1.0):
            dy.renew_cg()
            (0.5 * dy.squared_norm(w) * factor).backward()
            trainer.update()
            if factor > 1:
                with pytest.raises(RuntimeError, match="Magnitude of gradient is bad"):
                    use(trainer)
                use(trainer)
                assert trainer.updates == 0
        assert trainer.updates == 2 and np.isfinite(w.as_array()).all()
        dy.renew_cg()


def test_numbers_go_where_they_are_needed() -> None:
    """A weight that one backend changed is read, written and used by another."""
    pc = dy.ParameterCollection()
    w = pc.add_parameters(3)
    w.set_value([1.0, 2.0, 3.0])
    trainer = dy.SimpleSGDTrainer(pc, 0.5)
    for backend in ("apart", "cpu", "apart", "null", "cpu"):
        before = w.as_array()
        with dy.configure(backend=backend):
            dy.renew_cg()
            dy.sum_elems(w).backward()
            trainer.update()
            dy.renew_cg()
        expected = before if backend == "null" else before - 0.5
        np.testing.assert_array_equal(w.as_array(), expected)
    dy.renew_cg()


def test_the_cpu_moves_nothing() -> None:
    with dy.configure(backend="cpu"):
        assert not any(Steps().step().values())
