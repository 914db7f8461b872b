"""Files of parameters in DyNet's text format, read and written exactly; dy.save and dy.load.

A file is a run of entries: a header line ``#Parameter# NAME DIM BYTES GRAD`` (or ``#LookupParameter#``), a line of
values, and with FULL_GRAD a line of gradients; column-major, 16 characters a number. dy.save writes ``base.data`` (such
a file) and ``base.meta`` (a run of pickles that name the objects: metas.py).

A file is written beside its target and then moved there (files.py); what is read is checked in full (numbers present, finite,
dims as they should be) before any parameter changes.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Iterator
from functools import partial
from math import prod
from typing import Any

import numpy as np

from dynet_lite._core import LookupParameters, Parameters, read_decimals, write_decimals
from dynet_lite.compat.old_names import Saveable
from dynet_lite.errors import MissingFileError, ModelFileError
from dynet_lite.files import appending, read_pair, replacing, replacing_pair
from dynet_lite.metas import dump_meta, load_metas
from dynet_lite.told import told

__all__ = [
    "load",
    "load_generator",
    "save",
]

Shape = tuple[int, ...]
Array = np.ndarray[Any, np.dtype[np.float32]]
Entries = list[tuple[Any, str]]  # parameters, with their names in the file
KINDS: dict[bytes, type] = {b"#Parameter#": Parameters, b"#LookupParameter#": LookupParameters}
WIDTH = 16
GRADS = (b"ZERO_GRAD", b"FULL_GRAD")
DIM = re.compile(r"\{(\d{1,10}(?:,\d{1,10})*)(?:X(\d{1,10}))?\}")


# ---- writing -------------------------------------------------------------------------------------------------------


def flat(array: Array, is_lookup: bool) -> Array:
    """Numbers in the file's order: column-major, the rows of a table last."""
    return (np.moveaxis(array, 0, -1) if is_lookup else array).ravel(order="F")


def write_entry(f: Any, p: Parameters | LookupParameters, name: str) -> None:
    """One entry. ValueError when a number is not finite: such a file could not be read again."""
    is_lookup = isinstance(p, LookupParameters)
    values = flat(p._values(), is_lookup)
    if not np.isfinite(values).all():
        raise ValueError(f"[save] {p.name()} has NaN or infinity; nothing was written")
    grad = flat(p._grads(), is_lookup)
    full = bool(grad.any()) and bool(np.isfinite(grad).all())
    shape = p.shape()
    dims = (*shape[1:], shape[0]) if is_lookup else shape
    size = (WIDTH * values.size + 1) * (2 if full else 1)
    kind = "LookupParameter" if is_lookup else "Parameter"
    dim = "{" + ",".join(map(str, dims)) + "}"
    f.write(f"#{kind}# {name} {dim} {size} {'FULL_GRAD' if full else 'ZERO_GRAD'}\n".encode())
    for line in (values, grad) if full else (values,):
        f.write(write_decimals(np.ascontiguousarray(line)))
        f.write(b"\n")


def checked_key(key: str) -> str:
    """A name for the file given by the user."""
    if not isinstance(key, str):
        raise TypeError(f"[save] a key is text; got {type(key).__name__}")
    if not key.startswith("/") or len(key) < 2 or " " in key or "#" in key or not key.isprintable():
        raise ValueError(
            f"[save] a key begins with '/' and holds no blank, no control character and no '#'; got {key!r}"
        )
    return key


def write_entries(fname: Any, entries: Iterable[tuple[Any, str]], append: bool) -> None:
    with (appending if append else replacing)(fname) as f:
        for p, name in entries:
            write_entry(f, p, name)


def collection_entries(collection: Any, name: str = "") -> Entries:
    """All parameters with their names in the file; weights first, then tables."""
    own = collection.name()
    prefix = checked_key(name).rstrip("/") + "/" if name else own
    members = [*collection.parameters_list(), *collection.lookup_parameters_list()]
    # A parameter from another file may have a name from outside.
    return [(p, prefix + p.name()[len(own) :] if p.name().startswith(own) else p.name()) for p in members]


def save_collection(collection: Any, fname: Any, name: str = "", append: bool = False) -> None:
    """ParameterCollection.save()."""
    write_entries(fname, collection_entries(collection, name), append)


@partial(told, name="save")
def save_parameter(p: Any, fname: Any, key: str = "", append: bool = False) -> None:
    """Parameters.save()."""
    write_entries(fname, [(p, checked_key(key) if key else p.name())], append)


# ---- reading -------------------------------------------------------------------------------------------------------


