"""Imports the export of another photo program, with albums, dates, locations, captions, favourites and edits.

    migrate.py google FOLDER                          Google Takeout, unpacked: the folder `Takeout` or `Google Photos`
    migrate.py icloud FOLDER                          the archives of privacy.apple.com, unpacked into one folder
    migrate.py apple FOLDER [--albums]                Photos for Mac: File > Export, with "Export IPTC as XMP"
    migrate.py immich FOLDER [--albums]               the folder UPLOAD_LOCATION of Immich, with its XMP sidecars
    migrate.py photoprism FOLDER [--storage FOLDER]   PhotoPrism's originals, and its storage with the YAML files

`--albums` makes an album of each folder that has photos; `--dry-run` prints what would be imported. A file that the
library already has is not imported again, and keeps changes that were made in the library meanwhile, so the same
command continues an interrupted migration. FOLDER is only read. Shared/docs/migrating.md lists what is imported from
each program.
"""

import argparse
import csv
import hashlib
import json
import os
import re
import sys
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone

from safelight import Library, NotRunningError, ResourcesDisagreeError, SafelightError
from safelight.importing import (
    PHOTO_EXTENSIONS, VIDEO_EXTENSIONS, by_kind, files_below, folders_below, groups, kind_of, problem_of,
    split_group, without_refused_sidecar,
)

# The names of files and folders that are not imported; those of `fail_once` are paths.
failed = []


@dataclass
class Item:
    """A photo or a video, the files that belong to it, and the data of the other program about it."""

    files: list
    albums: list = field(default_factory=list)
    # Properties of a new asset, as `Changes.create_asset` takes them.
    facts: dict = field(default_factory=dict)
    # Used if the files have no date or no location.
    date: datetime = None
    location: tuple = None
    # The file of the edited version, rendered by the other program.
    edited: str = None
    # The identifier of that program.
    editor: str = None


def fail(name, problem):
    """Reports a file or a folder that is not imported; the exit status is then 1."""
    failed.append(name)
    print(f"{name}: {problem}", file=sys.stderr, flush=True)


def fail_once(path, problem):
    """Reports a path that may be read several times."""
    if path not in failed:
        fail(path, problem)


def split(path):
    """Returns the folder, the name and the file extension."""
    folder, name = os.path.split(path)
    stem, file_extension = os.path.splitext(name)
    return folder, stem, file_extension


def media(folder, skip=()):
    """Yields lists of files that belong together, in the folder and those below, without the folders to skip."""
    for subfolder, names, files in folders_below(folder, fail_once):
        names[:] = sorted(name for name in names if not name.startswith(".") and name not in skip)
        paths = [os.path.join(subfolder, name) for name in sorted(files) if not name.startswith(".")]
        yield from groups(
            path for path in paths
            if os.path.splitext(path)[1].lower() in PHOTO_EXTENSIONS | VIDEO_EXTENSIONS | {".xmp"}
        )


def number(value):
    return float(value) if value else 0.0


def position(latitude, longitude, altitude=None):
    """Returns a location, or None: Takeout and PhotoPrism write 0, 0 if there is no location."""
    latitude, longitude = number(latitude), number(longitude)
    if not (latitude or longitude) or abs(latitude) > 90 or abs(longitude) > 180:
        return None
    return (latitude, longitude) + ((number(altitude),) if altitude else ())


# Google Takeout

# "-edited" in the language of the account.
EDITED = ("-edited", "-bearbeitet", "-modifié", "-editado", "-modificato", "-bewerkt", "-redigerad", "-edytowane")
# The name of a JSON file is cut to 46 bytes before ".json", also in the middle of ".supplemental-metadata".
TAKEOUT_NAME = 46


def takeout_json(path, names):
    """Returns the name of the JSON file of a photo, among the names of its folder."""
    name = os.path.basename(path)
    stem, file_extension = os.path.splitext(name)
    # A second "a.jpg" is "a(1).jpg", but its JSON file is "a.jpg(1).json" or "a.jpg.supplemental-metadata(1).json".
    copy = re.fullmatch(r"(.*)(\(\d+\))", stem)
    title, count = (copy[1] + file_extension, copy[2]) if copy else (name, "")
    for title, count in ((title, count), (name, "")):
        long = title + ".supplemental-metadata"
        for length in range(len(long), min(len(title), TAKEOUT_NAME) - 1, -1):
            if long[:length] + count + ".json" in names:
                return long[:length] + count + ".json"
        if title[:TAKEOUT_NAME] + count + ".json" in names:
            return title[:TAKEOUT_NAME] + count + ".json"
    return stem + ".json" if stem + ".json" in names else None


