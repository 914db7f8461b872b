"""Trainers: how gradients change parameters, with DyNet's names and defaults.

A trainer gives the engine's Updater (one fused pass) the coefficients of its rule. Its settings and counters, and update(),
are compiled (cext/bindings/trainer_fields.pxi). The formulas stand under each class: g is the gradient after clipping, t the
number of this update. A new trainer is one class here (and a rule in cext/op/update.cc if none of the rules there will do).
"""

from __future__ import annotations

import copyreg
import math
import sys
import warnings
from functools import lru_cache
from typing import Any

import numpy as np

from dynet_lite import _core
from dynet_lite._core import LookupParameters, Updater
from dynet_lite.averages import MovingAverages
from dynet_lite.compat.old_names import TrainerType
from dynet_lite.naming import by_place
from dynet_lite.needs import number
from dynet_lite.params import ParameterCollection

__all__ = [
    "AdadeltaTrainer",
    "AdagradTrainer",
    "AdamTrainer",
    "AdamWTrainer",
    "AmsgradTrainer",
    "CyclicalSGDTrainer",
    "EGTrainer",
    "MomentumSGDTrainer",
    "RMSPropTrainer",
    "SimpleSGDTrainer",
    "Trainer",
]

# Settings that are whole numbers >= 0.
_COUNTS = frozenset(
    ("updates", "recent_updates", "recent_clips", "averaging", "averaging_every", "averaged", "iteration")
)
_LARGEST = float(np.finfo(np.float32).max)  # the engine computes with float32
_warned_epoch = False


def _number(value: Any, what: str) -> float:
    if type(value) is float and -_LARGEST <= value <= _LARGEST:  # schedules set one for each update
        return value
    try:
        found = number(value)
    except (TypeError, ValueError):
        raise TypeError(f"[trainer] {what} must be a number; got {value!r}") from None
    if not -_LARGEST <= found <= _LARGEST:
        raise ValueError(f"[trainer] {what} must be a finite number that fits a float32; got {value}")
    return found


@lru_cache(maxsize=64)
def _in_engine(beta: float) -> float:
    """The float that the engine computes with: of a beta near 1, 1 - beta may differ by a thousandth. Never 1."""
    near = float(np.float32(beta))
    return near if near < 1 else beta


