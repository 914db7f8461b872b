"""Counts that guard the speed of the engine: batches, heap calls, copies, memory of a cell, calls and nodes of Python.

The models are the programs of benchmarks/tasks as they are measured, at small sizes and on seeded data. Counts do not depend
on the machine, so that a change that makes the engine do more is seen here without a clock. "Today" is when this was
written; a number that has got better may be put in its place, one that has got worse needs a reason.
"""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dynet_lite as dy
from dynet_lite import _core, structure

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks"
PACKAGE = str(Path(dy.__file__).parent) + os.sep
NAMES = ("tagger", "treelstm", "parser", "rnnlm", "seq2seq")
SMALL = {"words": 60, "emb": 12, "hidden": 16, "mlp": 10, "action_emb": 6}
H = SMALL["hidden"]


@dataclass
class Case:
    """A model and a mini-batch of 8 sentences for it."""

    task: Any
    program: Any
    sizes: dict[str, int]
    batch: list[Any]

    def data(self, seed: int, count: int = 8) -> list[Any]:
        found: list[Any] = self.task.data(np.random.RandomState(seed), count, self.sizes)
        return found

    def run(self, batch: list[Any] | None = None, autobatching: bool = True) -> dict[str, Any]:
        """A forward and a backward pass; the counters."""
        dy.renew_cg(autobatching=autobatching)
        self.program.batch_loss(batch or self.batch).backward()
        return dy.stats()

    @property
    def words(self) -> int:
        return sum(map(self.task.length, self.batch))


def make(name: str, tasks: Any, initial_weights: Callable[..., Any]) -> Case:
    task = tasks[name]
    sizes = {what: SMALL.get(what, size) for what, size in task.SIZES["base"].items()}
    case = Case(task, task.Program(dy, sizes, initial_weights(task.shapes(sizes), 7)), sizes, [])
    case.batch = case.data(5)
    return case


@pytest.fixture(scope="module")
def cases() -> Iterator[Callable[[str], Case]]:
    """Gives a case by name. The folder of the benchmarks is on the path only here."""
    sys.path.insert(0, str(FOLDER))
    try:
        from tasks.common import initial_weights
        from tasks.registry import TASKS

        yield lambda name: make(name, TASKS, initial_weights)
    finally:
        sys.path.remove(str(FOLDER))


@pytest.fixture(params=NAMES)
def case(request: pytest.FixtureRequest, cases: Callable[[str], Case]) -> Case:
    return cases(request.param)


@pytest.fixture
def tagger(cases: Callable[[str], Case]) -> Case:
    return cases("tagger")


@pytest.fixture
def treelstm(cases: Callable[[str], Case]) -> Case:
    return cases("treelstm")


def height(tree: Any) -> int:
    return 0 if len(tree) == 2 else 1 + max(height(tree[1]), height(tree[2]))


def inner_nodes(tree: Any) -> int:
    return 0 if len(tree) == 2 else 1 + inner_nodes(tree[1]) + inner_nodes(tree[2])


def subtrees(tree: Any) -> list[tuple[Any, Any]]:
    """Of each node what its cell is made of, the words under it and their order, and its label."""
    if len(tree) == 2:
        return [(tree[1], tree[0])]
    left, right = subtrees(tree[1]), subtrees(tree[2])
    return [((left[0][0], right[0][0]), tree[0]), *left, *right]


# ---- batches ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("lengths", [30, 300], ids=["many types", "too many to look ahead"])
def test_recurrence_through_steps_of_many_shapes(lengths: int) -> None:
    """A decoder attends to sources that all have lengths of their own: its cell still runs once a step, not once a sentence."""
    pc = dy.ParameterCollection()
    W, cell = pc.add_parameters((4, 4)), dy.VanillaLSTMBuilder(1, 4, 4, pc)

    def loss_of(k: int) -> Any:
        source = dy.inputTensor(np.random.RandomState(k).uniform(-1, 1, (4, 2 + k)))
        state = cell.initial_state().add_input(dy.zeros(4))
        for _ in range(2 + k % 6):
            scores = dy.transpose(source) * (W * state.output())
            state = state.add_input(source * dy.softmax(dy.tanh(scores)))
        return dy.sum_elems(state.output())

    dy.renew_cg()
    loss = dy.esum([loss_of(k) for k in range(lengths)]).value()
    of_cell = sum(line.split()[1] == "lstm_step" for line in dy.plan_text().splitlines())
    stats = dy.stats()
    dy.renew_cg(autobatching=False)
    assert loss == pytest.approx(sum(loss_of(k).value() for k in range(lengths)), rel=1e-5)
    if lengths == 30:
        assert (
            stats["batches"] == stats["lower_bound"] and of_cell == 7
        )  # all steps but the first, which has no state yet


