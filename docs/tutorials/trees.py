"""Trees: a network whose form is that of the input, and a look at what ran together.

    python docs/tutorials/trees.py

The recipe treelstm_sentiment.py is the full version, with a tree LSTM; here the cell is one line.
"""

# %% 1. Trees with labels
# Sentences of the project's treebank in which each phrase has a sentiment from 0 (very bad) to 4 (very good).
import random
import tempfile
from pathlib import Path

import dynet_lite as dy
from dynet_lite import viz
from dynet_lite.harness import treebank
from dynet_lite.text import Tree, Vocab, minibatches, parse_trees, read_trees

random.seed(1)
trees = read_trees(treebank() / "train.sst")
words = Vocab.from_words(word for tree in trees for word in tree.words())
print(len(trees), "trees, the first one:", trees[0])

# %% 2. A recursive network
# A leaf is a word vector, a phrase is a layer over its two parts. The network is this recursion, called once per tree.

SIZE = 32
dy.reset_random_seed(1)
model = dy.ParameterCollection()
E = model.add_lookup_parameters((len(words), SIZE), name="E")
W = model.add_parameters((SIZE, 2 * SIZE), name="W")
b = model.add_parameters(SIZE, init=0, name="b")
V = model.add_parameters((5, SIZE), name="V")
trainer = dy.AdamTrainer(model, 0.003)


def encode(tree: Tree, losses: list[dy.Expression]) -> dy.Expression:
    """The vector of a phrase; the losses of it and its parts are added to the list."""
    if tree.children:
        left, right = (encode(child, losses) for child in tree.children)
        vector = dy.tanh(W * dy.concatenate([left, right]) + b)
    else:
        vector = E[words[tree.word]]
    losses.append(dy.pickneglogsoftmax(V * vector, int(tree.label)))
    return vector


# %% 3. Training, 32 trees at a time

for epoch in range(1, 5):
    total = nodes = 0.0
    for batch in minibatches(trees, 32, seed=epoch):
        dy.renew_cg()
        losses: list[dy.Expression] = []
        for tree in batch:
            encode(tree, losses)
        loss = dy.esum(losses)
        total += loss.value()
        nodes += len(losses)
        loss.backward()
        trainer.update()
    print(f"epoch {epoch}  loss per phrase {total / nodes:.4f}")

# %% 4. What ran together
# Two trees of different shapes. Phrases of equal height run together, whichever tree they are in. All losses are one batch.

dy.renew_cg()
two = list(parse_trees(["(3 (2 a) (3 (3 very) (3 (3 good) (2 film))))", "(1 (1 (1 bad) (1 acting)) (2 .))"]))
both: list[list[dy.Expression]] = [[], []]
roots = [encode(tree, losses) for tree, losses in zip(two, both, strict=True)]
loss = dy.esum([x for losses in both for x in losses])
explanation = dy.explain_batches()
print(explanation)

# %% 5. Why two nodes did or did not run together

print("the losses of the two roots:", explanation.why(both[0][-1], both[1][-1]))
print("the vectors of the two roots:", explanation.why(roots[0], roots[1]))

# %% 6. A picture
# A single page with one colour per batch. Point at nodes, click batches, follow the order of execution. In your own program,
# save the file where you like and open it in a browser.

with tempfile.TemporaryDirectory() as folder:
    viz.save(Path(folder) / "trees.html", loss, names=lambda table, row: words.word(row))
    viz.save(Path(folder) / "one_tree.svg", roots[0])  # only what this vector depends on
    print("pictures:", sorted(p.name for p in Path(folder).iterdir()))
print(viz.text(roots[1], names=lambda table, row: words.word(row)))

# %% 7. How much faster it is


def step(autobatching: bool) -> dy.Profile:
    """One update on 64 trees, measured."""
    with dy.profile() as p:
        dy.renew_cg(autobatching=autobatching)
        losses: list[dy.Expression] = []
        for tree in trees[:64]:
            encode(tree, losses)
        dy.esum(losses).backward()
        trainer.update()
    return p


for name, autobatching in (("on", True), ("off", False)):
    profile = step(autobatching)
    seconds = profile.phases()
    print(f"batching {name:3}: {sum(o.batches for o in profile.ops()):5} batches, forward {1e3 * seconds['forward']:.2f} ms, "
          f"backward {1e3 * seconds['backward']:.2f} ms")  # fmt: skip
print(step(True).table())
