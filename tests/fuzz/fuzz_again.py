"""Sessions of many steps whose graphs are those of before: with other numbers, rows and labels, read at other places,
and with whatever programs do between their steps. Plans that are kept are found again in most of them
(docs/engine/plans.md); what is shown must be the same, to the last bit, where none are kept.

    python tests/fuzz/fuzzer.py --programs 1000 --again
"""

from __future__ import annotations

import itertools
import re
import tempfile
from collections.abc import Callable, Sequence

import numpy as np
from fuzz_generate import Generator
from fuzz_motifs import expressions
from fuzz_names import Names
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
BACKWARD = re.compile(r"(l\d+)\.backward\(")
ROW = re.compile(r" = (?:T\d+\[\d+\]|dy\.lookup\(T\d+, \d+\))$")
PICK = re.compile(r" = (?:dy\.pick\(e|e\d+\[\d+\]$)")
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


def graphs(seed: int, some: Callable[[Generator, int], None] = expressions, more: Names | None = None) -> Program:
    """A program of a few small graphs, of what `some` makes with the names of `more`."""
    with setting(PLAIN):
        g = Generator(seed)
        g.env.update(more or {})
        weighed = np.array(list(ACTIONS.values())) / sum(ACTIONS.values())
        g.begin()
        for _ in range(1 + g.below(2)):
            g.renew()
            for _ in range(1 + g.below(3)):
                some(g, 1 + g.below(3))
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
        self.made, self.rows, self.picked = [], [], []
        for step in self.graphs[number]:
            left_out, peek = how.random(2) < ((0.0, 0.05), (0.05, 0.3))[form]
            makes = MAKES.search(step.text) or ".set_value(" in step.text
            if makes or (left_out and RENEW not in step.text):
                continue
            back = BACKWARD.match(step.text)
            if back and self.chance(0.5):
                self.before(back[1])
            self.do(self.other_data(step.text, places) if data else step.text)
            if back and self.chance(0.5):
                self.after(step.text)
            made = MADE.match(step.text)
            if made:
                self.made.append(made[1])
                self.rows += [made[1]] if ROW.search(step.text) else []
                self.picked += [made[1]] if PICK.search(step.text) else []
            if made and peek:
                self.do(f"see({made[1]}.npvalue())")
            if self.chance(0.005):
                self.between(within=True)

    def before(self, loss: str) -> None:
        """Between a value and the backward pass: rows are let go, so that their gradients need not be kept, and what a
        reader that has not run still reads."""
        self.do(f"see({loss}.value())")
        for name in self.rows:
            if self.chance(0.4):
                self.do(f"del {name}")
        if self.made and self.chance(0.4):
            name = self.one(self.made[-8:])
            self.reader(name)
            self.do(f"del {name}")

    def reader(self, name: str) -> None:
        if self.chance(0.5):
            self.do(f"z1 = dy.tanh({name}) * 0.5")

    def after(self, backward: str) -> None:
        """Behind a backward pass: rows are asked for their gradients, and it comes again, with or without readers that
        have not run, or when a part of a value has moved."""
        for name in self.rows[-4:]:
            self.do(f"see({name}.gradient())")
        if self.made and self.chance(0.4):
            self.do(backward)
            self.reader(self.one(self.made[-8:]))
            self.do(backward)
            self.do("see(z1.npvalue())")
        if self.picked and self.chance(0.6):
            name = self.one(self.picked)
            for _ in range(3):
                self.do(f"{name}.set_index({self.below(3)})")
                self.do(f"see({name}.npvalue())")
                self.do(backward)
            for other in (name, *self.made[-6:]):
                self.do(f"see({other}.gradient())")

    def between(self, within: bool = False) -> None:
        self.do(self.one(self.ways(within)))

    def ways(self, within: bool) -> list[str]:
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
        return ways


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


def observed(
    program: Program,
    way: Way,
    changing: bool,
    keep: bool,
    numbers: int = 0,
    more: Names | None = None,
    verify: bool = False,
) -> list[Observation]:
    """What a session sees. changing: settings do, where it asks for it. verify: what is kept is also made anew."""

    def configure(k: int) -> None:
        if changing:
            dy.configure(**{**USUAL, **SETTINGS[k], "keep_weights": way.get("keep_weights", False)})

    with tempfile.TemporaryDirectory() as folder, setting({**USUAL, **way, "keep_plans": keep}):
        _core.settings.verify = verify
        _core.set_seed(11)
        dy.renew_cg()
        try:
            own = {"FOLDER": folder, "configure": configure, "gone": gone, "mistake": mistake}
            return execute(program, dy, numbers, more={**(more or {}), **own})
        finally:
            _core.settings.verify = True
            dy.renew_cg()


def differs(program: Program, way: Way, changing: bool) -> tuple[int, str] | None:
    """The first step that shows something else where plans are kept."""
    kept, anew = (observed(program, way, changing, keep) for keep in (True, False))
    return difference(kept, anew, rtol=0, atol=0)


def unlike(program: Program, way: Way, changing: bool) -> tuple[int, str] | None:
    """The first step for which a plan is kept that is not the one that would be made: also of a graph's own backward
    passes, which are always kept."""
    seen = observed(program, way, changing, True, verify=True)
    return next(((k, what) for k, how, what in seen if how == "error" and what.startswith("InternalError")), None)


def session(seed: int, steps: int = 20) -> Program:
    return tuple(Session(graphs(seed), seed, steps).steps)


def check(seed: int) -> Finding | None:
    rng = np.random.default_rng([seed, 29])
    way, changing = SETTINGS[int(rng.integers(len(SETTINGS)))], bool(rng.random() < 0.5)
    program = session(seed)
    wrong = next((one for one in (differs, unlike) if one(program, way, changing) is not None), None)
    if wrong is None:
        return None
    small = shrink(program, lambda p: wrong(p, way, changing) is not None)
    what = f"seed {seed}, plans kept or anew, {way}, changing {changing}: {wrong(small, way, changing)}"
    return Finding(seed, what, "\n".join([f"# {what}", *(step.text for step in small)]))