def takeout_album(folder):
    """Returns the title of the album in a folder of Takeout, or None: a folder of a year is not an album."""
    title = (read_json(os.path.join(folder, "metadata.json")) or {}).get("title")
    return None if not title or re.fullmatch(r"(Photos from|Fotos (von|aus)|Fotos de) \d{4}", title) else title


def google(folder, _):
    """Yields the items of Takeout. It repeats the photos of an album: in the folder of the year, with the facts, and in
    the album's folder."""
    groups_of_files = sorted(media(folder), key=lambda files: takeout_album(os.path.dirname(files[0])) is not None)
    subfolders = {os.path.dirname(files[0]) for files in groups_of_files}
    names_of = {subfolder: set(names_in(subfolder)) for subfolder in subfolders}
    mains = {split(main_of(files))[:2]: main_of(files) for files in groups_of_files}
    edits = {main_of(files): edited_version(main_of(files), mains) for files in groups_of_files}
    edited = set(edits.values())
    for files in groups_of_files:
        if main_of(files) in edited:
            continue
        subfolder = os.path.dirname(files[0])
        names = names_of[subfolder]
        item = Item(files, editor="com.google.photos", edited=edits[main_of(files)])
        title = takeout_album(subfolder)
        item.albums = [title] if title else []
        description = next((name for name in (takeout_json(path, names) for path in files) if name), None)
        facts = read_json(os.path.join(subfolder, description)) if description else {}
        if facts is None or facts.get("trashed"):
            continue
        item.facts = {
            "is_favorite": bool(facts.get("favorited")),
            "is_hidden": bool(facts.get("archived")),
            "caption": facts.get("description") or None,
            "keywords": [person["name"] for person in facts.get("people", []) if person.get("name")] or None,
        }
        taken = facts.get("photoTakenTime", {}).get("timestamp")
        item.date = datetime.fromtimestamp(int(taken), timezone.utc) if taken else None
        coordinates = facts.get("geoData") or {}
        item.location = position(*(coordinates.get(name) for name in ("latitude", "longitude", "altitude")))
        yield item


def main_of(files):
    """Returns the photo of a group of files, or else the video."""
    kinds = by_kind(files)
    return kinds.get("photo") or kinds.get("raw") or kinds["video"]


def edited_version(path, mains):
    """Returns the edited version of a photo or a video, or None: of "a.jpg" that is "a-edited.jpg", and of "a(1).jpg"
    "a-edited(1).jpg". That of a raw file may be a JPEG.

    `mains` are the photos and videos by their folders and names.
    """
    folder, stem, _ = split(path)
    title, count = re.fullmatch(r"(.*?)(\(\d+\))?", stem).groups(default="")
    edited_stems = [title + word + count for word in EDITED] + [stem + word for word in EDITED]
    found = [mains[folder, edited_stem] for edited_stem in edited_stems if (folder, edited_stem) in mains]
    is_video = kind_of(path) == "video"
    return next((edited for edited in found if (kind_of(edited) == "video") == is_video), None)


def read_json(path):
    return read(path, json.load)


def read(path, load):
    """Returns the facts in a file, {} if there is no such file or its text is malformed, and None if it cannot be read.
    In the last case the photo is not imported; the same command can import it later."""
    try:
        with open(path, encoding="utf-8") as file:
            found = load(file)
            return found if isinstance(found, dict) else {}
    except (FileNotFoundError, IsADirectoryError):
        return {}
    except OSError as error:
        fail_once(path, error.strerror)
        return None
    except ValueError as error:
        fail_once(path, error)
        return {}


# iCloud: "Photos/*", "Photos/Photo Details*.csv", "Albums/*.csv"

