"""Tests of published edits without services."""

import json
import threading
import time
import unittest
from unittest import mock

import zmq

from safelight import Library
from safelight.editing import PushSockets
from safelight.transport import Reply

A, B, NEW = ("a" + digit * 26 for digit in "123")
EDIT, OTHER = {"version": 1, "operations": [{"operation": "exposure", "value": 0.5}]}, {"version": 1, "operations": []}


class AppliedEdits:
    """A catalog and an editor: pushed edits are applied at once, and recorded by their ids."""

    def __init__(self):
        self.known = {}
        self.pushed = []

    def request(self, method, params, attachments=(), deadline=30.0, on_notification=None):
        known = [self.known[id] for id in params["ids"] if id in self.known]
        return Reply({"edits": known, "unknown": [id for id in params["ids"] if id not in self.known]}, [])

    def push(self, edit):
        self.pushed.append((edit["asset"], edit["adjustments"], edit.get("after")))
        self.known[edit["id"]] = {"id": edit["id"], "asset": edit["asset"], "state": "applied", "sequence": 1}
        return True

    def close(self):
        pass


class RepeatedPublishingTests(unittest.TestCase):
    def setUp(self):
        self.services = AppliedEdits()
        self.library = Library("/nonexistent")
        self.library.catalog = self.services

    def publish(self, *edits, **options):
        """Publishes edits like a new run of a program. Returns the edits applied by this run, and the statuses."""
        self.services.pushed.clear()
        with mock.patch("safelight.editing.PushSockets", lambda *_: self.services), mock.patch("time.sleep"):
            statuses = list(self.library.publish(edits, **options))
        return [(asset, listed) for asset, listed, _ in self.services.pushed], [one.asset for one in statuses]

    def test_an_edit_is_recognized_at_any_position_in_the_list(self):
        for first in ({"transaction": "best"}, {"transaction": "x" * 200}):
            self.assertEqual(self.publish((A, EDIT), (B, EDIT), **first), ([(A, EDIT), (B, EDIT)], [A, B]))
            self.assertEqual(self.publish((NEW, EDIT), (A, EDIT), (B, EDIT), **first), ([(NEW, EDIT)], [A, B, NEW]))
            self.assertEqual(self.publish((B, EDIT), **first), ([], [B]))
        self.assertTrue(all(len(id) == 32 for id in self.services.known))

    def test_another_edit_of_the_asset_is_applied(self):
        options = {"transaction": "best", "mode": "append"}
        self.publish((A, EDIT), **options)
        self.assertEqual(self.publish((A, OTHER), **options)[0], [(A, OTHER)])
        self.assertEqual(self.publish((A, EDIT), transaction="best", mode="replace")[0], [(A, EDIT)])
        self.assertEqual(self.publish((A, EDIT), transaction="other", mode="append")[0], [(A, EDIT)])
        self.assertEqual(self.publish((A, EDIT), (A, OTHER), **options)[0], [])

    def test_equal_edits_in_one_list_are_all_applied(self):
        options = {"transaction": "best", "mode": "append"}
        self.assertEqual(self.publish((A, EDIT), (A, EDIT), **options)[0], [(A, EDIT)] * 2)
        self.assertIsNotNone(self.services.pushed[1][2])
        self.assertEqual(self.publish((A, EDIT), (A, EDIT), (A, EDIT), **options)[0], [(A, EDIT)])

    def test_without_an_id_each_call_applies_its_edits(self):
        for _ in range(2):
            self.assertEqual(self.publish((A, EDIT), (B, EDIT))[0], [(A, EDIT), (B, EDIT)])


class PushTests(unittest.TestCase):
    def test_push_returns_false_at_once_if_the_editor_disconnects_after_the_poll(self):
        context = zmq.Context()
        sockets = PushSockets(context, "tcp://127.0.0.1:1", None)
        try:
            (socket,) = sockets._sockets.values()
            ready = mock.Mock(wraps=socket)
            # The poll reports a connection that no longer exists.
            ready.poll.return_value = zmq.POLLOUT
            sockets._sockets = {"tcp://127.0.0.1:1": ready}
            results = []
            pushing = threading.Thread(
                target=lambda: results.append(sockets.push({"id": "1", "asset": A})), daemon=True
            )
            started = time.monotonic()
            pushing.start()
            pushing.join(10)
            self.assertEqual(results, [False])
            self.assertLess(time.monotonic() - started, 5)
            self.assertEqual(json.loads(ready.send.call_args[0][0])["method"], "edits.publish")
        finally:
            context.destroy(0)


if __name__ == "__main__":
    unittest.main()
