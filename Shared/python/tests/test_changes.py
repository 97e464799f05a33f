"""Tests of transactions, imports and the history without services."""

import os
import tempfile
import unittest
from unittest import mock

from safelight import CaughtUp, Expired, ImportedFile, Library, errors
from safelight.changing import Changes
from safelight.images import ImageData
from safelight.importing import files_beside, groups, import_files, is_importable
from safelight.objects import Location
from safelight.transport import Reply

ALBUM, ASSET, OTHER = "c" + 26 * "1", "a" + 26 * "1", "a" + 26 * "2"


class Catalog:
    """A catalog that records open uploads, and answers each transaction with the next of the given outcomes."""

    def __init__(self, *outcomes):
        self.outcomes = list(outcomes)
        self.begun = 0
        self.open = set()
        self.performed = []

    def request(self, method, params=None, attachments=(), deadline=30.0, on_notification=None):
        if method == "upload.begin":
            self.begun += 1
            self.open.add(f"u{self.begun}")
            return Reply({"upload": f"u{self.begun}", "chunkBytes": 4}, [])
        if method == "upload.cancel":
            self.open.remove(params["upload"])
        if method == "changes.perform":
            self.performed.append(params["requests"])
            outcome = self.outcomes.pop(0)
            if isinstance(outcome, Exception):
                raise outcome
            for resource in (one for request in params["requests"] for one in request.get("resources", [])):
                self.open.remove(resource["upload"])
            return Reply(outcome, [])
        if method == "fetch.assets":
            digest = "1f40fc92da241694750979ee6cf582f2d5d7d28e18335de05abc54d0560e0f53"  # of "1"
            assets = [{"id": params["fetch"]["ids"][0], "resources": [{"type": "photo", "digest": digest}]}]
            return Reply({"assets": assets, "count": 1, "token": "h.1"}, [])
        return Reply({"upload": (params or {}).get("upload")}, [])


def library_of(catalog):
    library = Library("/nonexistent")
    library.catalog = catalog
    return library


class StopError(Exception):
    """Raised by a progress handler."""


class UploadTests(unittest.TestCase):
    def test_an_upload_is_cancelled_if_its_progress_handler_raises(self):
        def stop(_):
            raise StopError

        for interrupt in (StopError, KeyboardInterrupt):
            catalog = Catalog()
            with self.assertRaises(interrupt), mock.patch("safelight.changing.Progress", side_effect=interrupt):
                library_of(catalog).upload(b"photo", progress=stop)
            self.assertEqual((catalog.begun, catalog.open), (1, set()))

    def test_the_uploads_of_a_block_are_cancelled_if_a_file_is_missing(self):
        catalog = Catalog()
        with self.assertRaises(FileNotFoundError), library_of(catalog).changing() as changes:
            changes.create_asset(b"photo")
            changes.create_asset("/nonexistent/photo.jpg")
        self.assertEqual((catalog.begun, catalog.open), (1, set()))

    def test_the_uploads_of_a_block_are_cancelled_if_it_is_interrupted_or_refused(self):
        for error in (KeyboardInterrupt(), errors.ConflictError()):
            catalog = Catalog(error)
            library = library_of(catalog)
            if isinstance(error, KeyboardInterrupt):
                library.perform = mock.Mock(side_effect=error)
            with self.assertRaises(type(error)), library.changing() as changes:
                changes.create_asset(b"photo")
            self.assertEqual((catalog.begun, catalog.open), (1, set()))

    def test_an_import_ends_if_no_upload_can_begin(self):
        error = errors.LimitExceededError(message="64 uploads are open", data={"limit": 64, "open": 64})
        with tempfile.TemporaryDirectory() as folder:
            for name in ("a.jpg", "b.jpg"):
                open(f"{folder}/{name}", "w").close()
            with mock.patch("safelight.importing._import", side_effect=error) as asked:
                with self.assertRaises(errors.LimitExceededError):
                    import_files(None, folder)
        self.assertEqual(asked.call_count, 1)


