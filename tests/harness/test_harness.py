"""The harness with a recipe of its own: settings, early stopping, schedules, resuming, interrupts, logs, predictions."""

from __future__ import annotations

import json
import math
import random
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

import dynet_lite as dy
from dynet_lite import harness
from dynet_lite.harness import option
from dynet_lite.harness.loop import averaging
from dynet_lite.harness.schedule import SCHEDULES, factor


@dataclass
class Settings(harness.Settings):
    unused = ("nltk", "train", "test")

    hidden: int = option(4, "size of the hidden layer")
    sizes: tuple[int, ...] = option((1, 2), "some sizes")
    dropout: float = option(0.2, "share to drop")
    wreck: int = option(0, "the update whose loss is not a number")
    epochs: int = option(3)
    learning_rate: float = option(0.01)


class Parity(harness.Recipe[Settings, tuple[list[int], int]]):
    """Whether the sum of a list of bits is odd."""

    smoke = {"epochs": 1, "batch": 2}
    interrupts: dict[int, int] = {}  # number of an update, or -epoch: how often the keyboard interrupts it

    @classmethod
    def load_data(cls, s: Settings) -> harness.Data:
        rng = random.Random(3)
        bits = [[rng.randint(0, 1) for _ in range(rng.randint(1, 4))] for _ in range(40)]
        return harness.Data("bits", "no licence", [(x, sum(x) % 2) for x in bits], [], unit="lists")

    @classmethod
    def build(cls, s: Settings, train: list) -> dict:
        return {"longest": max(len(x) for x, _ in train)}

    def __init__(self, s: Settings, parts: dict) -> None:
        super().__init__(s, parts)
        self.table = self.model.add_lookup_parameters((2, 3))
        self.lstm = dy.LSTMBuilder(1, 3, s.hidden, self.model)
        self.W = self.model.add_parameters((2, s.hidden))
        self.updates = 0

    def scores(self, bits: list[int]) -> dy.Expression:
        h = self.lstm.initial_state().transduce([self.table[b] for b in bits])[-1]
        return self.W * (dy.dropout(h, self.settings.dropout) if self.training else h)

    def loss(self, batch: list) -> dy.Expression:
        self.updates += 1
        for _ in range(self.interrupts.get(self.updates, 0)):
            signal.raise_signal(signal.SIGINT)
        self.random.random()
        total = dy.esum([dy.pickneglogsoftmax(self.scores(x), y) for x, y in batch])
        return total * float("nan") if self.updates == self.settings.wreck else total

    def evaluate(self, examples: list) -> harness.Score:
        self.random.random()
        dy.renew_cg()
        losses = [dy.pickneglogsoftmax(self.scores(x), y) for x, y in examples]
        if self.interrupts.get(-self.epoch):
            signal.raise_signal(signal.SIGINT)
        return harness.Score(-dy.esum(losses).value())

    def predict(self, lines: list[str]) -> Iterator[str]:
        dy.renew_cg()
        for line in lines:
            yield f"{line} {int(self.scores([int(c) for c in line]).npvalue().argmax())}" if line else ""


def run(*argv: object) -> int:
    return harness.main(Parity, Settings, "A test.", [str(a) for a in argv])


def events(path: Path, kind: str) -> list[dict]:
    return [e for e in map(json.loads, path.read_text().splitlines()) if e["event"] == kind]


# ---- settings --------------------------------------------------------------------------------------------------------


def test_command_line_wins_over_the_file_and_the_file_over_defaults(tmp_path):
    file = tmp_path / "a.toml"
    file.write_text('hidden = 7\nlearning-rate = 1\nsizes = [3, 4, 5]\nschedule = "cosine"\n')
    s, given = harness.parse_settings(Settings, "", ["--config", str(file), "--hidden", "9"])
    assert (s.hidden, s.learning_rate, s.sizes, s.schedule, s.epochs) == (9, 1.0, (3, 4, 5), "cosine", 3)
    assert isinstance(s.learning_rate, float) and set(given) == {
        "config",
        "hidden",
        "learning_rate",
        "sizes",
        "schedule",
    }
    s, _ = harness.parse_settings(Settings, "", ["--no-autobatch", "--sizes", "8", "9", "--smoke"], {"hidden": 2})
    assert (s.autobatch, s.sizes, s.hidden) == (False, (8, 9), 2)
    file.write_text("smoke = true\ncompare = true\nautobatch = false\n")
    s, _ = harness.parse_settings(Settings, "", ["--config", str(file), "--no-smoke", "--autobatch"], {"hidden": 2})
    assert (s.smoke, s.compare, s.autobatch) == (False, True, True) and s.hidden != 2


