"""What users may rely on besides numbers: a light import, memory that comes back, threads and forks that do not interfere."""

from __future__ import annotations

import os
import platform
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from forks import holds_in_fork
from programs import run_code
from real_dynet import python

import dynet_lite as dy
from dynet_lite import _core

linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")

# ---- import ----------------------------------------------------------------------------------------------------------

# The time of an import is that of what it loads: these take long, and none is needed before something is used.
LATE = """safetensors nltk tqdm matplotlib torch dynet scipy ctypes multiprocessing concurrent asyncio subprocess
    email http ssl sqlite3 unittest doctest pdb logging argparse typing_extensions numpy.random numpy.testing numpy.f2py
    numpy.ma numpy.polynomial numpy.fft"""

IMPORT = f"""
import os, sys
import numpy
def pages(field):
    with open("/proc/self/statm") as f:
        return int(f.read().split()[field]) * os.sysconf("SC_PAGE_SIZE") / 2**20 if sys.platform == "linux" else 0.0
before, size, rss, argv = set(sys.modules), pages(0), pages(1), list(sys.argv)
import dynet_lite
new = set(sys.modules) - before
late = sorted(new & set({LATE.split()!r}))
assert not late, late
others = sorted(m for m in new if not m.startswith("dynet_lite"))
assert len(others) < 80, others
assert sys.argv == argv == ["-c", "--dynet-mem", "99999", "--dynet-seed", "7", "file"], sys.argv
assert pages(0) - size < 60 and pages(1) - rss < 25, (pages(0) - size, pages(1) - rss)
"""


def test_import_is_light() -> None:
    done = python("-c", IMPORT, "--dynet-mem", "99999", "--dynet-seed", "7", "file")
    assert done.returncode == 0, done.stderr
    assert done.stdout == done.stderr == ""


# ---- memory ----------------------------------------------------------------------------------------------------------

FLAT = """
import gc, os, sys
import numpy as np
import dynet_lite as dy
def rss():
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20
gc.disable()
def one(k):
{body}
for k in range({full}): one(k)
before = rss()
for k in range(300): one(k)
print(rss() - before)
"""
FULL = 100  # after so many steps the caches hold most of what they will: 64 plans are kept, then every 32nd
BODIES = {
    "collections": """
    m = dy.ParameterCollection()
    m.add_subcollection("s").add_lookup_parameters((2000, 500))
    lstm = dy.BiRNNBuilder(1, 100, 200, m, dy.LSTMBuilder)
""",
    "graphs": """
    dy.renew_cg()
    x = dy.inputTensor(np.ones((500, 200)))
    y = dy.sum_elems(dy.esum([dy.tanh(x * (i + k)) for i in range(10)]))
    y.value(); y.backward()
    dy.renew_cg()
""",
    "graphs of blocks": """
    with dy.graph():
        x = dy.inputTensor(np.ones((500, 200)))
        dy.sum_elems(dy.esum([dy.tanh(x * (i + k)) for i in range(10)])).value()
""",
    "graphs of growing size": """
    dy.renew_cg()
    x = dy.inputTensor(np.ones((100, 1 + k % 100)))
    dy.sum_elems(dy.esum([dy.tanh(x * i) for i in range(1 + k % 17)])).value()
""",
    "copies and checkpoints": """
    m = dy.ParameterCollection()
    lstm, trainer = dy.LSTMBuilder(1, 50, 50, m), dy.AdamTrainer(m)
    dy.sum_elems(lstm.initial_state().transduce([dy.inputTensor(np.ones(50))])[-1]).backward()
    trainer.update()
    dy.renew_cg()
    import copy, pickle
    m2, lstm2, trainer2 = copy.deepcopy((m, lstm, trainer))
    pickle.loads(pickle.dumps((m2, trainer2)))
    os.fsync = lambda f: None  # takes most of the time, and no memory
    dy.save_checkpoint(sys.argv[1], m, trainer)
    dy.load_checkpoint(sys.argv[1], m2, trainer2)
    if k % 10 == 0:
        m.save(sys.argv[1])
        m2.populate(sys.argv[1])
""",
    "errors": """
    dy.renew_cg()
    m = dy.ParameterCollection()
    W = m.add_parameters((300, 300))
    for bad in (lambda: W * dy.inputVector([1, 2]), lambda: dy.pick(W, 400), lambda: W.set_value([1])):
        try:
            bad()
        except ValueError:
            pass
    dy.sum_elems(W * W).value()
""",
}


