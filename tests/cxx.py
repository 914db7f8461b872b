"""The C++ compiler that tests build their programs with, and the objects that are there already."""

from __future__ import annotations

import os
import shutil
import sysconfig
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def compiler() -> str | None:
    names = [os.environ.get("CXX"), (sysconfig.get_config_var("CXX") or "").split(" ")[0], "g++", "clang++"]
    return next((found for name in names if name and (found := shutil.which(name))), None)


def built(source: Path) -> Path | None:
    """What the package's own build has made of a file of cext/, unless something that went into it has changed since."""
    for obj in ROOT.glob(f"build/temp.*/release/{source.relative_to(ROOT).with_suffix('.o')}"):
        words = obj.with_suffix(".d").read_text().replace("\\\n", " ").split()[1:]
        inputs = [ROOT / word for word in words]
        if all(path.exists() and path.stat().st_mtime < obj.stat().st_mtime for path in inputs):
            return obj
    return None
