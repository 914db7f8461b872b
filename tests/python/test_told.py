"""Whatever is called with wrong arguments, the trace of the error ends at the user's line.

Every public function, class and method of dynet_lite and dynet_lite.nn is called with arguments of wrong kinds, sizes and graphs in every
place. What it raises is its own business; where the trace ends is not, nor is a name in brackets that no program calls.
"""

from __future__ import annotations

import copy
import inspect
import os
import pickle
import random
import re
import types
import warnings
import weakref
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest
from wrong_use import CLUSTERS, PATHS, WORDS, needs_311, vec

import dynet_lite as dy
from dynet_lite import nn
from dynet_lite.needs import HOT


def gone() -> Any:
    old = vec(3)
    dy.renew_cg()
    return old


WRONG: tuple[Callable[[], Any], ...] = (
    lambda: None, lambda: "x", object, lambda: -1, lambda: 2.5, dict, list, lambda: [None], lambda: float("nan"), lambda: 10**12,
    lambda: vec(7), lambda: b"x", lambda: np.ones((2, 3)), lambda: [vec(3), vec(4)], lambda: lambda *given: 1, gone,
)  # fmt: skip
FILLING: tuple[Callable[[], Any], ...] = (lambda: vec(3), lambda: 1, lambda: [vec(3), vec(3)], dy.ParameterCollection)
# These set up the process, or end with it.
LEFT_OUT = {"init", "init_from_params", "configure", "install_as_dynet", "reset_random_seed"}


