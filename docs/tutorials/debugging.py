"""When something is wrong: shapes, old expressions, NaN, gradients, speed.

    python docs/tutorials/debugging.py

Most mistakes raise an exception at the line that caused them. For those that show up later, such as NaN, a debugging mode
finds the line.
"""

# %% 1. Wrong shapes
# They are errors where the node is made, not where it runs. The message says what was expected and what it got. The graph stays
# as it was.
import numpy as np

import dynet_lite as dy


def shows(what: str, error: type[Exception], function) -> None:
    """Print the error that is expected."""
    try:
        function()
    except error as found:
        print(f"{what}\n    {type(found).__name__}: {found}")
    else:
        raise AssertionError(f"{what}: no error")


model = dy.ParameterCollection()
W = model.add_parameters((3, 4), name="W")
E = model.add_lookup_parameters((10, 4), name="E")
dy.renew_cg()
x = dy.inputVector([1, 2, 3])
shows("a product that does not fit", ValueError, lambda: W * x)
shows("an index that is not there", IndexError, lambda: E[10])
shows("vectors of different lengths", ValueError, lambda: x + E[1])
print("shapes are known before anything runs:", (W * E[1]).shape)

# %% 2. Broadcasting aligns the first dims
# {3,4} is how dynet_lite writes the shape (3, 4). Unlike in NumPy, {3} is added to each column of {3,4}. Shapes that do not fit are
# an error. Shapes that fit by chance are not, so print them when in doubt.

print("{3,4} + {3} is", (dy.inputTensor(np.ones((3, 4))) + x).shape)

# %% 3. Expressions of an old graph
# renew_cg() ends a graph. Its expressions are refused from then on, and never mistaken for others. Keep numbers, not expressions.

old = dy.tanh(x)
dy.renew_cg()
shows("an expression of the last graph", dy.StaleExpressionError, lambda: dy.tanh(old))

# %% 4. What is the value here? Immediate mode
# Usually nothing runs before you ask for a value, and a debugger shows expressions without numbers. With immediate_compute each
# node runs when it is made (slowly, without batches), and repr() shows its value.

dy.renew_cg(immediate_compute=True)
h = dy.tanh(W * E[3])
print("computed at once:", h)

# %% 5. Where does the NaN come from?
# check_validity looks at each value, and the error names the line that made the node.

dy.renew_cg(check_validity=True)
p = dy.inputVector([0.5, 0.0, 0.5])
entropy = -dy.dot_product(p, dy.log(p))  # log(0) is here, but nothing has run yet
shows("NaN or infinity", dy.NotFiniteError, entropy.value)

# Without that mode, list all nodes of the current graph with such values or gradients, on stderr or in a file.
dy.renew_cg()
p = dy.inputVector([0.5, 0.0, 0.5])
entropy = -dy.dot_product(p, dy.log(p))
entropy.forward()
dy.dump_cg(nan_check_only=True, show_gradients=False)
# After a run, ops that ran inside another one (writing_a_cell.py, section 4) have no value to show. To keep them all, dump the
# graph before it runs, or use check_validity=True or dy.configure(fuse=False).
# The remedy here: dy.log(p + 1e-9), or a loss on scores (dy.pickneglogsoftmax), which needs no probabilities.

# %% 6. Is the gradient right?
# A trainer refuses to update with NaN. If a gradient is finite but wrong, part of the graph was probably cut off by
# dy.nobackprop (PyTorch's detach).


def cut_off() -> dy.Expression:
    return dy.squared_norm(W * E[1]) + dy.nobackprop(dy.squared_norm(W * E[2]))


dy.gradcheck(lambda: dy.squared_norm(W * E[1]), W)
shows("a gradient that misses a part", dy.GradientError, lambda: dy.gradcheck(cut_off, W))

# %% 7. Is it the batching?
# Unlikely: tests compare batched and unbatched runs for every op. But see for yourself.

losses = []
for autobatching in (True, False):
    dy.renew_cg(autobatching=autobatching)
    losses.append(dy.esum([dy.squared_norm(dy.tanh(W * E[i])) for i in range(10)]).value())
print("on and off:", losses)
assert np.isclose(*losses)

# %% 8. Why is it slow?
# First: where does the time go? Then: why are batches small? In the table, dot_product is the squared norm. In larger programs you
# may also see (formulas), elementwise ops that run as one, and (affine maps), linear layers on the same input that run as one. The
# explanation shows what they consist of.

dy.renew_cg()
with dy.profile() as profile:
    for i in range(10):
        dy.squared_norm(dy.tanh(W * E[i])).value()  # a value in the loop: nothing runs together
print(profile.table())
print(dy.explain_batches(profile=profile))
assert profile.batch_sizes("tanh") == {1: 10}

# profile.save_trace("trace.json") is for chrome://tracing or ui.perfetto.dev; viz.save("graph.html") draws the graph.
