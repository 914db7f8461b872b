"""Backward passes that write the gradients of an LSTM's sums where its gates lie (BackRun::find_spent_sums).

Further passes over the same graph need the gates again; what each gives is compared with the same pass over a new graph.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from fused_programs import STRATEGIES, engine, near

import dynet_lite as dy
from dynet_lite import _core

IN, H = 5, 9
LENGTHS = (4, 1, 6, 3)
PASSES = ((0, 1, 2, 3), (0, 1, 2, 3), (2,), (0, 1, 2, 3), (1, 3), (0,))
Array = np.ndarray

BUILDERS: dict[str, Callable[[Any], Any]] = {
    "vanilla": lambda pc: dy.VanillaLSTMBuilder(1, IN, H, pc),
    "two layers": lambda pc: dy.VanillaLSTMBuilder(2, IN, H, pc),
    "peepholes": lambda pc: dy.CoupledLSTMBuilder(2, IN, H, pc),
    "coupled": lambda pc: dy.FastLSTMBuilder(1, IN, H, pc),
    "both ways": lambda pc: dy.BiRNNBuilder(1, IN, 2 * H, pc, dy.VanillaLSTMBuilder),
}
each_builder = pytest.mark.parametrize("name", BUILDERS)


class Case:
    """Sentences through a builder, and a loss for each of them. Two cases of one name have equal numbers."""

    def __init__(self, name: str, batch: int = 1) -> None:
        dy.reset_random_seed(3)
        self.pc, self.batch = dy.ParameterCollection(), batch
        self.builder = BUILDERS[name](self.pc)
        self.build()

    def build(self) -> None:
        dy.renew_cg()
        rng = np.random.default_rng(5)
        shape = (IN, self.batch) if self.batch > 1 else (IN,)
        self.xs: list[Any] = []
        self.outputs: list[Any] = []
        self.losses: list[Any] = []
        for length in LENGTHS:
            xs = [dy.inputTensor(rng.uniform(-1, 1, shape), batched=self.batch > 1) for _ in range(length)]
            start = self.builder if hasattr(self.builder, "transduce") else self.builder.initial_state()
            outputs = start.transduce(xs)
            weigh = [dy.inputVector(rng.uniform(0.5, 1, h.dim()[0][0])) for h in outputs]
            self.losses.append(
                dy.esum([dy.sum_batches(dy.dot_product(h, w)) for h, w in zip(outputs, weigh, strict=True)])
            )
            self.xs += xs
            self.outputs += outputs

    def gradients(self, parts: tuple[int, ...]) -> list[Array]:
        dy.esum([self.losses[k] for k in parts]).backward(full=True)
        weights = self.pc.parameters_list()
        found = [p.grad_as_array().copy() for p in weights] + [x.gradient() for x in self.xs]
        for p in weights:
            p.zero_gradient()
        return found


def over_new_graphs(name: str, batch: int = 1) -> list[list[Array]]:
    """What each pass gives when it is the first one."""
    case, found = Case(name, batch), []
    for parts in PASSES:
        case.build()
        found.append(case.gradients(parts))
    return found


@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("strategy", STRATEGIES)
@each_builder
def test_further_passes(name: str, strategy: str, threads: int, batch: int) -> None:
    with engine(strategy=strategy, threads=threads):
        wanted = over_new_graphs(name, batch)
        case = Case(name, batch)
        before = None
        for k, parts in enumerate(PASSES):
            for given, other in zip(case.gradients(parts), wanted[k], strict=True):
                near(given, other, 1e-6, (parts, k))
            values = [h.npvalue() for h in case.outputs]
            for value, was in zip(values, before or values, strict=True):
                np.testing.assert_array_equal(value, was)
            before = values


@each_builder
def test_going_on_after_a_pass(name: str) -> None:
    """What is built afterwards reads h and c, which are there, and a pass over all of it makes the gates again."""
    with engine():

        def go_on(case: Case, pass_between: bool) -> list[Array]:
            if pass_between:
                case.gradients((0, 1, 2, 3))
            longer = dy.esum([dy.sum_elems(dy.square(dy.tanh(h))) for h in case.outputs])
            case.losses.append(longer)
            return [longer.npvalue(), *case.gradients((4, 1))]

        wanted, given = go_on(Case(name), False), go_on(Case(name), True)
        for a, b in zip(given, wanted, strict=True):
            near(a, b, 1e-6)


@each_builder
def test_running_again_with_new_inputs(name: str) -> None:
    with engine():
        case = Case(name)
        case.gradients((0, 1, 2, 3))
        for x in case.xs:
            x.set(np.linspace(-1, 1, IN))
        again = case.gradients((0, 1, 2, 3))
        fresh = Case(name)
        for x in fresh.xs:
            x.set(np.linspace(-1, 1, IN))
        for a, b in zip(again, fresh.gradients((0, 1, 2, 3)), strict=True):
            near(a, b, 1e-6)


@each_builder
def test_gates_are_made_again_for_a_second_pass_alone(name: str) -> None:
    """So the first one has written over them."""
    with engine():
        _core.settings.profile = True
        case = Case(name)

        def calls() -> int:
            return sum(p["calls"] for op, p in dy.cg().op_profile().items() if "_lstm_" in op)

        before = calls()
        dy.esum(case.losses).value()
        once = calls() - before
        case.gradients((0, 1, 2, 3))
        assert calls() - before == once > 0
        case.gradients((0, 1, 2, 3))
        assert calls() - before == 2 * once


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_pass_that_comes_to_no_joined_gate_between_two_that_do(strategy: str) -> None:
    """Gates by hand before an LSTM, whose sums are spent in each pass; the part of the loss without them leaves theirs alone."""
    found = []
    for fuse in (True, False):
        rng = np.random.default_rng(1)
        pc = dy.ParameterCollection()
        W, V, b, c = (pc.parameters_from_numpy(rng.uniform(-0.5, 0.5, shape)) for shape in ((H, H), (H, H), (H,), (H,)))
        lstm = dy.VanillaLSTMBuilder(1, H, H, pc)
        for p in lstm.param_collection().parameters_list():
            p.set_value(rng.uniform(-0.5, 0.5, p.shape()))
        with engine(fuse=fuse, strategy=strategy):
            x = dy.inputVector(np.linspace(-1, 1, H))
            gate = dy.cmult(dy.logistic(dy.affine_transform([b, W, x])), dy.tanh(dy.affine_transform([c, V, x])))
            part, other = (dy.squared_norm(lstm.initial_state().add_input(e).output()) for e in (gate, x))
            del gate
            total = part + other
            for loss in (total, other, total):
                loss.backward()
                found.append([p.grad_as_array() for p in pc.parameters_list()])
                for p in pc.parameters_list():
                    p.zero_gradient()
    for fused, plain in zip(found[:3], found[3:], strict=True):
        for a, b_ in zip(fused, plain, strict=True):
            near(a, b_, 1e-5, atol=1e-6)