class Entry:
    """One entry of a file: what its header says, and where its values lie."""

    def __init__(self, kind: type, name: str, dims: Shape, lines: list[tuple[int, int]]) -> None:
        self.kind, self.name, self.dims, self.lines = kind, name, dims, lines

    @property
    def shape(self) -> Shape:
        """As a parameter's shape(): the rows of a table first."""
        return (self.dims[-1], *self.dims[:-1]) if self.kind is LookupParameters else self.dims

    def fits(self, shape: Shape) -> bool:
        """Are these the dims of that parameter? A last dim of 1 more or less does not matter."""
        mine, theirs = list(self.shape), list(shape)
        for dims in (mine, theirs):
            while len(dims) > 1 and dims[-1] == 1:
                dims.pop()
        return mine == theirs


def header_words(line: bytes) -> list[bytes]:
    """[kind, NAME, DIM, BYTES, GRAD] of a header: NAME may hold blanks, GRAD may be missing."""
    words = line.split()
    if words and words[-1].isdigit():
        words.append(GRADS[0])
    if len(words) > 5:
        rest = line.rstrip().removesuffix(words[-1]).rstrip().removesuffix(words[-2]).rstrip().removesuffix(words[-3])
        words[1:-3] = [rest.strip().removeprefix(words[0]).strip()]
    return words


class TextFile:
    """A file of parameters (or what was read from it) and the index of its entries. ModelFileError when it is not one."""

    def __init__(self, fname: Any, data: bytes | None = None) -> None:
        self.path = os.fsdecode(fname)
        try:
            if data is None:
                with open(self.path, "rb") as f:
                    data = f.read()
        except FileNotFoundError as error:
            raise MissingFileError(error.errno, error.strerror, error.filename) from None
        self.data = data
        self.entries: list[Entry] = []
        at = 0
        while at < len(self.data):
            if self.data[at] in b"\r\n":
                at += 1
            else:
                at = self.read_entry(at)

    def fail(self, what: str) -> ModelFileError:
        return ModelFileError(f"[populate] {self.path}: {what}")

    def read_entry(self, at: int) -> int:
        """Index the entry whose header begins at `at`; the place after it."""
        line, after = self.line_at(at)
        words = header_words(self.data[at:line])
        if not words or words[0] not in KINDS or len(words) != 5:
            if self.data.startswith(b"22 serialization::archive"):
                raise self.fail("a Boost archive of DyNet 1; write it again with DyNet 2 first")
            raise self.fail(f"a header '#Parameter# NAME DIM BYTES GRAD' is needed at byte {at}; "
                            f"found {self.data[at : min(line, at + 60)]!r}")  # fmt: skip
        name = words[1].decode("utf-8", "replace")
        match = DIM.fullmatch(words[2].decode("ascii", "replace"))
        if match is None or int(match[2] or 1) != 1:
            raise self.fail(f"entry {name}: dims such as {{2,3}} are needed; got {words[2]!r}")
        dims = tuple(int(d) for d in match[1].split(","))
        if len(dims) > 8 or (KINDS[words[0]] is LookupParameters and len(dims) < 2):
            raise self.fail(f"entry {name}: dims {match[0]} are not possible")
        grad = words[4]
        if grad not in GRADS:
            raise self.fail(f"entry {name}: ZERO_GRAD or FULL_GRAD is needed; got {grad!r}")
        if not words[3].isdigit():
            raise self.fail(f"entry {name}: a number of bytes is needed; got {words[3]!r}")
        lines, width, body = [], WIDTH * prod(dims), after
        for _ in range(2 if grad == b"FULL_GRAD" else 1):
            # Most lines have the length that the format gives them, so that it need not be searched.
            if self.data[after + width : after + width + 1] == b"\n":
                begin, end, after = after, after + width, after + width + 1
            else:
                begin = after
                end, after = self.line_at(after)
            lines.append((begin, end))
        if after == len(self.data) and self.data[-1:] != b"\n" and after - body < int(words[3]):
            raise self.fail(f"entry {name} is cut: {words[3].decode()} bytes are needed; there are {after - body}")
        self.entries.append(Entry(KINDS[words[0]], name, dims, lines))
        return after

    def line_at(self, at: int) -> tuple[int, int]:
        """(end of the line, beginning of the next)."""
        end = self.data.find(b"\n", at)
        return (len(self.data), len(self.data)) if end < 0 else (end, end + 1)

    def arrays(self, entry: Entry) -> list[Array]:
        """[values] or [values, gradient] of an entry, each of its shape; checked."""
        out = []
        for begin, end in entry.lines:
            values = self.line_values(entry, begin, end).reshape(entry.dims, order="F")
            out.append(np.moveaxis(values, -1, 0) if entry.kind is LookupParameters else values)
        return out

    def line_values(self, entry: Entry, begin: int, end: int) -> Array:
        """The numbers of one line; as many as the dims say, all finite."""
        n = prod(entry.dims)
        values = read_decimals(self.data, begin, n) if end - begin == WIDTH * n else None
        if values is None:
            words = self.data[begin:end].split()
            if len(words) != n:
                raise self.fail(f"entry {entry.name}: {n} numbers are needed; there are {len(words)} (a damaged file?)")
            try:
                if b"_" in self.data[begin:end]:
                    raise ValueError("'_' in a number")
                with np.errstate(over="ignore"):
                    values = np.array([float(word) for word in words], dtype=np.float32)
            except ValueError as e:
                raise self.fail(f"entry {entry.name}: {e}") from None
        if not np.isfinite(values).all():
            raise self.fail(f"entry {entry.name} has NaN or infinity")
        return values

    def entry(self, key: str, kind: type) -> Entry:
        """The entry of this name and kind."""
        for e in self.entries:
            if e.name == key and e.kind is kind:
                return e
        there = ", ".join(e.name for e in self.entries[:8]) or "nothing"
        raise self.fail(f"Could not find key {key} among the {'tables' if kind is LookupParameters else 'weights'}; "
                        f"the file has {there}{', ...' if len(self.entries) > 8 else ''}")  # fmt: skip

    def under(self, key: str) -> list[Entry]:
        """Entries whose names begin with key: whole parts of a name if there are any, else any beginning."""
        if not isinstance(key, str):
            raise TypeError(f"[populate] a key is text; got {type(key).__name__}")
        folder = key.rstrip("/") + "/"
        found = [e for e in self.entries if e.name == key or e.name.startswith(folder)]
        return found or [e for e in self.entries if e.name.startswith(key)]


