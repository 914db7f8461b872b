"""Recipes as ONNX files: on a dev set what ONNX Runtime answers is what the recipe answers. With
DYNET_LITE_EXPORT="--epochs 3" in the environment they are trained so, with their own sizes, and the dev set is taken whole."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from exporting import RECIPES, class_of, close, dev, ids_of, session

import dynet_lite as dy
from dynet_lite import harness, onnx
from dynet_lite.nn import best_tree
from dynet_lite.nn.crf import viterbi

ROOT = Path(__file__).resolve().parents[2]


CNN = ("--char-reader", "cnn", "--case-dim", "3", "--fold", "--lstm-dropout", "0.2")


@pytest.mark.parametrize("options", [(), ("--no-chars", "--layers", "2"), CNN])
def test_tagger(exported: Any, options: tuple[str, ...]) -> None:
    recipe, path = exported("bilstm_tagger", *options)
    run = session(path)
    sentences = dev(recipe)
    assert len(sentences) >= 40
    for sentence in sentences:
        (scores,) = run.run(None, ids_of(recipe, sentence.forms))
        dy.renew_cg()
        close(scores, [e.npvalue() for e in recipe.scores(sentence.forms)])
        assert [recipe.tags.word(i) for i in scores.argmax(axis=1)] == recipe.tag([sentence.forms])[0]
    meta = run.get_modelmeta().custom_metadata_map
    assert meta["recipe"] == "Tagger" and json.loads(meta["settings"])["word_dim"] == recipe.settings.word_dim


@pytest.mark.parametrize(
    ("name", "tags"), [("bilstm_crf_chunker", False), ("bilstm_crf_chunker", True), ("named_entities", False)]
)
def test_spans(exported: Any, name: str, tags: bool) -> None:
    recipe, path = exported(name, *(("--tag-dim", "3") if tags else ()))
    run = session(path)
    allowed = recipe.allowed
    for sentence in dev(recipe):
        inputs = ids_of(recipe, sentence.forms)
        if tags:
            inputs["tags"] = np.array(recipe.tags.ids(sentence.tags))
        scores, pairs, start, end = run.run(None, inputs)
        dy.renew_cg()
        close(scores, [e.npvalue() for e in recipe.scores(sentence.forms, sentence.tags)])
        best = viterbi(
            scores,
            np.where(allowed[:-1, :-1], pairs.T, -np.inf),
            np.where(allowed[:-1, -1], start, -np.inf),
            np.where(allowed[-1, :-1], end, -np.inf),
        )
        assert [recipe.labels.word(i) for i in best] == recipe.label([sentence.forms], [sentence.tags])[0]


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("text_cnn", ()),
        ("dan_classifier", ()),
        ("text_cnn", ("--subwords", "50")),
        ("dan_classifier", ("--evidence", "2", "--evidence-letters", "4")),
        ("text_cnn", ("--evidence", "1", "--linear", "0.5")),
    ],
)
def test_classifiers(exported: Any, name: str, options: tuple[str, ...]) -> None:
    recipe, path = exported(name, *options)
    run = session(path)
    for text in dev(recipe):
        words = recipe.pieces.split_all(text.words) if recipe.pieces else text.words
        inputs = {"words": np.array(recipe.words.ids(words))}
        if recipe.evidence is not None:
            inputs["evidence"] = np.array(
                recipe.evidence_of(text.words), dtype=np.float32
            ).T  # axes in the file go the other way
        (scores,) = run.run(None, inputs)
        dy.renew_cg()
        close(scores, recipe.all_scores(text.words).npvalue())
        assert recipe.labels.word(int(scores.argmax())) == recipe.classify([text.words])[0][0]


@pytest.mark.parametrize(("layers", "options"), [(1, ()), (2, ()), (1, ("--tie", "--word-dim", "8", "--hidden", "8"))])
def test_language_model(exported: Any, layers: int, options: tuple[str, ...]) -> None:
    recipe, path = exported("rnnlm", "--layers", str(layers), *options)
    whole, step = session(path), session(path.with_name("model.step.onnx"))
    names = [f"{kind}{i}" for kind in "ch" for i in range(layers)]
    for words in dev(recipe):
        ids = [recipe.end, *recipe.words.ids(words)]
        (scores,) = whole.run(None, {"words": np.array(ids)})
        logs = scores - np.log(np.exp(scores).sum(axis=1, keepdims=True))
        dy.renew_cg()
        close(
            [-logs[t, i] for t, i in enumerate([*ids[1:], recipe.end])],
            [e.value() for e in recipe.losses(words, recipe.table())],
        )
        states = {name: np.zeros(recipe.settings.hidden, dtype=np.float32) for name in names}
        for t, i in enumerate(ids):
            one, *after = step.run(None, {"word": np.array(i), **states})
            states = dict(zip(names, after, strict=True))
            close(one, scores[t])


@pytest.mark.parametrize("options", [(), ("--char-hidden", "5"), ("--char-hidden", "4", *CNN[:-2])])
def test_biaffine_parser(exported: Any, options: tuple[str, ...]) -> None:
    recipe, path = exported("biaffine_parser", *options)
    run = session(path)
    for sentence in dev(recipe):
        arcs, relations = run.run(
            None, {**ids_of(recipe, sentence.forms), "tags": np.array(recipe.tags.ids(sentence.upos))}
        )
        dy.renew_cg()
        head, dependent, label_head, label_dependent = recipe.read(sentence)
        close(arcs, recipe.arcs.all_pairs(head, dependent).npvalue().T)
        n = len(sentence)
        tree = best_tree(arcs.T)
        wanted = recipe.labels.pairs(label_head[:, tree], label_dependent[:, 1:]).npvalue().reshape(-1, n)
        found = relations[np.arange(1, n + 1), tree]
        close(found, wanted.T)
        (parsed,) = recipe.parse([sentence])
        assert parsed.heads == list(tree)
        assert parsed.deprels == [recipe.relations.word(int(i)) for i in found.argmax(axis=1)]


def test_seq2seq(exported: Any, tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    words = ["".join(rng.choice(list("abc"), rng.integers(1, 6))) for _ in range(300)]
    lines = [f"{' '.join(word)}\t{' '.join(word[::-1].upper())}\n" for word in words]
    (tmp_path / "pairs.tsv").write_text("".join(lines))
    recipe, path = exported("attention_seq2seq", "--train", "pairs.tsv")
    encoder, step = session(path), session(path.with_name("model.step.onnx"))
    for word in sorted(set(words))[:60]:
        dy.renew_cg()
        now = recipe.start(list(word))
        memory, keys, c, h = encoder.run(None, {"source": np.array(recipe.source.ids(word))})
        context, token = np.zeros(memory.shape[1], dtype=np.float32), recipe.end
        for t in range(4):
            given = {"token": np.array(token), "memory": memory, "keys": keys, "context": context, "c": c, "h": h}
            scores, context, c, h, weights = step.run(None, given)
            close(scores, now.scores.npvalue())
            assert abs(weights.sum() - 1) < 1e-5
            token = int(scores.argmax()) if t else 1
            now = recipe.step(now, token)


@pytest.mark.parametrize("task", ["hull", "sort"])
def test_pointer_network(exported: Any, task: str) -> None:
    recipe, path = exported("pointer_network", "--task", task)
    encoder, step = session(path), session(path.with_name("model.step.onnx"))
    for puzzle in dev(recipe):
        vectors, keys, x = encoder.run(None, {"points": np.array(puzzle.points, dtype=np.float32)})
        dy.renew_cg()
        ours = recipe.encode(puzzle.points)
        memory, state = recipe.attention.remember(ours), recipe.decoder.initial_state().add_input(recipe.first(ours))
        c = h = np.zeros(recipe.settings.hidden, dtype=np.float32)
        answer: list[int] = []
        while True:
            scores, c, h = step.run(None, {"x": x, "keys": keys, "c": c, "h": h})
            close(scores[:, 0], recipe.attention.logits(state.output(), memory).npvalue())
            scores[[place + 1 for place in answer]] = -np.inf
            scores[0] = scores[0] if answer else -np.inf
            place = int(scores.argmax())
            if place == 0:
                break
            answer.append(place - 1)
            x, state = vectors[place], state.add_input(ours[place])
        assert answer == recipe.solve([puzzle.points])[0]


def test_every_recipe_has_networks_that_are_tested() -> None:
    tests = "".join(path.read_text(encoding="utf-8") for path in sorted(Path(__file__).parent.glob("test_onnx_*.py")))
    names = {path.stem for path in RECIPES.glob("*.py")} - {"xor"}  # a program without a recipe
    assert len(names) > 12
    for name in names:
        kind, _ = class_of(name)
        assert kind.networks is not harness.Recipe.networks, name
        assert f'"{name}"' in tests, name


def test_the_program_of_the_page(exported: Any, tmp_path: Path) -> None:
    """It runs without this package."""
    code, function, cells = re.findall(
        r"```python\n(.*?)```", (ROOT / "docs" / "onnx.md").read_text(encoding="utf-8"), re.DOTALL
    )
    recipe, path = exported("bilstm_tagger")
    path.rename(tmp_path / "tagger.onnx")
    hide = "import sys\nsys.modules['dynet_lite'] = sys.modules['onnx'] = None\n"
    (tmp_path / "predict.py").write_text(hide + code, encoding="utf-8")
    lines = [" ".join(sentence.forms) for sentence in dev(recipe)]
    lines.insert(3, "")
    lines.append("Donaudampfschifffahrtsgesellschaft sails .")
    done = subprocess.run(
        [sys.executable, "predict.py"],
        cwd=tmp_path,
        input="\n".join(lines),
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == list(recipe.predict(lines))
    assert len([line for line in code.splitlines() if line.strip()]) <= 32
    known: dict[str, Any] = {}
    exec(function.replace('"network.onnx"', repr(str(tmp_path / "network.onnx"))), known)
    assert session(tmp_path / "network.onnx").run(None, {"words": np.array([3, 1])})[0].shape == (2, 5)
    exec(cells.replace('"tree.onnx"', repr(str(tmp_path / "tree.onnx"))), known)
    every, root = session(tmp_path / "tree.onnx").run(None, known["given"])
    close(root, known["root"])
    dy.renew_cg()
    close(every, [node.h.npvalue() for node in dy.recurse(known["compose"], [4, 8, None], [(), (), (0, 1)])])
    close(root, every[2])


def test_a_recipe_without_networks_says_so(runtime: Any, tmp_path: Path) -> None:
    recipe = harness.Recipe(harness.Settings(), {})
    with pytest.raises(dy.errors.DataError, match="no method networks"):
        onnx.export_recipe(recipe, tmp_path / "x.onnx")