def places(function: Any) -> range:
    """How many arguments it may be given; not all of them where there are many."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return range(4)
    by_place = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    many = any(p.kind is p.VAR_POSITIONAL for p in parameters)
    least = sum(p.default is p.empty for p in by_place)
    return range(max(least, int(many)), max(least, min(len(by_place) + many, 5)) + 1)


def ends_in(error: BaseException) -> str:
    """The module whose line is the last of the trace."""
    trace = error.__traceback__
    assert trace is not None
    while trace.tb_next is not None:
        trace = trace.tb_next
    return f"{trace.tb_frame.f_globals.get('__name__')}.{trace.tb_frame.f_code.co_name}"


def errors(make: Callable[[], Any]) -> Iterator[Exception]:
    """Of wrong calls. make: what is called, anew for each call; None if there is no such thing."""
    found = make()
    for n in places(found):
        for at in range(n):
            for k, wrong in enumerate(WRONG):
                dy.renew_cg()
                call, filling = make(), FILLING[k % len(FILLING)]
                args = [wrong() if i == at else filling() for i in range(n)]
                try:
                    made = call(*args)
                    if inspect.isgenerator(made):
                        next(made, None)
                except Exception as error:
                    yield error


def faults(make: Callable[[], Any]) -> Iterator[str]:
    """Of errors: that the trace ends elsewhere (but in functions that are called too often to be wrapped), or that what stands in brackets is nothing that a program calls."""
    for error in errors(make):
        said, where = f"{type(error).__name__}: {error}"[:300], ends_in(error)
        if not where.startswith(f"{__name__}.") and where.rpartition(".")[2] not in HOT:
            yield f"{where}: {said}"
        found = re.match(r"\[(.+?)\] ", str(error))
        if (
            found
            and not isinstance(error, OSError)
            and not set(re.split(r": ", found[1].partition(" at ")[0])) <= PUBLIC
        ):
            yield f"names nothing public: {said}"


def public(module: Any) -> dict[str, Any]:
    found = {
        name: getattr(module, name) for name in sorted({*dir(module), *module.__all__}) if not name.startswith("_")
    }
    return {
        name: value
        for name, value in found.items()
        if callable(value) and name not in LEFT_OUT and not isinstance(value, types.ModuleType)
        and not (isinstance(value, type) and issubclass(value, BaseException))
    }  # fmt: skip


FUNCTIONS = {
    f"{kind}.{name}": value for kind, module in (("dy", dy), ("nn", nn)) for name, value in public(module).items()
}


@dy.cell
def step(state: Any, x: Any) -> Any:
    return dy.tanh(state + x)


RECURRENT = (
    "VanillaLSTMBuilder",
    "SimpleRNNBuilder",
    "GRUBuilder",
    "CoupledLSTMBuilder",
    "CompactVanillaLSTMBuilder",
    "SparseLSTMBuilder",
)
TRAINERS = sorted(name for name, value in public(dy).items() if name.endswith("Trainer") and name != "Trainer")
OBJECTS: dict[str, Callable[[Any], Any]] = {
    "collection": lambda m: m,
    "weight": lambda m: m.add_parameters((3, 4)),
    "table": lambda m: m.add_lookup_parameters((5, 3)),
    "expression": lambda m: vec(3),
    "row": lambda m: m.add_lookup_parameters((5, 3))[1],
    "graph": lambda m: dy.cg(),
    "tensor": lambda m: vec(3).tensor_value(),
    "cell": lambda m: step,
    "initializer": lambda m: dy.UniformInitializer(1.0),
    **{name: lambda m, name=name: getattr(dy, name)(m) for name in TRAINERS},
    **{name: lambda m, name=name: getattr(dy, name)(1, 3, 4, m) for name in RECURRENT},
    "state": lambda m: dy.LSTMBuilder(1, 3, 4, m).initial_state(),
    "later state": lambda m: dy.SimpleRNNBuilder(1, 3, 4, m).initial_state().add_input(vec(3)),
    "stacked state": lambda m: dy.StackedRNNState([dy.LSTMBuilder(1, 3, 4, m).initial_state()]),
    "BiRNNBuilder": lambda m: dy.BiRNNBuilder(2, 3, 4, m, dy.GRUBuilder),
    "ChildSumTreeLSTMBuilder": lambda m: dy.ChildSumTreeLSTMBuilder(1, 3, 4, m),
    "NaryTreeLSTMBuilder": lambda m: dy.NaryTreeLSTMBuilder(2, 1, 3, 4, m),
    "UnidirectionalTreeLSTMBuilder": lambda m: dy.UnidirectionalTreeLSTMBuilder(1, 4, 4, m),
    "BidirectionalTreeLSTMBuilder": lambda m: dy.BidirectionalTreeLSTMBuilder(1, 4, 4, m),
    "StandardSoftmaxBuilder": lambda m: dy.StandardSoftmaxBuilder(3, 5, m),
    "ClassFactoredSoftmaxBuilder": lambda m: dy.ClassFactoredSoftmaxBuilder(3, CLUSTERS, WORDS, m),
    "HierarchicalSoftmaxBuilder": lambda m: dy.HierarchicalSoftmaxBuilder(3, PATHS, WORDS, m),
    "CellBuilder": lambda m: dy.CellBuilder(step, zero=partial(vec, 3)),
    "CellState": lambda m: dy.CellBuilder(step, zero=partial(vec, 3)).initial_state(),
    "MLPAttention": lambda m: nn.MLPAttention(3, 2, 5, m),
    "DotAttention": lambda m: nn.DotAttention(3, 2, m),
    "MultiHeadAttention": lambda m: nn.MultiHeadAttention(4, 2, m),
    "LayerNorm": lambda m: nn.LayerNorm(3, m),
    "TransformerLayer": lambda m: nn.TransformerLayer(4, 2, 8, m),
    "Transformer": lambda m: nn.Transformer(1, 4, 2, 8, m),
    "LinearChainCRF": lambda m: nn.LinearChainCRF(m, 3),
    "Biaffine": lambda m: nn.Biaffine(m, 3, 4, 2),
    "GraphConvolution": lambda m: nn.GraphConvolution(m, 3, 4, 2),
    "LetterCNN": lambda m: nn.LetterCNN(m, 3, 4),
    "LetterLSTM": lambda m: nn.LetterLSTM(m, 3, 4),
    "NegativeSampling": lambda m: nn.NegativeSampling(m, 3, [1, 2]),
    "StackLSTM": lambda m: nn.StackLSTM(dy.LSTMBuilder(1, 3, 4, m).initial_state().add_input(vec(3))),
    "WordReader": lambda m: nn.WordReader(m, nn.WordReader.build([["a", "b"]]), dim=3, rng=random.Random(1)),
}  # fmt: skip
# What programs write: functions, classes and methods, and what has no name.
PUBLIC = {
    *public(dy), *public(nn), *dy.__all__,
    *(name for make in OBJECTS.values() for name in dir(make(dy.ParameterCollection())) if not name.startswith("_")),
    "x + y", "x - y", "-x", "x + c", "c - x", "c * x", "c / x", "x ** c", "c ** x", "x < y", "x[...]", "onnx",
}  # fmt: skip
dy.renew_cg()  # the objects have made nodes
SPECIAL = (
    "__call__",
    "__getitem__",
    "__setitem__",
    "__add__",
    "__sub__",
    "__mul__",
    "__truediv__",
    "__pow__",
    "__contains__",
)


@pytest.fixture(autouse=True)
def quiet(tmp_path: Any, monkeypatch: Any, capfd: Any) -> Iterator[None]:
    """Files go to a folder of their own, prints and warnings nowhere."""
    monkeypatch.chdir(tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
    dy.renew_cg()


@needs_311
@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name: str) -> None:
    found = list(faults(lambda: FUNCTIONS[name]))
    assert not found, "\n".join(dict.fromkeys(found))


@needs_311
@pytest.mark.parametrize("kind", OBJECTS)
def test_methods(kind: str) -> None:
    found = []
    thing = OBJECTS[kind](dy.ParameterCollection())
    for name in dir(thing):
        if (not name.startswith("_") or name in SPECIAL) and callable(getattr(type(thing), name, None)):
            calls = faults(lambda name=name: getattr(OBJECTS[kind](dy.ParameterCollection()), name))
            found += [f"{name}: {fault}" for fault in calls]
    assert not found, "\n".join(dict.fromkeys(found))


@needs_311
def test_properties() -> None:
    trainer = dy.AdamTrainer(dy.ParameterCollection())
    with pytest.raises(TypeError, match=r"^\[learning_rate\] value must be a number; got 'a'$") as raised:
        trainer.learning_rate = "a"
    assert ends_in(raised.value).startswith(__name__)


# ---- what is said ---------------------------------------------------------------------------------------------------

SAID: dict[str, tuple[Callable[[Any], Any], type[Exception], str]] = {
    "number": (lambda m: dy.dropout(vec(3), np.ones(2)), TypeError, "[dropout] p must be a number; got {2}"),
    "no number": (lambda m: dy.noise(vec(3), None), TypeError, "[noise] stddev must be a number"),
    "no expression": (lambda m: dy.dropout(None, 0.5), TypeError, "[dropout] an expression, an array or a number is needed; got None"),
    "no list": (lambda m: dy.segment_sum(None, [1]), TypeError, "[segment_sum] 'NoneType' object is not iterable; called with xs=None, ids="),
    "no whole numbers": (lambda m: dy.segment_mean([vec(3)], 1), TypeError, "[segment_mean] ids "),
    "no dims": (lambda m: dy.select_rows(vec(3), np.array(1)), TypeError, "[select_rows] rs must be a list of whole numbers; got "),
    "old graph": (lambda m: dy.squared_norm(gone()), dy.StaleExpressionError, "[squared_norm] stale: "),
    "inner op": (lambda m: dy.moment_dim(vec(3), 4, 2), ValueError, "[moment_dim] there is no dim 4; got {3}"),
    "truth": (lambda m: dy.renew_cg(np.ones(2)), TypeError, "[renew_cg] immediate_compute must be True or False; got {2}"),
    "place": (lambda m: dy.sparse_inputTensor([[7]], [1.0], (3,)), IndexError, "[sparse_inputTensor] index 7 is out of bounds"),
    "trainer": (lambda m: dy.SimpleSGDTrainer(m, "a"), TypeError, "[SimpleSGDTrainer] learning_rate must be a number; got 'a'"),
    "trainer of none": (lambda m: dy.SimpleSGDTrainer(3), TypeError, "[SimpleSGDTrainer] a ParameterCollection is needed; got int"),
    "threshold": (lambda m: dy.SimpleSGDTrainer(m).set_clip_threshold(None), TypeError, "[set_clip_threshold] thr must be a number; got None"),
    "rate": (lambda m: dy.SimpleSGDTrainer(m).set_learning_rate(None), TypeError, "[set_learning_rate] value must be a number; got None"),
    "size": (lambda m: m.add_parameters((2.5,)), ValueError, "[add_parameters] dims must be whole numbers >= 0; got (2.5,)"),
    "name": (lambda m: m.add_parameters(3, name=4), TypeError, "[add_parameters] a name is text; got int"),
    "scale": (lambda m: dy.UniformInitializer(None), TypeError, "[UniformInitializer] scale must be a number; got None"),
    "path": (lambda m: m.save(None), TypeError, "[save] expected str, bytes or os.PathLike object, not NoneType; called with fname=None"),
    "weight's path": (lambda m: m.add_parameters(3).save(None), TypeError, "[save] expected str, bytes or os.PathLike object"),
    "graph": (lambda m: dy.explain_batches("x"), TypeError, "[explain_batches] graph must be a ComputationGraph or a function or None; got 'x'"),
    "of nn": (lambda m: nn.smoothed_loss(vec(3), "a"), TypeError, "[smoothed_loss] "),
    "of a trainer's class": (lambda m: dy.AdamTrainer(m, lr=1), TypeError, "[AdamTrainer] there is no argument 'lr'"),
    "call": (lambda m: dy.dropout(), TypeError, "dropout() missing 2 required positional arguments: 'x' and 'p'"),
}  # fmt: skip


@pytest.mark.parametrize("case", SAID)
def test_what_is_said(case: str) -> None:
    call, kind, text = SAID[case]
    with pytest.raises(kind) as raised:
        call(dy.ParameterCollection())
    assert str(raised.value).startswith(text), raised.value


def test_the_users_own_errors_stay() -> None:
    """Raised in a function that the package calls: words and lines are the user's, also in modules called like one of ours."""

    def mine(*given: Any) -> Any:
        raise ValueError("mine")

    def numpys(*given: Any) -> Any:
        return np.full("x", 1.0)  # a mistake in a call of a library

    ours = {"__name__": "dynet_lite_experiment"}
    exec("def theirs(*given): raise ValueError('theirs')", ours)
    for function, words, line in (
        (mine, "mine", "mine"),
        (numpys, "cannot be interpreted", "full"),
        (ours["theirs"], "theirs", "theirs"),
    ):
        with pytest.raises((ValueError, TypeError)) as raised:
            dy.gradcheck(function)
        assert "gradcheck" not in str(raised.value) and words in str(raised.value)
        assert raised.traceback[-1].name == line