def assign(p: Any, arrays: list[Array]) -> None:
    """Values, and the gradient if there is one, into a parameter."""
    is_lookup = isinstance(p, LookupParameters)
    values = arrays[0].reshape(p.shape(), order="F")
    p.zero_gradient()
    if is_lookup:
        p.init_from_array(values)
    else:
        p.set_value(values)
    if len(arrays) > 1:
        grad = arrays[1].reshape(p.shape(), order="F")
        if is_lookup:
            rows = np.flatnonzero(grad.reshape(grad.shape[0], -1).any(axis=1))
            p.set_rows_grad(rows, grad[rows])
        else:
            p.set_grad(grad)


def fill(file: TextFile, entries: list[Entry], collection: Any) -> None:
    """Entries into a collection, in order, weights and tables apart; all or nothing."""
    pairs: list[tuple[Any, Entry]] = []
    wanted = {Parameters: collection.parameters_list(), LookupParameters: collection.lookup_parameters_list()}
    have = {kind: [e for e in entries if e.kind is kind] for kind in wanted}
    if any(len(have[kind]) != len(wanted[kind]) for kind in wanted):
        counts = ["/".join(str(len(lists[kind])) for kind in wanted) for lists in (have, wanted)]
        raise file.fail(f"the number of weights/tables in the file ({counts[0]}) is not that of the collection "
                        f"{collection.name()} ({counts[1]})")  # fmt: skip
    for kind, members in wanted.items():
        for p, e in zip(members, have[kind], strict=True):
            if not e.fits(p.shape()):
                raise file.fail(f"entry {e.name} has shape {e.shape}; {p.name()} needs {p.shape()}")
            pairs.append((p, e))
    values = [file.arrays(e) for _, e in pairs]
    for (p, _), arrays in zip(pairs, values, strict=True):
        assign(p, arrays)


def populate_collection(collection: Any, fname: Any, key: str = "") -> None:
    """ParameterCollection.populate()."""
    file = TextFile(fname)
    fill(file, file.under(key) if key else file.entries, collection)


@partial(told, name="populate")
def populate_parameter(p: Any, fname: Any, key: str = "") -> None:
    """Parameters.populate()."""
    file = TextFile(fname)
    entry = file.entry(key or p.name(), LookupParameters if isinstance(p, LookupParameters) else Parameters)
    if not entry.fits(p.shape()):
        raise file.fail(f"entry {entry.name} has shape {entry.shape}; {p.name()} needs {p.shape()}")
    assign(p, file.arrays(entry))


def load_parameter(collection: Any, fname: Any, key: str, kind: type) -> Any:
    """ParameterCollection.load_param() and load_lookup_param()."""
    file = TextFile(fname)
    return add_entry(collection, file, file.entry(key, kind))


