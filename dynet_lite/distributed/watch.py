"""A small process on each machine that tells when one of its ranks is gone without a word, and ends the others.

`mpiexec` ends all ranks when one is killed, but names a process number at best. The watcher sees which of them went first.
The ends of processes do not tell: mpiexec notices that the files of a killed rank are closed and kills the others, and
one of these may be gone before the first is. So each rank holds a pipe for the watcher, as its file of the highest
number: the kernel closes that one first, before mpiexec can know.

The watcher is in a session of its own, so that it outlives the ranks, and ends with them. Run as a program: the arguments are the
host name, 1 if there is no other machine, and rank:process:pipe of each rank; standard input is a pipe that the starting rank
writes to when all ended well. Linux only (pidfd_open); elsewhere there is no watcher.
"""

from __future__ import annotations

import os
import select
import signal
import stat
import sys
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import subprocess

__all__ = ["Sign", "Watcher", "await_reader"]

HIGHEST = 1000  # the number of the file that is closed first
CONFIRM = 5.0  # seconds in which a process whose pipe was closed must end, or it has closed the pipe itself


def await_reader(seconds: float = 5.0) -> None:
    """Until what was written to standard output and error has been read, where these are pipes: mpiexec, told to end all ranks,
    reads no more."""
    if not hasattr(os, "pidfd_open"):
        return
    import fcntl
    import struct
    import termios

    end = time.monotonic() + seconds
    for fd in (1, 2):
        try:
            if not stat.S_ISFIFO(os.fstat(fd).st_mode):
                continue
            while struct.unpack("i", fcntl.ioctl(fd, termios.FIONREAD, b"    "))[0] and time.monotonic() < end:
                time.sleep(1e-3)
        except OSError:
            pass


class Sign:
    """What a rank holds as long as it lives: a pipe that nobody writes to. `number` is what the watcher is told; -1: none."""

    def __init__(self) -> None:
        self.number = self._read = -1
        if not hasattr(os, "pidfd_open"):
            return
        import fcntl

        self._read, write = os.pipe()
        try:
            self.number = fcntl.fcntl(write, fcntl.F_DUPFD_CLOEXEC, HIGHEST)
            os.close(write)
        except OSError:  # fewer files are allowed
            self.number = write

    def seen(self) -> None:
        """The watcher has its own end."""
        if self._read >= 0:
            os.close(self._read)
            self._read = -1


class Watcher:
    """The watcher of this machine. `processes`: rank -> process and number of its sign; `whole`: they are all that there are."""

    def __init__(self, host: str, processes: dict[int, tuple[int, int]], whole: bool) -> None:
        self._child: subprocess.Popen[bytes] | None = None
        self.pid = 0
        if not hasattr(os, "pidfd_open"):
            return
        import subprocess  # late: `import dynet_lite` is to be light

        names = [f"{rank}:{pid}:{sign}" for rank, (pid, sign) in processes.items()]
        program = [sys.executable, "-I", "-S", os.path.abspath(__file__), host, str(int(whole)), *names]
        child = subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True)
        if child.stdout is not None:
            child.stdout.readline()  # it watches from here on
            child.stdout.close()
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


def _ends(process: int) -> bool:
    """Whether the process ends now, and has not only closed its pipe; asks no longer when there is word on standard input."""
    poll = select.poll()
    poll.register(process, select.POLLIN)
    poll.register(0, select.POLLIN)
    end = time.monotonic() + CONFIRM
    while (left := end - time.monotonic()) > 0:
        for fd, event in poll.poll(left * 1000):
            if fd == process:
                return True
            if event & select.POLLIN:
                return False
            poll.unregister(0)  # the starting rank is gone, too
    return False


def watch(host: str, whole: bool, names: list[str]) -> None:
    """Wait for the first end of a process, or for the word that nobody need watch any more."""
    poll = select.epoll()  # reports in the order in which things happened
    poll.register(0, select.EPOLLIN | select.EPOLLHUP)
    ranks: dict[int, tuple[int, int]] = {}  # by the file that tells of the end
    signs: dict[int, int] = {}  # by the pipe: the file that confirms it
    gone = None
    for name in names:
        rank, pid, sign = map(int, name.split(":"))
        try:
            fd = os.pidfd_open(pid)
        except OSError:
            gone = gone or (rank, pid)
            continue
        ranks[fd] = rank, pid
        poll.register(fd, select.EPOLLIN)
        try:
            pipe = os.open(f"/proc/{pid}/fd/{sign}", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            continue
        signs[pipe] = fd
        poll.register(pipe, select.EPOLLHUP)
    os.write(1, b"ready\n")
    while gone is None:
        for fd, _ in poll.poll():
            if fd in ranks:
                gone = gone or ranks[fd]
            elif fd in signs:
                poll.unregister(fd)
                if gone is None and _ends(signs[fd]):
                    gone = ranks[signs[fd]]
            elif os.read(0, 16):
                return
            else:  # the starting rank is gone: its own end is reported, too
                poll.unregister(0)
    rank, pid = gone
    first = "" if whole else ", the first on this machine,"
    text = f"[distributed] rank {rank} (process {pid} on {host}){first} was killed or ended without a word; all ranks end\n"
    os.write(2, text.encode())
    await_reader()
    for _, other in ranks.values():
        try:
            os.kill(other, signal.SIGKILL)
        except OSError:
            pass


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    watch(sys.argv[1], sys.argv[2] == "1", sys.argv[3:])
