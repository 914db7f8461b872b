"""Build train.iob and dev.iob, sentences with names, from source/names.txt.

    python data/treebank/names.py              # rewrite the two files
    python data/treebank/names.py --out DIR    # write them somewhere else

The files have a word and its label (IOB2; PER, LOC, ORG, MISC) a line, and an empty line after each sentence. Only the standard
library is needed.
"""

from __future__ import annotations

import argparse
import random
import re
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROUNDS = {"train": 8, "dev": 2}  # how often each sentence is filled


def read(path: Path) -> tuple[dict[str, tuple[list[str], list[str]]], list[str]]:
    """The lists, each with words for both parts and words for dev only, and the sentences."""
    lists: dict[str, tuple[list[str], list[str]]] = {}
    sentences = []
    for line in path.read_text(encoding="utf-8").splitlines():
        if not line or line.startswith("#"):
            continue
        name, _, rest = line.partition(" ")
        if re.fullmatch("[A-Z]{4,}", name):
            both, _, dev = rest.partition("|")
            lists[name] = both.split(), dev.split()
        else:
            sentences.append(line)
    return lists, sentences


def fill(sentence: str, lists: dict[str, tuple[list[str], list[str]]], part: str, rng: random.Random) -> list[str]:
    """Lines WORD LABEL. In dev every second word of a list is one that train has not."""

    def draw(match: re.Match[str]) -> str:
        both, only_dev = lists[match[1]]
        return rng.choice(only_dev if part == "dev" and rng.random() < 0.5 else both)

    out, kind, begun = [], "", False
    for piece in re.findall(r"\[[A-Z]+ |\]|[^ \[\]]+", re.sub(r"\{([A-Z]+)\}", draw, sentence)):
        if piece.startswith("["):
            kind, begun = piece[1:-1], False
        elif piece == "]":
            kind = ""
        else:
            mark = "I" if begun else "B"
            out.append(f"{piece} {mark}-{kind}\n" if kind else f"{piece} O\n")
            begun = True
    return out


def build(part: str) -> str:
    lists, sentences = read(HERE / "source" / "names.txt")
    rng = random.Random(len(part))
    filled = [fill(sentence, lists, part, rng) for _ in range(ROUNDS[part]) for sentence in sentences]
    rng.shuffle(filled)
    return "".join("".join(lines) + "\n" for lines in filled)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=HERE, help="folder to write to")
    folder = parser.parse_args().out
    for part in ROUNDS:
        (folder / f"{part}.iob").write_text(build(part), encoding="utf-8")


if __name__ == "__main__":
    main()
