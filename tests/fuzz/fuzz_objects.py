"""Sessions whose functions are those of objects: methods as cells and compiled functions, of classes, of classes derived
from these and of several objects; closures and partial functions. Between the steps attributes and variables change,
arrays and containers in place, classes and default values, weights are replaced, resized, shared and read from files,
trainers get other settings, states and averages, and updates fail.

    python tests/fuzz/fuzzer.py --programs 1000 --objects

What is shown must be the same as in fuzz_calls.py.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import fuzz_calls
from fuzz_again import graphs
from fuzz_calls import CallSession
from fuzz_functions import HELPERS, MOST, Function, at, functions
from fuzz_generate import SIZES, Generator
from fuzz_motifs import expressions
from fuzz_program import Program
from fuzz_ways import Finding

RATES = ("0.5", "0.25", "-1.0")


# What the objects have that is of no class of theirs.
KINDS = (
    "class Graded(type):", "    grade = 0.5", "    @property", "    def level(cls):", "        return cls.factor * cls.grade",
    "class Soft:", "    grade, number = 0.5, 1", "    def __eq__(self, other):", "        return self.number == other.number",
    "class Hard(Soft):", "    grade = 1.5", "def half_of(x):", "    return x / 2",
)  # fmt: skip


# ---- classes ---------------------------------------------------------------------------------------------------------


class Method(Function):
    """The text of a method in the making. calls: what it may call, of its own object."""

    def __init__(self, g: Generator, n: int, head: str, vectors: list[str], calls: Sequence[str] = ()) -> None:
        super().__init__(g, n, head, vectors, ["k"])
        self.calls = calls
        if g.chance(0.3):
            self.lines += ["    if self.broken:", "        raise ArithmeticError('broken')"]

    def line(self) -> str:
        g = self.g
        a, b, k = self.one(), self.one(), g.one(["k", "1"])
        ways = [
            f"dy.tanh(self.W * {a} + self.b)", f"dy.affine_transform([self.b, self.W, {a}, self.W, {b}])",
            f"dy.tanh(self.U * dy.tanh(self.V * {a}))", f"{a} * self.rate + {b}", f"{a} * self.factor", f"{a} * self.half()", f"by_rate(self, {a})",
            f"by_rate(self.inner, {a})",
            f"dy.cmult({a}, dy.logistic({b} * self.gate))", f"dy.tanh(self.E[{k}] + {a})", f"self.f({a}) + {b} * 0.1",
            f"({a} if self.inner.inner.on else dy.tanh({b}))", f"{a} * self.inner.rate", f"dy.dropout({a}, 0.3)",
            f"dy.tanh(dy.esum([w * {a} for w in self.parts]))", f"dy.tanh(self.by['a'] * {b})", f"self.twice({a})",
            f"dy.tanh({a} * self.numbers[0])", f"dy.cmult({a}, inp({g.seed()}, ({self.n},)))",
            f"dy.cmult({a}, dy.inputTensor(self.mask))", f"{a} * float(self.view[0])", f"{a} * (sum(self.recent) / len(self.recent))",
            f"{a} * getattr(self, 'ra' + 'te'[:2])", f"{a} * vars(self.inner)['rate']", f"{a} * self.kind.grade",
            f"({a} if isinstance(self.kind, Hard) else {b})", f"({a} if self.kind == self.first else dy.tanh({b}))", f"{a} * self.by_default()",
            f"{a} * abs(-0.5)", f"{a} * type(self).level", f"{a} * (0.5 if (1, 'x') in self.tags else 1.5)", f"{a} * next(iter(self.by_name.values()))",
            f"{a} * self.chosen(self.kind)", f"{a} * self.cached(2)", f"{a} * (len(self.many) / 40)", f"{a} * self.many[7]",
            *(f"self.{call}({a}, {k})" for call in self.calls),
        ]  # fmt: skip
        return str(g.one(ways)) if g.chance(0.8) else super().line()

    def text(self, result: str, above: str = "") -> list[str]:
        """result: formed of the vector {0} that comes last and of one {1} from before."""
        self.body()
        whole = self.done(result.format(self.vectors[-1], self.one()), above)
        return ["    " + line for line in whole.split("\n")]


def helper(g: Generator, n: int, name: str, calls: Sequence[str]) -> list[str]:
    """A method that others call: a cell or not."""
    return Method(g, n, f"{name}(self, x, k)", ["x"], calls).text("dy.tanh(self.W * {0})", g.one(["", "@dy.cell"]))


def cells(g: Generator, n: int, letters: str) -> list[str]:
    """Methods of the kinds that fuzz_functions.py has: cells, steps, losses."""
    lines, calls = [], ("shared", "other")
    for letter in letters:
        if letter == "c":
            result = "(dy.tanh(self.W * {0}) if which == 'a' else {1}) * (0.5 / (1 + depth))"
            lines += Method(g, n, "c(self, x, k, depth=1, which='a')", ["x"], calls).text(result, "@dy.cell")
        elif letter == "s":
            f = Method(g, n, "s(self, s, k)", ["s.h", "s.c"], calls)
            lines += f.text("dy.state(h=dy.tanh({0}), c=dy.tanh({1}))", "@dy.cell")
        elif letter == "q":
            lines += Method(g, n, "q(self, x, k)", ["x"], calls).text(
                "dy.pickneglogsoftmax(self.S * {0}, k)", "@dy.cell"
            )
    return lines


def whole(g: Generator, n: int, name: str, above: str) -> list[str]:
    """A compiled method of the words of an example."""
    calls = ("shared", "other", "c")
    over = g.one(["dy.esum([self.E[word] for word in words])", "dy.esum(dy.map(self.c, [x] * len(words), words))",
                  "dy.scan(self.s, dy.state(h=x, c=x), words)[1].h", "dy.esum([self.c(x, word) for word in words])"])  # fmt: skip
    f = Method(g, n, f"{name}(self, words, k, x, nest, which='a')", ["x"], calls)
    f.add(f"dy.tanh({over})")
    return f.text(
        g.one(["self.q({0}, k), {1}", "self.q({0}, k)", "self.q({0}, k), {{'last': {0}, 'rate': self.rate}}"]), above
    )


def new_class(g: Generator, n: int) -> str:
    """A class of vectors of this size, derived from one that is there or not."""
    made = classes(g, n)
    g.count += 1
    name = f"K{g.count}0{n}"
    if made and g.chance(0.5):
        lines = [f"class {name}({g.one(made)}):"]
        lines += [f"    factor = {g.one(RATES)}"] if g.chance(0.3) else []
        lines += cells(g, n, "".join(letter for letter in "cq" if g.chance(0.4)))
        lines += ["    def shared(self, x, k):", f"        return super().shared(x, k) * {g.one(RATES)}"]
        lines += ["    def half(self):", "        return super().half() + self.factor"] if g.chance(0.5) else []
        g.do("\n".join(lines))
        return name
    if "tr1" not in g.env:
        g.do(g.one(["tr1 = Faulty(m0, 0.03)", "tr1 = dy.MomentumSGDTrainer(m0, 0.03)"]))
    W, b, E, S = g.weight(n, n), g.weight(n), g.table(n)[0], g.weight(MOST, n)
    lines = [
        *KINDS, f"class {name}(metaclass=Graded):", f"    factor = {g.one(RATES)}", "    broken = False", "    def __init__(self, m, seed, h):",
        f"        self.W, self.b, self.E, self.S = {W}, {b}, {E}, {S}", f"        self.other_W = m.parameters_from_numpy(A(seed, {n}, {n}))",
        "        self.rate, self.inner, self.f, self.numbers = 0.5, holder(0.5), dy.tanh, [0.5, 2.0]",
        "        self.parts, self.by = [self.W, self.other_W], {'a': self.other_W}", "        self.resize(m, seed, h)",
        f"        self.mask = A(seed + 3, {n})", "        self.view, self.recent = self.mask[1:], collections.deque([0.5, 1.0], maxlen=3)",
        "        self.kind, self.first, self.tags, self.many = Soft(), Soft(), {(1, 'y')}, [0.5] * 40", "        self.by_name = {'a': 0.5, 'b': 1.5}",
        "    def by_default(self, rate=0.5, *, more=1.0):", "        return rate * more", "    chosen = staticmethod(functools.singledispatch(lambda kind: 0.5))",
        "    @staticmethod", "    @functools.lru_cache", "    def cached(k):", "        return k * half_of(0.5)",
        "    def resize(self, m, seed, h):", f"        self.V = m.parameters_from_numpy(A(seed + 1, h, {n}))",
        f"        self.U = m.parameters_from_numpy(A(seed + 2, {n}, h))", "    def half(self):", "        return self.rate * 0.5",
        "    @property", "    def gate(self):", "        return self.inner.rate + self.factor", "    @staticmethod",
        "    def twice(x):", "        return x * 0.9", *helper(g, n, "shared", ()), *helper(g, n, "other", ("shared",)),
        *cells(g, n, "csq"), *whole(g, n, "run", "@dy.compile"),
        *whole(g, n, "train", g.one(["@dy.compile(backward=True)", "@dy.compile(trainer=tr1)", "@dy.compile(trainer=tr1, structures=2)"])),
    ]  # fmt: skip
    g.do("\n".join(lines))
    return name


def classes(g: Generator, n: int) -> list[str]:
    return [name for name in g.env if re.fullmatch(r"K\d+", name) and name[-1] == str(n)]


def new_object(g: Generator) -> None:
    """An object and its methods, under the names by which fuzz_functions.py finds cells and compiled functions."""
    n = g.one(SIZES)
    made = classes(g, n)
    kind = g.one(made) if made and g.chance(0.5) else new_class(g, n)
    g.count += 1
    k = f"{g.count}0{n}"
    g.do(f"o{k} = {kind}(m0, {g.seed()}, {g.one((2, 3, 5))})")
    for name, method in (("c", "c"), ("s", "s"), ("q", "q"), ("f", "run"), ("f1", "train")):
        g.do(f"{name}{k} = o{k}.{method}")


def closure(g: Generator) -> None:
    """A cell and a compiled function of a variable that changes, and one of a partial function."""
    n = g.one(SIZES)
    f = Function(g, n, "c(x, k, depth=1, which='a')", ["x", "dy.tanh(W * x) * rate"], ["k"])
    f.body()
    inside = f.done(f"dy.tanh({f.vectors[-1]} * (rate + depth) + W * x)", "@dy.cell")
    g.count += 1
    k = f"{g.count}0{n}"
    lines = [
        f"def make{k}(W, rate):", *("    " + line for line in inside.split("\n")),
        "    def of_words(scale, words, k, x, nest, which='a'):",
        f"        h = c(x, k) * rate * scale + dy.esum([{g.table(n)[0]}[word] for word in words])",
        f"        return dy.pickneglogsoftmax({g.weight(MOST, n)} * h, k), h",
        "    def change(new, W_=None):", "        nonlocal rate, W", "        rate, W = new, W_ or W",
        "    return c, of_words, change",
    ]  # fmt: skip
    g.do("\n".join(lines))
    g.do(f"c{k}, p{k}, u{k} = make{k}({g.weight(n, n)}, 0.5)")
    g.do(f"f{k} = dy.compile(functools.partial(p{k}, {g.one(RATES)}){g.one(['', ', backward=True'])})")


def of_examples(g: Generator) -> None:
    """Calls of a compiled function of one argument, an object of a dataclass."""
    made = [name for name in g.env if re.fullmatch(r"x\d+", name)]
    if not made or g.chance(0.4):
        n = g.one(SIZES)
        g.count += 1
        k = f"{g.count}0{n}"
        f = Function(g, n, f"d{k}(e)", ["e.x", f"{g.table(n)[0]}[e.tag]"], ["e.tag", "e.words[0]"])
        f.body()
        g.do(f.done(f"dy.pickneglogsoftmax({g.weight(MOST, n)} * {f.vectors[-1]}, e.tag), {f.one()}"))
        g.do(f"x{k} = dy.compile(d{k}, backward=True)")
        made = [f"x{k}"]
    name = g.one(made)
    for _ in range(1 + g.below(3)):
        g.do(f"see(flat({name}(example({1 + g.below(2)}, {g.seed()}, {at(g)}, A({g.seed()}, {name[-1]})))))")


def apart(g: Generator) -> None:
    """A graph of its own in the middle of another."""
    n = g.one(SIZES)
    made = [name for name in g.env if re.fullmatch(r"c\d+", name) and name[-1] == str(n)]
    x = (
        f"{g.one(made)}(inp({g.seed()}, ({n},)), {at(g)})"
        if made
        else f"dy.tanh({g.weight(n, n)} * {g.table(n)[0]}[{g.below(MOST)}])"
    )
    lines = [f"e_ = {x}", f"l_ = dy.pickneglogsoftmax({g.weight(MOST, n)} * e_, {g.below(MOST)})"]
    lines += g.one([["l_.backward()"], ["see(e_.npvalue())", "dy.cg_checkpoint()", "y_ = dy.tanh(e_)", "see(y_.npvalue())", "dy.cg_revert()",
                                        "l_.backward()"], []])  # fmt: skip
    g.do("\n    ".join(["with dy.graph() as g_:", *lines, "see(l_.npvalue())"]))


MADE = (new_object, new_object, closure, of_examples, apart)


def some(g: Generator, count: int) -> None:
    for _ in range(count):
        if g.chance(0.6):
            g.maybe(lambda: g.one(MADE)(g))
        (functions if g.chance(0.7) else expressions)(g, 1)


# ---- sessions --------------------------------------------------------------------------------------------------------


class ObjectSession(CallSession):
    def __init__(self, program: Program, seed: int, steps: int) -> None:
        made = " ".join(step.text for step in program)
        self.objects = re.findall(r"\b(o\d+) = K", made)
        self.classes = re.findall(r"\bclass (K\d+)", made)
        self.changes = re.findall(r"\b(u\d+) = make", made)
        super().__init__(program, seed, steps)

    def between(self, within: bool = False) -> None:
        """Some changes, each before a call of what may have changed."""
        for _ in range(1 if within else 2 + self.below(6)):
            super().between(within)
            for _ in range(2 if self.objects or self.changes else 0):
                self.do(self.one(self.calls()))

    def calls(self) -> list[str]:
        calls = [f"see(c{u[1:]}(inp({self.below(9)}, ({u[-1]},)), {self.below(MOST)}).npvalue())" for u in self.changes]
        given = f"words({1 + self.below(2)}, {self.below(9)}), {self.below(MOST)}"
        calls += [f"see(flat(f{u[1:]}({given}, A({self.below(9)}, {u[-1]}), nested(2, 1))))" for u in self.changes]
        for o in self.objects:
            x = f"inp({self.below(9)}, ({o[-1]},))"
            calls += [
                f"see({o}.c({x}, {self.below(MOST)}).npvalue())",
                f"see({o}.s(dy.state(h={x}, c={x}), {self.below(MOST)}).h.npvalue())",
            ]
            calls += [
                f"see(flat({o}.{name}({given}, A({self.below(9)}, {o[-1]}), nested(2, 1))))"
                for name in ("run", "train")
            ]
        return calls

    def ways(self, within: bool) -> list[str]:
        kinds = [self.of_objects, self.of_objects, self.of_objects, self.of_weights, self.of_trainers]
        own = kinds[self.below(len(kinds))]()
        if within:
            own = [text for text in own if "= K" not in text]
        return own if own and self.chance(0.85) else super().ways(within)

    def of_objects(self) -> list[str]:
        rate, yes = self.one(RATES), self.chance(0.5)
        own = [f"{name}({rate})" for name in self.changes]
        own += [f"{name}({rate}, {weight})" for name in self.changes for weight in self.alike()]
        own += [f"{name}.factor = {rate}" for name in self.classes]
        for name in self.classes:
            own += [
                f"{name}.twice = staticmethod(lambda x: x * {rate})", f"{name}.by_default.__defaults__ = ({rate},)",
                f"{name}.by_default.__kwdefaults__['more'] = {rate}", f"{name}.by_default.__kwdefaults__ = {{'more': {rate}}}",
                f"{name}.chosen.register({self.one(['Soft', 'Hard'])}, lambda kind: {rate})", f"Graded.grade = {rate}",
                f"half_of.__code__ = (lambda x: x * {rate}).__code__; {name}.cached.cache_clear()", f"abs = lambda x: {rate}", "del abs",
            ]  # fmt: skip
        for o in self.objects:
            f = self.one(["dy.tanh", "dy.logistic", "lambda x: x * 0.5"])
            own += [
                f"{o}.rate = {rate}", f"{o}.inner.inner.on = {yes}", f"{o}.inner = holder({rate})", f"{o}.factor = {rate}", f"del {o}.factor",
                f"{o}.numbers[0] = {rate}", f"{o}.numbers = [{rate}]", f"{o}.f = {f}", f"{o}.parts.reverse()", f"{o}.parts = {o}.parts[:1]",
                f"{o}.parts.append({o}.W)", f"{o}.by['a'] = {o}.W", f"{o}.by = {{'a': {o}.other_W, 'b': 1}}", f"{o}.W, {o}.other_W = {o}.other_W, {o}.W",
                f"{o}.other_W = {o}.W", f"{o}.resize(m0, {self.below(20)}, {self.one(['2', '3', '5'])})", f"{o} = copy.copy({o})",
                f"{o} = copy.deepcopy({o})", f"{o}.broken = True", f"{o}.broken = False", f"{o}.broken = False",
                f"{o}.W = m0.parameters_from_numpy({o}.W.as_array() * 0.5)", f"{o}.E = m0.lookup_parameters_from_numpy({o}.E.as_array())",
                f"{o}.half = lambda: {rate}", f"{o}.mask[1] = {rate}", f"{o}.mask *= {rate}", f"{o}.view = {o}.mask[2:]", f"{o}.recent.append({rate})",
                f"{o}.kind.__class__ = {self.one(['Soft', 'Hard'])}", f"{o}.kind.number = {self.below(2)}", f"{o}.tags.add((1, 'x'))", f"{o}.tags.clear()",
                f"{o}.by_name['a'] = {o}.by_name.pop('a')", f"{o}.many.append(1.0)", f"{o}.many[7] = {rate}", f"del {o}.many[20:]", f"{o}.kind = Hard()",
            ]  # fmt: skip
            own += [f"{letter}{o[1:]} = {o}.{letter}" for letter in "csq"]
            own += [f"f{o[1:]} = {o}.run", f"f1{o[1:]} = {o}.train", f"f{o[1:]}.forget_structures()"]
        return own

    def alike(self) -> list[str]:
        return [self.one(self.weights)] if self.weights else []

    def of_weights(self) -> list[str]:
        W, T, seed = self.one(self.weights or ["W0"]), self.one(self.tables or ["T0"]), self.below(20)
        those = [W, *(f"{o}.{name}" for o in self.objects for name in ("W", "U", "V", "other_W"))]
        W = self.one(those)
        o = self.one(self.objects or ["o0"])
        return [
            f"{W}.set_value({W}.as_array() * 0.7)", f"{W}.load_array({W}.as_array() * 0.7)", f"{W}.scale(0.9)", f"{W}.clip_inplace(-0.5, 0.5)",
            f"{W}.zero()", f"{W}.set_updated(False)", f"{W}.set_updated(True)", f"{W}.set_updated(True)", f"{W}.set_grad({W}.as_array() * 0.1)",
            f"{W}.scale_gradient(0.5)", f"{W}.zero_gradient()", f"{T}.zero()", f"{T}.scale(0.9)", f"{T}.zero_gradient()", f"{T}.set_updated(False)",
            f"{T}.set_updated(True)", f"{T}.init_from_array({T}.as_array()[::-1])", f"{T}.init_row(1, {T}.row_as_array(2))",
            f"{T}.set_rows_grad([1, 3], {T}.rows_as_array([3, 1]) * 0.1)", f"{T}.scale_gradient(0.5)", "m0.save(FOLDER + '/m')",
            "m0.populate(FOLDER + '/m')", f"{W}.save(FOLDER + '/w', '/w')", f"{W}.populate(FOLDER + '/w', '/w')", "m0.set_updated(True)",
            f"{W}.set_value({W}.as_array().T)", f"{W}.set_updated(None)", "m0.reset_gradient()", f"see({W}.grad_as_array())",
            f"W{90 + seed % 5} = m0.add_subcollection().parameters_from_numpy(A({seed}, 3, 3))", f"{o}.other_W = W{90 + seed % 5}",
            f"o{90 + seed % 3} = {o}", f"m{1 + seed % 3} = copy.deepcopy(m0)", f"see({W}.as_array())", f"see({T}.as_array())",
            f"z2 = {W} + 0", f"z3 = {T}[1] + 0", "see(z2.npvalue())", "see(z3.npvalue())", "dy.squared_norm(z2).backward()",
        ]  # fmt: skip

    def of_trainers(self) -> list[str]:
        tr = self.one(["tr0", "tr1"])
        kind = self.one(
            [
                "SimpleSGDTrainer(m0, 0.05)",
                "MomentumSGDTrainer(m0, 0.02)",
                "AdagradTrainer(m0, 0.02, 1e-4)",
                "AdamWTrainer(m0, eps=1e-2)",
            ]
        )
        return [
            f"{tr} = dy.{kind}", f"{tr}.restart()", f"{tr}.restart(0.02)", f"{tr}.learning_rate = 0.02", f"{tr}.set_learning_rate(0.05)",
            f"{tr}.set_learning_rate('no')", f"{tr}.set_clip_threshold({self.one(['0.5', '0', '1e6'])})", f"{tr}.set_sparse_updates({self.chance(0.6)})",
            "m0.set_weight_decay_lambda(1e-2)", "m0.set_weight_decay_lambda(0)", f"state1 = {tr}.state_dict()", f"{tr}.load_state_dict(state1)",
            f"state2 = pickle.dumps({tr}.state_dict())", f"{tr}.load_state_dict(pickle.loads(state2))", f"dy.save_checkpoint(FOLDER + '/c', m0, {tr})",
            f"dy.load_checkpoint(FOLDER + '/c', m0, {tr})", f"{tr}.exponential_moving_average(0.5)", f"{tr}.cumulative_moving_average()",
            f"{tr}.swap_params_to_moving_average()", f"{tr}.swap_params_to_weights()", f"{tr}.bad = True", f"{tr}.bad = False", f"{tr}.bad = False",
            f"{tr}.update()", f"see({tr}.updates)", f"{tr}.coefficients = lambda: (0.01, 0.5)", f"{tr}.update(2)",
        ]  # fmt: skip


def session(seed: int, steps: int = 8) -> Program:
    return tuple(ObjectSession(graphs(seed, some, HELPERS), seed, steps).steps)


def check(seed: int) -> Finding | None:
    return fuzz_calls.check(seed, session)
