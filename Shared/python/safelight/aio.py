"""The same library with asyncio.

    async with AsyncLibrary() as library:
        async for change in library.changes():
            print(change["sequence"])
"""

import asyncio
import json
import time

import zmq
import zmq.asyncio

from .errors import SafelightError
from .feed import Feed
from .library import PAUSES, Ear, Places, hear, is_told, read, secure
from .live import LiveList


class AsyncService:
    """Asks one service; any number of requests at a time."""

    def __init__(self, context, address, keys=None):
        self._context, self._address, self._keys = context, address, keys
        self._socket = self._reader = None
        self._next, self._waiting = 0, {}

    async def call(self, method, params=None, attachments=(), deadline=30.0):
        """The result of a request, or `(result, attachments)` of a reply that has some."""
        if self._socket is None:
            self._socket = secure(self._context.socket(zmq.DEALER), self._keys)
            self._socket.connect(self._address)
            self._reader = asyncio.ensure_future(self._read())
        self._next += 1
        number = self._next
        answer = self._waiting[number] = asyncio.get_running_loop().create_future()
        request = {"jsonrpc": "2.0", "id": number, "method": method,
                   "params": dict(params or {}, deadlineMs=max(1, int(deadline * 1000)))}
        try:
            await self._socket.send_multipart([json.dumps(request).encode(), *attachments])
            frames = await asyncio.wait_for(answer, deadline + 1)
        except asyncio.TimeoutError:
            raise SafelightError("deadline_exceeded", f"{method} was not answered in time") from None
        finally:
            self._waiting.pop(number, None)
        reply = json.loads(frames[0])
        if "error" in reply:
            raise SafelightError.of(reply["error"])
        return (reply["result"], frames[1:]) if frames[1:] else reply["result"]

    async def _read(self):
        while True:
            frames = await self._socket.recv_multipart()
            reply = json.loads(frames[0])
            answer = self._waiting.get(reply.get("id"))
            if answer and not answer.done() and ("result" in reply or "error" in reply):
                answer.set_result(frames)

    def close(self):
        if self._socket is not None:
            self._reader.cancel()
            self._socket.close()
            self._socket = None


class AsyncLibrary:
    """A photo library, for asyncio."""

    def __init__(self, places=None, client="python", keys=None):
        self.places, self.client, self.keys = places or Places(), client, keys
        self._context = zmq.asyncio.Context.instance()
        for name in ("catalog", "thumbnailer", "editor", "broker"):
            setattr(self, name, AsyncService(self._context, getattr(self.places, name), keys))

    async def __aenter__(self):
        return self

    async def __aexit__(self, *_):
        for service in (self.catalog, self.thumbnailer, self.editor, self.broker):
            service.close()

    async def ids(self, fetch):
        """The identifiers that a fetch of assets gives, and the token of their moment."""
        ids, token = [], None
        while True:
            params = {"fetch": fetch, "from": len(ids), "count": 1000}
            if token:
                params["token"] = token
            page = await self.catalog.call("fetch.assets", params)
            token = page["token"]
            ids += [asset["id"] for asset in page["assets"]]
            if len(ids) >= page["count"] or not page["assets"]:
                return ids, token

    async def changes(self, since=None, topics=(), events=False):
        """As `Library.changes`."""
        machine = Feed(since, topics)
        with _Ear(self, machine.topics or ["changes"]) as ear:
            while True:
                for event in await self._feed_step(machine, ear):
                    if is_told(event, events):
                        yield event

    async def live(self, fetch):
        """As `Library.live`."""
        machine, told = LiveList(fetch), 0
        with _Ear(self, []) as ear:
            while True:
                await self._live_step(machine, ear)
                if machine.version > told and machine.want == ("live",):
                    told = machine.version
                    yield machine

    async def _feed_step(self, machine, ear):
        want = machine.want
        try:
            if want[0] == "head":
                return machine.begin(await self.broker.call("feed.head", deadline=10))
            if want[0] == "page":
                params = {"token": want[1], "limit": 500, "topics": sorted(machine.topics)}
                return machine.page(await self.broker.call("feed.since", params, deadline=10))
        except SafelightError as error:
            if error.name == "token_expired" and "head" in error.data:
                return machine.expired(error.data["head"], error.data["oldest"])
            if not error.is_passing:
                raise
            await asyncio.sleep(PAUSES[2])
            return []
        return hear(machine, await ear.next(5.0))

    async def _live_step(self, machine, ear):
        want = machine.want
        try:
            if want[0] == "list":
                machine.listed(*await self.ids(machine.fetch))
            elif want[0] == "observe":
                params = {"fetch": machine.fetch, "token": want[1]}
                machine.observed(await self.broker.call("fetch.observe", params))
            elif want[0] == "subscribe":
                ear.subscribe(want[1])
                machine.subscribed(want[1])
            elif want[0] == "details":
                params = {"observation": machine.observation, "token": want[1]}
                machine.detailed(await self.broker.call("fetch.details", params))
            else:
                hear(machine, await ear.next(5.0))
        except SafelightError as error:
            if machine.refused(error):
                return
            if not error.is_passing:
                raise
            await asyncio.sleep(PAUSES[2])


class _Ear(Ear):
    async def next(self, seconds):
        end = time.monotonic() + seconds
        while await self._socket.poll(max(0, end - time.monotonic()) * 1000):
            message = read(await self._socket.recv_multipart(), self._topics)
            if message:
                return message
        return None
