"""Sums of the gradients of dense parameters over the ranks, in buckets that are sent while backward still runs.

A bucket is some parameters whose gradients together are one message. The last parameters of a model come first: as a
rule they are used last and their gradients are complete first. All ranks send the same buckets in the same order,
whatever their graphs are like; what is complete too early waits. A gradient that fills a bucket is summed up where it
lies.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from dynet_lite import _core

from .board import Laid

if TYPE_CHECKING:
    from .world import World

__all__ = ["Buckets"]


class _Bucket:
    """Some parameters. flagged: those of which it also says who has a gradient; alone: where MPI adds up, that is done where
    the gradient lies.
    """

    def __init__(self, parameters: list[Any], flagged: list[Any], alone: bool = False) -> None:
        self.parameters, self.flagged, self.alone = parameters, flagged, alone
        self.size = sum(map(_size, parameters))
        self.count = self.size + len(flagged)
        self._numbers: Any = None

    def numbers(self) -> Any:
        """What MPI adds up."""
        if self.alone:  # in each step: where graphs run on a GPU, the newest numbers come from there
            return _core._gradient_view(self.parameters[0])
        if self._numbers is None:
            self._numbers = np.empty(self.count, np.float32)
        _core._gather_grads(self.parameters, self._numbers, self.flagged)
        return self._numbers

    def empty(self, touched: Any) -> None:
        """The sums that MPI has made become the gradients."""
        if not self.alone:
            _core._scatter_grads(self.parameters, self._numbers, touched)
            return
        for p, n in zip(self.parameters, touched, strict=True):
            _core._touched(p, n > 0)

    def flags(self) -> Any:
        """How many ranks have a gradient of each of `flagged`, when MPI has added up."""
        return self._numbers[self.size :].copy()


class Buckets:
    """The buckets of some parameters; `least` bytes make a bucket full. The last one also says who has a gradient at all."""

    def __init__(self, world: World, parameters: list[Any], least: int) -> None:
        self.world = world
        self.order = list(reversed(parameters))
        self._all = self._cut(least)
        self._waiting: set[int] = set()  # ids of parameters that are not complete
        self._sent: list[Any] = []  # requests of the buckets that are sent, the first ones
        self._under_way: list[Any] = []  # of these perhaps not done

    def __len__(self) -> int:
        return len(self._all)

    def _cut(self, least: int) -> list[_Bucket]:
        out: list[_Bucket] = []
        group: list[Any] = []

        def close(flagged: list[Any] | None = None) -> None:
            nonlocal group
            out.append(_Bucket(group, flagged or []))
            group = []

        for p in self.order:
            if 4 * _size(p) >= least:
                if group:
                    close()
                out.append(_Bucket([p], [], True))
                continue
            group.append(p)
            if 4 * sum(map(_size, group)) >= least:
                close()
        if self.order:
            close(self.order)
        return out

    # ---- a step ----------------------------------------------------------------------------------------------------

    def begin(self, expected: list[Any]) -> None:
        """These parameters will be told to complete()."""
        self._waiting = {id(p) for p in expected}

    def complete(self, parameters: list[Any]) -> None:
        """Nothing will be added to these gradients; sends the buckets that are complete, after those before them. With
        an empty list
        what is under way goes on: an MPI does nothing while nobody calls it."""
        if parameters:
            self._waiting.difference_update(map(id, parameters))
            while len(self._sent) < len(self._all) - 1 and not self._waiting.intersection(
                map(id, self._all[len(self._sent)].parameters)
            ):
                self._send()
        while self._under_way and self._under_way[0].Test():
            del self._under_way[0]

    def flush(self) -> None:
        """Sends what is left: all gradients are complete."""
        while len(self._sent) < len(self._all):
            self._send()

    def _send(self) -> None:
        bucket = self._all[len(self._sent)]
        request: Any = self.world.lay_grads(bucket.parameters, bucket.flagged, bucket.count)
        if request is None:
            request = self.world.start_sum(bucket.numbers())
            self._under_way.append(request)
        self._sent.append(request)

    def finish(self) -> None:
        """Waits for all sums and puts them into the parameters."""
        for request in self._sent:
            self.world.wait(request)
        if self._all:
            last, request = self._all[-1], self._sent[-1]
            touched = request.flags(len(last.flagged)) if isinstance(request, Laid) else last.flags()
            at = 0
            for bucket, request in zip(self._all, self._sent, strict=True):
                part_of_all = touched[at : at + len(bucket.parameters)]
                if isinstance(request, Laid):
                    request.sum_grads(bucket.parameters, part_of_all)
                else:
                    bucket.empty(part_of_all)
                at += len(bucket.parameters)
            for request in self._sent:
                if isinstance(request, Laid):
                    request.taken()
        self._sent, self._under_way = [], []


def _size(parameter: Any) -> int:
    return math.prod(parameter.shape())
