"""Progress of transfers, and atomic writes of files."""

import errno
import os
import stat
import uuid
from dataclasses import dataclass
from typing import IO, Callable, Iterable, Optional, Union

Path = Union[str, "os.PathLike[str]"]


@dataclass(frozen=True)
class Progress:
    """The progress of a task: bytes of transfers, seconds of video exports, assets of edits.

    While an original is downloaded from remote storage, `done` is the fraction that has arrived and `total` is 1.
    """

    done: float
    total: float
    # The file of an import.
    path: Optional[str] = None

    @property
    def fraction(self) -> float:
        """The fraction that is done, 0 to 1."""
        return self.done / self.total if self.total else 1.0


ProgressHandler = Callable[[Progress], None]


def save_bytes(path: Path, data: bytes) -> None:
    """Writes a file atomically: even after a power failure it has either its old bytes or the new ones."""
    save_parts(path, [data], len(data))


def save_parts(path: Path, parts: Iterable[bytes], total: float, progress: Optional[ProgressHandler] = None) -> None:
    """Writes parts to a new file beside the path and renames it, so that the path never names a partial file.

    The file is synced before it is renamed: otherwise the path could name an empty file after a power failure. The
    target of a symbolic link is replaced, not the link. A device or a pipe is written directly, not replaced.
    """
    path = os.fspath(path)

    def write(file: IO[bytes]) -> None:
        done = 0
        for part in parts:
            file.write(part)
            done += len(part)
            if progress:
                progress(Progress(done, total, path))

    if not is_replaceable(path):
        with open(path, "wb") as file:
            return write(file)
    target = os.path.realpath(path)
    folder = os.path.dirname(target)
    temporary = os.path.join(folder, f".safelight-{uuid.uuid4().hex}")
    # The kernel applies the umask, which a program cannot read without changing it for all its threads.
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    try:
        with os.fdopen(descriptor, "wb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except BaseException:
        os.unlink(temporary)
        raise
    sync_folder(folder)


def is_replaceable(path: str) -> bool:
    """Returns true if a path is a regular file or does not exist."""
    try:
        return stat.S_ISREG(os.stat(path).st_mode)
    except FileNotFoundError:
        return True


def sync_folder(folder: str) -> None:
    """Syncs a folder, so that its entries are durable."""
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except PermissionError:
        return  # a folder in which files may be created, but not listed
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # some network filesystems cannot sync folders
            raise
    finally:
        os.close(descriptor)
