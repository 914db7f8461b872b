"""Every parameter of every callable of DyNet may be given by its name here, too; signatures.txt has the names.

Where DyNet is installed, the list is held against the module itself.
"""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from real_dynet import needs_dynet, run

import dynet_lite as dy

FILE = Path(__file__).with_name("signatures.txt")


def read_list() -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """The names by function, and by class for constructors."""
    parts = FILE.read_text(encoding="utf-8").split("[constructors]\n")
    found = []
    for part in parts:
        lines = [line for line in part.splitlines() if line and not line.startswith("#")]
        found.append({line.partition("(")[0]: line.partition("(")[2].rstrip(")").split(", ") for line in lines})
    return found[0], found[1]


FUNCTIONS, CONSTRUCTORS = read_list()


def names_of(item: Any) -> set[str]:
    """Names of the parameters that may be given by name."""
    kinds = inspect.Parameter
    return {n for n, p in inspect.signature(item).parameters.items()
            if p.kind in (kinds.POSITIONAL_OR_KEYWORD, kinds.KEYWORD_ONLY)}  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
def test_names(name: str) -> None:
    holder, _, method = name.partition(".")
    item = getattr(dy, holder)
    if not method and isinstance(item, type):
        item = item.__init__  # type: ignore[misc]
    assert set(FUNCTIONS[name]) <= names_of(getattr(item, method) if method else item)


@pytest.mark.parametrize("name", CONSTRUCTORS)
def test_names_of_constructors(name: str) -> None:
    assert set(CONSTRUCTORS[name]) <= names_of(getattr(dy, name).__init__)


@needs_dynet
def test_the_list_is_dynets() -> None:
    found = run("""
import inspect
out = {}
def add(name, f):
    try:
        names = [n for n, p in inspect.signature(f).parameters.items() if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    except (TypeError, ValueError):
        return
    names = [n for n in names if n != "self"]
    if names and not name.endswith("__init__"):
        out[name] = names
for n in dir(dy):
    item = getattr(dy, n)
    if n.startswith("_") or not callable(item):
        continue
    add(n, item)
    if isinstance(item, type):
        for m in dir(item):
            if not m.startswith("_") and callable(getattr(item, m)):
                add(n + "." + m, getattr(item, m))
""")
    assert found == FUNCTIONS


def test_calls_by_keyword() -> None:
    """The calls that were found to fail, with what they give."""
    model = dy.ParameterCollection()
    table = model.add_lookup_parameters((4, 2), init=np.arange(8.0).reshape(4, 2))
    weight = model.add_parameters((2, 2), init="identity")
    dy.renew_cg()
    x, y = dy.inputVector([1.0, 2.0]), dy.inputVector([3.0, 5.0])
    matrix = dy.inputTensor(np.arange(6.0).reshape(2, 3))
    assert dy.reshape(x, d=(1, 2)).shape == (1, 2)
    assert dy.esum(xs=[x, y]).value() == [4.0, 7.0]
    assert dy.average(xs=[x, y]).value() == [2.0, 3.5]
    assert dy.emax(xs=[x, y]).value() == [3.0, 5.0]
    assert dy.concatenate(xs=[x, y], d=0).value() == [1.0, 2.0, 3.0, 5.0]
    assert dy.concatenate_cols(xs=[x, y]).shape == (2, 2)
    assert dy.concatenate_to_batch(xs=[x, y]).batch_size == 2
    assert dy.logsumexp(xs=[x, x]).npvalue() == pytest.approx(np.array([1, 2]) + np.log(2), rel=1e-6)
    assert dy.affine_transform(exprs=[x, weight, y]).value() == [4.0, 7.0]
    assert dy.pick(e=x, index=1).value() == 2.0
    assert dy.pick_batch(e=x, indices=[0, 1]).vec_value() == [1.0, 2.0]
    assert dy.hinge_dim(x=matrix, v=[0, 1, 0], d=0).vec_value() == [4.0, 0.0, 4.0]
    assert dy.poisson_loss(log_lambda=dy.scalarInput(0), x=0).value() == 1.0
    assert dy.colwise_add(x=matrix, y=x).npvalue().tolist() == [[1, 2, 3], [5, 6, 7]]
    assert dy.kmh_ngram(x=matrix, v=3).npvalue().ravel().tolist() == [3, 12]
    assert dy.filter1d_narrow(x=matrix, y=dy.ones((2, 2))).npvalue().ravel().tolist() == [8, 12]
    dy.forward(exps=[x], recalculate=True)
    assert dy.values(exps=[x, y], recalculate=True) == [[1.0, 2.0], [3.0, 5.0]]
    assert [v.tolist() for v in dy.npvalues(exps=[x], recalculate=False)] == [[1.0, 2.0]]
    assert dy.to_device(e=x, device_str="CPU") is x
    assert table.batch(i=[1, 2]).vec_value() == [2.0, 3.0, 4.0, 5.0]
    assert table.row_as_array(row=1).tolist() == [2.0, 3.0]
    assert table.rows_as_array(rows=[0, 1]).tolist() == [[0.0, 1.0], [2.0, 3.0]]
    assert table.row_grad_as_array(row=1).tolist() == [0.0, 0.0]
    assert table.rows_grad_as_array(rows=[1]).tolist() == [[0.0, 0.0]]
    trainer = dy.SimpleSGDTrainer(m=model)
    trainer.set_learning_rate(value=0.5)
    assert trainer.learning_rate == 0.5
    for kind in (dy.LSTMBuilder, dy.GRUBuilder, dy.CoupledLSTMBuilder, dy.SimpleRNNBuilder):
        builder: Any = kind(1, 2, 2, model)
        builder.set_dropout(f=0.5)
        assert 0.5 in builder._rates
    rnn = dy.SimpleRNNBuilder(1, 2, 2, model)
    rnn.set_dropouts(d=0.25, d_h=0.5)
    assert rnn._rates == (0.25, 0.5)


