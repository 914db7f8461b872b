"""Checkpoints: a model and all that its training needs to go on, in one file; save_checkpoint() and load_checkpoint().

The file is in the safetensors format: one array for each parameter under its name, with its shape, so that other programs
can read it; further arrays for the state of trainers (their names do not begin with ``/``); and a JSON text among the
metadata, under ``dynet_lite``, with the rest: settings of trainers, constructor settings of builders, generators, and what
the user adds. Nothing in it is executed when it is read. What the arrays are called is told at ``_describe`` and
``_describe_trainer``.

A file is written beside its target and then moved there. What is read is checked in full before anything changes.
This is not DyNet's format; that one is in io.py.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from dynet_lite import _core, packing, randomness
from dynet_lite import config as settings
from dynet_lite._core import LookupParameters, Parameters
from dynet_lite.errors import MissingFileError, ModelFileError
from dynet_lite.files import replacing
from dynet_lite.naming import by_place
from dynet_lite.params import ParameterCollection
from dynet_lite.trainers import Trainer

__all__ = ["Checkpoint", "load_checkpoint", "read_checkpoint", "save_checkpoint"]

VERSION = 1
KEY = "dynet_lite"  # of the JSON text among the metadata
DTYPES = {"F32": np.float32, "F64": np.float64, "I64": np.int64}
Arrays = dict[str, np.ndarray[Any, Any]]


# ---- names ---------------------------------------------------------------------------------------------------------


def _names(model: Any) -> dict[str, Any]:
    """The parameters of a collection by their names within it: ``/W``, ``/encoder/layer0/Wx``, ..."""
    if not isinstance(model, ParameterCollection):
        raise TypeError(f"[checkpoint] a ParameterCollection is needed; got {type(model).__name__}")
    own = model.name()
    out: dict[str, Any] = {}
    for p in model._all:
        name = p.name()
        if out.setdefault("/" + name[len(own) :] if name.startswith(own) else name, p) is not p:
            raise ValueError(f"[checkpoint] two parameters of the collection have the name {name}")
    return out


def _named(things: Any, kind: str, one: Any) -> dict[str, Any]:
    """A thing, a mapping, a list or None as a dict by name; those of a list are called 0, 1, ..."""
    if things is None:
        return {}
    if one(things):
        things = [things]
    out = dict(things) if isinstance(things, Mapping) else {str(k): thing for k, thing in enumerate(things)}
    for name, thing in out.items():
        if not isinstance(name, str) or "/" in name:
            raise ValueError(f"[checkpoint] the name of a {kind} is text without '/'; got {name!r}")
        if not one(thing):
            raise TypeError(f"[checkpoint] {name} is not a {kind}, but a {type(thing).__name__}")
    return out


def _is_builder(thing: Any) -> bool:
    return all(hasattr(thing, what) for what in ("param_collection", "spec", "from_spec"))


def _is_trainer(thing: Any) -> bool:
    return isinstance(thing, Trainer)


# ---- writing -------------------------------------------------------------------------------------------------------


def save_checkpoint(
    path: Any,
    model: ParameterCollection,
    trainer: Trainer | Mapping[str, Trainer] | Iterable[Trainer] | None = None,
    *,
    config: Any = None,
    builders: Any = None,
    rng: Any = None,
) -> None:
    """Write a model to one file, with everything its training needs to continue as if it had never stopped.

    trainer   a trainer of this collection (or of parts of it), a list of trainers or a dict by name. With it go the marks
              of frozen parameters, the weight decay, gradients that no update has used yet, and this thread's generators
    config    anything that JSON can hold; tuples come back as lists
    builders  a builder, a list or a dict by name: class and constructor settings are kept (parameters are, anyway)
    rng       a random.Random, numpy.random.Generator or RandomState, the module random or numpy.random; a list or a dict

    Saving changes nothing in the running program. ValueError if a number is NaN or infinite. If that happens, or writing
    fails, the old file stays.
    """
    from safetensors.numpy import save as to_bytes

    named, trainers = _names(model), _named(trainer, "trainer", _is_trainer)
    try:
        json.loads(
            json.dumps(config, allow_nan=False), object_pairs_hook=_without_repeats
        )  # {1: 2, "1": 3} has a name twice
    except (TypeError, ValueError, RecursionError) as e:
        raise type(e)(f"[save_checkpoint] config must be what JSON can hold: {e}") from None
    arrays: Arrays = {}
    document = {
        "version": VERSION,
        "config": config,
        "parameters": {name: _describe(p, name, arrays, bool(trainers)) for name, p in named.items()},
        "builders": {k: _describe_builder(b) for k, b in _named(builders, "builder", _is_builder).items()},
        "trainers": {k: _describe_trainer(t, k, named, arrays) for k, t in trainers.items()},
        "weight_decay": float(model.get_weight_decay()),
        "engine": _engine_state(),
        "rng": {k: packing.pack(randomness.state_of(g)) for k, g in _named(rng, "generator", randomness.known).items()},
    }
    for name, array in arrays.items():
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            raise ValueError(f"[save_checkpoint] {name} has NaN or infinity; nothing was written")
    data = to_bytes({name: np.ascontiguousarray(a) for name, a in arrays.items()}, {KEY: json.dumps(document)})
    with replacing(path) as f:
        f.write(data)


def _describe(p: Any, name: str, arrays: Arrays, resume: bool) -> dict[str, Any]:
    """A parameter's part of the document; its arrays are added.

    ``NAME`` has the values. For resuming: ``grad:NAME``, of tables with ``rows:NAME``, which rows these are, in order;
    ``decay:NAME`` and ``kept:NAME`` where rows of a table owe weight decay (see LookupParameters._unsettled()).
    """
    about = {"kind": "table" if isinstance(p, LookupParameters) else "weight", "shape": list(p.shape()),
             "updated": p.is_updated()}  # fmt: skip
    if isinstance(p, LookupParameters):
        kept, decay = p._unsettled()
        arrays[name] = kept
        if decay is not None:
            factor = np.exp(decay[0] - decay[1:]).astype(np.float32)
            arrays[name] = kept * factor.reshape(-1, *[1] * (kept.ndim - 1))
        rows, grad = p._row_grads()
        if resume and decay is not None:
            arrays["decay:" + name], arrays["kept:" + name] = decay, kept
        if resume and len(rows):
            arrays["rows:" + name], arrays["grad:" + name] = rows, np.array(p._rows_array(grad))
    else:
        arrays[name] = p._values()
        grad = p._grads()
        if resume and grad.any():
            arrays["grad:" + name] = grad
    return about


def _describe_builder(b: Any) -> dict[str, Any]:
    return {"class": packing.name_of(type(b)), "spec": packing.pack(b.spec)}


def _describe_trainer(t: Trainer, key: str, named: Mapping[str, Any], arrays: Arrays) -> dict[str, Any]:
    """A trainer's part of the document; ``trainer:KEY/NAME`` has the state of a parameter, one row per kind of state."""
    names = {id(p): name for name, p in named.items()}
    state, members = t.state_dict(), []
    for p, _, _ in t._members():
        if id(p) not in names:
            raise ValueError(
                f"[save_checkpoint] {p.name()}, which a {type(t).__name__} trains, is not in the collection"
            )
        members.append(names[id(p)])
        if state["state"][p.name()].size:
            arrays[f"trainer:{key}{names[id(p)]}"] = state["state"][p.name()]
    about = {"class": state["trainer"], "settings": packing.pack(state["settings"]), "parameters": members}
    if "missed" in state:
        theirs = {p.name(): names[id(p)] for p, _, _ in t._members()}
        about["missed"] = {theirs[name]: n for name, n in state["missed"].items()}
    return about


