"""The services of a library, with blocking sockets. Each object belongs to one thread."""

import json
import os
import time
import uuid

import zmq

from .errors import SafelightError
from .feed import Feed
from .live import LiveList

RETRY_DELAYS = (0.05, 0.1, 0.2, 0.4, 0.8, 1.0)  # seconds; the last one is repeated
# Seconds until a request of a feed or a live list is repeated that was not answered: a broker that is killed takes the
# requests with it that it has received, and nothing reports that.
FOLLOW_DEADLINE = 10.0
FOLLOW_RETRY_DELAY = 0.2  # seconds before a failed request of a feed or a live list is repeated
RECEIVE_TIMEOUT = 5.0  # seconds after which a feed or a live list checks its state without a message
TOKEN_EXPIRED_CODE = 3105


class Endpoints:
    """The addresses of the services: arguments, environment variables, or the sockets in the run folder."""

    SOCKET_NAMES = {
        "catalog": "catalog",
        "thumbnailer": "thumbnailer",
        "editor": "editor",
        "broker": "change-broker",
        "feed": "feed",
        "edits": "edits",
    }

    def __init__(self, folder=None, **addresses):
        runtime = os.getenv("XDG_RUNTIME_DIR")
        folder = folder or os.getenv("SAFELIGHT_RUN") or (
            f"{runtime}/safelight" if runtime else f"/tmp/safelight-{os.getuid()}"
        )
        for key, name in self.SOCKET_NAMES.items():
            default = os.getenv(f"SAFELIGHT_{key.upper()}", f"ipc://{folder}/{name}.sock")
            setattr(self, key, addresses.get(key) or default)


def configure_socket(socket, keys):
    """Sets the options of a new socket and returns it.

    `keys` are the paths of the client's secret certificate and the server's public certificate (CURVE), or None.
    """
    if keys:
        from zmq.auth import load_certificate
        client, server = keys
        socket.curve_publickey, socket.curve_secretkey = load_certificate(client)
        socket.curve_serverkey = load_certificate(server)[0]
    socket.linger = 0
    return socket


def encode_request(number, method, params, deadline):
    """Returns a JSON-RPC request. The service gives up after the deadline, in seconds."""
    return json.dumps({
        "jsonrpc": "2.0",
        "id": number,
        "method": method,
        "params": dict(params or {}, deadlineMs=max(1, int(deadline * 1000))),
    }).encode()


def is_response(message):
    """Returns whether a message is a response, and not a notification."""
    return "result" in message or "error" in message


def decode_response(response, attachments):
    """Returns the result, or `(result, attachments)` if there are attachments. Raises the error of the response."""
    if "error" in response:
        raise SafelightError.from_json(response["error"])
    return (response["result"], attachments) if attachments else response["result"]


def timeout_error(method):
    return SafelightError("deadline_exceeded", f"{method} was not answered in time")


class Service:
    """A client of one service that sends one request at a time."""

    def __init__(self, context, address, keys=None):
        self._context = context
        self._address = address
        self._keys = keys
        self._socket = None
        self._last_number = 0

    def call(self, method, params=None, attachments=(), deadline=30.0):
        """Returns the result of a request, or `(result, attachments)` if the reply has attachments.

        Raises SafelightError. `deadline` is in seconds.
        """
        if self._socket is None:
            self._socket = configure_socket(self._context.socket(zmq.DEALER), self._keys)
            self._socket.connect(self._address)
        self._last_number += 1
        request = encode_request(self._last_number, method, params, deadline)
        self._socket.send_multipart([request, *attachments])
        end = time.monotonic() + deadline + 1
        while True:
            time_left = end - time.monotonic()
            if time_left <= 0 or not self._socket.poll(time_left * 1000):
                self.close()  # a late response must not reach the next request
                raise timeout_error(method)
            frames = self._socket.recv_multipart()
            response = json.loads(frames[0])
            if response.get("id") == self._last_number and is_response(response):
                return decode_response(response, frames[1:])

    def close(self):
        if self._socket is not None:
            self._socket.close()
            self._socket = None


