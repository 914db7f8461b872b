"""The tasks of small_tasks.py as one writes them for PyTorch, eager: the same numbers, examples and losses.

What PyTorch has in one call is one call here: torch.nn.LSTM over a sentence, index_select over its words, one product for the
scores of all its words. Gradients are clipped as the trainers of the other engines do.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import small_tasks
from small_tasks import EXAMPLES, Step, Task, numbers


class TorchTask(Task):
    """Gives weights as leaves of torch, and the step; what is left to a task is its loss in torch's words."""

    def __init__(self, torch: Any) -> None:
        self.torch, self.nn, self.leaves = torch, torch.nn.functional, []
        self.made = 0
        self.make()
        self.optimizer = torch.optim.SGD(self.leaves, lr=self.rate)

    def weight(self, *shape: int) -> Any:
        self.made += 1
        leaf = self.torch.nn.Parameter(self.torch.from_numpy(numbers(shape, self.made)))
        self.leaves.append(leaf)
        return leaf

    def table(self, rows: int, size: int) -> Any:
        return self.weight(rows, size)

    def lstm(self, inputs: int, hidden: int) -> Any:
        """Its gates stand in another order, and the forget gate's bias has the 1 that the builders add."""
        rnn = self.torch.nn.LSTM(inputs, hidden)
        order = np.r_[0 : 2 * hidden, 3 * hidden : 4 * hidden, 2 * hidden : 3 * hidden]
        shapes = ((4 * hidden, inputs), (4 * hidden, hidden), (4 * hidden,))
        with self.torch.no_grad():
            for leaf, shape in zip((rnn.weight_ih_l0, rnn.weight_hh_l0, rnn.bias_ih_l0), shapes, strict=True):
                self.made += 1
                leaf.copy_(self.torch.from_numpy(numbers(shape, self.made)[order]))
                self.leaves.append(leaf)
            rnn.bias_ih_l0[hidden : 2 * hidden] += 1
            rnn.bias_hh_l0.zero_()
        rnn.bias_hh_l0.requires_grad_(False)  # one bias, as in the builders
        return rnn

    def plain(self, k: int) -> float:
        if not self.trains:
            with self.torch.no_grad():
                return self.loss(*self.data(k)).item()  # type: ignore[no-any-return]
        return self.trained(self.loss(*self.data(k)))

    def trained(self, loss: Any) -> float:
        """An update that makes this loss smaller; its value before."""
        value = loss.item()
        self.optimizer.zero_grad()
        loss.backward()
        self.torch.nn.utils.clip_grad_norm_(self.leaves, 5.0)
        self.optimizer.step()
        return value  # type: ignore[no-any-return]

    def ways(self) -> dict[str, Step]:
        return {"plain": self.plain}

    def rows(self, table: Any, ids: list[int]) -> Any:
        return self.nn.embedding(self.torch.tensor(ids), table)

    def losses(self, scores: Any, labels: list[int]) -> Any:
        return self.nn.cross_entropy(scores, self.torch.tensor(labels), reduction="sum")


class Xor(TorchTask, small_tasks.Xor):
    def loss(self, x: Any, y: Any) -> Any:
        h = self.torch.tanh(self.nn.linear(self.torch.from_numpy(x), self.W, self.b))
        out = self.torch.sigmoid(self.nn.linear(h, self.V, self.a))
        return self.nn.binary_cross_entropy(out, self.torch.from_numpy(y), reduction="sum")


class SkipGram(TorchTask, small_tasks.SkipGram):
    def loss(self, word: int, others: list[int]) -> Any:
        products = self.rows(self.context, others) @ self.centre[word]
        return -(self.nn.logsigmoid(products[:1]).sum() + self.nn.logsigmoid(-products[1:]).sum())


class Mlp(TorchTask, small_tasks.Mlp):
    def loss(self, x: Any, label: int) -> Any:
        h = self.torch.relu(self.nn.linear(self.torch.from_numpy(x), self.W, self.b))
        return self.losses(self.nn.linear(h, self.V, self.a)[None], [label])


