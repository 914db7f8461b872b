"""Numbers of the words from files (--features): learned from, exported, and what does not fit is named."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

import dynet_lite as dy
from dynet_lite.text import DataError, Sentence, WordFeatures, format_conllu, parse_trees

TAGS = ["NOUN", "VERB", "DET"]


def made(count: int, seed: int) -> tuple[list[Sentence], list[np.ndarray]]:
    """Sentences whose words say nothing about their tags; the features do."""
    rng = np.random.default_rng(seed)
    sentences, arrays = [], []
    for _ in range(count):
        ids = rng.integers(0, 3, rng.integers(1, 8))
        forms = [f"w{rng.integers(0, 9)}" for _ in ids]
        heads = list(range(len(ids)))  # a chain
        relations = ["root", *[TAGS[i].lower() for i in ids[1:]]]
        sentences.append(Sentence(forms, [TAGS[i] for i in ids], [], heads, relations))
        arrays.append((np.eye(3)[ids] + rng.normal(0, 0.1, (len(ids), 3))).astype(np.float32))
    return sentences, arrays


@pytest.fixture
def files(tmp_path: Path) -> dict[str, tuple[list[Sentence], list[np.ndarray]]]:
    """train, dev and test: NAME.conllu, NAME.iob, NAME.txt, and features as .npz, float16 for dev and safetensors for test."""
    parts = {name: made(count, seed) for seed, (name, count) in enumerate((("train", 60), ("dev", 20), ("test", 12)))}
    for name, (sentences, arrays) in parts.items():
        (tmp_path / f"{name}.conllu").write_text("".join(f"{line}\n" for x in sentences for line in format_conllu(x)))
        (tmp_path / f"{name}.iob").write_text(
            "\n".join("".join(f"{w}\tB-{tag}\n" for w, tag in zip(x.forms, x.upos, strict=True)) for x in sentences)
        )
        (tmp_path / f"{name}.txt").write_text("".join(" ".join(x.forms) + "\n" for x in sentences))
        if name == "test":
            save_file({f"sentence_{i}": a for i, a in enumerate(arrays)}, str(tmp_path / "test.safetensors"))
        else:
            np.savez(tmp_path / f"{name}.npz", *[a.astype(np.float16) if name == "dev" else a for a in arrays])
    return parts


SIZES = ["--batch", "4", "--word-dim", "6", "--hidden", "8", "--learning-rate", "0.02"]
ALL = ["--features", "train.npz", "dev.npz", "test.safetensors"]


def trained(run_recipe: Any, name: str, form: str, *options: str) -> Any:
    names = [word for part in ("train", "dev", "test") for word in (f"--{part}", f"{part}.{form}")]
    return run_recipe(name, *names, *ALL, *SIZES, "--save", "m", *options)


def test_tagger(run_recipe: Callable[..., Any], files: Any, tmp_path: Path) -> None:
    trained(run_recipe, "bilstm_tagger", "conllu", "--epochs", "4", "--no-chars", "--mlp", "6")
    sentences, arrays = files["test"]
    done = run_recipe("bilstm_tagger", "evaluate", "--load", "m", "test.conllu", "--features", "test.safetensors")
    assert "12 sentences: accuracy 100.00%" in done.stdout
    done = run_recipe("bilstm_tagger", "predict", "--load", "m", "--features", "test.safetensors", "test.txt")
    assert [[pair.split("_")[1] for pair in line.split()] for line in done.stdout.splitlines()] == [
        x.upos for x in sentences
    ]
    (tmp_path / "gaps.txt").write_text("\n" + (tmp_path / "test.txt").read_text().replace("\n", "\n\n"))
    gaps = run_recipe("bilstm_tagger", "predict", "--load", "m", "--json", "--features", "test.safetensors", "gaps.txt")
    assert [a["tags"] for line in gaps.stdout.splitlines() if (a := json.loads(line))["words"]] == [
        x.upos for x in sentences
    ]
    for options, said in (
        ([], "expected one for each of 2 inputs; got 1"),
        (["test.txt"], "the model reads 3 numbers a word beside the words: --features; there are none for 'w"),
    ):
        given = ["--features", "test.safetensors", "test.txt", "test.txt"] if not options else options
        done = run_recipe("bilstm_tagger", "predict", "--load", "m", *given, ok=False)
        assert done.returncode == 2 and said in done.stderr
    tagger = dy.load_recipe(tmp_path / "m")
    texts = [x.forms for x in sentences]
    assert [a["tags"] for a in tagger.predict(texts, features=arrays)] == [x.upos for x in sentences]
    assert [a["tags"] for a in tagger.pipe(texts, batch=5, features=iter(arrays))] == [x.upos for x in sentences]
    with pytest.raises(ValueError, match="features for 12 texts; got 11"):
        tagger.predict(texts, features=arrays[1:])
    with pytest.raises(DataError, match=r"expected features \(\d, 3\) for 'w"):
        tagger.predict(" ".join(texts[0]), features=arrays[0][:, :2])


def test_chunker(run_recipe: Callable[..., Any], files: Any) -> None:
    trained(run_recipe, "bilstm_crf_chunker", "iob", "--epochs", "6", "--char-hidden", "0")
    done = run_recipe("bilstm_crf_chunker", "evaluate", "--load", "m", "test.iob", "--features", "test.safetensors")
    assert "F1 100.00%" in done.stdout
    done = run_recipe(
        "bilstm_crf_chunker", "predict", "--load", "m", "test.txt", "--write", "iob2", "--features", "test.safetensors"
    )
    labels = [line.split("\t")[1][2:] for line in done.stdout.splitlines() if line]
    assert labels == [tag for x in files["test"][0] for tag in x.upos]


@pytest.mark.parametrize("name", ["biaffine_parser", "stack_lstm_parser"])
def test_parsers(run_recipe: Callable[..., Any], files: Any, tmp_path: Path, name: str) -> None:
    """Tags are hidden: the relations are known from the features alone."""
    for part, (sentences, _) in files.items():
        hidden = [Sentence(x.forms, ["X"] * len(x), [], x.heads, x.deprels) for x in sentences]
        (tmp_path / f"{part}.conllu").write_text("".join(f"{line}\n" for x in hidden for line in format_conllu(x)))
    trained(run_recipe, name, "conllu", "--epochs", "8", "--tag-dim", "2")
    done = run_recipe(name, "predict", "--load", "m", "test.conllu", "--features", "test.safetensors")
    found = [line.split("\t")[7] for line in done.stdout.splitlines() if line]
    wanted = [relation for x in files["test"][0] for relation in x.deprels]
    assert np.mean([a == b for a, b in zip(found, wanted, strict=True)]) > 0.75


def test_grammar(run_recipe: Callable[..., Any], files: Any, tmp_path: Path) -> None:
    for part, (sentences, _) in files.items():
        trees = (f"(S {' '.join(f'({tag} {w})' for w, tag in zip(x.forms, x.upos, strict=True))})" for x in sentences)
        (tmp_path / f"{part}.ptb").write_text("\n".join(trees) + "\n")
    trained(run_recipe, "rnng", "ptb", "--epochs", "8", "--char-hidden", "0", "--dropout", "0")
    done = run_recipe("rnng", "predict", "--load", "m", "test.txt", "--features", "test.safetensors")
    found = [
        [node.label for node in tree.nodes() if not node.children] for tree in parse_trees(done.stdout.splitlines())
    ]
    right = [a == b for x, tags in zip(files["test"][0], found, strict=True) for a, b in zip(x.upos, tags, strict=True)]
    assert np.mean(right) > 0.6


def test_onnx_has_them_as_an_input(run_recipe: Callable[..., Any], files: Any, tmp_path: Path) -> None:
    pytest.importorskip("onnx")
    ort = pytest.importorskip("onnxruntime")
    trained(run_recipe, "bilstm_tagger", "conllu", "--epochs", "1", "--char-hidden", "3", "--char-dim", "3")
    run_recipe("bilstm_tagger", "export", "--load", "m", "--to", "m.onnx")
    session = ort.InferenceSession(str(tmp_path / "m.onnx"), providers=["CPUExecutionProvider"])
    assert [(x.name, x.shape) for x in session.get_inputs()][-1] == ("features", ["n", 3])
    recipe = dy.load_recipe(tmp_path / "m").recipe
    for sentence, array in zip(*files["test"], strict=True):
        letters = np.array([recipe.reader.letters.ids(word) for word in sentence.forms])  # all words have two letters
        inputs = {"words": np.array(recipe.reader.words.ids(sentence.forms)), "letters": letters,
                  "letters_length": np.full(len(letters), 2), "features": array}  # fmt: skip
        dy.renew_cg()
        wanted = [e.npvalue() for e in recipe.scores(sentence.forms, array)]
        np.testing.assert_allclose(session.run(None, inputs)[0], wanted, atol=1e-4)


def test_what_does_not_fit_is_named(run_recipe: Callable[..., Any], files: Any) -> None:
    base = ["--train", "train.conllu", "--dev", "dev.conllu", *SIZES, "--smoke"]
    for features, said in (
        (["train.npz"], "--features: expected 2 files, for train.conllu, dev.conllu; got 1"),
        (["train.npz", "dev.npz", "test.safetensors"], "expected 2 files, for train.conllu, dev.conllu; got 3"),
        (["train.npz", "train.npz"], "train.npz: expected"),
        (["train.npz", "dev.txt"], "dev.txt: expected a file of features, .npz or .safetensors"),
    ):
        done = run_recipe("bilstm_tagger", *base, "--features", *features, ok=False)
        assert done.returncode == 2 and said in done.stderr.splitlines()[-1], done.stderr
    run_recipe("bilstm_tagger", *base, "--save", "without")
    done = run_recipe("bilstm_tagger", "predict", "--load", "without", "dev.txt", "--features", "dev.npz", ok=False)
    assert done.returncode == 2 and "trained without features; there are some for 'w" in done.stderr


@pytest.mark.parametrize(
    ("arrays", "said"),
    [
        ({"arr_0": np.zeros((2, 3))}, r"f.npz: expected an array for sentence 1, 'c'; there is none"),
        (
            {"arr_0": np.zeros((3, 3)), "arr_1": np.zeros((1, 3))},
            "expected 2 rows, one a word, for sentence 0, 'a b', got 3",
        ),
        (
            {"arr_0": np.zeros((2, 3)), "arr_1": np.zeros((1, 4))},
            "expected 3 numbers a word for sentence 1, 'c', got 4",
        ),
        (
            {"arr_0": np.zeros(2), "arr_1": np.zeros((1, 4))},
            r"a matrix of floats for sentence 0, 'a b', got float64 \(2,\)",
        ),
        (
            {"arr_0": np.zeros((2, 3), int), "arr_1": np.zeros((1, 3))},
            "a matrix of floats for sentence 0, 'a b', got int64",
        ),
        ({"arr_0": np.full((2, 3), np.nan), "arr_1": np.zeros((1, 3))}, "finite numbers for sentence 0"),
        ({f"arr_{i}": np.zeros((2 - i % 2, 3)) for i in range(4)}, "expected arrays for the 2 sentences of x, got 4"),
        ({"first": np.zeros((2, 3))}, "names that end in the number of a sentence, such as arr_0, got 'first'"),
        ({"a0": np.zeros((2, 3)), "b0": np.zeros((2, 3))}, "one array for sentence 0, got two, one named 'b0'"),
        ({"arr_0": np.zeros((2, 0)), "arr_1": np.zeros((1, 0))}, "expected some numbers a word for sentence 0"),
        ({"arr_0": np.array([None, None])}, "expected a NumPy archive of numbers"),
    ],
)
def test_files_of_features(tmp_path: Path, arrays: dict[str, np.ndarray], said: str) -> None:
    np.savez(tmp_path / "f.npz", **arrays)
    with pytest.raises(DataError, match=said):
        WordFeatures(tmp_path / "f.npz").attach([Sentence(["a", "b"]), Sentence(["c"])], "x")


@pytest.mark.parametrize(
    ("name", "data"), [("f.npz", b"PK\3\4 broken"), ("f.npz", b""), ("f.safetensors", b"\x05broken")]
)
def test_damaged_files(tmp_path: Path, name: str, data: bytes) -> None:
    (tmp_path / name).write_bytes(data)
    with pytest.raises(DataError, match=f"{name}: expected a"):
        WordFeatures(tmp_path / name)
