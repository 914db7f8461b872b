"""Trainer: any trainer, with the gradients of all ranks added up before each update.

After that every rank makes the same update by itself: clipping sees the norm of the sum, and weight decay, moments and
moving averages are the same everywhere without another message. Tables send the rows that were touched, and their numbers.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any

import numpy as np

from dynet_lite import _core
from dynet_lite import trainers as _trainers

from .buckets import Buckets
from .world import Alone, NotAlike, World, current

__all__ = ["Trainer"]


class Trainer:
    """Wraps a trainer of dynet_lite for all ranks: Trainer(dy.AdamTrainer(model)).

    Make it on every rank at the same point of the program. It raises NotAlike unless the ranks have equal parameters,
    trainers and settings. It gives all ranks the weights of rank 0, and each rank its own random numbers for dropout.
    Everything else is passed on to the trainer inside: learning_rate, set_clip_threshold(), state_dict(), ...

    The loss of a rank is its part of the sum: divide by the number of examples in the whole mini-batch.

    world: by default that of init()
    bucket: gradients are sent in messages of about this many bytes; a larger gradient is sent alone
    """

    _own = frozenset(("trainer", "world", "_layout", "_digest", "_agreed", "_buckets", "_sent", "_shared", "_least"))

    def __init__(self, trainer: _trainers.Trainer, world: Alone | None = None, bucket: int = 1 << 20) -> None:
        if not isinstance(trainer, _trainers.Trainer):
            raise TypeError(f"[distributed.Trainer] a trainer is needed; got {type(trainer).__name__}")
        if world is not None and not isinstance(world, Alone):
            raise TypeError(f"[distributed.Trainer] world: that of init() is needed; got {type(world).__name__}")
        self.trainer = trainer
        self.world = current() if world is None else world
        self._layout: Any = None
        self._digest = self._agreed = 0
        self._buckets: Any = None
        self._sent: Any = None  # the digest and the number of backward passes when backward() was done
        self._shared = 0
        self._least = bucket
        if isinstance(self.world, World):
            self._begin(self.world)

    def _begin(self, world: World) -> None:
        inner = self.trainer
        members = inner.model._all
        settings = {k: inner._setting(k) for k in inner._settings()}
        world.agree(
            parameters=[(p.name(), p.shape(), p.is_updated()) for p in members],
            trainer=type(inner).__name__,
            settings=settings,
            weight_decay=inner.decay(),
            bucket=self._least,
        )
        self.share_weights()
        # Every rank has its own dropout; random numbers that programs draw themselves stay the same on all.
        _core.set_seed_state((_core.get_seed_state() + 0x9E3779B97F4A7C15 * world.rank) % 2**64)

    def share_weights(self) -> None:
        """Gives all ranks the weights of rank 0."""
        world = self.world
        members = self.trainer.model._all
        values = world.first(lambda: [p._values() for p in members])
        for p, v in zip(members, values, strict=True):
            if isinstance(p, _core.LookupParameters):
                p.init_from_array(v)  # on rank 0, too: a row owes weight decay on all ranks, or on none
                p._share()
            elif world.rank:
                p.set_value(v)
        self._shared = len(members)

    def check_weights(self) -> None:
        """Raises NotAlike on every rank unless all have the same weights, bit for bit."""
        sums = [(p.name(), zlib.crc32(p._values().tobytes())) for p in self.trainer.model._all]
        self.world.agree(weights=sums)

    # ---- the update ------------------------------------------------------------------------------------------------

    def backward(self, loss: _core.Expression) -> None:
        """Like loss.backward(), but sends each gradient as soon as it is complete.

        It must be the last backward pass before update(); earlier passes are loss.backward(). RuntimeError if another
        pass follows. In the first step, and after parameters were frozen or unfrozen, nothing is sent before
        update(). Meanwhile, other Python threads must not touch the model.
        """
        _core.settle_steps()
        if self._sent is not None:
            raise RuntimeError(
                "[distributed.Trainer] backward() is called once before each update(); earlier passes: loss.backward()"
            )
        if not isinstance(self.world, World):
            loss.backward()
            return
        weights, _ = self._members()
        if self._digest != self._agreed or not weights:
            loss.backward()
            return
        if len(self._buckets) > 1:
            self._buckets.begin(weights)
            _core._backward_watched(loss, weights, self._buckets.complete)
        else:  # which update() sends
            loss.backward()
        self._sent = self._digest, _core._backward_calls()

    def update(self) -> None:
        """Adds up the gradients of all ranks, then makes the same update on each. Errors are those of the trainer
        inside.

        Every rank must call it equally often, with or without examples. It does not wait for the others: the sums and the
        update itself are put off until somebody looks at a weight or a gradient, as a rule the next forward pass, so
        that the next graph is built meanwhile. Errors are raised there, on all ranks. With configure(overlap=False)
        they are raised here.
        """
        finish = self._start()
        inner = self.trainer
        if finish is None or not _core.settings.overlap or not inner._can_wait() or _core.settings.is_dynet:
            if finish is not None:
                finish()
            inner.update()
            return
        try:
            step = inner._begin_update()
        except BaseException:
            finish()  # all ranks have begun to add up
            raise
        _core.weights_changed()

        def rest() -> None:
            try:
                finish()
            except BaseException:
                inner._not_updated()
                raise
            inner._updater.update(inner, *step, "overlap")

        _core.put_off(rest)

    def add_up(self, *numbers: float) -> Any:
        """Only adds up: afterwards every rank has the same gradients. Takes up to four numbers, and returns those of all
        ranks: (size, n).

        ValueError for more numbers. RankFailed if another rank has failed, NotAlike if the models have come to differ.
        """
        if len(numbers) > 4:
            raise ValueError(f"[distributed.Trainer] add_up() takes up to four numbers; got {len(numbers)}")
        finish = self._start(*numbers)
        return np.array([numbers], dtype=np.float64) if finish is None else finish()

    def _start(self, *numbers: float) -> Callable[[], Any] | None:
        """Begins to add up. What is returned waits for the others, after which the gradients are the sums, and returns the
        numbers of all. None in a world of one.
        """
        world = self.world
        if not isinstance(world, World):
            return None
        _core.settle_steps()
        pace = world.pace.end()
        weights, tables = self._members()
        if self._sent is not None and self._sent != (self._digest, _core._backward_calls()):
            raise RuntimeError(
                "[distributed.Trainer] a backward pass, or a change of what is trained, came after backward(): it is lost"
            )
        buckets, digest = self._buckets, self._digest
        early = world.lays_down or digest == self._agreed
        if early:  # else the others may have other buckets, which the heads tell, and would wait for messages
            buckets.flush()
        size = _core._rows_size(tables)
        laid = world.lay_rows(tables, size) if tables else None
        heads = world.start_head("update", size, pace, *numbers, digest=digest)

        def finish() -> Any:
            every, rows = heads(), None
            if not early:
                buckets.flush()
            if tables and laid is None:
                sizes = [int(n) for n in every[:, 0]]
                rows = world.start_gather(lambda place: _core._pack_rows(tables, place), sizes)
            buckets.finish()
            if laid is not None:
                laid.set_rows(tables)
            elif rows is not None:
                _core._set_rows(tables, rows())
            self._sent, self._agreed = None, digest
            world.pace.learn(every[:, 1])
            return every[:, 2:]

        return finish

    def _members(self) -> tuple[list[Any], list[Any]]:
        """The parameters and tables that are trained; self._digest says which."""
        members = self.trainer.model._all
        layout = _core._which_are_updated(members)
        if self._layout is None or self._layout[0] != layout:
            if len(members) > self._shared:
                raise NotAlike(
                    "[distributed] parameters were added after distributed.Trainer was made; call share_weights()"
                )
            trained = [p for p in members if p.is_updated()]
            tables = [p for p in trained if isinstance(p, _core.LookupParameters)]
            weights = [p for p in trained if not isinstance(p, _core.LookupParameters)]
            self._layout = layout, weights, tables
            if isinstance(self.world, World):
                self._buckets = Buckets(self.world, weights, self._least)
            self._digest = zlib.crc32(repr([(p.name(), p.shape()) for p in trained]).encode())
        return self._layout[1], self._layout[2]

    # ---- the trainer inside ----------------------------------------------------------------------------------------

    def __getattr__(self, name: str) -> Any:
        if name in Trainer._own:
            raise AttributeError(name)
        return getattr(self.trainer, name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in Trainer._own:
            object.__setattr__(self, name, value)
        else:
            setattr(self.trainer, name, value)

    def __repr__(self) -> str:
        return f"<distributed {self.trainer!r} on {self.world!r}>"