ICLOUD_DATE = re.compile(r"\w+,? (\w+ \d+), ?(\d{4}),? (\d+:\d+).?([AP]M) GMT")


def icloud_date(text):
    """Returns the date of "Sunday May 22,2022 6:38 PM GMT", or None."""
    found = ICLOUD_DATE.fullmatch(text.strip())
    if not found:
        return None
    return datetime.strptime(" ".join(found.groups()), "%B %d %Y %I:%M %p").replace(tzinfo=timezone.utc)


def icloud(folder, _):
    details, albums = {}, {}
    for subfolder, _, files in folders_below(folder, fail_once):
        for name in sorted(files):
            path = os.path.join(subfolder, name)
            if name.startswith("Photo Details") and name.endswith(".csv"):
                for row in rows(path):
                    details[os.path.join(subfolder, row.get("imgName", ""))] = row
            elif os.path.basename(subfolder) == "Albums" and name.endswith(".csv"):
                for row in rows(path):
                    albums.setdefault(next(iter(row.values()), ""), []).append(name[: -len(".csv")])
    for files in media(folder):
        row = next((details[path] for path in files if path in details), {})
        if row.get("deleted") == "yes":
            continue
        item = Item(files)
        item.facts = {"is_favorite": row.get("favorite") == "yes", "is_hidden": row.get("hidden") == "yes"}
        item.date = icloud_date(row.get("originalCreationDate") or "")
        item.albums = sorted({title for path in files for title in albums.get(os.path.basename(path), [])})
        yield item


def rows(path):
    """Yields the rows of a table. If it cannot be read, the program ends, because any photo may be described in it."""
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            yield from csv.DictReader(file)
    except (OSError, ValueError, csv.Error) as error:
        raise SystemExit(f"migrate.py: {path}: {error.strerror if isinstance(error, OSError) else error}")


# Photos for Mac and Immich: the facts are in the files and their XMP sidecars, which the import reads.


def apple(folder, options):
    """Yields the items of Photos for Mac, by the names that devices give: IMG_0001.HEIC is the original, IMG_E0001.HEIC
    or IMG_E0001.JPG the edited version."""
    edits = {}
    for path in files_below([folder], fail_once):
        subfolder, stem, _ = split(path)
        found = re.fullmatch(r"(.*_)E(\d{4,})", stem)
        if found and kind_of(path) != "xmp":
            edits[os.path.join(subfolder, found[1] + found[2]), kind_of(path)] = path
    for files in media(folder):
        subfolder, stem, _ = split(files[0])
        found = re.fullmatch(r"(.*_)E(\d{4,})", stem)
        original = os.path.join(subfolder, found[1] + found[2]) if found else None
        if found and any(os.path.exists(original + split(path)[2]) for path in files):
            continue
        if found and any(name.startswith(found[1] + found[2] + ".") for name in os.listdir(subfolder)):
            continue
        item = Item(files, editor="com.apple.photo")
        kind = "photo" if any(kind_of(path) in ("photo", "raw") for path in files) else "video"
        item.edited = edits.get((os.path.join(subfolder, stem), kind))
        item.albums = album_of(subfolder, folder, options)
        yield item


def immich(folder, options):
    for files in media(folder, skip=("thumbs", "encoded-video", "profile", "backups")):
        yield Item(files, albums=album_of(os.path.dirname(files[0]), folder, options))


def album_of(subfolder, folder, options):
    """Returns the title of the album for a folder, as a list; an empty list if there is none."""
    return [os.path.basename(subfolder)] if options.albums and not os.path.samefile(subfolder, folder) else []


# PhotoPrism: "sidecar/**/*.yml" beside "originals/**/*", and "albums/album/*.yml"


