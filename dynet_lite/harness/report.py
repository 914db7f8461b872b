"""What a run says about itself: lines for people, a JSONL file, TensorBoard, a picture of the learning curve."""

from __future__ import annotations

import importlib
import json
import os
import stat
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from dynet_lite.errors import DataError
from dynet_lite.files import naming

from .settings import Settings, to_dict

if TYPE_CHECKING:
    from .loop import Epoch
    from .recipe import Score

__all__ = ["Report", "draw", "keep_apart", "needed"]


def needed(module: str, extra: str, what: str) -> Any:
    """An optional module; DataError that says how to get it."""
    try:
        return importlib.import_module(module)
    except ImportError:
        name = module.split(".")[0]
        raise DataError(f"{what} needs {name}: pip install {name}, or dynet_lite[{extra}]") from None


class Report:
    """Where a run reports to. Fails at the start, not after hours, when something that it needs is missing."""

    def __init__(self, s: Settings, resumed: bool = False) -> None:
        for path in (s.save, s.save and s.save + ".state", s.plot):
            if path and (os.path.isdir(path) or not os.path.isdir(os.path.dirname(path) or ".")):
                raise DataError(f"{path}: expected a file name in an existing folder")
        self._log = open(s.log, "ab" if resumed else "wb") if s.log else None
        self._board = (
            needed("tensorboardX", "tensorboard", "--tensorboard").SummaryWriter(s.tensorboard)
            if s.tensorboard
            else None
        )
        if s.plot:
            _check_ending(s.plot)

    def say(self, text: str) -> None:
        """A line for people."""
        print(text, flush=True)

    def start(self, s: Settings, data: str) -> None:
        self._write({"event": "start", "data": data, "settings": to_dict(s)})

    def step(self, epoch: int, batch: int, update: int, loss: float, rate: float) -> None:
        self._write({"event": "update", "epoch": epoch, "batch": batch, "loss": loss, "learning_rate": rate})
        if self._board:
            self._board.add_scalar("loss", loss, update)
            self._board.add_scalar("learning_rate", rate, update)

    def epoch(self, epoch: Epoch, score: Score, unit: str) -> None:
        self.say(
            f"epoch {epoch.number:2}  loss {epoch.loss:.4f}  dev {score.text}  {epoch.speed:,.0f} {unit}/s  "
            f"mean batch {epoch.mean_batch:.1f}"
        )
        self._write(
            {"event": "epoch", "epoch": epoch.number, "loss": epoch.loss, "dev": score.to_json(),
             "seconds": round(epoch.seconds, 3), "mean_batch": round(epoch.mean_batch, 2)}
        )  # fmt: skip
        if self._board:
            self._board.add_scalar("dev", score.value, epoch.number)
            self._board.flush()

    def end(
        self, epochs: Sequence[Epoch], best: dict[str, Any] | None, test: Score | None, plot: str, score_name: str
    ) -> None:
        self._write({"event": "end", "best": best, "test": test.to_json() if test else None})
        if plot and epochs:
            draw(epochs, plot, score_name)
        if self._log:
            self._log.close()
        if self._board:
            self._board.close()

    # ---- the log file: a resumed run goes on where its state was written -----------------------------------------------

    def _write(self, event: dict[str, Any]) -> None:
        if self._log:
            with naming(self._log.name):
                try:
                    self._log.write(json.dumps(event, ensure_ascii=False).encode() + b"\n")
                    if event["event"] != "update":
                        self._log.flush()
                except OSError:
                    with suppress(OSError):  # what it holds is not tried again at the end of Python
                        self._log.close()
                    raise

    def log_size(self) -> int:
        """Bytes written so far."""
        if not self._log:
            return 0
        self._log.flush()
        return os.fstat(self._log.fileno()).st_size

    def cut_log(self, size: int) -> None:
        """Drop what was written after the state."""
        if self._log and 0 < size < self.log_size():
            self._log.truncate(size)


def keep_apart(written: Mapping[str, str], read: Iterable[str]) -> None:
    """DataError if a file is to be written over one that is read, or two over each other. written: option -> its file."""
    taken = {_place(path): f"{path} is read" for path in read if path not in ("", "-")}
    for option, path in written.items():
        if path and _place(path) in taken:
            raise DataError(f"{option} {path}: expected another file, for {taken[_place(path)]}")
        if path and os.path.realpath(path) != os.path.realpath(os.devnull):
            taken[_place(path)] = f"{option} writes this one"


def _place(path: str) -> Any:
    """Equal for two names of one file."""
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return os.path.realpath(path)
    return (found.st_dev, found.st_ino) if found.st_ino and stat.S_ISREG(found.st_mode) else os.path.realpath(path)


def _check_ending(path: str) -> None:
    """DataError if there is no picture with this ending."""
    known = needed("matplotlib.backend_bases", "plot", "--plot").FigureCanvasBase.get_supported_filetypes()
    ending = os.path.splitext(path)[1][1:].lower()
    if ending and ending not in known:
        raise DataError(f"--plot {path}: expected a name that ends in one of {', '.join(sorted(known))}")


def draw(epochs: Sequence[Epoch], path: str, score_name: str = "score") -> None:
    """The learning curve: training loss and dev score by epoch."""
    figures = needed("matplotlib.figure", "plot", "--plot")
    numbers = [epoch.number for epoch in epochs]
    figure = figures.Figure(figsize=(7, 4), layout="constrained")
    left = figure.add_subplot()
    right = left.twinx()
    left.plot(numbers, [epoch.loss for epoch in epochs], color="tab:blue", marker=".")
    left.set_xlabel("epoch")
    left.xaxis.get_major_locator().set_params(integer=True)
    left.set_ylabel("training loss", color="tab:blue")
    right.plot(
        numbers, [epoch.score["value"] if epoch.score else None for epoch in epochs], color="tab:red", marker="."
    )
    right.set_ylabel(f"dev {score_name}", color="tab:red")
    figure.savefig(path)
