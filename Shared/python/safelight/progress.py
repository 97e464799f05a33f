"""Progress of transfers, and files that appear when they are complete."""

import os
import uuid
from dataclasses import dataclass
from typing import Callable, Iterable, Optional, Union

Path = Union[str, "os.PathLike[str]"]


@dataclass(frozen=True)
class Progress:
    """How much of a task is done: bytes of transfers, seconds of video exports, assets of edits.

    Of an original that is downloaded from remote storage: the part that has arrived, of 1.
    """

    done: float
    total: float
    # The file of an import.
    path: Optional[str] = None

    @property
    def fraction(self) -> float:
        """The done part, 0 to 1."""
        return self.done / self.total if self.total else 1.0


ProgressHandler = Callable[[Progress], None]


def save_parts(path: Path, parts: Iterable[bytes], total: float, progress: Optional[ProgressHandler] = None) -> None:
    """Writes parts to a new file beside the path and renames it, so that the path is never half a file."""
    path = os.fspath(path)
    temporary = os.path.join(os.path.dirname(path) or ".", f".safelight-{uuid.uuid4().hex}")
    # The kernel applies the umask, which a program cannot read without changing it for all its threads.
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    try:
        with os.fdopen(descriptor, "wb") as file:
            done = 0
            for part in parts:
                file.write(part)
                done += len(part)
                if progress:
                    progress(Progress(done, total, path))
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
