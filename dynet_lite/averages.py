"""MovingAverages: the part of every trainer that keeps averages of the weights over the updates.

DyNet has it in C++ only. The averages are part of a trainer's state: state_dict(), pickles and checkpoints have them.
Who may import: trainers.py.
"""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

__all__ = ["MovingAverages"]

Array = np.ndarray[Any, np.dtype[np.float32]]
MODES = ("none", "exponential", "cumulative")


class MovingAverages:
    """Averages of the weights, for evaluation with them instead of the weights themselves.

        trainer.exponential_moving_average(0.999)      # before the first update
        ...                                            # train
        trainer.swap_params_to_moving_average(bias_correction=True)
        ...                                            # evaluate, save
        trainer.swap_params_to_weights()               # update() does it too

    The average of a weight w starts at 0. Exponential: a = beta a + (1 - beta) w, which with bias correction is divided by
    1 - beta^n after n values; cumulative: the mean of all values. The values of a parameter that is added later count from
    the next update on; until then the average does not take its place.
    """

    updates: int

    def _begin_averages(self) -> None:
        self._averaging = 0  # a place in MODES
        self._averaging_beta = 0.0
        self._averaging_every = 1
        self._averaged = 0  # how many values the averages are of
        self._averages: dict[tuple[bool, int], Array] = {}  # by kind (is it a table?) and number of the member
        # How many of the values there were before members that were added after the first.
        self._missed: dict[tuple[bool, int], int] = {}
        # The weights while the averages are in their place, else None. {}: they were not saved.
        self._set_aside: dict[tuple[bool, int], Array] | None = None

    def _members(self) -> list[tuple[Any, int, bool]]:
        raise NotImplementedError

    def moving_average(self) -> str:
        """One of "none", "exponential" and "cumulative"."""
        return MODES[self._averaging]

    def exponential_moving_average(self, beta: float, update_freq: int = 1) -> None:
        """Keep exponential averages with this beta, 0 <= beta < 1; of the weights after every update_freq-th update.

        RuntimeError after the first update.
        """
        if not 0 <= beta < 1:
            raise ValueError(f"[exponential_moving_average] beta must be >= 0 and < 1; got {beta}")
        self._start_averaging("exponential", float(beta), update_freq)

    def cumulative_moving_average(self, update_freq: int = 1) -> None:
        """Keep the means of the weights after every update_freq-th update. RuntimeError after the first update."""
        self._start_averaging("cumulative", 0.0, update_freq)

    def _start_averaging(self, mode: str, beta: float, update_freq: int) -> None:
        if self.updates:
            raise RuntimeError(f"[{mode}_moving_average] this must be called before the first update")
        every = operator.index(update_freq)
        if every < 1:
            raise ValueError(f"[{mode}_moving_average] update_freq must be 1 or more; got {update_freq}")
        if self._set_aside:
            self.swap_params_to_weights()  # else they would be lost
        self._begin_averages()
        self._averaging = MODES.index(mode)
        self._averaging_beta, self._averaging_every = beta, every

    def swap_params_to_moving_average(self, save_weights: bool = True, bias_correction: bool = False) -> None:
        """Replace the weights by their averages. Does nothing if they have been replaced already.

        save_weights=False forgets the weights; no update is possible then. bias_correction: of exponential averages.
        RuntimeError if no averages are kept, or before the first.
        """
        if not self._averaging:
            raise RuntimeError("[swap_params_to_moving_average] no averages are kept; see exponential_moving_average()")
        if not self._averaged:
            raise RuntimeError("[swap_params_to_moving_average] there are no averages before the first update")
        if self._set_aside is not None:
            return
        corrected = bias_correction and MODES[self._averaging] == "exponential"
        self._set_aside = {(table, i): p._values() for p, i, table in self._members()} if save_weights else {}
        for p, i, table in self._members():
            average = self._averages.get((table, i))
            if average is not None:  # a parameter added since keeps its values
                n = self._averaged - self._missed.get((table, i), 0)
                _put(p, average * np.float32(1 / (1 - self._averaging_beta**n) if corrected else 1))

    def swap_params_to_weights(self) -> None:
        """Put the weights back; nothing when they are there. RuntimeError when they were not saved."""
        if self._set_aside is None:
            return
        if not self._set_aside and self._averages:  # else no weight was replaced
            raise RuntimeError("[swap_params_to_weights] the weights were not saved when the averages took their place")
        for p, i, table in self._members():
            if (table, i) in self._set_aside:
                _put(p, self._set_aside[table, i])
        self._set_aside = None

    def _average(self) -> None:
        """After update number self.updates, the first being 1; as in DyNet the first counts whatever update_freq is."""
        if not self._averaging or (self.updates - 1) % self._averaging_every:
            return
        share = np.float32(1 - self._averaging_beta)  # of a beta near 1 a float holds 1 - beta better than beta
        for p, i, table in self._members():
            w = p._values()
            a = self._averages.get((table, i))
            if a is None:
                a = np.zeros_like(w)
                if self._averaged:
                    self._missed[table, i] = self._averaged
            n = np.float32(self._averaged - self._missed.get((table, i), 0))
            if MODES[self._averaging] == "exponential":
                self._averages[table, i] = a + share * (w - a)
            else:
                self._averages[table, i] = (n * a + w) / (n + 1)
        self._averaged += 1

    # ---- as part of the state ------------------------------------------------------------------------------------------

    def _with_average(self, p: Any, i: int, table: bool, state: Array) -> Array:
        """The state of a member with its average as one more row."""
        if not self._averaging:
            return state
        if self._set_aside is not None:
            raise RuntimeError(
                "[trainer] averages are in the place of the weights; call swap_params_to_weights() first"
            )
        a = self._averages.get((table, i))
        row = np.zeros(p._values().size, np.float32) if a is None else a.ravel(order="F")
        return np.concatenate([state.reshape(len(state), row.size), row[None]])

    def _all_missed(self) -> dict[str, int]:
        """By name of the parameter, how many values its average lacks; where it lacks all there is no average."""
        out = {}
        for p, i, table in self._members() if self._averaging else ():
            missed = self._missed.get((table, i), 0) if (table, i) in self._averages else self._averaged
            if missed and math.prod(p.shape()):
                out[p.name()] = missed
        return out

    def _checked_missed(self, given: Any, pairs: dict[str, str], averaged: int) -> dict[tuple[bool, int], int]:
        """What _all_missed() gave, by member. pairs: {name there: name here}. ValueError if it does not fit."""
        if not isinstance(given, dict) or not set(given) <= set(pairs):
            raise ValueError(f"[{type(self).__name__}] missed: a dict by parameter is needed; got {given!r:.200}")
        for name, n in given.items():
            if type(n) is not int or not 0 < n <= averaged:
                raise ValueError(f"[{type(self).__name__}] missed: of {averaged} values {name} cannot lack {n!r}")
        missed = {pairs[name]: n for name, n in given.items()}
        return {(table, i): missed[p.name()] for p, i, table in self._members() if p.name() in missed}

    def _take_average(self, p: Any, i: int, table: bool, state: Array) -> Array:
        """The reverse of _with_average(): the state without its last row, which becomes the average."""
        if not self._averaging:
            return state
        if not self._averaged or self._missed.get((table, i)) == self._averaged:
            self._missed.pop((table, i), None)
        else:
            self._averages[table, i] = np.array(state[-1]).reshape(p.shape(), order="F")
        return state[:-1] if len(state) > 1 else np.zeros((0, 0), np.float32)


def _put(p: Any, values: Array) -> None:
    if hasattr(p, "init_from_array"):
        p.init_from_array(values)
    else:
        p.set_value(values)
