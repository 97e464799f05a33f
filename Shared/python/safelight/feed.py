"""The change feed as a state machine: what arrived goes in, what to do next comes out. No sockets, no clock.

The live path may lose messages, history does not. A live message that continues the reader's position is passed on; one
that does not, or a head that is further on, sends the reader to history. So every change is told once, in order.
"""

from .errors import Expired, SafelightError

CONFIRM_AFTER = 5.0  # seconds that a filtered reader may be behind head before it asks


class Change(dict):
    """An event: a change record. With topics it holds what those carry."""


class CaughtUp(dict):
    """An event: everything up to `self["token"]` has been told."""


def topic_filter(topics):
    """The topics by which history is filtered: none, or "changes" among them, mean everything, an empty set."""
    topics = set(topics)
    for topic in sorted(topics):
        family, _, name = topic.partition(".")
        if topic == "head":
            problem = "head is no part of the log and cannot be a filter of it: call feed.head"
        elif family == "fetch":
            problem = "an observed fetch is no part of the log and cannot be a filter of it: use Library.live"
        elif topic != "changes" and (family not in ("asset", "collection", "list", "edit") or not name):
            problem = f"{topic!r} is no topic of the log: use changes, asset.<id>, collection.<id>, list.<id> or edit.<id>"
        else:
            continue
        raise SafelightError("invalid_params", problem, -32602, {"parameter": "topics"})
    return set() if "changes" in topics else topics


def split(token):
    """The history and the sequence of a token."""
    library, sequence = token.rsplit(".", 1)
    return library, int(sequence)


class Feed:
    """`want` is what to do next: ("head",), ("page", token) or ("live",)."""

    def __init__(self, token=None, topics=()):
        self.topics = topic_filter(topics)
        self.library, self.position = split(token) if token else (None, 0)
        self.gaps = 0
        self._asking = True
        self._instance = None
        self._behind_since = None
        self._caught_up = None
        self._past = set()

    @property
    def token(self):
        return f"{self.library}.{self.position}" if self.library else None

    @property
    def want(self):
        if self.library is None:
            return ("head",)
        return ("page", self.token) if self._asking else ("live",)

    # The live path

    def live(self, topic, message):
        """A live message, parsed; returns the events."""
        if not self._is_ours(message["library"]) or message["sequence"] <= self.position:
            return []
        if len(self.topics) > 1 or message.get("truncated"):
            self._asking = True  # only history knows the order of several topics, and large records
            return []
        if message["previous"] > self.position:
            self._miss()
            return []
        self.position = message["sequence"]
        return [Change(self._record(topic, message))]

    def head(self, head, now):
        """A head message; `now` in seconds on a clock that is not set back."""
        if self._instance not in (None, head["instance"]):
            self._asking = True
        self._instance = head["instance"]
        if not self._is_ours(head["library"]) or head["sequence"] <= self.position:
            self._behind_since = None
            return
        if not self.topics:
            self._miss()  # everything at or below a head was published before it
        elif self._behind_since is None:
            self._behind_since = now
        elif now - self._behind_since >= CONFIRM_AFTER:
            self._asking = True

    def unreadable(self):
        self._miss()

    def _is_ours(self, library):
        if self.library is None or library in self._past:
            return False
        if library != self.library:
            self._asking = True
        return library == self.library

    def _miss(self):
        if not self._asking:
            self.gaps += 1
        self._asking = True

    @staticmethod
    def _record(topic, message):
        record = {key: value for key, value in message.items() if key not in ("previous", "token", "change")}
        if "change" in message:
            family = topic.split(".", 1)[0]
            record[family + "s"] = [message["change"]]
        return record

    # History

    def begin(self, head):
        """The feed stands here, in answer to ("head",)."""
        self._instance = head["instance"]
        self._restart(head["token"])
        return [CaughtUp(token=head["token"])]

    def page(self, page):
        """A page of history, in answer to ("page", token)."""
        self._asking = False
        library, reached = split(page["token"])
        if library != self.library:
            return []
        before, events = self.position, []
        for record in page["records"]:
            if record["sequence"] <= self.position:
                continue
            self.position = record["sequence"]
            part = self._restricted(record)
            if part is not None:
                events.append(Change(part))
        self.position = max(self.position, reached)
        self._behind_since = None
        if self.position < split(page["head"])[1]:
            self._asking = self.position != before
        elif self._caught_up != self.token:
            self._caught_up = self.token
            events.append(CaughtUp(token=self.token))
        return events

    def expired(self, head, oldest):
        """History does not reach back to the position, or is another one."""
        if self.library != split(head)[0]:
            self._past.add(self.library)
        self._restart(head)
        return [Expired(head=head, oldest=oldest)]

    def _restart(self, token):
        self.library, self.position = split(token)
        self._past.discard(self.library)
        self._caught_up = token
        self._asking = False
        self._behind_since = None

    def _restricted(self, record):
        if not self.topics:
            return record
        part, found = dict(record), False
        for family, name in (("assets", "asset"), ("collections", "collection"), ("lists", "list"), ("edits", "edit")):
            kept = [one for one in record.get(family, []) if f"{name}.{identifier(one)}" in self.topics]
            part[family] = kept
            found = found or bool(kept)
        return part if found else None


def identifier(change):
    """The identifier of what an entry of a record is about."""
    if "id" in change:
        return change["id"]
    return (change.get("after") or change.get("before"))["id"]
