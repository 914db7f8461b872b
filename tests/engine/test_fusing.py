"""Fusing and joining (cext/rewrite/rules/fuse.cc, join.cc): the same numbers as without, what is left alone, and what may be asked for."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fused_programs import BINARY, STRATEGIES, UNARY, Built, Extreme, Model, Random, agree, engine, gone, near, ops, run
from programs import run_code

import dynet_lite as dy
from dynet_lite import _core

N = 8


def vector(k: int = 0, n: int = N) -> Any:
    return dy.inputVector(np.random.default_rng([k, n]).uniform(-1, 1, n))


# ---- random programs: fused = not fused -------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(50))
def test_elementwise_programs(seed: int) -> None:
    """Values to the last bit, gradients nearly, under every strategy and with threads."""
    program = Random(seed)
    wanted = run(program, full=seed % 3 > 0, fuse=False)
    assert "fused" not in wanted.ops
    for strategy in STRATEGIES:
        for threads in (1, 2):
            agree(run(program, full=seed % 3 > 0, strategy=strategy, threads=threads), wanted, exact=True)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("seed", range(30))
def test_extreme_numbers(seed: int) -> None:
    """Values are the same to the last bit; of gradients this cannot be asked, their sums are formed in another order."""
    program = Extreme(seed)
    wanted = run(program, fuse=False)
    for strategy in STRATEGIES:
        for given, value in zip(run(program, strategy=strategy).values, wanted.values, strict=True):
            np.testing.assert_array_equal(given, value)


@pytest.mark.parametrize("seed", range(50))
def test_programs_with_gates(seed: int) -> None:
    """The same with affine maps, which may be joined."""
    program = Random(seed, affine=True)
    wanted = run(program, full=seed % 3 > 0, fuse=False)
    for strategy in STRATEGIES:
        for threads in (1, 2):
            agree(run(program, full=seed % 3 > 0, strategy=strategy, threads=threads), wanted, exact=False)


@pytest.mark.parametrize("seed", range(40))
def test_several_passes(seed: int) -> None:
    """From parts of the loss, which do not reach all readers of a joined node, and from all of it again."""
    program = Random(seed, affine=True, peek=seed % 4 == 0, examples=70 if seed % 10 == 0 else 0)
    wanted = run(program, full=seed % 3 > 0, passes=8, fuse=False)
    for how in ({"strategy": "none"}, {"strategy": "agenda"}, {"threads": 2}, {}):
        agree(run(program, full=seed % 3 > 0, passes=8, **how), wanted, exact=False)


@pytest.mark.parametrize("seed", range(12))
def test_many_members(seed: int) -> None:
    """As many as the kernels of joined maps have other ways for."""
    program = Random(seed, affine=True, examples=80)
    wanted = run(program, fuse=False)
    for how in ({"strategy": "agenda"}, {"threads": 2}, {}):
        agree(run(program, **how), wanted, exact=False)


@pytest.mark.parametrize("affine", [False, True], ids=["elementwise", "gates"])
@pytest.mark.parametrize("size", [96, 129, 517, 1030])
def test_long_vectors(size: int, affine: bool) -> None:
    """Longer than what kernels take at once."""
    for seed in range(6 if size < 200 or not affine else 2):
        program = Random(seed, affine, size=size)
        wanted = run(program, fuse=False)
        for how in ({"strategy": "none"}, {"threads": 2}, {}):
            agree(run(program, **how), wanted, exact=not affine, rtol=1e-6 if size < 200 else 2e-6)  # sums of so many


@pytest.mark.parametrize("affine", [False, True], ids=["elementwise", "gates"])
@pytest.mark.parametrize("seed", range(20))
def test_values_read_in_between(seed: int, affine: bool) -> None:
    """Each is a plan of its own; what was read is held."""
    program = Random(seed, affine, peek=True)
    wanted = run(program, fuse=False)
    for strategy in STRATEGIES:
        agree(run(program, strategy=strategy), wanted, exact=not affine)


def test_random_programs_are_fused() -> None:
    """What the two tests above compare is not twice the same."""
    seen: set[str] = set()
    less = 0
    for seed in range(50):
        for affine in (False, True):
            program = Random(seed, affine)
            fused = run(program)
            seen |= fused.entries
            less += fused.nodes < run(program, fuse=False).nodes
    assert seen >= {"_fused", "_fused_with_constants", "_affines"}
    assert less > 70


@pytest.mark.parametrize("name", [*UNARY, *BINARY])
def test_each_formula(name: str) -> None:
    """Every formula first, in the middle and last in a chain; vectors whose tails no register fills."""
    for n in (8, 33):

        def program(model: Model, n: int = n) -> Built:
            x, y, z = vector(1, n), vector(2, n), vector(3, n)
            if name in UNARY:
                domain, g = UNARY[name]
                f: Callable[[Any], Any] = lambda e: g(domain(e))  # noqa: E731
            else:
                f = lambda e: BINARY[name](e, dy.sin(z))  # noqa: E731
            last = f(dy.cmult(f(x), dy.tanh(y)))
            return Built([last], dy.dot_product(last, vector(4, n)), [x, y, z])

        fused, wanted = run(program), run(program, fuse=False)
        agree(fused, wanted, exact=True)
        assert fused.nodes < wanted.nodes


# ---- what is left as it is --------------------------------------------------------------------------------------------


def test_what_is_held_keeps_value_and_gradient() -> None:
    with engine():
        x, y = vector(1), vector(2)
        a = dy.tanh(x)
        b = dy.cmult(a, y)
        c = dy.exp(b)
        loss = dy.sum_elems(c)
        loss.backward(full=True)
        assert ops() == ["tanh", "cmult", "exp", "sum_elems"]
        xs, ys = x.npvalue(), y.npvalue()
        near(a.npvalue(), np.tanh(xs), 1e-6)
        near(b.npvalue(), np.tanh(xs) * ys, 1e-6)
        near(c.gradient(), np.ones(N), 0)
        near(b.gradient(), c.npvalue(), 1e-6)
        near(a.gradient(), c.npvalue() * ys, 1e-6)


@pytest.mark.parametrize("held", range(4))
def test_only_what_is_let_go_is_fused(held: int) -> None:
    """Of four ops in a chain one is held, by a list, and let go before another run."""
    with engine():
        x = vector(1)
        chain = [dy.tanh(x)]
        chain.append(dy.cmult(chain[-1], x))
        chain.append(chain[-1] * 2.0)
        chain.append(dy.sin(chain[-1]))
        last = dy.exp(chain[-1])
        kept = chain[held]
        del chain
        last.npvalue()
        # What is left of the chain before the one that is held, and after it.
        assert dy.stats()["nodes"] == 2
        xs = x.npvalue()
        wanted = [np.tanh(xs), np.tanh(xs) * xs, 2 * np.tanh(xs) * xs, np.sin(2 * np.tanh(xs) * xs)]
        near(kept.npvalue(), wanted[held], 1e-6)
        near(last.npvalue(), np.exp(wanted[3]), 1e-6)
        dy.sum_elems(last).backward(full=True)
        outer = [2 * np.cos(wanted[2]) * xs, 2 * np.cos(wanted[2]), np.cos(wanted[2]), np.ones(N)]
        near(kept.gradient(), np.exp(wanted[3]) * outer[held], 1e-5)


def test_del_lets_go() -> None:
    """An expression goes with its last name, in whatever way it goes."""

    def count(f: Callable[[Any], Any]) -> int:
        with engine():
            y = f(vector(1))
            y.npvalue()
            return int(dy.stats()["nodes"])

    def held_twice(x: Any) -> Any:
        a = dy.tanh(x)
        b = a
        y = dy.exp(a)
        del a
        assert b is not None
        nodes.append(b)
        return y

    def one_name_less(x: Any) -> Any:
        a = b = dy.tanh(x)
        y = dy.exp(a)
        del a, b
        return y

    def in_a_cycle(x: Any) -> Any:
        class Holder:
            pass

        h = Holder()
        h.me, h.a = h, dy.tanh(x)
        y = dy.exp(h.a)
        del h
        gc.collect()
        return y

    nodes: list[Any] = []
    assert count(lambda x: dy.exp(dy.tanh(x))) == 1
    assert count(one_name_less) == 1
    assert count(in_a_cycle) == 1
    assert count(held_twice) == 2
    assert nodes and "gone" in repr(nodes[0])


def test_an_op_with_two_readers_is_left() -> None:
    for read in (
        lambda a: dy.cmult(a, a),
        lambda a: dy.exp(a) + dy.sin(a),
        lambda a: dy.esum([a, dy.exp(a), dy.cos(a)]),
    ):

        def program(model: Model, read: Any = read) -> Built:
            x = vector(1)
            y = read(dy.tanh(x))
            return Built([y], dy.sum_elems(y), [x])

        fused = run(program)
        agree(fused, run(program, fuse=False), exact=True)
        assert "tanh" in fused.ops


def test_more_readers_than_are_counted() -> None:
    """255 and more are not told apart, nor are so many names."""

    def program(model: Model) -> Built:
        x = vector(1)
        a = dy.tanh(x)
        terms = [dy.exp(a * float(k % 7)) for k in range(600)]
        again = [dy.cg().expression(1) for _ in range(300)]
        del a
        assert len(again) == 300
        del again
        y = dy.esum(terms) * 0.001
        return Built([y], dy.sum_elems(y), [x])

    agree(run(program), run(program, fuse=False), exact=True)


@pytest.mark.parametrize("n, nodes", [(1, 3), (7, 3), (8, 1), (9, 1)])
def test_small_ops_are_left(n: int, nodes: int) -> None:
    with engine():
        x = vector(1, n)
        y = dy.exp(dy.cmult(dy.tanh(x), x))
        near(y.npvalue(), np.exp(np.tanh(x.npvalue()) * x.npvalue()), 1e-6)
        assert dy.stats()["nodes"] == nodes


def test_broadcast_ops_are_left() -> None:
    """Steps of a program have one shape; what broadcasts is a node of its own, and so is what it makes larger."""

    def program(model: Model) -> Built:
        x, y, one = vector(1), dy.inputTensor(np.random.default_rng(3).uniform(-1, 1, (N, 3))), vector(4, 1)
        batch = dy.inputTensor(np.random.default_rng(5).uniform(-1, 1, (N, 2)), batched=True)
        values = [dy.tanh(dy.exp(x) + dy.sin(y)), dy.tanh(dy.exp(x) * dy.sin(one)), dy.tanh(dy.exp(batch) - dy.sin(x))]
        loss = dy.esum([dy.sum_batches(dy.sum_elems(v)) for v in values])
        return Built(values, loss, [x, y, one, batch])

    for strategy in STRATEGIES:
        agree(run(program, strategy=strategy), run(program, fuse=False), exact=True)


@pytest.mark.parametrize("columns", [(N,), (N, 1)])
def test_columns_stay_columns(columns: tuple[int, ...]) -> None:
    """{n,1} is another shape than {n}, before and after a run."""
    with engine():
        model, x = Model(), dy.inputTensor(np.random.default_rng(3).uniform(-1, 1, columns))
        y = dy.cmult(dy.tanh(model.weight("W", N, N) * x), dy.logistic(model.weight("V", N, N) * x))
        z = y * 2.0 + x
        assert y.dim() == z.dim() == (columns, 1)
        assert z.npvalue().shape == columns
        assert y.dim() == z.dim() == (columns, 1)
        dy.sum_elems(z).backward(full=True)
        assert x.gradient().shape == y.gradient().shape == columns


def test_no_fusing_while_validity_is_checked() -> None:
    """The node that is not finite is named, with its line."""
    with engine():
        dy.renew_cg(check_validity=True)
        x = dy.inputVector(np.arange(N) - 4.0)
        y = dy.exp(dy.tanh(dy.log(x)))
        with pytest.raises(dy.errors.NotFiniteError, match=r"(?s)log.*test_fusing\.py"):
            y.npvalue()
        dy.renew_cg(check_validity=True)
        dy.exp(dy.tanh(vector(1))).npvalue()
        assert dy.stats()["nodes"] == 2


def test_immediate_compute() -> None:
    """Each op has run when the next is made: nothing is left to fuse."""
    with engine():
        dy.renew_cg(immediate_compute=True)
        x = vector(1)
        y = dy.exp(dy.tanh(x) * 2.0)
        assert dy.stats()["nodes"] == 3
        near(y.npvalue(), np.exp(2 * np.tanh(x.npvalue())), 1e-6)
        dy.sum_elems(y).backward(full=True)
        near(x.gradient(), y.npvalue() * 2 * (1 - np.tanh(x.npvalue()) ** 2), 1e-5)


def test_the_setting() -> None:
    assert dy.config.get("fuse") is True
    with engine():
        dy.configure(fuse=False)
        dy.renew_cg()
        y = dy.exp(dy.tanh(vector(1)))
        y.npvalue()
        assert dy.stats()["nodes"] == 2
        dy.configure(fuse=True)
        dy.renew_cg()
        y = dy.exp(dy.tanh(vector(1)))
        y.npvalue()
        assert dy.stats()["nodes"] == 1


def test_null_backend() -> None:
    """It has all ops, the new ones among them."""
    before = _core.settings.backend
    try:
        _core.settings.backend = "null"
        with dy.graph():
            x, p = vector(1), dy.ParameterCollection().add_parameters((N, N))
            y = dy.cmult(dy.tanh(p * x), dy.exp(dy.logistic(p * x)))
            assert not np.any(y.npvalue())
            assert len(ops()) < 6
    finally:
        _core.settings.backend = before


# ---- nodes by their numbers -------------------------------------------------------------------------------------------


def gates(model: Model) -> tuple[Any, Any]:
    """x, and h of two gates: all in between is part of one joined and one fused node."""
    x = vector(1)
    i, g = (model.weight("W" + name, N, N) * x for name in "ig")
    return x, dy.cmult(dy.logistic(i), dy.tanh(g)) + x


def values_without_fusing() -> list[Any]:
    """Of all nodes of gates()."""
    with engine(fuse=False):
        kept = gates(Model())
        numbers = range(len(dy.cg()))
        del kept
        return [dy.cg().expression(k).npvalue() for k in numbers]


def test_a_node_by_its_number_is_right_or_refused() -> None:
    wanted = values_without_fusing()
    with engine():
        kept = gates(Model())
        kept[1].npvalue()
        refused = 0
        for k, value in enumerate(wanted):
            if not gone(k):
                near(dy.cg().expression(k).npvalue(), value, 1e-6, k)
                near(np.array(dy.cg().forward_vec(k)), value.ravel(order="F"), 1e-6, k)
                continue
            refused += 1
            for ask in (
                dy.cg().expression,
                dy.cg().forward,
                dy.cg().forward_vec,
                dy.cg().inc_forward_vec,
                dy.cg().backward,
            ):
                with pytest.raises(ValueError, match=rf"^\[graph\] the value of node {k} "):
                    ask(k)
        assert refused == 5  # two products, which are one node that is overwritten, two formulas, cmult
        near(kept[1].npvalue(), wanted[-1], 1e-6)


@pytest.mark.parametrize("k", range(9))
def test_a_node_asked_for_before_it_runs_is_kept(k: int) -> None:
    wanted = values_without_fusing()
    with engine():
        x, h = gates(Model())
        assert len(dy.cg()) == len(wanted) == 9
        asked = dy.cg().expression(k)
        near(h.npvalue(), wanted[-1], 1e-6)
        near(asked.npvalue(), wanted[k], 1e-6)
        near(dy.cg().expression(k).npvalue(), wanted[k], 1e-6)
        near(np.array(dy.cg().forward_vec(k)), wanted[k].ravel(order="F"), 1e-6)
        dy.sum_elems(h).backward(full=True)
        fused = asked.gradient()
        near(x.npvalue(), wanted[[i for i, t, _, _ in dy.cg().nodes() if t.startswith("input")][0]], 0)
    with engine(fuse=False):
        x, h = gates(Model())
        dy.sum_elems(h).backward(full=True)
        near(fused, dy.cg().expression(k).gradient(), 1e-5)


def test_a_node_asked_for_and_let_go_is_fused() -> None:
    with engine():
        kept = gates(Model())
        for k in range(len(dy.cg())):
            dy.cg().expression(k)
        kept[1].npvalue()
        assert dy.stats()["nodes"] == 2


def test_forward_vec_before_anything_ran() -> None:
    wanted = values_without_fusing()
    for k, value in enumerate(wanted):
        with engine():
            kept = gates(Model())
            near(np.array(dy.cg().forward_vec(k)), value.ravel(order="F"), 1e-6)
            near(kept[1].npvalue(), wanted[-1], 1e-6)


def test_dump(tmp_path: Path) -> None:
    """All nodes when nothing has run; later those that are gone are marked."""

    def dumped() -> list[str]:
        dy.dump_cg(str(tmp_path / "dump.txt"))
        return (tmp_path / "dump.txt").read_text().splitlines()

    with engine():
        kept = gates(Model())
        whole = dumped()
        assert sum(line.startswith("v") for line in whole) == 9 and "not kept" not in "".join(whole)
        assert kept is not None
    with engine():
        kept = gates(Model())
        dy.sum_elems(kept[1]).backward()
        lines = dumped()
        assert sum(line.startswith("v") for line in lines) == 10
        assert sum("not kept" in line for line in lines) == 5


def test_looking_at_a_fused_graph() -> None:
    """Pictures, explanations and plans of it."""
    with engine():
        kept = gates(Model())
        dy.sum_elems(kept[1]).backward()
        assert ops() == ["joined", "fused", "sum_elems"]
        assert len(dy.cg().nodes()) == 10
        dy.print_text_graphviz()


# ---- runs that fail, several graphs ------------------------------------------------------------------------------------


RUN_THAT_FAILS = """
import resource
import numpy as np, dynet_lite as dy
dy.configure(verify=True)
dy.renew_cg()
pc = dy.ParameterCollection()
W, V = (pc.parameters_from_numpy(np.random.default_rng(k).normal(size=(8, 8))) for k in range(2))
x = dy.inputVector(np.arange(8) / 8)
y = dy.cmult(dy.tanh(W * x), dy.logistic(V * x))
z = dy.dot_product(y, x)
large = dy.tanh(dy.random_normal((5000, 5000)))
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
no_limit = resource.RLIM_INFINITY
resource.setrlimit(resource.RLIMIT_AS, (used + 60_000_000, no_limit))
failed = 0
for _ in range(2):
    try:
        y.npvalue()
    except dy.errors.OutOfMemoryError:
        failed += 1