class Library:
    """A photo library.

    `catalog`, `thumbnailer`, `editor` and `broker` are the services; `changes` and `live` follow the library.
    """

    def __init__(self, endpoints=None, client="python", keys=None, context=None):
        self.endpoints = endpoints or Endpoints()
        self.client = client
        self.keys = keys
        self._context = context or zmq.Context.instance()
        self.catalog = Service(self._context, self.endpoints.catalog, keys)
        self.thumbnailer = Service(self._context, self.endpoints.thumbnailer, keys)
        self.editor = Service(self._context, self.endpoints.editor, keys)
        self.broker = Service(self._context, self.endpoints.broker, keys)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        for service in (self.catalog, self.thumbnailer, self.editor, self.broker):
            service.close()

    def with_retries(self, function, deadline=30.0):
        """Returns the result of `function(seconds_left)`.

        Calls it again after a temporary error, with growing delays, until the deadline in seconds.
        """
        end = time.monotonic() + deadline
        delays = iter(RETRY_DELAYS)
        while True:
            try:
                return function(max(0.1, end - time.monotonic()))
            except SafelightError as error:
                delay = next(delays, RETRY_DELAYS[-1])
                if not error.is_temporary or time.monotonic() + delay >= end:
                    raise
                time.sleep(delay)

    def perform(self, requests, transaction=None, deadline=30.0):
        """Performs the change requests in one transaction, exactly once.

        The request is repeated with the same transaction name until its outcome is known.
        """
        params = {"requests": requests, "client": self.client, "transaction": transaction or uuid.uuid4().hex}
        return self.with_retries(
            lambda seconds_left: self.catalog.call("changes.perform", params, deadline=seconds_left), deadline
        )

    def ids(self, fetch, deadline=30.0):
        """Returns the identifiers of a fetch of assets, and the token at which they are valid."""
        ids, token = [], None
        while True:
            params = {"fetch": fetch, "from": len(ids), "count": 1000}
            if token:
                params["token"] = token
            page = self.with_retries(
                lambda seconds_left: self.catalog.call("fetch.assets", params, deadline=seconds_left), deadline
            )
            token = page["token"]
            ids += [asset["id"] for asset in page["assets"]]
            if len(ids) >= page["count"] or not page["assets"]:
                return ids, token

    def changes(self, since=None, topics=(), events=False):
        """Yields every change after a token exactly once, in order and without gaps.

        Without a token it starts with the next change. `topics` restricts the changes to those of topics such as
        "asset.<id>"; "changes" means all.

        With `events` it also yields `CaughtUp` and `Expired` events. Without, an expired token raises `token_expired`.
        """
        state = Feed(since, topics)
        with Subscription(self, state.topics or ["changes"]) as subscription:
            while True:
                for event in advance_feed(self, state, subscription):
                    if should_deliver(event, events):
                        yield event

    def live(self, fetch):
        """Yields the list of identifiers of a fetch of assets, now and after each change of it.

        Yields the same `LiveList` each time, with `ids` and `token`.
        """
        state = LiveList(fetch)
        delivered_version = 0
        with Subscription(self, []) as subscription:
            while True:
                advance_live_list(self, state, subscription)
                if state.version > delivered_version and state.next_action == ("live",):
                    delivered_version = state.version
                    yield state


class Subscription:
    """A subscription to topics of the live feed, and to head messages."""

    def __init__(self, library, topics):
        self._socket = configure_socket(library._context.socket(zmq.SUB), library.keys)
        self._topics = set()
        for topic in ["head", *topics]:
            self.subscribe(topic)
        self._socket.connect(library.endpoints.feed)

    def subscribe(self, topic):
        self._topics.add(topic)
        self._socket.subscribe(topic)

    def receive(self, seconds):
        """Returns the next message as `(topic, content)`, or None after the time.

        The content is None if it cannot be parsed.
        """
        end = time.monotonic() + seconds
        while self._socket.poll(max(0, end - time.monotonic()) * 1000):
            message = parse_message(self._socket.recv_multipart(), self._topics)
            if message:
                return message
        return None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._socket.close()


def parse_message(frames, topics):
    """Returns a live message as `(topic, content)`, with None as the content if it cannot be parsed.

    Returns None for other topics: ZeroMQ subscribes to prefixes.
    """
    topic = frames[0].decode("utf-8", "replace")
    if topic not in topics:
        return None
    try:
        return topic, json.loads(frames[1])
    except (ValueError, IndexError):
        return topic, None


def should_deliver(event, events):
    """Returns whether `changes` yields the event. Raises `token_expired` for Expired if `events` is false."""
    kind = type(event).__name__
    if kind == "Expired" and not events:
        message = "the history does not reach back to the token; fetch again"
        raise SafelightError("token_expired", message, TOKEN_EXPIRED_CODE, dict(event))
    return events or kind == "Change"


def advance_feed(library, state, subscription):
    """Performs the next action of the feed. Returns the events to deliver."""
    action = state.next_action
    try:
        if action[0] == "head":
            return state.begin(library.broker.call("feed.head", deadline=FOLLOW_DEADLINE))
        if action[0] == "page":
            params = {"token": action[1], "limit": 500, "topics": sorted(state.topics)}
            return state.page(library.broker.call("feed.since", params, deadline=FOLLOW_DEADLINE))
    except SafelightError as error:
        if error.name == "token_expired" and "head" in error.data:
            return state.expired(error.data["head"], error.data["oldest"])
        if not error.is_temporary:
            raise
        time.sleep(FOLLOW_RETRY_DELAY)
        return []
    return handle_message(state, subscription.receive(RECEIVE_TIMEOUT))


def handle_message(state, message):
    """Passes a live message to the state. Returns the events to deliver."""
    if message is None:
        return []
    topic, content = message
    if content is None:
        state.unreadable()
    elif topic == "head":
        state.head(content, time.monotonic())
    else:
        return state.live(topic, content) or []
    return []


def advance_live_list(library, state, subscription):
    """Performs the next action of the live list."""
    action = state.next_action
    try:
        if action[0] == "list":
            state.listed(*library.ids(state.fetch))
        elif action[0] == "observe":
            params = {"fetch": state.fetch, "token": action[1]}
            state.observed(library.broker.call("fetch.observe", params, deadline=FOLLOW_DEADLINE))
        elif action[0] == "subscribe":
            subscription.subscribe(action[1])
            state.subscribed(action[1])
        elif action[0] == "details":
            params = {"observation": state.observation, "token": action[1]}
            state.detailed(library.broker.call("fetch.details", params, deadline=FOLLOW_DEADLINE))
        else:
            handle_message(state, subscription.receive(RECEIVE_TIMEOUT))
    except SafelightError as error:
        if state.failed(error):
            return
        if not error.is_temporary:
            raise
        time.sleep(FOLLOW_RETRY_DELAY)
