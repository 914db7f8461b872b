"""Sessions of many steps whose graphs are those of before: with other numbers, rows and labels, read at other places,
and with whatever programs do between their steps. Plans that are kept are found again in most of them
(docs/engine/plans.md); what is shown must be the same, to the last bit, where none are kept.

    python tests/fuzz/fuzzer.py --programs 1000 --again
"""

from __future__ import annotations

import itertools
import re
import tempfile
from collections.abc import Sequence

import numpy as np
from fuzz_generate import Generator
from fuzz_motifs import expressions
from fuzz_program import MAKES, Observation, Program, Step, difference, execute, shrink
from fuzz_sessions import ACTIONS, backward, finish
from fuzz_ways import PLAIN, Finding, Way, setting

import dynet_lite as dy
from dynet_lite import _core

RENEW = "dy.renew_cg("
MADE = re.compile(r"((?:e|l|t)\d+) = ")
# What differs from step to step though the graph is the same: the second group.
NUMBERS = re.compile(r"(\b(?:A|inp)\(|score\(\w+, |\b(?:op|case)\((?:'[^']*'|\"[^\"]*\"), )(\d+)\b")
CONSTANTS = re.compile(r"( [*+] )(\d\.\d)\b")
PLACES = re.compile(r"(\bT\d+\[|dy\.lookup\(T\d+, |dy\.pick\(\w+, |(?:hinge|pickneglogsoftmax)\(\w+, )(\d+)\b")
LISTS = re.compile(r"((?:\.batch|\.rows|dy\.lookup_batch|_batch)\((?:\w+, )?\[)([\d, ]+)")
LEAST = 5  # rows and labels below are there in every table and in all scores

SETTINGS: list[Way] = [
    {}, {}, {"autobatch": False}, {"strategy": "agenda"}, {"strategy": "depth"}, {"strategy": "auto"}, {"fuse": False},
    {"threads": 2}, {"rewrites": "-merge"}, {"rewrites": "-fuse"}, {"keep_weights": True},
]  # fmt: skip
USUAL: Way = {
    "autobatch": True,
    "strategy": "greedy",
    "fuse": True,
    "threads": 1,
    "rewrites": "",
    "keep_weights": False,
}


def graphs(seed: int) -> Program:
    """A program of a few small graphs."""
    with setting(PLAIN):
        g = Generator(seed)
        weighed = np.array(list(ACTIONS.values())) / sum(ACTIONS.values())
        g.begin()
        for _ in range(1 + g.below(2)):
            g.renew()
            for _ in range(1 + g.below(3)):
                expressions(g, 1 + g.below(3))
                for number in g.rng.choice(len(ACTIONS), 1 + g.below(3), p=weighed):
                    g.maybe(lambda action=list(ACTIONS)[number]: action(g))
            for last, chance in ((backward, 0.7), (finish, 0.3)):
                if g.chance(chance):
                    g.maybe(lambda last=last: last(g))
        dy.renew_cg()
        return g.program()


