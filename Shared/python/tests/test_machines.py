"""The state machines, without sockets: what a lossy feed, restarts and refusals may do to a reader."""

import os
import random
import unittest

from safelight.errors import SafelightError
from safelight.feed import CaughtUp, Change, Feed
from safelight.live import LiveList, apply_details

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
    def page(self, feed, records, upto, newest):
        return feed.page({"records": records, "token": token(upto), "head": token(newest)})

    def test_begins_at_the_head_or_at_its_token(self):
        feed = Feed()
        self.assertEqual(feed.want, ("head",))
        self.assertEqual(feed.begin(head(7)), [CaughtUp(token=token(7))])
        self.assertEqual(feed.want, ("live",))
        self.assertEqual(Feed(token(3)).want, ("page", token(3)))

    def test_a_gap_sends_it_to_history_and_nothing_is_told_twice(self):
        feed = Feed()
        feed.begin(head(1))
        self.assertEqual([one["sequence"] for one in feed.live("changes", message(2, 1))], [2])
        self.assertEqual(feed.live("changes", message(5, 4)), [])
        self.assertEqual((feed.want, feed.gaps), (("page", token(2)), 1))
        told = self.page(feed, [record(3), record(4), record(5)], 5, 5)
        self.assertEqual([one["sequence"] for one in told if isinstance(one, Change)], [3, 4, 5])
        self.assertEqual(feed.live("changes", message(5, 4)), [])

    def test_a_lost_last_message_is_noticed_by_head_at_once(self):
        feed = Feed()
        feed.begin(head(1))
        feed.head(head(2), 0)
        self.assertEqual(feed.want, ("page", token(1)))

    def test_a_filtered_reader_confirms_after_five_seconds_behind(self):
        feed = Feed(topics=["asset.a1"])
        feed.begin(head(1))
        feed.head(head(2), 0)
        feed.head(head(3), 4.9)
        self.assertEqual(feed.want, ("live",))
        feed.head(head(4), 5)
        self.assertEqual(feed.want, ("page", token(1)))
        told = self.page(feed, [record(2), record(4)], 4, 4)
        self.assertEqual([one["sequence"] for one in told if isinstance(one, Change)], [4])

    def test_changes_among_the_topics_is_everything_and_what_is_no_topic_of_the_log_is_refused(self):
        for topics in (["changes"], ["changes", "asset.a1"]):
            feed = Feed(topics=topics)
            feed.begin(head(1))
            self.assertEqual([one["sequence"] for one in feed.live("changes", message(2, 1))], [2])
            feed.head(head(4), 0)
            told = self.page(feed, [record(3), record(4)], 4, 4)
            self.assertEqual([one["sequence"] for one in told if isinstance(one, Change)], [3, 4])
        for topic in ("head", "fetch.x", "asset.", "nothing", "", "changes.x"):
            with self.assertRaises(SafelightError) as refused:
                Feed(topics=["changes", topic])
            self.assertEqual(refused.exception.name, "invalid_params")

    def test_a_large_record_a_new_broker_and_an_old_token(self):
        feed = Feed()
        feed.begin(head(1))
        feed.live("changes", {"sequence": 2, "library": LIBRARY, "previous": 1, "token": token(2), "truncated": True})
        self.assertEqual(feed.want, ("page", token(1)))
        self.page(feed, [record(2)], 2, 2)
        feed.head(head(2, "two"), 0)
        self.assertEqual(feed.want, ("page", token(2)))
        event = feed.expired(token(9, OTHER), token(5, OTHER))[0]
        self.assertEqual((event["head"], feed.token), (token(9, OTHER), token(9, OTHER)))
        feed.live("changes", message(3, 2))
        self.assertEqual(feed.want, ("live",))

    def test_every_change_once_and_in_order_whatever_is_lost(self):
        print(f"seed of the feed: SAFELIGHT_SEED={SEED}")
        chance = random.Random(SEED)
        for _ in range(ROUNDS):
            feed, newest, told, inbox = Feed(token(0)), 0, [], []
            for _ in range(60):
                if chance.random() < 0.5:
                    newest += 1
                    if chance.random() < 0.6:
                        inbox.append(message(newest, newest - 1))
                if chance.random() < 0.2:
                    inbox.append(head(newest, chance.choice(["one", "two"])))
                if feed.want[0] == "page":
                    start = feed.position
                    upto = min(newest, start + chance.randrange(1, 4))
                    told += self.page(feed, [record(one) for one in range(start + 1, upto + 1)], upto, newest)
                elif inbox:
                    one = inbox.pop(0)
                    told += feed.head(one, 0) or [] if "instance" in one else feed.live("changes", one)
            sequences = [one["sequence"] for one in told if isinstance(one, Change)]
            self.assertEqual(sequences, list(range(1, len(sequences) + 1)))


