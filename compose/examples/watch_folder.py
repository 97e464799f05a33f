"""Imports each photo and video that is saved in a folder, or in the folders below.

    watch_folder.py FOLDER [ALBUM]

What is in the folder already is imported first; files that the library has are skipped, and so are hidden files and
folders. A file is imported when the program that writes it closes it or moves it there, so a copy is never read before
it is complete. The kernel reports changes of local disks; for a folder of another machine, run this program there.
"""

import ctypes
import os
import struct
import sys
import time

from safelight import Library, SafelightError

# inotify(7)
CLOSE_WRITE, MOVED_TO, CREATE, OVERFLOW, IS_FOLDER = 0x8, 0x80, 0x100, 0x4000, 0x40000000
PAUSE = 5
libc = ctypes.CDLL(None, use_errno=True)


class Folders:
    """The folders that are watched: one, and all below it."""

    def __init__(self, root):
        self.file = libc.inotify_init1(os.O_CLOEXEC)
        self.paths = {}
        self.root = root
        self.add(root)

    def add(self, folder):
        # A folder that cannot be read is not watched; the import of what is there already names it.
        for place, names, _ in os.walk(folder):
            names[:] = [name for name in names if not name.startswith(".")]
            watch = libc.inotify_add_watch(self.file, os.fsencode(place), CLOSE_WRITE | MOVED_TO | CREATE)
            if watch < 0:
                raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), place)
            self.paths[watch] = place

    def changed(self):
        """Waits for changes, and yields files that are complete and folders that are new."""
        events, offset = os.read(self.file, 1 << 16), 0
        while offset < len(events):
            watch, mask, _, length = struct.unpack_from("iIII", events, offset)
            name = os.fsdecode(events[offset + 16 : offset + 16 + length].rstrip(b"\0"))
            offset += 16 + length
            if mask & OVERFLOW:
                # Some events are lost: everything is looked at again.
                self.add(self.root)
                yield self.root
            elif name.startswith("."):
                continue
            elif mask & IS_FOLDER:
                # Watched first, then read: a file that is saved in between is seen twice, never missed.
                self.add(os.path.join(self.paths[watch], name))
                yield os.path.join(self.paths[watch], name)
            elif mask & (CLOSE_WRITE | MOVED_TO):
                yield os.path.join(self.paths[watch], name)


def take(paths):
    """Imports files. While the services are away, it waits for them: nothing that arrived is forgotten."""
    while True:
        try:
            imported = library.import_files(paths, album=album())
            break
        except SafelightError as error:
            print(f"{error.message}; again in {PAUSE} s", file=sys.stderr, flush=True)
            time.sleep(PAUSE)
    for one in imported:
        name = os.path.basename(one.paths[0])
        if one.error:
            print(f"{name}: {one.error.message}", file=sys.stderr, flush=True)
        elif not one.is_duplicate:
            print(f"imported {name}", flush=True)


def album():
    if title is None or title in library.albums:
        return library.albums.get(title) if title else None
    with library.changing() as changes:
        changes.create_album(title)
    return library.albums[title]


root = os.path.abspath(sys.argv[1])
title = sys.argv[2] if len(sys.argv) > 2 else None
library = Library(client="watch-folder", wait=60)
folders = Folders(root)
take([root])
print(f"watching {root}", flush=True)
while True:
    # A photo and its video or sidecar often arrive together, and belong together.
    take([path for path in dict.fromkeys(folders.changed()) if os.path.exists(path)])