resource.setrlimit(resource.RLIMIT_AS, (no_limit, no_limit))
h = np.tanh(W.as_array() @ x.npvalue()) / (1 + np.exp(-V.as_array() @ x.npvalue()))
z.backward(full=True)
print(failed, np.abs(y.npvalue() - h).max() < 1e-6, abs(z.value() - h @ x.npvalue()) < 1e-5, dy.stats()["nodes"])
"""


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs the memory limits of Linux")
@pytest.mark.skipif("DYNET_LITE_TEST_SANITIZE" in os.environ, reason="the sanitizer takes all addresses")
def test_a_run_that_fails_is_tried_again(tmp_path: Path) -> None:
    """What was fused for it stays so, and is right when there is memory."""
    done = run_code(RUN_THAT_FAILS, tmp_path)
    assert done.stdout.split() == ["2", "True", "True", "5"], done.stdout + done.stderr


def test_two_graphs() -> None:
    """Names of one do not hold nodes of the other, whichever goes first."""
    with engine():
        x = vector(1)
        a = dy.tanh(x)
        with dy.graph():
            u = vector(2)
            v = dy.tanh(u)
            w = dy.exp(v)
            del a
            y = w.npvalue()
            assert dy.stats()["nodes"] == 2
            near(y, np.exp(np.tanh(u.npvalue())), 1e-6)
        del u, v, w
        z = dy.exp(dy.sin(x))
        near(z.npvalue(), np.exp(np.sin(x.npvalue())), 1e-6)


def test_names_of_gone_nodes_hold_nothing() -> None:
    """Expressions of before renew_cg() and cg_revert() that go later do not let go of new nodes at their places."""
    with engine():
        old = [dy.tanh(vector(1)) for _ in range(3)]
        dy.renew_cg()
        x = vector(1)
        a = dy.tanh(x)
        y = dy.exp(a)
        del old
        y.npvalue()
        near(a.npvalue(), np.tanh(x.npvalue()), 1e-6)
        dy.cg_checkpoint()
        old = [dy.cos(x), dy.cos(x)]
        dy.cg_revert()
        b = dy.sin(x)
        z = dy.exp(b)
        del old
        z.npvalue()
        near(b.npvalue(), np.sin(x.npvalue()), 1e-6)


def test_a_wrong_call_counts_as_no_reader_that_matters() -> None:
    """Shapes that do not fit leave no node; the values stay right."""
    with engine():
        x = vector(1)
        a = dy.tanh(x)
        with pytest.raises(ValueError):
            dy.cmult(a, vector(2, 9))
        y = dy.exp(a)
        del a
        near(y.npvalue(), np.exp(np.tanh(x.npvalue())), 1e-6)
