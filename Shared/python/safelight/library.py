"""The services of a library over blocking sockets. Each object belongs to one thread."""

import json
import os
import time
import uuid

import zmq

from .errors import SafelightError
from .feed import Feed
from .live import LiveList

PAUSES = (0.05, 0.1, 0.2, 0.4, 0.8, 1.0)


class Places:
    """Where the services are: as the environment says, else beside one another in the folder of sockets."""

    def __init__(self, folder=None, **addresses):
        runtime = os.getenv("XDG_RUNTIME_DIR")
        folder = folder or os.getenv("SAFELIGHT_RUN") or (
            f"{runtime}/safelight" if runtime else f"/tmp/safelight-{os.getuid()}"
        )
        names = {"catalog": "catalog", "thumbnailer": "thumbnailer", "editor": "editor", "broker": "change-broker",
                 "feed": "feed", "edits": "edits"}
        for key, name in names.items():
            default = os.getenv(f"SAFELIGHT_{key.upper()}", f"ipc://{folder}/{name}.sock")
            setattr(self, key, addresses.get(key) or default)


def secure(socket, keys):
    """Protects a socket with CURVE. `keys`: the paths of the client's secret and the server's public certificate."""
    if keys:
        from zmq.auth import load_certificate
        client, server = keys
        socket.curve_publickey, socket.curve_secretkey = load_certificate(client)
        socket.curve_serverkey = load_certificate(server)[0]
    socket.linger = 0
    return socket


class Service:
    """Asks one service, one request at a time, and again where the connection broke."""

    def __init__(self, context, address, keys=None):
        self._context, self._address, self._keys = context, address, keys
        self._socket, self._next = None, 0

    def call(self, method, params=None, attachments=(), deadline=30.0):
        """The result of a request, or `(result, attachments)` of a reply that has some."""
        if self._socket is None:
            self._socket = secure(self._context.socket(zmq.DEALER), self._keys)
            self._socket.connect(self._address)
        self._next += 1
        request = {"jsonrpc": "2.0", "id": self._next, "method": method,
                   "params": dict(params or {}, deadlineMs=max(1, int(deadline * 1000)))}
        self._socket.send_multipart([json.dumps(request).encode(), *attachments])
        end = time.monotonic() + deadline + 1
        while True:
            left = end - time.monotonic()
            if left <= 0 or not self._socket.poll(left * 1000):
                self.close()  # a late answer must not be taken for another
                raise SafelightError("deadline_exceeded", f"{method} was not answered in time")
            frames = self._socket.recv_multipart()
            reply = json.loads(frames[0])
            if reply.get("id") == self._next and ("result" in reply or "error" in reply):
                break
        if "error" in reply:
            raise SafelightError.of(reply["error"])
        return (reply["result"], frames[1:]) if frames[1:] else reply["result"]

    def close(self):
        if self._socket is not None:
            self._socket.close()
            self._socket = None


class Library:
    """A photo library: `catalog`, `thumbnailer`, `editor` and `broker` to ask, `changes` and `live` to follow."""

    def __init__(self, places=None, client="python", keys=None, context=None):
        self.places, self.client, self.keys = places or Places(), client, keys
        self._context = context or zmq.Context.instance()
        for name in ("catalog", "thumbnailer", "editor", "broker"):
            setattr(self, name, Service(self._context, getattr(self.places, name), keys))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        for service in (self.catalog, self.thumbnailer, self.editor, self.broker):
            service.close()

    def retrying(self, attempt, deadline=30.0):
        """Repeats what fails in passing, with growing pauses, until the time is up."""
        end, pauses = time.monotonic() + deadline, iter(PAUSES)
        while True:
            try:
                return attempt(max(0.1, end - time.monotonic()))
            except SafelightError as error:
                pause = next(pauses, PAUSES[-1])
                if not error.is_passing or time.monotonic() + pause >= end:
                    raise
                time.sleep(pause)

    def perform(self, requests, transaction=None, deadline=30.0):
        """One transaction, once: it is sent again under the same name until its outcome is known."""
        params = {"requests": requests, "client": self.client, "transaction": transaction or uuid.uuid4().hex}
        return self.retrying(lambda left: self.catalog.call("changes.perform", params, deadline=left), deadline)

    def ids(self, fetch, deadline=30.0):
        """The identifiers that a fetch of assets gives, and the token of their moment."""
        ids, token = [], None
        while True:
            params = {"fetch": fetch, "from": len(ids), "count": 1000}
            if token:
                params["token"] = token
            page = self.retrying(lambda left: self.catalog.call("fetch.assets", params, deadline=left), deadline)
            token = page["token"]
            ids += [asset["id"] for asset in page["assets"]]
            if len(ids) >= page["count"] or not page["assets"]:
                return ids, token

    def changes(self, since=None, topics=(), events=False):
        """Every change after a token (none: from now on), each once, in order, without a gap; with `topics` only what those
        carry, where "changes" is everything.

        With `events` also what is no change: `CaughtUp`, and `Expired` where the token is too old, which is raised as
        `token_expired` otherwise."""
        machine = Feed(since, topics)
        with Ear(self, machine.topics or ["changes"]) as ear:
            while True:
                for event in feed_step(self, machine, ear):
                    if is_told(event, events):
                        yield event

    def live(self, fetch):
        """The list of identifiers that a fetch of assets gives, again whenever it changed: an iterator of `LiveList`,
        the same object each time, with `ids` and `token`."""
        machine, told = LiveList(fetch), 0
        with Ear(self, []) as ear:
            while True:
                live_step(self, machine, ear)
                if machine.version > told and machine.want == ("live",):
                    told = machine.version
                    yield machine


