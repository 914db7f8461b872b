"""A first network: which language is this word from?

    python docs/tutorials/first_network.py

Words have different lengths, and there will be no padding: the network is written for one word.
"""

# %% 1. What we import
import random
import tempfile
from pathlib import Path

import dynet_lite as dy

# %% 2. Some data
# A few words of two languages. A real program would read them from a file; see dynet_lite.text for readers.

ENGLISH = "the house window bread street winter thought light knight weather laughter through yellow kitchen".split()
ITALIAN = "casa finestra pane strada inverno pensiero luce cavaliere tempo risata giallo cucina ragazzo amico".split()
EXAMPLES = [(word, 0) for word in ENGLISH] + [(word, 1) for word in ITALIAN]
LETTERS = {letter: i for i, letter in enumerate(sorted({c for word, _ in EXAMPLES for c in word}))}

# %% 3. Parameters
# They belong to a collection and outlive the graphs. The initial values are those of Glorot (Xavier) unless you say otherwise.

dy.reset_random_seed(1)
random.seed(1)
model = dy.ParameterCollection()
vectors = model.add_lookup_parameters((len(LETTERS), 16))  # a row per letter
lstm = dy.LSTMBuilder(1, 16, 32, model)  # one layer, from 16 numbers to 32
W = model.add_parameters((2, 32))
b = model.add_parameters(2, init=0)
trainer = dy.AdamTrainer(model, 0.01)

# %% 4. The network, for one word
# Every call adds a node to the current graph and returns an *expression*. Its shape is known at once, nothing is computed.


def scores(word: str) -> dy.Expression:
    """Two numbers: how English, how Italian."""
    states = lstm.initial_state().transduce([vectors[LETTERS[c]] for c in word])
    return W * states[-1] + b  # * is the matrix product


dy.renew_cg()  # an empty graph
x = scores("bread")
print("shape", x.shape, "nodes in the graph", len(dy.cg()))
print("now it is computed:", x.npvalue())

# %% 5. Training
# A mini-batch is a Python list, and its loss is a sum. Asking for the value runs all words together: the engine finds operations
# of the same kind, whichever word they belong to.
# backward() computes the gradients; update() changes the parameters and clears the gradients.

for epoch in range(1, 31):
    random.shuffle(EXAMPLES)
    total = 0.0
    for start in range(0, len(EXAMPLES), 7):
        dy.renew_cg()
        batch = EXAMPLES[start : start + 7]
        loss = dy.esum([dy.pickneglogsoftmax(scores(word), language) for word, language in batch])
        total += loss.value()
        loss.backward()
        trainer.update()
    if epoch % 10 == 0:
        print(f"epoch {epoch:2}  loss per word {total / len(EXAMPLES):.4f}")
assert total / len(EXAMPLES) < 0.1

# %% 6. How it ran
# stats() counts since renew_cg(). Seven words: one batch for each position in them, and one each
# for the inputs, the scores, the losses and the sum.

counts = dy.stats()
print(f"{counts['nodes']} nodes in {counts['batches']} batches; no schedule needs fewer than {counts['lower_bound']}")
print(dy.plan_text(), end="")

# %% 7. Using it

dy.renew_cg()
words = ["night", "cavallo"]  # neither was in the data
answers = [dy.softmax(scores(word)) for word in words]
dy.forward(answers)  # runs both; so would the first value(), because all words are in the graph already
for word, answer in zip(words, answers, strict=True):
    print(f"{word}: {answer.value()[0]:.0%} English, {answer.value()[1]:.0%} Italian")

# %% 8. Saving
# A checkpoint has all parameters by name; with a trainer in it, training can go on where it was.

with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "languages.model"
    dy.save_checkpoint(path, model, trainer)
    before = W.as_array()
    W.zero()
    dy.load_checkpoint(path, model, trainer)
    assert (W.as_array() == before).all()
print("saved and loaded")

# Next: trees.py, where the networks do not even have the same form.