@pytest.mark.parametrize("seed", [5, 6, 7])
def test_batches_meet_the_lower_bound(case: Case, seed: int) -> None:
    stats = case.run(case.data(seed))
    assert stats["batches"] == stats["lower_bound"] > 0


def test_a_larger_batch_of_attention_meets_the_lower_bound(cases: Callable[[str], Case]) -> None:
    """Sources of many lengths make many types in one cycle."""
    case = cases("seq2seq")
    stats = case.run(case.data(9, 32))
    assert stats["batches"] == stats["lower_bound"]


# Batches of the 8 sentences today. The bound of the engine is not enough: it counts types, and a signature
# that falls in two raises both numbers alike.
BATCHES = {"tagger": 129, "treelstm": 41, "parser": 243, "rnnlm": 70, "seq2seq": 578}


@pytest.mark.parametrize("name", NAMES)
def test_no_more_batches_than_today(cases: Callable[[str], Case], name: str) -> None:
    assert cases(name).run()["batches"] <= BATCHES[name]


def test_a_step_of_attention_is_one_call_of_each_op(cases: Callable[[str], Case]) -> None:
    """32 sources of many lengths: the product with the query, the scores, softmax, the weighted sum; and all keys."""
    case = cases("seq2seq")
    batch = case.data(9, 32)
    assert len({len(source) for source, _ in batch}) > 15
    case.run(batch)
    steps = max(len(target) for _, target in batch)
    plan = [line.split("\t")[1].split(" {")[0] for line in dy.plan_text().splitlines()[1:]]
    assert plan.count("matmul(tanh(add))") == plan.count("softmax") == steps
    assert plan.count("matmul") == 2 * steps + 1


def test_batches_of_a_tagger_by_hand(tagger: Case) -> None:
    """Both projections, the first steps (no weights: both LSTMs' are alike), two ops over all words (the hidden layer; the last map with the loss), a step of
    each LSTM per further word, and sums: one for each length that there is, and the last."""
    lengths = [len(words) for words, _ in tagger.batch]
    assert tagger.run()["batches"] == 2 + 1 + 2 + 2 * (max(lengths) - 1) + len(set(lengths)) + 1


def test_without_batching_each_node_is_a_batch(case: Case) -> None:
    """The counter counts; attention gains the least: 4.2 times fewer batches."""
    on, off = case.run(), case.run(autobatching=False)
    assert off["batches"] == off["nodes"] >= on["nodes"]
    assert off["batches"] > 4 * on["batches"]


# ---- the heap ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("trainer", [dy.SimpleSGDTrainer, dy.AdamTrainer])
def test_no_heap_call_in_a_steady_step(case: Case, trainer: Any) -> None:
    update = trainer(case.program.model).update
    batches = [case.data(seed) for seed in (5, 6, 7)]

    def epoch() -> int:
        before = dy.heap_calls()
        for batch in batches:
            case.run(batch)
            update()
        return dy.heap_calls() - before

    first = epoch()
    epoch()
    gc.collect()  # models of other tests are freed here, not while we count
    assert epoch() == 0
    assert first > 0, "the counter counts"


# ---- copies -----------------------------------------------------------------------------------------------------------

# Floats that the products of the 8 sentences copied today: (gathered, scattered). Our own kernels for AVX-512 read and write
# columns where they lie. Only sums of fewer than 8 products in the gradient of a weight go to the BLAS, and there are none: the
# parser's last pushes and actions, which flow into no loss and would cut batches into pieces, do not run. With AVX2 the BLAS
# makes all gradients of weights and products of more than 64 columns, on a baseline all but single columns. It wants its
# operands at one distance, and the layout lines a node up for one of its consumers: for the others it is copied; so are the
# sources of many lengths, which one product makes keys of.
COPIES = {
    "avx512": {"tagger": (0, 0), "treelstm": (0, 0), "parser": (0, 0), "rnnlm": (0, 0), "seq2seq": (0, 0)},
    "avx2": {
        "tagger": (36368, 4344),
        "treelstm": (27028, 2496),
        "parser": (116144, 30972),
        "rnnlm": (24672, 4680),
        "seq2seq": (51720, 7228),
    },
    "baseline": {
        "tagger": (54288, 22264),
        "treelstm": (50328, 8916),
        "parser": (168962, 83814),
        "rnnlm": (34272, 14696),
        "seq2seq": (64984, 23500),
    },
}


