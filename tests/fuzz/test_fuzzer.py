"""A little of fuzzer.py, which runs for as long as one likes by hand; and does it see what is wrong?

When it was added it found, within 100 programs: gradient() of a looked-up row that read freed memory, gradient() of a weight that added
up over passes, backward() after update() with old and new weights mixed, joined maps deeper than their readers, lost gradients of
what a lane shares. The seeds stand in the message of the commit that added it; a change of the generator makes other programs of them.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))
import fuzz_again
import fuzz_calls
import fuzz_files
import fuzz_objects
import fuzz_ranks
from fuzz_names import Calls
from fuzz_peer import INSTALLED, Peer
from fuzz_program import Step, difference, execute, from_json, may_round, rounding, smallest, source, to_json
from fuzz_sessions import TRAINERS, generate
from fuzz_ways import PLAIN, WAYS, differs, observed, plainest, until_not_finite
from fuzzer import campaign
from mpi import VARIABLES, mpiexec

import dynet_lite as dy


@pytest.mark.parametrize("first", range(0, 80, 20))
def test_every_way_shows_the_same(first: int) -> None:
    found, done = campaign(range(first, first + 20))
    assert not found, "\n".join(map(str, found))
    assert done == 20


@pytest.mark.skipif(not INSTALLED, reason="DyNet (dyNET38) is not installed")
@pytest.mark.parametrize("first", range(0, 40, 20))
def test_the_real_dynet_shows_the_same(first: int) -> None:
    found, done = campaign(range(first, first + 20), peer=True)
    assert not found, "\n".join(map(str, found))
    assert done == 20


@pytest.mark.parametrize("first", range(0, 16, 8))
def test_plans_that_are_kept_show_the_same(first: int) -> None:
    found, done = campaign(range(first, first + 8), sessions="again")
    assert not found, "\n".join(map(str, found))
    assert done == 8


@pytest.mark.parametrize(("sessions", "first"), [("calls", 0), ("calls", 4), ("objects", 0), ("beside", 0)])
def test_functions_threads_and_forks_show_the_same(sessions: str, first: int) -> None:
    found, done = campaign(range(first, first + 4), sessions=sessions)
    assert not found, "\n".join(map(str, found))
    assert done == 4


@pytest.mark.parametrize("seed", range(12))
def test_files_and_copies_are_equal_to_the_bit(seed: int, tmp_path: Path) -> None:
    fuzz_files.Session(seed, tmp_path).run()


@pytest.mark.parametrize("workers", [False, True], ids=["ranks", "workers"])
def test_several_processes_train_as_one_does(workers: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not workers:
        mpiexec()  # or it is skipped
    for name, value in VARIABLES.items():
        monkeypatch.setenv(name, value)
    assert not fuzz_ranks.campaign(0, 4 if workers else 12, workers)


# ---- the fuzzer itself ---------------------------------------------------------------------------------------------------


def test_a_seed_is_a_program() -> None:
    assert generate(7) == generate(7) != generate(8)
    assert len({step.text.split("(")[0] for seed in range(10) for step in generate(seed)}) > 100


def test_programs_do_what_they_are_for() -> None:
    text = "\n".join(step.text for seed in range(30) for step in generate(seed))
    for what in (".backward(", ".backward(full=True)", ".gradient())", ".update()", ".set_value(", ".init_row(", "dy.cg_revert()", "del ",
                 ".batch([", "dy.lookup_batch(", "update=False", ".rows([", ".transduce(", "concatenate_to_batch", "op('", "case(",
                 "builder('NaryTreeLSTMBuilder'", "wrong(", "recalculate=True", "dy.dropout(", "renew_cg", "const_parameter"):  # fmt: skip
        assert what in text, what
    shown = [how for seed in range(10) for _, how, _ in observed(generate(seed), PLAIN)]
    assert shown.count("error") * 10 < shown.count("seen")  # most of it is right use


@pytest.mark.parametrize("kind", TRAINERS)
def test_rounding_errors_of_gradients_stay_small(kind: str) -> None:
    """Seeds 810180 and 770005 (--objects): a gradient was zero but for rounding, and the weight went a whole step, this way or that."""
    ends = []
    for noise in (1e-9, -1e-9):
        model = dy.ParameterCollection()
        weight = model.parameters_from_numpy(np.ones(2))
        trainer = eval(f"dy.{kind}({', '.join(filter(None, ['model', TRAINERS[kind]]))})")
        for _ in range(3):
            weight.set_grad([noise, 1.0])
            trainer.update()
        ends.append(weight.as_array())
    np.testing.assert_allclose(*ends, rtol=1e-6)


def test_what_a_call_that_failed_leaves_behind() -> None:
    """Seed 770005 (--objects): inline, the weight of a call that failed is in the graph, which runs again when it is changed."""
    texts = [
        "m0 = dy.ParameterCollection()",
        "W = m0.parameters_from_numpy(A(1, 3, 3))",
        "V = m0.parameters_from_numpy(A(2, 8))",
        "tr0 = dy.SimpleSGDTrainer(m0, 0.1)",
        "c = dy.cell(lambda x: dy.tanh(W * x))",
        "d = dy.cell(lambda x: W * (V * x))",
        "e = c(dy.inputVector([1, 2, 3]))",
        "dy.squared_norm(e).backward()",
        "see(d(dy.inputVector([1, 2, 3])).value())",
        "tr0.update()",
        "V.scale(0.9)",
        "see(e.npvalue())",
    ]
    program = tuple(map(Step, texts))
    assert fuzz_calls.seen(program, {}, False, True)[-2][1] == "error"
    assert fuzz_calls.simply(program, {}, 0) is None
    assert fuzz_calls.left_behind(program, [(8, "error", "")]) == 10
    renewed = (*program[:10], Step("dy.renew_cg()"), *program[10:])
    assert fuzz_calls.left_behind(renewed, [(8, "error", "")]) == len(renewed)


def test_sessions_find_their_plans_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Most of what sessions are for happens in some of them, and half of the graphs are of plans that were there."""
    text = "\n".join(step.text for seed in range(12) for step in fuzz_again.session(seed))
    for what in (
        "configure(",
        "gone()",
        "mistake()",
        ".set_updated(",
        ".populate(",
        "Trainer(m0)",
        "set_index(",
        "immediate_compute",
    ):
        assert what in text, what
    counted = dict.fromkeys(("plans", "plans_again", "backward_plans", "backward_plans_again"), 0)
    renew = dy.renew_cg

    def renewed(*args: Any, **flags: Any) -> Any:
        for name in counted:
            counted[name] += dy.stats()[name]
        return renew(*args, **flags)

    monkeypatch.setattr(dy, "renew_cg", renewed)
    for seed in range(6):
        fuzz_again.observed(fuzz_again.session(seed), {}, False, True)
    assert (
        counted["plans_again"] * 3 > counted["plans"]
        and counted["backward_plans_again"] * 4 > counted["backward_plans"]
    ), counted


