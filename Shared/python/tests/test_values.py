"""Tests of the parts of the package that need no services: fetches, adjustments, errors, members, presets, files."""

import asyncio
import datetime
import json
import math
import os
import pickle
import socket
import tempfile
import time
import unittest
from unittest import mock

import safelight
from safelight import Asset, Change, Endpoints, Library, adjustments, description, errors
from safelight.aio import AsyncLibrary
from safelight.changing import Changes
from safelight.editing import Publisher
from safelight.importing import ImportedFile, by_kind, files_below, groups, import_files
from safelight.jobs import UploadJob, UploadJobs
from safelight.members import Member, camel_case
from safelight.progress import save_parts
from safelight.transport import Reply, encode_request
from system.services import as_ordinary_user

ASSET = {
    "id": "a1", "revision": "r2", "contentRevision": "r1", "mediaType": "image", "pixelWidth": 4, "pixelHeight": 3,
    "creationDate": 1717243200000000, "duration": 1500000, "originalFilename": "one.jpg", "isFavorite": True,
    "location": {"latitude": 47.5, "longitude": 11.25}, "resources": [{"type": "photo", "size": 3}],
}


class FetchTests(unittest.TestCase):
    def test_a_description_has_the_names_of_the_protocol(self):
        self.assertEqual(description(), {})
        self.assertEqual(
            description(
                "rating > 3", sort="-creation_date", limit=5, offset=2, include_hidden=True, media_type="video"
            ),
            {"predicate": "rating > 3", "sort": [{"key": "creationDate", "ascending": False}], "limit": 5, "offset": 2,
             "includeHidden": True, "mediaType": "video"},
        )

    def test_arguments_become_json(self):
        day = datetime.datetime(2024, 6, 1, 12, tzinfo=datetime.timezone.utc)
        self.assertEqual(
            description("creationDate > %@ AND %@ IN keywords", arguments=[day, "x"])["predicate"]["arguments"],
            ["2024-06-01T12:00:00+00:00", "x"],
        )
        self.assertEqual(description(ids=[Asset(ASSET), "a2"], album="c1"), {"ids": ["a1", "a2"], "in": "c1"})

    def test_several_sort_keys_become_descriptors(self):
        self.assertEqual(
            description(sort=["rating", {"key": "id", "ascending": False}])["sort"],
            [{"key": "rating", "ascending": True}, {"key": "id", "ascending": False}],
        )


class AdjustmentTests(unittest.TestCase):
    def test_keywords_are_operations_in_their_order(self):
        self.assertEqual(
            adjustments(
                exposure=0.5, crop=(0.1, 0.2, 0.3, 0.4), black_and_white=True, sharpen={"amount": 1}, tint=None
            ),
            {"version": 1, "operations": [
                {"operation": "exposure", "value": 0.5},
                {"operation": "crop", "x": 0.1, "y": 0.2, "width": 0.3, "height": 0.4},
                {"operation": "blackAndWhite"},
                {"operation": "sharpen", "amount": 1},
            ]},
        )

    def test_a_crop_has_four_numbers(self):
        for numbers in [(0, 0, 0.5), (0, 0, 1, 1, 1), []]:
            with self.assertRaisesRegex(ValueError, "x, y, width and height"):
                adjustments(crop=numbers)

    def test_lists_operations_and_presets_are_joined(self):
        with tempfile.TemporaryDirectory() as folder, mock.patch.dict(os.environ, SAFELIGHT_PRESETS=folder + "/p"):
            self.assertEqual(safelight.presets(), [])
            safelight.save_preset("warm", temperature=0.2)
            self.assertEqual(safelight.presets(), ["warm"])
            joined = adjustments({"operation": "flip"}, adjustments(contrast=0.1), preset="warm", exposure=1)
            self.assertEqual(
                [one["operation"] for one in joined["operations"]], ["flip", "contrast", "temperature", "exposure"]
            )
            with self.assertRaisesRegex(errors.IdentifierNotFoundError, "the presets are: warm"):
                adjustments(preset="cold")
            with self.assertRaises(ValueError):
                safelight.save_preset("../x", exposure=1)


