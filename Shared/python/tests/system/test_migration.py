"""Migrations from other programs: folders as they export them, imported by `compose/examples/migrate.py`."""

import codecs
import contextlib
import io
import json
import os
import runpy
import shutil
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

import yaml  # before root privileges are dropped

import safelight
from services import Services, as_ordinary_user

MIGRATE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../../compose/examples/migrate.py")

SIDECAR = """<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">
<rdf:Description rdf:about="" xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:xmp="http://ns.adobe.com/xap/1.0/"
 xmp:Rating="4"><dc:description><rdf:Alt><rdf:li xml:lang="x-default">At the lake</rdf:li></rdf:Alt></dc:description>
</rdf:Description></rdf:RDF></x:xmpmeta>"""


class UnreadableTests(unittest.TestCase):
    """Dry runs with readable and unreadable files, and a library that fails. No services run."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.closed = []
        os.chmod(self.folder, 0o755)

    def write(self, path, text=""):
        os.makedirs(os.path.dirname(f"{self.folder}/{path}"), exist_ok=True)
        with open(f"{self.folder}/{path}", "w") as file:
            file.write(text)

    def make_unreadable(self, path):
        self.addCleanup(os.chmod, f"{self.folder}/{path}", 0o755)
        os.chmod(f"{self.folder}/{path}", 0o000)

    def migrate(self, *arguments, library=None):
        """Returns the status, the lines of the output without the folder, and the files that the errors name."""
        program = runpy.run_path(MIGRATE)
        output, problems = io.TextIOWrapper(io.BytesIO(), write_through=True), io.StringIO()
        with mock.patch("sys.argv", ["migrate.py", *arguments]), contextlib.redirect_stdout(output), \
                contextlib.redirect_stderr(problems), mock.patch.dict(program["main"].__globals__, Library=library), \
                as_ordinary_user():
            try:
                status = program["main"]()
            except safelight.SafelightError as error:
                status = error.name
        lines = output.buffer.getvalue().decode().replace(f"{self.folder}/", "").splitlines()
        named = [line.replace(f"{self.folder}/", "").split(": ")[0] for line in problems.getvalue().splitlines()]
        return status, lines, named

    def test_a_google_edit_is_added_to_its_photo_or_imported_alone(self):
        names = [
            "IMG_3.jpg", "IMG_3(1).jpg", "IMG_3-edited(1).jpg", "IMG_6.MP4", "IMG_6.jpg", "IMG_6-bearbeitet.jpg",
            "A.dng", "A.jpg", "A-edited.jpg", "alone-edited.jpg", "clip.mp4", "clip-edited.mp4", "B.HEIC",
            "B-edited.jpg",
        ]
        for name in names:
            self.write(f"Photos/{name}")
        status, lines, named = self.migrate("google", self.folder, "--dry-run")
        self.assertEqual((status, named), (0, []))
        self.assertEqual(sorted(line.replace("Photos/", "") for line in lines), sorted([
            "IMG_3.jpg", "IMG_3(1).jpg edited", "IMG_6.MP4 IMG_6.jpg edited", "A.dng A.jpg edited", "alone-edited.jpg",
            "clip.mp4 edited", "B.HEIC edited",
        ]))

    def test_a_folder_that_cannot_be_read_is_named_once(self):
        for name in ["a.jpg", "closed/b.jpg", "z.jpg"]:
            self.write(f"photos/{name}")
        self.make_unreadable("photos/closed")
        for source in ["google", "icloud", "apple", "immich", "photoprism"]:
            self.assertEqual(
                (source, *self.migrate(source, f"{self.folder}/photos", "--dry-run")),
                (source, 1, ["photos/a.jpg", "photos/z.jpg"], ["photos/closed"]),
            )

    def test_a_photo_is_skipped_while_its_google_description_is_unreadable(self):
        self.write("Photos from 2023/metadata.json", "{")
        for name, text in [("a", "{}"), ("b", '{"favorited": true}'), ("c", "no JSON")]:
            self.write(f"Photos from 2023/{name}.jpg")
            self.write(f"Photos from 2023/{name}.jpg.json", text)
        self.make_unreadable("Photos from 2023/b.jpg.json")
        status, lines, named = self.migrate("google", self.folder, "--dry-run")
        self.assertEqual((status, lines), (1, ["Photos from 2023/a.jpg", "Photos from 2023/c.jpg"]))
        self.assertEqual(sorted(named), [
            "Photos from 2023/b.jpg.json", "Photos from 2023/c.jpg.json", "Photos from 2023/metadata.json",
        ])

    def test_icloud_photos_are_skipped_while_their_tables_are_unreadable(self):
        codecs.lookup("utf-8-sig")  # before root privileges are dropped
        self.write("Photos/a.jpg")
        self.write("Photos/Photo Details.csv", "imgName,favorite\na.jpg,yes\n")
        self.assertEqual(self.migrate("icloud", self.folder, "--dry-run"), (0, ["Photos/a.jpg is_favorite"], []))
        self.make_unreadable("Photos/Photo Details.csv")
        with self.assertRaisesRegex(SystemExit, "Photo Details.csv: Permission denied"):
            self.migrate("icloud", self.folder, "--dry-run")

    def test_a_photo_is_skipped_while_its_photoprism_description_is_unreadable(self):
        for name in ["a", "sub/b"]:
            self.write(f"originals/{name}.jpg")
            self.write(f"storage/sidecar/{name}.yml", "Favorite: true")
        self.write("originals/c.jpg")
        self.write("storage/albums/album/one.yml", "Title: One")
        self.make_unreadable("storage/sidecar/sub")
        self.make_unreadable("storage/albums")
        self.assertEqual(self.migrate("photoprism", f"{self.folder}/originals", "--dry-run"), (
            1, ["originals/a.jpg is_favorite", "originals/c.jpg"],
            ["storage/albums/album", "storage/sidecar/sub/b.yml"],
        ))

    def test_the_last_line_is_the_summary_even_if_a_service_is_lost(self):
        for name in ["a.jpg", "b.jpg"]:
            self.write(f"photos/{name}", name)
        library = mock.MagicMock()
        library.fetch.return_value = []
        library.changing.side_effect = [mock.MagicMock(), mock.MagicMock(), safelight.UnavailableError()]
        library.assets.__getitem__.return_value = mock.Mock(memberships=[])
        status, lines, _ = self.migrate("immich", f"{self.folder}/photos", library=lambda **_: library)
        self.assertEqual((status, lines), (
            "unavailable", ["a.jpg", "1 imported, 0 already there, 0 edits kept, 0 albums, 0 failed"],
        ))


class MigrationTests(unittest.TestCase):
    def setUp(self):
        self.services = Services().start()
        self.library = self.services.library()
        self.folder = f"{self.services.folder}/exported"
        self.photo_count = 0

    def tearDown(self):
        self.library.close()
        self.services.stop()

    # Folders

    def write_photo(self, path, date=None):
        self.photo_count += 1
        self.services.write_photo(f"{self.folder}/{path}", self.photo_count, date)

    def write_text(self, path, text):
        os.makedirs(os.path.dirname(f"{self.folder}/{path}"), exist_ok=True)
        with open(f"{self.folder}/{path}", "w", encoding="utf-8") as file:
            file.write(text)

    def write_json(self, path, **members):
        self.write_text(path, json.dumps(members))

    def migrate(self, *arguments):
        """Runs the program and returns its last line."""
        command = [sys.executable, "-B", MIGRATE, *arguments]
        run = subprocess.run(command, env=self.services.environment, capture_output=True, text=True, timeout=120)
        self.assertEqual((run.returncode, run.stderr), (0, ""), run.stdout)
        return run.stdout.splitlines()[-1]

    def assets(self):
        """Returns the properties of each asset that are set, by file name."""
        albums = {album.id: album.title for album in self.library.albums}
        found = {}
        for asset in self.library.fetch(include_hidden=True):
            members = {
                "date": asset.creation_date and asset.creation_date.isoformat(),
                "place": asset.location and (asset.location.latitude, asset.location.longitude),
                "caption": asset.caption,
                "keywords": asset.keywords,
                "rating": asset.rating,
                "favorite": asset.is_favorite,
                "hidden": asset.is_hidden,
                "edited": asset.adjustment_format_identifier if asset.has_adjustments else None,
                "albums": [albums[one.collection] for one in asset.memberships],
            }
            found[asset.original_filename] = {name: value for name, value in members.items() if value}
        return found

    # Programs

    def test_google_takeout(self):
        year = "Takeout/Google Photos/Photos from 2023"
        self.write_json(f"{year}/metadata.json", title="Photos from 2023")
        self.write_photo(f"{year}/IMG_1.jpg", "2023:05:01 12:00:00")
        self.write_json(
            f"{year}/IMG_1.jpg.supplemental-metadata.json",
            title="IMG_1.jpg", description="Jörg am See", favorited=True, people=[{"name": "Jörg"}],
            photoTakenTime={"timestamp": "1682935200"}, geoData={"latitude": 47.5, "longitude": 8.5, "altitude": 400.0},
        )
        self.write_photo(f"{year}/IMG_1-edited.jpg")
        self.write_photo(f"{year}/IMG_1(1).jpg")
        self.write_json(
            f"{year}/IMG_1.jpg.supplemental-metadata(1).json",
            photoTakenTime={"timestamp": "1672531200"}, geoData={"latitude": 0.0, "longitude": 0.0},
        )
        long = "Screenshot_20230501-120000_Some long application.jpg"
        self.write_photo(f"{year}/{long}")
        self.write_json(f"{year}/{long[:46]}.json", description="cut name")
        self.write_photo(f"{year}/PXL_20230501_120000123.PORTRAIT.jpg")
        self.write_json(f"{year}/PXL_20230501_120000123.PORTRAIT.jpg.supplement.json", archived=True)
        self.write_photo(f"{year}/trashed.jpg")
        self.write_json(f"{year}/trashed.jpg.json", trashed=True)
        self.write_json("Takeout/Google Photos/Lake/metadata.json", title="Summer at the lake")
        shutil.copy(f"{self.folder}/{year}/IMG_1.jpg", f"{self.folder}/Takeout/Google Photos/Lake/IMG_1.jpg")

        self.assertEqual(
            self.migrate("google", self.folder), "4 imported, 0 already there, 1 edits kept, 1 albums, 0 failed"
        )
        expected = {
            "IMG_1.jpg": {
                "date": "2023-05-01T12:00:00+00:00", "place": (47.5, 8.5), "caption": "Jörg am See",
                "keywords": ("Jörg",), "favorite": True, "edited": "com.google.photos",
                "albums": ["Summer at the lake"],
            },
            "IMG_1(1).jpg": {"date": "2023-01-01T00:00:00+00:00"},
            long: {"caption": "cut name"},
            "PXL_20230501_120000123.PORTRAIT.jpg": {"hidden": True},
        }
        self.assertEqual(self.assets(), expected)
        edited = self.library.fetch("hasAdjustments == TRUE")[0]
        with open(f"{self.folder}/{year}/IMG_1-edited.jpg", "rb") as file:
            self.assertEqual(edited.image_data().data, file.read())

        # Repeated, it changes nothing, and keeps what was changed in the library.
        with self.library.changing() as changes:
            changes.update(edited, is_favorite=False)
            changes.trash(self.library.fetch("caption == 'cut name'")[0])
        self.assertEqual(
            self.migrate("google", self.folder), "0 imported, 3 already there, 0 edits kept, 1 albums, 0 failed"
        )
        del expected["IMG_1.jpg"]["favorite"], expected[long]
        self.assertEqual(self.assets(), expected)

    def test_a_known_photo_is_given_its_video_or_the_video_becomes_an_asset(self):
        for name in ("one", "two"):
            self.write_photo(f"Takeout/{name}.jpg")
        self.library.import_files(f"{self.folder}/Takeout")
        for seconds, name in ((1, "one"), (2, "one"), (3, "two")):
            shutil.move(self.services.write_video(f"{name}.mov", seconds), f"{self.folder}/Takeout/{name}.mov")
            for _ in range(2):
                self.migrate("google", self.folder)
        assets = self.library.fetch(sort=["originalFilename"])
        self.assertEqual(
            [(asset.original_filename, [one.type for one in asset.resources]) for asset in assets],
            [("one.jpg", ["photo", "pairedVideo"]), ("one.mov", ["video"]), ("two.jpg", ["photo", "pairedVideo"])],
        )

    def test_icloud(self):
        for number in (1, 2, 3):
            self.write_photo(f"Part 1/Photos/IMG_000{number}.JPG")
        self.write_text(
            "Part 1/Photos/Photo Details.csv",
            "imgName,fileChecksum,favorite,hidden,deleted,originalCreationDate,viewCount,importDate\n"
            'IMG_0001.JPG,A,yes,no,no,"Sunday May 22,2022 6:38 PM GMT",4,"Sunday May 22,2022 6:39 PM GMT"\n'
            'IMG_0002.JPG,B,no,yes,no,"Monday May 23,2022 12:08 AM GMT",4,"Monday May 23,2022 6:39 PM GMT"\n'
            'IMG_0003.JPG,C,no,no,yes,"Monday May 23,2022 6:38 AM GMT",4,"Monday May 23,2022 6:39 PM GMT"\n',
        )
        self.write_text("Part 2/Albums/Family.csv", "Images\nIMG_0001.JPG\nIMG_0002.JPG\n")
        self.assertEqual(
            self.migrate("icloud", self.folder), "2 imported, 0 already there, 0 edits kept, 1 albums, 0 failed"
        )
        self.assertEqual(
            self.assets(),
            {
                "IMG_0001.JPG": {"date": "2022-05-22T18:38:00+00:00", "favorite": True, "albums": ["Family"]},
                "IMG_0002.JPG": {"date": "2022-05-23T00:08:00+00:00", "hidden": True, "albums": ["Family"]},
            },
        )

    def test_photos_for_mac(self):
        self.write_photo("Lake/IMG_0100.JPG")
        self.write_photo("Lake/IMG_E0100.JPG")
        self.write_photo("Lake/IMG_E0200.JPG")
        self.write_text("Lake/IMG_0100.xmp", SIDECAR)
        self.assertEqual(
            self.migrate("apple", self.folder, "--albums"),
            "2 imported, 0 already there, 1 edits kept, 1 albums, 0 failed",
        )
        self.assertEqual(
            self.assets(),
            {
                "IMG_0100.JPG": {
                    "caption": "At the lake", "rating": 4, "edited": "com.apple.photo", "albums": ["Lake"]
                },
                "IMG_E0200.JPG": {"albums": ["Lake"]},
            },
        )

    def test_immich(self):
        self.write_photo("library/admin/2024/IMG_9.jpg", "2024:05:01 12:00:00")
        self.write_text("library/admin/2024/IMG_9.jpg.xmp", SIDECAR)
        self.write_photo("thumbs/admin/aa/bb/preview.jpeg")
        self.assertEqual(
            self.migrate("immich", self.folder), "1 imported, 0 already there, 0 edits kept, 0 albums, 0 failed"
        )
        self.assertEqual(
            self.assets(),
            {"IMG_9.jpg": {"date": "2024-05-01T12:00:00+00:00", "caption": "At the lake", "rating": 4}},
        )

    def test_photoprism(self):
        for name in ("a", "b", "c"):
            self.write_photo(f"originals/2021/05/{name}.jpg")
        self.write_text(
            "storage/sidecar/2021/05/a.yml",
            'TakenAt: 2021-05-01T10:00:00Z\nUID: pa\nType: image\nTitle: "Lake: evening"\nFavorite: true\nLat: 47.5\n'
            "Lng: 8.5\nAltitude: 400\nDetails:\n  Keywords: lake, evening\n",
        )
        self.write_text(
            "storage/sidecar/2021/05/b.yml", "TakenAt: 2021-05-02T10:00:00Z\nUID: pb\nPrivate: true\nCaption: Two\n"
        )
        self.write_text("storage/sidecar/2021/05/c.yml", "UID: pc\nDeletedAt: 2022-01-01T10:00:00Z\n")
        self.write_text(
            "storage/albums/album/x.yml",
            "UID: ax\nType: album\nTitle: Lakes\nPhotos:\n- UID: pa\n- UID: pb\n  Hidden: true\n",
        )
        self.assertEqual(
            self.migrate("photoprism", f"{self.folder}/originals"),
            "2 imported, 0 already there, 0 edits kept, 1 albums, 0 failed",
        )
        self.assertEqual(
            self.assets(),
            {
                "a.jpg": {
                    "date": "2021-05-01T10:00:00+00:00", "place": (47.5, 8.5), "caption": "Lake: evening",
                    "keywords": ("lake", "evening"), "favorite": True, "albums": ["Lakes"],
                },
                "b.jpg": {"date": "2021-05-02T10:00:00+00:00", "caption": "Two", "hidden": True},
            },
        )

    def test_a_file_that_cannot_be_read_is_named_and_the_others_are_imported(self):
        self.write_photo("z.jpg")
        self.write_text("not utf-8.jpg", "")
        os.rename(f"{self.folder}/not utf-8.jpg", os.fsencode(self.folder) + b"/caf\xe9.jpg")
        os.symlink("nothing", f"{self.folder}/dangling.jpg")
        os.mkfifo(f"{self.folder}/pipe.jpg")
        command = [sys.executable, "-B", MIGRATE, "immich", self.folder]
        options = {"env": self.services.environment, "capture_output": True, "text": True, "timeout": 120}
        self.assertEqual(subprocess.run([*command, "--dry-run"], **options).returncode, 0)
        run = subprocess.run(command, **options)
        self.assertEqual(
            (run.returncode, run.stdout.splitlines()),
            (1, ["z.jpg", "1 imported, 0 already there, 0 edits kept, 0 albums, 3 failed"]),
        )
        self.assertEqual(
            [line.split(":")[0] for line in run.stderr.splitlines()], ["caf\\udce9.jpg", "dangling.jpg", "pipe.jpg"]
        )

    def test_a_photo_is_imported_without_a_sidecar_that_cannot_be_read(self):
        self.write_photo("a.jpg")
        self.write_text("a.jpg.xmp", "not XMP")
        command = [sys.executable, "-B", MIGRATE, "immich", self.folder]
        run = subprocess.run(command, env=self.services.environment, capture_output=True, text=True, timeout=120)
        self.assertEqual(
            (run.returncode, run.stdout.splitlines(), [line.split(":")[0] for line in run.stderr.splitlines()]),
            (1, ["a.jpg", "1 imported, 0 already there, 0 edits kept, 0 albums, 1 failed"], ["a.jpg.xmp"]),
        )

    def test_nothing_is_changed_without_services_or_in_a_dry_run(self):
        self.write_photo("a.jpg")
        command = [sys.executable, "-B", MIGRATE, "immich", self.folder]
        run = subprocess.run([*command, "--dry-run"], env=self.services.environment, capture_output=True, text=True)
        self.assertEqual((run.returncode, run.stdout, run.stderr), (0, f"{self.folder}/a.jpg\n", ""))
        self.assertEqual(len(self.library.assets), 0)
        environment = {**self.services.environment, "SAFELIGHT_RUN": "/nowhere"}
        run = subprocess.run(command, env=environment, capture_output=True, text=True)
        self.assertEqual(run.returncode, 1)
        self.assertIn("there is no run folder /nowhere", run.stderr)
        missing = subprocess.run([*command[:-1], "/nowhere"], capture_output=True, text=True, env=environment)
        self.assertIn("there is no folder /nowhere", missing.stderr)


if __name__ == "__main__":
    unittest.main()
