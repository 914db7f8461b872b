"""Whether data fit a model that was made for other data: labels that it knows, and labels that it does not.

A recipe says which labels an example has (`gold`) and which ones its model can give (`known_labels`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from dynet_lite.errors import DataError

from .recipe import Recipe

__all__ = ["check_shared", "check_training"]

SHOWN = 6


def check_training(recipe: Recipe[Any, Any], train: Sequence[Any]) -> None:
    """DataError if the training data have labels that the loaded model cannot give."""
    known = set(recipe.known_labels())
    unknown = (
        {label: None for example in train for label in recipe.gold(example) if label not in known} if known else {}
    )
    if unknown:
        raise DataError(
            f"--load: expected training data with the {_plural(recipe.label_name)} of the model ({_shown(known)}), got also "
            f"{_shown(unknown)}; to learn these, train without --load"
        )


def check_shared(recipe: Recipe[Any, Any], examples: Sequence[Any], where: str) -> None:
    """DataError if there are labels in the data and the model can give none of them: a score would mean nothing."""
    known = set(recipe.known_labels())
    if not known:
        return
    found: dict[str, None] = {}
    for example in examples:
        for label in recipe.gold(example):
            if label in known:
                return
            found[label] = None
    if found:
        raise DataError(
            f"{where}: expected {_plural(recipe.label_name)} that the model knows ({_shown(known)}), got none of them but {_shown(found)}"
        )


def _plural(name: str) -> str:
    return name + ("es" if name.endswith("s") else "s")


def _shown(labels: Iterable[str]) -> str:
    """Some of the labels, and how many more there are."""
    names = sorted(labels)
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(map(repr, names[:SHOWN])) + more
