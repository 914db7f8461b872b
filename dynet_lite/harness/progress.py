"""A progress bar: on a terminal and in a notebook, and nowhere else."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable
from typing import Any

with warnings.catch_warnings():  # without ipywidgets it warns, and shows text
    warnings.simplefilter("ignore")
    from tqdm.auto import tqdm

__all__ = ["bar"]


def in_notebook() -> bool:
    """Whether this process is the kernel of a notebook."""
    ask = getattr(sys.modules.get("IPython"), "get_ipython", None)
    return type(ask()).__name__ == "ZMQInteractiveShell" if ask else False


def bar(items: Iterable[Any], quiet: bool = False, **about: Any) -> Any:
    """The items, with a bar that goes along and then goes away; `about` is tqdm's."""
    hidden = True if quiet else False if in_notebook() else None  # None: unless stderr is a terminal
    return tqdm(items, leave=False, disable=hidden, **about)
