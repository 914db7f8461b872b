"""How a recipe was called, for its help pages: as a program, or by its name through `python -m dynet_lite`."""

from __future__ import annotations

import re
import sys
from pathlib import Path

__all__ = ["by_name", "command", "shown", "then"]

_name = ""  # of the included recipe


def by_name(name: str) -> None:
    """Called when `python -m dynet_lite train NAME` runs an included recipe; "" for a file."""
    global _name
    _name = name


def command(word: str = "train") -> str:
    """What a user types before the options."""
    if _name:
        return f"python -m dynet_lite {word} {_name}"
    return f"{Path(sys.argv[0]).name} {'' if word == 'train' else word}".rstrip()


def then() -> str:
    """How to go on with a saved model."""
    if _name:
        return "To use a saved model, write `predict`, `evaluate` or `export` in place of `train`, with --help for their options."
    return "To use a saved model: `predict --load FILE INPUT`; also `evaluate` and `export`. Each has its own --help."


def shown(about: str) -> str:
    """The text of a recipe's help. Its examples are for a clone; somebody without one gets those that work there."""
    if not _name:
        return about
    about = re.sub(r"python recipes/(\w+)\.py (predict|evaluate|export)\b", r"python -m dynet_lite \2 \1", about)
    about = re.sub(r"python recipes/(\w+)\.py", r"python -m dynet_lite train \1", about)
    examples = [line.partition(" # ")[0].rstrip() for line in about.splitlines() if line.startswith("    python ")]
    width = max((len(line) for line in examples if len(line) < 80), default=0)
    return re.sub(r"^(    python .*?) +# ", lambda found: f"{found[1]:{width}}  # ", about, flags=re.MULTILINE)