def test_an_empty_expression() -> None:
    """A placeholder, as in DyNet; using it is an error that says so."""
    dy.renew_cg()
    empty = dy.Expression()
    assert repr(empty) == "<empty expression>"
    assert bool(empty)
    for use in (lambda: dy.tanh(empty), empty.value, empty.dim, lambda: empty + 1, lambda: dy.esum([empty])):
        with pytest.raises(dy.StaleExpressionError, match="empty: a placeholder"):
            use()
    for kind in (dy.Parameters, dy.LookupParameters):
        with pytest.raises(TypeError, match="collection"):
            kind()
    with pytest.raises(TypeError):
        dy.Expression(1)  # type: ignore[call-arg]


# Classes of DyNet without a constructor in the list: nobody makes one, or from nothing, or it is compiled here and called below.
NOT_LISTED = {
    "ComputationGraph", "DynetParams", "Expression", "IdentityInitializer", "LookupParameters", "Parameters", "PyInitializer",
    "RNNState", "SoftmaxBuilder", "Tensor", "Trainer",
}  # fmt: skip


@needs_dynet
def test_every_class_is_in_the_list() -> None:
    found = run("out = [n for n in dir(dy) if isinstance(getattr(dy, n), type) and not n.startswith('_')]")
    listed = {*CONSTRUCTORS, *(name for name in FUNCTIONS if "." not in name)}
    assert set(found) - listed - NOT_LISTED == set()


def test_states_and_flat_inputs_as_in_dynet() -> None:
    model = dy.ParameterCollection()
    builder = dy.VanillaLSTMBuilder(1, 3, 2, model)
    dy.renew_cg()
    x = dy.inputTensorTranspose(val=[1, 2, 3])
    assert x.shape == (3,)
    flat = dy.inputTensorTranspose(val=[1, 2, 3, 4], dim=(2,), batch_size=2)
    assert flat.dim() == ((2,), 2) and flat.npvalue().T.tolist() == [[1, 2], [3, 4]]
    state = dy.RNNState(builder=builder)
    assert state.prev() is None and state.s() == ()
    assert state.add_input(x).output().value() == builder.initial_state().add_input(x).output().value()
    with pytest.raises(ValueError, match="is made by its builder"):
        dy.RNNState(builder, prev_state=state)
    with pytest.raises(TypeError, match="a recurrent builder is needed; got ParameterCollection"):
        dy.RNNState(model)