def print_copies() -> None:
    """What the process below runs: the instruction set and the copies by model, as JSON."""
    sys.path.insert(0, str(FOLDER))
    from tasks.common import initial_weights
    from tasks.registry import TASKS

    found = {}
    for name in NAMES:
        stats = make(name, TASKS, initial_weights).run()
        found[name] = (stats["floats_gathered"], stats["floats_scattered"])
    print(json.dumps([_core.describe()["isa"], found]))


@pytest.mark.parametrize("isa", COPIES)
def test_products_copy_no_more_than_today(isa: str) -> None:
    env = {**os.environ, "DYNET_LITE_ISA": isa, "DYNET_LITE_BLAS": "openblas", "PYTHONPATH": str(Path(PACKAGE).parent)}
    done = subprocess.run([sys.executable, __file__], env=env, capture_output=True, text=True, timeout=60)
    if f"DYNET_LITE_ISA: {isa} is not available here" in done.stderr:
        pytest.skip(done.stderr.splitlines()[-1])
    assert done.returncode == 0, done.stderr
    has, found = json.loads(done.stdout)
    assert has == isa
    for name, (gathered, scattered) in COPIES[isa].items():
        assert found[name][0] <= gathered and found[name][1] <= scattered, (name, found[name])
    if isa == "baseline":
        assert all(min(copies) > 0 for copies in found.values()), "the counter counts"


# ---- memory of a cell -------------------------------------------------------------------------------------------------


def planned_floats() -> int:
    return sum(plan.floats for plan in structure.read().plans)


@pytest.mark.parametrize("lengths", [(7,), (3, 9, 9, 1, 5)])
@pytest.mark.parametrize("hidden", [16, 48])
def test_a_step_of_an_lstm_is_six_times_its_size(hidden: int, lengths: tuple[int, ...]) -> None:
    """4 h for the sums, which the gates lie over, h for the output, h for the cell. A copy of any of them is a pass more."""
    builder = dy.VanillaLSTMBuilder(1, 4, hidden, dy.ParameterCollection())
    dy.renew_cg()
    outputs = [builder.initial_state().transduce([dy.inputVector([0.5] * 4)] * n)[-1] for n in lengths]
    dy.forward(outputs)
    assert planned_floats() == 6 * hidden * sum(lengths)


def test_sums_that_are_asked_for_are_four_more() -> None:
    """Who asks for the sums of a cell gets them kept: the gates then have memory of their own, which this count sees."""
    builder = dy.VanillaLSTMBuilder(1, 4, H, dy.ParameterCollection())
    dy.renew_cg()
    outputs = builder.initial_state().transduce([dy.inputVector([0.5] * 4)] * 7)
    asked = [dy.cg().expression(n) for n, what, *_ in dy.cg().nodes() if what.startswith("affine_transform")]
    outputs[-1].forward()
    assert len(asked) == 7
    assert planned_floats() >= 6 * H * 7 + 4 * H * 6  # the first step is a type of its own


def test_memory_of_a_tagger_by_hand(tagger: Case) -> None:
    """Per word: two steps, their outputs side by side, sums and outputs of both layers, the loss with the
    scores, their scale and where they are."""
    mlp, tags = tagger.sizes["mlp"], tagger.sizes["tags"]
    word = 2 * 6 * H + 2 * H + 2 * mlp + tags + 4
    tagger.run()
    slabs = 2 + 2 + 4 + 6 + 8 + 1  # each begins at a multiple of 16 floats: sums of the LSTMs, h and c, ops, sums
    assert 0 <= planned_floats() - tagger.words * word - 9 < 16 * slabs


def test_memory_of_gates_by_hand(treelstm: Case) -> None:
    """Sums of the gates, which the gates lie over, cell and output: 5 h and 2 h for an inner node, 3 h and 2 h for a leaf, as
    for a cell of a builder. The cell of a root is read by nothing but its output and has no memory. Scores and a loss each. What
    occurs twice, a leaf of the same word or what is made of such leaves, is there once."""
    inner, roots = sum(map(inner_nodes, treelstm.batch)), len(treelstm.batch)
    both = treelstm.sizes["classes"] + 4
    treelstm.run()
    nodes = [node for tree in treelstm.batch for node in subtrees(tree)]
    made = {of for of, _ in nodes}
    leaves = sum(not isinstance(of, tuple) for of in made)
    assert len(made) < len(nodes) - 10
    cells = (len(made) - leaves) * 7 * H + leaves * 5 * H + len(set(nodes)) * both - roots * H + roots + 1
    slabs = 2 + 4 + 3 + 8 + 1
    assert 0 <= planned_floats() - cells < 16 * slabs
    with dy.configure(fuse=False):  # a slab per op of the program
        treelstm.run()
        assert planned_floats() >= inner * (17 * H + both - 2) + treelstm.words * (9 * H + both - 2)


