"""Checks in a forked child, for the tests."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable


def holds_in_fork(check: Callable[[], bool]) -> bool:
    """Does it hold in a forked child? One that hangs is killed after a minute."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            code = 0 if check() else 2
        finally:
            os._exit(code)
    deadline = threading.Timer(60, os.kill, (pid, 9))
    deadline.start()
    _, status = os.waitpid(pid, 0)
    deadline.cancel()
    return status == 0