def _engine_state() -> list[int | None]:
    """The generators of the engine: the common one, and that of this thread's graph."""
    settings.start()  # whoever reads the generator's state must have read the seed before
    graph = _core.existing_cg()
    return [_core.get_seed_state(), None if graph is None else graph.seed_state]


# ---- reading -------------------------------------------------------------------------------------------------------


def read_checkpoint(path: Any) -> Checkpoint:
    """The contents of a file of save_checkpoint(), without a model to load them into.

    ModelFileError when it is damaged or something else; a missing file is a FileNotFoundError.
    """
    return Checkpoint(path)


def load_checkpoint(
    path: Any,
    model: ParameterCollection,
    trainer: Trainer | Mapping[str, Trainer] | Iterable[Trainer] | None = None,
    *,
    builders: Any = None,
    rng: Any = None,
) -> Checkpoint:
    """Fill a model, and what else is given, from a file of save_checkpoint(); see there for the arguments.

    Parameters are found by name; names and shapes must be those of the file. Those that have no name (``/_0``) in the file or
    in the model, as in files written before builders gave names, are found by their place. Without a trainer, values
    are all that is taken over. With it the training goes on as if it had not stopped: moments, counts, learning rates,
    frozen parameters, weight decay, gradients not yet used, random numbers. Builders are compared with those that were
    saved: class and constructor settings must agree. Generators given as rng continue where the saved ones were.

    The result has the config (``.config``). ModelFileError (a ValueError and a RuntimeError) when the file is damaged
    or does not fit; then nothing has changed.
    """
    checkpoint = Checkpoint(path)
    checkpoint.restore(model, trainer, builders=builders, rng=rng)
    return checkpoint