def test_batches_of_gates_by_hand(treelstm: Case) -> None:
    """A level of inner nodes is three batches (maps, cells, outputs); the one before it and the other ends are few."""
    levels = max(map(height, treelstm.batch))
    treelstm.run()
    fused = dy.stats()
    with dy.configure(fuse=False):
        treelstm.run()
        single = dy.stats()
    others = 1 + 2 + levels + 2 + len({inner_nodes(tree) for tree in treelstm.batch}) + 1  # leaves, roots, losses, sums
    assert 3 * levels <= fused["batches"] <= 3 * levels + others
    assert single["batches"] > 2 * fused["batches"] - others and single["nodes"] > 1.5 * fused["nodes"]


def test_gradients_take_no_more_memory_than_values(case: Case) -> None:
    with dy.profile() as profile:
        case.run()
    memory = profile.memory()
    assert 0 < memory["gradients"] <= memory["values"]


# ---- calls of Python --------------------------------------------------------------------------------------------------


def count_calls(build: Callable[[], object]) -> tuple[int, int]:
    """Calls while this runs, (by the program, inside the package): functions of Python that run, and of C that they call.

    Operators, indexing and what is made by a type are no calls, nor are the few compiled functions that Cython gives a binding.
    Comprehensions count as none: newer Pythons run them in place.
    """
    calls: Counter[bool] = Counter()

    def note(frame: Any, event: str, _: Any) -> None:
        code = frame.f_code
        if event == "c_call" or (event == "call" and code.co_name not in ("<listcomp>", "<genexpr>")):
            calls[code.co_filename.startswith(PACKAGE)] += 1

    sys.setprofile(note)
    try:
        build()
    finally:
        sys.setprofile(None)
    return calls[False] - 2, calls[True]  # without build() and the last setprofile()


def calls_of_sentences(case: Case) -> list[tuple[Any, int, int]]:
    """(sentence, calls by the program, calls inside the package) of each; what is done once in a graph is done before."""
    case.run()
    dy.renew_cg()
    case.program.batch_loss(case.batch)
    return [(one, *count_calls(lambda one=one: case.program.loss(one))) for one in case.batch]  # type: ignore[misc]


def test_calls_are_counted() -> None:
    x = dy.inputVector([1.0])
    assert count_calls(lambda: [dy.tanh(x), len("x"), str.upper("x")]) == (3, 0)
    state = dy.VanillaLSTMBuilder(1, 2, 2, dy.ParameterCollection()).initial_state
    program, inside = count_calls(lambda: state())
    assert program == 0 and inside > 0


def test_calls_of_a_tagger(tagger: Case) -> None:
    """Per word six, each of which the program names: concatenate, two affine_transforms, tanh, the loss, append. Inside
    the package none per word, and 3 per LSTM and sentence."""
    for (words, _), program, inside in calls_of_sentences(tagger):
        assert program == 6 * len(words) + 3
        assert inside <= 2 * 3


def test_calls_of_gates_by_hand(treelstm: Case) -> None:
    """All calls are the program's own: 20 at an inner node (5 affine_transforms, 4 logistics, 2 tanhs, 4 cmults, the loss, and 4
    of Python), 14 at a leaf. Operators come on top."""
    for tree, program, inside in calls_of_sentences(treelstm):
        n = inner_nodes(tree)
        assert program == 20 * n + 14 * (n + 1) + 2
        assert inside == 0


@pytest.mark.parametrize(
    ("name", "per_sentence", "per_step"),
    [
        ("rnnlm", 3, 0),
        ("parser", 9, 0),  # three LSTMs
        ("seq2seq", 11, 3),  # colwise_add() and transpose() are written in Python; per word of the target
    ],
)
def test_calls_inside_the_package(cases: Callable[[str], Case], name: str, per_sentence: int, per_step: int) -> None:
    for sentence, _, inside in calls_of_sentences(cases(name)):
        steps = len(sentence[1]) if name == "seq2seq" else 0
        assert inside <= per_sentence + per_step * steps