class Trainer(MovingAverages, _core.TrainerFields, metaclass=TrainerType):
    """Base of all trainers. A subclass names its rule and, if the learning rate is not its only one, gives coefficients().

    ``update()``: the gradients are scaled down when their global L2 norm is over the clip threshold (5 unless set); the
    rule changes the parameters that are not frozen; their gradients are cleared; then weight decay, if the collection
    has one. Of tables, only rows that a loss has used since the last update change, unless set_sparse_updates(False). Parameters
    added to the collection later are included. A trainer of a sub-collection updates only that one's parameters.

    The graph may still be used: nodes that ran keep their values, and backward() through them uses the weights that they
    read. Nodes that run later read the new weights. A weight or a row of a table shows its new numbers at once.
    """

    rule = ""

    def __init__(self, m: ParameterCollection, learning_rate: float) -> None:
        if not isinstance(m, ParameterCollection):
            raise TypeError(f"[{type(self).__name__}] a ParameterCollection is needed; got {type(m).__name__}")
        if not self.rule:
            raise TypeError("[Trainer] is a base class; use SimpleSGDTrainer, AdamTrainer, ...")
        self.model = m
        self._learning_rate = _number(learning_rate, "learning_rate")
        self._clip = 5.0
        self._sparse = True
        self.updates = self._recent_updates = self._recent_clips = 0
        self._updater = Updater(self.rule)
        self._begin_averages()

    # ---- the update ------------------------------------------------------------------------------------------------

    def _sync(self) -> None:
        self._updater.take(self.model._all)

    def _settle(self) -> None:
        """All updates have run, and what became of them is told."""
        _core.settle_steps()
        self._updater.finish(self)

    def restart(self, learning_rate: float | None = None) -> None:
        """Zero the state (moments, sums) and, if given, set the learning rate. updates begins at 0 again."""
        self._settle()
        self._sync()
        if learning_rate is not None:
            self.set_learning_rate(learning_rate)
        self._updater.restart()
        if not _core.settings.is_dynet:  # DyNet counts on, and Adam corrects the new moments as if they were old
            self.updates = 0

    # ---- settings --------------------------------------------------------------------------------------------------

    @property
    def learning_rate(self) -> float:
        """Step size."""
        return self._learning_rate

    @learning_rate.setter
    def learning_rate(self, learning_rate: float) -> None:
        self.set_learning_rate(learning_rate)

    def set_learning_rate(self, value: float) -> None:
        """Set the step size."""
        self._learning_rate = _number(value, "learning_rate")

    def set_clip_threshold(self, thr: float) -> None:
        """Greatest global L2 norm of the gradients; 0 or less switches clipping off."""
        thr = number(thr)
        if math.isnan(thr):
            raise ValueError("[trainer] the clip threshold must be a number; got nan")
        self._clip = thr

    def get_clip_threshold(self) -> float:
        """The threshold; 0 or less: no clipping."""
        return self._clip

    def set_sparse_updates(self, su: bool) -> None:
        """True (the default): rows of tables without a gradient stay as they are; their moments, too. False: dense."""
        self._sparse = bool(su)

    # ---- reports ---------------------------------------------------------------------------------------------------

    def status(self) -> None:
        """Write learning rate, clips and updates since the last call on stderr."""
        self._settle()
        text = f"[lr={self._learning_rate:g} clips={self._recent_clips} updates={self._recent_updates}] "
        if sys.stderr is not None:  # of a service it may be closed
            sys.stderr.write(text)
            sys.stderr.flush()
        self._recent_clips = self._recent_updates = 0

    def whoami(self) -> str:
        """Name of the class."""
        return type(self).__name__

    def update_epoch(self, r: float = 1.0) -> None:
        """Does nothing; set the learning rate instead. Warns once."""
        global _warned_epoch
        if not _warned_epoch:
            _warned_epoch = True
            warnings.warn("update_epoch() does nothing, as in DyNet 2; change trainer.learning_rate", stacklevel=2)

    def update_subset(self, updated_params: Any = (), updated_lookups: Any = ()) -> None:
        """Not offered: freeze parameters with set_updated(False), or make a trainer of a sub-collection."""
        raise NotImplementedError("[update_subset] does not exist; freeze parameters with set_updated(False), "
                                  "or make a trainer of a sub-collection")  # fmt: skip

    # ---- state -----------------------------------------------------------------------------------------------------

    def _members(self) -> list[tuple[Any, int, bool]]:
        """All members of the updater with (number, is it a table?)."""
        self._settle()
        self._sync()
        weights, tables = self._updater.parameters, self._updater.tables
        return [*((p, i, False) for i, p in enumerate(weights)), *((p, i, True) for i, p in enumerate(tables))]

    def state_dict(self) -> dict[str, Any]:
        """Everything that a resumed training needs besides the parameters: settings by name, state arrays by parameter.

        Numbers and arrays only: {"settings": {...}, "state": {name of parameter: float32 (states, size)}}. "missed" is there if
        parameters were added after moving averages began: {name: how many values their averages lack}.
        """
        missed = self._all_missed()
        state = {p.name(): self._state(p, i, table) for p, i, table in self._members()}
        return {"trainer": type(self).__name__, "settings": {k.lstrip("_"): self._setting(k) for k in self._settings()},
                "state": state, **({"missed": missed} if missed else {})}  # fmt: skip

    def _state(self, p: Any, i: int, table: bool) -> np.ndarray[Any, Any]:
        return self._with_average(p, i, table, self._updater.get_state(i, table))

    def _settings(self) -> list[str]:
        """Names of the attributes that are numbers and switches."""
        own = (k for k, v in vars(self).items() if isinstance(v, (int, float, np.integer, np.floating)))
        return [*self._numbers, *own]

    def _setting(self, key: str) -> Any:
        """One of these, as a number of Python's."""
        value = getattr(self, key)
        return value.item() if isinstance(value, np.generic) else value

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take over what state_dict() gave. ValueError when it is another trainer's, or parameters differ.

        Then nothing has changed. Parameters are found by name; those that had or have none (``/_0``) by their place.
        """
        checked = self._checked(state)
        if self._set_aside:
            self.swap_params_to_weights()  # else they would be lost
        self._take(checked)

    def _checked(self, state: Any) -> tuple[dict[str, Any], list[Any]]:
        """A state_dict() as (attributes, arrays in the order of _members()); ValueError if it does not fit."""
        name, members = type(self).__name__, self._members()
        if not isinstance(state, dict) or set(state) - {"missed"} != {"trainer", "settings", "state"}:
            raise ValueError(f"[{name}] what state_dict() gives is needed; got {type(state).__name__}")
        for key in ("settings", "state"):
            if not isinstance(state[key], dict):
                raise ValueError(f"[{name}] {key} must be a dict; got {type(state[key]).__name__}")
        if state["trainer"] != name:
            raise ValueError(f"[{name}] the state is that of a {state['trainer']}")
        pairs = by_place([p.name() for p, _, _ in members], state["state"])
        if pairs is None:
            raise ValueError(f"[{name}] the state is that of other parameters")
        of = {ours: state["state"][theirs] for theirs, ours in pairs.items()}
        own = {k.lstrip("_"): k for k in self._settings()}
        if set(own) != set(state["settings"]):
            wanted, got = ", ".join(sorted(own)), ", ".join(sorted(map(str, state["settings"])))
            raise ValueError(f"[{name}] the settings {wanted} are needed; the state has {got}")
        fields = {own[k]: self._checked_setting(k, self._setting(own[k]), v) for k, v in state["settings"].items()}
        fields["_missed"] = self._checked_missed(state.get("missed", {}), pairs, fields["_averaged"])
        arrays = []
        for p, i, table in members:
            a = np.asarray(of[p.name()], dtype=np.float32)
            shape = self._updater.get_state(i, table).shape
            if fields["_averaging"]:
                shape = (shape[0] + 1, math.prod(p.shape()))
            if a.shape != shape and not a.size == 0 == math.prod(shape):
                raise ValueError(f"[{name}] the state of {p.name()} has shape {a.shape}, which does not fit")
            if not np.isfinite(a).all():
                raise ValueError(f"[{name}] the state of {p.name()} has NaN or infinity")
            arrays.append(a)
        return fields, arrays

    def _checked_setting(self, key: str, mine: Any, value: Any) -> Any:
        kind = type(mine)
        if isinstance(value, bool) != (kind is bool) or not isinstance(value, (int, float)):
            raise ValueError(f"[{type(self).__name__}] {key} must be like {mine!r}; got {value!r}")
        infinite = isinstance(value, float) and not math.isfinite(value)
        if infinite and (key != "clip" or math.isnan(value)):
            raise ValueError(f"[{type(self).__name__}] {key} must be a finite number; got {value!r}")
        if key in _COUNTS and (not isinstance(value, int) or value < 0):
            raise ValueError(f"[{type(self).__name__}] {key} must be a whole number >= 0; got {value!r}")
        if (key == "averaging" and value > 2) or (key == "averaging_every" and not value):
            raise ValueError(f"[{type(self).__name__}] there is no {key}={value!r}")
        return value

    def _take(self, checked: tuple[dict[str, Any], list[Any]]) -> None:
        fields, arrays = checked
        self._begin_averages()
        self._set(fields)
        for (p, i, table), a in zip(self._members(), arrays, strict=True):
            if a.size:
                self._updater.set_state(i, table, self._take_average(p, i, table, a))

    # The members travel with the trainer: where a model refers to its trainer, that is made before the model has any.

    def _set(self, attributes: dict[str, Any]) -> None:
        for name, value in attributes.items():
            setattr(self, name, value)

    def __reduce__(self) -> Any:
        return copyreg.__newobj__, (type(self),), self.__getstate__()  # type: ignore[attr-defined]

    def __getstate__(self) -> dict[str, Any]:
        members = [(p, self._updater.get_state(i, table)) for p, i, table in self._members()]
        fields = {k: getattr(self, k) for k in ("model", *self._numbers, "_set_aside")}
        return {**fields, **vars(self), "_updater": members}

    def __setstate__(self, state: dict[str, Any]) -> None:
        # Pickles of before have no _missed, but _seen.
        self._set({"_missed": {}, **{k: v for k, v in state.items() if k not in ("_updater", "_seen")}})
        members = state["_updater"]
        self._updater = Updater(self.rule)
        self._updater.take([p for p, _ in members])
        weights = len(self._updater.parameters)
        for k, (p, a) in enumerate(members):
            table = isinstance(p, LookupParameters)
            self._updater.set_state(k - weights if table else k, table, a)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} learning_rate={self._learning_rate:g} updates={self.updates}>"


class SimpleSGDTrainer(Trainer):
    """Stochastic gradient descent: w -= lr g."""

    rule = "sgd"

    def __init__(self, m: ParameterCollection, learning_rate: float = 0.1) -> None:
        super().__init__(m, learning_rate)


class CyclicalSGDTrainer(SimpleSGDTrainer):
    """SGD whose learning rate goes up and down between two values (Smith: Cyclical learning rates ..., 2015).

    With it updates done: cycle = floor(1 + it / (2 step_size)), x = |it / step_size - 2 cycle + 1|,
    lr = min + (max - min) max(0, 1 - x) gamma^it. update() advances it.
    """

    def __init__(
        self,
        m: ParameterCollection,
        learning_rate_min: float = 0.01,
        learning_rate_max: float = 0.1,
        step_size: float = 2000,
        gamma: float = 1.0,
    ) -> None:
        super().__init__(m, learning_rate_min)
        self.learning_rate_min = _number(learning_rate_min, "learning_rate_min")
        self.learning_rate_max = _number(learning_rate_max, "learning_rate_max")
        self.step_size = _number(step_size, "step_size")
        if self.step_size <= 0:
            raise ValueError(f"[CyclicalSGDTrainer] step_size must be positive; got {step_size}")
        self.gamma = _number(gamma, "gamma")
        self._iteration = 0

    def update(self, s: float = 1.0) -> None:
        """One update; then the learning rate of the next."""
        super().update(s)
        it = self._iteration
        cycle = math.floor(1 + it / (2 * self.step_size))
        x = abs(it / self.step_size - 2 * cycle + 1)
        span = self.learning_rate_max - self.learning_rate_min
        self._learning_rate = self.learning_rate_min + span * max(0.0, 1 - x) * self.gamma**it
        self._iteration += 1


class MomentumSGDTrainer(Trainer):
    """SGD with momentum: v = mom v - lr g; w += v."""

    rule = "momentum"

    def __init__(self, m: ParameterCollection, learning_rate: float = 0.01, mom: float = 0.9) -> None:
        super().__init__(m, learning_rate)
        self.mom = _number(mom, "mom")

    def coefficients(self) -> tuple[float, ...]:
        return self._learning_rate, self.mom


class AdagradTrainer(Trainer):
    """Adagrad (Duchi, Hazan, Singer 2011): s += g^2; w -= lr g / sqrt(s + eps)."""

    rule = "adagrad"

    def __init__(self, m: ParameterCollection, learning_rate: float = 0.1, eps: float = 1e-20) -> None:
        super().__init__(m, learning_rate)
        self.eps = _number(eps, "eps")

    def coefficients(self) -> tuple[float, ...]:
        return self._learning_rate, self.eps


class AdadeltaTrainer(Trainer):
    """Adadelta (Zeiler 2012): s = rho s + (1 - rho) g^2; d = -g sqrt(u + eps) / sqrt(s + eps); u likewise of d; w += lr d.

    The learning rate is 1 unless set.
    """

    rule = "adadelta"

    def __init__(self, m: ParameterCollection, eps: float = 1e-6, rho: float = 0.95) -> None:
        super().__init__(m, 1.0)
        self.eps, self.rho = _number(eps, "eps"), _number(rho, "rho")

    def coefficients(self) -> tuple[float, ...]:
        # In DyNet the learning rate can be set, but has no effect.
        return 1.0 if _core.settings.is_dynet else self._learning_rate, self.eps, self.rho


class RMSPropTrainer(Trainer):
    """RMSProp (Tieleman and Hinton 2012): s = rho s + (1 - rho) g^2; w -= lr g / sqrt(s + eps)."""

    rule = "rmsprop"

    def __init__(
        self, m: ParameterCollection, learning_rate: float = 0.001, eps: float = 1e-8, rho: float = 0.9
    ) -> None:
        super().__init__(m, learning_rate)
        self.eps, self.rho = _number(eps, "eps"), _number(rho, "rho")

    def coefficients(self) -> tuple[float, ...]:
        return self._learning_rate, self.eps, self.rho


class AdamTrainer(Trainer):
    """Adam (Kingma and Ba 2015): m and v are decaying means of g and g^2, corrected for their start at 0;

    w -= lr sqrt(1 - beta_2^t) / (1 - beta_1^t) m / (sqrt(v) + eps). ``learning_rate`` is another name of ``alpha``.
    """

    rule = "adam"

    def __init__(
        self,
        m: ParameterCollection,
        alpha: float = 0.001,
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        eps: float = 1e-8,
        *,
        learning_rate: float | None = None,
    ) -> None:
        super().__init__(m, alpha if learning_rate is None else learning_rate)
        self.beta_1, self.beta_2, self.eps = _number(beta_1, "beta_1"), _number(beta_2, "beta_2"), _number(eps, "eps")
        if not (0 <= self.beta_1 < 1 and 0 <= self.beta_2 < 1):
            raise ValueError(f"[{type(self).__name__}] beta_1 and beta_2 must be >= 0 and < 1; got {beta_1}, {beta_2}")

    def coefficients(self) -> tuple[float, ...]:
        t, beta_1, beta_2 = self.updates, self.beta_1, self.beta_2
        return self._learning_rate, beta_1, beta_2, self.eps, 1 - _in_engine(beta_1) ** t, 1 - _in_engine(beta_2) ** t


class AmsgradTrainer(AdamTrainer):
    """AMSGrad (Reddi, Kale, Kumar 2018): Adam with the largest v so far in place of v."""

    rule = "amsgrad"


class AdamWTrainer(AdamTrainer):
    """AdamW (Loshchilov and Hutter 2019): Adam, and w also loses lr * weight_decay of itself at each update.

    The collection's own weight decay is applied in addition. Table rows decay even while they have no gradient.
    """

    def __init__(
        self,
        m: ParameterCollection,
        alpha: float = 0.001,
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        eps: float = 1e-8,
        weight_decay: float = 0.01,
        *,
        learning_rate: float | None = None,
    ) -> None:
        super().__init__(m, alpha, beta_1, beta_2, eps, learning_rate=learning_rate)
        self.weight_decay = _number(weight_decay, "weight_decay")

    def _own_decay(self) -> float:
        own = self._learning_rate * self.weight_decay
        if not 0 <= own < 1:
            raise ValueError(f"[AdamWTrainer] learning_rate * weight_decay must be >= 0 and < 1; got {own}")
        return own

    def coefficients(self) -> tuple[float, ...]:
        # The engine decays after the step; the definition decays before it. The step makes up for that.
        lr, *rest = super().coefficients()
        return (lr / (1 - self._own_decay()), *rest)

    def decay(self) -> float:
        return 1 - (1 - self._own_decay()) * (1 - super().decay())


class EGTrainer(Trainer):
    """Exponentiated gradient, for parameters that are distributions (positive, sum 1; a row of a table is one):

    v = mom v - lr g; w = softmax(log(w) + v).

    A negative number, or a weight of zeros alone, would become NaN: the first update is a ValueError.
    Give it other first values, or freeze it. Single zeros stay zeros.
    """

    rule = "eg"

    def __init__(self, m: ParameterCollection, learning_rate: float = 0.1, mom: float = 0.9) -> None:
        super().__init__(m, learning_rate)
        self.mom = _number(mom, "mom")

    def _see_new(self, first: int) -> None:
        """Are they distributions? Later they are what the rule has made of them."""
        for p in self.model._all[first:]:
            numbers = p._values()
            zeros = not isinstance(p, LookupParameters) and numbers.size > 0 and not numbers.any()
            if p.is_updated() and (zeros or (numbers < 0).any()):
                what = "is 0 everywhere" if zeros else "has negative numbers"
                raise ValueError(f"[EGTrainer] {p.name()} {what}; distributions are needed, such as init=1 / size")

    def coefficients(self) -> tuple[float, ...]:
        return self._learning_rate, self.mom
