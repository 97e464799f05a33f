"""Consumers mirror a library while its services are killed and started again, and end with exactly its content."""

import asyncio
import os
import random
import threading
import time
import unittest

from safelight import Change, Expired
from safelight.aio import AsyncLibrary
from services import Services

SECONDS = 60 if os.getenv("SAFELIGHT_SOAK") else 5
SEED = int(os.getenv("SAFELIGHT_SEED", random.randrange(10**9)))
SORT = "-rating"


class Mirror:
    """The assets and albums of a library, kept current from change records only."""

    def __init__(self):
        self.objects = {}
        self.sequences = []

    def apply(self, change):
        self.sequences.append(change.sequence)
        for one in [*change.assets, *change.collections]:
            if one.after is None:
                self.objects.pop(one.id, None)
            else:
                self.objects[one.id] = one.after.json


def load(library):
    """Returns everything in a library at one token, and the token."""
    assets = library.fetch(include_hidden=True)
    token = assets.token
    trash = library.fetch(in_trash=True, include_hidden=True, at=token)
    found = [*assets, *trash]
    for kind in ("album", "moment"):
        found += library.collections(type=kind, at=token)
    return {one.id: one.json for one in found}, token


class MirrorTests(unittest.TestCase):
    def setUp(self):
        self.services = Services().start()
        self.errors = []
        self.end = None  # the last sequence, when all changes are performed

    def tearDown(self):
        self.services.stop()

    def is_at_end(self, token):
        return self.end is not None and int(token.rsplit(".", 1)[1]) >= self.end

    def in_thread(self, function):
        def run():
            try:
                function()
            except BaseException as error:
                self.errors.append(error)

        thread = threading.Thread(target=run, name=function.__name__)
        thread.start()
        return thread

    def test_mirrors_end_equal_to_the_library(self):
        print(f"seed of the mirrors: SAFELIGHT_SEED={SEED}")
        rng = random.Random(SEED)
        library = self.services.library("writer")
        library.import_files(self.services.write_photos())
        mirror, async_mirror, lists = Mirror(), Mirror(), {}
        mirror.objects, token = load(library)
        async_mirror.objects = dict(mirror.objects)
        fetch = {"where": "rating >= 2", "sort": SORT, "limit": 7}
        heads = []

        def follow():
            with self.services.library("mirror") as reader:
                for event in reader.changes(since=token, events=True):
                    self.assertNotIsInstance(event, Expired)
                    if isinstance(event, Change):
                        mirror.apply(event)
                    if self.is_at_end(event.token):
                        return

        async def follow_with_asyncio():
            async with AsyncLibrary(self.services.run, wait=30.0) as reader:
                async for event in reader.changes(since=token, events=True):
                    if isinstance(event, Change):
                        async_mirror.apply(event)
                    if self.is_at_end(event.token):
                        return

        def follow_list():
            with self.services.library("list") as reader:
                for live in reader.live(**fetch):
                    lists["live"] = list(live.ids)
                    heads.append(live.token)
                    if self.end is not None and self.is_list_final(live.token):
                        return

        def kill():
            killer = random.Random(SEED + 1)
            while self.end is None:
                name = killer.choice(["catalog", "change-broker", "change-broker", "editor"])
                self.services.kill(name)
                time.sleep(killer.random() * 0.3)
                self.services.start(name)
                time.sleep(killer.random() * 0.7)

        threads = [self.in_thread(follow), self.in_thread(lambda: asyncio.run(follow_with_asyncio())),
                   self.in_thread(follow_list)]
        killer = self.in_thread(kill)
        albums, performed = [], 0
        ids = library.fetch(include_hidden=True).ids()
        started = time.monotonic()
        while time.monotonic() - started < SECONDS:
            with library.changing() as changes:
                asset = rng.choice(ids)
                kind = rng.randrange(5)
                if kind == 0:
                    albums.append(changes.create_album(f"album {performed}", rng.sample(ids, 3)))
                elif kind == 1 and len(albums) > 3:
                    changes.delete(albums.pop(rng.randrange(len(albums))).id)
                elif kind == 2:
                    changes.update(asset, is_hidden=rng.random() < 0.3, caption=f"caption {performed}")
                else:
                    changes.update(asset, rating=rng.randrange(6), is_favorite=rng.random() < 0.5)
            performed += 1
            if rng.random() < 0.05:
                asset = library.assets.many([rng.choice(ids)])
                if asset and not asset[0].is_hidden:
                    asset[0].edit(exposure=round(rng.uniform(-1, 1), 2))
        # One more change of the live list, so that its consumer receives a last message.
        with library.changing() as changes:
            for index, asset in enumerate(ids):
                changes.update(asset, rating=5 - index % 4, is_hidden=False)
        last = changes.outcome.sequence
        self.is_list_final = lambda token: int(token.rsplit(".", 1)[1]) >= last
        self.end = last
        killer.join(60)
        with library.changing() as changes:
            changes.update(ids[0], caption="the end", rating=0)
        for thread in threads:
            thread.join(60)
            self.assertFalse(thread.is_alive(), "a consumer did not reach the end")
        self.assertEqual(self.errors, [])

        # The consumers may have ended before the last changes, which are applied here.
        final, head = load(library)
        for found in (mirror, async_mirror):
            for change in library.changes(since=f"{head.rsplit('.', 1)[0]}.{found.sequences[-1]}", follow=False):
                found.apply(change)
            first = int(token.rsplit(".", 1)[1]) + 1
            self.assertEqual(found.sequences, list(range(first, int(head.rsplit(".", 1)[1]) + 1)))
            self.assertEqual(sorted(found.objects), sorted(final))
            for id, expected in final.items():
                self.assertEqual(found.objects[id], expected)
        at = heads[-1]
        self.assertEqual(lists["live"], library.fetch(at=at, **fetch).ids())
        titles = [album.title for album in library.albums]
        self.assertEqual(len(titles), len(set(titles)))
        self.assertEqual(len(titles), len(albums))
        counts = f"{len(mirror.sequences)} changes, {len(final)} objects"
        print(f"mirrors: {performed} transactions in {SECONDS} s, {counts}")
        library.close()


if __name__ == "__main__":
    unittest.main()
