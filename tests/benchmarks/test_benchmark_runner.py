"""The comparison of speeds as a command, on tiny models and with dynet_lite alone; its programs, data and figures."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import dynet_lite as dy

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks"
TASKS = ("tagger", "tagger_char", "treelstm", "parser", "rnnlm", "rnnlm_hand", "seq2seq", "biaffine")
TINY = {
    "words": 60,
    "emb": 6,
    "hidden": 8,
    "mlp": 5,
    "char_emb": 4,
    "char_hidden": 3,
    "action_emb": 3,
    "arc": 5,
    "rel": 4,
}


@pytest.fixture(scope="module")
def tasks() -> Any:
    """The models by name. The folder of the benchmarks is on the path only here."""
    sys.path.insert(0, str(FOLDER))
    try:
        from tasks.registry import TASKS as found

        yield found
    finally:
        sys.path.remove(str(FOLDER))


def run_script(command: list[str], folder: Path) -> None:
    """Runs a command of benchmarks/ in a folder, on the engine that the tests run on."""
    root = str(FOLDER.parent) if any((FOLDER.parent / "dynet_lite").glob("_core.*.so")) else ""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in (root, os.environ.get("PYTHONPATH", "")) if p)}
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300, env=env)
    assert done.returncode == 0, done.stderr


def tiny(task: ModuleType) -> dict[str, int]:
    sizes = {name: TINY.get(name, size) for name, size in task.SIZES["base"].items()}
    if "char_emb" in sizes:
        sizes["emb"] = 2 * sizes["char_hidden"]  # a word's vector is what the two directions say
    return sizes


def prepared(task: ModuleType) -> tuple[dict[str, int], dict[str, Any], list[Any]]:
    from tasks.common import initial_weights

    sizes = tiny(task)
    return sizes, initial_weights(task.shapes(sizes), 5), task.data(np.random.RandomState(3), 4, sizes)


@pytest.mark.parametrize("name", TASKS)
def test_programs_of_a_task_compute_the_same(tasks: Any, name: str) -> None:
    """The program as it stands, with the fused builder, without batching, and the idiomatic one: losses of three updates."""
    task = tasks[name]
    sizes, weights, batch = prepared(task)
    builders = [(task.Program, "VanillaLSTMBuilder"), (task.Program, "CompactVanillaLSTMBuilder")]
    runs = [(kind, builder, True) for kind, builder in [*builders, (task.Idiomatic, "VanillaLSTMBuilder")]]
    losses = []
    for kind, builder, autobatching in [*runs, (task.Program, "VanillaLSTMBuilder", False)]:
        program = kind(dy, sizes, weights, builder)
        trainer = dy.AdamTrainer(program.model)
        mine = []
        for _ in range(3):
            dy.renew_cg(autobatching=autobatching)
            loss = program.batch_loss(batch)
            mine.append(loss.value())
            loss.backward()
            trainer.update()
        losses.append(mine)
    assert losses[0][2] < losses[0][0]
    np.testing.assert_allclose(losses[1:], [losses[0]] * 3, rtol=1e-5)


@pytest.mark.parametrize("kind", ["Program", "Idiomatic"])
def test_attention_is_one_call_a_step(tasks: Any, kind: str) -> None:
    """Of a decoder, over 32 sources of 20 lengths; tests/device/test_counts.py has the same on a GPU."""
    task = tasks["seq2seq"]
    sizes = {**task.SIZES["base"], "emb": 8, "hidden": 8}
    batch = task.data(np.random.RandomState(1), sizes["batch"], sizes)
    assert len({len(source) for source, _ in batch}) == 20
    steps = max(len(target) for _, target in batch)
    from tasks.common import initial_weights

    program = getattr(task, kind)(dy, sizes, initial_weights(task.shapes(sizes), 1))
    dy.renew_cg()
    program.batch_loss(batch).value()
    calls = Counter(line.split("\t")[1].split(" {")[0] for line in dy.plan_text().splitlines()[1:])
    assert calls["softmax"] == calls["matmul(tanh(add))"] == steps
    assert calls["matmul"] == 2 * steps + 1  # queries, contexts; once the keys
    assert calls.total() == dy.stats()["batches"] <= 505


@pytest.mark.parametrize("name", TASKS)
def test_pytorch_computes_the_same(tasks: Any, name: str) -> None:
    pytest.importorskip("torch")
    import importlib

    task = tasks[name]
    sizes, weights, batch = prepared(task)
    dy.renew_cg()
    wanted = task.Program(dy, sizes, weights).batch_loss(batch).value()
    step = importlib.import_module("tasks.torch_common").training_step
    program = importlib.import_module(f"tasks.torch_{name}")
    got = [step(program, mode, sizes, weights, False)(batch)[0] for mode in ("one", "padded")]
    np.testing.assert_allclose(got, wanted, rtol=1e-5)


def test_derivations_build_their_trees(tasks: Any) -> None:
    """The actions of made-up and real sentences, run, give the heads and labels beside them."""
    import made_up
    import real

    sentences = made_up.parsed(np.random.RandomState(1), 20, 50, 7)
    path = FOLDER.parent / "data" / "treebank"
    sizes = {"words": 50, "labels": 40}
    sentences_of_file = [
        s for f in sorted(path.glob("*.conllu"))[:1] for s in real.instances(str(f), "parser", 20, sizes, 1)
    ]
    assert sentences_of_file
    for sentence, labels in [*((s, 7) for s in sentences), *((s, 40) for s in sentences_of_file)]:
        heads, kinds = run_actions(sentence.actions, len(sentence.words), labels)
        root = heads.index(0)
        assert heads == sentence.heads
        assert [k for i, k in enumerate(kinds) if i != root] == [k for i, k in enumerate(sentence.labels) if i != root]


def run_actions(actions: list[int], words: int, labels: int) -> tuple[list[int], list[int]]:
    heads, kinds, stack, shifted = [0] * words, [0] * words, [], 0
    for action in actions:
        if action == 0:
            stack.append(shifted)
            shifted += 1
            continue
        right, left = stack.pop(), stack.pop()
        head, dependent = (right, left) if action <= labels else (left, right)
        heads[dependent], kinds[dependent] = head + 1, (action - 1) % labels
        stack.append(head)
    assert len(stack) == 1 and shifted == words
    return heads, kinds


def test_command_writes_what_it_says(tmp_path: Path) -> None:
    """Two tasks, dynet_lite on and off and the floor: tables, a line of JSON per run, targets."""
    command = [sys.executable, str(FOLDER / "run.py"), "--quick", "--sentences", "4", "--tasks", "tagger,treelstm"]
    command += ["--engines", "dynet_lite:on,dynet_lite:off,dynet_lite:on+idiomatic,floor", "--batch-sizes", "2"]
    command += ["--jsonl", "out.jsonl", "--markdown", "out.md"]
    run_script(command, tmp_path)
    lines = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [line["task"] for line in lines] == ["tagger", "treelstm"]
    for line in lines:
        assert line["loss_difference"] <= 1e-4
        assert [row["engine"] for row in line["rows"]] == [
            "dynet_lite:on", "dynet_lite:off", "dynet_lite:on+idiomatic", "floor:numpy",
        ]  # fmt: skip
        assert all(row["sentences_per_cpu_second"] > 0 and row["peak_mb"] > 10 for row in line["rows"])
        ops = line["ops"]["dynet_lite:on"]
        products = [
            name for name in ops if name.startswith(("affine_transform", "matmul", "_affines"))
        ]  # or joined ones
        assert products and all(ops[name]["forward"] > 0 for name in products)
        assert [t["what"] for t in line["targets"]] == ["batching on / off"]
    page = (tmp_path / "out.md").read_text(encoding="utf-8")
    assert "## tagger, base, training, batch 2" in page and "losses agree to" in page and "## Targets" in page


def test_differing_losses_give_no_speed() -> None:
    sys.path.insert(0, str(FOLDER))
    try:
        import report
    finally:
        sys.path.remove(str(FOLDER))
    answers = {
        "dynet:1": [{"losses": [2.0, 3.0]}],
        "dynet_lite:on": [{"losses": [2.0, 3.3]}],
        "torch:one": [{"losses": [2.0, float("nan")]}],
        "floor:numpy": [{"losses": [0.0, 0.0]}],
    }
    found = report.loss_difference(answers)
    assert found["dynet:1"] == 0 and abs(found["dynet_lite:on"] - 0.1) < 1e-9 and found["torch:one"] == float("inf")
    assert "floor:numpy" not in found


def test_two_threads(tmp_path: Path) -> None:
    script = str(FOLDER / "two_threads.py")
    run_script(
        [sys.executable, script, *"--tasks tagger --idiomatic --chunks 2 --steps 1 --jsonl out.jsonl".split()], tmp_path
    )
    (line,) = [json.loads(text) for text in (tmp_path / "out.jsonl").read_text(encoding="utf-8").splitlines()]
    assert line["task"] == "tagger" and line["steps"] == 1 and line["idiomatic"]
    low, high = line["quartiles"]
    assert 0 < low <= line["speed-up"] <= high and line["one"] > 0 and line["several"] > 0
