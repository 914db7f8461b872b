"""The C++ compiler that tests build their programs with."""

from __future__ import annotations

import os
import shutil
import sysconfig


def compiler() -> str | None:
    names = [os.environ.get("CXX"), (sysconfig.get_config_var("CXX") or "").split(" ")[0], "g++", "clang++"]
    return next((found for name in names if name and (found := shutil.which(name))), None)
