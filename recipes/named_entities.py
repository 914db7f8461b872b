#!/usr/bin/env python
"""Names in sentences (persons, places, organizations): filters over letters, a BiLSTM, a conditional random field.

    python recipes/named_entities.py                                # included sentences with names
    python recipes/named_entities.py --train eng.train --dev eng.testa --test eng.testb --save ner.model    # CoNLL-2003
    python recipes/named_entities.py --nltk conll2002 --epochs 10   # an NLTK corpus with names
    python recipes/named_entities.py --train a.txt --vectors glove.6B.100d.txt
    python recipes/named_entities.py predict --load ner.model -     # marks the names in the sentences you type
    python recipes/named_entities.py predict --load ner.model --write bioes text.txt    # word<tab>label; or iob1, iob2
    python recipes/named_entities.py evaluate --load ner.model eng.testb    # F1, and that of each type

Files have columns with the label last, in IOB1, IOB2 or BIOES, or sentences of word|label. Capitals say much about
names and little about meaning: so House and house share one vector, and another says how the word is written. Data, model
and answers come from harness.SpanLabeller, like those of all recipes that mark spans.

Ma, Hovy: End-to-end sequence labeling via bi-directional LSTM-CNNs-CRF (2016); the labels BIOES: Ratinov, Roth: Design
challenges and misconceptions in named entity recognition (2009).
"""

from __future__ import annotations

import sys
from dataclasses import dataclass

from dynet_lite import harness
from dynet_lite.harness import option


@dataclass
class Settings(harness.SpanSettings):  # each field is an option of the command line
    char_dim: int = option(30)
    char_hidden: int = option(25)
    char_reader: str = option("cnn")
    case_dim: int = option(10)
    fold: bool = option(True)
    hidden: int = option(100)
    scheme: str = option("bioes")
    types: bool = option(True)

    epochs: int = option(20)
    dropout: float = option(0.5)
    word_dropout: float = option(1.0)


class NameFinder(harness.SpanLabeller[Settings]):
    """Words, letters and case -> BiLSTM -> a score per label -> conditional random field."""

    default_data = "iob"
    span_name = "names"
    smoke = {"epochs": 1, "batch": 4, "word_dim": 8, "char_dim": 4, "char_hidden": 4, "case_dim": 3, "hidden": 6}


if __name__ == "__main__":
    sys.exit(harness.main(NameFinder, Settings, __doc__))
