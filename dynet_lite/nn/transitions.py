"""Transition systems for dependency parsing: arc-standard (Nivre 2004) and arc-hybrid (Kuhlmann et al. 2011), with oracles.

A parse of n words is made in exactly 2 n moves: each word is shifted from the buffer onto the stack once and leaves the stack
once, when it gets its head. So sentences of one length finish together. Trees have one word below the root and are projective;
the oracle of arc-standard refuses others and that of arc-hybrid treats what it cannot reach as lost (see
dynet_lite.text.projective_heads). Plain Python: the engine is not known here, nor are relations, but see Actions.

Words count from 1, 0 is the root. Arc-standard keeps the root at the bottom of the stack, arc-hybrid at the end of the
buffer: there a word gets it by LEFT, as it gets any other head to its right.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar

__all__ = [
    "LEFT",
    "RIGHT",
    "SHIFT",
    "Actions",
    "ArcHybrid",
    "ArcStandard",
    "Configuration",
    "Oracle",
    "TransitionSystem",
]

SHIFT, LEFT, RIGHT = 0, 1, 2
UNKNOWN = -1  # no head yet


class Configuration:
    """A partial parse.

    It has the stack (the top is the last item), the first word of the buffer (n + 1 when the buffer is empty), and
    the heads found so far: heads[word] is UNKNOWN while there is none, and heads[0] is not used.
    """

    __slots__ = ("front", "heads", "stack")

    def __init__(self, n: int, stack: Iterable[int] = ()) -> None:
        self.stack = list(stack)
        self.front = 1
        self.heads = [UNKNOWN] * (n + 1)

    def __len__(self) -> int:
        """The number of words of the sentence."""
        return len(self.heads) - 1

    def copy(self) -> Configuration:
        """An independent parse that has come as far."""
        new = Configuration(0, self.stack)
        new.front, new.heads = self.front, self.heads[:]
        return new

    def on_stack(self, word: int) -> bool:
        """Whether this word is on the stack."""
        return word < self.front and self.heads[word] == UNKNOWN

    def __repr__(self) -> str:
        return f"Configuration(stack={self.stack}, front={self.front}, heads={self.heads[1:]})"


class Oracle:
    """Tells which moves are best on the way to a gold tree. Made by TransitionSystem.oracle()."""

    def __init__(self, system: TransitionSystem, heads: Sequence[int]) -> None:
        self.system = system
        self.heads = [UNKNOWN, *heads]
        self.dependents: list[list[int]] = [[] for _ in self.heads]
        for word, head in enumerate(heads, 1):
            self.dependents[head].append(word)

    def best(self, c: Configuration) -> list[int]:
        """The legal moves of the lowest cost. There is at least one unless the parse is finished."""
        costs = {move: self.system.cost(c, move, self) for move in self.system.legal(c)}
        least = min(costs.values(), default=0)
        return [move for move, cost in costs.items() if cost == least]


class TransitionSystem:
    """The moves of a transition system. `dynamic`: the oracle is right in every configuration, not only on the way to
    the gold tree.
    """

    name: ClassVar[str]
    dynamic: ClassVar[bool]

    def start(self, n: int) -> Configuration:
        """The configuration before the first move, for a sentence of n words."""
        raise NotImplementedError

    def legal(self, c: Configuration) -> list[int]:
        """The moves that may be made. None are left when the parse is finished."""
        raise NotImplementedError

    def arc(self, c: Configuration, move: int) -> tuple[int, int]:
        """The head and the dependent that LEFT or RIGHT would join."""
        raise NotImplementedError

    def apply(self, c: Configuration, move: int) -> None:
        """Makes a legal move, which changes the configuration."""
        if move == SHIFT:
            c.stack.append(c.front)
            c.front += 1
        else:
            head, dependent = self.arc(c, move)
            c.heads[dependent] = head
            del c.stack[-1 if c.stack[-1] == dependent else -2]

    def cost(self, c: Configuration, move: int, gold: Oracle) -> int:
        """How many gold arcs could still be found before this legal move, and no longer after it."""
        raise NotImplementedError

    def oracle(self, heads: Sequence[int]) -> Oracle:
        """The oracle for the tree with these heads, one for each word."""
        return Oracle(self, heads)

    def moves(self, heads: Sequence[int]) -> list[int]:
        """The moves that make this projective tree. Where several are right, RIGHT and LEFT come before SHIFT.

        ValueError if the tree is not projective, or not exactly one word hangs from the root.
        """
        c, oracle, out = self.start(len(heads)), self.oracle(heads), []
        while legal := self.legal(c):
            costs = [self.cost(c, move, oracle) for move in reversed(legal)]
            move = legal[-1 - costs.index(min(costs))]
            self.apply(c, move)
            out.append(move)
        if c.heads[1:] != list(heads):
            raise ValueError(f"expected a projective tree with one root, got the heads {list(heads)}")
        return out


class ArcStandard(TransitionSystem):
    """Arc-standard transitions.

    LEFT gives the word below the top of the stack the top as its head. RIGHT gives the top the word below it as its
    head. A word gets its head after all its dependents. The oracle is right only on the way to the gold tree.
    """

    name = "arc-standard"
    dynamic = False

    def start(self, n: int) -> Configuration:
        return Configuration(n, [0])

    def legal(self, c: Configuration) -> list[int]:
        moves = [SHIFT] if c.front < len(c.heads) else []
        if len(c.stack) > 2:
            moves += [LEFT, RIGHT]
        elif len(c.stack) == 2 and not moves:
            moves.append(RIGHT)  # the root takes the last word
        return moves

    def arc(self, c: Configuration, move: int) -> tuple[int, int]:
        below, top = c.stack[-2:]
        return (top, below) if move == LEFT else (below, top)

    def cost(self, c: Configuration, move: int, gold: Oracle) -> int:
        """0 for the right move and 1 for others."""
        right = SHIFT
        if len(c.stack) > 1:
            below, top = c.stack[-2:]
            if gold.heads[below] == top:
                right = LEFT
            elif gold.heads[top] == below and all(word < c.front for word in gold.dependents[top]):
                right = RIGHT
        return int(move != right)


class ArcHybrid(TransitionSystem):
    """Arc-hybrid transitions.

    LEFT gives the top of the stack the first word of the buffer as its head (or the root, when the buffer is empty).
    RIGHT gives the top the word below it as its head. The oracle is dynamic (Goldberg and Nivre 2013), and respects
    that exactly one word hangs from the root.
    """

    name = "arc-hybrid"
    dynamic = True

    def start(self, n: int) -> Configuration:
        return Configuration(n)

    def legal(self, c: Configuration) -> list[int]:
        depth = len(c.stack)
        if c.front < len(c.heads):
            return [SHIFT, LEFT, RIGHT] if depth > 1 else [SHIFT, LEFT] if depth else [SHIFT]
        return [RIGHT] if depth > 1 else [LEFT] if depth else []

    def arc(self, c: Configuration, move: int) -> tuple[int, int]:
        head = c.stack[-2] if move == RIGHT else c.front if c.front < len(c.heads) else 0
        return head, c.stack[-1]

    def cost(self, c: Configuration, move: int, gold: Oracle) -> int:
        first = c.front
        if move == SHIFT:  # the first word leaves the heads below the top behind, and dependents on the stack
            head = gold.heads[first]
            lost = sum(map(c.on_stack, gold.dependents[first]))
            if head == 0:
                return lost + bool(c.stack)  # only the bottom of the stack can get the root
            return lost + (c.on_stack(head) and head != c.stack[-1])
        top = c.stack[-1]
        head = gold.heads[top]
        lost = sum(word >= first for word in gold.dependents[top])
        if head == 0:  # the bottom of the stack gets the root by the last move, not now
            return lost + (len(c.stack) == 1 and first < len(c.heads))
        if move == LEFT:
            return lost + (head > first or (len(c.stack) > 1 and head == c.stack[-2]))
        return lost + (head >= first)


class Actions:
    """Shift and arc actions with their relations, numbered for a classifier: SHIFT is 0, then LEFT and then RIGHT with
    each relation.
    """

    def __init__(self, relations: Iterable[str]) -> None:
        self.relations = list(relations)
        self._ids = {relation: i for i, relation in enumerate(self.relations)}

    def __len__(self) -> int:
        return 1 + 2 * len(self.relations)

    def number(self, move: int, relation: str) -> int:
        """The number of an action. For SHIFT the relation does not matter. KeyError for an unknown relation."""
        return 0 if move == SHIFT else 1 + (move - LEFT) * len(self.relations) + self._ids[relation]

    def move(self, number: int) -> int:
        """The move of an action: SHIFT, LEFT or RIGHT."""
        return SHIFT if number == 0 else LEFT + (number - 1) // len(self.relations)

    def relation(self, number: int) -> str:
        """The relation of an action, "" for SHIFT."""
        return self.relations[(number - 1) % len(self.relations)] if number else ""