@linux
@pytest.mark.parametrize("what", BODIES)
def test_memory_comes_back(what: str, tmp_path: Any) -> None:
    """Three hundred times, without the garbage collector: the process does not grow."""
    done = python("-c", FLAT.format(body=BODIES[what], full=FULL), str(tmp_path / "file"))
    most = 5 if platform.libc_ver()[0] == "glibc" else 10  # malloc() of musl takes longer to find enough pieces
    assert done.returncode == 0 and float(done.stdout) < most, done.stdout + done.stderr


# ---- threads ---------------------------------------------------------------------------------------------------------


class Tagger:
    """A small model with dropout: masks from NumPy, and, with engine_dropout, also from the engine."""

    def __init__(self, seed: int, size: int = 12, engine_dropout: float = 0.0) -> None:
        self.seed, self.engine_dropout = seed, engine_dropout
        self.rng = np.random.default_rng(seed)
        self.model = m = dy.ParameterCollection()
        self.words = m.add_lookup_parameters((30, size), init=self.rng.normal(size=(30, size)))
        self.lstm = dy.BiRNNBuilder(1, size, size, m, dy.LSTMBuilder)
        self.W = m.add_parameters((5, size))
        for p in m.parameters_list():
            p.set_value(self.rng.normal(size=p.shape()) * 0.3)
        self.trainer = dy.AdamTrainer(m, 0.01)
        self.lstm.set_dropout(engine_dropout)

    def scores(self, sentence: list[int]) -> list[Any]:
        return [self.W * h for h in self.lstm.transduce([self.words[w] for w in sentence])]

    def step(self) -> float:
        dy.renew_cg()
        losses = []
        for n in self.rng.integers(2, 7, size=6):
            sentence = self.rng.integers(0, 30, size=n).tolist()
            mask = dy.inputTensor((self.rng.random(5) > 0.2) / 0.8)
            losses += [
                dy.pickneglogsoftmax(dy.cmult(s, mask), w % 5)
                for s, w in zip(self.scores(sentence), sentence, strict=True)
            ]
        loss = dy.esum(losses)
        value = loss.value()
        loss.backward()
        self.trainer.update()
        return float(value)

    def run(self, steps: int = 40) -> list[float]:
        if self.engine_dropout:
            dy.reset_random_seed(self.seed)
        return [self.step() for _ in range(steps)]


def at_once(jobs: list[Callable[[], Any]]) -> list[Any]:
    """What the jobs give, each run in a thread of its own, all of them started together and often interrupted."""
    start, results, errors = threading.Barrier(len(jobs)), [None] * len(jobs), []

    def work(k: int) -> None:
        try:
            start.wait()
            results[k] = jobs[k]()
        except BaseException as e:
            errors.append(e)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(len(jobs))]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        for t in threads:
            t.start()
        for t in threads:
            t.join(120)
    finally:
        sys.setswitchinterval(interval)
    if errors:
        raise errors[0]
    return results


def weights(model: Any) -> list[Any]:
    return [p._values().tolist() for p in model._all]


@pytest.mark.parametrize("dropout", [0.0, 0.3])
@pytest.mark.parametrize("workers", [1, 2])
def test_two_threads_train_two_models(workers: int, dropout: float) -> None:
    """Exactly as one after the other; with dropout of the engine when each thread sets its seed."""
    with dy.configure(threads=workers):
        _core.settings.least_work = 0
        sizes = [12, 16, 10]
        alone = [Tagger(k, size, dropout) for k, size in enumerate(sizes)]
        expected = [t.run() for t in alone]
        together = [Tagger(k, size, dropout) for k, size in enumerate(sizes)]
        results = at_once([t.run for t in together])
    assert results == expected and all(losses[-1] < losses[0] for losses in expected)
    assert [weights(t.model) for t in together] == [weights(t.model) for t in alone]


def test_a_thread_trains_what_another_made() -> None:
    t, twin = Tagger(1), Tagger(1)
    t.run(5)
    assert at_once([lambda: t.run(5)])[0] == (twin.run(5), twin.run(5))[1]


