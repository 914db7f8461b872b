"""Writes the Python functions of the ops from the signatures and docs in the op entries, and the table of settings.

`generate(ops_dir, out_dir)` reads every entry under cext/ops, the elementwise formulas and cext/exec/options.h, and writes
ops.pxi and settings_table.pxi (what _core.pyx includes). `entries(cext)` is also used to write the stub and the op
reference. Internal ops get a function too; the package does not export it. The types of parameters are told in cext/op/op.h.
"""

from __future__ import annotations

import ast
import re
import textwrap
from dataclasses import dataclass
from pathlib import Path

STRING = r'(?:"(?:[^"\\]|\\.)*"\s*)+'
ENTRY = re.compile(r"\bregister_op\(\s*\[\]\s*\(\s*OpDef\s*&\s*op\s*\)\s*\{(.*?)\n\}\s*\)\s*;", re.DOTALL)
SETS = r"\bop\s*\.\s*%s\s*=\s*(" + STRING + r")\s*;"
FORMULA = re.compile(r"DNL_(UNARY|BINARY)\((\w+)\)")
INFO = r"struct %s \{\s*static constexpr FormulaInfo info = \{\s*(" + STRING + r"),\s*(" + STRING + r")(.*?)\};"
ATTR = re.compile(r'\{\s*"(\w+)"\s*,\s*([-+.\w]+?)f?\s*(,\s*true)?\}')
COMMENT = re.compile(r"^\s*//.*$", re.MULTILINE)


@dataclass
class Param:
    name: str
    type: str
    member: bool
    default: str | None


@dataclass
class Entry:
    name: str
    params: list[Param]
    doc: str
    internal: bool = False


WIDTH = 112


def wrapped(doc: str) -> str:
    """With lines short enough for a terminal."""
    return "\n".join(textwrap.fill(line, WIDTH, break_on_hyphens=False) for line in doc.split("\n"))


def joined(literals: str) -> str:
    """The value of adjacent C++ string literals."""
    return "".join(ast.literal_eval(m) for m in re.findall(r'"(?:[^"\\]|\\.)*"', literals))


def parse(signature: str, doc: str) -> Entry:
    name, rest = signature.split("(", 1)
    params = []
    # Commas inside a default such as (1, 0) do not separate parameters.
    for part in filter(None, (p.strip() for p in re.split(r",(?![^(\[]*[)\]])", rest.rsplit(")", 1)[0]))):
        left, _, default = part.partition("=")
        pname, kind = (s.strip() for s in left.split(":"))
        params.append(Param(pname, kind.rstrip("*"), kind.endswith("*") or kind == "seed", default.strip() or None))
    return Entry(name, params, doc, name.startswith("_"))


# What the docs of elementwise formulas have in common.
SHAPES = {
    "UNARY": "Any shape; the result has the same shape.",
    "BINARY": "Shapes must be equal or broadcast: dims are aligned from the first, and a dim that is missing or 1 is repeated. So is "
    "a batch size of 1. ValueError otherwise.",
}


def formulas(text: str) -> list[Entry]:
    """Entries of the elementwise formulas: FormulaInfo{name, doc, {attributes}, internal}."""
    out = []
    for kind, struct in FORMULA.findall(text):
        match = re.search(INFO % struct, text, re.DOTALL)
        if match is None:
            continue  # the macro is only talked about
        name, doc, rest = joined(match[1]), joined(match[2]) + "\n\n" + SHAPES[kind], match[3]
        params = [Param(p, "expr", False, None) for p in ("x", "y")[: 1 if kind == "UNARY" else 2]]
        params += [Param(a, "float", True, d) for a, d, _ in ATTR.findall(rest)]
        out.append(Entry(name, params, doc, "kInternal" in rest))
    return out


def structural(path: Path, text: str) -> list[Entry]:
    """Entries of a file of ops: register_op([](OpDef& op) { op.signature = "..."; op.doc = "..."; ... })."""
    out = []
    for body in ENTRY.findall(text):
        found = {field: re.search(SETS % field, body) for field in ("signature", "doc")}
        texts = [joined(match[1]) for match in found.values() if match]
        if len(texts) < len(found):
            raise SystemExit(f"{path}: an entry sets op.signature and op.doc to strings; got\n{body[:200]}")
        out.append(parse(*texts))
    at_hand = len(re.findall(r"(?<!return )\bregister_op\s*\(", text))  # formulas return theirs
    if len(out) != at_hand:
        raise SystemExit(f"{path}: {at_hand} entries are registered and {len(out)} can be read")
    return out


def entries(cext: Path) -> list[Entry]:
    """All op entries, in order of name."""
    found = {}
    for path in [*sorted((cext / "ops").glob("*.cc")), *sorted((cext / "kernels").glob("formulas*.h"))]:
        text = COMMENT.sub("", path.read_text())
        if path.suffix == ".h":
            new = formulas(text)
        else:
            new = structural(path, text)
        for entry in new:
            if entry.name in found:
                raise SystemExit(f"{path}: op {entry.name} has two entries")
            found[entry.name] = entry
    return [found[name] for name in sorted(found)]


