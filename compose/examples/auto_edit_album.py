"""Edits each photo that is added to an album with a preset.

    auto_edit_album.py ALBUM PRESET POSITION-FILE

`safelight preset save warm --temperature 0.2` makes a preset. The position file has the token of the last change that
has been handled: a restarted program continues there. Each edit has a transaction id, so it is applied once, even if
this program or a service is killed.
"""

import os
import sys
import time

from safelight import (
    Library, MultipleIdentifiersFoundError, NotRunningError, PersistentChangeTokenExpiredError, SafelightError,
    load_preset, save_bytes,
)

RETRY_SECONDS = 5

title, preset, position_file = sys.argv[1:]
adjustments = load_preset(preset)
library = Library(client="auto-edit", wait=60)

# Step 1: find the album, or create it.
try:
    album = library.albums.get(title)
except MultipleIdentifiersFoundError as error:
    sys.exit(error.message)
if album is None:
    with library.changing() as changes:
        created = changes.create_album(title)
    album = library.albums[created.id]

# Step 2: start with the next change, or continue.
if os.path.exists(position_file):
    with open(position_file) as file:
        token = file.read().strip()
else:
    token = library.token

# `save_bytes` replaces the file as a whole, so that it is complete even after a power failure.
save_bytes(position_file, token.encode())
print(f"editing what is added to {title}", flush=True)


def is_member(asset):
    return asset is not None and any(membership.collection == album.id for membership in asset.memberships)


def edit(asset, transaction):
    """Edits a photo. Waits while a service is not available, so that no photo is missed."""
    name = asset.original_filename or asset.id
    while True:
        try:
            asset.edit(adjustments, transaction=transaction)
            print(f"edited {name}", flush=True)
            return
        except SafelightError as error:
            print(f"{name}: {error.message}", file=sys.stderr, flush=True)
            if not error.is_temporary and not isinstance(error, NotRunningError):
                return
        time.sleep(RETRY_SECONDS)


# Step 3: follow the changes. A photo is new in the album if it was not a member before.
try:
    for change in library.changes(since=token):
        for asset_change in change.assets:
            if not is_member(asset_change.after) or is_member(asset_change.before):
                continue
            edit(asset_change.after, f"auto-edit {change.sequence} {asset_change.id}")
        save_bytes(position_file, change.token.encode())
except PersistentChangeTokenExpiredError:
    sys.exit(
        f"the library no longer has the changes after {position_file}: it is older than the history, or the library was"
        f" restored from a backup. Edit what was added to {title} since then, remove {position_file} and start again."
    )
