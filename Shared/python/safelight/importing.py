"""Imports of files and folders."""

import hashlib
import os
import stat
from typing import TYPE_CHECKING, Callable, Dict, Iterable, Iterator, List, NamedTuple, Optional, Set, Tuple, Union

from .changing import MAX_SIDECAR_BYTES, Path, Target
from .errors import InvalidResourceError, LimitExceededError, NotRunningError, ResourcesDisagreeError, SafelightError
from .progress import Progress, ProgressHandler

if TYPE_CHECKING:
    from .library import Library

# A still and a raw file or a video of one name are one asset: Shared/PhotoModel/FileGrouping.swift has the rules.
STILL_EXTENSIONS = {".jpg", ".jpeg", ".jpe", ".heic", ".heif", ".hif", ".avif", ".jxl"}
LIVE_EXTENSIONS = {".mov", ".mp4"}
VIDEO_EXTENSIONS = {
    ".mov", ".mp4", ".m4v", ".avi", ".mkv", ".webm", ".mts", ".m2ts", ".3gp", ".3g2", ".qt", ".mpg", ".mpeg",
}
RAW_EXTENSIONS = {
    ".dng", ".cr2", ".cr3", ".nef", ".arw", ".raf", ".orf", ".rw2", ".pef", ".srw", ".nrw", ".sr2", ".srf", ".3fr",
    ".iiq", ".erf",
}
PHOTO_EXTENSIONS = {
    ".jpg", ".jpeg", ".jpe", ".jfif", ".png", ".heic", ".heif", ".hif", ".avif", ".webp", ".tif", ".tiff", ".gif",
    ".jxl", ".bmp", ".jp2", ".psd", ".psb", ".tga", ".ico", ".pnm", ".pbm", ".pgm", ".ppm", ".pam",
} | RAW_EXTENSIONS


class ImportedFile(NamedTuple):
    """The result of the import of a file, or of files that belong together."""

    paths: List[str]
    # The identifier of the asset; None if the import failed.
    asset: Optional[str]
    is_duplicate: bool
    error: Optional[SafelightError]
    # Assets with the same image data in a file with other bytes.
    same_image: Tuple[str, ...] = ()
    # Files that had no effect, because the library already had the photo: its sidecar.
    ignored: Tuple[str, ...] = ()


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
                if is_importable(name):
                    yield os.path.join(folder, name)


def is_importable(path: str) -> bool:
    """Returns whether a file of a folder is imported, by its name: a photo, a video or a sidecar that is not hidden."""
    name = os.path.basename(path)
    file_extension = os.path.splitext(name)[1].lower()
    return not name.startswith(".") and file_extension in PHOTO_EXTENSIONS | VIDEO_EXTENSIONS | {".xmp"}


def files_beside(path: str) -> List[str]:
    """Returns a file, and the others in its folder that may belong to the same photo, in the order of their names."""

    def stem_of(name: str) -> str:
        stem, file_extension = os.path.splitext(name)
        # The sidecar of NAME.EXT may be NAME.EXT.xmp.
        return os.path.splitext(stem)[0] if file_extension.lower() == ".xmp" and is_importable(stem) else stem

    folder, name = os.path.split(path)
    stem = stem_of(name)
    others = (one for one in os.listdir(folder or ".") if is_importable(one) and stem_of(one) == stem)
    return [os.path.join(folder, one) for one in sorted({name, *others})]


def groups(paths: Iterable[str]) -> List[List[str]]:
    """Groups files that may belong together: a photo, its raw file, the video of a Live Photo, sidecars.

    Several sidecars are in the order in which they are preferred. One that belongs to no file is in no group.
    """
    sidecars: Dict[str, str] = {}
    stems: Dict[str, List[str]] = {}
    for path in paths:
        stem, file_extension = os.path.splitext(path)
        if file_extension.lower() == ".xmp":
            sidecars.setdefault(stem, path)
        else:
            stems.setdefault(stem, []).append(path)
    together: List[List[str]] = []
    for stem, files in stems.items():
        still = only(files, STILL_EXTENSIONS)
        parts = [path for path in (only(files, RAW_EXTENSIONS), only(files, LIVE_EXTENSIONS)) if still and path]
        for path in files:
            if path in parts:
                continue
            group = [one for one in files if one == path or path == still and one in parts]
            others = [one for one in group if one != path]
            found = [sidecars[name] for name in [path, stem, *others] if name in sidecars]
            # NAME.xmp is the sidecar of each file NAME.EXT without NAME.EXT.xmp.
            together.append(group + (found if len(group) == len(files) else found[:1]))
    return together


