"""The same numbers: every case of op_cases.py gives on the stand-in what it gives on DyNet, values and gradients.

Each engine runs all cases in one process of its own. Where DyNet is wrong (WRONG_IN_DYNET), only the rest of the case is
compared here, and test_defects.py has the right answer.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import op_cases
import pytest
from real_dynet import needs_dynet, python

import dynet_lite as dy
from dynet_lite import _core

SCRIPT = str(Path(__file__).with_name("op_cases.py"))
Results = dict[str, np.ndarray]

# case: what is not compared, and why
WRONG_IN_DYNET = {
    "poisson_loss": ("gradient", "DyNet's gradient leaves out the gradient that comes in"),
    "silu beta": ("gradient", "DyNet's gradient leaves out one factor beta"),
    "logsumexp_dim'": ("", "DyNet reads past the row when d=1 and there are more rows than columns"),
}

# Ops of DyNet without a case here.
ELSEWHERE = {
    "contract3d_1d": "adds onto old memory in DyNet: test_defects.py",
    "argmax": "gradient modes are mixed up in DyNet: tests/ops",
    "round": "gradient modes are mixed up in DyNet: test_defects.py",
    "ceil": "as round",
    "floor": "as round",
    "noise dropout dropout_batch dropout_dim block_dropout random_normal random_bernoulli random_uniform random_gumbel":
        "random: tests/ops",
    "zeros zeroes ones constant one_hot inputTensor inputVector vecInput scalarInput inputTensorTranspose": "inputs",
    "sparse_inputTensor lookup lookup_batch parameter const_parameter": "inputs and parameters: tests/python",
    "vanilla_lstm_gates_concat vanilla_lstm_gates_dropout vanilla_lstm_gates_dropout_concat": "tests/builders",
    "pickrange": "old name of pick_range",
}  # fmt: skip


def load(path: Path) -> Results:
    with np.load(path) as file:
        return {key.replace("|", "/"): file[key] for key in file.files}


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Results:
    path = tmp_path_factory.mktemp("ours") / "out.npz"
    done = python("-m", "dynet_lite", "run", SCRIPT, str(path), "--dynet-mem", "64")
    assert done.returncode == 0, done.stderr
    return load(path)


@pytest.fixture(scope="module")
def theirs(tmp_path_factory: pytest.TempPathFactory) -> Results:
    path = tmp_path_factory.mktemp("theirs") / "out.npz"
    command = [sys.executable, SCRIPT, str(path), "--dynet-mem", "64"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, env={**os.environ, "PYTHONPATH": ""})
    assert path.exists(), done.stderr
    return load(path)


@needs_dynet
@pytest.mark.parametrize("name", op_cases.CASES)
def test_same_as_dynet(name: str, ours: Results, theirs: Results) -> None:
    skipped = WRONG_IN_DYNET.get(name, (None,))[0]
    compared = 0
    for seed in range(op_cases.SEEDS):
        prefix = f"{name}/{seed}/"
        keys = sorted(k for k in ours if k.startswith(prefix))
        assert keys == sorted(k for k in theirs if k.startswith(prefix))
        for key in keys:
            assert not key.endswith("error"), f"{ours[key]} / DyNet: {theirs[key]}"
            if skipped is not None and key.startswith(prefix + skipped):
                continue
            a, b = ours[key], theirs[key]
            assert a.shape == b.shape, key
            np.testing.assert_allclose(a, b, rtol=0, atol=2e-6 + 1e-5 * np.abs(b).max(), err_msg=key)
            compared += 1
    assert compared or skipped == ""


def test_every_op_of_dynet_has_a_case() -> None:
    """By the names that the cases call, and those that stand under ELSEWHERE."""
    import inspect
    import re

    from dynet_lite import builders, initializers, params, trainers
    from dynet_lite.compat.names import NAMES

    source = inspect.getsource(op_cases)
    called = set(re.findall(r"dy\.(\w+)\(", source)) | set(" ".join(re.findall(r'"([a-z_0-9 ]+)"', source)).split())
    called |= {word for names in ELSEWHERE for word in names.split()}
    graph_functions = sys.modules["dynet_lite.graph"]  # dy.graph is a function
    modules = (builders, initializers, params, trainers, graph_functions)
    others = {name for m in modules for name in m.__all__}
    functions = [n for n in NAMES if n[0].islower() and n not in others and callable(getattr(dy, n, None))]
    no_ops = {
        "cg",
        "init",
        "init_from_params",
        "load",
        "load_generator",
        "reset_random_seed",
        "save",
        "inputMatrix",
        "matInput",
    }
    assert set(functions) - called - no_ops == set()


@pytest.mark.parametrize("strategy", ["depth", "greedy"])
def test_all_cases_in_one_graph(strategy: str, ours: Results) -> None:
    """The gradients of the sum of all cases, batched together, are those of the cases alone."""
    before, _core.settings.strategy = _core.settings.strategy, strategy
    try:
        dy.renew_cg()
        losses, inputs = [], {}
        for name in op_cases.CASES:
            for seed in range(op_cases.SEEDS):
                sizes, arrays = op_cases.arguments(name, seed)
                xs = [dy.inputTensor(a, batched=b) for a, b in arrays]
                y = op_cases.CASES[name].call(dy, sizes, *xs)
                dims, batch = y.dim()
                w = np.random.default_rng(5).uniform(0.5, 1.5, (*dims, batch) if batch > 1 else dims)
                losses.append(dy.sum_batches(dy.sum_elems(dy.cmult(y, dy.inputTensor(w, batched=batch > 1)))))
                inputs[name, seed] = xs
        dy.esum(losses).backward(full=True)
        for (name, seed), xs in inputs.items():
            for k, x in enumerate(xs):
                wanted = ours[f"{name}/{seed}/gradient{k}"]
                np.testing.assert_allclose(
                    x.gradient(), wanted, rtol=0, atol=5e-6 + 1e-5 * np.abs(wanted).max(), err_msg=name
                )
    finally:
        _core.settings.strategy = before