def test_sessions_call_functions() -> None:
    """In every form that fuzz_functions.py has."""
    text = "\n".join(step.text for seed in range(16) for step in fuzz_calls.session(seed))
    for what in ("@dy.cell", "dy.map(c", "dy.map(q", "dy.scan(", "dy.recurse(", "dy.CellBuilder(", "dy.compile(d", "trainer=tr", "backward=True",
                 "= through(B", "= scanned_through(s", "nested(", "depth=deep(", "which=mode(", ".rate = ", " = float(0.25)", "cg_checkpoint", ", 99", "'no')"):  # fmt: skip
        assert what in text, what


def test_sessions_change_objects_weights_and_trainers() -> None:
    text = "\n".join(step.text for seed in range(24) for step in fuzz_objects.session(seed))
    for what in ("class K", "super().shared(", "super().half()", "@dy.compile(backward=True)", "@dy.compile(trainer=tr1)", ".factor = ", "del o",
                 "nonlocal rate, W", "functools.partial(", "example(", "with dy.graph()", ".resize(m0, ", "copy.deepcopy(o", ".broken = True",
                 ".twice = staticmethod(", ".set_rows_grad(", ".load_state_dict(", "dy.load_checkpoint(", ".bad = True", "moving_average(",
                 "set_weight_decay_lambda(", ".run(words(", ".train(words("):  # fmt: skip
        assert what in text, what


