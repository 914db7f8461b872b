"""Nodes that several were made into: what people see of them in plans, lists, explanations, pictures, dumps and profiles."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dynet_lite as dy
from dynet_lite import _core, viz
from dynet_lite.structure import read
from dynet_lite.viz.picture import picture

GATES = "ifog"
SIZE = 12
RAW = re.compile(r"(?<!\w)_fused|_affines|program=|parts=|constants=")


def vector(n: int = SIZE) -> dy.Expression:
    return dy.inputVector(np.linspace(-1, 1, n))


class HandLSTM:
    """Gates one by one, as in a textbook."""

    def __init__(self) -> None:
        model = dy.ParameterCollection()
        self.E = model.add_lookup_parameters((20, 8), name="E")
        self.b = {k: model.add_parameters(SIZE, name="b" + k) for k in GATES}
        self.W = {k: model.add_parameters((SIZE, 8), name="W" + k) for k in GATES}
        self.U = {k: model.add_parameters((SIZE, SIZE), name="U" + k) for k in GATES}

    def loss(self, *words: int) -> dy.Expression:
        h, c, out = dy.zeros(SIZE), dy.zeros(SIZE), []
        for w in words:
            x = self.E[w]
            i, f, o, g = (dy.affine_transform([self.b[k], self.W[k], x, self.U[k], h]) for k in GATES)
            c = dy.cmult(dy.logistic(f), c) + dy.cmult(dy.logistic(i), dy.tanh(g))
            h = dy.cmult(dy.logistic(o), dy.tanh(c))
            out.append(dy.sum_elems(dy.cmult(c, h)))
        return dy.esum(out)


@pytest.fixture
def lstm() -> Any:
    dy.renew_cg()
    return HandLSTM()


# ---- the formula -------------------------------------------------------------------------------------------------------


def formula_of(e: dy.Expression) -> str:
    """What the node of an expression is called in the plan."""
    e.forward()
    number = read().nodes[-1].number
    return next(re.split(r" \{", what)[0] for n, what, *_ in dy.cg().nodes() if n == number)


@pytest.mark.parametrize(
    ("make", "formula"),
    [
        (lambda x, y: dy.cmult(dy.logistic(x), dy.tanh(y)), "cmult(logistic(x0), tanh(x1))"),
        (lambda x, y: dy.cmult(dy.logistic(x), dy.tanh(x)), "cmult(logistic(x0), tanh(x0))"),
        (lambda x, y: 1 - dy.tanh(2 * x), "const_minus(tanh(scale(x0, c0)), c1)"),
        (lambda x, y: dy.exp(dy.esum([x, y, x])), "exp(add(x0, x1, x0))"),
        (lambda x, y: dy.exp(x + (y + x)), "exp(add(x0, add(x1, x0)))"),
        (lambda x, y: dy.elu(dy.tanh(x), 0.5), "elu(tanh(x0), c0)"),
    ],
)
def test_formulas(make: Any, formula: str) -> None:
    assert formula_of(make(vector(), vector())) == formula
    assert f"\t{formula} {{12}} x 1\t" in dy.plan_text()


def test_long_formulas_are_shortened() -> None:
    x = [vector() for _ in range(7)]
    e = dy.esum([dy.cmult(dy.logistic(a), dy.tanh(b)) for a, b in zip(x, x[1:], strict=False)])
    short = formula_of(e)
    assert len(short) <= 60 and "..." in short and short.count("(") == short.count(")") and "..., ..." not in short
    whole = read().nodes[-1].op
    assert whole == "add(" + ", ".join(f"cmult(logistic(x{k}), tanh(x{k + 1}))" for k in range(6)) + ")"
    assert "..." not in whole and f"that is {whole}" in str(dy.explain_batches())


def test_constants() -> None:
    dy.forward([1 - dy.tanh(2 * vector()), 3 - dy.tanh(4 * vector())])
    s = read()
    made = [node for node in s.nodes if node.sort == "op"]
    assert [node.attributes for node in made] == [{"c0": 2, "c1": 1}, {"c0": 4, "c1": 3}]
    assert made[0].batch == made[1].batch and s.signatures[made[0].signature].attributes == {}
    assert "c0=4.0 c1=3.0" in picture().boxes[-1].words


# ---- what runs inside what -----------------------------------------------------------------------------------------------


def test_nodes_say_what_they_run_inside() -> None:
    dy.exp(dy.tanh(dy.logistic(vector()))).forward()
    nodes = dy.cg().nodes()
    assert [what for _, what, _, _ in nodes] == [
        "input {12}", "logistic {12} inside 3", "tanh {12} inside 3", "exp(tanh(logistic(x0))) {12}",
    ]  # fmt: skip
    assert [arguments for *_, arguments in nodes] == [[], [0], [1], [0]]
    s = read()
    assert [node.sort for node in s.nodes] == ["input", "fused", "fused", "op"]
    assert [(node.op, node.producer, node.batch) for node in s.nodes[1:3]] == [("logistic", 3, 0), ("tanh", 3, 0)]
    assert s.nodes_run == 1 and s.nodes_fused == 2
    assert s.consumed_by()[0] == [3] and s.needed_for([2]) == {0, 3, 2}


def test_joined_maps(lstm: HandLSTM) -> None:
    loss = lstm.loss(1, 2, 3)
    loss.forward()
    s = read()
    joined = [node for node in s.nodes if node.title == "affine_transform x 4"]
    assert len(joined) == 3 and {node.dim for node in joined} == {((4 * SIZE,), 1)}
    inside = [node for node in s.nodes if node.sort == "fused" and node.op == "affine_transform"]
    assert len(inside) == 9 and {node.producer for node in inside} == {node.number for node in joined}
    cell = next(node for node in s.nodes if node.op.startswith("add("))
    assert s.signatures[cell.signature].attributes["inputs"].split()[1] == "1[0:12]"  # the cell's last state, whole
    assert all(s.nodes[a].sort != "fused" for node in s.nodes if node.sort == "op" for a in node.arguments)


def test_matmuls_are_joined_too() -> None:
    model = dy.ParameterCollection()
    U, V = model.add_parameters((SIZE, SIZE)), model.add_parameters((SIZE, SIZE))
    x = vector()
    dy.cmult(dy.tanh(U * x), dy.logistic(V * x)).forward()
    assert (
        "\tmatmul x 2 {24} x 1\t" in dy.plan_text() and "\tcmult(tanh(x0), logistic(x1)) {12} x 1\t" in dy.plan_text()
    )


def test_what_stays_apart() -> None:
    """Held by somebody, read twice, small, under check_validity, switched off."""

    def ops() -> list[str]:
        return [what for _, what, *_ in dy.cg().nodes() if not what.startswith("input")]

    held = dy.tanh(vector())
    dy.exp(held).forward()
    assert ops() == ["tanh {12}", "exp {12}"]
    for make in (lambda: dy.exp(dy.tanh(vector(7))), lambda: (lambda t: dy.exp(t) + dy.sin(t))(dy.tanh(vector()))):
        dy.renew_cg()
        make().forward()
        assert any(what.startswith("tanh {") and "inside" not in what for what in ops())
    dy.renew_cg(check_validity=True)
    dy.exp(dy.tanh(vector())).forward()
    assert ops() == ["tanh {12}", "exp {12}"]
    with dy.configure(fuse=False):
        dy.renew_cg()
        dy.exp(dy.tanh(vector())).forward()
        assert ops() == ["tanh {12}", "exp {12}"] and read().nodes_fused == 0


def test_a_node_inside_another_has_no_value(capsys: pytest.CaptureFixture[str]) -> None:
    dy.exp(dy.tanh(vector())).forward()
    with pytest.raises(ValueError, match="node 1 was needed inside another node only"):
        dy.cg().expression(1)
    dy.dump_cg()
    told = capsys.readouterr().err
    assert "v1 = tanh {12} inside 2 of ['v0']\n  needed inside another node only, which has run; not kept\n" in told
    assert "v2 = exp(tanh(x0)) {12} of ['v0']\n  value [" in told


def test_a_dump_before_the_run_has_all_values(capsys: pytest.CaptureFixture[str]) -> None:
    e = dy.exp(dy.tanh(vector()))
    dy.dump_cg()
    told = capsys.readouterr().err
    assert told.count("  value [") == 3 and "inside" not in told
    assert e.npvalue().shape == (SIZE,)


def test_graphviz_draws_what_runs(capsys: pytest.CaptureFixture[str]) -> None:
    dy.exp(dy.tanh(vector())).forward()
    dy.print_graphviz()
    drawn = capsys.readouterr().out
    assert re.findall(r'label="(.*)"', drawn) == ["v0 = input {12}", "v2 = exp(tanh(x0)) {12}"]
    assert re.findall(r"N\d+ -> N\d+", drawn) == ["N0 -> N2"]


# ---- explanations ------------------------------------------------------------------------------------------------------


def test_explanations(lstm: HandLSTM) -> None:
    dy.esum([lstm.loss(1, 2, 3), lstm.loss(4, 5)]).forward()
    e = dy.explain_batches()
    text = str(e)
    assert not RAW.search(text)
    assert f"\n{e.nodes_fused} more nodes run inside these: they are part of a formula" in text
    assert re.search(r"^\[\d+\] affine_transform x 4 \{48\}: 3 batches of 2, 2, 1$", text, re.MULTILINE)
    data = json.loads(json.dumps(e.to_dict()))
    assert not RAW.search(json.dumps(data)) and data["nodes_fused"] == e.nodes_fused > 0
    kind = next(k for k in e.kinds if k.op.startswith("add("))
    assert kind.title == kind.op and "inputs" in kind.attributes
    assert e.nodes + e.nodes_fused == sum(node.sort in ("op", "fused") for node in read().nodes)


def test_why_two_formulas_are_apart() -> None:
    a, b, c = dy.exp(dy.tanh(vector())), dy.exp(dy.sin(vector())), dy.exp(dy.tanh(vector()))
    e = dy.explain_batches()
    assert str(e.why(a, b)) == "different ops: exp(tanh(x0)) and exp(sin(x0))"
    assert e.why(a, c).cause == "together" and not e.differences
    assert str(e.why(1, a)) == "both run inside node 2 (exp(tanh(x0)) {12})"
    assert e.why(1, b).cause == "op"


def test_long_differences_are_cut() -> None:
    """Joined maps of other weights differ in many arguments."""
    first, second = HandLSTM(), HandLSTM()
    dy.esum([first.loss(1), second.loss(1)]).forward()
    e = dy.explain_batches()
    line = next(line for line in str(e).splitlines() if "affine_transform x 4, by " in line)
    assert "argument 2 and argument 3 and" in line and "and 6 more:" in line


# ---- pictures ------------------------------------------------------------------------------------------------------------


def test_pictures(lstm: HandLSTM) -> None:
    loss = lstm.loss(1, 2)
    for weights in (False, True):
        p = picture(loss, weights=weights)
        numbers = {box.number for box in p.boxes}
        assert all(a in numbers and b in numbers for a, b in p.arrows)
        assert {"affine_transform x 4", "cmult(logistic(x0), tanh(x1))"} <= {box.title for box in p.boxes}
        assert "fused" not in {box.sort for box in p.boxes}
        assert " more run inside these" in p.caption
        for draw in (viz.text, viz.dot, viz.svg, viz.html):
            assert not RAW.search(draw(loss, weights=weights))  # type: ignore[operator]


def test_weights_that_were_made_later_stand_before_their_use(lstm: HandLSTM) -> None:
    """A joined node stands where the first map was, and reads weights with higher numbers."""
    p = picture(lstm.loss(1), weights=True)
    assert any(a > b for a, b in p.arrows)
    x = {
        n: float(at)
        for n, at in re.findall(r'data-node="(\d+)".*?<rect x="([\d.]+)"', viz.svg(weights=True), re.DOTALL)
    }
    assert x and all(x[str(a)] < x[str(b)] for a, b in p.arrows)


def test_pointing_at_a_formula(tmp_path: Path, open_page: Any, lstm: HandLSTM) -> None:
    viz.save(tmp_path / "graph.html", lstm.loss(1))
    page = open_page(tmp_path / "graph.html")
    box = next(box for box in picture().boxes if box.title.startswith("cmult("))
    number = box.number
    page.run(f"document.querySelector('[data-node=\"{number}\"]').dispatchEvent(new MouseEvent('mouseenter'))")
    lines = page.one("#about").text.splitlines()
    assert lines[0] == f"node {number}: {box.title} {{12}}" and ", " in box.title and page.errors() == []


# ---- profiles ------------------------------------------------------------------------------------------------------------


def test_profiles_go_by_op(lstm: HandLSTM) -> None:
    with dy.profile() as p:
        lstm.loss(1, 2).backward()
    found = {o.op: o.nodes for o in p.ops()}
    assert found["(affine maps)"] == 2 and found["(formulas)"] >= 4 and "tanh" not in found
    assert all(name in (dy.profile.__doc__ or "") for name in ("(affine maps)", "(formulas)"))


def test_no_table_shows_an_internal_name() -> None:
    labels = _core.op_labels()
    assert not [label for label in labels.values() if label.startswith("_")]
    assert labels["_affine_loss"] == "pickneglogsoftmax(scores)" in (dy.profile.__doc__ or "")
    assert labels["tanh"] == "tanh" and labels["_fused"] == labels["_fused_with_constants"] == "(formulas)"


def test_nothing_is_written_when_nothing_is_fused() -> None:
    dy.tanh(vector()).forward()
    assert "inside" not in str(dy.explain_batches()) and "inside" not in picture().caption
    dy.dump_cg(os.devnull)
