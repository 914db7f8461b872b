"""`import dynet` in a program that runs on the stand-in (see dynet_lite/compat/install.py)."""

import sys

from dynet_lite import compat

sys.modules[__name__] = compat.module("dynet")