def between(before, after, changed=()):
    """Details that need not be the fewest: everything that stands elsewhere moves."""
    gone = [{"id": one, "index": index} for index, one in enumerate(before) if one not in after]
    come = [{"id": one, "index": index} for index, one in enumerate(after) if one not in before]
    moved = [{"id": one, "before": before.index(one), "after": after.index(one)} for one in after if one in before]
    return {"hasIncrementalChanges": True, "countBefore": len(before), "countAfter": len(after), "removed": gone,
            "inserted": come, "moved": moved, "changed": list(changed)}


class LiveListTests(unittest.TestCase):
    def live(self, ids, sequence=1):
        live = LiveList({"limit": 3})
        self.assertEqual(live.want, ("list",))
        live.listed(ids, token(sequence))
        self.assertEqual(live.want, ("observe", token(sequence)))
        live.observed({"observation": "o", "topic": "fetch.o", "instance": "one", "token": token(sequence), "count": 3})
        self.assertEqual(live.want, ("subscribe", "fetch.o"))
        live.subscribed("fetch.o")
        self.assertEqual(live.want, ("details", token(sequence)))
        live.detailed({"token": token(sequence), "count": 3})
        self.assertEqual(live.want, ("live",))
        return live

    def changed(self, live, after, sequence, previous):
        live.live("fetch.o", {"sequence": sequence, "previous": previous, "library": LIBRARY,
                              "token": token(sequence), "details": between(live.ids, after)})

    def test_details_give_the_after_list(self):
        self.assertEqual(apply_details(list("abcd"), between(list("abcd"), list("dxabc"))), list("dxabc"))
        with self.assertRaises(ValueError):
            apply_details(list("abc"), between(list("abcd"), list("dc")))
        chance = random.Random(SEED)
        for _ in range(ROUNDS):
            before = chance.sample(range(12), chance.randrange(12))
            after = chance.sample(range(12), chance.randrange(12))
            self.assertEqual(apply_details(before, between(before, after)), after)

    def test_changes_are_taken_in_and_old_ones_passed_over(self):
        live = self.live(list("abc"))
        self.changed(live, list("bca"), 2, 1)
        self.assertEqual((live.ids, live.token), (list("bca"), token(2)))
        self.changed(live, list("x"), 2, 1)
        self.assertEqual(live.ids, list("bca"))

    def test_a_gap_or_a_large_message_asks_for_details(self):
        live = self.live(list("abc"))
        self.changed(live, list("a"), 5, 4)
        self.assertEqual((live.ids, live.want), (list("abc"), ("details", token(1))))
        live.detailed({"token": token(5), "details": between(list("abc"), list("ca"))})
        self.assertEqual((live.ids, live.want), (list("ca"), ("live",)))

    def test_a_new_broker_is_observed_from_the_list_at_hand(self):
        live = self.live(list("abc"))
        live.head(head(3, "two"), 0)
        self.assertEqual(live.want, ("observe", token(1)))
        live.observed({"observation": "o", "topic": "fetch.o", "instance": "two", "token": token(3),
                       "details": between(list("abc"), list("cab"))})
        self.assertEqual((live.ids, live.want), (list("cab"), ("live",)))

    def test_what_expired_is_fetched_again(self):
        live = self.live(list("abc"))
        self.assertTrue(live.refused(SafelightError("handle_expired", "")))
        self.assertEqual(live.want, ("observe", token(1)))
        self.assertTrue(live.refused(SafelightError("token_expired", "")))
        self.assertEqual(live.want, ("list",))
        self.assertFalse(live.refused(SafelightError("limit_exceeded", "")))
        live = self.live(list("abc"))
        live.head(head(1, "one", OTHER), 0)
        self.assertEqual(live.want, ("list",))
        live = self.live(list("abc"))
        live.detailed({"token": token(2), "details": {"hasIncrementalChanges": False}, "ids": ["z"]})
        self.assertEqual((live.ids, live.want), (["z"], ("live",)))
        live.detailed({"token": token(3), "details": {"hasIncrementalChanges": False}})
        self.assertEqual(live.want, ("list",))


if __name__ == "__main__":
    unittest.main()