class PlaceholderTests(unittest.TestCase):
    def test_a_placeholder_of_an_earlier_block_is_the_object_that_it_created(self):
        catalog = Catalog({"placeholders": {"new0": ALBUM}}, {"placeholders": {}})
        library = library_of(catalog)
        with library.changing() as changes:
            first = changes.create_album("A")
            changes.add(first, [ASSET])
        with library.changing() as changes:
            second = changes.create_album("B", parent="l" + 26 * "1")
            changes.add(first, [ASSET])
            changes.rename(first, "C")
            changes.set_key_asset(first, ASSET)
            changes.remove(second, [ASSET])
        earlier, later = ([one.get("id") for one in requests] for requests in catalog.performed)
        self.assertEqual(earlier, [None, {"ref": "new0"}])
        self.assertEqual(later, [None, ALBUM, ALBUM, ALBUM, {"ref": "new0"}])

    def test_a_placeholder_of_another_block_is_refused_before_its_commit(self):
        library = library_of(Catalog())
        outer = Changes(library)
        album = outer.create_album("A")
        with self.assertRaisesRegex(ValueError, "created when the block"):
            Changes(library).add(album, [ASSET])

    def test_a_placeholder_of_a_folder_is_changed_by_requests_for_lists(self):
        catalog = Catalog({"placeholders": {}})
        with library_of(catalog).changing() as changes:
            folder = changes.create_folder("F")
            album = changes.create_album("X")
            changes.add(folder, [album])
            changes.rename(folder, "G")
            changes.remove(folder, [album])
            changes.add(album, [ASSET])
        types = [one["type"] for one in catalog.performed[0]]
        self.assertEqual(types, ["list.create", "collection.create", *["list.update"] * 3, "collection.update"])

    def test_a_string_is_refused_instead_of_a_list_of_strings(self):
        changes = Changes(library_of(Catalog()))
        for refused in (
            lambda: changes.update(ASSET, add_keywords="alps"), lambda: changes.update(ASSET, remove_keywords="alps"),
            lambda: changes.create_asset(b"1", add_keywords="alps"),
            lambda: Library("/nonexistent").changes(topics="x"),
        ):
            with self.assertRaisesRegex(errors.InvalidParametersError, "expected a list of texts"):
                refused()
        self.assertEqual(len(changes), 0)


class ValueTests(unittest.TestCase):
    def test_equal_values_have_equal_hashes(self):
        locations = [Location({"latitude": 1, "longitude": 2}), Location({"longitude": 2.0, "latitude": 1.0})]
        self.assertEqual(len({*locations, Location({"latitude": 1, "longitude": 3})}), 2)
        images = [ImageData({"asset": "a"}, data) for data in (b"1", b"1", b"2")]
        self.assertEqual((images[0] == images[1], images[0] == images[2], len(set(images))), (True, False, 2))

    def test_a_string_that_is_not_an_identifier_finds_no_asset(self):
        library = library_of(Catalog())
        for text in ("zzz", "", "c" + 26 * "1", "a" + 26 * "u"):
            self.assertEqual((library.assets.get(text), text in library.assets), (None, False))
            with self.assertRaises(errors.IdentifierNotFoundError):
                library.assets[text]
        self.assertEqual([one.id for one in library.assets.many([ASSET, "zzz"])], [ASSET])
        result = library.fetch()
        self.assertFalse("zzz" in result)
        for value in ("zzz", 5):
            with self.assertRaises(ValueError):
                result.index(value)
        with self.assertRaises(TypeError):
            library.assets[0]

    def test_edits_of_no_assets_do_nothing(self):
        library = library_of(None)
        for outcome in (library.edit([], exposure=1), library.copy_edits(ASSET, iter([]))):
            self.assertEqual((outcome.done, outcome.failed, outcome.is_changed, outcome.results), (0, 0, False, []))

    def test_a_published_edit_without_an_asset_identifier_is_refused_before_sending(self):
        for asset in (ALBUM, "@1", "nonsense"):
            with self.assertRaisesRegex(errors.InvalidParametersError, "edit 1 of the list"):
                library_of(None).publish([(ASSET, {}), (asset, {})])

    def test_a_live_list_refuses_a_description_together_with_parameters(self):
        with self.assertRaisesRegex(ValueError, "limit"):
            Library("/nonexistent").live({"predicate": "rating > 1"}, limit=1)


class History:
    """A catalog with three changes of two assets, two in a page."""

    records = [
        {"sequence": number, "library": "h", "assets": [{"after": {"id": id}}, {"after": {"id": "a3"}}]}
        for number, id in ((1, "a1"), (2, "a2"), (3, "a1"))
    ]

    def request(self, method, params, attachments=(), deadline=30.0, on_notification=None):
        start = int(params.get("token", "h.0")[2:])
        if start > 3:
            data = {"head": "h.3", "oldest": "h.0"}
            raise errors.PersistentChangeTokenExpiredError(message="expired", data=data)
        page = self.records[start:start + 2]
        end = page[-1]["sequence"] if page else 3
        return Reply({"records": page, "token": f"h.{end}", "head": "h.3"}, [])


