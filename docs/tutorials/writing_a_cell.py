"""Writing a recurrent cell of your own, from ordinary ops.

    python docs/tutorials/writing_a_cell.py

The built-in builders (dy.LSTMBuilder, dy.GRUBuilder, ...) run a step as one node. A cell of your own is a few nodes per
step; the engine batches them over the sentences all the same. The example is the minimal gated unit (Zhou and others, 2016).
"""

# %% 1. The cell
# It has parameters, made in a collection, and a function from the last state and the input to the new state. Things that need
# no state are done for all positions first: what does not depend on the step before runs as one batch, however long the
# sentence is.
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
            from_x_f = dy.affine_transform([self.bf, self.Wf, x])  # these two wait for nothing
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
# gradcheck compares it with differences of the value, for each parameter, and raises an error that names the worst one.
# Gradients of ops are right already; this finds parts that were cut off by mistake, with dy.nobackprop for example. Numbers
# are 32-bit: check a loss near 1 and not a sum of hundreds.

off_by = dy.gradcheck(lambda: loss(SENTENCES[0]) * 0.1, *model.parameters_list())
print(f"the gradient is right, to {off_by:.1e}")

# %% 3. Does it batch?
# Three sentences of 3, 2 and 5 steps: 5 batches for each node of a step, for steps depend on each other. The products with x
# and the losses are one batch each.

dy.renew_cg()
total = dy.esum([loss(s) for s in SENTENCES])
print(dy.explain_batches())
counts = dy.stats()
assert counts["batches"] == counts["lower_bound"]

# %% 4. What runs as one
# There is no line for tanh in that explanation. An elementwise op that one other elementwise op reads, and nobody else, runs
# inside that one, in one pass over memory. Instead of a name such nodes show a formula: logistic(add(x0, x1)) is the gate f,
# x0 and x1 are its inputs, c0, c1, ... are numbers such as the 2 of 2 * x. And from_x_f and from_x_g, affine maps of the same x
# that only such nodes read, ran as one node, "affine_transform x 2". You need not do anything for it. The numbers are those of
# single ops; only the sums inside joined products may be rounded differently.

dy.renew_cg()
x = dy.inputVector(np.linspace(-1, 1, 12))
y = dy.exp(dy.tanh(2 * x))
y.forward()
for node in dy.cg().nodes():
    print(node)  # number, what it is, shape, arguments
assert dy.cg().nodes()[-1][1] == "exp(tanh(scale(x0, c0))) {12}"

# An op stays apart when
# - somebody may still ask for its value: a variable, a list or an object holds the expression when the graph runs,
# - another op reads it, too, or it ran already, for a value() in between,
# - it has fewer than 8 numbers, or its arguments have another shape,
# - the graph checks each value: dy.renew_cg(check_validity=True).
# Affine maps (W * x, or dy.affine_transform) are joined when matrices and biases are parameters and x is one and the same
# expression: look a word up once per step, not once per gate.
#
# What ran inside another node has no value of its own: dy.cg().expression(2) is an error, dy.dump_cg() says so. Both give
# the value when they come before the run. To see every node for itself, switch it off:

with dy.configure(fuse=False):
    dy.renew_cg()
    dy.exp(dy.tanh(2 * dy.inputVector(np.linspace(-1, 1, 12)))).forward()
    print(dy.plan_text())

# %% 5. The same numbers as for one sentence alone
# Batching never changes what is computed, only the order of a sum now and then.

together = [e.value() for e in [loss(s) for s in SENTENCES]]
dy.renew_cg(autobatching=False)
alone = [loss(s).value() for s in SENTENCES]
assert np.allclose(together, alone, rtol=1e-5)
print("together", np.round(together, 4), "alone", np.round(alone, 4))

# %% 6. What makes batches small
# - A value() inside the loop: what was built before it runs alone. Build all sentences first, ask once.
# - A weight per something (a matrix per relation, say): nodes with different weights are different kinds. One product with
#   the matrices below each other, and then a slice of it, is one kind.
# - Sums of different lengths: dy.esum of 5 and dy.esum of 6 are different kinds. That is harmless at the end of a sentence;
#   inside a recurrence rather add pairs.
# explain_batches() says which of these it is:

dy.renew_cg()
relations = [model.add_parameters((12, 12), name=f"R{k}") for k in range(3)]
h = cell.transduce([E[1]])[0]
products = [R * h for R in relations]
print(dy.explain_batches().why(products[0], products[1]))

below_each_other = dy.concatenate(relations)  # made of weights alone: computed once, shared by all
rows = [dy.pick_range(below_each_other * h, 12 * k, 12 * (k + 1)) for k in range(3)]
assert np.allclose(rows[2].npvalue(), products[2].npvalue(), atol=1e-5)

# %% 7. When this is not fast enough
# Count first: with dy.profile() around some training steps, phases() says how much is Python building the graph. Fewer nodes
# per step help there: dy.affine_transform([b, W, x, U, h]) is one node for two products and two sums. A step of
# the recurrence that is one node needs an op in C++; CONTRIBUTING.md says what to write.


def fused(xs: list[dy.Expression]) -> list[dy.Expression]:
    """The same cell with 6 nodes per step instead of 9."""
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
for name, function in (("waiting for nothing first", cell.transduce), ("fewer nodes", fused)):
    with dy.profile() as p:
        for _ in range(20):
            dy.renew_cg()
            dy.esum([function([E[w] for w in s])[-1] for s in SENTENCES * 10]).forward()
    phases = p.phases()
    print(f"{name}: Python {1e3 * phases['python']:.1f} ms, forward {1e3 * phases['forward']:.1f} ms")
