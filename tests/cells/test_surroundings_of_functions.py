"""What a function reads of its context, of its thread and of the environment: it is recorded anew when that changes."""

from __future__ import annotations

import contextvars
import os
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import dynet_lite as dy

training: contextvars.ContextVar[Any] = contextvars.ContextVar("training", default=2.0)
unset: contextvars.ContextVar[float] = contextvars.ContextVar("unset")
in_thread = threading.local()
NAME = "DYNET_LITE_TEST_SCALE"


class OfThread(threading.local):
    scale = 2.0

    def __init__(self) -> None:
        self.settings = {"scale": 2.0}


class Holder:
    def __init__(self) -> None:
        self.scale = 2.0
        self.here = threading.local()
        self.here.scale = 2.0


derived, holder = OfThread(), Holder()


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    token = training.set(2.0)
    in_thread.__dict__.clear()
    derived.__dict__.clear()
    derived.__init__()  # type: ignore[misc]
    holder.__init__()  # type: ignore[misc]
    monkeypatch.setenv(NAME, "2")
    yield
    training.reset(token)


def set_in_object() -> None:
    training.set(holder)
    holder.scale = 3.0


READS: dict[str, tuple[Callable[[], Any], Callable[[], Any]]] = {
    "context variable": (lambda: training.get(), lambda: training.set(3.0)),
    "its default": (lambda: unset.get(2.0), lambda: unset.set(3.0)),
    "what is in it": (lambda: getattr(training.get(), "scale", 2.0), set_in_object),
    "of a thread": (
        lambda: in_thread.scale if hasattr(in_thread, "scale") else 2.0,
        lambda: setattr(in_thread, "scale", 3.0),
    ),
    "asked for": (lambda: getattr(in_thread, "scale", 2.0), lambda: setattr(in_thread, "scale", 3.0)),
    "derived": (lambda: derived.scale, lambda: setattr(derived, "scale", 3.0)),
    "inside of derived": (lambda: derived.settings["scale"], lambda: derived.settings.update(scale=3.0)),
    "in an object": (lambda: holder.here.scale, lambda: setattr(holder.here, "scale", 3.0)),
    "environment": (lambda: float(os.environ[NAME]), lambda: os.environ.update({NAME: "3"})),
    "environment, get": (lambda: float(os.environ.get(NAME, "1")), lambda: os.environ.update({NAME: "3"})),
    "environment, getenv": (lambda: float(os.getenv(NAME, "1")), lambda: os.environ.update({NAME: "3"})),
}


@pytest.mark.parametrize("kind", ["compiled", "cell"])
@pytest.mark.parametrize("name", READS)
def test_a_change_is_noticed(name: str, kind: str) -> None:
    read, change = READS[name]

    def f(x: Any) -> Any:
        return x * read()

    made: Any = dy.compile(f) if kind == "compiled" else dy.cell(f)

    def called() -> list[float]:
        dy.renew_cg()
        return (made(np.ones(2)) if kind == "compiled" else made(dy.ones(2)).npvalue()).tolist()

    def both() -> None:
        assert called() == called() == [2, 2]
        change()
        assert called() == called() == [3, 3]

    contextvars.copy_context().run(both)
    if kind == "compiled":
        assert made.structures() == 1


@pytest.mark.parametrize("kind", ["in_thread", "derived"])
def test_another_thread_has_others(kind: str) -> None:
    value: Any = globals()[kind]
    value.scale = 2.0
    f = dy.compile(lambda x: x * value.scale)
    found = [f(np.ones(1))]

    def run() -> None:
        value.scale = 5.0
        found.append(f(np.ones(1)))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    found.append(f(np.ones(1)))
    assert found == [2, 5, 2]