class ObjectTests(unittest.TestCase):
    def test_members_have_types_and_cannot_be_set(self):
        asset = Asset(ASSET)
        self.assertEqual(asset.creation_date, datetime.datetime(2024, 6, 1, 12, tzinfo=datetime.timezone.utc))
        self.assertEqual((asset.duration, asset.rating, asset.caption, asset.keywords), (1.5, 0, None, ()))
        self.assertEqual((asset.location.latitude, asset.location.altitude), (47.5, None))
        self.assertEqual(asset.resource().size, 3)
        self.assertEqual(
            repr(asset),
            "<Asset id='a1' original_filename='one.jpg' media_type='image' pixel_size=(4, 3) "
            "creation_date=2024-06-01T12:00:00+00:00 is_favorite=True>",
        )
        with self.assertRaisesRegex(AttributeError, "read-only"):
            asset.rating = 3
        with self.assertRaisesRegex(errors.MissingResourceError, "it has photo"):
            asset.resource("video")
        with self.assertRaisesRegex(ValueError, "not fetched"):
            asset.image()

    def test_objects_are_equal_if_they_are_the_same_object(self):
        self.assertEqual({Asset(ASSET), Asset({**ASSET, "rating": 3})}, {Asset(ASSET)})

    def test_names_follow_the_json(self):
        for name, member in vars(Asset).items():
            if isinstance(member, Member):
                self.assertEqual(camel_case(name), member.name)

    def test_a_change_has_typed_members_and_is_the_record(self):
        record = {"sequence": 7, "library": "ab", "date": 0, "origin": {"identity": "uid:0", "client": "x"},
                  "assets": [{"before": None, "after": ASSET}, {"before": ASSET, "after": {**ASSET, "rating": 3}},
                             {"before": ASSET, "after": None}]}
        change = Change(record)
        self.assertEqual((change.token, change.sequence, change.origin.client, dict(change)), ("ab.7", 7, "x", record))
        inserted, updated, deleted = change.assets
        self.assertEqual([one.kind for one in change.assets], ["inserted", "updated", "deleted"])
        self.assertEqual(
            (inserted.before, updated.changed_members, deleted.object_was_deleted), (None, ["rating"], True)
        )
        self.assertEqual((updated.after.rating, updated.asset_content_changed, deleted.id), (3, False, "a1"))


class ErrorTests(unittest.TestCase):
    def test_each_name_is_a_class_with_code_message_and_data(self):
        error = errors.SafelightError.from_json(
            {"code": 3201, "message": "gone", "data": {"name": "identifier_not_found", "id": "a1"}}
        )
        self.assertIsInstance(error, errors.IdentifierNotFoundError)
        self.assertIsInstance(error, LookupError)
        self.assertEqual((error.code, error.message, error.data["id"]), (3201, "gone", "a1"))
        again = pickle.loads(pickle.dumps(error))
        self.assertEqual((type(again), str(again), again.data), (type(error), str(error), error.data))
        self.assertIs(type(errors.make_error("new_name", "x")), errors.SafelightError)

    def test_a_service_that_does_not_run_is_reported_at_once(self):
        find = socket.getaddrinfo

        def find_at_once(host, *more):
            # A name server that does not respond would take seconds.
            if host == "host.invalid":
                raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
            return find(host, *more)

        with tempfile.TemporaryDirectory() as folder, mock.patch("socket.getaddrinfo", find_at_once):
            open(f"{folder}/catalog.sock", "w").close()
            cases = [
                (Endpoints(folder + "/none"), "there is no run folder .*/none; start the services with: safelight up"),
                (Endpoints(folder, catalog=f"ipc://{folder}/x.sock"),
                 "the catalog is not running: there is no .*/x.sock"),
                (Endpoints(folder), "the catalog is not running: nothing answers at ipc://.*/catalog.sock"),
                (Endpoints(catalog="tcp://host.invalid:5550"), "the host 'host.invalid' of tcp://.* is unknown"),
                (Endpoints(catalog="tcp://127.0.0.1:1"), "nothing answers at tcp://127.0.0.1:1"),
            ]
            for endpoints, message in cases:
                started = time.monotonic()
                with self.assertRaisesRegex(errors.NotRunningError, message):
                    Library(endpoints).fetch()[0]
                self.assertLess(time.monotonic() - started, 5, message)

    def test_a_library_opened_with_wait_waits_for_its_services(self):
        started = time.monotonic()
        with self.assertRaises(errors.NotRunningError):
            Library("/nonexistent", wait=0.3).token
        self.assertGreaterEqual(time.monotonic() - started, 0.3)