class Ear:
    """A subscription to the live feed, always with head."""

    def __init__(self, library, topics):
        self._socket = secure(library._context.socket(zmq.SUB), library.keys)
        self._topics = set()
        for topic in ["head", *topics]:
            self.subscribe(topic)
        self._socket.connect(library.places.feed)

    def subscribe(self, topic):
        self._topics.add(topic)
        self._socket.subscribe(topic)

    def next(self, seconds):
        """The next message as (topic, object), with None for one that cannot be read; None after the time."""
        end = time.monotonic() + seconds
        while self._socket.poll(max(0, end - time.monotonic()) * 1000):
            message = read(self._socket.recv_multipart(), self._topics)
            if message:
                return message
        return None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._socket.close()


def read(frames, topics):
    """A live message as (topic, object); None for a topic that only begins like a wanted one."""
    topic = frames[0].decode("utf-8", "replace")
    if topic not in topics:
        return None
    try:
        return topic, json.loads(frames[1])
    except (ValueError, IndexError):
        return topic, None


def is_told(event, events):
    """Whether who follows changes is told of an event; that the token has expired is raised where no events are wanted."""
    kind = type(event).__name__
    if kind == "Expired" and not events:
        raise SafelightError("token_expired", "the history does not reach back to the token; fetch again", 3105,
                             dict(event))
    return events or kind == "Change"


def feed_step(library, machine, ear):
    """Does what the machine wants, and returns the events."""
    want = machine.want
    try:
        if want[0] == "head":
            return machine.begin(library.broker.call("feed.head", deadline=10))
        if want[0] == "page":
            params = {"token": want[1], "limit": 500, "topics": sorted(machine.topics)}
            return machine.page(library.broker.call("feed.since", params, deadline=10))
    except SafelightError as error:
        if error.name == "token_expired" and "head" in error.data:
            return machine.expired(error.data["head"], error.data["oldest"])
        if not error.is_passing:
            raise
        time.sleep(PAUSES[2])
        return []
    return hear(machine, ear.next(5.0))


def hear(machine, message):
    """Gives the machine a live message."""
    if message is None:
        return []
    topic, content = message
    if content is None:
        machine.unreadable()
    elif topic == "head":
        machine.head(content, time.monotonic())
    else:
        return machine.live(topic, content) or []
    return []


def live_step(library, machine, ear):
    """Does what the machine wants."""
    want = machine.want
    try:
        if want[0] == "list":
            machine.listed(*library.ids(machine.fetch))
        elif want[0] == "observe":
            params = {"fetch": machine.fetch, "token": want[1]}
            machine.observed(library.broker.call("fetch.observe", params))
        elif want[0] == "subscribe":
            ear.subscribe(want[1])
            machine.subscribed(want[1])
        elif want[0] == "details":
            params = {"observation": machine.observation, "token": want[1]}
            machine.detailed(library.broker.call("fetch.details", params))
        else:
            hear(machine, ear.next(5.0))
    except SafelightError as error:
        if machine.refused(error):
            return
        if not error.is_passing:
            raise
        time.sleep(PAUSES[2])
