"""Subscriptions to the feed, and the steps of feeds and live lists with blocking sockets."""

import json
import os
import time
from typing import TYPE_CHECKING, Any, Iterable, List, Optional, Set, Tuple, Union

import zmq

from .errors import JSON, Expired, PersistentChangeTokenExpiredError, SafelightError
from .change import Change
from .feed import Event, Feed
from .live import LiveList
from .transport import MAX_POLL_SECONDS, connect, leave_to_parent, new_socket

if TYPE_CHECKING:
    from .aio import AsyncLibrary
    from .library import Library

FOLLOW_DEADLINE = 10.0  # seconds after which an unanswered request of a feed or a live list is repeated
FOLLOW_RETRY_DELAY = 0.2  # seconds before a failed request of a feed or a live list is repeated
RECEIVE_TIMEOUT = 5.0  # seconds without a message after which a feed or a live list asks the broker

# A topic and its content, which is None if it cannot be parsed.
Message = Tuple[str, Optional[JSON]]


class BaseSubscription:
    """A subscription to topics of the live feed, and to head messages."""

    def __init__(self, library: "Union[Library, AsyncLibrary]", topics: Iterable[str]) -> None:
        self._library = library
        self._topics: Set[str] = {"head", *topics}
        # True after the library was closed, maybe by another thread: then the iteration ends.
        self.is_closed = False
        self._open()

    def _open(self) -> None:
        self._process = os.getpid()
        address = self._library.endpoints.feed
        self._socket: Any = new_socket(self._library.context, zmq.SUB, address, self._library.keys)
        for topic in self._topics:
            self._socket.subscribe(topic)
        connect(self._socket, address)

    def renew(self) -> None:
        """Opens another socket in a forked process."""
        if self._process != os.getpid():
            leave_to_parent(self._socket)
            self._open()

    def subscribe(self, topic: str) -> None:
        self.renew()
        self._topics.add(topic)
        self._socket.subscribe(topic)

    def __exit__(self, *_: object) -> None:
        if self._process == os.getpid():
            self._socket.close()
        else:
            leave_to_parent(self._socket)


class Subscription(BaseSubscription):
    """A subscription with a blocking socket."""

    def __enter__(self) -> "Subscription":
        return self

    def receive(self, seconds: float) -> Optional[Message]:
        """Returns the next message, or None after the timeout, or if the library is closed meanwhile."""
        self.renew()
        end = time.monotonic() + seconds
        while not self.is_closed:
            left = max(0.0, end - time.monotonic())
            if self._socket.poll(min(left, MAX_POLL_SECONDS) * 1000):
                message = parse_message(self._socket.recv_multipart(), self._topics)
                if message:
                    return message
            elif left <= MAX_POLL_SECONDS:
                return None
        return None


def parse_message(frames: List[bytes], topics: Set[str]) -> Optional[Message]:
    """Returns a live message. Returns None for other topics: ZeroMQ subscribes to prefixes."""
    topic = frames[0].decode("utf-8", "replace")
    if topic not in topics:
        return None
    try:
        return topic, json.loads(frames[1])
    except (ValueError, IndexError):
        return topic, None


def should_deliver(event: Event, events: bool) -> bool:
    """Returns whether `changes` yields the event. Raises an error for Expired if `events` is false."""
    if isinstance(event, Expired) and not events:
        raise PersistentChangeTokenExpiredError(
            message="the history does not reach back to the token; fetch again", data=dict(event)
        )
    return events or isinstance(event, Change)


def advance_feed(library: "Library", state: Feed, subscription: Subscription) -> List[Event]:
    """Performs the next action of the feed. Returns the events to deliver."""
    action = state.next_action
    try:
        if action[0] == "head":
            return state.begin(library.broker.request("feed.head", deadline=FOLLOW_DEADLINE).result)
        if action[0] == "page":
            params = {"token": action[1], "limit": 500, "topics": sorted(state.topics)}
            return state.page(library.broker.request("feed.since", params, deadline=FOLLOW_DEADLINE).result)
    except SafelightError as error:
        if error.name == "token_expired" and "head" in error.data:
            return state.expired(error.data["head"], error.data["oldest"])
        if not error.is_temporary:
            raise
        time.sleep(FOLLOW_RETRY_DELAY)
        return []
    return handle_message(state, subscription.receive(RECEIVE_TIMEOUT))


def handle_message(state: Union[Feed, LiveList], message: Optional[Message]) -> List[Event]:
    """Passes a live message to the state. Returns the events to deliver."""
    if message is None:
        state.handle_silence()
        return []
    topic, content = message
    if content is None:
        state.handle_undecodable()
    elif topic == "head":
        state.head(content, time.monotonic())
    else:
        return state.live(topic, content) or []
    return []


def advance_live_list(library: "Library", state: LiveList, subscription: Subscription) -> None:
    """Performs the next action of the live list."""
    action = state.next_action
    try:
        if action[0] == "list":
            state.set_list(*library.ids(state.fetch))
        elif action[0] == "observe":
            params: JSON = {"fetch": state.fetch, "token": action[1]}
            state.handle_observation(library.broker.request("fetch.observe", params, deadline=FOLLOW_DEADLINE).result)
        elif action[0] == "subscribe":
            subscription.subscribe(action[1])
            state.subscribed(action[1])
        elif action[0] == "details":
            params = {"observation": state.observation or "", "token": action[1]}
            state.handle_details(library.broker.request("fetch.details", params, deadline=FOLLOW_DEADLINE).result)
        else:
            handle_message(state, subscription.receive(RECEIVE_TIMEOUT))
    except SafelightError as error:
        if state.recover_from(error):
            return
        if not error.is_temporary:
            raise
        time.sleep(FOLLOW_RETRY_DELAY)
