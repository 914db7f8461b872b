"""Recipes whose networks depend on the input, and the transformer, as ONNX files: what ONNX Runtime answers is what they answer.

DYNET_LITE_EXPORT: see test_onnx_recipes.py.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from exporting import close, dev, ids_of, session

import dynet_lite as dy
from dynet_lite.nn import CLOSE, LEFT, SHIFT, Progress
from dynet_lite.text import Sentence


class Networks:
    """The files of a model: net.stack(x=..., c0=...) runs one and gives its outputs."""

    def __init__(self, path: Path, *names: str) -> None:
        self._sessions = {name: session(path.with_suffix(f".{name}.onnx")) for name in names}

    def __getattr__(self, name: str) -> Any:
        return lambda **inputs: self._sessions[name].run(None, inputs)


class Stack:
    """A stack of vectors with the states of an LSTM of one layer, run step by step."""

    def __init__(self, step: Any, bottom: np.ndarray, hidden: int) -> None:
        self.step, zero = step, np.zeros(hidden, dtype=np.float32)
        self.items, self.states = [], [step(x=bottom, c0=zero, h0=zero)]

    def push(self, item: np.ndarray) -> None:
        c, h = self.states[-1]
        self.items.append(item)
        self.states.append(self.step(x=item, c0=c, h0=h))

    def pop(self) -> np.ndarray:
        self.states.pop()
        return self.items.pop()

    @property
    def output(self) -> np.ndarray:
        return self.states[-1][-1]


@pytest.mark.parametrize("options", [(), ("--cell", "childsum"), ("--most", "3")])
def test_tree_lstm(exported: Any, options: tuple[str, ...]) -> None:
    recipe, path = exported("treelstm_sentiment", *options)
    run = session(path)
    for tree in dev(recipe):
        nodes = tree.nodes()
        place = {id(node): i for i, node in enumerate(nodes)}
        most = recipe.settings.most if recipe.settings.cell == "nary" else max(len(node.children) for node in nodes)
        children = np.full((len(nodes), max(most, 1)), -1)
        for i, node in enumerate(nodes):
            children[i, : len(node.children)] = [place[id(child)] for child in node.children]
        words = np.array([recipe.reader.words[node.word] if not node.children else -1 for node in nodes])
        (scores,) = run.run(None, {"words": words, "children": children})
        dy.renew_cg()
        close(scores, [e.npvalue() for e in recipe.scores(nodes)])
        assert [recipe.labels.word(int(i) + 1) for i in scores[:, 1:].argmax(axis=1)] == recipe.best_labels([tree])[0]


def test_transformer(exported: Any) -> None:
    recipe, path = exported("transformer_lm", "--layers", "2")
    whole, step = session(path), session(path.with_name("model.step.onnx"))
    names = [f"{kind}{i}" for kind in ("keys", "values") for i in range(2)]
    for text in dev(recipe):
        ids = recipe.letters.ids(text)[:-1]
        (scores,) = whole.run(None, {"letters": np.array(ids)})
        dy.renew_cg()
        close(scores, recipe.scores(ids).npvalue().T)
        caches = {name: np.zeros((0, recipe.settings.dim), dtype=np.float32) for name in names}
        for t, letter in enumerate(ids):
            one, *more = step.run(None, {"letter": np.array(letter), **caches})
            close(one, scores[t])
            caches = dict(zip(names, more, strict=True))


@pytest.mark.parametrize("options", [(), ("--hops", "0")])
def test_graph(exported: Any, options: tuple[str, ...]) -> None:
    recipe, path = exported("graph_relations", *options)
    run = session(path)
    for sentence in [*dev(recipe), Sentence(["Go"], ["VERB"], [], [0], ["root"])]:
        edges = np.array(recipe.edges(sentence), dtype=np.int64).reshape(-1, 3)
        inputs = {**ids_of(recipe, sentence.forms), "tags": np.array(recipe.tags.ids(sentence.upos)),
                  "heads": np.array(sentence.heads), **dict(zip(("sources", "targets", "kinds"), edges.T, strict=True))}  # fmt: skip
        (scores,) = run.run(None, {x.name: inputs[x.name] for x in run.get_inputs()})
        dy.renew_cg()
        close(scores, [e.npvalue() for e in recipe.scores(sentence)])
        assert [recipe.relations.word(int(i)) for i in scores.argmax(axis=1)] == recipe.parse([sentence])[0].deprels


def parse(recipe: Any, first: Any, net: Networks, sentence: Any) -> tuple[list[np.ndarray], list[int], list[str]]:
    """What the networks of the stack LSTM parser make of a sentence: the scores of all steps, heads and relations."""
    inputs = {**ids_of(recipe, sentence.forms), "tags": np.array(recipe.tags.ids(sentence.upos))}
    items, root, bottom, no_action, actions = first.run(None, inputs)
    system, hidden = recipe.system, recipe.settings.hidden
    stack, buffer = Stack(net.stack, bottom, hidden), Stack(net.buffer, bottom, hidden)
    history = Stack(net.history, no_action, hidden)
    (stack if system.name == "arc-standard" else buffer).push(root)
    for item in reversed(items):
        buffer.push(item)
    c, relations, seen = system.start(len(sentence)), [""] * len(sentence), []
    while legal := system.legal(c):
        (scores,) = net.decide(stack=stack.output, buffer=buffer.output, history=history.output,
                               **tops(recipe.settings.tops, stack.items, buffer.items, bottom))  # fmt: skip
        seen.append(scores)
        best = max((i for i in range(len(scores)) if recipe.actions.move(i) in legal), key=scores.__getitem__)
        move, vector = recipe.actions.move(best), actions[best]
        if move == SHIFT:
            stack.push(buffer.pop())
        else:
            relations[system.arc(c, move)[1] - 1] = recipe.actions.relation(best)
            top = stack.pop()
            place = buffer if move == LEFT and system.name == "arc-hybrid" else stack
            other = place.pop()
            head, dependent = (top, other) if move == LEFT and place is stack else (other, top)
            place.push(net.join(head=head, dependent=dependent, action=vector)[0])
        system.apply(c, move)
        history.push(vector)
    return seen, c.heads[1:], relations


def tops(n: int, stack: list[np.ndarray], buffer: list[np.ndarray], bottom: np.ndarray) -> dict[str, np.ndarray]:
    """The items that the decision sees by themselves."""
    found = {f"top{i}": stack[-i] if i <= len(stack) else bottom for i in range(1, n + 1)}
    return {**found, "first": buffer[-1] if buffer else bottom} if n else {}


HYBRID = "--system", "arc-hybrid", "--char-hidden", "4", "--encoder", "1"


@pytest.mark.parametrize("options", [(), HYBRID, (*HYBRID, "--tops", "3"), ("--tops", "1")])
def test_stack_lstm_parser(exported: Any, options: tuple[str, ...]) -> None:
    recipe, path = exported("stack_lstm_parser", *options)
    first, net = session(path), Networks(path, "stack", "buffer", "history", "join", "decide")
    for sentence in dev(recipe):
        seen, heads, relations = parse(recipe, first, net, sentence)
        dy.renew_cg()
        p = recipe.start(sentence)
        for scores in seen:
            values = recipe.scores(p).npvalue()
            close(scores, values)
            recipe.advance(p, recipe.best_action(p, values))
        (parsed,) = recipe.parse([sentence])
        assert (heads, relations) == (parsed.heads, parsed.deprels)


def grow(
    recipe: Any, first: Any, net: Networks, words: list[str], tags: list[str]
) -> tuple[list[np.ndarray], list[int]]:
    """What the networks of the grammar make of a sentence: the scores of all steps, and the actions."""
    given = recipe.taking(tags)
    read = {"tags": np.array(given)} if given else {}
    vectors, end, actions = first.run(None, {**ids_of(recipe, words, "read"), **read})
    hidden, rules = recipe.settings.hidden, recipe.actions
    stack, history = Stack(net.stack, end, hidden), Stack(net.history, end, hidden)
    labels: list[int | None] = []  # of each item: the action that opened the phrase, None of what is whole
    phrases: list[tuple[int, int]] = []  # those that are open: the action, the first word
    now, seen, taken = Progress(len(words)), [], []
    while not now.finished:
        word = vectors[-now.left] if now.left else end
        top = stack.items[-1] if stack.items else end
        more = spans(vectors, end, actions, len(words) - now.left, top, phrases) if recipe.settings.spans else {}
        (scores,) = net.decide(stack=stack.output, word=word, history=history.output, **more)
        seen.append(scores)
        action = max(recipe.legal(now, given), key=scores.__getitem__)
        if action == CLOSE:
            parts = []
            while labels.pop() is None:
                parts.append(stack.pop())
            label = stack.pop()
            phrases.pop()
            stack.push(net.phrase(label=label, parts=np.stack(parts[::-1]))[0])
            labels.append(None)
        elif action in rules.opening:
            stack.push(actions[action])
            labels.append(action)
            phrases.append((action, len(words) - now.left))
        else:
            stack.push(word + actions[action])
            labels.append(None)
        history.push(actions[action])
        now = rules.after(now, action)
        taken.append(action)
    return seen, taken


def spans(vectors: Any, end: Any, actions: Any, place: int, top: Any, phrases: list[tuple[int, int]]) -> dict[str, Any]:
    """What the decision sees besides with --spans."""
    label, first = phrases[-1] if phrases else (None, 0)
    word = [vectors[i] if label is not None and 0 <= i < len(vectors) else end for i in (first - 1, first, place - 1)]
    return {"top": top, "label": end if label is None else actions[label], "before": word[0], "first": word[1],
            "last": word[2]}  # fmt: skip


@pytest.mark.parametrize("options", [(), ("--layers", "2"), ("--spans",), ("--tag-dim", "6")])
def test_grammar(exported: Any, options: tuple[str, ...]) -> None:
    recipe, path = exported("rnng", *options)
    first, net = session(path), Networks(path, "stack", "history", "phrase", "decide")
    for tree in dev(recipe):
        words, tags = tree.words(), recipe.tags_of(tree)
        seen, actions = grow(recipe, first, net, words, tags)
        dy.renew_cg()
        now = recipe.start(words, tags)
        for scores, action in zip(seen, actions, strict=True):
            close(scores, now.scores.npvalue())
            now = recipe.step(now, action)
        assert str(recipe.actions.tree(actions, words)) == str(recipe.parse([words], [tags])[0])
