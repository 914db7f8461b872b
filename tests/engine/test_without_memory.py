"""What goes on after memory was refused half-way: right numbers or an error, never others.

Each program tries something with a little more memory each time, until there is enough, and then once more without a
limit. It prints whether anything failed, and how often the numbers were wrong.
"""

from __future__ import annotations

import os
import platform
import subprocess
from pathlib import Path

import pytest
from cxx import compiler
from programs import run_code

BEGIN = """
import ctypes, resource
import numpy as np, dynet_lite as dy
import dynet_lite.told_words  # what explains errors
for what, size in ((-3, 4096), (-1, 0), (-2, 0)):  # of malloc: arrays are mapped by themselves, and none is kept
    ctypes.CDLL(None).mallopt(what, size)
dy.configure(overlap=False)
m = dy.ParameterCollection()
failed, wrong = False, 0

def works(f, room):
    global failed
    used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + room, resource.RLIM_INFINITY))
    try:
        f()
    except MemoryError:
        failed = True
        return False
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    return True
"""

# A row of a table gets a place for its gradient.
ROWS = """
n = 150_000
for room in range(0, 8_000_000, 131_072):
    E = m.add_lookup_parameters((n, 1))
    with dy.graph():
        loss = dy.sum_elems(dy.sum_batches(E.batch(range(n))))
        loss.value()
        enough = works(loss.backward, room)
        E.zero_gradient()
        loss.backward()
        wrong += not (E.grad_as_array() == 1).all()
    if enough:
        break
"""

# A backward pass looks for what it reaches in a graph that has grown since the last one.
GROWN = """
n = 15_000
E = m.add_lookup_parameters((n, 1))
E.init_from_array(np.arange(n)[:, None] / n)
wanted = 1 - np.tanh(np.arange(n) / n) ** 2
wanted[:50] += 6
for room in range(0, 8_000_000, 32_768):
    with dy.graph():
        rows = [E[i] for i in range(n)]
        old = [x * 2.0 for x in rows[:50]]
        dy.esum(old).backward()
        loss = dy.esum([dy.tanh(x) for x in rows]) + dy.esum([x * 3.0 for x in old])
        loss.value()
        E.zero_gradient()
        enough = works(loss.backward, room)
        E.zero_gradient()
        loss.backward()
        wrong += not np.allclose(E.grad_as_array()[:, 0], wanted, atol=1e-4)
        E.zero_gradient()
    if enough:
        break
"""

# Lanes get memory of their own for what they all add to.
LANES = """
dy.configure(threads=3)
n = 128  # no products: BLAS ends the process when there is no memory for it
weights = a, b, E = m.add_parameters(n), m.add_parameters(n), m.add_lookup_parameters((50, n))

def built():
    losses = []
    for k in range(90):
        h = E[k % 50]
        for i in range(k % 6 + 1):
            h = dy.tanh(dy.cmult(a, h) + E[i] + b)
        losses.append(dy.pickneglogsoftmax(h, k % 8))
    return dy.esum(losses)

def gradients():
    out = [w.grad_as_array() for w in weights]
    for w in weights:
        w.zero_gradient()
    return out

built().backward()
wanted = gradients()
for room in range(0, 8_000_000, 16_384):
    with dy.graph():
        loss = built()
        loss.value()
        enough = works(loss.backward, room)
        gradients()
        loss.backward()
        wrong += not all(np.allclose(x, y, rtol=1e-3, atol=1e-4) for x, y in zip(gradients(), wanted))
    if enough:
        break
"""

# The passes over the graph add arguments of new nodes to those of the old ones.
REWRITTEN = """
W, b = m.add_parameters((2, 2)), m.add_parameters(2)

def built(n):
    x = dy.inputVector([0.1, 0.2])
    return dy.esum([dy.pickneglogsoftmax(W * dy.tanh(W * (x * k) + b), k % 2) for k in range(n)])

for n in (1638, 3276):
    dy.renew_cg()
    wanted = built(n).value()
    for room in range(0, 8_000_000, 32_768):
        with dy.graph() as g:
            loss = built(n)
            enough = works(loss.value, room)
            try:
                wrong += abs(loss.value() - wanted) > 1e-5 * wanted
            except RuntimeError as error:  # it says what to do
                assert "renew_cg()" in str(error), error
                g.renew()
                wrong += abs(built(n).value() - wanted) > 1e-5 * wanted
        if enough:
            break
"""