def only(files: Iterable[str], file_extensions: Set[str]) -> Optional[str]:
    """Returns the file with one of the file extensions; None if there is none, or several."""
    found = [path for path in files if os.path.splitext(path)[1].lower() in file_extensions]
    return found[0] if len(found) == 1 else None


def split_group(files: List[str]) -> List[List[str]]:
    """Splits a group into single files, each with its sidecar: NAME.EXT.xmp, or else NAME.xmp."""
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
    """Returns photo, raw, video or xmp, by the file extension."""
    file_extension = os.path.splitext(path)[1].lower()
    if file_extension in RAW_EXTENSIONS:
        return "raw"
    return "video" if file_extension in VIDEO_EXTENSIONS else "xmp" if file_extension == ".xmp" else "photo"


def without_refused_sidecar(files: List[str], error: SafelightError) -> Optional[Tuple[List[str], str]]:
    """Returns the other files, and the sidecar, if an error is about the sidecar; None if it is not."""
    sidecar = by_kind(files).get("xmp")
    originals = [path for path in files if kind_of(path) != "xmp"]
    if sidecar is None or not originals:
        return None
    is_refused = error.data.get("sidecar") or (
        isinstance(error, LimitExceededError) and os.path.exists(sidecar)
        and os.path.getsize(sidecar) > MAX_SIDECAR_BYTES
    )
    return (originals, sidecar) if is_refused else None


def problem_of(path: str) -> Optional[str]:
    """Returns the reason for which a file cannot be imported, whatever its content; None if it can be read."""
    try:
        os.path.basename(path).encode()
    except UnicodeEncodeError:
        return "the name is not UTF-8; rename the file"
    try:
        # Opening a pipe would wait for a writer.
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
    # Without sidecars: one may belong to several assets.
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
                reached = done if part.done >= part.total else done + part.done
                progress(Progress(min(reached, total), total, part.path))

        try:
            one, others = _import(library, files, album, advance)
            imported.append(one)
            # The existing asset has another raw file or video, so these files become separate assets.
            pending = [part for part in split_group(files) if part[0] in others] + pending
        except ResourcesDisagreeError:
            pending = split_group(files) + pending
            continue
        except SafelightError as error:
            # The limit of open uploads would refuse all following files too.
            if error.is_temporary or isinstance(error, NotRunningError) or "open" in error.data:
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
        before += sum(sizes.pop(path, 0) for path in files)
    return imported


def _import(
    library: "Library", files: List[str], album: Optional[Target], advance: ProgressHandler
) -> Tuple[ImportedFile, List[str]]:
    """Imports an asset. Returns the result, and the files that were not added to an existing asset."""
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
    members = placeholder.ignored
    others: List[str] = []
    if "resources" in members:
        known = {resource.digest for resource in library.assets[placeholder.id].resources}
        parts = (path for path in (raw, video) if path and path != (photo or raw or video))
        others = [path for path in parts if sha256(path) not in known]
    sidecar = kinds.get("xmp")
    taken = [path for path in files if path not in others]
    ignored = (sidecar,) if sidecar and "sidecar" in members else ()
    one = ImportedFile(
        taken, placeholder.id, placeholder.is_duplicate, None, tuple(placeholder.same_image), ignored
    )
    return one, others


def sha256(path: str) -> str:
    """Returns the SHA-256 of a file, in hexadecimal."""
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while chunk := file.read(1 << 20):
            digest.update(chunk)
    return digest.hexdigest()
