"""Streams: the examples of the readers, mini-batches that need one window in memory, and going on at any place."""

from __future__ import annotations

import gzip
import random
import weakref
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from dynet_lite.text import (
    Conllu,
    DataError,
    Parallel,
    Plain,
    Stream,
    Tagged,
    pair_source,
    read_conllu,
    read_pair_files,
    read_parallel,
    read_words,
    records,
    streams,
    tagged_source,
    words_source,
)
from dynet_lite.text.records import Record

TREEBANK = Path(__file__).resolve().parents[2] / "data" / "treebank"
RNG = random.Random(4)
LINES = [" ".join(f"w{RNG.randrange(99)}" for _ in range(RNG.randrange(1, 30))) for _ in range(500)]


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    """500 sentences in three files, one of them packed; with empty lines, and a last line without an end."""
    (tmp_path / "a.txt").write_text("\n".join(LINES[:100]) + "\n\n \n")
    with gzip.open(tmp_path / "b.txt.gz", "wt") as file:
        file.write("\ufeff" + "\n".join(LINES[100:250]))
    (tmp_path / "c.txt").write_bytes("\r\n".join(LINES[250:]).encode())
    return [str(tmp_path / name) for name in ("a.txt", "b.txt.gz", "c.txt")]


def examples(batches: Any) -> list[list[Any]]:
    return [[record.example() for record in batch] for batch in batches]


def test_all_examples_in_order(files: list[str]) -> None:
    stream: Stream[list[str]] = Stream(files, Plain(), batch=7, window=3)
    assert list(stream) == [line.split() for line in LINES] == list(stream)
    assert len(stream) == 500 and stream.words == sum(len(line.split()) for line in LINES)
    assert (
        stream[3] == LINES[3].split() and stream[-1] == LINES[-1].split() and stream[248:252] == list(stream)[248:252]
    )
    with pytest.raises(IndexError):
        stream[500]
    assert examples(stream.batches(None)) == [list(stream)[i : i + 7] for i in range(0, 500, 7)]


@pytest.mark.parametrize("window", [1, 3, 100])
def test_minibatches_of_an_epoch(files: list[str], window: int) -> None:
    stream: Stream[list[str]] = Stream(files, Plain(), batch=7, window=window)
    first = examples(stream.batches(seed=5, epoch=1))
    assert Counter(map(str, sum(first, []))) == Counter(str(x.split()) for x in LINES)
    assert len(first) == len(stream.batches(5)) == 72 and all(len(batch) <= 7 for batch in first)
    assert examples(stream.batches(seed=5, epoch=1)) == first
    for other in (stream.batches(5, epoch=2), stream.batches(6)):
        assert examples(other) != first
    for k in range(0, len(first), window):  # what is in a window stays in it
        group = sum(first[k : k + window], [])
        assert sorted(map(str, group)) == sorted(str(x.split()) for x in LINES[7 * k : 7 * (k + window)])


def test_minibatches_hold_similar_lengths(files: list[str]) -> None:
    def spread(window: int) -> int:
        batches = Stream(files, Plain(), batch=10, window=window).batches(1)
        return sum(max(map(len, batch)) - min(map(len, batch)) for batch in batches)

    assert spread(25) < spread(1) / 5


def test_going_on_after_any_minibatch(files: list[str]) -> None:
    whole = examples(Stream(files, Plain(), batch=7, window=4).batches(3, epoch=2))
    for done in range(len(whole) + 2):
        rest = Stream(files, Plain(), batch=7, window=4).batches(3, epoch=2)[done:]
        assert len(rest) == max(0, len(whole) - done) and examples(rest) == whole[done:]
    assert examples(Stream(files, Plain(), batch=7, window=4).batches(3, 2)[5:][6:]) == whole[11:]
    with pytest.raises(TypeError, match=r"slices \[n:\]"):
        Stream(files, Plain(), batch=7).batches(3)[1:5]


