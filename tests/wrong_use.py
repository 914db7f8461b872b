"""What tests that call things wrongly have in common."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

import dynet_lite as dy

needs_311 = pytest.mark.skipif(sys.version_info < (3, 11), reason="frames of the package can be taken out from 3.11 on")

# Of softmax builders: words in clusters, words at the ends of paths, and their numbers.
CLUSTERS = ["a x", "a y", "b z", "c u", "c v"]
PATHS = ["a b\tx", "a b\ty", "a c\tz", "a c\tw", "a c\tu"]
WORDS = {w: i for i, w in enumerate("xyzuvw")}


def vec(n: int) -> Any:
    return dy.inputVector(np.ones(n))
