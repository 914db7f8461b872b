"""What the programs of this folder share: they start from the same weights on any engine, and report their losses.

A program is run as `python PROGRAM.py WEIGHTS OUTPUT`; the file of weights is made by the first run, and read by later ones.
"""

import json
import os
import sys

losses = []


def start(pc):
    """Same weights for everybody: saved by the first engine that runs the program, read by the next."""
    if os.path.exists(sys.argv[1]):
        pc.populate(sys.argv[1])
    else:
        pc.save(sys.argv[1])


def report(value):
    losses.append([float(v) for v in value] if isinstance(value, (list, tuple)) else float(value))


def finish():
    with open(sys.argv[2], "w") as f:
        json.dump(losses, f)
    sys.stdout.flush()