@pytest.mark.parametrize(
    "text, what",
    [
        ("hiden = 3", "no setting 'hiden'; did you mean 'hidden'"),
        ('hidden = "3"', "hidden: expected int, got '3'"),
        ("hidden = true", "hidden: expected int, got True"),
        ("autobatch = 1", "autobatch: expected bool"),
        ('sizes = ["3"]', "sizes: expected a list of int, got ['3']"),
        ('schedule = "slow"', "schedule: expected one of constant"),
        ("[model]\nhidden = 3", "leave out the line [model]"),
        ("nltk = 'x'", "no setting 'nltk'"),  # this recipe does not have it
        ("hidden 3", "expected a TOML file"),
        ("batch = 0", "batch: expected at least 1"),
        ('save = "a\\u0000b"', "save: expected text without the character 0"),
    ],
)
def test_wrong_file(tmp_path, capsys, text, what):
    file = tmp_path / "a.toml"
    file.write_text(text + "\n")
    assert run("--config", file) == 2
    err = capsys.readouterr().err
    assert what in err and ("a.toml" in err or "batch" in err)


def test_wrong_command_line(capsys):
    for argv in (["--hiden", "3"], ["--hidden", "x"], ["--schedule", "slow"], ["--hidd", "3"]):
        with pytest.raises(SystemExit) as stop:
            run(*argv)
        assert stop.value.code == 2
    assert "--hiden" in capsys.readouterr().err


def test_a_setting_without_help_is_an_error():
    @dataclass
    class Bad(harness.Settings):
        more: int = 3

    with pytest.raises(TypeError, match="more needs option"):
        harness.parse_settings(Bad, "", [])


# ---- training --------------------------------------------------------------------------------------------------------


def test_first_line_and_epochs(capsys):
    assert run() == 0
    first, *epochs, best = capsys.readouterr().out.splitlines()
    assert first == "bits: 36 lists to train on, 4 for dev; no licence"
    assert len(epochs) == 3 and all("loss" in line and "mean batch" in line for line in epochs)
    assert best.startswith("best dev")


def test_early_stopping_and_the_best_model(tmp_path, capsys):
    """With steps far too big the score gets worse: the model of the best epoch is what is kept."""
    assert (
        run("--epochs", 50, "--patience", 2, "--learning-rate", 3, "--save", tmp_path / "m", "--log", tmp_path / "l")
        == 0
    )
    scores = [e["dev"]["value"] for e in events(tmp_path / "l", "epoch")]
    assert len(scores) < 50 and scores.index(max(scores)) == len(scores) - 3
    recipe = harness.load_recipe(Parity, Settings, str(tmp_path / "m"))
    assert recipe.evaluate(Parity.load_data(recipe.settings).dev).value == pytest.approx(max(scores), abs=1e-6)
    assert recipe.parts == {"longest": 4}


class Flat(Parity):
    """A score that stays the same while the loss gets better, as the error rate of empty answers does."""

    def evaluate(self, examples: list) -> harness.Score:
        return harness.Score(1.0, "error 100%", loss=1 / self.epoch)


def test_what_a_score_holds_may_come_from_numpy():
    """A recipe's mean of an array is float32, which JSON does not know; the run would end with its first epoch."""
    score = harness.Score(np.float32(0.5), loss=np.float32(0.25), n=np.int64(3), each=np.ones(2), bad=np.float32("nan"))
    found = json.loads(json.dumps(score.to_json()))
    assert found == {"value": 0.5, "text": "0.5000", "loss": 0.25, "n": 3, "each": [1, 1]}


def test_the_text_of_an_infinite_score_is_short():
    assert harness.Score(math.inf).text == "inf" and harness.Score(0.5).text == "0.5000"


def test_of_equal_scores_the_smaller_loss_is_better(capsys):
    assert harness.main(Flat, Settings, "A test.", ["--epochs", "8", "--patience", "2"]) == 0
    assert "after epoch 8" in capsys.readouterr().out.splitlines()[-1]