class MessageTests(unittest.TestCase):
    def test_values_that_json_cannot_represent_are_refused_before_sending(self):
        for value in [float("nan"), float("inf"), -float("inf"), "caf\udce9.jpg", {"caf\udce9": 1}]:
            with self.assertRaisesRegex(ValueError, "changes.perform: "):
                encode_request(1, "changes.perform", {"value": [value]}, 30.0)
        message = json.loads(encode_request(1, "a.b", {"value": "caf\xe9 \U0001f4f7"}, math.inf))
        self.assertEqual(message["params"], {"value": "caf\xe9 \U0001f4f7"})

    def test_a_preset_with_nan_is_refused_and_no_file_is_written(self):
        with tempfile.TemporaryDirectory() as folder, mock.patch.dict(os.environ, SAFELIGHT_PRESETS=folder):
            with self.assertRaises(ValueError):
                safelight.save_preset("warm", temperature=float("nan"))
            self.assertEqual(os.listdir(folder), [])


class AsyncLibraryTests(unittest.TestCase):
    def test_a_fetch_is_at_a_token_and_its_assets_have_a_library(self):
        asked = []

        async def fetch():
            async with AsyncLibrary("/nonexistent") as library:
                async def request(service, method, params):
                    asked.append(params)
                    return Reply({"token": "ab.7", "count": 1, "assets": [ASSET]}, [])

                library.request = request
                asset = await library.fetch("rating > 3", at="ab.7").get(0)
                self.assertIs(asset.library, library.blocking)
                self.assertEqual(asset.library.endpoints, library.endpoints)

        asyncio.run(fetch())
        self.assertEqual([(one["token"], one["fetch"]) for one in asked], [("ab.7", {"predicate": "rating > 3"})])


class LargeAssetTests(unittest.TestCase):
    """A catalog whose pages have at most 70 assets."""

    def page(self, params):
        if params["count"] > 70:
            raise errors.LimitExceededError()
        numbers = range(450)[params["from"]:params["from"] + params["count"]]
        assets = [{**ASSET, "id": f"a{number}"} for number in numbers]
        return Reply({"token": "ab.7", "count": 450, "assets": assets}, [])

    def test_a_page_that_is_too_large_for_a_message_is_read_in_parts(self):
        library = Library("/nonexistent")
        library.request = lambda service, method, params: self.page(params)
        result = library.fetch()
        self.assertEqual([asset.id for asset in result], [f"a{number}" for number in range(450)])
        self.assertEqual((result[449].id, result.token), ("a449", "ab.7"))

    def test_a_page_that_is_too_large_for_a_message_is_read_in_parts_with_asyncio(self):
        async def fetch():
            async with AsyncLibrary("/nonexistent") as library:
                async def request(service, method, params):
                    return self.page(params)

                library.request = request
                return [asset.id async for asset in library.fetch()]

        self.assertEqual(asyncio.run(fetch()), [f"a{number}" for number in range(450)])


class EndpointTests(unittest.TestCase):
    def test_addresses_of_a_host_are_six_ports(self):
        endpoints = Endpoints(host="photos.example")
        self.assertEqual(
            (endpoints.catalog, endpoints.edits), ("tcp://photos.example:5571", "tcp://photos.example:5576")
        )
        self.assertEqual(Endpoints(host="[::1]:7000").feed, "tcp://[::1]:7004")
        self.assertEqual(Endpoints("/run/x", feed="tcp://y:1").broker, "ipc:///run/x/change-broker.sock")


