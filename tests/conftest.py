"""Every test starts from the same seed, an empty graph and the default settings, and every plan is verified."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

try:
    from dynet_lite import _core
except ImportError:  # tests of data and text need no engine
    _core = None

SETTINGS = ("autobatch", "strategy", "backend", "profile", "threads")


@pytest.fixture(autouse=True)
def fresh_engine() -> Iterator[None]:
    if _core is None:
        yield
        return
    before = {name: getattr(_core.settings, name) for name in SETTINGS}
    _core.settings.verify = True
    _core.set_seed(1)
    np.random.seed(1)
    _core.cg().renew()
    yield
    for name, value in before.items():
        setattr(_core.settings, name, value)
    _core.cg().renew()