def test_which_score_is_better():
    old = harness.Score(0.5, loss=2.0).to_json()
    assert harness.Score(0.5, loss=1.9).better_than(old) and harness.Score(0.5, loss=1.9).better_than(old, True)
    assert not harness.Score(0.5, loss=2.0).better_than(old) and not harness.Score(0.5).better_than(old)
    assert not harness.Score(0.5, loss=1.0).better_than(harness.Score(0.5).to_json())
    assert harness.Score(0.6, loss=9.0).better_than(old) and not harness.Score(0.6, loss=0.0).better_than(old, True)
    assert harness.Score(0.4, loss=9.0).better_than(old, True) and not harness.Score(0.4, loss=0.0).better_than(old)


def test_other_defaults_for_files(capsys):
    files = {"hidden": 7, "epochs": 9}
    s, given = harness.parse_settings(harness.Settings, "", ["--train", "x"], {}, {"epochs": 9})
    assert s.epochs == 9 and "epochs" not in given
    assert (
        harness.parse_settings(harness.Settings, "", ["--train", "x", "--epochs", "5"], {}, {"epochs": 9})[0].epochs
        == 5
    )
    both = harness.parse_settings(harness.Settings, "", ["--train", "x", "--smoke"], {"epochs": 1}, {"epochs": 9})
    assert both[0].epochs == 1
    assert harness.parse_settings(Settings, "", [], {}, files)[0].hidden == 4
    with pytest.raises(SystemExit):
        harness.parse_settings(Settings, "", ["--help"], {}, files)
    assert "Defaults with --train: --hidden 7, --epochs 9." in capsys.readouterr().out


def test_the_average_is_measured_and_kept(tmp_path, capsys):
    """Its score is that of the model that is saved; training goes on with the weights themselves."""
    common = ["--learning-rate", 0.1, "--log"]
    assert run(*common, tmp_path / "plain") == 0
    assert run(*common, tmp_path / "log", "--average", 0.9, "--save", tmp_path / "m") == 0
    steps = [[e["loss"] for e in events(tmp_path / name, "update")] for name in ("plain", "log")]
    assert steps[0] == steps[1] and len(steps[0]) > 5
    scores, averaged = ([e["dev"]["value"] for e in events(tmp_path / name, "epoch")] for name in ("plain", "log"))
    assert scores != averaged
    recipe = harness.load_recipe(Parity, Settings, str(tmp_path / "m"))
    assert recipe.evaluate(Parity.load_data(recipe.settings).dev).value == pytest.approx(max(averaged), abs=1e-6)
    assert run("--average", 1) == 2
    assert "average: expected at least 0 and below 1, got 1.0" in capsys.readouterr().err


def test_an_average_of_few_updates_is_no_smaller_than_the_weights(tmp_path):
    """It begins at 0: what it has not seen yet is divided out."""
    sizes = []
    for decay in (0, 0.9999):
        assert run("--epochs", 1, "--learning-rate", 0.001, "--average", decay, "--save", tmp_path / "m") == 0
        recipe = harness.load_recipe(Parity, Settings, str(tmp_path / "m"))
        sizes.append(sum(float(abs(p.as_array()).sum()) for p in recipe.model.parameters_list()))
    assert sizes[1] == pytest.approx(sizes[0], rel=0.1)


def test_steps_of_the_average_are_fewer_where_it_remembers_many_updates():
    for decay, every in ((0.999, 10), (0.9999, 10), (0.998, 5), (0.99, 1), (0.5, 1)):
        assert averaging(decay, 100) == (pytest.approx(decay**every), every)


def test_steps_of_the_average_are_many_in_an_epoch(tmp_path):
    """Each epoch is measured as it ended: here of three updates."""
    assert averaging(0.999, 35) == (pytest.approx(0.999**3), 3) and averaging(0.999, 0) == (0.999, 1)
    assert run("--average", 0.999, "--batch", 12, "--log", tmp_path / "l") == 0
    scores = [e["dev"]["value"] for e in events(tmp_path / "l", "epoch")]
    assert len(set(scores)) == 3


def test_nan_stops_with_a_clear_message(capsys):
    assert run("--wreck", 6) == 1
    err = capsys.readouterr().err
    assert "epoch 2, mini-batch 3: the loss is nan" in err and "--learning-rate" in err


