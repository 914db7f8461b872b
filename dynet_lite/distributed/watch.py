"""A small process on each machine that tells when one of its ranks is gone without a word, and ends the others.

`mpiexec` ends all ranks when one is killed, but names a process number at best. The watcher sees which of them went first:
the kernel reports the ends of processes in their order. It is in a session of its own, so that it outlives the ranks, and
ends with them. Run as a program: the arguments are the host name, 1 if there is no other machine, and rank:process of each
rank; standard input is a pipe that the starting rank writes to when all ended well. Linux only (pidfd_open); elsewhere there is no watcher.
"""

from __future__ import annotations

import os
import select
import signal
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import subprocess

__all__ = ["Watcher"]


class Watcher:
    """The watcher of this machine. `processes`: rank -> process number; `whole`: they are all that there are."""

    def __init__(self, host: str, processes: dict[int, int], whole: bool) -> None:
        self._child: subprocess.Popen[bytes] | None = None
        self.pid = 0
        if not hasattr(os, "pidfd_open"):
            return
        import subprocess  # late: `import dynet_lite` is to be light

        names = [f"{rank}:{pid}" for rank, pid in processes.items()]
        program = [sys.executable, "-I", "-S", os.path.abspath(__file__), host, str(int(whole)), *names]
        child = subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True)
        if child.stdout is not None:
            child.stdout.readline()  # it watches from here on
        self._child, self.pid = child, child.pid

    def dismiss(self) -> None:
        """All is well, or has been told: the watcher ends without a word."""
        if self._child is None or self._child.stdin is None:
            return
        import subprocess

        try:
            self._child.stdin.write(b"done\n")
            self._child.stdin.close()
            self._child.wait(5)
        except (OSError, subprocess.TimeoutExpired):
            pass
        self._child = None


def watch(host: str, whole: bool, names: list[str]) -> None:
    """Wait for the first end of a process, or for the word that nobody need watch any more."""
    poll = select.epoll()  # reports in the order in which things happened
    poll.register(0, select.EPOLLIN | select.EPOLLHUP)
    ranks: dict[int, tuple[int, int]] = {}
    gone = None
    for name in names:
        rank, pid = map(int, name.split(":"))
        try:
            fd = os.pidfd_open(pid)
        except OSError:
            gone = gone or (rank, pid)
            continue
        ranks[fd] = rank, pid
        poll.register(fd, select.EPOLLIN)
    os.write(1, b"ready\n")
    while gone is None:
        for fd, _ in poll.poll():
            if fd in ranks:
                gone = gone or ranks[fd]
            elif os.read(0, 16):
                return
            else:  # the starting rank is gone: its own end is reported, too
                poll.unregister(0)
    rank, pid = gone
    first = "" if whole else ", the first on this machine,"
    text = f"[distributed] rank {rank} (process {pid} on {host}){first} was killed or ended without a word; all ranks end\n"
    os.write(2, text.encode())
    for _, other in ranks.values():
        try:
            os.kill(other, signal.SIGKILL)
        except OSError:
            pass


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    watch(sys.argv[1], sys.argv[2] == "1", sys.argv[3:])
