"""Trained recipes from Python: dy.load_recipe, predict, pipe; recipes by name; the commands that run them."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dynet_lite as dy
from dynet_lite.harness import Predictor, catalogue, make_recipe, save_recipe
from dynet_lite.harness.find import find_recipe, load_program, settings_of
from dynet_lite.harness.settings import from_dict

ROOT = Path(__file__).resolve().parents[2]
WORDS = "the dog sleeps ."
TREE = "(3 (2 the) (3 dog))"
CONLLU = "1\tthe\t_\tDET\t_\t_\t0\troot\t_\t_\n2\tdog\t_\tNOUN\t_\t_\t1\tdep\t_\t_"
# recipe: (an input, what an answer holds)
RECIPES: dict[str, tuple[str, set[str]]] = {
    "attention_seq2seq": ("abc", {"input", "output"}),
    "biaffine_parser": (CONLLU, {"words", "upos", "heads", "deprels"}),
    "bilstm_crf_chunker": (WORDS, {"words", "labels", "chunks"}),
    "bilstm_tagger": (WORDS, {"words", "tags"}),
    "dan_classifier": (WORDS, {"text", "label"}),
    "graph_relations": (CONLLU, {"words", "upos", "heads", "deprels"}),
    "named_entities": (WORDS, {"words", "labels", "chunks"}),
    "pointer_network": ("0.1 0.2 0.5 0.9 0.4 0.3", {"input", "output"}),
    "rnng": (WORDS, {"input", "output"}),
    "rnnlm": (WORDS, {"input", "output"}),
    "stack_lstm_parser": (CONLLU, {"words", "upos", "heads", "deprels"}),
    "text_cnn": (WORDS, {"text", "label"}),
    "transformer_lm": ("the", {"input", "output"}),
    "treelstm_sentiment": (TREE, {"input", "output"}),
}


def recipe_class(name: str) -> Any:
    module = load_program(catalogue.program(name))
    kinds = [k for k in vars(module).values() if isinstance(k, type) and k.__module__ == module.__name__]
    return next(k for k in kinds if hasattr(k, "load_data"))


@pytest.fixture(scope="session")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], str]:
    """saved("rnnlm"): a file with an untrained model of the recipe."""
    folder = tmp_path_factory.mktemp("models")

    def make(name: str) -> str:
        path = folder / f"{name}.model"
        if not path.exists():
            kind = recipe_class(name)
            s = from_dict(settings_of(kind), {**kind.smoke}, "test")
            data = kind.load_data(s)
            save_recipe(make_recipe(kind, s, kind.build(s, data.train)), str(path))
        return str(path)

    return make


@pytest.mark.parametrize("name", RECIPES)
def test_every_recipe_loads_by_its_file_alone(name: str, saved: Callable[[str], str]) -> None:
    text, keys = RECIPES[name]
    predictor = dy.load_recipe(saved(name))
    answers = predictor.predict([text, text])
    assert isinstance(answers, list) and len(answers) == 2
    assert set(answers[0]) == set(answers[1]) == keys
    assert answers == predictor.predict([text, text])  # what is drawn at random is drawn from the seed
    assert json.loads(json.dumps(answers)) == answers


@pytest.mark.parametrize("name", RECIPES)
def test_parameters_have_names(name: str, saved: Callable[[str], str], tmp_path: Path) -> None:
    """And files of models whose parameters had none still load."""
    data = Path(saved(name)).read_bytes()
    size = int.from_bytes(data[:8], "little")
    head, body = json.loads(data[8 : 8 + size]), data[8 + size :]
    about = json.loads(head["__metadata__"]["dynet_lite"])
    assert not [name for name in about["parameters"] if name.split("/")[-1].startswith("_")]
    old = {name: f"/old/_{k}" for k, name in enumerate(about["parameters"])}
    about["parameters"] = {old[name]: what for name, what in about["parameters"].items()}
    head = {old.get(name, name): where for name, where in head.items()}
    head["__metadata__"]["dynet_lite"] = json.dumps(about)
    text = json.dumps(head).encode()
    path = tmp_path / "old.model"
    path.write_bytes(len(text).to_bytes(8, "little") + text + body)
    text, _ = RECIPES[name]
    assert dy.load_recipe(path).predict([text]) == dy.load_recipe(saved(name)).predict([text])


def test_all_recipes_are_tried() -> None:
    assert {*RECIPES, "xor"} == set(catalogue.programs())


def test_answers_are_those_of_the_command_line(saved: Callable[[str], str]) -> None:
    predictor = dy.load_recipe(saved("bilstm_tagger"))
    lines = [WORDS, "", "a dog"]
    said = [" ".join(map("_".join, zip(a["words"], a["tags"], strict=True))) for a in predictor.predict(lines)]
    assert said == list(predictor.recipe.predict(lines))
    label = dy.load_recipe(saved("text_cnn"))
    assert [a["label"] or "" for a in label.predict(lines)] == [x.split("\t")[0] for x in label.recipe.predict(lines)]


def test_one_text_many_texts_words(saved: Callable[[str], str]) -> None:
    predictor = dy.load_recipe(saved("bilstm_tagger"))
    one = predictor.predict(WORDS)
    assert isinstance(one, dict) and one["words"] == WORDS.split()
    assert predictor.predict([WORDS.split()]) == [one]
    assert predictor.predict([]) == []
    for wrong in (["a b"], [""], [3], ["a\fb"]):
        with pytest.raises(ValueError, match=r"\[predict\] expected words without blanks"):
            predictor.predict([wrong])


def test_scores(saved: Callable[[str], str]) -> None:
    answer = dy.load_recipe(saved("text_cnn")).predict(WORDS, scores=True)
    assert sum(answer["probabilities"].values()) == pytest.approx(1, abs=1e-5)
    assert max(answer["probabilities"], key=answer["probabilities"].get) == answer["label"]
    tags = dy.load_recipe(saved("bilstm_tagger")).predict(WORDS, scores=True)
    assert len(tags["probabilities"]) == 4 and all(0 < p <= 1 for p in tags["probabilities"])
    for name in ("rnng", "bilstm_crf_chunker"):
        with pytest.raises(dy.DataError, match="gives no scores"):
            dy.load_recipe(saved(name)).predict(WORDS, scores=True)


def test_pipe_reads_no_further_than_it_must(saved: Callable[[str], str]) -> None:
    predictor = dy.load_recipe(saved("text_cnn"))
    seen = []

    def endless():
        for i in itertools.count():
            seen.append(i)
            yield "dog " * (1 + i % 3)

    answers = list(itertools.islice(predictor.pipe(endless(), batch=5), 12))
    assert len(answers) == 12 and len(seen) == 15
    assert answers == predictor.predict([a["text"] for a in answers])
    with pytest.raises(ValueError, match="at least 1"):
        next(predictor.pipe([], batch=0))


def test_threads_share_a_predictor(saved: Callable[[str], str]) -> None:
    predictor = dy.load_recipe(saved("bilstm_tagger"))
    texts = [" ".join(["the", "dog", "sleeps", "."][: 1 + i % 4]) for i in range(40)]
    expected = predictor.predict(texts)
    found: dict[int, Any] = {}
    threads = [threading.Thread(target=lambda k=k: found.update({k: list(predictor.pipe(texts, 7))})) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4 and all(answers == expected for answers in found.values())


def test_loading_leaves_random_numbers_alone(saved: Callable[[str], str]) -> None:
    path = saved("text_cnn")
    dy.reset_random_seed(7)
    dy.renew_cg()
    expected = dy.random_normal(4).npvalue()
    dy.reset_random_seed(7)
    dy.load_recipe(path)
    dy.renew_cg()
    assert np.array_equal(dy.random_normal(4).npvalue(), expected)


def test_settings_that_may_change(saved: Callable[[str], str]) -> None:
    assert dy.load_recipe(saved("rnnlm"), length=1).settings.length == 1
    with pytest.raises(dy.DataError, match="'hidden' cannot be changed after training; there are temperature"):
        dy.load_recipe(saved("rnnlm"), hidden=3)


OWN = """
from dataclasses import dataclass
import dynet_lite as dy
from dynet_lite import harness