def test_one_model_is_read_by_several_threads() -> None:
    tagger = Tagger(3)
    rng = np.random.default_rng(0)
    sentences = [rng.integers(0, 30, size=n).tolist() for n in rng.integers(1, 9, size=24)]

    def read(order: list[int]) -> dict[int, Any]:
        out: dict[int, Any] = {}
        for k in order:
            dy.renew_cg()
            out[k] = dy.concatenate_cols(tagger.scores(sentences[k])).npvalue().tolist()
        return out

    expected = read(list(range(24)))
    before = weights(tagger.model)
    for again in at_once([lambda k=k: read(np.random.default_rng(k).permutation(24).tolist()) for k in range(6)]):
        assert again == expected
    assert weights(tagger.model) == before


def test_reading_tables_that_owe_decay() -> None:
    """Weight decay is paid by whoever reads a row first; several may want to."""
    m = dy.ParameterCollection()
    table = m.add_lookup_parameters((4000, 8), init=1)
    m.set_weight_decay(0.01)
    trainer = dy.SimpleSGDTrainer(m)
    for _ in range(5):
        table.set_rows_grad([0], np.zeros((1, 8)))
        trainer.update()
    expected = np.full((4000, 8), np.float32(0.99) ** 5)

    def read(k: int) -> Any:
        dy.renew_cg()
        if k % 2:
            return table.as_array()
        return dy.lookup_batch(table, list(range(4000))).npvalue().T

    for values in at_once([lambda k=k: read(k) for k in range(6)]):
        np.testing.assert_allclose(values, expected, rtol=1e-5)


def test_a_seed_gives_its_numbers_wherever_it_is_set() -> None:
    """Before the first graph of a thread, and after others have been used."""

    def numbers() -> list[Any]:
        dy.reset_random_seed(7)
        p, out = dy.ParameterCollection().add_parameters(3), []
        for _ in range(3):
            dy.renew_cg()
            out += [dy.dropout(p, 0.5).value(), dy.random_normal(2).value()]
        return out

    first = numbers()
    dy.random_normal(3).value()
    assert numbers() == first
    [in_a_thread] = at_once([lambda: [numbers(), numbers()]])  # has its first graph there
    assert in_a_thread == [first, first]
    assert at_once([lambda: [numbers() for _ in range(20)]] * 3) == [[first] * 20] * 3
    before = _core.get_seed_state()
    at_once([numbers])
    assert _core.get_seed_state() == before
    at_once([lambda: dy.random_normal(2).value()])
    assert _core.get_seed_state() != before  # a thread without a seed of its own draws from the common generator


# ---- forks -----------------------------------------------------------------------------------------------------------


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.parametrize("workers", [1, 2])
def test_fork_after_use(workers: int) -> None:
    """A child goes on with its copy of model, graph and workers; the parent is not touched by what it does."""
    with dy.configure(threads=workers):
        _core.settings.least_work = 0
        t, twin = Tagger(5), Tagger(5)
        t.run(3)
        twin.run(3)
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            code = 1
            try:
                os.write(writer, repr((t.run(4), dy.random_normal(2).value())).encode())
                code = 0
            finally:
                os._exit(code)
        os.close(writer)
        before = weights(t.model)
        with os.fdopen(reader) as f:
            theirs = f.read()
        assert os.waitpid(child, 0)[1] == 0
        assert weights(t.model) == before
        assert repr((t.run(4), dy.random_normal(2).value())) == theirs
        assert twin.run(4) == eval(theirs)[0]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_fork_before_anything_has_run(tmp_path: Path) -> None:
    """While a thread is inside the first call of a compiled function."""
    code = """
import os, threading, time
import dynet_lite as dy

W = dy.ParameterCollection().add_parameters((2, 2), init=1.0)
inside, go_on = threading.Event(), threading.Event()

@dy.compile
def f(v):
    if not inside.is_set():
        inside.set()
        go_on.wait()
    return dy.squared_norm(W * dy.inputVector(v))

thread = threading.Thread(target=f, args=([1.0, 2.0],))
thread.start()
inside.wait()
child = os.fork()
if not child:
    os._exit(int(float(f([1.0, 2.0]))))
late = time.monotonic() + 30
while (ended := os.waitpid(child, os.WNOHANG))[0] == 0 and time.monotonic() < late:
    time.sleep(0.01)
if not ended[0]:
    os.kill(child, 9)
go_on.set()
thread.join()
print(os.waitstatus_to_exitcode(ended[1]) if ended[0] else "waits for ever")
"""
    done = run_code(code, tmp_path)
    assert done.stdout == "18\n", done.stdout + done.stderr


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.parametrize("what", ["backward", "two threads", "compiled"])
def test_fork_while_a_thread_runs(what: str) -> None:
    """The child has no thread that could open what that one had locked."""
    m = dy.ParameterCollection()
    W = m.add_parameters((100, 100))
    compiled = dy.compile(lambda v: dy.squared_norm(W * dy.inputVector(v)), trainer=dy.SimpleSGDTrainer(m, 1e-9))

    def step() -> float:
        if what == "compiled":
            return float(compiled(np.ones(100)))
        dy.renew_cg()
        loss = dy.esum([dy.squared_norm(dy.tanh(W * dy.inputVector(np.ones(100)))) for _ in range(8)])
        loss.backward()
        return float(loss.value())

    stop = threading.Event()

    def beside() -> None:
        while not stop.is_set():
            step()

    with dy.configure(threads=2 if what == "two threads" else 1):
        thread = threading.Thread(target=beside)
        thread.start()
        try:
            for k in range(8):
                stop.wait(0.003 * k)
                assert holds_in_fork(lambda: np.isfinite(step()))
        finally:
            stop.set()
            thread.join()


