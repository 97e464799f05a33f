"""Tests of the state machines without services: lost messages, restarts and errors."""

import asyncio
import json
import os
import random
import socket
import threading
import time
import unittest
from unittest import mock

import zmq
import zmq.asyncio

from safelight.aio import AsyncCatalogs, AsyncConnection
from safelight.errors import HandleExpiredError, SafelightError
from safelight.feed import CaughtUp, Change, Feed
from safelight.following import handle_message
from safelight.instances import MAX_HEDGED_READS, CatalogChoice, may_be_different_elsewhere
from safelight.live import LiveList, apply_details
from safelight.transport import Catalogs, Reply, Service

LIBRARY, OTHER = "ab" * 16, "cd" * 16
SEED = int(os.getenv("SAFELIGHT_SEED", random.randrange(10**9)))
ROUNDS = 300 * max(1, int(os.getenv("SAFELIGHT_SOAK", "1")))


def token(sequence, library=LIBRARY):
    return f"{library}.{sequence}"


def record(sequence):
    return {"sequence": sequence, "library": LIBRARY, "assets": [{"before": None, "after": {"id": f"a{sequence % 3}"}}]}


def message(sequence, previous):
    return dict(record(sequence), previous=previous, token=token(sequence))


def head(sequence, instance="one", library=LIBRARY):
    return {"sequence": sequence, "library": library, "instance": instance, "token": token(sequence, library)}


class FeedTests(unittest.TestCase):
    def page(self, feed, records, page_end, newest):
        return feed.page({"records": records, "token": token(page_end), "head": token(newest)})

    def test_a_feed_starts_at_the_head_or_at_its_token(self):
        feed = Feed()
        self.assertEqual(feed.next_action, ("head",))
        self.assertEqual(feed.begin(head(7)), [CaughtUp(token=token(7))])
        self.assertEqual(feed.next_action, ("live",))
        self.assertEqual(Feed(token(3)).next_action, ("page", token(3)))

    def test_a_gap_reads_the_history_and_delivers_no_change_twice(self):
        feed = Feed()
        feed.begin(head(1))
        self.assertEqual([event["sequence"] for event in feed.live("changes", message(2, 1))], [2])
        self.assertEqual(feed.live("changes", message(5, 4)), [])
        self.assertEqual((feed.next_action, feed.gaps), (("page", token(2)), 1))
        events = self.page(feed, [record(3), record(4), record(5)], 5, 5)
        self.assertEqual([event["sequence"] for event in events if isinstance(event, Change)], [3, 4, 5])
        self.assertEqual(feed.live("changes", message(5, 4)), [])

    def test_a_head_reveals_a_lost_last_message_at_once(self):
        feed = Feed()
        feed.begin(head(1))
        feed.head(head(2), 0)
        self.assertEqual(feed.next_action, ("page", token(1)))

    def test_a_silent_feed_reads_the_history(self):
        feed = Feed()
        feed.begin(head(1))
        self.assertEqual(handle_message(feed, None), [])
        self.assertEqual((feed.next_action, feed.gaps), (("page", token(1)), 0))
        events = self.page(feed, [record(2)], 2, 2)
        self.assertEqual([event["sequence"] for event in events if isinstance(event, Change)], [2])

    def test_a_filtered_feed_reads_the_history_after_five_seconds_behind_the_head(self):
        feed = Feed(topics=["asset.a1"])
        feed.begin(head(1))
        feed.head(head(2), 0)
        feed.head(head(3), 4.9)
        self.assertEqual(feed.next_action, ("live",))
        feed.head(head(4), 5)
        self.assertEqual(feed.next_action, ("page", token(1)))
        events = self.page(feed, [record(2), record(4)], 4, 4)
        self.assertEqual([event["sequence"] for event in events if isinstance(event, Change)], [4])

    def test_the_topic_changes_means_all_and_other_topics_are_checked(self):
        for topics in (["changes"], ["changes", "asset.a1"]):
            feed = Feed(topics=topics)
            feed.begin(head(1))
            self.assertEqual([event["sequence"] for event in feed.live("changes", message(2, 1))], [2])
            feed.head(head(4), 0)
            events = self.page(feed, [record(3), record(4)], 4, 4)
            self.assertEqual([event["sequence"] for event in events if isinstance(event, Change)], [3, 4])
        for topic in ("head", "fetch.x", "asset.", "nothing", "", "changes.x"):
            with self.assertRaises(SafelightError) as raised:
                Feed(topics=["changes", topic])
            self.assertEqual(raised.exception.name, "invalid_params")

    def test_a_truncated_record_and_a_new_broker_need_the_history_and_an_expired_token_restarts_the_feed(self):
        feed = Feed()
        feed.begin(head(1))
        feed.live("changes", {"sequence": 2, "library": LIBRARY, "previous": 1, "token": token(2), "truncated": True})
        self.assertEqual(feed.next_action, ("page", token(1)))
        self.page(feed, [record(2)], 2, 2)
        feed.head(head(2, "two"), 0)
        self.assertEqual(feed.next_action, ("page", token(2)))
        event = feed.expired(token(9, OTHER), token(5, OTHER))[0]
        self.assertEqual((event["head"], feed.token), (token(9, OTHER), token(9, OTHER)))
        feed.live("changes", message(3, 2))
        self.assertEqual(feed.next_action, ("live",))

    def test_every_change_is_delivered_once_and_in_order_whatever_is_lost(self):
        print(f"seed of the feed: SAFELIGHT_SEED={SEED}")
        rng = random.Random(SEED)
        for _ in range(ROUNDS):
            feed, newest, events, inbox = Feed(token(0)), 0, [], []
            for _ in range(60):
                if rng.random() < 0.5:
                    newest += 1
                    if rng.random() < 0.6:
                        inbox.append(message(newest, newest - 1))
                if rng.random() < 0.2:
                    inbox.append(head(newest, rng.choice(["one", "two"])))
                if feed.next_action[0] == "page":
                    start = feed.position
                    page_end = min(newest, start + rng.randrange(1, 4))
                    records = [record(sequence) for sequence in range(start + 1, page_end + 1)]
                    events += self.page(feed, records, page_end, newest)
                elif inbox:
                    item = inbox.pop(0)
                    events += feed.head(item, 0) or [] if "instance" in item else feed.live("changes", item)
            sequences = [event["sequence"] for event in events if isinstance(event, Change)]
            self.assertEqual(sequences, list(range(1, len(sequences) + 1)))