def test_scores_without_end(tmp_path, capsys, monkeypatch):
    """An infinite score can be saved and compared; one that is not a number stops the run."""
    scores = iter([-math.inf, -3.0, -2.0, math.nan])
    monkeypatch.setattr(Parity, "evaluate", lambda self, examples: harness.Score(next(scores), "s", more=math.inf))
    assert run("--save", tmp_path / "m", "--log", tmp_path / "l") == 0
    assert "after epoch 3" in capsys.readouterr().out
    assert [e["dev"]["value"] for e in events(tmp_path / "l", "epoch")][1:] == [-3, -2]
    assert run() == 1
    assert "epoch 1: the dev score is not a number" in capsys.readouterr().err


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_schedules(schedule):
    rates = [factor(schedule, step, 100, warmup=10) for step in range(100)]
    assert rates[0] == pytest.approx(1 / 11) and max(rates) <= 1
    assert rates[:10] == sorted(rates[:10])
    if schedule in ("linear", "cosine"):
        assert rates[10] == 1 and rates[10:] == sorted(rates[10:], reverse=True) and rates[-1] < 0.02
    if schedule == "inverse-sqrt":
        assert rates[39] == pytest.approx(math.sqrt(10 / 40))
    assert factor("halve", 3, 10, halvings=2) == 0.25


# ---- resuming --------------------------------------------------------------------------------------------------------


def curve(path: Path) -> list[tuple]:
    """All numbers of a log that do not depend on the clock."""
    out = []
    for e in map(json.loads, path.read_text().splitlines()):
        if e["event"] == "update":
            out.append((e["epoch"], e["batch"], e["loss"], e["learning_rate"]))
        elif e["event"] == "epoch":
            out.append((e["epoch"], e["loss"], e["dev"]["value"]))
    return out


@pytest.mark.parametrize("stop", [1, 2, 5, 7, -2])
@pytest.mark.parametrize("schedule,average", [("cosine", 0), ("halve", 0), ("cosine", 0.9)])
def test_a_resumed_run_gives_the_same_curve(tmp_path, capsys, monkeypatch, stop, schedule, average):
    """Interrupted in the middle of an epoch, at its start, while it is evaluated: bit for bit the same numbers."""
    common = ["--schedule", schedule, "--batch", 8, "--average", average]
    assert run("--save", tmp_path / "a", "--log", tmp_path / "a.log", *common) == 0
    monkeypatch.setattr(Parity, "interrupts", {stop: 1})
    assert run("--save", tmp_path / "b", "--log", tmp_path / "b.log", *common) == 130
    assert f"go on with --resume {tmp_path / 'b'}\n" in capsys.readouterr().out
    random.seed(17)
    np.random.seed(17)
    dy.reset_random_seed(17)
    monkeypatch.setattr(Parity, "interrupts", {})
    assert run("--resume", tmp_path / "b", "--log", tmp_path / "b.log") == 0
    assert curve(tmp_path / "b.log") == curve(tmp_path / "a.log")
    assert (weights(tmp_path / "a") == weights(tmp_path / "b")).all()


@pytest.mark.parametrize("half", [False, True])
def test_ctrl_c_while_random_numbers_go_back_after_an_evaluation(tmp_path, monkeypatch, half):
    """Before they were set, or half way."""
    from dynet_lite.harness import loop

    assert run("--save", tmp_path / "a", "--log", tmp_path / "a.log") == 0
    calls = []

    def interrupted(recipe, numbers):
        calls.append(1)
        if len(calls) == 2:
            if half:
                recipe.random.setstate(random.Random(9).getstate())
            signal.raise_signal(signal.SIGINT)
        set_random(recipe, numbers)

    set_random = loop.set_random
    with monkeypatch.context() as patch:
        patch.setattr(loop, "set_random", interrupted)
        assert run("--save", tmp_path / "b", "--log", tmp_path / "b.log") == 130
    assert len(calls) == 3
    assert run("--resume", tmp_path / "b", "--log", tmp_path / "b.log") == 0
    curve = [[e["loss"] for e in events(tmp_path / f"{name}.log", "update")] for name in "ab"]
    assert curve[0] == curve[1]


def weights(path: Path) -> np.ndarray:
    model = harness.load_recipe(Parity, Settings, str(path)).model
    return np.concatenate([p.as_array().ravel() for p in model.parameters_list() + model.lookup_parameters_list()])