def photoprism(folder, options):
    try:
        import yaml
    except ImportError:
        raise SystemExit("migrate.py: PhotoPrism's files are YAML; install python3-yaml, or: pip install PyYAML")

    def load(file):
        try:
            # Dates stay text: some have ten digits of a second.
            return yaml.load(file, Loader=yaml.BaseLoader)
        except yaml.YAMLError as error:
            raise ValueError(" ".join(str(error).split()))

    storage = options.storage or os.path.join(os.path.dirname(os.path.abspath(folder)), "storage")
    albums = {}
    for parent in (storage, os.path.join(storage, "backup")):
        albums_folder = os.path.join(parent, "albums", "album")
        for name in names_in(albums_folder):
            album = read(os.path.join(albums_folder, name), load) or {}
            for photo in album.get("Photos") or []:
                if album.get("Title") and photo.get("Hidden") != "true":
                    albums.setdefault(photo.get("UID"), []).append(album["Title"])
    for files in media(folder):
        subfolder, stem, _ = split(files[0])
        relative = os.path.relpath(subfolder, folder)
        sidecars = (os.path.join(storage, "sidecar", relative, stem + ".yml"), os.path.join(subfolder, stem + ".yml"))
        facts = next((found for found in (read(path, load) for path in sidecars) if found != {}), {})
        if facts is None or facts.get("DeletedAt"):
            continue
        details = facts.get("Details") or {}
        item = Item(files, albums=sorted(set(albums.get(facts.get("UID"), []))))
        item.facts = {
            "is_favorite": facts.get("Favorite") == "true",
            "is_hidden": facts.get("Private") == "true",
            "caption": facts.get("Caption") or facts.get("Description") or facts.get("Title") or None,
            "keywords": [word.strip() for word in (details.get("Keywords") or "").split(",") if word.strip()] or None,
        }
        item.date = rfc3339(facts.get("TakenAt"))
        item.location = position(facts.get("Lat"), facts.get("Lng"), facts.get("Altitude"))
        yield item


def names_in(folder):
    try:
        return sorted(os.listdir(folder))
    except FileNotFoundError:
        return []
    except OSError as error:
        fail_once(folder, error.strerror)
        return []


def rfc3339(text):
    found = re.match(r"(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d:\d\d)", text or "")
    return datetime.fromisoformat(f"{found[1]}T{found[2]}+00:00") if found else None


# The import


def sha256(path):
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while chunk := file.read(1 << 20):
            digest.update(chunk)
    return digest.hexdigest()