def between(before, after, changed=()):
    """Returns valid details that are not minimal: every asset that stays counts as moved."""
    removed = [{"id": asset, "index": index} for index, asset in enumerate(before) if asset not in after]
    inserted = [{"id": asset, "index": index} for index, asset in enumerate(after) if asset not in before]
    moved = [
        {"id": asset, "before": before.index(asset), "after": after.index(asset)} for asset in after if asset in before
    ]
    return {"hasIncrementalChanges": True, "countBefore": len(before), "countAfter": len(after), "removed": removed,
            "inserted": inserted, "moved": moved, "changed": list(changed)}


class LiveListTests(unittest.TestCase):
    def live(self, ids, sequence=1):
        live = LiveList({"limit": 3})
        self.assertEqual(live.next_action, ("list",))
        live.set_list(ids, token(sequence))
        self.assertEqual(live.next_action, ("observe", token(sequence)))
        live.handle_observation(
            {"observation": "o", "topic": "fetch.o", "instance": "one", "token": token(sequence), "count": 3}
        )
        self.assertEqual(live.next_action, ("subscribe", "fetch.o"))
        live.subscribed("fetch.o")
        self.assertEqual(live.next_action, ("details", token(sequence)))
        live.handle_details({"token": token(sequence), "count": 3})
        self.assertEqual(live.next_action, ("live",))
        return live

    def changed(self, live, after, sequence, previous):
        live.live("fetch.o", {"sequence": sequence, "previous": previous, "library": LIBRARY,
                              "token": token(sequence), "details": between(live.ids, after)})

    def test_details_produce_the_list_after_the_change(self):
        self.assertEqual(apply_details(list("abcd"), between(list("abcd"), list("dxabc"))), list("dxabc"))
        with self.assertRaises(ValueError):
            apply_details(list("abc"), between(list("abcd"), list("dc")))
        rng = random.Random(SEED)
        for _ in range(ROUNDS):
            before = rng.sample(range(12), rng.randrange(12))
            after = rng.sample(range(12), rng.randrange(12))
            self.assertEqual(apply_details(before, between(before, after)), after)

    def test_changes_are_applied_and_old_ones_ignored(self):
        live = self.live(list("abc"))
        self.changed(live, list("bca"), 2, 1)
        self.assertEqual((live.ids, live.token), (list("bca"), token(2)))
        self.changed(live, list("x"), 2, 1)
        self.assertEqual(live.ids, list("bca"))

    def test_a_silent_live_list_requests_details(self):
        live = self.live(list("abc"))
        handle_message(live, None)
        self.assertEqual(live.next_action, ("details", token(1)))

    def test_details_lead_from_the_previously_delivered_list_or_are_none(self):
        live = self.live(list("abc"))
        self.changed(live, list("bca"), 2, 1)
        self.assertEqual(live.mark_delivered(0), 2)
        self.assertIsNone(live.details)
        self.changed(live, list("bc"), 3, 2)
        self.assertEqual(live.mark_delivered(2), 3)
        self.assertEqual([entry["id"] for entry in live.details["removed"]], ["a"])
        self.changed(live, list("b"), 4, 3)
        self.changed(live, list("cb"), 5, 4)
        self.assertEqual((live.mark_delivered(3), live.details), (5, None))

    def test_a_gap_requests_details(self):
        live = self.live(list("abc"))
        self.changed(live, list("a"), 5, 4)
        self.assertEqual((live.ids, live.next_action), (list("abc"), ("details", token(1))))
        live.handle_details({"token": token(5), "details": between(list("abc"), list("ca"))})
        self.assertEqual((live.ids, live.next_action), (list("ca"), ("live",)))

    def test_a_new_broker_is_observed_from_the_current_token(self):
        live = self.live(list("abc"))
        live.head(head(3, "two"), 0)
        self.assertEqual(live.next_action, ("observe", token(1)))
        live.handle_observation({
            "observation": "o", "topic": "fetch.o", "instance": "two", "token": token(3),
            "details": between(list("abc"), list("cab")),
        })
        self.assertEqual((live.ids, live.next_action), (list("cab"), ("live",)))

    def test_an_expired_observation_or_token_is_renewed(self):
        live = self.live(list("abc"))
        self.assertTrue(live.recover_from(SafelightError("handle_expired", "")))
        self.assertEqual(live.next_action, ("observe", token(1)))
        self.assertTrue(live.recover_from(SafelightError("token_expired", "")))
        self.assertEqual(live.next_action, ("list",))
        self.assertFalse(live.recover_from(SafelightError("limit_exceeded", "")))
        live = self.live(list("abc"))
        live.head(head(1, "one", OTHER), 0)
        self.assertEqual(live.next_action, ("list",))
        live = self.live(list("abc"))
        live.handle_details({"token": token(2), "details": {"hasIncrementalChanges": False}, "ids": ["z"]})
        self.assertEqual((live.ids, live.next_action), (["z"], ("live",)))
        live.handle_details({"token": token(3), "details": {"hasIncrementalChanges": False}})
        self.assertEqual(live.next_action, ("list",))