WRITE = {
    "int": ["_push_int({buf}, {name}, {where})"],
    "size": ["_push_int({buf}, _batch_size({name}), {where})"],
    "bool": ["_push_int({buf}, 1 if _truth({name}, {where}) else 0, {where})"],
    "float": ["_push_float({buf}, {name}, {where})"],
    "ints": ["_push_ints({buf}, {name}, {where})"],
    "floats": ["_push_floats({buf}, {name}, {where})"],
    "dims": ["_push_ints({buf}, {name}, {where})"],
    "index": ["_push_index({buf}, {name}, {where})"],
    "seed": ["_push_seed(g_, {buf})"],
}


def function_name(entry: Entry) -> str:
    """Internal ops get a leading underscore."""
    return entry.name if entry.name.startswith("_") or not entry.internal else "_" + entry.name


def function(entry: Entry) -> str:
    """The Cython function of one op."""
    shown = [p for p in entry.params if p.type != "seed"]
    head = ", ".join(p.name + (f"={p.default}" if p.default is not None else "") for p in shown)
    # Plain builtin functions: calls are faster than of Cython's own kind; the first line of the docstring is what
    # inspect.signature() reads.
    doc = f"{function_name(entry)}({head})\n--\n\n{wrapped(entry.doc)}"
    lines = [
        "@cython.binding(False)",
        "@cython.embedsignature(False)",
        f"def {function_name(entry)}({head}):",
        f"    {doc!r}",
    ]
    args = [p for p in entry.params if p.type in ("expr", "exprs")]
    attrs = [p for p in entry.params if p.type not in ("expr", "exprs")]
    if [p.type for p in args] == ["expr"] and not attrs:
        return "\n".join([*lines, f"    return _op1(OP_{entry.name}, {args[0].name})"]) + "\n"
    if [p.type for p in args] == ["expr", "expr"] and not attrs:
        return "\n".join([*lines, f"    return _op2(OP_{entry.name}, {args[0].name}, {args[1].name})"]) + "\n"
    lines.append("    cdef ComputationGraph g_ = _current()")  # no parameter is named so
    for p in args:
        if p.type == "exprs":
            lines.append(f"    {p.name} = _as_sequence({p.name}, '{entry.name}')")
    lines += [f"    {p.name} = _listed({p.name})" for p in attrs if p.type in ("ints", "dims", "floats", "index")]
    lines += [
        "    cdef uint32_t turn_ = g_.next_turn()",
        "    g_.args.clear()",
        "    g_.keys.clear()",
        "    g_.members.clear()",
    ]
    for p in args:
        if p.type == "expr":
            lines.append(f"    g_.args.push_back(_arg_of(OP_{entry.name}, g_, {p.name}))")
        else:
            lines.append(f"    _push_args(OP_{entry.name}, g_, {p.name})")
    for p in attrs:
        buf = "g_.members" if p.member else "g_.keys"
        where = repr(f"[{entry.name.lstrip('_')}] {p.name}")
        lines += ["    " + line.format(buf=buf, name=p.name, where=where) for line in WRITE[p.type]]
    lines.append(f"    return _op_of_turn(g_, OP_{entry.name}, turn_)")
    return "\n".join(lines) + "\n"


STRUCT = r"^struct %s \{\n(.*?)^\};"
SETTING = re.compile(r"^ *([\w ]+?\*?) (\w+) = ([^;]+); *(?:// (.*))?$")
# C++, Cython, Python
SETTING_TYPES = {
    "bool": ("bint", "bool"),
    "int": ("int", "int"),
    "u32": ("uint32_t", "int"),
    "u64": ("uint64_t", "int"),
    "const char*": ("str", "str"),
    "Strategy": ("str", "str"),
}


@dataclass
class Setting:
    name: str
    type: str
    default: bool | int | str
    internal: bool
    engine: bool


def settings(cext: Path) -> list[Setting]:
    """The settings that cext/exec/options.h declares."""
    text, out = (cext / "exec" / "options.h").read_text(), []
    for struct in ("EngineSettings", "GraphSettings"):
        match = re.search(STRUCT % struct, text, re.DOTALL | re.MULTILINE)
        if match is None:
            raise SystemExit(f"options.h: struct {struct} is needed")
        for line in match[1].splitlines():
            field = SETTING.match(line)
            if field is None or field[1] not in SETTING_TYPES:
                raise SystemExit(
                    f"options.h: a setting is 'type name = default;  // what it does', got {line.strip()!r}"
                )
            value = field[3].strip().removeprefix("Strategy::").lower()
            default = ast.literal_eval({"true": "True", "false": "False", "greedy": "'greedy'"}.get(value, value))
            internal = (field[4] or "").startswith("internal")
            out.append(Setting(field[2], field[1], default, internal, struct == "EngineSettings"))
    return out


