"""Corpora that come with NLTK.

NLTK is imported only when a corpus is asked for: it takes seconds and many programs never need it. Nothing is
downloaded here: a corpus that is not installed is a DataError that says how to get it.
"""

from __future__ import annotations

import os
import re
from typing import Any

from dynet_lite.errors import DataError

from .conllu import Sentence

__all__ = ["load_nltk_tagged", "read_nltk"]


def load_nltk_tagged(name: str) -> list[Sentence]:
    """The tagged sentences of an NLTK corpus ('treebank', 'conll2000', 'masc_tagged', ...).

    The tags are the corpus's own, in `Sentence.upos`. Traces and other empty elements (tag -NONE- in the Penn
    Treebank) are left out.
    """
    tagged = read_nltk(name, "tagged_sents", "tags; try 'treebank', 'brown' or 'conll2000'")
    kept = ([pair for pair in sentence if pair[1] != "-NONE-"] for sentence in tagged)
    sentences = [Sentence([w for w, _ in pairs], [tag for _, tag in pairs]) for pairs in kept if pairs]
    if not sentences:
        raise DataError(f"the NLTK corpus {name!r} holds no sentence")
    return sentences


def read_nltk(name: str, method: str, needs: str, *args: Any, **options: Any) -> list[Any]:
    """All that this method of the reader of the NLTK corpus `name` gives; the rest are arguments of the method.

    DataError when there is no such corpus, when it is not installed, and "has no {needs}" when its reader lacks the method.
    """
    import nltk  # type: ignore[import-untyped, unused-ignore]
    import nltk.corpus  # type: ignore[import-untyped, unused-ignore]

    _make_roots_absolute(nltk.data.path)
    reader = getattr(nltk.corpus, name, None)
    if reader is None:
        raise DataError(f"NLTK has no corpus named {name!r}; see https://www.nltk.org/nltk_data/")
    try:
        read = getattr(reader, method, None)
        if read is None:
            raise DataError(f"the NLTK corpus {name!r} has no {needs}")
        return list(read(*args, **options))
    except LookupError as error:
        if isinstance(error, (KeyError, IndexError)):
            raise
        found = re.search(r"nltk\.download\('([\w.-]+)'\)", str(error))
        package = found[1] if found else name
        if package != name:  # a corpus inside another one, or a model that cuts its text into sentences
            raise DataError(
                f"the NLTK corpus {name!r} needs {package!r}, which is not installed; "
                f"get it with 'python -m nltk.downloader {package}'"
            ) from None
        raise DataError(
            f"the NLTK corpus {name!r} is not installed; get it with 'python -m nltk.downloader {name}', "
            f"or set NLTK_DATA to a folder that has corpora/{name}"
        ) from None


def _make_roots_absolute(path: list[str]) -> None:
    """NLTK >= 3.10 reads only below absolute entries of nltk.data.path. Also adds NLTK_DATA if missing."""
    wanted = os.environ.get("NLTK_DATA", "").split(os.pathsep)
    for root in [*wanted, *path]:
        absolute = os.path.abspath(os.path.expanduser(root)) if root else ""
        if absolute and absolute not in path:
            path.append(absolute)
