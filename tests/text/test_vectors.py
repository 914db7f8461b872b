"""Word vectors in the binary form of word2vec: rows with and without line ends, packed, for tables, damaged."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

import dynet_lite as dy
from dynet_lite.text import DataError, read_vectors

WORDS = ["the", "house", "Straße", "of", "the"]
NUMBERS = np.random.default_rng(3).standard_normal((5, 7)).astype("<f4")
# Bytes that look like ends of lines, blanks and digits are numbers, too.
NUMBERS[1, :3] = np.frombuffer(b"\n\n\n\n    1 2 ", dtype="<f4")


def binary(end: bytes = b"\n", header: bytes = b"5 7\n") -> bytes:
    return header + b"".join(
        word.encode() + b" " + row.tobytes() + end for word, row in zip(WORDS, NUMBERS, strict=True)
    )


@pytest.mark.parametrize("end", [b"\n", b""])
@pytest.mark.parametrize("packed", [False, True])
def test_binary_vectors(tmp_path: Path, end: bytes, packed: bool) -> None:
    path = tmp_path / "v.bin"
    path.write_bytes(gzip.compress(binary(end)) if packed else binary(end))
    found = read_vectors(path)
    assert found.words == ["the", "house", "Straße", "of"] and found.matrix.dtype == np.float32
    np.testing.assert_array_equal(found.matrix, NUMBERS[:4])
    some = read_vectors(path, keep={"of", "tree"})
    assert some.words == ["of"] and some.size == 7
    assert read_vectors(path, keep={"tree"}).matrix.shape == (0, 7)


def test_tables_take_binary_vectors(tmp_path: Path) -> None:
    path = tmp_path / "v.bin"
    path.write_bytes(binary())
    table = dy.ParameterCollection().add_lookup_parameters((3, 7))
    before = table.as_array()
    assert dy.fill_from_embeddings(table, path, {"house": 0, "tree": 1, "of": 2}) == 2
    np.testing.assert_array_equal(table.as_array()[[0, 2]], NUMBERS[[1, 3]])
    np.testing.assert_array_equal(table.as_array()[1], before[1])


def test_text_with_a_first_line_stays_text(tmp_path: Path) -> None:
    path = tmp_path / "v.txt"
    path.write_text("2 3\n12 1 2 3\n13 -1e-3 NaN x\n")
    with pytest.raises(DataError, match=r"v.txt:3: expected 3 numbers after '13'"):
        read_vectors(path)
    path.write_text("2 3\n1e5 1 2 3\n13 -1e-3 2.5E+1 .5\n")
    assert read_vectors(path).words == ["1e5", "13"]


@pytest.mark.parametrize(
    ("data", "what"),
    [
        (binary()[:-9], "word 5 of 5: expected 7 numbers after 'the', got 5 and the end of the file"),
        (binary(header=b"6 7\n"), "word 6 of 6: expected a word, got the end"),
        (binary(header=b"4 7\n"), "expected 4 words, got more"),
        (b"5 7\n", "word 1 of 5: expected a word, got the end"),
        (b"1 2\n\xff\xfe " + bytes(8), "word 1 of 1: expected UTF-8 text"),
        (b"1 2\na " + np.array([1, np.inf], "<f4").tobytes(), "word 1 of 1: expected finite numbers after 'a'"),
        (b"2 2\n" + b"\x01" * 20_000, "word 1 of 2: expected a word and a blank, got 10,000 bytes"),
        (b"2 0\nthe \n", ":1: expected numbers"),
        (gzip.compress(binary() * 50)[:-20], "a damaged one"),
    ],
)
def test_damaged_files(tmp_path: Path, data: bytes, what: str) -> None:
    path = tmp_path / "v.bin"
    path.write_bytes(data)
    with pytest.raises(DataError, match=what):
        read_vectors(path)


@pytest.mark.parametrize(("number", "what"), [("1_0", "expected 2 numbers"), ("1e39", "expected finite numbers")])
def test_numbers_that_no_table_takes(tmp_path: Path, number: str, what: str) -> None:
    path = tmp_path / "v.txt"
    path.write_text(f"the_house 1 2\na {number} 2\n")
    with pytest.raises(DataError, match=f"v.txt:2: {what} after 'a'"):
        read_vectors(path)


@pytest.mark.parametrize("header", ["", "2 3\n"])
@pytest.mark.parametrize("between", [" ", "\t"])
def test_tabs_are_as_good_as_blanks(tmp_path: Path, header: str, between: str) -> None:
    path = tmp_path / "v.txt"
    path.write_text(header + "".join(f"{word}\t1{between}2{between}3\n" for word in ("the", "dog")))
    found = read_vectors(path)
    assert found.words == ["the", "dog"] and found.matrix.tolist() == [[1, 2, 3]] * 2
    assert read_vectors(path, keep=()).size == 3
    path.write_text("\t 1 2 3\na\tb 1 2 3\n")
    assert read_vectors(path).words == ["\t", "a\tb"]