class Checkpoint:
    """A file of save_checkpoint(), read and checked.

    config      what the user gave, or None
    parameters  values by name: float32 arrays; a table has the number of rows first
    builders    (class, constructor settings) by name, as text and a tuple
    """

    def __init__(self, path: Any) -> None:
        self.path = os.fsdecode(path)
        self._arrays, document = _read(self.path)
        try:
            self._take(document)
        except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError) as e:
            raise (
                e if isinstance(e, ModelFileError) else self._fail(f"the description is damaged: {e!r:.200}")
            ) from None

    def _fail(self, what: str) -> ModelFileError:
        return ModelFileError(f"[load_checkpoint] {self.path}: {what}")

    def _take(self, document: Any) -> None:
        if document["version"] != VERSION:
            raise self._fail(f"version {document['version']!r} of the format; this is version {VERSION}")
        parts = {"version", "config", "parameters", "builders", "trainers", "weight_decay", "engine", "rng"}
        if set(document) != parts:
            raise self._fail(
                f"the description must have {', '.join(sorted(parts))}; it has {', '.join(sorted(document))}"
            )
        self.config = document["config"]
        self._about = document["parameters"]
        self._trainers = document["trainers"]
        self._builders = document["builders"]
        self._rng = {name: packing.unpack(state) for name, state in document["rng"].items()}
        self._weight_decay = document["weight_decay"]
        if not isinstance(self._weight_decay, float) or not 0 <= self._weight_decay < 1:
            raise self._fail(f"a weight decay >= 0 and < 1 is needed; got {self._weight_decay!r}")
        common, of_graph = self._engine = document["engine"]
        for state in (common, 0 if of_graph is None else of_graph):
            if type(state) is not int or not 0 <= state < 2**64:
                raise self._fail(f"the state of the engine's generator is damaged: {state!r}")
        for b in self._builders.values():
            packing.unpack(b["spec"])
            if not isinstance(b["class"], str):
                raise self._fail("the class of a builder must be text")
        self._check_arrays()
        self.parameters: Arrays = {name: self._arrays[name] for name in self._about}

    def _check_arrays(self) -> None:
        """Every array is described, every description has its arrays, and all of them fit."""
        expected: dict[str, tuple[str, tuple[int, ...] | None]] = {}
        for name, about in self._about.items():
            if (
                not name.startswith("/")
                or type(about["updated"]) is not bool
                or about["kind"] not in ("weight", "table")
            ):
                raise self._fail(f"the description of {name} is damaged")
            shape = tuple(about["shape"])
            expected[name] = ("f4", shape)
            if "grad:" + name in self._arrays and about["kind"] == "weight":
                expected["grad:" + name] = ("f4", shape)
            elif about["kind"] == "table" and "rows:" + name in self._arrays:
                rows = self._arrays["rows:" + name]
                if rows.ndim != 1 or len(set(rows.tolist())) != rows.size or ((rows < 0) | (rows >= shape[0])).any():
                    raise self._fail(f"rows:{name} has numbers of rows that are not there")
                expected["rows:" + name] = ("i8", rows.shape)
                expected["grad:" + name] = ("f4", (rows.size, *shape[1:]))
            if about["kind"] == "table" and "decay:" + name in self._arrays:
                expected["decay:" + name], expected["kept:" + name] = ("f8", (1 + shape[0],)), ("f4", shape)
                decay = self._arrays["decay:" + name]
                if decay.size and (decay.max() > 0 or decay[0] > decay.min()):
                    raise self._fail(f"decay:{name} has numbers that no weight decay leads to")
        for key, t in self._trainers.items():
            if set(t["parameters"]) - set(self._about):
                raise self._fail(f"trainer {key} has parameters that are not in the file")
            if not isinstance(t["class"], str):
                raise self._fail("the class of a trainer must be text")
            missed = t.get("missed", {})
            if not isinstance(missed, dict) or not set(missed) <= set(t["parameters"]):
                raise self._fail(f"trainer {key} has averages of other parameters than its own")
            packing.unpack(t["settings"])
            names = [f"trainer:{key}{name}" for name in t["parameters"]]
            expected.update({name: ("f4", None) for name in names if name in self._arrays})
        if set(expected) != set(self._arrays):
            raise self._fail(_difference("arrays", expected, self._arrays))
        for name, (dtype, wanted) in expected.items():
            array = self._arrays[name]
            if array.dtype.str[1:] != dtype or wanted not in (None, array.shape):
                raise self._fail(
                    f"{name} should be {dtype} of shape {wanted}; it is {array.dtype.str[1:]} {array.shape}"
                )
            if not np.isfinite(array).all():
                raise self._fail(f"{name} has NaN or infinity")

    @property
    def builders(self) -> dict[str, tuple[str, Any]]:
        """(class, constructor settings) by name."""
        return {key: (b["class"], packing.unpack(b["spec"])) for key, b in self._builders.items()}

    def build(self, name: str, model: ParameterCollection) -> Any:
        """The builder saved under this name, made again (with new parameters) as a part of model.

        Classes of others than dynet_lite must have been imported, and have from_spec().
        """
        if name not in self._builders:
            raise KeyError(
                f"[checkpoint] {self.path} has no builder {name!r}; it has {', '.join(self._builders) or 'none'}"
            )
        about = self._builders[name]
        mark = model._mark()
        try:
            return packing.class_of(about["class"]).from_spec(packing.unpack(about["spec"], classes=True), model)
        except Exception as e:
            model._rollback(mark)
            raise self._fail(f"builder {name} cannot be made: {e}") from None

    def restore(
        self, model: ParameterCollection, trainer: Any = None, *, builders: Any = None, rng: Any = None
    ) -> None:
        """Fill a model and what else is given; see load_checkpoint()."""
        named = self._match(model)
        self._compare_builders(_named(builders, "builder", _is_builder))
        trainers = _named(trainer, "trainer", _is_trainer)
        if trainers and set(trainers) != set(self._trainers):
            raise self._fail(_difference("trainers", trainers, self._trainers))
        states = [(t, self._trainer_state(t, key, named)) for key, t in trainers.items()]
        generators = _named(rng, "generator", randomness.known)
        if set(generators) - set(self._rng):
            raise self._fail(_difference("generators", generators, self._rng))
        for key, g in generators.items():
            try:
                randomness.check(g, self._rng[key])
            except (ValueError, TypeError) as e:
                raise self._fail(f"generator {key}: {e}") from None
        # Everything fits; from here on nothing fails.
        for name, p in named.items():
            self._fill(p, name, resume=bool(trainers))
        for t, state in states:
            t._take(state)
        for key, g in generators.items():
            randomness.put(g, self._rng[key])
        if trainers:
            model._root()._weight_decay = self._weight_decay
            _set_engine_state(self._engine)

    def _match(self, model: Any) -> dict[str, Any]:
        """The model's parameters by their names in the file, when they are those of the file."""
        named = _names(model)
        pairs = by_place(named, self._about)
        if pairs is None:
            raise self._fail(_difference("parameters", named, self._about))
        for name, ours in pairs.items():
            p = named[ours]
            kind = "table" if isinstance(p, LookupParameters) else "weight"
            have, array = self._about[name], self._arrays[name]
            if have["kind"] != kind or array.shape != p.shape():
                called = "" if name == ours else f", {name},"
                raise self._fail(f"{ours} is a {kind} of shape {p.shape()} in the model, "
                                 f"a {have['kind']}{called} of shape {array.shape} in the file")  # fmt: skip
        return {name: named[ours] for name, ours in pairs.items()}

    def parameters_of(self, model: ParameterCollection) -> Arrays:
        """The values by the full names that the parameters have in this model. ModelFileError when they do not fit."""
        return {p.name(): self._arrays[name] for name, p in self._match(model).items()}

    def _compare_builders(self, builders: dict[str, Any]) -> None:
        if set(builders) - set(self._builders):
            raise self._fail(_difference("builders", builders, self._builders))
        for key, b in builders.items():
            mine, theirs = _describe_builder(b), self._builders[key]
            if mine != theirs:
                texts = [f"{x['class']} {packing.unpack(x['spec'])!r}" for x in (mine, theirs)]
                raise self._fail(f"builder {key} is {texts[0]}, the one in the file {texts[1]}")

    def _trainer_state(self, t: Trainer, key: str, named: Mapping[str, Any]) -> Any:
        """The trainer's state, in the form in which it takes it over."""
        about = self._trainers[key]
        names = {id(p): name for name, p in named.items()}
        members = {p.name(): names.get(id(p), p.name()) for p, _, _ in t._members()}
        if set(members.values()) != set(about["parameters"]):
            raise self._fail(f"trainer {key}: " + _difference("parameters", members.values(), about["parameters"]))
        state = {}
        for p, i, table in t._members():
            array = self._arrays.get(f"trainer:{key}{members[p.name()]}")
            empty = t._updater.get_state(i, table)
            state[p.name()] = np.zeros((len(empty), 0), np.float32) if array is None else array
        settings = packing.unpack(about["settings"])
        given = {"trainer": about["class"], "settings": settings, "state": state}
        try:
            if "missed" in about:
                ours = {name: own for own, name in members.items()}
                given["missed"] = {ours[name]: n for name, n in about["missed"].items()}
            return t._checked(given)
        except (ValueError, TypeError) as e:
            raise self._fail(str(e)) from None

    def _fill(self, p: Any, name: str, resume: bool) -> None:
        """A parameter's values; to resume, also the rest that was saved of it."""
        grad = self._arrays.get("grad:" + name) if resume else None
        p.zero_gradient()
        if isinstance(p, Parameters):
            p.set_value(self._arrays[name])
            if grad is not None:
                p.set_grad(grad)
        elif isinstance(p, LookupParameters):
            decay = self._arrays.get("decay:" + name) if resume else None
            p._set_unsettled(self._arrays[name if decay is None else "kept:" + name], decay)
            if grad is not None:
                p.set_rows_grad(self._arrays["rows:" + name], grad)
        if resume:
            p.set_updated(self._about[name]["updated"])

    def __repr__(self) -> str:
        return (f"<checkpoint {self.path}: {len(self._about)} parameters, {len(self._trainers)} trainers, "
                f"{len(self._builders)} builders>")  # fmt: skip