class Migration:
    """Imports items, and counts them."""

    def __init__(self, library):
        self.library = library
        self.albums = {}
        # Assets by the digest of their file: those of the library, and those of this run, because most programs repeat
        # a photo in each of its albums.
        self.known = {}
        self.trashed = set()
        for is_trashed in (False, True):
            for asset in library.fetch(include_hidden=True, include_all_burst_assets=True, in_trash=is_trashed):
                digest = asset.resources[0].digest
                self.known[digest] = asset.id
                if is_trashed:
                    self.trashed.add(digest)
        # The digests of the files that this run has handled.
        self.handled = set()
        self.imported = self.existing = self.edits = 0

    def import_item(self, item):
        name = os.path.basename(item.files[0])
        for path in [*item.files, *([item.edited] if item.edited else [])]:
            problem = problem_of(path)
            if problem:
                return fail(os.path.basename(path), problem)
        try:
            self.add(item)
        except ResourcesDisagreeError:
            # A video has the name of a photo, but the two are not a Live Photo.
            for files in split_group(item.files):
                self.import_item(replace(item, files=files, edited=item.edited if files[0] == item.files[0] else None))
        except SafelightError as error:
            if error.is_temporary or isinstance(error, NotRunningError):
                raise
            parts = without_refused_sidecar(item.files, error)
            if not parts:
                return fail(name, error.message)
            originals, sidecar = parts
            fail(os.path.basename(sidecar), error.message)
            self.import_item(replace(item, files=originals))
        except (OSError, ValueError) as error:
            # A file was removed meanwhile, its disk has failed, or a text is not Unicode.
            fail(name, error)
        else:
            print(name, flush=True)

    def add(self, item):
        kinds = by_kind(item.files)
        still = kinds.get("photo") or kinds.get("raw")
        digest = sha256(still or kinds["video"])
        if digest in self.trashed:
            return
        albums = [self.album(title) for title in item.albums]
        if digest in self.known:
            self.existing += digest not in self.handled
            self.complete(item, kinds, still, digest)
        else:
            self.known[digest] = self.create(item, kinds, still)
            self.imported += 1
        self.handled.add(digest)
        asset = self.library.assets[self.known[digest]]
        collections = {membership.collection for membership in asset.memberships}
        missing = {}
        if item.date and asset.creation_date is None:
            missing["creation_date"] = item.date
        if item.location and asset.location is None:
            missing["location"] = item.location
        with self.library.changing() as changes:
            for album in albums:
                if album.id not in collections:
                    changes.add(album, [asset])
            if missing:
                changes.update(asset, **missing)
        if item.edited and not asset.has_adjustments:
            self.commit_edit(asset, item)

    def complete(self, item, kinds, still, digest):
        """Adds the raw file and the video of a photo to its asset, which the library may have without them. A file that
        cannot be added becomes an asset of its own."""
        parts = [kinds[kind] for kind in ("raw", "video") if kinds.get(kind, still) != still and still]
        own = {resource.digest for resource in self.library.assets[self.known[digest]].resources}
        if all(part in own or part in self.known or part in self.trashed for part in map(sha256, parts)):
            return
        with self.library.changing() as changes:
            created = changes.create_asset(
                still, alternate_photo=kinds.get("raw") if "photo" in kinds else None, paired_video=kinds.get("video")
            )
        if "resources" in created.ignored:
            own = {resource.digest for resource in self.library.assets[created.id].resources}
            for path in parts:
                if sha256(path) not in own:
                    self.import_item(replace(item, files=[path], edited=None))

    def create(self, item, kinds, still):
        with self.library.changing() as changes:
            created = changes.create_asset(
                still,
                alternate_photo=kinds.get("raw") if "photo" in kinds else None,
                paired_video=kinds.get("video") if still else None,
                video=None if still else kinds.get("video"),
                sidecar=kinds.get("xmp"),
                **{name: value for name, value in item.facts.items() if value},
            )
        return created.id

    def commit_edit(self, asset, item):
        """Adds the edited version as the edit of another program: the original is kept, and `revert` shows it."""
        render_type = "fullSizeVideo" if asset.media_type == "video" else "fullSizePhoto"
        data = json.dumps({"sha256": sha256(item.edited)}).encode()
        with self.library.changing() as changes:
            changes.commit_edit(asset, item.edited, data, item.editor, "1", render_type=render_type)
        self.edits += 1

    def album(self, title):
        if title not in self.albums:
            self.albums[title] = self.library.albums.get(title)
        if self.albums[title] is None:
            with self.library.changing() as changes:
                created = changes.create_album(title)
            self.albums[title] = self.library.albums[created.id]
        return self.albums[title]


def main():
    parser = argparse.ArgumentParser(
        prog="migrate.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    sources = {"google": google, "icloud": icloud, "apple": apple, "immich": immich, "photoprism": photoprism}
    parser.add_argument("source", choices=sources)
    parser.add_argument("folder", metavar="FOLDER")
    parser.add_argument("--albums", action="store_true", help="make an album of each folder that has photos")
    parser.add_argument("--storage", metavar="FOLDER", help="PhotoPrism's storage folder; default: beside FOLDER")
    parser.add_argument("--dry-run", action="store_true", help="print what would be imported")
    options = parser.parse_args()
    if not os.path.isdir(options.folder):
        parser.error(f"there is no folder {options.folder}")
    # Some names of files are not Unicode.
    sys.stdout.reconfigure(errors="backslashreplace")
    items = sources[options.source](options.folder, options)
    if options.dry_run:
        for item in items:
            facts = [name for name, value in item.facts.items() if value]
            print(*item.files, *(f"album:{title}" for title in item.albums), *facts, *["edited"] * bool(item.edited))
        return 1 if failed else 0
    migration = Migration(Library(client="migrate", wait=10))
    try:
        for item in items:
            migration.import_item(item)
    finally:
        # Printed also if a service has ended: the same command then continues the migration.
        print(
            f"{migration.imported} imported, {migration.existing} already there, {migration.edits} edits kept,"
            f" {len(migration.albums)} albums, {len(failed)} failed"
        )
    return 1 if failed else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except SafelightError as error:
        sys.exit(f"migrate.py: {error.message}")
    except KeyboardInterrupt:
        sys.exit("migrate.py: interrupted; the same command continues")
    except BrokenPipeError:
        sys.exit(1)