def settings_table(cext: Path) -> str:
    """The base of class Settings, what a graph takes over, and what dynet_lite/config.py reads."""
    found = settings(cext)
    taken = [s for s in found if s.engine and s.type != "Strategy"]
    lines = ["# Generated by cext/bindings/generate.py from cext/exec/options.h. Do not edit.", ""]
    lines += ['cdef extern from "exec/options.h" namespace "dnl":', "    cdef cppclass EngineSettings:"]
    lines += [f"        {SETTING_TYPES[s.type][0].replace('bint', 'cbool')} {s.name}" for s in taken]
    lines += ["", "cdef class SettingsTable:"]
    lines += [f"    cdef public {SETTING_TYPES[s.type][0]} {s.name}" for s in found]
    lines += ["", "    def __cinit__(self):"]
    lines += [f"        self.{s.name} = {s.default!r}" for s in found]
    lines += ["", "cdef _take_engine_settings(EngineSettings* to, SettingsTable settings):"]
    lines += [f"    to.{s.name} = settings.{s.name}" for s in taken]
    rows = "".join(f"    ({s.name!r}, {s.default!r}, {s.internal}),\n" for s in found)
    return "\n".join([*lines, "", f"# Name, default, and whether it is hidden from users.\nSETTINGS = (\n{rows})\n"])


def write(path: Path, text: str) -> None:
    """Left alone when nothing changed."""
    if not path.exists() or path.read_text() != text:
        path.write_text(text)


def generate(ops_dir: Path, out_dir: Path) -> None:
    """Write ops.pxi and settings_table.pxi."""
    write(Path(out_dir) / "settings_table.pxi", settings_table(Path(ops_dir).parent))
    all_entries = entries(Path(ops_dir).parent)
    text = ["# Generated by cext/bindings/generate.py from the op entries. Do not edit.", ""]
    text += [f"cdef OpId OP_{e.name} = op_by_name(b'{e.name}')" for e in all_entries]
    text += ["", ""] + [function(e) + "\n" for e in all_entries]
    for variable, internal in (("OP_NAMES", False), ("INTERNAL_OP_NAMES", True)):
        names = ", ".join(repr(e.name) for e in all_entries if e.internal == internal)
        text.append(f"{variable} = ({names},)\n")
    write(Path(out_dir) / "ops.pxi", "\n".join(text))


STUB_TYPES = {
    "expr": "_Operand",
    "exprs": "Iterable[_Operand]",
    "int": "int",
    "size": "int",
    "bool": "bool",
    "float": "float",
    "ints": "Iterable[int]",
    "floats": "Iterable[float]",
    "dims": "int | Iterable[int]",
    "index": "int | Iterable[int]",
}


def stub_function(entry: Entry) -> str:
    """The typed signature of one op, with its docstring."""
    shown = [p for p in entry.params if p.type != "seed"]
    head = ", ".join(
        f"{p.name}: {STUB_TYPES[p.type]}" + (f" = {p.default}" if p.default is not None else "") for p in shown
    )
    doc = "\n".join(("    " + line.strip()).rstrip() for line in wrapped(entry.doc).strip().splitlines()).strip()
    doc = doc.replace("\\", "\\\\").replace('"""', '\\"\\"\\"')
    return f'def {function_name(entry)}({head}) -> Expression:\n    """{doc}"""\n'


def public_names(bindings: Path) -> list[str]:
    """The names in _core.__all__ that are not ops, from _core.pyx."""
    match = re.search(r"__all__ = (\[.*?\]) \+ list\(OP_NAMES\)", (bindings / "_core.pyx").read_text(), re.DOTALL)
    if match is None:
        raise SystemExit("_core.pyx: __all__ = [...] + list(OP_NAMES) is needed")
    names: list[str] = ast.literal_eval(match[1])
    return names


def stub(cext: Path) -> str:
    """The text of dynet_lite/_core.pyi."""
    bindings = cext / "bindings"
    all_entries = entries(cext)
    names = public_names(bindings) + [e.name for e in all_entries if not e.internal]
    listed = "__all__ = [\n" + "".join(f'    "{name}",\n' for name in names) + "]\n"
    attributes = "\n".join(f"    {s.name}: {SETTING_TYPES[s.type][1]}" for s in settings(cext))
    head = (bindings / "core_head.pyi").read_text().replace("    # what stands in cext/exec/options.h", attributes)
    return "\n".join([head, listed, *map(stub_function, all_entries)])


def write_stub(root: Path) -> None:
    """Write dynet_lite/_core.pyi."""
    write(root / "dynet_lite" / "_core.pyi", stub(root / "cext"))


if __name__ == "__main__":
    write_stub(Path(__file__).resolve().parents[2])