def _set_engine_state(state: Any) -> None:
    settings.start()
    common, of_graph = state
    if of_graph is not None:
        _core.cg().seed_state = of_graph  # making a first graph draws from the common generator
    _core.set_seed_state(common)


def _difference(what: str, ours: Iterable[str], theirs: Iterable[str]) -> str:
    """What the program has and the file has not, and the reverse."""
    texts = []
    for have, other, who in ((ours, theirs, "only here"), (theirs, ours, "only in the file")):
        names = sorted(set(have) - set(other))
        if names:
            texts.append(f"{who}: {', '.join(names[:8])}{', ...' if len(names) > 8 else ''}")
    return f"the {what} are not those of the file; " + "; ".join(texts)


def _read(path: str) -> tuple[Arrays, Any]:
    """Arrays and JSON text of a safetensors file."""
    import safetensors

    def fail(what: str) -> ModelFileError:
        return ModelFileError(f"[load_checkpoint] {path}: {what}")

    try:
        with open(path, "rb") as f:
            data = f.read()
    except FileNotFoundError as e:
        raise MissingFileError(e.errno, e.strerror, e.filename) from None
    try:
        tensors = safetensors.deserialize(data)  # type: ignore[no-untyped-call]
    except safetensors.SafetensorError as e:
        raise fail(f"not a safetensors file, or a damaged one: {e}") from None
    # The library has checked the head: sizes, offsets, types. It does not show the metadata, nor names that occur twice.
    head = data[8 : 8 + int.from_bytes(data[:8], "little")]
    arrays: Arrays = {}
    try:
        document = json.loads(json.loads(head, object_pairs_hook=_without_repeats)["__metadata__"][KEY],
                              object_pairs_hook=_without_repeats, parse_constant=_no_constant)  # fmt: skip
        for name, tensor in tensors:
            dtype = np.dtype(DTYPES[tensor["dtype"]]).newbyteorder("<")
            array = np.frombuffer(tensor["data"], dtype=dtype).reshape(tensor["shape"])
            arrays[name] = array.astype(array.dtype.newbyteorder("="), copy=False)
    except KeyError as e:
        raise fail(f"a safetensors file, but not a checkpoint of dynet_lite: {e} is not known") from None
    except (ValueError, TypeError, RecursionError) as e:
        raise fail(f"the head is damaged: {e}") from None
    if not isinstance(document, dict):
        raise fail("the description is damaged")
    return arrays, document


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    out = dict(pairs)
    if len(out) != len(pairs):
        raise ValueError("a name occurs twice")
    return out


def _no_constant(text: str) -> Any:
    raise ValueError(f"{text} is not a number")
