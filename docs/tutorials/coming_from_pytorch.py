"""Coming from PyTorch: how to work without padding, masks and a batch axis.

    python docs/tutorials/coming_from_pytorch.py

docs/coming_from_pytorch.md says what corresponds to what and what surprises. PyTorch is not needed to run this.
"""

# %% 1. A task: is there a 7 before a 3 in the list? Lists have different lengths.
import random

import numpy as np

import dynet_lite as dy

random.seed(1)
dy.reset_random_seed(1)


def example() -> tuple[list[int], int]:
    numbers = [random.randrange(10) for _ in range(random.randint(2, 12))]
    answer = any(a == 7 and 3 in numbers[k + 1 :] for k, a in enumerate(numbers))
    return numbers, int(answer)


train, test = [example() for _ in range(1500)], [example() for _ in range(200)]

# %% 2. Modules are objects that hold parameters
# In PyTorch you would write an nn.Module whose forward takes a padded (batch, time) tensor and the lengths, packs it, runs
# nn.LSTM, and gathers the last valid state of each row. Here the network takes one list.


class Model:
    def __init__(self, size: int) -> None:
        self.parameters = dy.ParameterCollection()
        self.embedding = self.parameters.add_lookup_parameters((10, size))
        self.lstm = dy.LSTMBuilder(1, size, size, self.parameters)
        self.W = self.parameters.add_parameters((2, size))
        self.b = self.parameters.add_parameters(2, init=0)

    def __call__(self, numbers: list[int]) -> dy.Expression:
        states = self.lstm.initial_state().transduce([self.embedding[n] for n in numbers])
        return self.W * states[-1] + self.b  # the last one: no lengths to remember


model = Model(24)
optimizer = dy.AdamTrainer(model.parameters, 0.005)

# %% 3. The loop
# There is no zero_grad(): update() clears the gradients. detach() and no_grad() are not needed: no gradient is computed before
# backward(). You average over the batch yourself.

for epoch in range(1, 6):
    random.shuffle(train)
    total = 0.0
    for start in range(0, len(train), 50):
        dy.renew_cg()  # drop the graph of the last mini-batch
        losses = [dy.pickneglogsoftmax(model(numbers), answer) for numbers, answer in train[start : start + 50]]
        loss = dy.average(losses)
        total += loss.value() * len(losses)  # now all fifty lists run, together
        loss.backward()
        optimizer.update()
    print(f"epoch {epoch}  loss {total / len(train):.4f}")

# %% 4. The batch axis is made for you
# Fifty lists of 2 to 12 numbers: each step of the LSTM runs once for all lists that are long enough. Nothing was padded.

counts = dy.stats()
print(
    f"{counts['nodes']} nodes ran in {counts['batches']} batches, {counts['mean_batch_size']:.0f} together on average"
)

# %% 5. Using it
# Build all lists first, then ask. If you build one list, read its value and then build the next, they run one by one.

dy.renew_cg()
scores = [model(numbers) for numbers, _ in test]
dy.forward(scores)
right = [int(np.argmax(s.npvalue()) == answer) for s, (_, answer) in zip(scores, test, strict=True)]
print(f"accuracy {np.mean(right):.0%}")
assert np.mean(right) > 0.8

# %% 6. What is different with shapes
# Vectors are columns, a linear layer is W * x with W of shape (out, in). Broadcasting aligns the first dims, not the last.
# * is the matrix product, dy.cmult the elementwise one.

dy.renew_cg()
x = dy.inputTensor(np.ones((3, 4)))
print(
    (x + dy.inputVector([1, 2, 3])).npvalue()[0],
    "is row 0, got +1: the vector is a column, and was added to every column",
)
