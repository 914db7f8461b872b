"""explain_batches(): each cause is brought about by a program that has it."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import dynet_lite as dy
from dynet_lite.explain import BatchKind


@pytest.fixture
def weights() -> dict[str, Any]:
    model = dy.ParameterCollection()
    return {
        "W": model.add_parameters((3, 4), name="W"),
        "V": model.add_parameters((3, 4), name="V"),
        "E": model.add_lookup_parameters((9, 4), name="E"),
        "lstm": dy.LSTMBuilder(1, 4, 4, model),
        "model": model,
    }


def vector(n: int = 4) -> dy.Expression:
    return dy.inputVector(np.linspace(-1, 1, n))


def kinds(e: dy.BatchExplanation, op: str) -> list[BatchKind]:
    return [k for k in e.kinds if k.op == op]


def test_alike_nodes_run_together() -> None:
    a, b = dy.tanh(vector()), dy.tanh(vector())
    e = dy.explain_batches()  # runs what is pending
    assert (e.nodes, e.batches, e.lower_bound, e.strategy) == (2, 1, 1, "greedy")
    (kind,) = e.kinds
    assert (kind.op, kind.sizes, kind.fewest, kind.causes) == ("tanh", (2,), 1, {})
    assert kind.arguments == ("stacked {4}",)
    assert e.why(a, b).cause == "together"
    assert not e.differences


def test_why_of_what_is_not_there() -> None:
    a = dy.tanh(vector())
    e = dy.explain_batches()
    for number in (999, -1):
        with pytest.raises(IndexError, match=rf"\[why\] node {number} of a graph of 2 nodes"):
            e.why(number, a)
    assert e.why(np.int64(1), a).cause == "same"
    with pytest.raises(ValueError, match=r"\[why\] the node was made after the explanation"):
        e.why(a, dy.tanh(a))


def test_another_op() -> None:
    a, b = dy.tanh(vector()), dy.logistic(vector())
    assert str(dy.explain_batches().why(a, b)) == "different ops: tanh and logistic"


def test_another_shape() -> None:
    a, b = dy.tanh(vector(3)), dy.tanh(vector(4))
    e = dy.explain_batches()
    assert str(e.why(a, b)) == "different shape of argument 0: {3} and {4}"
    (d,) = e.differences
    assert (d.op, d.parts) == ("tanh", (("shape of argument 0", "{3}", "{4}"),))
    assert "tanh, by shape of argument 0: {3} (1 nodes), {4} (1 nodes)" in str(e)


def test_another_weight(weights: dict[str, Any]) -> None:
    a, b = weights["W"] * vector(), weights["V"] * vector()
    e = dy.explain_batches()
    (d,) = e.differences
    ((part, x, y),) = d.parts
    assert part == "argument 0" and x.endswith("/W") and y.endswith("/V") and x.startswith("shared")
    assert e.why(a, b).cause == "signature"


def test_a_weight_and_a_computed_matrix(weights: dict[str, Any]) -> None:
    a, b = weights["W"] * vector(), dy.inputTensor(np.ones((3, 4))) * vector()
    text = str(dy.explain_batches().why(a, b))
    assert "argument 0: shared" in text and "stacked {3,4}" in text


def test_another_attribute() -> None:
    a, b = dy.sum_dim(dy.inputTensor(np.ones((3, 3))), [0]), dy.sum_dim(dy.inputTensor(np.ones((3, 3))), [1])
    assert "different attribute dims: [0] and [1]" in str(dy.explain_batches().why(a, b))


def test_another_number_of_arguments() -> None:
    a, b = dy.esum([vector(), vector()]), dy.esum([vector(), vector(), vector()])
    e = dy.explain_batches()
    assert str(e.why(a, b)) == "different number of arguments: 2 and 3"
    assert [d.parts for d in e.differences] == [(("number of arguments", "2", "3"),)]


def test_member_attributes_do_not_part() -> None:
    a, b = dy.pick(vector(), 1), dy.pick(vector(), 2)
    dy.forward([a + 1, b + 2])
    e = dy.explain_batches()
    assert all(len(k.batches) == 1 for k in e.kinds)


def test_dependency(weights: dict[str, Any]) -> None:
    long = weights["lstm"].initial_state().transduce([weights["E"][i] for i in (1, 2, 3, 4)])
    short = weights["lstm"].initial_state().transduce([weights["E"][i] for i in (1, 2)])
    e = dy.explain_batches()
    (steps,) = kinds(e, "lstm_step")
    assert (steps.nodes, steps.fewest, steps.sizes, steps.causes) == (4, 3, (2, 1, 1), {"dependency": 2})
    assert e.why(long[1], short[1]).cause == "together"
    assert e.why(long[1], long[3]).text.endswith(f"depends on node {steps_node(e, steps, 0)}")
    apart = e.why(short[1], long[2])  # apart only because the other one's argument ran with this one
    assert apart.cause == "dependency" and "which ran with node" in apart.text
    assert "they depend on each other" in str(e)


def steps_node(e: dy.BatchExplanation, kind: BatchKind, batch: int) -> int:
    return min(e._structure.batches[kind.batches[batch]].nodes)


def test_a_value_in_between() -> None:
    a = dy.tanh(vector())
    a.value()
    b = dy.tanh(vector())
    e = dy.explain_batches()
    assert e.kinds[0].causes == {"evaluation": 1} and e.why(a, b).cause == "evaluation"


def test_batching_off() -> None:
    dy.renew_cg(autobatching=False)
    a, b = dy.tanh(vector()), dy.tanh(vector())
    e = dy.explain_batches()
    assert e.kinds[0].causes == {"off": 1} and e.why(a, b).cause == "off"
    assert "automatic batching is off" in str(e)


def test_the_strategy() -> None:
    """By depth, nodes that could run together do not."""
    with dy.configure(strategy="depth"):
        dy.renew_cg()
        a, b = dy.tanh(vector()), dy.tanh(dy.logistic(vector()))
        e = dy.explain_batches()
    (tanh,) = kinds(e, "tanh")
    assert tanh.fewest == 1 and tanh.causes == {"strategy": 1}
    assert e.why(a, b).cause == "strategy" and "depth" in e.why(a, b).text


def test_threads(weights: dict[str, Any]) -> None:
    from dynet_lite import _core

    _core.settings.least_work = 0
    with dy.configure(threads=2):
        dy.renew_cg()
        ends = [weights["lstm"].initial_state().transduce([weights["E"][i]] * 3)[-1] for i in range(8)]
        loss = dy.esum([dy.sum_elems(x) for x in ends])
        loss.value()
        e = dy.explain_batches()
    (steps,) = kinds(e, "lstm_step")
    assert steps.causes == {"dependency": 1, "threads": 2} and steps.fewest == 2
    causes = {e.why(a, b).cause for a in ends for b in ends if a is not b}
    assert causes == {"together", "threads"}


def test_what_does_not_run(weights: dict[str, Any]) -> None:
    x = vector()
    y = dy.tanh(x)
    part, whole = y[1:3], dy.reshape(y, (2, 2))
    state = weights["lstm"].initial_state().add_input(x)
    e = dy.explain_batches()
    assert e.why(x, y).cause == "leaf" and "an input" in e.why(x, y).text
    assert e.why(part, whole).cause == "same"
    h, c = state.h()[0], state.s()[0]
    assert e.why(h, c).cause == "same"  # two values of one step


def test_what_is_not_needed(weights: dict[str, Any]) -> None:
    x = vector()
    dy.exp(x)
    y = dy.tanh(x)
    y.value()
    e = dy.explain_batches()
    number = next(node.number for node in e._structure.nodes if node.sort == "dead")
    assert e.why(y, number).cause == e.why(number, x).cause == "dead"
    assert str(e.why(number, y)) == f"node {number} (exp {{4}}) does not run: nothing needs it"


def test_as_data(weights: dict[str, Any]) -> None:
    dy.esum([dy.sum_elems(weights["W"] * weights["E"][i]) for i in range(3)])
    e = dy.explain_batches()
    data = json.loads(json.dumps(e.to_dict()))
    assert data["nodes"] == sum(k["nodes"] for k in data["kinds"]) and data["batches"] == e.batches
    assert "7 nodes in 3 batches, 3 kinds" in repr(e)


def test_of_an_old_graph() -> None:
    a = dy.tanh(vector())
    e = dy.explain_batches()
    dy.renew_cg()
    with pytest.raises(RuntimeError, match="renewed"):
        e.why(a, a)
    assert "tanh" in str(e)


def test_nothing_ran() -> None:
    assert str(dy.explain_batches()).startswith("0 nodes of 0 kinds ran in 0 batches")


def test_many_kinds_stay_quick() -> None:
    """Every length is a kind of its own; the text stays short."""
    for n in range(2, 402):
        dy.esum([vector()] * n)
    e = dy.explain_batches()
    assert len(e.kinds) == 400
    assert len([line for line in str(e).splitlines() if "number of arguments" in line]) == 1


def test_of_another_graph() -> None:
    with dy.graph() as g:
        dy.tanh(vector())
    dy.logistic(vector())
    assert [k.op for k in dy.explain_batches(g).kinds] == ["tanh"]
    assert [k.op for k in dy.explain_batches().kinds] == ["logistic"]


def test_a_summary_by_op_comes_first() -> None:
    dy.renew_cg()
    with dy.profile() as p:
        parts = [dy.logistic(vector()) for _ in range(5)]
        dy.forward(parts)
        parts += [dy.logistic(vector(3)), dy.exp(parts[0])]
        dy.forward(parts)
    e = dy.explain_batches()
    assert [(o.op, o.kinds, o.batches, o.nodes, o.mean, o.share) for o in e.ops] == [
        ("logistic", 2, 2, 6, 3.0, None), ("exp", 1, 1, 1, 1.0, None),
    ]  # fmt: skip
    lines = str(e).splitlines()
    at = lines.index("")
    assert [line.split() for line in lines[at + 1 : at + 4]] == [
        ["op", "batches", "nodes", "mean", "kinds"], ["logistic", "2", "6", "3.0", "2"], ["exp", "1", "1", "1.0", "1"],
    ]  # fmt: skip
    assert e.to_dict()["ops"][0]["batches"] == 2
    timed = dy.explain_batches(profile=p)
    shares = {o.op: o.share for o in timed.ops}
    assert sum(share or 0 for share in shares.values()) == pytest.approx(1) and all(shares.values())
    assert [o.share for o in timed.ops] == sorted((o.share for o in timed.ops), reverse=True)
    assert str(timed).splitlines()[at + 1].endswith("share") and "%" in str(timed).splitlines()[at + 2]


def test_formulas_in_the_summary() -> None:
    dy.renew_cg()
    with dy.profile() as p:
        long = [vector(12) for _ in range(4)]
        gates = [dy.cmult(dy.logistic(long[0]), dy.tanh(long[1])), dy.cmult(dy.tanh(long[2]), dy.exp(long[3]))]
        dy.forward(gates)
    e = dy.explain_batches(profile=p)
    assert {o.op: (o.kinds, o.nodes, o.share) for o in e.ops} == {"(formulas)": (2, 2, 1.0)}
    with dy.profile() as p:
        dy.renew_cg()
    assert dy.explain_batches(profile=p).ops == []


def test_of_a_compiled_function(weights: dict[str, Any]) -> None:
    W, E, trainer = weights["W"], weights["E"], dy.SimpleSGDTrainer(weights["model"])

    class Tagger:
        @dy.compile
        def scores(self, word: int) -> Any:
            return W * E[word]

    @dy.compile(trainer=trainer)
    def step(words: Any) -> Any:
        return dy.esum([dy.pickneglogsoftmax(W * dy.tanh(E[word]), 0) for word in words])

    tagger = Tagger()
    with pytest.raises(ValueError, match="step has recorded nothing yet"):
        dy.explain_batches(step)
    assert step([1, 2]) > step([1, 2])
    dy.renew_cg()
    assert "0 nodes" in str(dy.explain_batches()) and "dy.explain_batches(step)" in str(dy.explain_batches())
    e = dy.explain_batches(step)
    assert [kind.sizes for kind in kinds(e, "tanh")] == [(2,)] and "dy.explain_batches(step)" not in str(e)
    tagger.scores(1)
    assert dy.explain_batches(tagger.scores).nodes == 1
    before = [step([1, 2]), step([1, 2])]
    dy.explain_batches(step)
    assert step([1, 2]) < before[1] < before[0]