@dataclass
class Mine(harness.Settings):
    size: int = harness.option(3, "size")

class Echo(harness.Recipe[Mine, str]):
    def __init__(self, s, parts):
        super().__init__(s, parts)
        self.W = self.model.add_parameters(s.size)
    def predict(self, lines):
        return [line.upper() for line in lines]
"""


def test_recipes_of_ones_own(tmp_path: Path) -> None:
    program = tmp_path / "echo.py"
    program.write_text(OWN)
    model = str(tmp_path / "echo.model")
    code = f"""
import sys
sys.path.insert(0, {str(tmp_path)!r})
import echo
from dynet_lite import harness
harness.save_recipe(harness.make_recipe(echo.Echo, echo.Mine(), {{}}), {model!r})
"""
    env = {**os.environ, "PYTHONPATH": str(Path(dy.__file__).parents[1])}
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True, env=env)
    with pytest.raises(dy.DataError, match="'Echo', which is not part of the package: name its program .*--source"):
        dy.load_recipe(model)
    with pytest.raises(dy.DataError, match="expected a recipe with the class Echo"):
        dy.load_recipe(model, source="xor")
    predictor = dy.load_recipe(model, source=program)
    assert predictor.predict("abc") == {"input": "abc", "output": "ABC"}
    assert dy.load_recipe(model).settings.size == 3  # its class is loaded now


def test_files_that_are_no_models_of_recipes(tmp_path: Path) -> None:
    with pytest.raises(OSError):
        dy.load_recipe(tmp_path / "missing")
    model = dy.ParameterCollection()
    model.add_parameters(2)
    dy.save_checkpoint(str(tmp_path / "plain"), model)
    with pytest.raises(dy.DataError, match="expected a file that a recipe wrote"):
        dy.load_recipe(tmp_path / "plain")


def test_the_predictor_is_public() -> None:
    assert Predictor.__doc__ and dy.load_recipe.__doc__
    assert find_recipe("Tagger").__name__ == "Tagger"


# ---- recipes by name -------------------------------------------------------------------------------------------------


def command(*arguments: object, cwd: Path, stdin: str = "") -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PYTHONPATH": str(Path(dy.__file__).parents[1])}
    return subprocess.run([sys.executable, "-m", "dynet_lite", *map(str, arguments)], cwd=cwd, input=stdin, env=env,
                          capture_output=True, text=True, timeout=300)  # fmt: skip


def test_the_package_has_the_recipes_and_their_data() -> None:
    if (ROOT / "recipes").is_dir():
        assert set(catalogue.programs()) == {p.stem for p in (ROOT / "recipes").glob("*.py")}
    assert {"train.conllu", "dev.conllu", "train.sst", "dev.ptb"} <= {p.name for p in catalogue.treebank().iterdir()}


def test_train_predict_and_evaluate_by_name(tmp_path: Path) -> None:
    done = command("train", "bilstm_tagger", "--smoke", "--save", "t.model", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    named = command("predict", "bilstm_tagger", "--load", "t.model", "-", cwd=tmp_path, stdin="A dog .\n")
    for load in (["--load", "t.model"], ["--load=t.model"]):  # the file says whose model it is
        done = command("predict", *load, "-", cwd=tmp_path, stdin="A dog .\n")
        assert (done.returncode, done.stdout) == (0, named.stdout) and named.stdout, done.stderr
    (tmp_path / "lines.txt").write_text("A dog .\n")
    done = command("predict", "lines.txt", "--load", "t.model", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, named.stdout), done.stderr
    done = command("predict", "bilstm_tagger", "--load", "t.model", "-", cwd=tmp_path, stdin="the dog\n")
    assert done.returncode == 0 and done.stdout.startswith("the_"), done.stderr
    done = command("evaluate", "bilstm_tagger", "--load", "t.model", catalogue.treebank() / "dev.conllu", cwd=tmp_path)
    assert done.returncode == 0 and "accuracy" in done.stdout, done.stderr


def test_a_copied_recipe_runs_where_it_was_put(tmp_path: Path) -> None:
    done = command("recipes", "copy", "text_cnn", cwd=tmp_path)
    assert done.returncode == 0 and (tmp_path / "text_cnn.py").is_file(), done.stderr
    done = command("recipes", "copy", "text_cnn", cwd=tmp_path)
    assert done.returncode == 2 and "is there already" in done.stderr
    done = command("train", "text_cnn.py", "--smoke", cwd=tmp_path)
    assert done.returncode == 0, done.stderr


def test_the_list_of_recipes(tmp_path: Path) -> None:
    done = command("recipes", cwd=tmp_path)
    assert done.returncode == 0
    lines = done.stdout.splitlines()
    assert [line.split()[0] for line in lines] == list(catalogue.programs())
    assert all(len(line.split()) > 4 for line in lines)


@pytest.mark.parametrize(
    "arguments, said",
    [
        (["train", "bilstm_taggr"], "there is no recipe 'bilstm_taggr'; did you mean 'bilstm_tagger'?"),
        (["train"], "usage: python -m dynet_lite train RECIPE"),
        (["predict", "-"], "usage: python -m dynet_lite predict RECIPE"),
        (["predict", "--load", "missing.model"], "missing.model"),
        (
            ["predict", "t.model", "lines.txt"],
            "expected a recipe first, its name or a file such as my_recipe.py; then options",
        ),
        (["recipes", "copy"], "recipes copy: which one?"),
        (["serve", "missing.model"], "missing.model"),
    ],
)
def test_wrong_commands_are_one_line(arguments: list[str], said: str, tmp_path: Path) -> None:
    done = command(*arguments, cwd=tmp_path)
    assert done.returncode == 2 and said in done.stderr and "Traceback" not in done.stderr
