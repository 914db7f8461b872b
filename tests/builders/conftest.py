"""Lets the tests of this folder import tests/python/real_dynet.py."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "python"))
