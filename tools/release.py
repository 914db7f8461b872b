"""Is everything ready for a release? `python tools/release.py v0.2.0`, as .github/workflows/wheels.yml calls it for a tag.

The version stands in four places: pyproject.toml, dynet_lite/__init__.py, CITATION.cff, and the newest section of CHANGELOG.md,
which must be dated, "## 0.2.0 (2026-12-01)". All must agree with the tag. Without a tag only those four are compared.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PLACES = {
    "pyproject.toml": r'^version = "(.+)"$',
    "dynet_lite/__init__.py": r'^__version__ = "(.+)"$',
    "CITATION.cff": r'^version: "(.+)"$',
    "CHANGELOG.md": r"^## (\S+) \(",
}


def versions() -> dict[str, str]:
    """The version by the file that names it."""
    out = {}
    for name, pattern in PLACES.items():
        found = re.search(pattern, (ROOT / name).read_text(encoding="utf-8"), re.MULTILINE)
        out[name] = found[1] if found else "none"
    return out


def problems(tag: str | None) -> list[str]:
    """What is wrong, a line each."""
    found = versions()
    wanted = tag.removeprefix("v") if tag else found["pyproject.toml"]
    out = [f"{name} has version {version}, not {wanted}" for name, version in found.items() if version != wanted]
    if tag and not tag.startswith("v"):
        out.append(f"a tag of a release begins with v; got {tag}")
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    if tag and not re.search(rf"^## {re.escape(wanted)} \(\d{{4}}-\d\d-\d\d\)$", changes, re.MULTILINE):
        out.append(f'CHANGELOG.md needs the heading "## {wanted} (YEAR-MONTH-DAY)"')
    return out


if __name__ == "__main__":
    wrong = problems(sys.argv[1] if len(sys.argv) > 1 else None)
    print("\n".join(wrong) or "the versions agree")
    sys.exit(len(wrong) > 0)
