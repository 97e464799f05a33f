"""Keeps a folder equal to the current favourites of the library, with their edits.

    mirror_favorites.py FOLDER

Each file is named after the identifier and the content revision of its asset, so an edit replaces the file. Other files
in the folder are not changed.
"""

import os
import re
import sys
import time

from safelight import Library, NotRunningError, SafelightError

RETRY_SECONDS = 5
FAVORITES = {"where": "isFavorite == TRUE AND mediaType == 'image'", "sort": "creationDate"}

folder = sys.argv[1]
os.makedirs(folder, exist_ok=True)
library = Library(client="mirror-favorites", wait=60)


def mirror():
    """Makes the folder equal to the current favourites. Returns False if it has to be tried again."""
    favorites = {f"{asset.id}-{asset.content_revision}.jpg": asset for asset in library.fetch(**FAVORITES)}
    existing = {name for name in os.listdir(folder) if re.fullmatch(r"a\w{26}-r\d+\.jpg", name)}

    failed = set()
    is_done = True

    for name in sorted(favorites.keys() - existing):
        try:
            favorites[name].thumbnail(None, quality=95).save(os.path.join(folder, name))
        except SafelightError as error:
            print(f"{favorites[name].original_filename}: {error.message}", file=sys.stderr, flush=True)
            failed.add(favorites[name].id)
            if error.is_temporary or isinstance(error, NotRunningError):
                is_done = False

    for name in existing - favorites.keys():
        # If an asset failed, its earlier version stays.
        if name.split("-")[0] not in failed:
            os.unlink(os.path.join(folder, name))

    if is_done:
        print(f"{len(favorites)} favourites", flush=True)
    return is_done


def mirror_or_wait():
    """Makes the folder equal to the favourites; waits while services are not available."""
    while True:
        try:
            if mirror():
                return
        except SafelightError as error:
            if not error.is_temporary:
                raise
            print(f"{error.message}; retrying in {RETRY_SECONDS} s", file=sys.stderr, flush=True)
        time.sleep(RETRY_SECONDS)


# A live list has a new version if an asset is inserted or removed, and also if one of its assets changes.
for _ in library.live(**FAVORITES):
    mirror_or_wait()