def test_interrupted_twice_at_once(tmp_path, capsys, monkeypatch):
    """The second Ctrl-C does not wait for the end of the update: the run goes on from the last whole epoch."""
    assert run("--save", tmp_path / "a", "--log", tmp_path / "a.log", "--batch", 8) == 0
    monkeypatch.setattr(Parity, "interrupts", {7: 2})
    assert run("--save", tmp_path / "b", "--log", tmp_path / "b.log", "--batch", 8) == 130
    assert "from the last complete epoch" in capsys.readouterr().out
    monkeypatch.setattr(Parity, "interrupts", {})
    assert run("--resume", tmp_path / "b", "--log", tmp_path / "b.log") == 0
    assert curve(tmp_path / "b.log") == curve(tmp_path / "a.log")


def test_a_finished_run_goes_on_with_more_epochs(tmp_path, capsys):
    assert run("--save", tmp_path / "a", "--log", tmp_path / "a.log", "--epochs", 4) == 0
    assert run("--save", tmp_path / "b", "--log", tmp_path / "b.log", "--epochs", 2) == 0
    assert run("--resume", tmp_path / "b", "--log", tmp_path / "b.log", "--epochs", 4) == 0
    assert curve(tmp_path / "a.log") == curve(tmp_path / "b.log")
    assert run("--resume", tmp_path / "b", "--hidden", 9) == 2
    out, err = capsys.readouterr()
    assert "hidden = 4" in err and "epochs are done" not in out
    assert run("--resume", tmp_path / "b.state") == 0
    assert "4 epochs are done: nothing is left of --epochs 4" in capsys.readouterr().out


def test_a_tiny_run_goes_on_as_one(tmp_path):
    assert run("--smoke", "--save", tmp_path / "a", "--log", tmp_path / "a.log", "--epochs", 3) == 0
    assert run("--smoke", "--save", tmp_path / "b", "--log", tmp_path / "b.log", "--epochs", 2) == 0
    assert run("--resume", tmp_path / "b", "--log", tmp_path / "b.log", "--epochs", 3) == 0
    assert curve(tmp_path / "a.log") == curve(tmp_path / "b.log")


def test_a_run_that_goes_on_in_another_file_has_the_best_model_there(tmp_path, monkeypatch):
    """Although no later epoch is better, or there is none."""
    common = ["--learning-rate", 1, "--batch", 8, "--patience", 0, "--epochs", 4]  # an early epoch is the best one
    assert run("--save", tmp_path / "a", "--log", tmp_path / "a.log", *common) == 0
    monkeypatch.setattr(Parity, "interrupts", {-4: 1})
    assert run("--save", tmp_path / "b", "--log", tmp_path / "b.log", *common) == 130
    monkeypatch.setattr(Parity, "interrupts", {})
    old = (tmp_path / "b").read_bytes(), (tmp_path / "b.state").read_bytes()
    assert run("--resume", tmp_path / "b", "--save", tmp_path / "c", "--log", tmp_path / "b.log") == 0
    assert run("--resume", tmp_path / "c", "--save", tmp_path / "d") == 0
    assert curve(tmp_path / "a.log") == curve(tmp_path / "b.log")
    assert old == ((tmp_path / "b").read_bytes(), (tmp_path / "b.state").read_bytes())
    for name in "cd":
        assert (weights(tmp_path / "a") == weights(tmp_path / name)).all()
        assert dy.read_checkpoint(tmp_path / f"{name}.state").config["best"]["epoch"] < 4


def test_ctrl_c_after_the_last_epoch_keeps_the_state(tmp_path, monkeypatch):
    """While the best model is measured on the test data, the weights are not those of training."""
    data = Parity.load_data(Settings())
    common = ["--learning-rate", 1, "--batch", 8, "--patience", 0]  # the last epoch is not the best one
    monkeypatch.setattr(
        Parity, "load_data", lambda s: harness.Data("bits", "", data.train, data.dev, data.dev, unit="lists")
    )
    assert run("--save", tmp_path / "a", "--log", tmp_path / "a.log", "--epochs", 6, *common) == 0
    close = harness.loop.set_weights

    def interrupted(model, arrays):
        close(model, arrays)
        signal.raise_signal(signal.SIGINT)

    with monkeypatch.context() as patch:
        patch.setattr(harness.loop, "set_weights", interrupted)
        assert run("--save", tmp_path / "b", "--log", tmp_path / "b.log", "--epochs", 4, *common) == 130
    state = harness.state.read(str(tmp_path / "b.state"), Parity).config
    assert state["best"]["epoch"] < 4  # else this test tests nothing
    assert run("--resume", tmp_path / "b", "--log", tmp_path / "b.log", "--epochs", 6) == 0
    assert curve(tmp_path / "a.log") == curve(tmp_path / "b.log")


