#!/usr/bin/env python
"""Training speed of the BiLSTM tagger: run.py with that task alone; the options are the same.

python benchmarks/tagger.py                          # every engine that is installed
python benchmarks/tagger.py --engines dynet:1,dynet_lite:on,dynet_lite:on:2 --rounds 9
python benchmarks/tagger.py --conllu train.conllu    # real sentences instead of made-up ones

run.py has the other tasks.
"""

from __future__ import annotations

import sys

import run

if __name__ == "__main__":
    sys.exit(run.main(["--tasks", "tagger", *sys.argv[1:]]))
