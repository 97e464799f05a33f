"""Keeps a folder equal to the favourites of the library, as they are shown now, with their edits.

    mirror_favorites.py FOLDER

Each file is named after the identifier and the content revision of its asset, so an edit replaces the file. Other files
in the folder are left alone.
"""

import os
import re
import sys

from safelight import Library, SafelightError

folder = sys.argv[1]
os.makedirs(folder, exist_ok=True)
library = Library(client="mirror-favorites", wait=60)

# A live list has a new version if an asset is inserted or removed, and also if one of its assets changes.
for favorites in library.live(where="isFavorite == TRUE AND mediaType == 'image'", sort="creationDate"):
    assets = library.assets.many(favorites.ids)
    wanted = {f"{asset.id}-{asset.content_revision}.jpg": asset for asset in assets}
    present = {name for name in os.listdir(folder) if re.fullmatch(r"a\w{26}-r\d+\.jpg", name)}

    for name in sorted(wanted.keys() - present):
        try:
            wanted[name].thumbnail(None, quality=95).save(os.path.join(folder, name))
        except SafelightError as error:
            print(f"{wanted[name].original_filename}: {error.message}", file=sys.stderr, flush=True)

    for name in present - wanted.keys():
        os.unlink(os.path.join(folder, name))

    print(f"{len(wanted)} favourites", flush=True)