def test_ctrl_c_before_the_first_update_keeps_old_files(tmp_path, capsys, monkeypatch):
    assert run("--save", tmp_path / "m", "--epochs", 1) == 0
    old = [(tmp_path / name).read_bytes() for name in ("m", "m.state")]
    monkeypatch.setattr(harness.loop.Training, "_say_baseline", lambda *_: signal.raise_signal(signal.SIGINT))
    assert run("--save", tmp_path / "m", "--hidden", 5) == 130
    assert [(tmp_path / name).read_bytes() for name in ("m", "m.state")] == old


def test_two_runs_with_one_seed_are_one(tmp_path):
    for name in "ab":
        assert run("--log", tmp_path / name) == 0
    assert curve(tmp_path / "a") == curve(tmp_path / "b")
    assert run("--log", tmp_path / "c", "--seed", 2) == 0
    assert curve(tmp_path / "a") != curve(tmp_path / "c")


def test_load_begins_with_the_weights(tmp_path, capsys):
    assert run("--save", tmp_path / "a", "--hidden", 6, "--log", tmp_path / "a.log") == 0
    assert run("--load", tmp_path / "a", "--log", tmp_path / "b.log", "--epochs", 1, "--dropout", 0) == 0
    (start,) = events(tmp_path / "b.log", "start")
    assert start["settings"]["hidden"] == 6 and start["settings"]["dropout"] == 0
    assert events(tmp_path / "b.log", "epoch")[0]["loss"] < events(tmp_path / "a.log", "epoch")[0]["loss"]
    capsys.readouterr()
    assert run("--load", tmp_path / "a", "--hidden", 7, "--batch", 3) == 2
    assert capsys.readouterr().err.endswith("a was made with hidden = 6, not 7\n")


