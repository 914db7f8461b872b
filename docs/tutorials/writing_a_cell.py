"""Writing a recurrent cell of your own, from ordinary ops.

    python docs/tutorials/writing_a_cell.py

The built-in builders (dy.LSTMBuilder, dy.GRUBuilder, ...) compute a time step as a single node. A cell of your own is a few
nodes per step; the engine still batches them across sentences. The example is the minimal gated unit (Zhou and others, 2016).
"""

# %% 1. The cell
# It has parameters, made in a collection, and a function from the last state and the input to the new state. Each gate is written
# as the paper writes it.
import numpy as np

import dynet_lite as dy


class MinimalGatedUnit:
    """f = logistic(Wf x + Uf h + bf);  g = tanh(Wg x + Ug (f * h) + bg);  h' = (1 - f) * h + f * g"""

    def __init__(self, size_in: int, size: int, model: dy.ParameterCollection) -> None:
        own = model.add_subcollection("mgu")  # names such as /mgu/Wf
        self.Wf, self.Wg = (own.add_parameters((size, size_in), name=name) for name in ("Wf", "Wg"))
        self.Uf, self.Ug = (own.add_parameters((size, size), name=name) for name in ("Uf", "Ug"))
        self.bf, self.bg = (own.add_parameters(size, init=0, name=name) for name in ("bf", "bg"))
        self.size = size

    def transduce(self, xs: list[dy.Expression]) -> list[dy.Expression]:
        """The states after each input."""
        h = dy.zeros(self.size)
        states = []
        for x in xs:
            from_x_f = dy.affine_transform([self.bf, self.Wf, x])
            from_x_g = dy.affine_transform([self.bg, self.Wg, x])
            f = dy.logistic(from_x_f + self.Uf * h)
            g = dy.tanh(from_x_g + self.Ug * dy.cmult(f, h))
            h = h + dy.cmult(f, g - h)
            states.append(h)
        return states


dy.reset_random_seed(1)
model = dy.ParameterCollection()
E = model.add_lookup_parameters((20, 8), name="E")
cell = MinimalGatedUnit(8, 12, model)
V = model.add_parameters((20, 12), name="V")


def loss(words: list[int]) -> dy.Expression:
    """-log p of each word after the first, given those before it."""
    states = cell.transduce([E[w] for w in words[:-1]])
    return dy.esum([dy.pickneglogsoftmax(V * h, w) for h, w in zip(states, words[1:], strict=True)])


SENTENCES = [[1, 2, 3, 4], [5, 6, 7], [8, 9, 10, 11, 12, 13]]

# %% 2. Is its gradient right?
# gradcheck compares it with differences of the value, for each parameter, and raises an error that names the worst one. The
# gradients of ops are right already; gradcheck finds parts that you cut off by mistake, for example with dy.nobackprop. Numbers
# are 32-bit, so check a loss near 1 and not a sum of hundreds.

off_by = dy.gradcheck(lambda: loss(SENTENCES[0]) * 0.1, *model.parameters_list())
print(f"the gradient is right, to {off_by:.1e}")

# %% 3. Does it batch?
# Three sentences of 3, 2 and 5 steps: each node of a step takes 5 batches, because steps depend on each other. The losses, which
# nothing waits for, are one batch.

dy.renew_cg()
total = dy.esum([loss(s) for s in SENTENCES])
print(dy.explain_batches())
counts = dy.stats()
assert counts["batches"] == counts["lower_bound"]

# %% 4. What runs as one
# That explanation has no line for tanh. If only one other elementwise op reads an elementwise op, it runs inside that one, in one
# pass over memory. Such nodes show a formula instead of a name: add(x0, cmult(x1, sub(tanh(x2), x0))) is the new h, where x0, x1
# and x2 are h, f and the sum inside tanh. Also, the two products of a gate, with x and with h, and their bias ran as one
# affine_transform. All this is automatic. The numbers are those of single ops; only sums inside joined products may be rounded
# differently.

