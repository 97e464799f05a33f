"""The change feed as a state machine without sockets or a clock: it receives messages and returns the next action.

Live messages may be lost; the history is complete. A live message that follows the position is delivered; any other
message, and a head beyond the position, makes the feed read the history. Every change is therefore delivered exactly
once and in order.
"""

from typing import Iterable, List, Optional, Set, Tuple, Union

from .change import CaughtUp, Change
from .errors import JSON, Expired, InvalidParametersError

Event = Union[Change, CaughtUp, Expired]
Action = Tuple[str, ...]

CONFIRM_AFTER = 5.0  # seconds that a filtered subscriber may be behind the head before it reads the history

FAMILIES = {"asset": "assets", "collection": "collections", "list": "lists", "edit": "edits"}

# The members of messages on the topic "grants".
GRANT_MEMBERS = ("grants", "questions")


def topic_filter(topics: Iterable[str]) -> Set[str]:
    """Returns the topics that filter the history, as a set. An empty set means all changes.

    No topics, and "changes" among others, mean all changes. Raises `invalid_params` for a topic that is not part of the
    change log.
    """
    if isinstance(topics, str):
        raise InvalidParametersError(
            message=f"topics: expected a list of texts, not {topics!r}: write [{topics!r}]",
            data={"parameter": "topics"},
        )
    topics = set(topics)
    for topic in sorted(topics):
        family, _, name = topic.partition(".")
        if topic == "head":
            problem = "head is not a topic of the change log and cannot filter it: call feed.head"
        elif topic == "availability":
            problem = "availability is not a topic of the change log and cannot filter it: call library.status"
        elif family == "fetch":
            problem = "an observed fetch is not a topic of the change log and cannot filter it: use Library.live"
        elif topic not in ("changes", "grants") and (family not in FAMILIES or not name):
            problem = (
                f"{topic!r} is not a topic of the change log: "
                "use changes, asset.<id>, collection.<id>, list.<id>, edit.<id> or grants"
            )
        else:
            continue
        raise InvalidParametersError(message=problem, data={"parameter": "topics"})
    return set() if "changes" in topics else topics


def split_token(token: str) -> Tuple[str, int]:
    """Returns the history and the sequence of a token. Raises InvalidParametersError for another text."""
    history, _, sequence = token.rpartition(".")
    if not history or not sequence.isdigit():
        raise InvalidParametersError(
            message=f'since: "{token[:80]}" is not a token; use the `token` of a change, or "start" for the oldest one',
            data={"parameter": "since"},
        )
    return history, int(sequence)