class Member:
    def __init__(self, address):
        self.address = address


def failure(name, data=None):
    """Returns an error as a service reports it."""
    return SafelightError.from_json({"code": 0, "message": "", "data": {"name": name, **(data or {})}})


class CatalogChoiceTest(unittest.TestCase):
    def test_the_error_of_a_change_decides_which_catalog_is_asked_next(self):
        # The error of the first catalog; whether the same change may go on to the next one; who is asked first later.
        cases = [
            (failure("library_read_only", {"standby": True}), True, [0, 1]),
            (failure("library_offline"), False, [1, 0]),
            (failure("deadline_exceeded"), False, [1, 0]),
            (failure("connection_lost"), False, [1]),
            (failure("unavailable"), True, [1]),
            (failure("invalid_params"), False, [0, 1]),
        ]
        for error, goes_on, order in cases:
            choice = CatalogChoice([Member("one"), Member("two")])
            self.assertEqual((error.name, choice.note_change_error(0, error)), (error.name, goes_on))
            self.assertEqual((error.name, choice.writers()), (error.name, order))


class ElsewhereTests(unittest.TestCase):
    def test_a_transient_collection_may_be_at_another_catalog(self):
        self.assertTrue(may_be_different_elsewhere(HandleExpiredError()))
        self.assertFalse(may_be_different_elsewhere(SafelightError("invalid_argument")))


class SlowMember:
    """A catalog that answers when `answers` is set, and counts the requests that it has received."""

    _context = _keys = None
    name = "catalog"

    def __init__(self, address):
        self.address = address
        self.asked = 0

    async def request(self, *_):
        self.asked += 1
        await self.answers.wait()
        return Reply(self.address, [])

    def connection(self):
        return self

    def forget(self):
        pass


class SlowRequest:
    """A request of a thread to a catalog that answers when `answers` is set."""

    answers = threading.Event()

    def __init__(self, member, *_):
        self.connection = member
        member.asked += 1

    def receive(self):
        return Reply(self.connection.address, []) if self.answers.is_set() else None


