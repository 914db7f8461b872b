"""Every test starts from the same seed, an empty graph and the default settings, and every plan is verified.

The tests run what is installed. `python -m pytest` puts the source folder first on the path, where the package has no
engine unless it was built in place; then the folder is taken off again. DYNET_LITE_TEST_INSTALLED=1 takes it off always.
"""

from __future__ import annotations

import gc
import os
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parent.parent


def leave_source_folder() -> None:
    built_here = any(p.suffix in (".so", ".pyd") for p in (ROOT / "dynet_lite").glob("_core.*"))
    if not built_here or os.environ.get("DYNET_LITE_TEST_INSTALLED", "0") not in ("", "0"):
        sys.path[:] = [p for p in sys.path if Path(p).resolve() != ROOT]


leave_source_folder()
try:
    import dynet_lite
    from dynet_lite import _core, config
except ImportError as error:
    raise pytest.UsageError(f"""dynet_lite cannot be imported: {error}
  install it first:   pip install ".[test]"
  or build in place:  python setup.py build_ext --inplace""") from None


def pytest_report_header() -> str:
    return f"dynet_lite {dynet_lite.__version__} from {Path(dynet_lite.__file__).parent}, {_core.describe()}"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """With DYNET_LITE_TEST_SHARE=n, one test in n, by its name: of each parametrized one some, always the same."""
    share = int(os.environ.get("DYNET_LITE_TEST_SHARE") or 1)
    here = [zlib.crc32(item.nodeid.encode()) % share == 0 for item in items]
    if not all(here):
        config.hook.pytest_deselected(items=[item for item, keep in zip(items, here, strict=True) if not keep])
        items[:] = [item for item, keep in zip(items, here, strict=True) if keep]


def pytest_collection_finish() -> None:
    """Expressions that a module of tests makes when it is imported would keep their graph beside those of all tests."""
    if len(_core.cg()):
        raise pytest.UsageError(f"{len(_core.cg())} nodes were made while tests were collected: make them in the tests")
    gc.collect()
    gc.freeze()  # what is there of pytest and of all tests is not looked at in each collection


@pytest.fixture(autouse=True)
def fresh_engine() -> Iterator[None]:
    _core.cg()  # the first use reads flags and variables; what is set here comes after
    before = {name: getattr(_core.settings, name) for name, *_ in _core.SETTINGS}
    given = dict(config._given["configure"])
    _core.settings.verify = True
    _core.settings.least_outer = 1  # small matrices, too
    # A test of the stand-in may have been imported.
    _core.settings.is_dynet = False
    config._given["configure"]["keep_weights"] = False
    _core.keep_weights(False)
    _core.force_threads(16)  # however busy the machine is
    _core.set_seed(1)
    np.random.seed(1)
    _core.cg().forget_plans()  # what is kept of other tests must not be found
    yield
    _core.settle_steps()
    for name, value in before.items():
        setattr(_core.settings, name, value)
    config._given["configure"] = given
    _core.cg().renew()
