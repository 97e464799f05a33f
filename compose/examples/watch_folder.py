"""Imports each photo and video that is saved in a folder, or in the folders below.

    watch_folder.py FOLDER [ALBUM]

The files that are already in the folder are imported first. Files that the library has are skipped, and so are hidden
files and folders, and files without the file extension of a photo, a video or a sidecar. A file is imported when the
program that writes it closes it or moves it there, so a copy is never read before it is complete. The files of one
photo may arrive one after the other: a file is imported together with the other files with the same stem. The kernel
reports only changes of local disks; for a folder of another machine, run this program there.
"""

import ctypes
import os
import select
import struct
import sys
import time

from safelight import Library, SafelightError
from safelight.importing import files_below, files_beside, is_importable, kind_of

# inotify(7)
CLOSE_WRITE, MOVED_TO, CREATE, OVERFLOW, IS_FOLDER = 0x8, 0x80, 0x100, 0x4000, 0x40000000
RETRY_SECONDS = 5
# New files are imported after QUIET_SECONDS without a change, and after MAX_DELAY_SECONDS in any case.
QUIET_SECONDS, MAX_DELAY_SECONDS = 2, 30
libc = ctypes.CDLL(None, use_errno=True)


class Folders:
    """The folders that are watched: one, and all below it."""

    def __init__(self, root):
        self.inotify = libc.inotify_init1(os.O_CLOEXEC)
        self.paths = {}
        self.root = root
        # Files that a program has created and not closed yet.
        self.unfinished = set()
        self.add(root)

    def add(self, folder):
        # A folder that cannot be read is not watched; the import of the existing files reports it.
        for path, names, _ in os.walk(folder):
            names[:] = [name for name in names if not name.startswith(".")]
            watch = libc.inotify_add_watch(self.inotify, os.fsencode(path), CLOSE_WRITE | MOVED_TO | CREATE)
            if watch < 0:
                raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), path)
            self.paths[watch] = path

    def read_changes(self):
        """Waits for changes, and yields files that are complete and folders that are new."""
        events, offset = os.read(self.inotify, 1 << 16), 0
        while offset < len(events):
            watch, mask, _, length = struct.unpack_from("iIII", events, offset)
            name = os.fsdecode(events[offset + 16 : offset + 16 + length].rstrip(b"\0"))
            offset += 16 + length
            if mask & OVERFLOW:
                # Some events were lost, so the whole folder is read again.
                self.unfinished.clear()
                self.add(self.root)
                yield self.root
            elif name.startswith("."):
                continue
            elif mask & IS_FOLDER:
                # The folder is watched before it is read, so that a file that is saved in between is not missed.
                self.add(os.path.join(self.paths[watch], name))
                yield os.path.join(self.paths[watch], name)
            elif mask & (CLOSE_WRITE | MOVED_TO):
                self.unfinished.discard(os.path.join(self.paths[watch], name))
                yield os.path.join(self.paths[watch], name)
            elif mask & CREATE:
                self.unfinished.add(os.path.join(self.paths[watch], name))

    def wait_for_files(self):
        """Waits for changes, and then for a time without any. Returns the complete files, with those of their stems."""
        paths = dict.fromkeys(self.read_changes())
        end = time.monotonic() + MAX_DELAY_SECONDS
        while time.monotonic() < end and select.select([self.inotify], [], [], QUIET_SECONDS)[0]:
            paths.update(dict.fromkeys(self.read_changes()))
        found = {}
        for path in paths:
            if os.path.isdir(path):
                found.update(dict.fromkeys(files_below([path], report)))
            elif is_importable(path) and os.path.exists(path):
                found.update(dict.fromkeys(files_beside(path)))
        return [path for path in found if path not in self.unfinished]


def report(path, problem):
    print(f"{os.path.basename(path)}: {problem}", file=sys.stderr, flush=True)


def import_files(paths):
    """Imports files. Waits while the services are not available, so that no file is missed."""
    while True:
        try:
            imported = library.import_files(paths, album=find_or_create_album())
            break
        except SafelightError as error:
            print(f"{error.message}; retrying in {RETRY_SECONDS} s", file=sys.stderr, flush=True)
            time.sleep(RETRY_SECONDS)
    for result in imported:
        name = os.path.basename(result.paths[0])
        if result.error:
            report(name, result.error.message)
        elif not result.is_duplicate:
            print(f"imported {name}", flush=True)
        for path in result.ignored if paths != [root] else ():
            report(path, "not applied, because the library has the photo already")
        # A raw file or a video that was imported before its photo is already an asset of its own.
        for path in result.paths if result.asset else ():
            before = unpaired.pop(path, result.asset)
            if before != result.asset:
                report(path, f"now belongs to {name}, too; its own asset {before} can be deleted")
        if result.asset and len(result.paths) == 1 and kind_of(result.paths[0]) in ("raw", "video"):
            unpaired[result.paths[0]] = result.asset


def find_or_create_album():
    if title is None or title in library.albums:
        return library.albums.get(title) if title else None
    with library.changing() as changes:
        changes.create_album(title)
    return library.albums[title]


root = os.path.abspath(sys.argv[1])
title = sys.argv[2] if len(sys.argv) > 2 else None
library = Library(client="watch-folder", wait=60)
# The assets of raw files and videos that were imported without a photo, by their paths.
unpaired = {}
folders = Folders(root)
import_files([root])
print(f"watching {root}", flush=True)
while True:
    paths = folders.wait_for_files()
    if paths:
        import_files(paths)
