"""Files that are written whole or not at all, whoever else writes them and whenever the process is killed.

What is written goes to a file of its own beside the target, which takes the target's name in the end. As long as its writer
lives, that file is locked: what is found without a lock was left by a process that was killed, and the next writer of the
same name removes it. Where the system has no such locks, all else holds. Who may import: the package's own modules.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO

try:
    import fcntl
except ImportError:  # not a POSIX system
    fcntl = None  # type: ignore[assignment]

__all__ = ["appending", "naming", "read_pair", "replacing", "replacing_pair"]

TOKEN = 8  # random bytes in the name of a temporary file


def _lock(f: int, wait: bool = False) -> bool:
    """Lock an open file; False when another one has it. Where files cannot be locked: True."""
    if fcntl is None:
        return True
    try:
        fcntl.flock(f, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError as e:
        return e.errno not in (errno.EWOULDBLOCK, errno.EAGAIN, errno.EACCES)
    return True


def _unlock(f: int) -> None:
    """Without it a forked child would hold the lock."""
    if fcntl is not None:
        try:
            fcntl.flock(f, fcntl.LOCK_UN)
        except OSError:
            pass


def _is_at(f: int, path: str) -> bool:
    """Is this open file the one of this name?"""
    try:
        return os.path.samestat(os.fstat(f), os.stat(path))
    except FileNotFoundError:
        return False


def _unlink(path: str) -> None:
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass


def _left_behind(path: str, ending: str) -> Iterator[str]:
    """Files beside path whose names are its name, hexadecimal digits and the ending."""
    folder, name = os.path.split(path)
    pattern = re.compile(rf"{re.escape(name)}\.[0-9a-f]+\.{ending}")
    try:
        with os.scandir(folder) as entries:
            found = [entry.name for entry in entries if pattern.fullmatch(entry.name)]
    except OSError:  # a folder that may be written but not read
        return
    yield from (os.path.join(folder, each) for each in found)


def _remove_left_behind(path: str, ending: str) -> None:
    """Remove what writers that are gone left beside path. What cannot be removed stays: it harms nobody."""
    for found in _left_behind(path, ending):
        try:
            f = os.open(found, os.O_RDWR)
        except OSError:
            continue
        try:
            if _lock(f) and _is_at(f, found):
                os.unlink(found)
        except OSError:
            pass
        finally:
            os.close(f)


class Pending:
    """A file beside its target that is being written: f to write to, take_place() to give it the name, drop() in any case."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.stays = False  # under whatever name it has
        _remove_left_behind(path, "tmp")
        while True:
            self.name = f"{path}.{secrets.token_hex(TOKEN)}.tmp"
            try:
                self.f: BinaryIO = open(self.name, "xb")  # noqa: SIM115
            except FileExistsError:
                continue
            except OSError as error:
                raise OSError(error.errno, error.strerror, path) from None  # in terms of the file that was asked for
            if _lock(self.f.fileno()) and _is_at(self.f.fileno(), self.name):
                return
            self.f.close()  # taken for left behind before it was locked

    def complete(self) -> None:
        """Everything is written: on the disk, with the permissions of the file that it will replace."""
        self.f.flush()
        os.fsync(self.f.fileno())
        if os.path.exists(self.path):
            os.chmod(self.name, os.stat(self.path).st_mode & 0o7777)

    def move(self, path: str) -> None:
        """Give it another name, in place of what has that."""
        if fcntl is None:
            self.f.close()  # an open file cannot be moved there
        os.replace(self.name, path)
        self.name = path

    def take_place(self) -> None:
        """It takes the name of its target."""
        self.move(self.path)

    def drop(self) -> None:
        """Close it; if it has not taken the name, it goes, unless it stays."""
        if not self.f.closed:
            _unlock(self.f.fileno())
            try:
                self.f.close()
            except OSError:  # a full disk: what could not be written before cannot be now, and the caller knows it
                pass
        if self.name != self.path and not self.stays:
            _unlink(self.name)


def _is_special(path: str) -> bool:
    """A pipe or a device? The path as it was given: the links of /dev/stdout and the like lead to names that are no files."""
    return os.path.exists(path) and not os.path.isfile(path)


@contextmanager
def naming(path: str) -> Iterator[None]:
    """Errors of the system name the file: those of writing, such as on a full disk, come without one."""
    try:
        yield
    except OSError as error:
        if error.filename is None:
            error.filename = path
        raise