def add_entry(collection: Any, file: TextFile, entry: Entry) -> Any:
    """A new parameter of the collection out of an entry."""
    arrays = file.arrays(entry)
    add = collection.add_lookup_parameters if entry.kind is LookupParameters else collection.add_parameters
    last = entry.name.rstrip("/").rsplit("/", 1)[-1]
    # It keeps its name, so that a program that saves it again finds it by the same key.
    p = add(entry.shape, init=0, name="" if re.fullmatch(r"_\d+", last) and last in collection._taken else last)
    assign(p, arrays)
    return p


# ---- dy.save, dy.load ----------------------------------------------------------------------------------------------


def described(obj: Any) -> tuple[tuple[Any, ...], list[Entries]]:
    """What the .meta file says of an object, and its parameters with their names in the .data file, by collection."""
    if isinstance(obj, (Parameters, LookupParameters)):
        return ("Parameters" if isinstance(obj, Parameters) else "LookupParameters", obj.name()), [[(obj, obj.name())]]
    if all(hasattr(obj, what) for what in ("param_collection", "spec", "from_spec")):
        meta = (type(obj), obj.spec, obj.param_collection().name())
        return meta, [collection_entries(obj.param_collection())]
    if isinstance(obj, Saveable):
        state, components = obj._described()
        parts = [described(part) for part in components]
        meta = (type(obj), state, [about for about, _ in parts])
        return meta, [entries for _, theirs in parts for entries in theirs]
    raise TypeError(f"[save] a parameter, or an object with param_collection(), spec and from_spec() is needed; "
                    f"got {type(obj).__name__}")  # fmt: skip


def in_order(groups: list[Entries]) -> dict[str, Any]:
    """The entries of all groups by name, each once: load() fills a collection in the order in which its entries stand.

    A group may be part of another, as a builder's weight is that is saved before the builder; the larger one then stands there.
    """
    whole = {name: group for group in sorted(groups, key=len) for _, name in group}
    entries: dict[str, Any] = {}
    for group in groups:
        for p, name in (*(whole[group[0][1]] if group else ()), *group):
            if entries.setdefault(name, p) is not p:
                raise ValueError(f"[save] two parameters have the name {name}: they belong to different collections")
    return entries


def save(basename: Any, objects: Any) -> None:
    """Write objects to ``basename.data`` and ``basename.meta``, for load().

    objects: one or an iterable of Parameters, LookupParameters, builders, and objects with param_collection(), a
    property ``spec`` and a class method from_spec(spec, collection). DyNet 1's Saveable will do, too.
    """
    if isinstance(objects, (Parameters, LookupParameters, Saveable)) or hasattr(objects, "param_collection"):
        objects = [objects]
    metas: list[tuple[Any, ...]] = []
    groups: list[Entries] = []
    for obj in objects:
        meta, mine = described(obj)
        metas.append(meta)
        groups += mine
    entries = in_order(groups)
    meta_file = b"".join(dump_meta(item) for item in metas)
    base = os.fsdecode(basename)
    with replacing_pair(base + ".data", base + ".meta") as (data, about):
        for name, p in entries.items():
            write_entry(data, p, name)
        about.write(meta_file)


def _check_collection(params: Any) -> None:
    if not hasattr(params, "parameters_list"):
        raise TypeError(f"[load] a ParameterCollection is needed; got {type(params).__name__}")


def load_generator(basename: Any, params: Any) -> Iterator[Any]:
    """The objects that save() wrote, one by one, made as parts of the collection ``params``."""
    base = os.fsdecode(basename)
    _check_collection(params)
    try:
        data, about = read_pair(base + ".data", base + ".meta")
    except FileNotFoundError as error:
        raise MissingFileError(error.errno, error.strerror, error.filename) from None
    metas, file = load_metas(about, base + ".meta"), TextFile(base + ".data", data)
    return map(told(lambda item: _made(item, file, params), name="load"), metas)


def _made(item: Any, file: TextFile, params: Any) -> Any:
    """The object that an item of the .meta file names, as a part of the collection; unless that fails."""
    mark = params._mark()
    try:
        if len(item) == 2:
            kind = getattr(sys.modules["dynet_lite"], item[0])
            return add_entry(params, file, file.entry(item[1], kind))
        if type(item[2]) is list:
            return Saveable._restored(item[0], item[1], [_made(part, file, params) for part in item[2]])
        obj = item[0].from_spec(item[1], params)
        fill(file, file.under(item[2]) if item[2] != "/" else file.entries, obj.param_collection())
        return obj
    except BaseException:
        params._rollback(mark)
        raise


def load(basename: Any, params: Any) -> list[Any]:
    """The objects that save() wrote, made as parts of the collection ``params``.

    ModelFileError when a file is damaged or does not fit; the collection is then as it was.
    """
    _check_collection(params)
    mark = params._mark()
    try:
        return list(load_generator(basename, params))
    except BaseException:
        params._rollback(mark)
        raise