class ForgetfulLibrary:
    """A library with slow uploads. The first `losses` transactions lose an upload."""

    active_changes = None

    def __init__(self, losses):
        self.catalog = self
        self.losses = losses
        self.now = 0.0
        self.begun = 0
        self.open = set()
        self.deadlines = []

    def request(self, *arguments, **_):
        method, params = [argument for argument in arguments if argument is not self][:2]
        if method == "upload.begin":
            self.now += 60
            self.begun += 1
            self.open.add(f"u{self.begun}")
            return Reply({"upload": f"u{self.begun}", "chunkBytes": 4}, [])
        if params["upload"] not in self.open:
            raise errors.HandleExpiredError(message="there is no such upload")
        if method == "upload.cancel":
            self.open.remove(params["upload"])
        return Reply({"upload": params["upload"]}, [])

    def perform(self, requests, transaction, deadline, attachments, digest):
        self.deadlines.append(deadline)
        uploads = [resource["upload"] for resource in requests[0]["resources"]]
        if self.losses > 0:
            self.losses -= 1
            self.open.remove(uploads[0])
            raise errors.HandleExpiredError(message="there is no such upload")
        self.open.difference_update(uploads)
        return {"placeholders": {"new0": "a1"}}


class UploadTests(unittest.TestCase):
    def test_slow_uploads_do_not_reduce_the_deadline_of_a_transaction_and_lost_ones_are_repeated(self):
        library = ForgetfulLibrary(losses=2)
        with mock.patch("time.monotonic", lambda: library.now):
            with Changes(library) as changes:
                photo = changes.create_asset(b"photo", paired_video=b"video")
        self.assertEqual((photo.id, library.begun, library.open), ("a1", 6, set()))
        self.assertEqual(library.deadlines, [30.0] * 3)

    def test_a_new_asset_adds_and_removes_keywords_only_if_they_are_given(self):
        library = ForgetfulLibrary(losses=0)
        requests = []

        def perform(listed, *_):
            requests.extend(listed)
            return {"placeholders": {}}

        with mock.patch.object(library, "perform", perform), Changes(library) as changes:
            changes.create_asset(b"1", keywords=["a"], add_keywords=("b", "c"), remove_keywords=["d"])
            changes.create_asset(b"2")
        members = ("set", "addKeywords", "removeKeywords")
        self.assertEqual(
            [{name: one[name] for name in members if name in one} for one in requests],
            [{"set": {"keywords": ["a"]}, "addKeywords": ["b", "c"], "removeKeywords": ["d"]}, {}],
        )


class RestartingCatalog:
    """A catalog that is killed or stopped during the second request; the others get the given answers."""

    error = errors.ConnectionLostError(message="the connection to the catalog was lost")

    def __init__(self, *answers):
        self.answers = list(answers)
        self.deadlines = []

    def request(self, method, params, attachments=(), deadline=30.0, on_notification=None):
        self.deadlines.append(deadline)
        if len(self.deadlines) == 2:
            raise self.error
        return Reply(self.answers.pop(0), [])


class RestartTests(unittest.TestCase):
    def library(self, *answers):
        library = Library("/nonexistent")
        library.catalog = RestartingCatalog(*answers)
        return library

    def test_jobs_are_followed_while_the_catalog_restarts(self):
        def job(state):
            return {"id": 1, "state": state}

        library = self.library(
            {"jobs": [job("pending")], "version": 3}, {"jobs": [job("succeeded")], "version": 1}
        )
        with mock.patch("time.sleep") as pause:
            states = [one.state for one in UploadJobs(library).follow([UploadJob(job("registered"))])]
        self.assertEqual((states, pause.call_count), (["pending", "succeeded"], 1))

    def test_jobs_are_followed_while_the_catalog_is_stopped_and_started(self):
        stopping = errors.UserCancelledError(
            message="the service is stopping; send the request again", data={"isStopping": True}
        )
        with mock.patch.object(RestartingCatalog, "error", stopping):
            self.test_jobs_are_followed_while_the_catalog_restarts()

    def test_jobs_are_listed_while_the_catalog_restarts(self):
        library = self.library({"jobs": [{"id": 1}], "next": 1}, {"jobs": [{"id": 2}]})
        self.assertEqual([one.id for one in UploadJobs(library)()], [1, 2])

    def test_edits_are_followed_until_the_deadline_of_their_publication(self):
        now = [1000.0]
        library = self.library(
            {"edits": [], "unknown": []}, {"edits": [{"id": "t.0", "state": "applied"}], "unknown": []}
        )
        answer = library.catalog.request

        def request(*arguments, **options):
            # The catalog is away for 40 seconds.
            now[0] += 40 if len(library.catalog.deadlines) == 1 else 0
            return answer(*arguments, **options)

        library.catalog.request = request
        with mock.patch("safelight.editing.PushSockets"), mock.patch("time.sleep"), \
                mock.patch("time.monotonic", lambda: now[0]):
            states = [one.state for one in Publisher(library, [("a" + 26 * "1", {})], {}, "t").run(600)]
        self.assertEqual((states, library.catalog.deadlines), (["applied"], [30.0] * 3))