class Session:
    """The graphs of a program, each made as it is there and then again, in any order."""

    def __init__(self, program: Program, seed: int, steps: int) -> None:
        self.rng = np.random.default_rng([seed, 17])
        starts = [k for k, step in enumerate(program) if RENEW in step.text] + [len(program)]
        self.graphs = [program[a:b] for a, b in itertools.pairwise(starts)]
        text = " ".join(step.text for step in program)
        self.weights = sorted(set(re.findall(r"\bW\d+\b", text)))
        self.tables = sorted(set(re.findall(r"\bT\d+\b", text)))
        self.steps = [*program, Step("tr0 = dy.SimpleSGDTrainer(m0, 0.05)"), Step("m0.save(FOLDER + '/m')")]
        last = 0
        for _ in range(steps):
            if not self.chance(0.4):
                last = self.below(len(self.graphs))
            self.again(last)
            self.do("tr0.update()")
            for _ in range(self.below(3)):
                self.between()
        for name in (*self.weights, *self.tables):
            self.do(f"see({name}.as_array())")
            self.do(f"see({name}.grad_as_array())")

    def chance(self, p: float) -> bool:
        return bool(self.rng.random() < p)

    def below(self, n: int) -> int:
        return int(self.rng.integers(n))

    def one(self, items: Sequence[str]) -> str:
        return items[self.below(len(items))]

    def do(self, text: str) -> None:
        self.steps.append(Step(text))

    def other_data(self, text: str, places: Sequence[int]) -> str:
        """places: what becomes of small numbers; without any, each becomes another."""

        def place(old: str) -> str:
            k = int(old)
            return str((*places, k)[min(k, LEAST)]) if places else str(self.below(LEAST))

        text = NUMBERS.sub(lambda m: m[1] + str(self.below(20)), text)
        text = CONSTANTS.sub(lambda m: m[1] + self.one(["0.7", "0.2", "1.5"]), text)
        text = PLACES.sub(lambda m: m[1] + place(m[2]), text)
        return LISTS.sub(lambda m: m[1] + ", ".join(place(k) for k in m[2].split(",")), text)

    def again(self, number: int) -> None:
        """Graph `number` in one of its forms, which differ in where values are asked for and in what is left out."""
        form, data = self.below(2), self.chance(0.8)
        places = (
            [int(k) for k in self.rng.permutation(LEAST)] if self.chance(0.7) else []
        )  # those that are equal stay so
        how = np.random.default_rng([number, form, 23])
        for step in self.graphs[number]:
            left_out, peek = how.random(2) < ((0.0, 0.05), (0.05, 0.3))[form]
            makes = MAKES.search(step.text) or ".set_value(" in step.text
            if makes or (left_out and RENEW not in step.text):
                continue
            self.do(self.other_data(step.text, places) if data else step.text)
            made = MADE.match(step.text)
            if made and peek:
                self.do(f"see({made[1]}.npvalue())")
            if self.chance(0.005):
                self.between(within=True)

    def between(self, within: bool = False) -> None:
        """What may come between two steps, or in the middle of one."""
        weight, table = self.one(self.weights or ["W0"]), self.one(self.tables or ["T0"])
        some = self.one([weight, table])
        ways = [
            "tr0.update()", "tr0.update()", f"{some}.set_updated(True)", f"{some}.set_updated(True)",
            f"{some}.set_updated(False)", f"{some}.zero_gradient()", f"{some}.scale_gradient(0.5)",
            f"{weight}.scale(0.9)",
            f"{table}.init_row({self.below(LEAST)}, {table}.row_as_array({self.below(LEAST)}) * 0.5)",
            f"see({some}.as_array())", f"see({some}.grad_as_array())", f"see({weight}.gradient())",
            "m0.save(FOLDER + '/m')", "m0.populate(FOLDER + '/m')", "import gc; gc.collect()", "gone()", "mistake()",
            f"configure({self.below(len(SETTINGS))})", f"configure({self.below(len(SETTINGS))})",
        ]  # fmt: skip
        if not within:
            kind = self.one(["SimpleSGD", "MomentumSGD", "Adam"])
            ways += [f"tr0 = dy.{kind}Trainer(m0)", f"tr0.set_sparse_updates({self.chance(0.5)})", "dy.renew_cg()",
                     "dy.renew_cg(immediate_compute=True)", "dy.renew_cg(check_validity=True)"]  # fmt: skip
        self.do(self.one(ways))


def gone() -> None:
    """A model is trained and goes: others will lie where it lay."""
    m = dy.ParameterCollection()
    W, E = m.add_parameters((3, 8)), m.add_lookup_parameters((5, 8))
    dy.renew_cg()
    dy.squared_norm(dy.tanh(W * E[1])).backward()


def mistake() -> None:
    """An op that is wrong, behind others."""
    x = dy.tanh(dy.inputVector([1, 2])) * 2
    dy.affine_transform([x, dy.inputTensor(np.ones((3, 3))), x])


def observed(program: Program, way: Way, changing: bool, keep: bool) -> list[Observation]:
    """What a session sees. changing: settings do, where it asks for it."""

    def configure(k: int) -> None:
        if changing:
            dy.configure(**{**USUAL, **SETTINGS[k], "keep_weights": way.get("keep_weights", False)})

    with tempfile.TemporaryDirectory() as folder, setting({**USUAL, **way, "keep_plans": keep}):
        _core.settings.verify = False  # which makes what is kept anew
        _core.set_seed(11)
        dy.renew_cg()
        try:
            return execute(
                program, dy, more={"FOLDER": folder, "configure": configure, "gone": gone, "mistake": mistake}
            )
        finally:
            _core.settings.verify = True
            dy.renew_cg()


def differs(program: Program, way: Way, changing: bool) -> tuple[int, str] | None:
    """The first step that shows something else where plans are kept."""
    kept, anew = (observed(program, way, changing, keep) for keep in (True, False))
    return difference(kept, anew, rtol=0, atol=0)


def session(seed: int, steps: int = 20) -> Program:
    return tuple(Session(graphs(seed), seed, steps).steps)


def check(seed: int) -> Finding | None:
    rng = np.random.default_rng([seed, 29])
    way, changing = SETTINGS[int(rng.integers(len(SETTINGS)))], bool(rng.random() < 0.5)
    program = session(seed)
    if differs(program, way, changing) is None:
        return None
    small = shrink(program, lambda p: differs(p, way, changing) is not None)
    what = f"seed {seed}, plans kept or anew, {way}, changing {changing}: {differs(small, way, changing)}"
    return Finding(seed, what, "\n".join([f"# {what}", *(step.text for step in small)]))