@pytest.mark.parametrize("name", ["m", "m.state"])
def test_damaged_files(tmp_path, capsys, name):
    assert run("--save", tmp_path / "m", "--epochs", 1) == 0
    whole = (tmp_path / name).read_bytes()
    for part in (whole[: len(whole) // 2], b"", b"nonsense"):
        (tmp_path / name).write_bytes(part)
        assert run("--load" if name == "m" else "--resume", tmp_path / "m") == 2
        assert name in capsys.readouterr().err
    assert run("--load", tmp_path / "none") == 2


# ---- reports, predictions, comparison --------------------------------------------------------------------------------


def test_picture(tmp_path):
    pytest.importorskip("matplotlib")
    assert run("--plot", tmp_path / "curve.svg", "--epochs", 2) == 0
    picture = (tmp_path / "curve.svg").read_text()
    assert all(f"<!-- {text} -->" in picture for text in ("epoch", "training loss", "dev score"))


def test_tensorboard(tmp_path):
    pytest.importorskip("tensorboardX")
    assert run("--tensorboard", tmp_path / "board", "--epochs", 1) == 0
    (written,) = (tmp_path / "board").iterdir()
    assert [written.read_bytes().count(name) for name in (b"loss", b"learning_rate", b"dev")] == [3, 3, 1]


def test_missing_extras_are_told_at_the_start(tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorboardX", None)
    assert run("--tensorboard", tmp_path / "board") == 2
    assert "dynet_lite[tensorboard]" in capsys.readouterr().err


def test_a_folder_that_is_not_there_is_told_at_the_start(tmp_path, capsys):
    for option_name in ("--save", "--plot", "--log"):
        assert run(option_name, tmp_path / "none" / "file") == 2
        printed = capsys.readouterr()
        assert "none" in printed.err and "epoch" not in printed.out


def test_a_folder_is_no_file(tmp_path, capsys):
    (tmp_path / "m.state").mkdir()
    for option_name, path in (("--save", tmp_path), ("--save", tmp_path / "m"), ("--plot", tmp_path)):
        assert run(option_name, path) == 2
        printed = capsys.readouterr()
        assert "expected a file name in an existing folder" in printed.err and "epoch" not in printed.out


def test_a_picture_of_an_unknown_kind_is_told_at_the_start(tmp_path, capsys):
    pytest.importorskip("matplotlib")
    assert run("--plot", tmp_path / "curve.txt") == 2
    printed = capsys.readouterr()
    assert "ends in one of" in printed.err and "epoch" not in printed.out


def test_files_that_are_read_are_not_written_over(tmp_path, capsys):
    model, text = tmp_path / "m", tmp_path / "in.txt"
    assert run("--save", model, "--epochs", 1) == 0
    text.write_text("101\n")
    (tmp_path / "link").symlink_to(text)
    (tmp_path / "a.toml").write_text("hidden = 3\n")
    whole = model.read_bytes()
    for wrong in (
        ["predict", "--load", model, "--output", text, text],
        ["predict", "--load", model, "--output", tmp_path / "link", text],
        ["predict", "--load", model, "--output", model, text],
        ["export", "--load", model, "--to", model],
        ["--load", model, "--log", model],
        ["--save", tmp_path / "n", "--log", tmp_path / "n.state"],
        ["--save", tmp_path / "n", "--plot", tmp_path / "n"],
        ["--config", tmp_path / "a.toml", "--save", tmp_path / "a.toml"],
    ):
        capsys.readouterr()
        assert run(*wrong) == 2
        assert "expected another file, for" in capsys.readouterr().err
    assert model.read_bytes() == whole and text.read_text() == "101\n"
    assert (tmp_path / "a.toml").read_text() == "hidden = 3\n"
    assert run("--load", model, "--save", model, "--epochs", 1) == 0  # trained on


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the system has no disk that is always full")
@pytest.mark.parametrize("option", ["--save", "--log"])
@pytest.mark.filterwarnings("error::pytest.PytestUnraisableExceptionWarning")
def test_a_full_disk_is_told_with_the_file(capsys, option):
    assert run(option, "/dev/full") == 2
    assert capsys.readouterr().err == "error: /dev/full: No space left on device\n"


def test_endless_messages_are_cut(capsys, monkeypatch):
    def load_data(s: Settings) -> harness.Data:
        raise dy.DataError("a:1: expected columns, got " + "x" * 100_000 + " at its end")

    monkeypatch.setattr(Parity, "load_data", load_data)
    assert run() == 2
    err = capsys.readouterr().err
    assert len(err) < 2100 and err.startswith("error: a:1: expected") and err.endswith("at its end\n")


def test_predict(tmp_path, capsys):
    assert run("--save", tmp_path / "m", "--epochs", 1) == 0
    text = tmp_path / "in.txt"
    text.write_text("101\n\n" + "1\n" * 70)
    capsys.readouterr()
    assert run("predict", "--load", tmp_path / "m", text) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 72 and lines[0].split()[0] == "101" and lines[1] == ""
    assert run("predict", "--load", tmp_path / "m", "--output", tmp_path / "out.txt", text, text) == 0
    assert (tmp_path / "out.txt").read_text().splitlines() == lines * 2
    assert run("predict", "--load", tmp_path / "m", tmp_path / "none.txt") == 2


@pytest.mark.skipif(sys.platform == "win32", reason="no pipes of that kind")
def test_a_reader_that_has_read_enough_is_no_error(tmp_path):
    recipe = Path(__file__).resolve().parents[2] / "recipes" / "dan_classifier.py"
    process = subprocess.Popen([sys.executable, str(recipe), "--epochs", "100", "--patience", "0"], cwd=tmp_path,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)  # fmt: skip
    assert process.stdout is not None and process.stderr is not None
    process.stdout.readline()
    process.stdout.close()
    assert process.wait(60) == 141 and process.stderr.read() == b""
    process.stderr.close()


def test_compare(capsys):
    assert run("--compare", "--epochs", 1) == 0
    out = capsys.readouterr().out
    assert "dropout is off" in out
    assert float(out.split("by ")[-1].split()[0]) <= 1e-5
    sizes = re.findall(r"^autobatch (on |off)  epoch 1 .* mean batch ([\d.]+)$", out, re.MULTILINE)
    assert [name for name, _ in sizes] == ["on ", "off"] and float(sizes[0][1]) > float(sizes[1][1]) == 1


def test_compare_shows_losses_that_differ(capsys, monkeypatch):
    plain = Parity.loss
    monkeypatch.setattr(Parity, "loss", lambda self, batch: plain(self, batch) * (2 - dy.config.get("autobatch")))
    assert run("--compare", "--epochs", 1) == 0
    assert "losses differ by 5.0e-01 in the first mini-batch" in capsys.readouterr().out


def test_the_settings_of_the_engine_are_put_back():
    before = dy.config.settings()
    assert run("--epochs", 1, "--no-autobatch", "--strategy", "agenda", "--threads", 2) == 0
    assert dy.config.settings() == before