def test_a_wrong_number_is_found_and_made_small(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if one op had lost its gradient."""
    right = Calls.op

    def wrong(self: Calls, label: str, seed: int, *es: Any) -> Any:
        made = right(self, label, seed, *es)
        return dy.nobackprop(made) if label.startswith("cmult") and self.dy is not dy else made

    class Twin:
        """dynet_lite under another name."""

        def __getattr__(self, name: str) -> Any:
            return getattr(dy, name)

    def found(program: Any, numbers: int) -> Any:
        dy.renew_cg()
        given = execute(program, Twin(), numbers)
        dy.renew_cg()
        return difference(given, execute(program, dy, numbers))

    monkeypatch.setattr(Calls, "op", wrong)
    program = tuple(Step(text) for text in (
        "m0 = dy.ParameterCollection()", "W1 = m0.parameters_from_numpy(A(1, 3, 4))", "W2 = m0.parameters_from_numpy(A(2, 3, 4))",
        "e3 = dy.tanh(W1)", "e4 = op('cmult(3x4,3x4)', 5, e3, W2)", "e5 = dy.tanh(W2)", "l6 = score(e4) + score(e5)", "del e5",
        "see(l6.value())", "l6.backward()", "see(e4.npvalue())", "see(W1.gradient())"))  # fmt: skip
    small = smallest(program, found)
    assert small is not None
    assert [step.text.split(" ")[0] for step in small] == [
        "m0",
        "W1",
        "W2",
        "e3",
        "e4",
        "e5",
        "l6",
        "l6.backward()",
        "see(W1.gradient())",
    ]
    text = source(small, "found", 1)
    assert text.startswith("# found\nimport dynet_lite as dy") and "op('cmult(3x4,3x4)', 5, e3, W2)" in text


def test_an_error_is_an_observation_and_unknown_names_are_passed_over() -> None:
    seen = observed(
        tuple(
            Step(t) for t in ("e1 = dy.inputVector([1, 2])", "dy.pick(e1, 7)", "see(e2.npvalue())", "see(e1.npvalue())")
        ),
        PLAIN,
    )
    assert [(k, how) for k, how, _ in seen] == [(1, "error"), (3, "seen")] and seen[0][2].startswith("OutOfRangeError")
    assert difference(from_json(to_json(seen)), seen) is None


def test_comparison() -> None:
    one = [(0, "seen", np.array([1.0, 2.0])), (1, "error", "ValueError: x")]
    assert difference(one, one) is None
    assert difference(one[:1], one) is not None
    assert difference([(0, "seen", np.array([1.0, 2.01])), one[1]], one) is not None
    assert difference([(0, "seen", np.array([1.0, np.nan])), one[1]], one) is not None
    assert difference([one[0], (1, "error", "IndexError: x")], one) is not None
    assert difference([one[0], (1, "error", "ValueError: y")], one) is None


def test_roundings_that_layer_norm_makes_large_are_none_of_ours() -> None:
    """Of arguments that are equal but for a rounding it shows nothing else; of others, it is compared as everything is."""

    def allowed(first: str) -> float:
        program = tuple(Step(text) for text in (
            f"e1 = dy.inputVector([{first}, 1, 1])", "e2 = dy.inputVector([0.5, 1, -1])", "e3 = case('layer_norm', 6, e1, e2, e2)",
            "e4 = e3 * 3", "see(e1.npvalue())", "see(e4.npvalue())"))  # fmt: skip
        seen = observed(program, PLAIN)
        before, after = rounding(seen, lambda moved: observed(program, PLAIN, 0, moved))
        off = [seen[0], (*seen[1][:2], seen[1][2] + 0.1)]
        assert before == 0 and difference(off, seen) is not None
        assert (difference(off, seen, roundings=[before, after]) is None) == (after > 0.1)
        return after

    assert allowed("1 - 2**-24") > 1 > 0.05 > allowed("0.999") > 0.002 > allowed("0.5")
    assert may_round((Step("e1 = case('layer_norm', 6, e1, e2, e2)"),)) and not may_round((Step("e1 = dy.tanh(e1)"),))


def test_roundings_decide_gradients_of_deviations_of_equal_numbers() -> None:
    def allowed(last: float) -> float:
        program = tuple(Step(text) for text in (
            "m0 = dy.ParameterCollection()", f"W1 = m0.parameters_from_numpy(np.array([0.3, 0.3, {last}]))", "dy.renew_cg()", "e1 = W1 + 0",
            "e2 = case('std_elems', 0, e1)", "see(e2.npvalue())", "score(e2).backward()", "see(e1.gradient())"))  # fmt: skip
        assert may_round(program)
        value, gradient = rounding(observed(program, PLAIN), lambda moved: observed(program, PLAIN, 0, moved))
        assert value < 1e-5
        return gradient

    assert allowed(0.3) > 1 and allowed(0.5) < 1e-4


def test_ways() -> None:
    assert all(f"without {name}" in WAYS for name, _, _ in dy._core.passes())
    assert plainest({"threads": 2, "keep_weights": True}) == {**PLAIN, "keep_weights": True}


def test_a_check_of_values_ends_the_comparison() -> None:
    """Where it finds one; it must do so in every way, and what was seen before is compared."""
    program = tuple(Step(text) for text in (
        "dy.renew_cg(**FLAGS)", "e1 = dy.inputVector([0, 1])", "e2 = dy.log_softmax(e1, [1])", "see(e2.npvalue())",
        "e3 = dy.log(e1)", "see(dy.exp(e3).npvalue())"))  # fmt: skip
    plain, checked = (observed(program, way) for way in (PLAIN, WAYS["checked"]))
    assert [how for _, how, _ in plain] == ["seen", "seen"] and [how for _, how, _ in checked] == ["seen", "error"]
    assert differs(program, WAYS["checked"], 0) is None
    assert until_not_finite(plain, checked) == plain[:1]


def test_a_peer_that_dies_is_started_again() -> None:
    with Peer() as peer:
        if not INSTALLED:
            pytest.skip("DyNet (dyNET38) is not installed")
        assert peer.observed((Step("import os; os._exit(3)"),)) is None
        seen = peer.observed((Step("see(dy.inputVector([1, 2]).npvalue())"),))
        assert seen is not None and seen[0][2].tolist() == [1, 2]
