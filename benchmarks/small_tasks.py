"""The tasks of small_steps.py: programs in DyNet's API, one text for dynet and dynet_lite, one example at a time.

A task is made of an engine's module; ``ways()`` gives its step as a function of the step's number, which gives the loss or
another number that must agree, and the same step through ``dy.compile`` where the engine has that and the step is a function of
data. All begin with the same numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import made_up
import numpy as np

Step = Callable[[int], float]
EXAMPLES = 64  # each task goes round so many


def numbers(shape: tuple[int, ...], seed: int) -> Any:
    """Initial weights."""
    bound = 0.1 if len(shape) == 1 else np.sqrt(6 / sum(shape))
    return np.random.RandomState(seed).uniform(-bound, bound, shape).astype(np.float32)


class Task:
    """Weights by what they are first asked for; plain SGD, one update an example."""

    steps = 1000  # of a round
    rate = 0.01
    trains = True

    def __init__(self, dy: ModuleType) -> None:
        self.dy = dy
        self.model = dy.ParameterCollection()
        self.made = 0
        self.make()
        self.trainer = dy.SimpleSGDTrainer(self.model, learning_rate=self.rate)

    def weight(self, *shape: int) -> Any:
        self.made += 1
        return self.model.parameters_from_numpy(numbers(shape, self.made))

    def table(self, rows: int, size: int) -> Any:
        self.made += 1
        return self.model.lookup_parameters_from_numpy(numbers((rows, size), self.made))

    def lstm(self, inputs: int, hidden: int) -> Any:
        builder = self.dy.VanillaLSTMBuilder(1, inputs, hidden, self.model)
        for p in builder.get_parameters()[0]:
            self.made += 1
            p.set_value(numbers(p.shape(), self.made))
        return builder

    def make(self) -> None:
        """Weights and examples."""
        raise NotImplementedError

    def data(self, k: int) -> tuple[Any, ...]:
        """The arguments of loss() at step k."""
        raise NotImplementedError

    def loss(self, *data: Any) -> Any:
        raise NotImplementedError

    def plain(self, k: int) -> float:
        self.dy.renew_cg()
        loss = self.loss(*self.data(k))
        value = loss.value()
        if self.trains:
            loss.backward()
            self.trainer.update()
        return value  # type: ignore[no-any-return]

    def ways(self) -> dict[str, Step]:
        if not hasattr(self.dy, "compile"):
            return {"plain": self.plain}
        call = self.dy.compile(self.loss, trainer=self.trainer if self.trains else None)
        return {"plain": self.plain, "compiled": lambda k: call(*self.data(k))}


class Xor(Task):
    """XOR with 8 hidden units."""

    steps, rate = 4000, 0.1

    def make(self) -> None:
        self.W, self.b, self.V, self.a = self.weight(8, 2), self.weight(8), self.weight(1, 8), self.weight(1)
        corners = [([0.0, 0.0], 0.0), ([0.0, 1.0], 1.0), ([1.0, 0.0], 1.0), ([1.0, 1.0], 0.0)]
        self.examples = [(np.array(x, np.float32), np.array([y], np.float32)) for x, y in corners]

    def data(self, k: int) -> tuple[Any, ...]:
        return self.examples[k % 4]

    def loss(self, x: Any, y: Any) -> Any:
        dy = self.dy
        h = dy.tanh(self.W * dy.inputTensor(x) + self.b)
        return dy.binary_log_loss(dy.logistic(self.V * h + self.a), dy.inputTensor(y))


class SkipGram(Task):
    """A word, and six others that are or are not its neighbours."""

    steps, words, size = 2000, 2000, 50

    def make(self) -> None:
        self.centre, self.context = self.table(self.words, self.size), self.table(self.words, self.size)
        rng = np.random.RandomState(1)
        self.examples = [
            (int(made_up.zipf(rng, self.words, 1)[0]), made_up.zipf(rng, self.words, 6).tolist())
            for _ in range(EXAMPLES)
        ]

    def data(self, k: int) -> tuple[Any, ...]:
        return self.examples[k % EXAMPLES]

    def loss(self, word: int, others: list[int]) -> Any:
        dy = self.dy
        x = self.centre[word]
        losses = [-dy.log(dy.logistic(dy.dot_product(x, self.context[others[0]])))]
        losses += [-dy.log(dy.logistic(-dy.dot_product(x, self.context[other]))) for other in others[1:]]
        return dy.esum(losses)


class Mlp(Task):
    """A classifier of 784-128-10."""

    steps = 400

    def make(self) -> None:
        self.W, self.b, self.V, self.a = self.weight(128, 784), self.weight(128), self.weight(10, 128), self.weight(10)
        rng = np.random.RandomState(1)
        self.examples = [(rng.uniform(0, 1, 784).astype(np.float32), int(rng.randint(10))) for _ in range(EXAMPLES)]

    def data(self, k: int) -> tuple[Any, ...]:
        return self.examples[k % EXAMPLES]

    def loss(self, x: Any, label: int) -> Any:
        dy = self.dy
        h = dy.rectify(dy.affine_transform([self.b, self.W, dy.inputTensor(x)]))
        return dy.pickneglogsoftmax(dy.affine_transform([self.a, self.V, h]), label)


class Recursive(Task):
    """A recursive network over binary trees of 4 to 20 leaves, a class at the root."""

    steps, words, size = 400, 1000, 50

    def make(self) -> None:
        self.E, self.W, self.b = (
            self.table(self.words, self.size),
            self.weight(self.size, 2 * self.size),
            self.weight(50),
        )
        self.V = self.weight(5, self.size)
        rng = np.random.RandomState(1)
        self.examples = [
            (self.tree(rng, made_up.zipf(rng, self.words, rng.randint(4, 21)).tolist()), int(rng.randint(5)))
            for _ in range(EXAMPLES)
        ]

    def tree(self, rng: Any, words: list[int]) -> Any:
        if len(words) == 1:
            return words[0]
        cut = rng.randint(1, len(words))
        return self.tree(rng, words[:cut]), self.tree(rng, words[cut:])

    def data(self, k: int) -> tuple[Any, ...]:
        return self.examples[k % EXAMPLES]

    def node(self, tree: Any) -> Any:
        if not isinstance(tree, tuple):
            return self.E[tree]
        below = self.dy.concatenate([self.node(tree[0]), self.node(tree[1])])
        return self.dy.tanh(self.dy.affine_transform([self.b, self.W, below]))

    def loss(self, tree: Any, label: int) -> Any:
        return self.dy.pickneglogsoftmax(self.V * self.node(tree), label)


class Kept(Xor):
    """A graph of six nodes besides its weights that is kept and fed by set(): value, backward, update."""

    def build(self) -> None:
        dy = self.dy
        dy.renew_cg()
        self.x, self.y = dy.vecInput(2), dy.scalarInput(0)
        self.nodes = [self.x, self.y]
        for op in (lambda: dy.affine_transform([self.b, self.W, self.x]), lambda: dy.tanh(self.nodes[-1]),
                   lambda: dy.affine_transform([self.a, self.V, self.nodes[-1]]),
                   lambda: dy.squared_distance(self.nodes[-1], self.y)):  # fmt: skip
            self.nodes.append(op())

    def plain(self, k: int) -> float:
        if k == 0:
            self.build()  # another task has renewed the graph since
        x, y = self.data(k)
        self.x.set(x.tolist())
        self.y.set(int(y[0]))  # 0 or 1, as in DyNet's example
        loss = self.nodes[-1]
        value = loss.value()
        loss.backward()
        self.trainer.update()
        return value  # type: ignore[no-any-return]

    def ways(self) -> dict[str, Step]:
        return {"plain": self.plain}


class KeptValues(Kept):
    """The same with value() asked of every node, and no update."""

    def plain(self, k: int) -> float:
        if k == 0:
            self.build()
        x, y = self.data(k)
        self.x.set(x.tolist())
        self.y.set(float(y[0]))
        for node in self.nodes:
            value = node.value()
        return value  # type: ignore[no-any-return]


class Tagger(Task):
    """One sentence of a BiLSTM tagger at a time."""

    steps, words, tags, size, hidden, length = 60, 5000, 45, 100, 100, 0

    def make(self) -> None:
        self.E = self.table(self.words, self.size)
        self.forward, self.backward = self.lstm(self.size, self.hidden), self.lstm(self.size, self.hidden)
        self.W, self.b = self.weight(self.tags, 2 * self.hidden), self.weight(self.tags)
        rng = np.random.RandomState(1)
        self.examples = []
        for k in range(20):
            words = made_up.zipf(rng, self.words, self.length or 12 + k)
            self.examples.append((words.tolist(), rng.randint(self.tags, size=len(words)).tolist()))

    def data(self, k: int) -> tuple[Any, ...]:
        return self.examples[k % 20]

    def scores(self, words: list[int]) -> list[Any]:
        dy = self.dy
        xs = [self.E[word] for word in words]
        fs = self.forward.initial_state().transduce(xs)
        bs = self.backward.initial_state().transduce(xs[::-1])[::-1]
        both = [dy.concatenate([f, b]) for f, b in zip(fs, bs, strict=True)]
        return [dy.affine_transform([self.b, self.W, x]) for x in both]

    def loss(self, words: list[int], tags: list[int]) -> Any:
        dy = self.dy
        return dy.esum([dy.pickneglogsoftmax(s, tag) for s, tag in zip(self.scores(words), tags, strict=True)])


class Latency(Tagger):
    """Scores of one sentence of 20 words, as somebody waits for them."""

    steps, length, trains = 100, 20, False

    def data(self, k: int) -> tuple[Any, ...]:
        return (self.examples[k % 20][0],)

    def loss(self, words: list[int]) -> Any:
        return self.dy.concatenate_cols(self.scores(words))

    def plain(self, k: int) -> float:
        self.dy.renew_cg()
        return float(self.loss(*self.data(k)).npvalue()[0, 0])

    def ways(self) -> dict[str, Step]:
        ways = super().ways()
        if "compiled" in ways:
            whole = ways["compiled"]
            ways["compiled"] = lambda k: float(whole(k)[0, 0])  # type: ignore[index]
        return ways


class Parsing(Task):
    """Greedy arc-standard parsing of 12 words: the scores of each step decide the next; no training."""

    steps, words, size, hidden = 60, 2000, 50, 50

    def make(self) -> None:
        self.E, self.empty = self.table(self.words, self.size), self.weight(self.size)
        self.W, self.b = self.weight(self.hidden, 3 * self.size), self.weight(self.hidden)
        self.V, self.a = self.weight(3, self.hidden), self.weight(3)
        self.C, self.c = self.weight(self.size, 2 * self.size), self.weight(self.size)
        rng = np.random.RandomState(1)
        self.examples = [made_up.zipf(rng, self.words, 12).tolist() for _ in range(EXAMPLES)]

    def plain(self, k: int) -> float:
        dy = self.dy
        dy.renew_cg()
        stack: list[Any] = []
        buffer = [self.E[word] for word in reversed(self.examples[k % EXAMPLES])]
        best = 0.0
        while buffer or len(stack) > 1:
            seen = [stack[-1] if stack else self.empty, stack[-2] if len(stack) > 1 else self.empty]
            seen.append(buffer[-1] if buffer else self.empty)
            hidden = dy.tanh(dy.affine_transform([self.b, self.W, dy.concatenate(seen)]))
            scores = dy.affine_transform([self.a, self.V, hidden]).npvalue()
            allowed = [0] * bool(buffer) + [1, 2] * (len(stack) > 1)
            action = max(allowed, key=scores.__getitem__)
            best += float(scores[action])
            if action == 0:
                stack.append(buffer.pop())
                continue
            top, below = stack.pop(), stack.pop()
            head, child = (top, below) if action == 1 else (below, top)
            stack.append(dy.tanh(dy.affine_transform([self.c, self.C, dy.concatenate([head, child])])))
        return best

    def ways(self) -> dict[str, Step]:
        return {"plain": self.plain}


class Sampling(Task):
    """Sampling 20 words from an LSTM language model: the distribution of each step is asked for."""

    steps, words, size = 60, 1000, 64

    def make(self) -> None:
        self.E, self.rnn = self.table(self.words, self.size), self.lstm(self.size, self.size)
        self.W, self.b = self.weight(self.words, self.size), self.weight(self.words)

    def plain(self, k: int) -> float:
        dy, rng = self.dy, np.random.RandomState(k)
        dy.renew_cg()
        state, word, sum_of_ids = self.rnn.initial_state(), 0, 0
        for _ in range(20):
            state = state.add_input(self.E[word])
            p = dy.softmax(dy.affine_transform([self.b, self.W, state.output()])).npvalue()
            word = int(np.searchsorted(np.cumsum(p), rng.random_sample() * p.sum()))
            sum_of_ids += word
        return float(sum_of_ids)

    def ways(self) -> dict[str, Step]:
        return {"plain": self.plain}


class Features(Task):
    """20 decisions, each from features of its own: an input is made and set, scores are read; then one update."""

    steps, size, features, actions = 60, 50, 20, 7

    def make(self) -> None:
        self.W, self.U = self.weight(self.size, self.size), self.weight(self.size, self.features)
        self.V = self.weight(self.actions, self.size)
        self.given = numbers((EXAMPLES, self.features), 99).tolist()

    def data(self, k: int) -> tuple[Any, ...]:
        return (k,)

    def loss(self, k: int) -> Any:
        dy, losses = self.dy, []
        state = dy.zeros(self.size)
        for t in range(20):
            x = dy.vecInput(self.features)
            x.set(self.given[(k + t) % EXAMPLES])
            state = dy.tanh(self.W * state + self.U * x)
            scores = self.V * state
            scores.npvalue()
            losses.append(dy.pickneglogsoftmax(scores, (k + t) % self.actions))
        return dy.esum(losses)

    def ways(self) -> dict[str, Step]:
        return {"plain": self.plain}


TASKS: dict[str, type[Task]] = {
    "xor": Xor,
    "skipgram": SkipGram,
    "mlp": Mlp,
    "recursive": Recursive,
    "kept": Kept,
    "kept_values": KeptValues,
    "parsing": Parsing,
    "sampling": Sampling,
    "features": Features,
    "tagger": Tagger,
    "latency": Latency,
}
