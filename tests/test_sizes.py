"""Files stay short, functions too, and lines fit a window: 600 lines, 60 lines, 120 columns (of C++; Python's and Cython's
docstrings, 130).

Whatever is longer stands below with the reason. An exception that is not needed any more has to go, and one that grows
has to be looked at again.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
FILE, FUNCTION = 600, 60
WIDTH = {"C++": 120, "Cython": 130, "Python": 130}
FOLDERS = ("cext", "dynet_lite", "recipes", "benchmarks", "tools")
KINDS = {"C++": (".cc", ".h"), "Cython": (".pyx", ".pxi", ".pxd"), "Python": (".py",)}

# file: (its lines, why it is one file)
LONG_FILES: dict[str, tuple[int, str]] = {}
# file::function: (its lines, why it is one function)
LONG_FUNCTIONS: dict[str, tuple[int, str]] = {
    "cext/exec/backward.cc::reach": (
        70,
        "one loop over the nodes, which waits for memory: a second one would wait again",
    ),
    "cext/schedule/agenda.cc::run_agenda": (70, "an algorithm with its state"),
    "cext/schedule/greedy.cc::recurrent": (115, "an algorithm with its state"),
    "benchmarks/graph_building.py::prepare": (80, "a table of programs"),
}


def sources(kinds: str) -> list[Path]:
    return sorted(p for f in FOLDERS for p in (ROOT / f).rglob("*") if p.suffix in KINDS[kinds])


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


Span = tuple[str, int]  # a function and its lines


def python_functions(text: str) -> Iterator[Span]:
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node.name, (node.end_lineno or node.lineno) - node.lineno + 1


def cython_functions(text: str) -> Iterator[Span]:
    """By indentation: from `def f(` or `cdef T f(` to the last line that stands deeper."""
    lines = text.splitlines()
    for start, line in enumerate(lines):
        found = re.match(r"( *)(?:def|cdef|cpdef)\b(?! class| enum| extern| struct)[^(=]*?(\w+)\(", line)
        if not found or not _has_body(lines, start):
            continue
        end = start
        for number in range(start + 1, len(lines)):
            rest = lines[number]
            if rest.strip() and not rest.startswith(found[1] + " ") and not rest.lstrip().startswith((")", "#")):
                break
            end = number if rest.strip() else end
        yield found[2], end - start + 1


def _has_body(lines: list[str], start: int) -> bool:
    """Whether the head that begins here ends with a colon; the head of a declaration ends with its parenthesis."""
    depth = 0
    for line in lines[start:]:
        code = line.partition("#")[0].rstrip()
        depth += code.count("(") - code.count(")")
        if depth <= 0:
            return code.endswith(":") or bool(re.search(r"\).*:\s*\S", code))
    return False


# Comments, strings, characters, directives of the preprocessor: blanked, so that braces are braces.
_NOT_CODE = re.compile(
    r'//[^\n]*|/\*.*?\*/|R"\((?:.*?)\)"|"(?:\\.|[^"\\\n])*"|(?<![\w])\'(?:\\.|[^\'\\\n])+\'|^[ \t]*#(?:\\\n|[^\n])*',
    re.MULTILINE | re.DOTALL,
)
_TEMPLATE = re.compile(r"template\s*<[^<>]*(?:<[^<>]*>[^<>]*)*>|\(.*", re.DOTALL)
_CONTAINER = re.compile(r"\b(?:namespace|struct|class|union|enum|extern)\b")


def cpp_functions(text: str) -> Iterator[Span]:
    """By braces: a block with a parameter list before it that does not stand inside another one."""
    code = _NOT_CODE.sub(lambda m: re.sub(r"[^\n]", " ", m[0]), text)
    head, inside = 0, 0  # where what precedes the next brace begins; how many blocks deep in a function
    began = 0
    stack: list[bool] = []
    for at in (m.start() for m in re.finditer(r"[{};]", code)):
        if code[at] == "{":
            before = code[head:at]
            is_function = not inside and "(" in before and not _CONTAINER.search(_TEMPLATE.sub("", before))
            if is_function:
                began = head + len(before) - len(before.lstrip())
            inside += bool(inside or is_function)
            stack.append(is_function)
        elif code[at] == "}" and stack:
            was_function = stack.pop()
            inside -= bool(inside)
            if was_function:
                name = re.search(r"([\w~]+)\s*\(", code[began:at])
                yield (name[1] if name else "?"), code.count("\n", began, at) + 1
        head = at + 1 if not inside else head


FUNCTIONS = {"C++": cpp_functions, "Cython": cython_functions, "Python": python_functions}


@cache
def functions(kinds: str) -> list[Span]:
    """(file::function, lines) of all sources of a kind."""
    return [
        (f"{name_of(path)}::{function}", n)
        for path in sources(kinds)
        for function, n in FUNCTIONS[kinds](path.read_text(encoding="utf-8"))
    ]


@pytest.mark.parametrize("kinds", KINDS)
def test_files(kinds: str) -> None:
    lengths = {name_of(p): len(p.read_text(encoding="utf-8").splitlines()) for p in sources(kinds)}
    allowed = {file: lines for file, (lines, _) in LONG_FILES.items()}
    long = {f"{file}: {n} lines" for file, n in lengths.items() if n > allowed.get(file, FILE)}
    assert not long, "split it along its ideas"


@pytest.mark.parametrize("kinds", KINDS)
def test_functions(kinds: str) -> None:
    allowed = {function: lines for function, (lines, _) in LONG_FUNCTIONS.items()}
    long = {f"{key}: {n} lines" for key, n in functions(kinds) if n > allowed.get(key, FUNCTION)}
    assert not long, "give its steps names"


# The formatters break no strings, and leave alone what a comment tells them to.
UNBROKEN = re.compile(r"""["']|# (?:fmt|type): """)


@pytest.mark.parametrize("kinds", KINDS)
def test_lines(kinds: str) -> None:
    wide = [
        f"{name_of(path)}:{number}: {len(line)} columns"
        for path in sources(kinds)
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if len(line) > WIDTH[kinds] and not UNBROKEN.search(line)
    ]
    assert not wide


def test_exceptions_are_needed() -> None:
    for file, (lines, _) in LONG_FILES.items():
        assert FILE < len((ROOT / file).read_text(encoding="utf-8").splitlines()) <= lines, file
    for key, (lines, _) in LONG_FUNCTIONS.items():
        found = max(n for kinds in KINDS for k, n in functions(kinds) if k == key)
        assert FUNCTION < found <= lines, key


def test_functions_are_seen() -> None:
    """A scanner that finds nothing would pass every test above."""
    cpp = "namespace a {\nstruct B {\n  int c(int d) const {\n    if (d) {\n      return '{';\n    }\n    return 2;\n  }\n};\n}\n"
    assert list(cpp_functions(cpp)) == [("c", 6)]
    assert list(cpp_functions("template <class T>\nstatic T f(T x,\n           T y) {\n  return x;\n}\nint g() { return 1; }\n")) == [
        ("f", 5),
        ("g", 1),
    ]  # fmt: skip
    cython = "cdef class A:\n    def b(self,\n          c):\n        pass\n\n    cdef int d(self)\n\ncdef int e() except -1:\n    return 1\n"
    assert list(cython_functions(cython)) == [("b", 3), ("e", 2)]
    assert list(python_functions("def f():\n    def g():\n        pass\n")) == [("f", 3), ("g", 2)]
    assert {kinds: len(functions(kinds)) > 300 for kinds in KINDS} == dict.fromkeys(KINDS, True)