class RetainedChangesTests(unittest.TestCase):
    def test_topics_restrict_retained_changes_to_their_entries(self):
        library = library_of(History())
        found = list(library.changes(topics=["asset.a1"], follow=False))
        ids = [(one.sequence, [part.id for part in one.assets]) for one in found]
        self.assertEqual(ids, [(1, ["a1"]), (3, ["a1"])])
        self.assertEqual(len(list(library.changes(follow=False, topics=["changes"]))), 3)

    def test_retained_changes_are_yielded_with_events(self):
        library = library_of(History())
        found = list(library.changes(follow=False, events=True))
        self.assertEqual((len(found), found[-1]), (4, CaughtUp(token="h.3")))
        self.assertIsInstance(found[-1], CaughtUp)
        expired = list(library.changes(since="h.9", follow=False, events=True))
        self.assertEqual(expired, [Expired(head="h.3", oldest="h.0")])
        with self.assertRaises(errors.PersistentChangeTokenExpiredError):
            list(library.changes(since="h.9", follow=False))


class GroupTests(unittest.TestCase):
    def test_files_are_grouped_by_the_rules_of_all_importers(self):
        for names, expected in [
            ("P.png P.mp4", ["P.png", "P.mp4"]),
            ("Q.jpg Q.avi", ["Q.jpg", "Q.avi"]),
            ("S.jpg S.m4v", ["S.jpg", "S.m4v"]),
            ("R.png R.dng", ["R.png", "R.dng"]),
            ("H.JPG H.MOV H.dng H.nef", ["H.JPG H.MOV", "H.dng", "H.nef"]),
            ("L.jxl L.mp4 L.cr3", ["L.jxl L.mp4 L.cr3"]),
            ("M.jpg M.mov M.mp4 M.dng", ["M.jpg M.dng", "M.mov", "M.mp4"]),
            ("N.jpg N.png N.mov", ["N.jpg N.mov", "N.png"]),
            ("O.jpg O.heic O.mov", ["O.jpg", "O.heic", "O.mov"]),
            ("V.dng V.mov V.xmp", ["V.dng V.xmp", "V.mov V.xmp"]),
        ]:
            self.assertEqual([" ".join(files) for files in groups(names.split())], expected)

    def test_files_of_one_photo_are_found_beside_each_other(self):
        names = ["a.jpg", "a.jpg.xmp", "a.mov", "a.txt", "a.xmp", "ab.jpg", ".a.jpg", "b.jpg"]
        with tempfile.TemporaryDirectory() as folder:
            for name in names:
                open(f"{folder}/{name}", "w").close()
            for name in ("a.jpg", "a.jpg.xmp", "a.mov", "a.xmp"):
                found = [os.path.basename(path) for path in files_beside(f"{folder}/{name}")]
                self.assertEqual(found, ["a.jpg", "a.jpg.xmp", "a.mov", "a.xmp"])
        self.assertEqual([is_importable(name) for name in ("a.JPG", "a.jpg.part", ".a.jpg", "a.XMP")],
                         [True, False, False, True])


class KnownPhotoTests(unittest.TestCase):
    """Imports of a photo that the library already has, with files that are not added to its asset."""

    def test_another_raw_file_becomes_a_separate_asset_and_the_ignored_sidecar_is_reported(self):
        ignored = [{"request": 0, "ref": "new0", "members": ["resources", "sidecar"]}]
        catalog = Catalog(
            {"placeholders": {"new0": ASSET}, "duplicates": ["new0"], "ignored": ignored},
            {"placeholders": {"new0": OTHER}},
        )
        with tempfile.TemporaryDirectory() as folder:
            for name in ("a.jpg", "a.dng", "a.xmp"):
                with open(f"{folder}/{name}", "w") as file:
                    file.write(name)
            amounts = []
            imported = import_files(library_of(catalog), folder, progress=amounts.append)
            self.assertEqual(imported, [
                ImportedFile([f"{folder}/a.jpg", f"{folder}/a.xmp"], ASSET, True, None, (), (f"{folder}/a.xmp",)),
                ImportedFile([f"{folder}/a.dng", f"{folder}/a.xmp"], OTHER, False, None),
            ])
        self.assertLessEqual(max(one.fraction for one in amounts), 1)

    def test_a_video_that_the_asset_already_has_does_not_become_another_asset(self):
        ignored = [{"request": 0, "ref": "new0", "members": ["sidecar"]}]
        catalog = Catalog({"placeholders": {"new0": ASSET}, "duplicates": ["new0"], "ignored": ignored})
        with tempfile.TemporaryDirectory() as folder:
            for name in ("a.jpg", "a.mov", "a.xmp"):
                open(f"{folder}/{name}", "w").close()
            imported = import_files(library_of(catalog), folder)
        self.assertEqual([(len(one.paths), one.asset, len(one.ignored)) for one in imported], [(3, ASSET, 1)])


if __name__ == "__main__":
    unittest.main()