@contextmanager
def written(path: str) -> Iterator[Pending]:
    """A file that is being written; the block has to say where it goes."""
    pending = Pending(path)
    try:
        yield pending
    finally:
        pending.drop()


@contextmanager
def replacing(fname: Any) -> Iterator[BinaryIO]:
    """A file to write; it takes the name only when everything is written, else the old file stays as it was."""
    given = os.fsdecode(fname)
    if _is_special(given):
        with naming(given), open(given, "wb") as direct:
            yield direct
        return
    with naming(given), written(os.path.realpath(given)) as pending:
        yield pending.f
        pending.complete()
        pending.take_place()


@contextmanager
def appending(fname: Any) -> Iterator[BinaryIO]:
    """A file to write on at its end: a copy, which takes the name when everything is written.

    Who appends at the same time waits.
    """
    given = os.fsdecode(fname)
    if _is_special(given):
        with naming(given), open(given, "ab") as direct:
            yield direct
        return
    path = os.path.realpath(given)
    with naming(given), locked_name(path), written(path) as pending:
        if os.path.exists(path):
            with open(path, "rb") as old:
                shutil.copyfileobj(old, pending.f, 1 << 20)
        yield pending.f
        pending.complete()
        pending.take_place()


@contextmanager
def locked_name(path: str) -> Iterator[None]:
    """One writer at a time has this name. What a killed one leaves, NAME.lock, is taken over and removed by the next."""
    if fcntl is None:
        yield
        return
    name = path + ".lock"
    while True:
        f = os.open(name, os.O_RDWR | os.O_CREAT, 0o666)
        _lock(f, wait=True)
        if _is_at(f, name):
            break
        os.close(f)  # who had it before has removed it
    try:
        yield
    finally:
        _unlink(name)
        _unlock(f)
        os.close(f)


# ---- two files that belong together --------------------------------------------------------------------------------
#
# The second one is put beside its place under a name that has the digest of the first, NAME.DIGEST.next; then the first
# takes its name, which is the moment of the change; then the second. Who is killed between the two leaves a second file
# that waits under the digest of the first: readers take that one, the next writer moves it to its place. A second file that
# stays as it is (the rule: a training saves the same objects again and again) is left alone, and there is no such moment.


@contextmanager
def replacing_pair(first: Any, second: Any) -> Iterator[tuple[BinaryIO, BinaryIO]]:
    """Two files to write, of which readers (read_pair) find both the old or both the new ones."""
    paths = [os.path.realpath(os.fsdecode(name)) for name in (first, second)]
    with written(paths[0]) as one, written(paths[1]) as two:
        yield one.f, two.f
        one.complete()
        two.complete()
        with locked_name(paths[0]):
            _settle_pair(*paths)
            if not (os.path.exists(paths[1]) and _read(two.name) == _read(paths[1])):
                two.move(_waiting(paths[1], digest_of(_read(one.name))))
                one.take_place()
                two.stays = True
                two.take_place()
            else:
                one.take_place()


def digest_of(data: bytes) -> str:
    """Hexadecimal digits that tell files apart."""
    return hashlib.blake2b(data, digest_size=16).hexdigest()


def _waiting(second: str, digest: str) -> str:
    return f"{second}.{digest}.next"


def _read(path: str) -> bytes:
    with open(path, "rb") as f:
        return f.read()


def _settle_pair(first: str, second: str) -> None:
    """What killed writers of the pair left: the second file that belongs to the first takes its place, others go."""
    left = list(_left_behind(second, "next"))
    if left and os.path.exists(first):
        waiting = _waiting(second, digest_of(_read(first)))
        if waiting in left:
            os.replace(waiting, second)
            left.remove(waiting)
    for name in left:
        _unlink(name)


def read_pair(first: Any, second: Any) -> tuple[bytes, bytes]:
    """What is in two files of replacing_pair(): both the old or both the new, also while they are written."""
    paths = [os.path.realpath(os.fsdecode(name)) for name in (first, second)]
    while True:
        before = [_state(path) for path in paths]
        one = _read(paths[0])
        waits = list(_left_behind(paths[1], "next"))
        two = None
        if waits:
            try:
                two = _read(_waiting(paths[1], digest_of(one)))
            except FileNotFoundError:
                pass  # it waits for another, or has taken its place
        if two is None:
            two = _read(paths[1])
        if before == [_state(path) for path in paths]:
            return one, two


def _state(path: str) -> tuple[int, ...]:
    about = os.stat(path)
    return about.st_dev, about.st_ino, about.st_size, about.st_mtime_ns
