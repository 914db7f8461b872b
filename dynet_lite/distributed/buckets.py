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

from .board import LaidSum

if TYPE_CHECKING:
    from .world import World

__all__ = ["Buckets"]


class _Bucket:
    """Parameters and the memory in which their gradients are summed up: `numbers`; `own`: it is not that of the gradient."""

    def __init__(self, parameters: list[Any], numbers: Any, own: bool) -> None:
        self.parameters, self.numbers, self.own = parameters, numbers, own
        self.size = sum(map(_size, parameters))

    def fill(self, place: Any) -> None:
        _core._gather_grads(self.parameters, place[: self.size], np.empty(len(self.parameters), np.float32))

    def empty(self, touched: Any) -> None:
        if self.own:
            _core._scatter_grads(self.parameters, self.numbers[: self.size], touched)
        else:
            for p, n in zip(self.parameters, touched, strict=True):
                _core._touched(p, n > 0)


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

        def close(flags: int = 0) -> None:
            nonlocal group
            out.append(_Bucket(group, np.zeros(sum(map(_size, group)) + flags, np.float32), True))
            group = []

        for p in self.order:
            if 4 * _size(p) >= least:
                if group:
                    close()
                out.append(_Bucket([p], _core._gradient_view(p), False))
                continue
            group.append(p)
            if 4 * sum(map(_size, group)) >= least:
                close()
        if self.order:
            close(len(self.order))
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

        def fill(place: Any) -> None:
            bucket.fill(place)
            if place.size > bucket.size:  # the last bucket
                place[bucket.size :] = [_core._touched(p) for p in self.order]

        request = self.world.start_sum(bucket.numbers, fill if bucket.own else None)
        self._sent.append(request)
        if not isinstance(request, LaidSum):  # that one is added up when its bucket is needed
            self._under_way.append(request)

    def finish(self) -> None:
        """Waits for all sums and puts them into the parameters."""
        for request in self._sent:
            self.world.wait(request)
        if self._all:
            touched = self._all[-1].numbers[self._all[-1].size :].copy()
            at = 0
            for bucket in self._all:
                bucket.empty(touched[at : at + len(bucket.parameters)])
                at += len(bucket.parameters)
        self._sent, self._under_way = [], []


def _size(parameter: Any) -> int:
    return math.prod(parameter.shape())
