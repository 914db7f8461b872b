"""What DyNet has and dynet_lite keeps for its programs alone.

    install.py       `import dynet` is dynet_lite: install_as_dynet()
    script.py        `python -m dynet_lite run script.py`
    standin/         the folder for the module search path in which dynet, _dynet and dynet_config lie
    names.py         the public names of DyNet 2.2
    old_names.py     names and keywords of DyNet 1
    dynet_config.py  DyNet's module of settings
    words.py         DyNet's table of words, Dict

The modules were once in the package's root. Programs and pickles that name them there find them: see OLD_PATHS.
"""

from __future__ import annotations

import sys

from . import dynet_config, names, old_names, words
from .install import install_as_dynet, module
from .script import report, run, run_module

__all__ = ["dynet_config", "install_as_dynet", "module", "report", "run", "run_module"]

OLD_PATHS = {"dynet_config": dynet_config, "dynet_names": names, "old_names": old_names, "words": words}
for _name, _module in OLD_PATHS.items():
    sys.modules.setdefault(f"dynet_lite.{_name}", _module)