def test_going_on_reads_from_the_window_alone(files: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    stream: Stream[list[str]] = Stream(files, Plain(), batch=7, window=4)
    assert len(stream) == 500
    read = []

    def counted(*args: Any) -> Any:
        for record, place in records.records(*args):
            read.append(record.number)
            yield record, place

    monkeypatch.setattr(streams, "records", counted)
    assert len(next(iter(stream.batches(3)[50:]))) == 7
    assert len(read) == 28


def test_one_window_is_in_memory(files: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Counted: records that are alive at the same time."""
    alive: weakref.WeakSet[Any] = weakref.WeakSet()

    class Kept(Record):
        """Has weak references, as a class with slots has not."""

    def counted(*args: Any) -> Any:
        for record, place in records.records(*args):
            kept = Kept(record.lines, record.size, record.names, record.number, record.parse)
            alive.add(kept)
            yield kept, place

    monkeypatch.setattr(streams, "records", counted)
    most = 0
    for _ in Stream(files, Plain(), batch=5, window=4).batches(1):
        most = max(most, len(alive))
    assert 20 <= most <= 2 * 20 + 1


def test_shards_share_the_examples(files: list[str]) -> None:
    parts = [Stream(files, Plain(), batch=5, window=4, shard=(k, 3)) for k in range(3)]
    everything = [line.split() for line in LINES]
    assert [list(part) for part in parts] == [everything[k::3] for k in range(3)]
    assert [len(part) for part in parts] == [167, 167, 166]
    for part in parts:
        seen = examples(part.batches(9))
        assert sorted(sum(seen, [])) == sorted(part) and len(seen) == len(part.batches(9))
        assert examples(part.batches(9)[13:]) == seen[13:]


def test_conllu_as_its_reader_reads_it(tmp_path: Path) -> None:
    path = TREEBANK / "dev.conllu"
    whole = read_conllu(path)
    stream: Stream[Any] = Stream([str(path)], Conllu(), batch=4, window=2)
    assert list(stream) == whole and stream.words == sum(map(len, whole))
    for batch in stream.batches(1)[3:]:
        assert [len(record) for record in batch] == [len(record.example()) for record in batch]
    ranges = "# a\n\n1-2\tdu\t_\t_\t_\t_\t_\t_\t_\t_\n1\td\td\tA\t_\t_\t0\tr\t_\t_\n2\tu\tu\tB\t_\t_\t1\tx\t_\t_\n2.1\te\te\tE\t_\t_\t1\tx\t_\t_"
    (tmp_path / "r.conllu").write_text(ranges)
    ((record, _),) = Stream([str(tmp_path / "r.conllu")], Conllu(), batch=1).records()
    assert len(record) == 2 and record.example().forms == ["d", "u"] and record.number == 3


def test_parallel_and_tagged_text(tmp_path: Path) -> None:
    for name, rows in (("a", ["a b c", "", "d e"]), ("b", ["x", "", "y z"]), ("t", ["the_D cat_N", "a_b_D"])):
        (tmp_path / name).write_text("\n".join(rows) + "\n")
    both = [(str(tmp_path / "a"), str(tmp_path / "b"))] * 2
    stream: Stream[Any] = Stream(both, Parallel(), batch=1)
    assert list(stream) == 2 * read_parallel(*both[0]) and list(map(len, stream)) == [3, 2, 3, 2]
    assert examples(stream.batches(None)[2:]) == [[x] for x in read_parallel(*both[0])]
    tagged = list(Stream([str(tmp_path / "t")], Tagged(), batch=1))
    assert [(x.forms, x.upos) for x in tagged] == [(["the", "cat"], ["D", "N"]), (["a_b"], ["D"])]


@pytest.mark.parametrize("letters", [False, True])
def test_pairs_as_their_reader_reads_them(tmp_path: Path, letters: bool) -> None:
    sides = ["le  chat dort", "\u00a01\\/2 oui", "a b"], ["the cat sleeps", "yes", "c"]
    for name, rows in (
        ("a.fr", sides[0]),
        ("a.en", sides[1]),
        ("tabs", ["", *map("{}\t{}".format, *sides), ""]),
        ("bars", [*map("{} ||| {}".format, *sides), ""]),
    ):
        (tmp_path / name).write_text("\n".join(rows) + "\n", encoding="utf-8")
    for names in ["a.fr", "a.en"], ["tabs"], ["tabs", "tabs"], ["bars"]:
        paths = [str(tmp_path / name) for name in names]
        files, source = pair_source(paths, letters)
        stream: Stream[Any] = Stream(files, source, batch=2)
        whole = read_pair_files(paths, letters)
        assert list(stream) == whole and len(whole) in (3, 6)
        assert [len(record) for record, _ in stream.records()] == [len(pair) for pair in whole]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a\tN;PL\tb\n", "f:1: expected SOURCE<tab>TARGET, since the file is read piece by piece; got three columns"),
        (b"a\tb\nc\n", "f:2: expected SOURCE<tab>TARGET, got 'c'"),
        (b"a ||| b\nc ||| \n", r"f:2: expected SOURCE \|\|\| TARGET, got"),
        (b"a ||| b\n||| c\n", r"f:2: expected SOURCE \|\|\| TARGET, got"),
    ],
)
def test_malformed_pairs(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "f").write_bytes(content)
    with pytest.raises(DataError, match=message):
        files, source = pair_source([str(tmp_path / "f")])
        list(Stream(files, source, batch=1))


def test_files_of_pairs_of_two_kinds(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("a\tb\n")
    (tmp_path / "g").write_text("a ||| b\n")
    with pytest.raises(DataError, match="expected the same kind of files"):
        pair_source([str(tmp_path / "f"), str(tmp_path / "g")])


@pytest.mark.parametrize(
    ("content", "source", "message"),
    [
        (b"a\n\xff\n", Plain(), r"f:2: expected UTF-8 text"),
        (b"\x1f\x8b\x08broken", Plain(), r"f: expected a whole file packed by gzip"),
        (b"the_D\ncat\n", Tagged(), r"f:2: expected WORD_TAG, got 'cat'"),
        (b"# x\n\n1\ta\n", Conllu(), r"f:3: expected 10 columns separated by tabs, got 2"),
        (b"no columns here\n", Conllu(), r"f:1: expected 10 columns"),
        (b"1  a  a  DET _ _ 0 root _ _\n", Conllu(), r"f:1: expected 10 columns separated by tabs, got 1 with blanks"),
        (b"1-2\ta\ta\ta\ta\ta\t0\ta\ta\ta\n", Conllu(), r"f:1: expected a sentence, got no word"),
    ],
)
def test_malformed_files(tmp_path: Path, content: bytes, source: Any, message: str) -> None:
    (tmp_path / "f").write_bytes(content)
    with pytest.raises(DataError, match=message):
        list(Stream([str(tmp_path / "f")], source, batch=1))


def test_parallel_files_that_do_not_fit(tmp_path: Path) -> None:
    for name, text in (("a", "x\ny\n"), ("b", "x\n"), ("c", "x\n\n")):
        (tmp_path / name).write_text(text)
    for names, message in (
        ("ab", r"b:2: expected as many lines as in the other file, got 1"),
        ("ac", r"c:2: expected text"),
    ):
        with pytest.raises(DataError, match=message):
            list(Stream([[str(tmp_path / n) for n in names]], Parallel(), batch=1))


def test_wrong_arguments(files: list[str]) -> None:
    for more, message in (({"batch": 0}, "at least 1"), ({"batch": 1, "window": 0}, "at least 1"),
                          ({"batch": 1, "shard": (2, 2)}, "shard"), ):  # fmt: skip
        with pytest.raises(ValueError, match=message):
            Stream(files, Plain(), **more)
    with pytest.raises(ValueError, match="expected 2 files side by side, got 1"):
        Stream(files, Parallel(), batch=1)
    with pytest.raises(FileNotFoundError):
        Stream([files[0] + ".missing"], Plain(), batch=1)


def test_sources_of_files(tmp_path: Path, files: list[str]) -> None:
    path = str(TREEBANK / "dev.conllu")
    (tmp_path / "tagged").write_text("the_D cat_N sat_V on_P the_D mat_N ._.\na_D dog_N ran_V\n" * 3)
    for name in (path, files[0], str(tmp_path / "tagged")):
        source, take = words_source(name)
        assert list(Stream([name], source, batch=1, take=take)) == read_words(name)
    assert isinstance(tagged_source(path), Conllu) and tagged_source(str(tmp_path / "tagged")).mark == "_"  # type: ignore[attr-defined]
    with pytest.raises(DataError, match="which are read bit by bit; got trees"):
        words_source(TREEBANK / "dev.ptb")
    with pytest.raises(DataError, match="which are read bit by bit; got"):
        tagged_source(files[0])


def test_any_change_of_a_file_changes_the_fingerprint(tmp_path: Path) -> None:
    """The tags of CoNLL-U, the targets of parallel files: not the first line of an example alone."""
    names = [str(tmp_path / name) for name in ("a", "b")]

    def fingerprint(first: str, second: str) -> tuple[int, int]:
        for name, text in zip(names, (first, second), strict=True):
            Path(name).write_text(text)
        return Stream([tuple(names)], Parallel(), batch=2).fingerprint, Stream(names, Conllu(), batch=2).fingerprint

    row = "# id\n1\tdog\t_\t{}\t_\t_\t0\troot\t_\t_\n"
    noun, verb = row.format("NOUN"), row.format("VERB")
    found = [fingerprint(noun, noun), fingerprint(noun, verb), fingerprint(noun, noun)]
    assert found[0] == found[2] and found[0][0] != found[1][0] and found[0][1] != found[1][1]