def test_calls_inside_the_package_of_single_functions() -> None:
    """What programs call once a sentence or once a step, with the arguments that they mostly give."""
    lstm = dy.VanillaLSTMBuilder(1, 2, 2, dy.ParameterCollection())
    dropped = dy.VanillaLSTMBuilder(1, 2, 2, dy.ParameterCollection())
    coupled = dy.CoupledLSTMBuilder(1, 2, 2, dy.ParameterCollection())
    for builder in (dropped, coupled):
        builder.set_dropout(0.5)
    x, m = dy.inputVector([1.0, 2.0]), dy.inputTensor(np.ones((2, 2)))
    peepholes = coupled.initial_state().add_input(x)
    counts = {
        "initial_state(vecs)": (lambda: lstm.initial_state([x]), 3),
        "a sequence": (lambda: dropped.initial_state().transduce([x]), 8),  # first the layers are listed
        "the next": (lambda: dropped.initial_state().transduce([x]), 3),
        "a step with peepholes": (lambda: peepholes.add_input(x), 4),
        "set_dropout(0)": (lambda: lstm.set_dropout(0), 3),
        "disable_dropout()": (lambda: lstm.disable_dropout(), 7),
        "sum_dim": (lambda: dy.sum_dim(m, [0]), 4),
        "colwise_add": (lambda: dy.colwise_add(m, x), 1),
    }
    found = {name: count_calls(call)[1] for name, (call, _) in counts.items()}
    assert all(found[name] <= most for name, (_, most) in counts.items()), found


# ---- nodes ------------------------------------------------------------------------------------------------------------


def weights(case: Case) -> int:
    return len(case.program.model.parameters_list()) + len(case.program.model.lookup_parameters_list())


def expected_nodes(name: str, case: Case) -> int:
    """Nodes of a mini-batch by hand, without weights and the last sum. A step of an LSTM is three: sums, output, cell."""
    batch, step = case.batch, 3
    if name == "tagger":  # per word: row, two steps, concatenate, sums and outputs of two layers, loss
        return case.words * (1 + 2 * step + 5) + len(batch)
    if name == "treelstm":  # 9 and 17 ops by hand; scores and loss
        return sum(inner_nodes(tree) * (17 + 2) for tree in batch) + case.words * (1 + 9 + 2) + len(batch)
    if name == "parser":
        actions = sum(len(one.actions) for one in batch)
        reduces = actions - case.words
        per_action = 4 + (1 + step) + step  # hidden layer, scores, loss; history; push
        return case.words * (1 + step) + actions * per_action + reduces * 2 + len(batch) * (2 * step + 1 + step + 1)
    if name == "rnnlm":  # per word: row, step, scores, loss
        return case.words * (1 + step + 2) + len(batch)
    targets = sum(len(target) for _, target in batch)
    attention = 7  # product with the query, sum, tanh, product, transposed, softmax, product
    target_word = 1 + attention + 1 + step + 2  # row, context beside it, scores and loss
    return case.words * (1 + 2 * step + 1) + targets * target_word + len(batch) * 4


@pytest.mark.parametrize("name", NAMES)
def test_nodes_of_a_graph(cases: Callable[[str], Case], name: str) -> None:
    case = cases(name)
    dy.renew_cg()
    case.program.batch_loss(case.batch)
    assert len(dy.cg()) == expected_nodes(name, case) + weights(case) + 1  # fusing comes later, when the graph runs


@pytest.mark.skipif(os.environ.get("PYTHONMALLOC") == "malloc", reason="Python counts its own blocks only")
def test_nodes_are_no_objects_of_python(case: Case) -> None:
    """With the expressions of a graph of thousands of nodes gone, but for the loss, no object of Python is left of it."""

    def left(check_validity: bool = False) -> int:
        dy.renew_cg(check_validity=check_validity)
        gc.collect()  # here and below: free lists of Python's own count as well
        before = sys.getallocatedblocks()
        loss = case.program.batch_loss(case.batch)
        gc.collect()
        after = sys.getallocatedblocks()
        assert loss.dim() == ((1,), 1) and len(dy.cg()) > 1000
        return after - before

    left()
    assert min(left() for _ in range(3)) <= 10
    assert left(check_validity=True) > 100, "the counter counts: here the lines that made the nodes are noted"


if __name__ == "__main__":
    print_copies()
