"""Training files that need not fit into memory: whether they are streamed, what a mini-batch of them is, and how far a run is."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

from tqdm import tqdm

from dynet_lite import distributed
from dynet_lite.errors import DataError
from dynet_lite.text import Source, Stream

from .settings import Settings

__all__ = ["Pace", "stream_of", "stream_over", "streamed"]

LARGE = 256 << 20  # bytes of files that are streamed by themselves
SILENCE = 60.0  # seconds between two lines that say how far the run is

Sources = Callable[[str], "tuple[Source, Callable[[Any], Any] | None]"]


def streamed(s: Settings, sources: Callable[[str], object] | None) -> bool:
    """Whether the files of --train are streamed. sources(path): DataError or None for a file that has to be read whole; None if
    the recipe cannot stream."""
    wanted = getattr(s, "stream", "off")
    if wanted == "on" and not s.train:
        raise DataError("--stream on needs files: --train FILE ...")
    if sources is None or not s.train or wanted != "auto":
        return wanted == "on"
    if not s.dev or sum(map(os.path.getsize, s.train)) <= LARGE:
        return False
    try:
        return all(sources(path) for path in s.train)
    except DataError:  # a form that is read whole
        return False


def stream_of(s: Settings, sources: Sources) -> Stream[Any]:
    """The training examples. sources(path): what a file holds, and what is taken of an example; all files must hold the same."""
    found = [sources(path) for path in s.train]
    source, take = found[0]
    for path, (other, _) in zip(s.train, found, strict=True):
        if vars(other) != vars(source) or type(other) is not type(source):
            raise DataError(f"{path}: expected the same kind of file as {s.train[0]}")
    return stream_over(s, s.train, source, take)


def stream_over(
    s: Settings, files: Sequence[str | Sequence[str]], source: Source, take: Callable[[Any], Any] | None = None
) -> Stream[Any]:
    """The examples of `files`, as Stream takes them, after a first pass that counts them and shows how far it is."""
    if not s.dev:
        raise DataError("--stream needs --dev FILE: a stream cannot set aside its end")
    stream: Stream[Any] = Stream(files, source, batch=s.batch, window=getattr(s, "window", 200), take=take)
    bar = tqdm(
        total=sum(stream.sizes),
        unit="B",
        unit_scale=True,
        desc="counting",
        leave=False,
        disable=True if distributed.current().rank else None,
    )
    stream.progress = lambda done: bar.update(done - bar.n) and None
    with bar:
        _ = stream.counted
    stream.progress = None
    return stream


class Pace:
    """Says once a minute how far an epoch is and how long it will take, where there is no terminal to show a bar on."""

    def __init__(self, say: Callable[[str], None], number: int, total: int, done: int, unit: str, quiet: bool) -> None:
        self.say, self.number, self.total, self.unit, self.quiet = say, number, total, unit, quiet
        self.first = done
        self.start = self.last = time.monotonic()

    def step(self, done: int, loss: float, speed: float) -> None:
        """done: mini-batches of the epoch; speed: examples per second."""
        now = time.monotonic()
        if self.quiet or now - self.last < SILENCE:
            return
        self.last = now
        left = (now - self.start) / max(1, done - self.first) * (self.total - done)
        self.say(
            f"epoch {self.number:2}  {done:,} of {self.total:,} mini-batches ({done / self.total:.1%})  loss {loss:.4f}  "
            f"{speed:,.0f} {self.unit}/s  {timedelta(seconds=round(left))} left"
        )
