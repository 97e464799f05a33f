"""Imports of files and folders."""

import os
import stat
from typing import TYPE_CHECKING, Callable, Dict, Iterable, Iterator, List, NamedTuple, Optional, Tuple, Union

from .changing import LARGEST_SIDECAR, Path, Target
from .errors import InvalidResourceError, LimitExceededError, NotRunningError, ResourcesDisagreeError, SafelightError
from .progress import Progress, ProgressHandler

if TYPE_CHECKING:
    from .library import Library

VIDEO_ENDINGS = {
    ".mov", ".mp4", ".m4v", ".avi", ".mkv", ".webm", ".mts", ".m2ts", ".3gp", ".3g2", ".qt", ".mpg", ".mpeg",
}
RAW_ENDINGS = {
    ".dng", ".cr2", ".cr3", ".nef", ".arw", ".raf", ".orf", ".rw2", ".pef", ".srw", ".nrw", ".sr2", ".srf", ".3fr", ".iiq",
    ".erf",
}
PHOTO_ENDINGS = {
    ".jpg", ".jpeg", ".jpe", ".jfif", ".png", ".heic", ".heif", ".hif", ".avif", ".webp", ".tif", ".tiff", ".gif", ".jxl",
    ".bmp", ".jp2", ".psd", ".psb", ".tga", ".ico", ".pnm", ".pbm", ".pgm", ".ppm", ".pam",
} | RAW_ENDINGS


class ImportedFile(NamedTuple):
    """What became of a file, or of files that belong together."""

    paths: List[str]
    # The identifier of the asset; None if the import failed.
    asset: Optional[str]
    is_duplicate: bool
    error: Optional[SafelightError]
    # Assets that have its picture in a file with other bytes.
    same_image: Tuple[str, ...] = ()


def folders_below(
    folder: str, unreadable: Optional[Callable[[str, str], object]] = None
) -> Iterator[Tuple[str, List[str], List[str]]]:
    """Yields a folder and those below it, as `os.walk` does.

    `unreadable` is called with each folder that cannot be read, and the reason; without it, the error is raised. A
    folder that was removed meanwhile is left out.
    """

    def failed(error: OSError) -> None:
        if isinstance(error, FileNotFoundError):
            return
        if unreadable is None:
            raise error
        unreadable(os.fsdecode(error.filename or folder), error.strerror or str(error))

    return os.walk(folder, onerror=failed)


def files_below(
    paths: Iterable[Path], unreadable: Optional[Callable[[str, str], object]] = None
) -> Iterator[str]:
    """Yields files, and the photos, videos and sidecars in folders, in the order of their names.

    `unreadable` is that of `folders_below`.
    """
    for path in [os.fspath(path) for path in paths]:
        if not os.path.isdir(path):
            yield path
            continue
        for folder, names, files in folders_below(path, unreadable):
            names[:] = sorted(name for name in names if not name.startswith("."))
            for name in sorted(files):
                ending = os.path.splitext(name)[1].lower()
                if not name.startswith(".") and ending in PHOTO_ENDINGS | VIDEO_ENDINGS | {".xmp"}:
                    yield os.path.join(folder, name)


def groups(paths: Iterable[str]) -> List[List[str]]:
    """Returns files that may belong together: a photo, its raw file, the video of a Live Photo, sidecars.

    Several sidecars are in the order in which they are preferred. One that belongs to no file is in no group.
    """
    sidecars: Dict[str, str] = {}
    stems: Dict[str, List[str]] = {}
    for path in paths:
        stem, ending = os.path.splitext(path)
        if ending.lower() == ".xmp":
            sidecars.setdefault(stem, path)
        else:
            stems.setdefault(stem, []).append(path)
    together: List[List[str]] = []
    for stem, files in stems.items():
        kinds = [kind_of(path) for path in files]
        main, *others = sorted(files, key=lambda path: kind_of(path) != "photo")
        group = files + [sidecars[name] for name in [main, stem, *others] if name in sidecars]
        is_one = len(set(kinds)) == len(kinds) and ("photo" in kinds or len(kinds) == 1)
        together += [group] if is_one else apart(group)
    return together


def apart(files: List[str]) -> List[List[str]]:
    """Returns the files of a group one by one, each with its sidecar: NAME.EXT.xmp, or else NAME.xmp."""
    sidecars = {os.path.splitext(path)[0]: path for path in files if kind_of(path) == "xmp"}
    parts: List[List[str]] = []
    for path in files:
        if kind_of(path) != "xmp":
            sidecar = sidecars.get(path) or sidecars.get(os.path.splitext(path)[0])
            parts.append([path, sidecar] if sidecar else [path])
    return parts


