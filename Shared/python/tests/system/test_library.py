"""The package against real services: fetches, transactions, files, images, edits, changes and errors."""

import asyncio
import concurrent.futures
import datetime
import multiprocessing
import os
import re
import threading
import time
import unittest

import safelight
from safelight import Asset, AssetCollection, AssetResource, CollectionList, adjustments, errors
from safelight.aio import AsyncLibrary
from safelight.instances import READS, TRANSACTIONS
from safelight.members import Member
from services import Services

OBJECTS = {"assets": Asset, "collections": AssetCollection, "lists": CollectionList}


class LibraryTests(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.services = Services().start()
        os.environ["SAFELIGHT_PRESETS"] = cls.services.environment["SAFELIGHT_PRESETS"]
        cls.library = cls.services.library("tests")
        cls.photos = cls.services.write_photos()
        cls.progress = []
        cls.imported = cls.library.import_files(cls.photos, progress=cls.progress.append)

    @classmethod
    def tearDownClass(cls):
        cls.library.close()
        cls.services.stop()

    def asset(self, number):
        return self.library.fetch("originalFilename == %@", arguments=[f"photo{number}.jpg"])[0]

    # The tables of the services

    def test_the_errors_are_those_of_the_services(self):
        table = self.library.call("rpc.discover")["components"]["errors"]
        self.assertEqual(
            {one["message"]: one["code"] for one in table},
            {name: error.error_code for name, error in errors.ERROR_CLASSES.items()},
        )

    def test_objects_have_all_members_of_the_protocol(self):
        methods = {one["name"]: one for one in self.library.call("rpc.discover")["methods"]}
        for member, kind in OBJECTS.items():
            params = {one["name"]: one["schema"] for one in methods[f"fetch.{member}"]["params"]}
            names = set(params["members"]["items"]["enum"])
            known = {one.name for base in kind.__mro__ for one in vars(base).values() if isinstance(one, Member)}
            self.assertEqual(names - known - {"resources"}, set(), member)
            self.assertEqual(known - names, set(), member)

    def test_the_methods_that_may_be_repeated_are_those_of_the_services(self):
        library = self.library
        methods = {
            one["name"]: {param["name"] for param in one["params"]}
            for service in (library.catalog, library.thumbnailer, library.editor, library.broker)
            for one in service.call("rpc.discover")["methods"]
        }
        self.assertEqual({name for name, params in methods.items() if "transaction" in params}, TRANSACTIONS)
        self.assertEqual(READS - set(methods), set())

    def test_the_version_is_that_of_the_services(self):
        self.assertEqual({one["version"] for one in self.library.health().values()}, {safelight.__version__})

    # Fetches

    def test_results_are_lazily_paged_sequences_at_one_token(self):
        result = self.library.fetch(sort="creationDate")
        result._page_size = 5
        self.assertIn("not fetched yet", repr(result))
        names = [asset.original_filename for asset in result]
        self.assertEqual(names[:2], ["photo1.jpg", "photo2.jpg"])
        self.assertEqual([asset.original_filename for asset in result[-2:]], names[-2:])
        self.assertEqual((result[-1].original_filename, len(result)), (names[-1], len(names)))
        self.assertEqual((result.index(result[7]), result[3] in result, "a" + "0" * 26 in result), (7, True, False))
        self.assertEqual([asset.id for asset in result], result.ids())
        self.assertEqual([asset.id for asset in reversed(result)], result.ids()[::-1])
        with self.assertRaises(IndexError):
            result[len(names)]
        with self.assertRaises(ValueError):
            result.index("a" + "0" * 26)
        earlier = self.library.fetch(sort="creationDate")
        before = len(earlier)
        with self.library.changing() as changes:
            changes.update(earlier[0], creation_date=datetime.datetime(2030, 1, 1, tzinfo=datetime.timezone.utc))
        earlier._pages.clear()
        self.assertEqual((earlier[0].original_filename, len(earlier)), ("photo1.jpg", before))
        details = self.library.change_details(earlier)
        self.assertEqual(details.apply(earlier.ids()), earlier.refreshed().ids())
        with self.library.changing() as changes:
            changes.update(self.asset(1), creation_date="2024-05-01T12:00:00Z")

    def test_assets_are_found_by_conditions_and_identifiers_and_counted(self):
        asset = self.asset(5)
        self.assertEqual(self.library.assets[asset.id], asset)
        self.assertEqual(self.library.count("creationDate < %@", arguments=[asset.creation_date]), 4)
        self.assertEqual(self.library.counts([{"ids": [asset.id]}, {"mediaType": "image"}])[0], 1)
        self.assertIsNone(self.library.assets.get("a" + "0" * 26))
        with self.assertRaises(errors.IdentifierNotFoundError):
            self.library.assets["a" + "0" * 26]
        with self.assertRaises(errors.InvalidPredicateError):
            self.library.count("rating >")
        self.assertEqual(len(self.library.fetch(limit=0)), self.library.count())
        self.assertFalse(self.library.fetch("rating == 4 AND rating == 5"))

    def test_several_threads_can_use_one_library(self):
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            ids = [asset.id for asset in self.library.fetch(limit=8)]
            found = list(pool.map(lambda id: self.library.assets[id].id, ids * 10))
        self.assertEqual(found, ids * 10)

    # Transactions

    def test_forked_processes_can_use_one_library(self):
        ids = self.library.fetch().ids()
        with multiprocessing.get_context("fork").Pool(2) as pool:
            widths = pool.map_async(self.width, [asset for asset in self.library.fetch(ids=ids)]).get(60)
        self.assertEqual(widths, [64] * len(ids))

    @staticmethod
    def width(asset):
        return asset.thumbnail(64).pixel_width

    def test_interrupted_imports_leave_no_upload_open(self):
        def stop(_):
            raise StopIteration

        for _ in range(70):
            with self.assertRaises(StopIteration):
                self.library.import_files(f"{self.photos}/photo1.jpg", progress=stop)
        self.assertEqual([one.error for one in self.library.import_files(f"{self.photos}/photo1.jpg")], [None])

    def test_a_block_uses_the_albums_of_earlier_blocks_and_the_folders_of_its_own(self):
        with self.library.changing() as changes:
            album = changes.create_album("Earlier")
        with self.library.changing() as changes:
            folder = changes.create_folder("Its own")
            other = changes.create_album("Other")
            changes.add(album, [self.asset(1)])
            changes.add(folder, [other, album])
            changes.rename(folder, "Renamed")
            changes.remove(folder, [album])
        self.assertEqual([len(self.library.albums[title].fetch())
                          for title in ("Earlier", "Other")], [1, 0])
        self.assertEqual([one.title for one in self.library.children(folder.id)], ["Other"])
        self.assertEqual(self.library.folders("title == 'Renamed'").ids(), [folder.id])
        with self.library.changing() as changes:
            changes.delete(*(one.id for one in (album, other, folder)))

    def test_an_import_repeated_with_its_transaction_id_is_performed_once(self):
        with open(f"{self.photos}/photo4.jpg", "rb") as file:
            # Another comment makes it another file.
            photo = file.read().replace(b"\xff\xd8", b"\xff\xd8\xff\xfe\x00\x06once", 1)
        outcomes = []
        for _ in range(2):
            with self.library.changing(transaction="import-once") as changes:
                asset = changes.create_asset(photo, filename="once.jpg")
            outcomes.append((asset.id, changes.outcome.sequence))
        self.assertEqual(outcomes[0], outcomes[1])
        with self.assertRaises(errors.IdReusedError):
            with self.library.changing(transaction="import-once") as changes:
                changes.create_asset(photo + b"other", filename="once.jpg")
        with self.library.changing() as changes:
            changes.delete(self.library.assets[asset.id])

    def test_keywords_are_added_and_removed_at_import(self):
        with open(f"{self.photos}/photo4.jpg", "rb") as file:
            photo = file.read().replace(b"\xff\xd8", b"\xff\xd8\xff\xfe\x00\x07words", 1)
        with self.library.changing() as changes:
            asset = changes.create_asset(
                photo, filename="words.jpg", keywords=["a", "b"], remove_keywords=["b", "x"], add_keywords=["c"]
            )
        self.assertEqual(self.library.assets[asset.id].keywords, ("a", "c"))
        with self.library.changing() as changes:
            changes.create_asset(photo, filename="words.jpg", remove_keywords=["a"], add_keywords=["d"])
        self.assertEqual(self.library.assets[asset.id].keywords, ("c", "d"))
        with self.library.changing() as changes:
            changes.delete(self.library.assets[asset.id])

    def test_a_refused_transaction_cancels_its_uploads(self):
        with open(f"{self.photos}/photo4.jpg", "rb") as file:
            photo = file.read()
        # More than an identity may have open.
        for _ in range(70):
            with self.assertRaises(errors.IdentifierNotFoundError):
                with self.library.changing() as changes:
                    changes.create_asset(photo, filename="photo.jpg", if_duplicate="create")
                    changes.update("a" + 26 * "0", rating=1)

    def test_a_transaction_has_placeholders_and_is_performed_once(self):
        first, second = self.asset(2), self.asset(3)
        token = self.library.token
        with self.library.changing(transaction="once") as changes:
            album = changes.create_album("Once", [first])
            folder = changes.create_folder("Folder", [album])
            changes.update(first, rating=4, location=(47.5, 11.25), add_keywords=["alps"])
            with self.assertRaisesRegex(ValueError, "when the block"):
                album.id
        self.assertEqual(changes.outcome.sequence, int(token.rsplit(".", 1)[1]) + 1)
        with self.library.changing(transaction="once") as again:
            same = again.create_album("Once", [first])
            again.create_folder("Folder", [same])
            again.update(first, rating=4, location=(47.5, 11.25), add_keywords=["alps"])
        self.assertEqual((same.id, again.outcome.sequence), (album.id, changes.outcome.sequence))
        (change,) = self.library.changes(since=token, follow=False)
        self.assertEqual((change.token, change.origin.client), (changes.outcome.token, "tests"))
        self.assertEqual(change.assets[0].changed_members,
                         ["keywords", "location", "memberships", "modificationDate", "rating", "revision"])
        collection = self.library.albums["Once"]
        self.assertEqual((collection.id, collection.parent), (album.id, folder.id))
        with self.library.changing() as changes:
            changes.add(collection, [second], at=[0])
            changes.rename(collection, "Twice")
            changes.set_key_asset(collection, second)
        self.assertEqual(collection.fetch().ids(), [second.id, first.id])
        with self.library.changing() as changes:
            changes.move(collection, [0], 1, collection.fetch().token)
            changes.set_key_asset(collection, None)
        self.assertEqual(collection.fetch().ids(), [first.id, second.id])
        self.assertEqual([one.title for one in first.albums()], ["Twice"])
        self.assertEqual([one.title for one in self.library.folders(type="folder") if one.title], ["Folder"])
        with self.library.changing() as changes:
            changes.remove(collection, [first])
            changes.delete(folder.id)
        self.assertNotIn("Twice", self.library.albums)

    def test_a_failed_block_changes_nothing(self):
        asset, token = self.asset(4), self.library.token
        with self.assertRaises(ZeroDivisionError):
            with self.library.changing() as changes:
                changes.update(asset, rating=1)
                1 / 0
        with self.assertRaises(errors.IdentifierNotFoundError):
            with self.library.changing() as changes:
                changes.update(asset, rating=1)
                changes.update("a" + "0" * 26, rating=1)
        with self.assertRaises(errors.ConflictError):
            with self.library.changing() as changes:
                changes.update(asset, rating=1, if_revision="r9999")
        with self.assertRaises(errors.NestedChangeError):
            with self.library.changing(), self.library.changing():
                pass
        self.assertEqual(self.library.token, token)

    def test_an_asset_is_trashed_and_restored(self):
        asset = self.asset(6)
        with self.library.changing() as changes:
            changes.trash(asset)
        self.assertEqual((asset.id in self.library.assets, asset in self.library.fetch(in_trash=True)), (False, True))
        with self.library.changing() as changes:
            changes.restore(asset)
        self.assertIn(asset.id, self.library.assets)

    # Files

    def test_imports_report_progress_and_recognize_duplicates(self):
        total = sum(os.path.getsize(f"{self.photos}/{name}") for name in os.listdir(self.photos))
        self.assertEqual((self.progress[-1].done, self.progress[-1].fraction), (total, 1.0))
        self.assertEqual([one.error for one in self.imported], [None] * 12)
        broken = f"{self.services.folder}/broken.jpg"
        with open(broken, "wb") as file:
            file.write(b"no picture")
        (failed,) = self.library.import_files(broken)
        self.assertIsInstance(failed.error, errors.InvalidResourceError)
        (again,) = self.library.import_files(f"{self.photos}/photo1.jpg")
        self.assertEqual((again.is_duplicate, again.asset), (True, self.asset(1).id))

    def test_changes_begin_with_the_oldest_one_or_after_a_token(self):
        first = next(self.library.changes(since="start"))
        self.assertEqual((first.sequence, first.assets[0].kind), (1, "inserted"))
        self.assertEqual(next(self.library.changes(since=first.token)).sequence, 2)

        async def next_of_async():
            async with AsyncLibrary(self.services.run) as library:
                async for change in library.changes(since="start"):
                    return change.sequence

        self.assertEqual(asyncio.run(next_of_async()), 1)
        for text in ("begin", "abc.x", ".5"):
            with self.assertRaises(errors.InvalidParametersError) as refused:
                next(self.library.changes(since=text))
            self.assertIn("token", str(refused.exception))

    def test_the_same_image_is_recognized_after_its_file_was_tagged(self):
        first, tagged = (f"{self.services.folder}/{name}.jpg" for name in ("first", "tagged"))
        self.services.write_photo(first, 41)
        with open(first, "rb") as file:
            data = file.read()
        with open(tagged, "wb") as file:
            file.write(data[:2] + b"\xff\xfe\x00\x06text" + data[2:])
        (original,) = self.library.import_files(first)
        (copy,) = self.library.import_files(tagged)
        self.assertEqual((original.same_image, copy.is_duplicate, copy.same_image), ((), False, (original.asset,)))
        groups = [[asset.id for asset in group] for group in self.library.duplicates()]
        self.assertEqual(groups, [[original.asset, copy.asset]])

    def test_a_sidecar_is_imported_with_its_photo(self):
        folder = f"{self.services.folder}/sidecars"
        self.services.write_photo(f"{folder}/beside.jpg", 40)
        with open(f"{folder}/beside.xmp", "w") as file:
            file.write(
                '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"><rdf:Description rdf:about="" '
                'xmlns:xmp="http://ns.adobe.com/xap/1.0/" xmp:Rating="4"/></rdf:RDF>'
            )
        (imported,) = self.library.import_files(folder)
        self.assertIsNone(imported.error)
        self.assertEqual(self.library.assets[imported.asset].rating, 4)
        with self.library.changing() as changes:
            changes.delete(imported.asset)

    def test_resources_are_read_and_saved(self):
        resource = self.asset(7).resource()
        with open(f"{self.photos}/photo7.jpg", "rb") as file:
            expected = file.read()
        self.assertEqual(resource.read(), expected)
        self.assertEqual(resource.read(10, 20), expected[10:30])
        path, progress = f"{self.services.folder}/saved.jpg", []
        resource.save(path, progress.append)
        with open(path, "rb") as file:
            self.assertEqual(file.read(), expected)
        self.assertEqual(progress[-1].fraction, 1.0)

    # Images and videos

    def test_images_have_the_requested_size_and_format(self):
        asset = self.asset(8)
        image = asset.thumbnail(100)
        self.assertEqual((image.pixel_width, image.pixel_height, image.mime_type), (100, 75, "image/jpeg"))
        self.assertEqual(asset.image((50, 50), mode="aspectFill").size, (50, 50))
        self.assertEqual(asset.image().size, (640, 480))
        images = list(asset.thumbnails(300))
        self.assertEqual([one.is_degraded for one in images], [True] * (len(images) - 1) + [False])
        self.assertEqual(asset.image_data().data, asset.resource().read())
        path = f"{self.services.folder}/thumbnail.webp"
        asset.thumbnail(64, format="webp").save(path)
        with open(path, "rb") as file:
            self.assertEqual(file.read(12)[8:], b"WEBP")

    def test_a_video_is_played_and_exported(self):
        video = self.services.write_video()
        (imported,) = self.library.import_files(video)
        self.assertIsNone(imported.error)
        asset = self.library.assets[imported.asset]
        self.assertEqual((asset.media_type, asset.duration), ("video", 3.0))
        playback = asset.playback()
        self.assertEqual((playback.pixel_width, playback.tracks[0].codec), (320, "h264"))
        self.assertEqual(len(playback.read()), playback.size)
        frames = asset.frames(count=3)
        self.assertEqual([frame.image.pillow().size for frame in frames], [(256, 192)] * 3)
        path, progress = f"{self.services.folder}/small.mp4", []
        asset.export_video(path, "passthrough", progress=progress.append)
        self.assertGreater(os.path.getsize(path), 1000)
        self.assertEqual(self.library.thumbnailer.request("figures").result["exports"]["open"], 0)
        with self.library.changing() as changes:
            changes.delete(asset)

    def test_a_live_photo_has_a_still_and_a_video(self):
        video = self.services.write_video("live.mov", 2)
        photo = f"{self.services.folder}/live.jpg"
        self.asset(9).thumbnail(None, format="jpeg", quality=70).save(photo)
        with self.library.changing() as changes:
            made = changes.create_asset(photo, paired_video=video)
        asset = self.library.assets[made.id]
        self.assertEqual(asset.playback_style, "livePhoto")
        still, video = asset.live_photo(100)
        self.assertEqual((still.pillow().size, video.duration), ((100, 75), 2.0))
        with self.library.changing() as changes:
            changes.delete(asset)

    # Edits

    def test_edits_are_applied_undone_and_reverted(self):
        asset = self.asset(10)
        safelight.save_preset("warm", temperature=0.2)
        outcome = asset.edit(exposure=0.5, crop=(0.1, 0.1, 0.8, 0.8))
        self.assertTrue(outcome.is_changed)
        asset.edit(preset="warm", mode="append")
        names = [one["operation"] for one in asset.history()[-1].adjustments["operations"]]
        self.assertEqual(names, ["exposure", "crop", "temperature"])
        self.assertEqual(asset.refreshed().pixel_size, (512, 384))
        asset.undo()
        self.assertEqual([step.kind for step in asset.history()], ["edit", "edit", "edit"])
        asset.revert()
        self.assertFalse(asset.refreshed().has_adjustments)
        self.assertEqual(asset.preview(exposure=1, size=200).pixel_width, 200)
        self.assertGreater(asset.compare(200).pixel_width, 200)
        with self.assertRaisesRegex(errors.InvalidParametersError, "exposuree.*allowed: crop"):
            asset.edit(exposuree=1)
        many = self.library.edit([asset, self.asset(11)], asset.suggestion(), dry_run=True)
        self.assertEqual([error for _, error in many.results], [None, None])

    def test_published_edits_are_applied_in_order(self):
        first, second = self.asset(11), self.asset(12)
        edits = [(first, adjustments(exposure=0.1)), (second, adjustments(exposure=0.2)),
                 (first, adjustments(exposure=0.3)), (second, {"version": 1, "operations": [{"operation": "no"}]})]
        states = list(self.library.publish(edits))
        self.assertEqual(sorted((one.asset, one.state) for one in states), sorted(
            [(first.id, "applied"), (first.id, "applied"), (second.id, "applied"), (second.id, "failed")]))
        (failed,) = [one for one in states if one.error]
        self.assertIsInstance(failed.error, errors.InvalidParametersError)
        self.assertEqual([step.adjustments["operations"][0]["value"] for step in first.history()], [0.1, 0.3])
        with self.assertRaises(errors.InvalidParametersError):
            first.publish(exposure="much")

    def test_another_program_commits_its_own_edit(self):
        asset = self.asset(1)
        render = asset.thumbnail(None).data
        with self.library.changing() as changes:
            changes.commit_edit(asset, render, b"my parameters", "com.example.editor", "1.0")
        self.assertEqual(asset.refreshed().adjustment_format_identifier, "com.example.editor")
        self.assertEqual(asset.refreshed().resource("adjustmentData").read(), b"my parameters")
        with self.library.changing() as changes:
            changes.revert(asset)

    # Following

    def test_changes_and_live_lists_follow_the_library(self):
        asset, token = self.asset(2), self.library.token
        found = []

        def follow():
            with self.services.library() as library:
                for change in library.changes(since=token, topics=[f"asset.{asset.id}"]):
                    found.append(change.assets[0].after.rating)
                    if len(found) == 2:
                        return

        thread = threading.Thread(target=follow)
        thread.start()
        live = self.library.live(where="caption == 'live'", sort="creationDate")
        self.assertEqual(next(live).ids, [])
        for rating in (1, 2):
            with self.library.changing() as changes:
                changes.update(asset, rating=rating, caption="live")
                changes.update(self.asset(3), rating=rating)
        self.assertEqual((next(live).ids, live.close()), ([asset.id], None))
        thread.join(30)
        self.assertEqual(found, [1, 2])
        with self.assertRaises(errors.PersistentChangeTokenExpiredError):
            next(self.library.changes(since="0" * 32 + ".1"))

    def test_a_library_is_used_with_asyncio(self):
        async def run():
            async with AsyncLibrary(self.services.run) as library:
                result = library.fetch(sort="creationDate", limit=12)
                names = [asset.original_filename async for asset in result]
                self.assertEqual((len(names), await result.count(), (await result.get(-1)).original_filename),
                                 (12, 12, names[-1]))
                images = await asyncio.gather(*(library.thumbnail(one, 32) for one in [a async for a in result]))
                self.assertEqual({image.pixel_width for image in images}, {32})
                asset = await result.get(0)
                self.assertEqual(await asyncio.to_thread(asset.refreshed), asset)
                at = result.token
                self.assertEqual(await library.fetch(at=at, limit=1).count(), 1)
                token = (await library.catalog.call("changes.token"))["token"]
                await library.perform([{"type": "asset.update", "id": (await result.get(0)).id, "set": {"rating": 5}}])
                async for change in library.changes(since=token):
                    self.assertEqual(change.assets[0].after.rating, 5)
                    break
                async for live in library.live(where="rating == 5"):
                    self.assertEqual(live.ids, [(await result.get(0)).id])
                    break

        asyncio.run(run())

    # Access and failures

    def test_access_is_granted_limited_and_revoked(self):
        session = self.library.request_authorization("tests")
        self.assertEqual((session.status, session.is_owner), ("authorized", True))
        grant = self.library.grants.approve("uid:12345", access="readWrite", purpose="shows photos")
        self.assertEqual((grant.id, grant.status), ("uid:12345", "authorized"))
        self.assertEqual(self.library.grants.limit("uid:12345", [self.asset(1)]).asset_count, 1)
        self.assertEqual([one.id for one in self.library.grants.list()], ["uid:12345"])
        self.assertEqual(self.library.grants.revoke("uid:12345").status, "denied")
        self.assertEqual(self.library.grants.pending(), ([], []))
        self.assertEqual(len(self.library.grants.history("uid:12345")), 3)

    def test_a_killed_service_raises_an_error_at_once_and_later_calls_wait_for_it(self):
        library = self.services.library(wait=0)
        self.assertGreater(len(library.fetch()), 0)
        self.services.kill("catalog")
        try:
            started = time.monotonic()
            # The request may be sent before libzmq has read that the connection was closed.
            with self.assertRaises((errors.UnavailableError, errors.ConnectionLostError)):
                library.catalog.call("changes.token")
            with self.assertRaises(errors.UnavailableError):
                library.catalog.call("changes.token")
            self.assertLess(time.monotonic() - started, 5)
            waiting = threading.Thread(target=lambda: library.token)
            waiting.start()
        finally:
            self.services.start("catalog")
        waiting.join(20)
        self.assertFalse(waiting.is_alive())

    def test_each_method_is_sent_to_its_service(self):
        result = self.library.call("fetch.assets", {"fetch": {"limit": 1}})
        self.assertTrue(re.fullmatch("[0-9a-f]{32}\\.[0-9]+", result["token"]))
        self.assertEqual(self.library.call("feed.head")["library"], result["token"].split(".")[0])


if __name__ == "__main__":
    unittest.main()