class ConnectingTests(unittest.TestCase):
    def test_an_attempt_that_is_cancelled_leaves_no_socket(self):
        async def run():
            context = zmq.asyncio.Context()
            # The listener accepts connections and never answers.
            with socket.create_server(("127.0.0.1", 0)) as listener:
                address = f"tcp://127.0.0.1:{listener.getsockname()[1]}"
                connection = AsyncConnection(context, "catalog", address, None)
                opening = asyncio.ensure_future(connection.open())
                await asyncio.sleep(0)
                opening.cancel()
                with self.assertRaises(asyncio.CancelledError):
                    await opening
            is_closed = connection.socket.closed and connection.monitor.closed
            context.destroy(0)
            self.assertTrue(is_closed)

        asyncio.run(run())


class NestedRequestTests(unittest.TestCase):
    def serve(self, socket, ended):
        """Answers each request with its method; before that, one with progress sends a notification."""
        while not ended.is_set():
            if not socket.poll(20):
                continue
            client, frame = socket.recv_multipart()
            request = json.loads(frame)
            messages = [{"id": request["id"], "result": request["method"]}]
            if request["method"] == "with.progress":
                messages.insert(0, {"method": "progress", "params": {"id": request["id"]}})
            for message in messages:
                socket.send_multipart([client, json.dumps(message).encode()])

    def test_a_handler_may_send_requests_to_the_same_service(self):
        context, ended = zmq.Context(), threading.Event()
        socket = context.socket(zmq.ROUTER)
        port = socket.bind_to_random_port("tcp://127.0.0.1")
        server = threading.Thread(target=self.serve, args=(socket, ended))
        server.start()
        service = Service(context, f"tcp://127.0.0.1:{port}", wait=10)
        nested = []

        def notified(*_):
            nested.extend(service.request(method, deadline=5).result for method in ("first", "second"))

        try:
            for _ in range(2):
                reply = service.request("with.progress", deadline=5, on_notification=notified)
                self.assertEqual(reply.result, "with.progress")
            self.assertEqual(nested, ["first", "second"] * 2)
            self.assertEqual(len(service._connections), 1)
        finally:
            service.close()
            ended.set()
            server.join()
            context.destroy(0)


class HedgedReadsTests(unittest.TestCase):
    READS = MAX_HEDGED_READS + 4

    def setUp(self):
        self.members = [SlowMember("one"), SlowMember("two")]

    def is_reached(self):
        return [member.asked for member in self.members] >= [self.READS, MAX_HEDGED_READS]

    def check(self):
        self.assertEqual([member.asked for member in self.members], [self.READS, MAX_HEDGED_READS])

    @mock.patch("safelight.aio.HEDGING_DELAY", 0.01)
    def test_at_most_16_reads_of_a_program_with_asyncio_are_sent_to_two_catalogs(self):
        async def run():
            answers = asyncio.Event()
            for member in self.members:
                member.answers = answers
            catalogs = AsyncCatalogs(self.members)
            reads = [asyncio.ensure_future(catalogs.request("fetch.assets")) for _ in range(self.READS)]
            end = time.monotonic() + 10
            while not self.is_reached() and time.monotonic() < end:
                await asyncio.sleep(0.01)
            # Time in which more requests would be sent.
            await asyncio.sleep(0.2)
            self.check()
            answers.set()
            await asyncio.gather(*reads)
            # All reads have ended, so as many new ones may be hedged.
            self.assertTrue(all(catalogs._choice.begin_hedging() for _ in range(MAX_HEDGED_READS)))
            self.assertFalse(catalogs._choice.begin_hedging())

        asyncio.run(run())

    @mock.patch("safelight.transport.HEDGING_DELAY", 0.01)
    @mock.patch("safelight.transport.PendingRequest", SlowRequest)
    @mock.patch("safelight.transport.poll", lambda *_: time.sleep(0.005))
    def test_at_most_16_reads_of_all_threads_are_sent_to_two_catalogs(self):
        catalogs = Catalogs(self.members)
        threads = [threading.Thread(target=catalogs.request, args=("fetch.assets",)) for _ in range(self.READS)]
        for thread in threads:
            thread.start()
        end = time.monotonic() + 10
        while not self.is_reached() and time.monotonic() < end:
            time.sleep(0.01)
        # Time in which more requests would be sent.
        time.sleep(0.4)
        self.check()
        SlowRequest.answers.set()
        for thread in threads:
            thread.join()
        self.assertTrue(all(catalogs._choice.begin_hedging() for _ in range(MAX_HEDGED_READS)))
        self.assertFalse(catalogs._choice.begin_hedging())


if __name__ == "__main__":
    unittest.main()
