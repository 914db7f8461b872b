"""The stack-LSTM parser in PyTorch: all sentences take their t-th action together.

What does not wait for the stack (buffer, history, scores) is done in bulk. States of the stack lie in one piece of
memory, a block per step; a stack is a list of block numbers, known beforehand as the actions are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from made_up import SHIFT, Parsed
from torch import Tensor

from tasks.common import alive
from tasks.torch_common import Base, ids, pad, pick_loss, place, place_all
from tasks.torch_memory import Memory

Places = dict[str, list[Tensor]]  # by step


class Net(Base):
    COMPILED = ("compose", "scores")

    def make(self) -> None:
        self.word_table, self.action_table = self.table("word_table"), self.table("action_table")
        self.buffer, self.history, self.stack = self.lstm("buffer"), self.lstm("actions"), self.cell("stack")
        self.empty_stack, self.empty_buffer = self.weight("empty_stack"), self.weight("empty_buffer")
        self.state = self.beside(["W_stack", "W_buffer", "W_actions"], "b_state")
        self.out = self.linear(["W_out"], ["b_out"])
        self.composition = self.beside(["W_head", "W_dependent", "W_relation"], "b_composition")

    def one(self, instance: Parsed) -> Tensor:
        return self.padded([instance])

    def compose(self, x: Tensor) -> Tensor:
        return torch.tanh(self.composition(x))

    def scores(self, x: Tensor) -> Tensor:
        return self.out(torch.relu(self.state(x)))  # type: ignore[no-any-return]

    def padded(self, batch: Sequence[Parsed]) -> Tensor:
        batch = sorted(batch, key=lambda s: -len(s.actions))
        count, labels = len(batch), self.sizes["labels"]
        words = self.word_table(pad([s.words[::-1] for s in batch]))
        first = self.empty_buffer.expand(1, count, -1)
        buffers = self.buffer(torch.cat([first, words]))[0].reshape(-1, self.sizes["hidden"])
        relations = self.action_table(pad([[1 + 2 * labels, *s.actions] for s in batch]))
        history = self.history(relations[:-1])[0].reshape(-1, self.sizes["hidden"])
        plan = Plan(batch, labels)
        tops = self.run_stack(batch, plan, words.reshape(-1, words.shape[-1]), relations)
        rows = place(np.concatenate([np.arange(n) + t * count for t, n in enumerate(plan.going)]))
        fronts = buffers.index_select(0, place(np.concatenate(plan.fronts)))
        x = torch.cat([tops, fronts, history.index_select(0, rows)], -1)
        golden = [s.actions[t] for t, n in enumerate(plan.going) for s in batch[:n]]
        return pick_loss(self.scores(x), ids(golden))

    def run_stack(self, batch: Sequence[Parsed], plan: Plan, words: Tensor, relations: Tensor) -> Tensor:
        """The outputs of the stacks before each action, step by step, {actions, hidden}."""
        count, steps, hidden = len(batch), len(plan.going), self.sizes["hidden"]
        rows = (steps + 1) * count
        memory_h, memory_c, memory_x = Memory(rows, hidden), Memory(rows, hidden), Memory(rows, words.shape[-1])
        where = plan.placed()
        h, c = self.stack(self.empty_stack.expand(count, -1))
        memory_h.write(0, h)
        memory_c.write(0, c)
        for t in range(steps):
            x = self.pushed(where, t, words, relations[t + 1], memory_x)
            below = where["below"][t]
            h, c = self.stack(x, (memory_h.read(below), memory_c.read(below)))
            start = (t + 1) * count
            memory_h.write(start, h)
            memory_c.write(start, c)
            memory_x.write(start, x)
        return memory_h.read(place(np.concatenate(plan.tops)))

    def pushed(self, where: Places, t: int, words: Tensor, relations: Tensor, memory_x: Memory) -> Tensor:
        """What action t pushes on each stack: the next word or a composition, {sentences, emb}."""
        parts = []
        if len(where["words"][t]):
            parts.append(words.index_select(0, where["words"][t]))
        if len(where["arcs"][t]):
            heads, dependents = memory_x.read(where["heads"][t]), memory_x.read(where["dependents"][t])
            relation = relations.index_select(0, where["arcs"][t])
            parts.append(self.compose(torch.cat([heads, dependents, relation], -1)))
        return torch.cat(parts).index_select(0, where["order"][t])


class Plan:
    """Where everything lies, step by step: block t + 1 of the memory holds what action t pushed."""

    def __init__(self, batch: Sequence[Parsed], labels: int) -> None:
        count = len(batch)
        self.going = alive([len(s.actions) for s in batch])
        stacks = [[j] for j in range(count)]
        left = [len(s.words) for s in batch]  # words to come
        self.arcs: list[Any] = []
        self.shifts: list[Any] = []
        names = ("arcs", "shifts", "words", "heads", "dependents", "below", "tops", "fronts")
        for name in names:
            setattr(self, name, [])
        for t, n in enumerate(self.going):
            found: dict[str, list[int]] = {name: [] for name in names}
            for j in range(n):
                stack, action = stacks[j], batch[j].actions[t]
                found["tops"].append(stack[-1])
                found["fronts"].append(left[j] * count + j)
                if action == SHIFT:
                    left[j] -= 1
                    found["shifts"].append(j)
                    found["words"].append(left[j] * count + j)
                else:
                    found["arcs"].append(j)
                    right, leftmost = stack.pop(), stack.pop()
                    to_left = action <= labels
                    found["heads"].append(right if to_left else leftmost)
                    found["dependents"].append(leftmost if to_left else right)
                found["below"].append(stack[-1])
                stack.append((t + 1) * count + j)
            for name in names:
                getattr(self, name).append(np.asarray(found[name], np.int64))

    def placed(self) -> Places:
        """What the steps of the stack need, as tensors; "order": where each sentence's part is, words before compositions."""
        order = [np.argsort(np.concatenate(both)) for both in zip(self.shifts, self.arcs, strict=True)]
        lists = {"order": order} | {n: getattr(self, n) for n in ("arcs", "words", "heads", "dependents", "below")}
        tensors = iter(place_all([array for arrays in lists.values() for array in arrays]))
        return {name: [next(tensors) for _ in arrays] for name, arrays in lists.items()}
