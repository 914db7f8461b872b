"""Nodes that run one by one as they are made (cext/exec/at_once.cc): the numbers of one graph without batches, in one plan."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dynet_lite as dy

Program = Callable[[dict[str, Any]], list[Any]]
PLAIN: dict[str, Any] = {"autobatching": False}
AT_ONCE: dict[str, Any] = {"immediate_compute": True}
CHECKED: dict[str, Any] = {"immediate_compute": True, "check_validity": True}


class Model:
    def __init__(self) -> None:
        rng = np.random.default_rng(2)
        self.all = dy.ParameterCollection()
        self.w = self.all.parameters_from_numpy(rng.normal(size=(5, 5)))
        self.b = self.all.parameters_from_numpy(rng.normal(size=5))
        self.e = self.all.lookup_parameters_from_numpy(rng.normal(size=(5, 9)).T)
        self.trainer = dy.SimpleSGDTrainer(self.all, 0.1)
        self.trainer.set_clip_threshold(0)

    def chain(self, steps: int) -> Any:
        h = self.e[0]
        for k in range(steps):
            h = dy.tanh(dy.affine_transform([self.b, self.w, h])) + self.e[k % 9] * 0.5
        return dy.sum_batches(dy.squared_norm(h + dy.lookup_batch(self.e, [1, 2, 3])))

    def gradients(self) -> list[Any]:
        return [self.w.grad_as_array().copy(), self.b.grad_as_array().copy(), self.e.grad_as_array().copy()]


def a_step(how: dict[str, Any]) -> list[Any]:
    model, out = Model(), []
    for steps in (3, 7, 70):
        dy.renew_cg(**how)
        loss = model.chain(steps)
        out.append(loss.value())
        loss.backward()
        out += model.gradients()
        model.trainer.update()
    return out


def several_passes(how: dict[str, Any]) -> list[Any]:
    """Nodes after a backward pass, and after an update."""
    model, out = Model(), []
    dy.renew_cg(**how)
    for steps in (2, 4):
        loss = model.chain(steps)
        loss.value()
        loss.backward()
        out += [loss.value(), loss.gradient(), *model.gradients()]
        more = loss * 2.0 + dy.exp(loss * -0.1)
        out.append(more.value())
        model.trainer.update()
        again = more + dy.sum_elems(model.w * model.e[4])
        out.append(again.value())
        again.backward()
        out += model.gradients()
        model.trainer.update()
    return out


def an_update_between(how: dict[str, Any]) -> list[Any]:
    """A pass through nodes of before and after an update, each with the weights that it read."""
    model, out = Model(), []
    dy.renew_cg(**how)
    first = dy.squared_norm(model.w * model.e[1])
    out.append(first.value())
    first.backward()
    model.trainer.update()
    second = first + dy.squared_norm(dy.tanh(model.w * model.e[1]))
    out.append(second.value())
    second.backward()
    return out + model.gradients()


def going_back(how: dict[str, Any]) -> list[Any]:
    model, out = Model(), []
    dy.renew_cg(**how)
    h = dy.tanh(model.w * model.e[2])
    h.value()
    for k in range(3):
        dy.cg_checkpoint()
        out.append(dy.squared_norm(h + model.e[k]).value())
        dy.cg_revert()
    loss = dy.squared_norm(dy.cube(h))
    out.append(loss.value())
    loss.backward()
    return out + model.gradients()


def other_input(how: dict[str, Any]) -> list[Any]:
    model, out = Model(), []
    dy.renew_cg(**how)
    x = dy.inputVector([1.0, 2.0, 3.0, 4.0, 5.0])
    loss = dy.squared_norm(dy.tanh(model.w * x))
    out.append(loss.value())
    x.set([5.0, 4.0, 3.0, 2.0, 1.0])
    more = loss + 1.0
    out += [loss.value(), more.value()]
    more.backward()
    return out + model.gradients()


def several_outputs(how: dict[str, Any]) -> list[Any]:
    """Cells have hidden outputs, and parts of values are read where they lie."""
    model = Model()
    lstm = dy.VanillaLSTMBuilder(2, 5, 6, model.all)
    for p, k in zip(lstm.param_collection().parameters_list(), range(9), strict=False):
        p.set_value(np.random.default_rng(k).normal(size=p.shape()))
    dy.renew_cg(**how)
    states = lstm.initial_state().add_inputs([model.e[k] for k in range(4)])
    h = dy.concatenate([states[-1].output()[1:4], dy.reshape(states[1].output(), (6,))])
    loss = dy.squared_norm(h)
    value = loss.value()
    loss.backward()
    return [value, *model.gradients(), *(p.grad_as_array().copy() for p in lstm.get_parameters()[0])]


def same(one: list[Any], other: list[Any]) -> None:
    assert len(one) == len(other)
    for a, b in zip(one, other, strict=True):
        assert np.array_equal(np.asarray(a), np.asarray(b))


@pytest.mark.parametrize("how", [AT_ONCE, CHECKED], ids=["immediate", "checked"])
@pytest.mark.parametrize(
    "program", [a_step, several_passes, an_update_between, going_back, other_input, several_outputs]
)
def test_the_numbers_are_those_of_a_graph_without_batches(program: Program, how: dict[str, Any]) -> None:
    with dy.configure(fuse=False):
        expected = program(PLAIN)
    same(program(how), expected)


def test_nodes_are_in_one_plan() -> None:
    dy.renew_cg(immediate_compute=True)
    loss = Model().chain(20)
    ran = dy.stats()
    assert ran["nodes"] == ran["batches"] == ran["lower_bound"] == 83
    (head,) = [line for line in dy.plan_text().splitlines() if " batches " in line]
    assert head.startswith("83 nodes in 83 batches (lower bound 83)")
    loss.backward()
    dy.exp(loss)  # its gradients lie behind those of the first
    assert len([line for line in dy.plan_text().splitlines() if " batches " in line]) == 2


def test_a_node_that_fails_leaves_the_others_as_they_are() -> None:
    model = Model()
    dy.renew_cg(**CHECKED)
    h = dy.tanh(model.w * model.e[2])
    for _ in range(3):
        dy.cg_checkpoint()
        with pytest.raises(dy.NotFiniteError, match=r"^\[log "):
            dy.log(h * 0.0 - 1.0)
        dy.cg_revert()
    loss = dy.squared_norm(h + 1.0)
    loss.backward()
    found = [loss.value(), *model.gradients()]
    model.trainer.update()
    model = Model()
    dy.renew_cg(autobatching=False)
    loss = dy.squared_norm(dy.tanh(model.w * model.e[2]) + 1.0)
    loss.backward()
    same(found, [loss.value(), *model.gradients()])