class FileTests(unittest.TestCase):
    def test_files_of_one_name_are_one_asset(self):
        self.assertEqual(
            groups(["a.jpg", "a.mov", "b.heic", "b.dng", "b.heic.xmp", "c.jpg", "c.png", "d.mp4"]),
            [["a.jpg", "a.mov"], ["b.heic", "b.dng", "b.heic.xmp"], ["c.jpg"], ["c.png"], ["d.mp4"]],
        )

    def test_each_original_has_its_sidecar(self):
        for files, expected in [
            ("a.mov a.mov.xmp", ["a.mov a.mov.xmp"]),
            ("a.mov a.xmp", ["a.mov a.xmp"]),
            ("a.raf a.xmp", ["a.raf a.xmp"]),
            ("a.jpg a.jpg.xmp a.raf a.raf.xmp", ["a.jpg a.raf a.jpg.xmp a.raf.xmp"]),
            ("a.raf a.raf.xmp a.jpg a.xmp", ["a.raf a.jpg a.xmp a.raf.xmp"]),
            ("a.heic a.jpg a.jpg.xmp", ["a.heic", "a.jpg a.jpg.xmp"]),
            ("a.heic a.jpg a.jpg.xmp a.xmp", ["a.heic a.xmp", "a.jpg a.jpg.xmp"]),
            ("a.jpg.xmp b.xmp", []),
        ]:
            self.assertEqual(groups(files.split()), [one.split() for one in expected])
        self.assertEqual(by_kind(["a.jpg", "a.raf", "a.jpg.xmp", "a.raf.xmp"])["xmp"], "a.jpg.xmp")

    def test_files_that_turn_out_to_be_two_assets_keep_their_sidecars(self):
        asked = []

        def one(library, files, album, advance):
            asked.append(" ".join(os.path.basename(path) for path in files))
            if len([path for path in files if not path.endswith(".xmp")]) > 1:
                raise errors.ResourcesDisagreeError()
            return ImportedFile(files, "a1", False, None), []

        with tempfile.TemporaryDirectory() as folder:
            for name in ["a.jpg", "a.mov", "a.xmp", "b.jpg", "b.jpg.xmp", "b.raf", "b.raf.xmp"]:
                open(f"{folder}/{name}", "w").close()
            with mock.patch("safelight.importing._import", one):
                import_files(None, folder)
        self.assertEqual(
            asked,
            ["a.jpg a.mov a.xmp", "a.jpg a.xmp", "a.mov a.xmp",
             "b.jpg b.raf b.jpg.xmp b.raf.xmp", "b.jpg b.jpg.xmp", "b.raf b.raf.xmp"],
        )

    def test_files_are_imported_without_a_sidecar_that_is_refused(self):
        def one(library, files, album, advance):
            names = {os.path.basename(path) for path in files}
            if "a.xmp" in names:
                raise errors.InvalidResourceError(data={"sidecar": True})
            if "b.xmp" in names:
                raise errors.LimitExceededError()
            return ImportedFile(files, "a1", False, None), []

        with tempfile.TemporaryDirectory() as folder:
            for name in ["a.mov", "a.xmp", "b.jpg", "b.mov", "b.xmp"]:
                with open(f"{folder}/{name}", "wb") as file:
                    file.truncate((4 << 20) + 1 if name == "b.xmp" else 1)
            with mock.patch("safelight.importing._import", one):
                imported = import_files(None, folder)
        self.assertEqual(
            [([os.path.basename(path) for path in file.paths], file.asset) for file in imported],
            [(["a.xmp"], None), (["a.mov"], "a1"), (["b.xmp"], None), (["b.jpg", "b.mov"], "a1")],
        )

    def test_all_formats_of_the_command_line_are_found(self):
        names = [f"x.{file_extension}" for file_extension in "tga ico ppm psd jp2 jfif hif erf 3g2 mpeg JPG".split()]
        with tempfile.TemporaryDirectory() as folder:
            for name in [*names, "x.txt", ".hidden.jpg"]:
                open(f"{folder}/{name}", "w").close()
            self.assertEqual(list(files_below([folder])), sorted(f"{folder}/{name}" for name in names))

    def test_an_unreadable_file_is_listed_and_the_import_continues(self):
        with tempfile.TemporaryDirectory() as folder:
            os.symlink("nothing", f"{folder}/dangling.jpg")
            os.mkfifo(f"{folder}/pipe.jpg")
            open(os.fsencode(folder) + b"/caf\xe9.jpg", "w").close()
            for name in ["good.jpg", "gone.jpg"]:
                open(f"{folder}/{name}", "w").close()

            def one(library, files, album, advance):
                if files == [f"{folder}/gone.jpg"]:
                    raise FileNotFoundError(2, "No such file or directory", files[0])
                return ImportedFile(files, "a1", False, None), []

            with mock.patch("safelight.importing._import", one):
                imported = import_files(None, [folder, f"{folder}/missing.jpg"])
        self.assertEqual(
            sorted((os.path.basename(file.paths[0]), file.asset) for file in imported),
            [("caf\udce9.jpg", None), ("dangling.jpg", None), ("gone.jpg", None), ("good.jpg", "a1"),
             ("missing.jpg", None), ("pipe.jpg", None)],
        )
        for file in imported:
            self.assertEqual(isinstance(file.error, errors.InvalidResourceError), file.asset is None)

    def test_an_unreadable_folder_is_listed_and_the_import_continues(self):
        def one(library, files, album, advance):
            return ImportedFile(files, "a1", False, None), []

        with tempfile.TemporaryDirectory() as folder:
            os.chmod(folder, 0o755)
            os.makedirs(f"{folder}/closed/below")
            os.makedirs(f"{folder}/names only")
            for name in ["a.jpg", "closed/b.jpg", "names only/c.jpg", "z.jpg"]:
                open(f"{folder}/{name}", "w").close()
            os.chmod(f"{folder}/closed", 0o000)
            # A folder that may be listed and not entered.
            os.chmod(f"{folder}/names only", 0o444)
            try:
                with as_ordinary_user(), mock.patch("safelight.importing._import", one):
                    imported = import_files(None, [folder, f"{folder}/closed"])
                    with self.assertRaises(PermissionError):
                        list(files_below([folder]))
            finally:
                os.chmod(f"{folder}/closed", 0o755)
                os.chmod(f"{folder}/names only", 0o755)
        self.assertEqual(
            sorted((os.path.relpath(file.paths[0], folder), file.asset) for file in imported),
            [("a.jpg", "a1"), ("closed", None), ("closed", None), ("names only/c.jpg", None), ("z.jpg", "a1")],
        )
        for file in imported:
            self.assertEqual("Permission denied" in str(file.error), file.asset is None)

    def test_an_import_without_services_raises_an_error_at_once(self):
        with tempfile.TemporaryDirectory() as folder:
            for name in ["one.jpg", "two.jpg"]:
                open(f"{folder}/{name}", "w").close()
            with self.assertRaisesRegex(errors.NotRunningError, "start the services with: safelight up"):
                Library("/nonexistent").import_files(folder)

    def test_a_saved_file_exists_only_when_it_is_complete(self):
        def parts():
            yield b"ab"
            self.assertFalse(os.path.exists(path))
            yield b"c"

        def fails():
            yield b"x"
            raise OSError("lost")

        with tempfile.TemporaryDirectory() as folder:
            path = f"{folder}/x"
            save_parts(path, parts(), 3)
            with self.assertRaises(OSError):
                save_parts(path, fails(), 3)
            with open(path, "rb") as file:
                self.assertEqual(file.read(), b"abc")
            self.assertEqual(os.listdir(folder), ["x"])

    def test_a_saved_file_has_default_permissions_and_the_umask_is_not_changed(self):
        with tempfile.TemporaryDirectory() as folder:
            open(f"{folder}/default", "w").close()
            with mock.patch("os.umask") as umask:
                save_parts(f"{folder}/x", [b"abc"], 3)
            umask.assert_not_called()
            self.assertEqual(os.stat(f"{folder}/x").st_mode, os.stat(f"{folder}/default").st_mode)


if __name__ == "__main__":
    unittest.main()