def test_they_are_functions_all_the_same() -> None:
    """Pickled by name, copied as they are, with the signature, the text and the name that were written."""
    for function in (dy.dropout, dy.segment_sum, nn.causal_mask, dy.vanilla_lstm_gates):
        assert pickle.loads(pickle.dumps(function)) is function is copy.deepcopy(function) is weakref.ref(function)()
        assert inspect.signature(function).parameters and inspect.getdoc(function) and inspect.getsource(function)
        assert function.__name__ in repr(function)
    method = dy.AdamTrainer(dy.ParameterCollection()).update_epoch
    assert inspect.ismethod(method) and str(inspect.signature(method)) == "(r: 'float' = 1.0) -> 'None'"
    assert os.path.basename(inspect.getsourcefile(inspect.unwrap(dy.noise)) or "") == "ops_random.py"


def test_a_bug_of_ours_keeps_its_lines(monkeypatch: Any) -> None:
    def broken(*given: Any) -> Any:
        raise AssertionError("a bug")

    monkeypatch.setattr("dynet_lite.ops_segment._numbers", broken)
    with pytest.raises(AssertionError) as raised:
        dy.segment_sum([vec(3)], [0])
    assert [entry.name for entry in raised.traceback][-3:] == ["segment_sum", "_of_list", "broken"]
