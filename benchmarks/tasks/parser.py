"""Stack-LSTM dependency parser (arc-standard, Dyer et al. 2015) trained on the gold actions.

A state of the parser is what three LSTMs say of the stack, of the words to come and of the actions so far. An arc
replaces two things on the stack by their composition.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import made_up
from made_up import SHIFT, Parsed

from tasks.common import Model, Products, Shapes, Sizes, alive, lstm_products, lstm_shapes

SIZES = {
    "base": {"words": 20_000, "emb": 100, "hidden": 100, "action_emb": 20, "mlp": 100, "labels": 40, "batch": 64},
    "large": {"words": 20_000, "emb": 256, "hidden": 256, "action_emb": 64, "mlp": 256, "labels": 40, "batch": 64},
}


def shapes(sizes: Sizes) -> Shapes:
    emb, hidden, action_emb, mlp = (sizes[name] for name in ("emb", "hidden", "action_emb", "mlp"))
    actions = 1 + 2 * sizes["labels"]
    return {
        "word_table": (sizes["words"], emb),
        "action_table": (actions + 1, action_emb),  # the last one stands before the first action
        **lstm_shapes("stack", emb, hidden),
        **lstm_shapes("buffer", emb, hidden),
        **lstm_shapes("actions", action_emb, hidden),
        "empty_stack": (emb,),
        "empty_buffer": (emb,),
        "W_stack": (mlp, hidden),
        "W_buffer": (mlp, hidden),
        "W_actions": (mlp, hidden),
        "b_state": (mlp,),
        "W_out": (actions, mlp),
        "b_out": (actions,),
        "W_head": (emb, emb),
        "W_dependent": (emb, emb),
        "W_relation": (emb, action_emb),
        "b_composition": (emb,),
    }


def data(rng: Any, count: int, sizes: Sizes) -> list[Parsed]:
    return made_up.parsed(rng, count, sizes["words"], sizes["labels"])


def length(instance: Parsed) -> int:
    return len(instance.words)


def products(batch: list[Parsed], sizes: Sizes) -> Products:
    emb, hidden, action_emb, mlp = (sizes[name] for name in ("emb", "hidden", "action_emb", "mlp"))
    words, steps = [len(s.words) for s in batch], [len(s.actions) for s in batch]
    states, arcs = [sum(steps)], sum(words) - len(batch)
    # A push per action and a composition per arc; both wait for the action before, or for one before it.
    pushes = alive(steps)
    compositions = [round(n * arcs / sum(steps)) or 1 for n in pushes]
    return [
        *lstm_products(emb, hidden, [n + 1 for n in words]),
        *lstm_products(action_emb, hidden, [n + 1 for n in steps]),
        (4 * hidden, emb + hidden, pushes),
        (emb, 2 * emb + action_emb, compositions),
        (mlp, 3 * hidden, states),
        (1 + 2 * sizes["labels"], mlp, states),
    ]


class Program(Model):
    def make(self) -> None:
        self.words, self.action_vectors = self.table("word_table"), self.table("action_table")
        self.stack, self.buffer, self.history = self.lstm("stack"), self.lstm("buffer"), self.lstm("actions")
        self.empty_stack, self.empty_buffer = self.weight("empty_stack"), self.weight("empty_buffer")
        self.W_stack, self.W_buffer, self.W_actions = (self.weight(f"W_{x}") for x in ("stack", "buffer", "actions"))
        self.b_state, self.W_out, self.b_out = self.weight("b_state"), self.weight("W_out"), self.weight("b_out")
        self.W_head, self.W_dependent = self.weight("W_head"), self.weight("W_dependent")
        self.W_relation, self.b_composition = self.weight("W_relation"), self.weight("b_composition")

    def loss(self, instance: Parsed) -> Any:
        dy, labels = self.dy, self.sizes["labels"]
        coming = [self.words[word] for word in reversed(instance.words)]  # the next word is the last one
        buffer = self.buffer.initial_state().add_inputs([self.empty_buffer, *coming])
        stack = [(self.stack.initial_state().add_input(self.empty_stack), None)]
        history = self.history.initial_state().add_input(self.action_vectors[1 + 2 * labels])
        losses = []
        for action in instance.actions:
            state = dy.rectify(
                dy.affine_transform([
                    self.b_state,
                    self.W_stack, stack[-1][0].output(),
                    self.W_buffer, buffer[-1].output(),
                    self.W_actions, history.output(),
                ])
            )  # fmt: skip
            scores = dy.affine_transform([self.b_out, self.W_out, state])
            losses.append(dy.pickneglogsoftmax(scores, action))
            relation = self.action_vectors[action]
            history = history.add_input(relation)
            if action == SHIFT:
                buffer.pop()
                top = coming.pop()
            else:
                top = self.reduce(stack, action, relation)
            stack.append((stack[-1][0].add_input(top), top))
        return dy.esum(losses)

    def reduce(self, stack: list[Any], action: int, relation: Any) -> Any:
        """Takes two things off the stack and composes them to one."""
        right, left = stack.pop()[1], stack.pop()[1]
        head, dependent = (right, left) if action <= self.sizes["labels"] else (left, right)
        return self.dy.tanh(
            self.dy.affine_transform([
                self.b_composition,
                self.W_head, head,
                self.W_dependent, dependent,
                self.W_relation, relation,
            ])
        )  # fmt: skip


class Idiomatic(Program):
    """What does not wait for the stack runs in bulk: look-ups, buffer and history of a sentence, all scores and losses."""

    def batch_loss(self, batch: Sequence[Parsed]) -> Any:
        dy = self.dy
        tops: list[Any] = []
        fronts: list[Any] = []
        history: list[Any] = []
        for sentence in batch:
            self.run(sentence, tops, fronts, history)
        state = dy.rectify(
            dy.affine_transform([
                self.b_state,
                self.W_stack, dy.concatenate_to_batch(tops),
                self.W_buffer, dy.concatenate_to_batch(fronts),
                self.W_actions, dy.concatenate_to_batch(history),
            ])
        )  # fmt: skip
        scores = dy.affine_transform([self.b_out, self.W_out, state])
        golden = [action for sentence in batch for action in sentence.actions]
        return dy.sum_batches(dy.pickneglogsoftmax_batch(scores, golden))

    def run(self, sentence: Parsed, tops: list[Any], fronts: list[Any], history: list[Any]) -> None:
        """Adds what each action is chosen by: the outputs for the stack, the buffer and the actions so far."""
        labels, actions = self.sizes["labels"], sentence.actions
        coming = self.words.rows(sentence.words[::-1])
        buffer = self.buffer.initial_state().transduce([self.empty_buffer, *coming])
        relations = self.action_vectors.rows([1 + 2 * labels, *actions])
        history += self.history.initial_state().transduce(relations[:-1])
        # Each action pushes one thing: what, and on which push. On the stack are the numbers of pushes and the things.
        pushed, below, stack = [self.empty_stack], [-1], [(0, None)]
        for action, relation in zip(actions, relations[1:], strict=True):
            fronts.append(buffer[-1])
            if action == SHIFT:
                buffer.pop()
                top = coming.pop()
            else:
                top = self.reduce(stack, action, relation)
            below.append(stack[-1][0])
            stack.append((len(pushed), top))
            pushed.append(top)
        tops += self.stack.initial_state().transduce(pushed, after=below)[:-1]
