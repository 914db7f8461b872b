"""Times and sizes as tables show them: three digits and a unit. Sees the standard library only."""

from __future__ import annotations

__all__ = ["seconds", "size"]


def seconds(s: float) -> str:
    """A time, in the unit that suits it."""
    for unit, scale in (("s", 1.0), ("ms", 1e-3)):
        if s >= 0.9995 * scale:  # which three digits make 1
            return f"{s / scale:.3g} {unit}" if s / scale < 999.5 else f"{s / scale:,.0f} {unit}"
    return f"{s * 1e6:.3g} us"


def size(n: int) -> str:
    """So many bytes."""
    number = float(n)
    for unit in ("B", "KB", "MB", "GB"):
        if number < 999.5 or unit == "GB":
            break
        number /= 1000
    return f"{number:.3g} {unit}" if number < 999.5 else f"{number:,.0f} {unit}"
