"""Commands whose output somebody reads only in part, as `| head` does: they end without a word.

Who may import: the command line, harness/.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

__all__ = ["CUT", "until_cut"]

CUT = 141  # the status of a process that SIGPIPE ended, as shells give it


def until_cut(command: Callable[[], int]) -> int:
    """The status of a command, or CUT when nobody reads its output any more. What is left in the buffer is written here, not
    when the interpreter ends, which would complain."""
    try:
        try:
            return command()
        finally:
            if sys.stdout is not None:  # of a service it may be closed
                sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # the interpreter must not try to write the rest
        return CUT
