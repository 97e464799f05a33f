"""Tests of the ids of transactions for which the program chose none."""

import asyncio
import unittest
import uuid
from unittest import mock

from safelight import Library
from safelight.aio import AsyncLibrary
from safelight.editing import Publisher
from safelight.transaction_ids import new_transaction_id
from safelight.transport import Reply


class TransactionIdTests(unittest.TestCase):
    def test_ids_are_of_version_7_and_ascend_with_time(self):
        milliseconds = [0, 1, 1_700_000_000_000, 1_700_000_000_001, (1 << 48) - 1]
        ids = []
        for time in milliseconds:
            with mock.patch("time.time_ns", return_value=time * 1_000_000 + 999_999):
                ids.append(new_transaction_id())
        self.assertEqual(ids, sorted(ids))
        for id, time in zip(ids, milliseconds):
            self.assertRegex(id, "^[0-9a-f]{32}$")
            self.assertEqual((uuid.UUID(id).version, uuid.UUID(id).variant), (7, uuid.RFC_4122))
            self.assertEqual(int(id[:12], 16), time)

    def test_ids_created_in_the_same_nanosecond_are_different(self):
        with mock.patch("time.time_ns", return_value=1_700_000_000_000_000_000):
            self.assertEqual(len({new_transaction_id() for _ in range(10_000)}), 10_000)

    def test_each_change_without_an_id_gets_a_uuid_of_version_7(self):
        sent = []

        class Service:
            def request(self, method, params=None, attachments=(), deadline=30.0, on_notification=None):
                sent.append(params["transaction"])
                return Reply({"placeholders": {}}, [])

        library = Library("/nonexistent")
        library.catalog = library.editor = Service()
        library.perform([])
        with library.changing() as changes:
            changes.trash("a1")
        library.edit(["a1"], exposure=1)
        library.edit_one("a1", exposure=1)
        library.copy_edits("a1", ["a2"])
        library.undo("a1")
        library.revert("a1")
        library.call("changes.perform", {"requests": []})

        async def perform():
            async with AsyncLibrary("/nonexistent") as library:
                async def request(service, method, params, attachments, deadline):
                    return Service().request(method, params)

                library.request = request
                await library.perform([])

        asyncio.run(perform())

        def run(publisher, _):
            sent.extend(id.split(".")[0] for id in publisher._unfinished)

        with mock.patch.object(Publisher, "run", run):
            library.publish([("a" + 26 * "1", {})])
        self.assertEqual([uuid.UUID(id).version for id in sent], [7] * 10)
        self.assertEqual(len(set(sent)), 10)


if __name__ == "__main__":
    unittest.main()
