"""Sentences without annotation, from each kind of file."""

from __future__ import annotations

import pytest

from dynet_lite.errors import DataError
from dynet_lite.text import read_words


@pytest.mark.parametrize(
    "name, content",
    [
        ("a.txt", "We left .\n\n Why ?\n"),
        ("a.ptb", "( (S (NP (PRP We)) (VP (VBD left) (NP (-NONE- *))) (. .)) )\n(X (WRB Why) (. ?))\n(S (-NONE- 0))\n"),
        ("a.sst", "(2 (2 We) (2 (2 left) (2 .)))\n(2 (2 Why) (2 ?))\n"),
        ("a.conllu", "".join(f"{i}\t{w}\t_\tX\t_\t_\t_\t_\t_\t_\n" for i, w in enumerate(["We", "left", "."], 1))
         + "\n" + "".join(f"{i}\t{w}\t_\tX\t_\t_\t_\t_\t_\t_\n" for i, w in enumerate(["Why", "?"], 1))),
    ],
)  # fmt: skip
def test_kinds_of_files(name, content, tmp_path):
    path = tmp_path / name
    path.write_text(content)
    assert read_words(path) == [["We", "left", "."], ["Why", "?"]]


def test_bad_bytes_are_named(tmp_path):
    path = tmp_path / "bad.txt"
    path.write_bytes(b"fine\n\xff\xfe\n")
    with pytest.raises(DataError, match=r"bad\.txt:2: expected UTF-8"):
        read_words(path)