dy.renew_cg()
x = dy.inputVector(np.linspace(-1, 1, 12))
y = dy.exp(dy.tanh(2 * x))
y.forward()
for node in dy.cg().nodes():
    print(node)  # number, what it is, shape, arguments
assert dy.cg().nodes()[-1][1] == "exp(tanh(scale(x0, c0))) {12}"

# An op stays apart when
# - a variable, a list or an object still holds its expression when the graph runs,
# - a second op reads it, or it has already run because of an earlier value(),
# - it has fewer than 8 numbers, or its arguments have another shape,
# - the graph checks each value: dy.renew_cg(check_validity=True).
# Affine maps (W * x, or dy.affine_transform) are joined if matrices and biases are parameters and x is the same expression: look
# a word up once per step, not once per gate.
#
# What ran inside another node has no value of its own: dy.cg().expression(2) is an error, and dy.dump_cg() says so. Before the
# run, both give the value. To see every node separately, switch it off:

with dy.configure(fuse=False):
    dy.renew_cg()
    dy.exp(dy.tanh(2 * dy.inputVector(np.linspace(-1, 1, 12)))).forward()
    print(dy.plan_text())

# %% 5. The same numbers as for one sentence alone
# Batching never changes what is computed, only sometimes the order of a sum.

together = [e.value() for e in [loss(s) for s in SENTENCES]]
dy.renew_cg(autobatching=False)
alone = [loss(s).value() for s in SENTENCES]
assert np.allclose(together, alone, rtol=1e-5)
print("together", np.round(together, 4), "alone", np.round(alone, 4))

# %% 6. What prevents batching
# - A value() inside the loop: everything built before it runs alone. Build all sentences first, then ask once.
# - Many weights, such as a matrix per relation: nodes with different weights are different kinds. Stack the matrices, make one
#   product and take a slice of it: that is one kind.
# - Sums of different lengths: dy.esum of 5 and dy.esum of 6 are different kinds. This is harmless at the end of a sentence;
#   inside a recurrence, add pairs instead.
# explain_batches() says which of these it is:

dy.renew_cg()
relations = [model.add_parameters((12, 12), name=f"R{k}") for k in range(3)]
h = cell.transduce([E[1]])[0]
products = [R * h for R in relations]
print(dy.explain_batches().why(products[0], products[1]))

below_each_other = dy.concatenate(relations)  # made of weights alone: computed once, shared by all
rows = [dy.pick_range(below_each_other * h, 12 * k, 12 * (k + 1)) for k in range(3)]
assert np.allclose(rows[2].npvalue(), products[2].npvalue(), atol=1e-5)

# %% 7. If it is still too slow
# Measure first: with dy.profile() around some training steps, phases() says how much time Python takes to build the graph. If it
# is much, use fewer nodes per step, such as dy.affine_transform([b, W, x, U, h]) for two products and two sums, or make the step a
# cell (dy.cell). To make a step a single node, write an op in C++; CONTRIBUTING.md says how.


def fused(xs: list[dy.Expression]) -> list[dy.Expression]:
    """The same cell with 8 nodes per step instead of 12."""
    h, states = dy.zeros(cell.size), []
    for x in xs:
        f = dy.logistic(dy.affine_transform([cell.bf, cell.Wf, x, cell.Uf, h]))
        g = dy.tanh(dy.affine_transform([cell.bg, cell.Wg, x, cell.Ug, dy.cmult(f, h)]))
        h = h + dy.cmult(f, g - h)
        states.append(h)
    return states


dy.renew_cg()
xs = [E[w] for w in SENTENCES[2]]
assert np.allclose(fused(xs)[-1].npvalue(), cell.transduce(xs)[-1].npvalue(), atol=1e-5)
for name, function in (("as in section 1", cell.transduce), ("fewer nodes", fused)):
    with dy.profile() as p:
        for _ in range(20):
            dy.renew_cg()
            dy.esum([function([E[w] for w in s])[-1] for s in SENTENCES * 10]).forward()
    phases = p.phases()
    print(f"{name}: Python {1e3 * phases['python']:.1f} ms, forward {1e3 * phases['forward']:.1f} ms")