class Recursive(TorchTask, small_tasks.Recursive):
    def node(self, tree: Any) -> Any:
        if not isinstance(tree, tuple):
            return self.E[tree]
        below = self.torch.cat([self.node(tree[0]), self.node(tree[1])])
        return self.torch.tanh(self.nn.linear(below, self.W, self.b))

    def loss(self, tree: Any, label: int) -> Any:
        return self.losses((self.V @ self.node(tree))[None], [label])


class Kept(Xor):
    """There is no graph that is kept: the same, made anew at each step."""

    def nodes_of(self, k: int) -> list[Any]:
        x, y = (self.torch.from_numpy(v) for v in self.data(k))
        first = self.nn.linear(x, self.W, self.b)
        h = self.torch.tanh(first)
        second = self.nn.linear(h, self.V, self.a)
        return [x, y, first, h, second, self.torch.square(second - y).sum()]

    def loss(self, k: int) -> Any:  # type: ignore[override]
        return self.nodes_of(k)[-1]

    def plain(self, k: int) -> float:
        return self.trained(self.loss(k))


class KeptValues(Kept):
    def plain(self, k: int) -> float:
        with self.torch.no_grad():
            values = [node.item() if node.numel() == 1 else node.tolist() for node in self.nodes_of(k)]
        return values[-1]  # type: ignore[no-any-return]


class Tagger(TorchTask, small_tasks.Tagger):
    def scores(self, words: list[int]) -> Any:
        xs = self.rows(self.E, words)
        fs, bs = self.forward(xs)[0], self.backward(xs.flip(0))[0].flip(0)
        return self.nn.linear(self.torch.cat([fs, bs], 1), self.W, self.b)

    def loss(self, words: list[int], tags: list[int]) -> Any:
        return self.losses(self.scores(words), tags)


class Latency(Tagger):
    steps, length, trains = small_tasks.Latency.steps, small_tasks.Latency.length, False

    def data(self, k: int) -> tuple[Any, ...]:
        return (self.examples[k % 20][0],)

    def plain(self, k: int) -> float:
        with self.torch.no_grad():
            return float(self.scores(*self.data(k)).T.numpy()[0, 0])


class Parsing(TorchTask, small_tasks.Parsing):
    def plain(self, k: int) -> float:
        with self.torch.no_grad():
            return self.parse(self.examples[k % EXAMPLES])

    def parse(self, words: list[int]) -> float:
        torch, linear = self.torch, self.nn.linear
        stack: list[Any] = []
        buffer = [self.E[word] for word in reversed(words)]
        best = 0.0
        while buffer or len(stack) > 1:
            seen = [stack[-1] if stack else self.empty, stack[-2] if len(stack) > 1 else self.empty]
            seen.append(buffer[-1] if buffer else self.empty)
            scores = linear(torch.tanh(linear(torch.cat(seen), self.W, self.b)), self.V, self.a).tolist()
            allowed = [0] * bool(buffer) + [1, 2] * (len(stack) > 1)
            action = max(allowed, key=scores.__getitem__)
            best += scores[action]
            if action == 0:
                stack.append(buffer.pop())
                continue
            top, below = stack.pop(), stack.pop()
            head, child = (top, below) if action == 1 else (below, top)
            stack.append(torch.tanh(linear(torch.cat([head, child]), self.C, self.c)))
        return best


class Sampling(TorchTask, small_tasks.Sampling):
    def plain(self, k: int) -> float:
        with self.torch.no_grad():
            return self.sample(np.random.RandomState(k))

    def sample(self, rng: Any) -> float:
        state, word, sum_of_ids = None, 0, 0
        for _ in range(20):
            out, state = self.rnn(self.E[word][None], state)
            p = self.torch.softmax(self.nn.linear(out[0], self.W, self.b), 0).numpy()
            word = int(np.searchsorted(np.cumsum(p), rng.random_sample() * p.sum()))
            sum_of_ids += word
        return float(sum_of_ids)


class Features(TorchTask, small_tasks.Features):
    def loss(self, k: int) -> Any:
        torch, losses = self.torch, []
        state = torch.zeros(self.size)
        for t in range(20):
            state = torch.tanh(self.W @ state + self.U @ torch.tensor(self.given[(k + t) % EXAMPLES]))
            scores = self.V @ state
            scores.detach().numpy()
            losses.append(self.losses(scores, (k + t) % self.actions))
        return torch.stack(losses).sum()


TASKS: dict[str, type[TorchTask]] = {
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
