"""Lets the tests of this folder import real_dynet.py."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