# ---- one graph for two threads ---------------------------------------------------------------------------------------


def test_nodes_that_a_thread_adds_to_a_graph_that_runs() -> None:
    """Each thread needs a graph of its own, and is told so."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    W = dy.ParameterCollection().add_parameters((400, 400))
    dy.renew_cg()
    g, stop, seen = dy.cg(), threading.Event(), list[str]()

    def chain() -> dy.Expression:
        x = dy.inputVector(np.ones(400))
        for _ in range(20):
            x = dy.tanh(W * x)
        return x

    def add() -> None:
        while not stop.is_set():
            try:
                with g:
                    chain()
            except dy.StaleExpressionError:
                pass  # the other one has renewed it
            except RuntimeError as error:
                seen.append(str(error))

    thread = threading.Thread(target=add)
    thread.start()
    try:
        end = time.monotonic() + 20
        while len(seen) < 100 and time.monotonic() < end:
            try:
                chain().value()
                dy.renew_cg()
            except dy.StaleExpressionError:
                pass  # it was renewed while the other thread let it wait
    finally:
        stop.set()
        thread.join()
        sys.setswitchinterval(before)
        dy.renew_cg()
    assert seen and all("running in another thread" in error for error in seen)


def test_threads_that_wait_and_then_run_one_graph(tmp_path: Path) -> None:
    """What they wait for is over for both at the same moment: one runs it, the other has the value or is told."""
    done = run_code(
        """
import threading, time
import numpy as np
import dynet_lite as dy
from dynet_lite import _core

W = dy.ParameterCollection().add_parameters((200, 200))
g = dy.graph()
with g:
    xs = [dy.inputTensor(np.ones(200)) for _ in range(3000)]
    loss = dy.esum([dy.squared_norm(dy.tanh(W * dy.tanh(W * x))) for x in xs])
_core.put_off(lambda: time.sleep(0.3))
seen = []

def run():
    try:
        seen.append(loss.value())
    except Exception as error:
        seen.append(str(error))

threads = [threading.Thread(target=run) for _ in range(3)]
for t in threads:
    t.start()
for t in threads:
    t.join()
values = [one for one in seen if type(one) is float]
w = W.as_array()
np.testing.assert_allclose(values, 3000 * np.sum(np.tanh(w @ np.tanh(w.sum(1))) ** 2), rtol=1e-3)
assert values and all("running in another thread" in one for one in seen if type(one) is str), seen
""",
        tmp_path,
    )
    assert done.returncode == 0, done.stderr


def test_rows_of_a_graph_that_runs_stay() -> None:
    """set() of a look-up that is refused since another thread runs its graph changes nothing."""
    E = dy.ParameterCollection().add_lookup_parameters((2, 300), init=np.ones((2, 300)) * [[1], [2]])
    W = dy.ParameterCollection().add_parameters((300, 300))
    dy.renew_cg()
    row, slow = E[0], dy.inputVector(np.ones(300))
    for _ in range(3000):
        slow = dy.tanh(W * slow)
    thread = threading.Thread(target=slow.value)
    thread.start()
    with pytest.raises(RuntimeError, match="running in another thread"):
        while thread.is_alive():
            dy.tanh(row)
    with pytest.raises(RuntimeError, match="running in another thread"):
        row.set(1)
    thread.join()
    assert row.npvalue()[0] == 1
