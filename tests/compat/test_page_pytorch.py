"""The page for those who come from PyTorch: its programs run and print what it says, the names it uses exist."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest
from real_dynet import python

import dynet_lite as dy

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "coming_from_pytorch.md").read_text(encoding="utf-8")
HAVE_TORCH = importlib.util.find_spec("torch") is not None


def programs() -> list[tuple[str, str]]:
    """Each program of the page with the next text that is shown: what it prints."""
    blocks = re.findall(r"^```(python|text)\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    shown, out = "", []
    for kind, block in reversed(blocks):
        if kind == "text":
            shown = block
        else:
            out.append((block, shown))
    return out[::-1]


# What the page says of trainers: SGD, momentum, Adam and AdamW are those of PyTorch.
SAME_STEPS = """
import torch
import dynet_lite as dy
import numpy as np

pairs = [
    (dy.SimpleSGDTrainer, (0.1,), torch.optim.SGD, {"lr": 0.1}),
    (dy.MomentumSGDTrainer, (0.1, 0.9), torch.optim.SGD, {"lr": 0.1, "momentum": 0.9}),
    (dy.AdamTrainer, (0.01,), torch.optim.Adam, {"lr": 0.01}),
    (dy.AdamWTrainer, (0.01,), torch.optim.AdamW, {"lr": 0.01}),
]
for ours, arguments, theirs, options in pairs:
    rng = np.random.default_rng(1)
    model = dy.ParameterCollection()
    p, q = model.add_parameters((3, 4)), torch.nn.Parameter(torch.zeros(3, 4))
    q.data[:] = torch.from_numpy(p.as_array())
    trainer, optimizer = ours(model, *arguments), theirs([q], **options)
    for step in range(5):
        g = rng.normal(size=(3, 4)).astype(np.float32) * 3
        p.set_grad(g)
        q.grad = torch.from_numpy(g)
        torch.nn.utils.clip_grad_norm_([q], 5.0)
        trainer.update()
        optimizer.step()
    np.testing.assert_allclose(p.as_array(), q.detach().numpy(), rtol=1e-4, atol=1e-6)
"""

RUN = """
import os, sys
os.chdir(sys.argv[1])
for program in {programs!r}:
    print("#")
    exec(compile(program, "page", "exec"), {{"__name__": "__main__"}})
"""


@pytest.mark.parametrize(
    "torch", [False, pytest.param(True, marks=pytest.mark.skipif(not HAVE_TORCH, reason="needs torch"))]
)
def test_programs(torch: bool, tmp_path: Path) -> None:
    mine = [(program, shown) for program, shown in programs() if ("import torch" in program) == torch]
    mine += [(SAME_STEPS, "")] if torch else []
    code = RUN.format(programs=[program for program, _ in mine])
    done = python("-c", code, str(tmp_path), OPENBLAS_NUM_THREADS="1", OMP_NUM_THREADS="1")
    assert done.returncode == 0, done.stderr
    assert done.stdout.split("#\n")[1:] == [shown for _, shown in mine]


def test_both_sides_are_there() -> None:
    assert sum("import torch" in program for program, _ in programs()) >= 4
    assert sum("import dynet_lite" in program for program, _ in programs()) >= 6


def test_named_things_exist() -> None:
    names = set(re.findall(r"\bdy\.(\w+)", PAGE))
    assert len(names) > 30 and names <= set(dy.__all__), names - set(dy.__all__)
    for name in re.findall(r"\bmodel\.(\w+)\(", PAGE):
        assert hasattr(dy.ParameterCollection, name) or name in ("parameters",), name
    for name in re.findall(r"\btrainer\.(\w+)", PAGE):
        assert hasattr(dy.Trainer, name), name
