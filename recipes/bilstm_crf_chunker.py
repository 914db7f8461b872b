#!/usr/bin/env python
"""Chunks of sentences: a BiLSTM over words and letters, and a conditional random field over their labels.

    python recipes/bilstm_crf_chunker.py                                # chunks of the included treebank
    python recipes/bilstm_crf_chunker.py --train a.txt --dev b.txt --save chunks.model    # IOB columns, as of CoNLL
    python recipes/bilstm_crf_chunker.py --train a.txt --tag-dim 30 --types     # reads tags, too; F1 of each type
    python recipes/bilstm_crf_chunker.py --nltk conll2000 --hidden 100 --dropout 0.5 --epochs 15
    python recipes/bilstm_crf_chunker.py predict --load chunks.model -  # marks what it finds in the sentences you type
    python recipes/bilstm_crf_chunker.py --compare --batch 64           # automatic batching on and off

Data, model and answers come from harness.SpanLabeller, like those of all recipes that mark spans. The sum over all
labellings of a sentence is a dynamic program, which dynet_lite/nn/crf.py writes as a loop over expressions. Steps of
all sentences run together, so a mini-batch takes as many batches as its longest sentence has words.

Huang, Xu, Yu: Bidirectional LSTM-CRF models for sequence tagging (2015).
"""

from __future__ import annotations

import sys
from dataclasses import dataclass

from dynet_lite import harness
from dynet_lite.harness import option


@dataclass
class Settings(harness.SpanSettings):  # each field is an option of the command line
    epochs: int = option(25)


class Chunker(harness.SpanLabeller[Settings]):
    """Words and letters -> BiLSTM -> a score per label -> conditional random field."""

    smoke = {"epochs": 1, "batch": 4, "word_dim": 8, "char_dim": 4, "char_hidden": 4, "hidden": 6}


if __name__ == "__main__":
    sys.exit(harness.main(Chunker, Settings, __doc__))
