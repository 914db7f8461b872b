"""Values of Python as JSON and back: tuples, arrays of numbers, classes by name, infinite numbers.

JSON's own values stand for themselves; a dict, and what JSON lacks, becomes a dict with one key, which says what it is:
{"tuple": [...]}, {"dict": [[key, value], ...]}, {"array": ["<u4", [624], [...]]}, {"class": "module:name"},
{"number": "inf"}. Reading makes such values and nothing else; it imports and calls nothing.
Who may import: checkpoint.py.
"""

from __future__ import annotations

import math
import sys
from typing import Any

import numpy as np

OURS = "dynet_lite"
KINDS = "biuf"


class ClassName(str):
    """The name of a class, "module:name", in a value that was unpacked."""

    __slots__ = ()


def name_of(cls: type) -> str:
    """A class as "module:name". All of ours are found in dynet_lite itself."""
    module = cls.__module__
    return f"{OURS if module.split('.')[0] == OURS else module}:{cls.__name__}"


def class_of(name: str) -> Any:
    """The class of this name, if its module has been imported and it can be built from a spec; else ValueError."""
    module, _, short = name.partition(":")
    cls = getattr(sys.modules.get(module), short, None)
    if not isinstance(cls, type) or not hasattr(cls, "from_spec"):
        hint = "" if module in sys.modules else f"; import {module} first"
        raise ValueError(f"{name} is not a class with from_spec(){hint}")
    return cls


def pack(value: Any) -> Any:
    """The JSON form of a value; TypeError when there is none, ValueError for NaN."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        if math.isnan(value):  # no two of them are equal, and builders are compared
            raise ValueError("[checkpoint] NaN cannot be kept")
        return float(value) if math.isfinite(value) else {"number": repr(float(value))}
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, list):
        return [pack(v) for v in value]
    if isinstance(value, tuple):
        return {"tuple": [pack(v) for v in value]}
    if isinstance(value, dict):
        return {"dict": [[pack(k), pack(v)] for k, v in value.items()]}
    if isinstance(value, np.ndarray) and value.dtype.kind in KINDS and np.isfinite(value).all():
        return {"array": [value.dtype.newbyteorder("<").str, list(value.shape), value.ravel().tolist()]}
    if isinstance(value, type):
        return {"class": name_of(value)}
    raise TypeError(f"[checkpoint] a {type(value).__name__} cannot be kept; numbers, text, tuples, lists, dicts, arrays and "
                    "classes can")  # fmt: skip


def unpack(value: Any, classes: bool = False) -> Any:
    """The reverse of pack(); ValueError when it is not of its making.

    Classes are looked up (class_of) if `classes`, else they are ClassNames.
    """
    if isinstance(value, list):
        return [unpack(v, classes) for v in value]
    if not isinstance(value, dict):
        return value
    if len(value) != 1:
        raise ValueError(f"a dict with one key is needed; got {sorted(value)}")
    ((kind, content),) = value.items()
    if kind == "tuple":
        return tuple(unpack(v, classes) for v in content)
    if kind == "dict":
        return {unpack(k, classes): unpack(v, classes) for k, v in content}
    if kind == "array":
        dtype, shape, numbers = content
        if not isinstance(dtype, str) or dtype[1:2] not in KINDS:
            raise ValueError(f"an array of numbers is needed; got {dtype!r}")
        return np.array(numbers, dtype=np.dtype(dtype).newbyteorder("=")).reshape(shape)
    if kind == "class" and isinstance(content, str):
        return class_of(content) if classes else ClassName(content)
    if kind == "number" and content in ("inf", "-inf"):
        return float(content)
    raise ValueError(f"{kind!r} is not known")