class Feed:
    """The state of a subscription to the change feed.

    `next_action` is ("head",): call `feed.head` and pass the result to `begin`; ("page", token): call `feed.since` and
    pass the result to `page`; or ("live",): pass the next live message to `live` or `head`.
    """

    def __init__(self, token: Optional[str] = None, topics: Iterable[str] = ()) -> None:
        self.topics = topic_filter(topics)
        self.history: Optional[str] = None
        self.position = 0
        if token:
            self.history, self.position = split_token(token)
        self.gaps = 0
        self._needs_history = True
        self._instance: Optional[str] = None
        self._behind_since: Optional[float] = None
        self._caught_up: Optional[str] = None
        self._former_histories: Set[str] = set()

    @property
    def token(self) -> Optional[str]:
        """The token of the last delivered change; None before `begin`."""
        return f"{self.history}.{self.position}" if self.history else None

    @property
    def next_action(self) -> Action:
        if self.history is None:
            return ("head",)
        return ("page", f"{self.history}.{self.position}") if self._needs_history else ("live",)

    # Live messages

    def live(self, topic: str, message: JSON) -> List[Event]:
        """Handles a parsed live message. Returns the events to deliver."""
        if not self._is_current_history(message["library"]) or message["sequence"] <= self.position:
            return []
        if len(self.topics) > 1 or message.get("truncated"):
            # Only the history has the order of changes across topics, and records that are too large for a message.
            self._needs_history = True
            return []
        if message["previous"] > self.position:
            self._record_gap()
            return []
        self.position = message["sequence"]
        return [Change(self._record(topic, message))]

    def head(self, head: JSON, now: float) -> None:
        """Handles a head message. `now` is the time in seconds of a monotonic clock."""
        if self._instance not in (None, head["instance"]):
            self._needs_history = True
        self._instance = head["instance"]
        if not self._is_current_history(head["library"]) or head["sequence"] <= self.position:
            self._behind_since = None
            return
        if not self.topics:
            self._record_gap()  # everything up to a head was published before it, so a message was lost
        elif self._behind_since is None:
            self._behind_since = now
        elif now - self._behind_since >= CONFIRM_AFTER:
            self._needs_history = True

    def handle_undecodable(self) -> None:
        """Handles a live message that cannot be parsed."""
        self._record_gap()

    def handle_silence(self) -> None:
        """Handles several seconds without a message. A head is published every second, so the live feed does not reach
        this client, as with limited access."""
        self._needs_history = True

    def _is_current_history(self, history: str) -> bool:
        if self.history is None or history in self._former_histories:
            return False
        if history != self.history:
            self._needs_history = True
        return history == self.history

    def _record_gap(self) -> None:
        if not self._needs_history:
            self.gaps += 1
        self._needs_history = True

    @staticmethod
    def _record(topic: str, message: JSON) -> JSON:
        record = {key: value for key, value in message.items() if key not in ("previous", "token", "change")}
        if "change" in message:
            family = topic.split(".", 1)[0]
            member = FAMILIES.get(family) or ("questions" if "state" in message["change"] else "grants")
            record[member] = [message["change"]]
        return record

    # Responses

    def begin(self, head: JSON) -> List[Event]:
        """Handles the response of ("head",): the feed starts at the head. Returns the events to deliver."""
        self._instance = head["instance"]
        self._restart(head["token"])
        return [CaughtUp(token=head["token"])]

    def page(self, page: JSON) -> List[Event]:
        """Handles the response of ("page", token), a page of the history. Returns the events to deliver."""
        self._needs_history = False
        history, page_end = split_token(page["token"])
        if history != self.history:
            return []
        start = self.position
        events: List[Event] = []
        for record in page["records"]:
            if record["sequence"] <= self.position:
                continue
            self.position = record["sequence"]
            part = filtered(record, self.topics)
            if part is not None:
                events.append(Change(part))
        self.position = max(self.position, page_end)
        self._behind_since = None
        if self.position < split_token(page["head"])[1]:
            self._needs_history = self.position != start
        elif self._caught_up != self.token:
            self._caught_up = self.token
            events.append(CaughtUp(token=self.token))
        return events

    def expired(self, head: str, oldest: str) -> List[Event]:
        """Handles the error `token_expired`: continues after the head. Returns the events to deliver."""
        if self.history != split_token(head)[0]:
            self._former_histories.add(self.history or "")
        self._restart(head)
        return [Expired(head=head, oldest=oldest)]

    def _restart(self, token: str) -> None:
        self.history, self.position = split_token(token)
        self._former_histories.discard(self.history)
        self._caught_up = token
        self._needs_history = False
        self._behind_since = None


def filtered(record: JSON, topics: Set[str]) -> Optional[JSON]:
    """Returns a record with only the entries of the topics, or None if there are none; all of it without topics."""
    if not topics:
        return record
    part, is_relevant = dict(record), False
    for family, member in FAMILIES.items():
        entries = [entry for entry in record.get(member, []) if f"{family}.{entry_id(entry)}" in topics]
        part[member] = entries
        is_relevant = is_relevant or bool(entries)
    for member in GRANT_MEMBERS:
        if part.get(member) and "grants" in topics:
            is_relevant = True
        else:
            part.pop(member, None)
    return part if is_relevant else None


def entry_id(entry: JSON) -> str:
    """Returns the identifier of the object that an entry of a change record describes."""
    if "id" in entry:
        return str(entry["id"])
    return str((entry.get("after") or entry["before"])["id"])