# The same in a compiled function, whose graph nobody can build again: the limit begins when it has been recorded.
COMPILED = """
W, b = m.add_parameters((2, 2)), m.add_parameters(2)
x, n = np.array([0.1, 0.2]), 800

def compiled(room):
    runs = 0
    def loss(x):
        nonlocal runs
        runs += 1
        out = dy.esum([dy.pickneglogsoftmax(W * dy.tanh(W * (x * k) + b), k % 2) for k in range(n)])
        if runs == 2 and room is not None:
            used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
            resource.setrlimit(resource.RLIMIT_AS, (used + room, resource.RLIM_INFINITY))
        return out
    return dy.compile(loss)

wanted = compiled(None)(x)
for room in range(0, 8_000_000, 32_768):
    f = compiled(room)
    enough = works(lambda: f(x), 1 << 30)
    wrong += abs(f(x) - wanted) > 1e-5 * wanted
    if enough:
        break
"""

# A node of two values is added where there is room for one more.
TWO_VALUES = """
cell = dy.VanillaLSTMBuilder(1, 2, 2, m)
dy.renew_cg()
x = dy.inputVector([1, 2])
state = cell.initial_state().add_input(x)
while len(dy.cg()) < 2**16 - 2:
    dy.inputVector([1])
works(lambda: state.add_input(x), 0)
y = dy.inputVector([3, 4])
z = y * 2
dy.cg().forward()
wrong += y.vec_value() != [3, 4] or z.vec_value() != [6, 8]
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="needs the memory limits of Linux, and mallopt()")
@pytest.mark.skipif("DYNET_LITE_TEST_SANITIZE" in os.environ, reason="the sanitizer takes all addresses")
@pytest.mark.parametrize(
    "program",
    [ROWS, GROWN, LANES, REWRITTEN, COMPILED, TWO_VALUES],
    ids=["rows", "grown", "lanes", "rewritten", "compiled", "two values"],
)
def test_no_wrong_numbers(program: str, tmp_path: Path) -> None:
    done = run_code(BEGIN + program + "\nprint(failed, wrong)", tmp_path)
    assert done.stdout.split() == ["True", "0"], done.stdout + done.stderr


# Refuses one piece of memory, however small. Steps overlap while no other graph is alive: the main thread has none.
REFUSED = """
import ctypes, os, threading
import numpy as np, dynet_lite as dy
left = ctypes.c_int.in_dll(ctypes.CDLL(os.environ["LD_PRELOAD"]), "left")
dy.configure(threads=2)
W = dy.ParameterCollection().add_parameters((4, 4), init=0.1)
failed, wrong = 0, 0

def steps(before):
    global failed, wrong
    for k in range(3):
        dy.renew_cg()
        x = dy.inputVector([1, 2, 3, 4])
        loss = dy.esum([dy.sum_elems(dy.tanh(W * x) * k) for k in range(40)])
        wrong += not abs(loss.value() - 4 * np.tanh(1) * 780) < 1e-2
        loss.backward()
        if k == 0:
            left.value = before
            try:
                dy.renew_cg()
            except MemoryError:
                failed += 1
            left.value = -1

for before in range(-1, 12):
    thread = threading.Thread(target=steps, args=(before,))
    thread.start()
    thread.join()
print(failed > 5, wrong, dy._core.steps_overlapped() > 20)
"""
NEW = """
#include <cstdlib>
#include <new>
extern "C" { int left = -1; }  // pieces until the one that is refused
void* operator new(std::size_t n) {
  if (left < 0 || left-- != 0)
    if (void* p = std::malloc(n)) return p;
  throw std::bad_alloc();
}
"""


@pytest.mark.skipif(
    compiler() is None or platform.libc_ver()[0] != "glibc", reason="needs a compiler for its C library"
)
@pytest.mark.skipif("DYNET_LITE_TEST_SANITIZE" in os.environ, reason="the sanitizer takes all addresses")
def test_a_step_that_cannot_begin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "new.cc").write_text(NEW)
    subprocess.run([str(compiler()), "-shared", "-fPIC", "new.cc", "-o", "new.so"], cwd=tmp_path, check=True)
    monkeypatch.setenv("LD_PRELOAD", str(tmp_path / "new.so"))
    done = run_code(REFUSED, tmp_path)
    assert done.stdout.split() == ["True", "0", "True"], done.stdout + done.stderr