def by_kind(files: List[str]) -> Dict[str, str]:
    """Returns the file of each kind; the first of several sidecars."""
    return {kind_of(path): path for path in reversed(files)}


def kind_of(path: str) -> str:
    """Returns photo, raw, video or xmp, by the ending of the name."""
    ending = os.path.splitext(path)[1].lower()
    if ending in RAW_ENDINGS:
        return "raw"
    return "video" if ending in VIDEO_ENDINGS else "xmp" if ending == ".xmp" else "photo"


def without_refused_sidecar(files: List[str], error: SafelightError) -> Optional[Tuple[List[str], str]]:
    """Returns the other files, and the sidecar, if an error is about the sidecar; None if it is not."""
    sidecar = by_kind(files).get("xmp")
    originals = [path for path in files if kind_of(path) != "xmp"]
    if sidecar is None or not originals:
        return None
    is_refused = error.data.get("sidecar") or (
        isinstance(error, LimitExceededError) and os.path.exists(sidecar)
        and os.path.getsize(sidecar) > LARGEST_SIDECAR
    )
    return (originals, sidecar) if is_refused else None


def problem_of(path: str) -> Optional[str]:
    """Returns why a file cannot be imported, whatever is in it; None if it can."""
    try:
        os.path.basename(path).encode()
    except UnicodeEncodeError:
        return "the name is not UTF-8; rename the file"
    try:
        # A pipe would wait for a writer.
        if not stat.S_ISREG(os.stat(path).st_mode):
            return "it is not a regular file"
        with open(path, "rb"):
            return None
    except (OSError, ValueError) as error:
        return (error.strerror if isinstance(error, OSError) else None) or str(error)


def import_files(
    library: "Library", paths: Union[Path, Iterable[Path]], album: Optional[Target] = None,
    progress: Optional[ProgressHandler] = None,
) -> List[ImportedFile]:
    """Imports files and folders, one transaction for each asset."""
    given = [paths] if isinstance(paths, (str, os.PathLike)) else list(paths)
    imported: List[ImportedFile] = []
    readable: List[str] = []

    def refuse(path: str, problem: str) -> None:
        imported.append(ImportedFile([path], None, False, InvalidResourceError(message=f"{path!r}: {problem}")))

    for path in files_below(given, refuse):
        problem = problem_of(path)
        if problem:
            refuse(path, problem)
        else:
            readable.append(path)
    pending = groups(readable)
    # A sidecar may be that of several assets.
    originals = [path for path in readable if kind_of(path) != "xmp"]
    sizes = {path: os.path.getsize(path) for path in originals if os.path.exists(path)}
    total = sum(sizes.values())
    before = 0
    while pending:
        files = pending.pop(0)
        done = before

        def advance(part: Progress) -> None:
            nonlocal done
            if part.done >= part.total:
                done += int(part.total)
            if progress:
                progress(Progress(done if part.done >= part.total else done + part.done, total, part.path))

        try:
            imported.append(_import(library, files, album, advance))
        except ResourcesDisagreeError:
            pending = apart(files) + pending
            continue
        except SafelightError as error:
            if error.is_temporary or isinstance(error, NotRunningError):
                raise
            parts = without_refused_sidecar(files, error)
            if parts:
                rest, sidecar = parts
                imported.append(ImportedFile([sidecar], None, False, error))
                pending.insert(0, rest)
                continue
            imported.append(ImportedFile(files, None, False, error))
        except OSError as error:  # the file was removed meanwhile, or its disk fails
            imported.append(ImportedFile(files, None, False, InvalidResourceError(message=str(error))))
        before += sum(sizes.get(path, 0) for path in files)
    return imported


def _import(library: "Library", files: List[str], album: Optional[Target], advance: ProgressHandler) -> ImportedFile:
    kinds = by_kind(files)
    photo, raw, video = kinds.get("photo"), kinds.get("raw"), kinds.get("video")
    has_still = photo is not None or raw is not None
    with library.changing() as changes:
        placeholder = changes.create_asset(
            photo or raw,
            alternate_photo=raw if photo else None,
            paired_video=video if has_still else None,
            video=None if has_still else video,
            sidecar=kinds.get("xmp"),
            progress=advance,
        )
        if album is not None:
            changes.add(album, [placeholder])
    return ImportedFile(files, placeholder.id, placeholder.is_duplicate, None, tuple(placeholder.same_image))
