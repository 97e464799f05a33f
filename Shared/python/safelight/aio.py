"""The services of a library, with asyncio.

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
from .library import (
    FOLLOW_DEADLINE, FOLLOW_RETRY_DELAY, RECEIVE_TIMEOUT, Endpoints, Subscription, configure_socket, decode_response,
    encode_request, handle_message, is_response, parse_message, should_deliver, timeout_error,
)
from .live import LiveList


class AsyncService:
    """A client of one service that sends any number of requests at a time."""

    def __init__(self, context, address, keys=None):
        self._context = context
        self._address = address
        self._keys = keys
        self._socket = None
        self._reader = None
        self._last_number = 0
        self._pending = {}

    async def call(self, method, params=None, attachments=(), deadline=30.0):
        """Returns the result of a request, or `(result, attachments)` if the reply has attachments.

        Raises SafelightError. `deadline` is in seconds.
        """
        if self._socket is None:
            self._socket = configure_socket(self._context.socket(zmq.DEALER), self._keys)
            self._socket.connect(self._address)
            self._reader = asyncio.ensure_future(self._read())
        self._last_number += 1
        number = self._last_number
        future = self._pending[number] = asyncio.get_running_loop().create_future()
        request = encode_request(number, method, params, deadline)
        try:
            await self._socket.send_multipart([request, *attachments])
            frames = await asyncio.wait_for(future, deadline + 1)
        except asyncio.TimeoutError:
            raise timeout_error(method) from None
        finally:
            self._pending.pop(number, None)
        return decode_response(json.loads(frames[0]), frames[1:])

    async def _read(self):
        while True:
            frames = await self._socket.recv_multipart()
            response = json.loads(frames[0])
            future = self._pending.get(response.get("id"))
            if future and not future.done() and is_response(response):
                future.set_result(frames)

    def close(self):
        if self._socket is not None:
            self._reader.cancel()
            self._socket.close()
            self._socket = None


class AsyncLibrary:
    """A photo library, for asyncio."""

    def __init__(self, endpoints=None, client="python", keys=None):
        self.endpoints = endpoints or Endpoints()
        self.client = client
        self.keys = keys
        self._context = zmq.asyncio.Context.instance()
        self.catalog = AsyncService(self._context, self.endpoints.catalog, keys)
        self.thumbnailer = AsyncService(self._context, self.endpoints.thumbnailer, keys)
        self.editor = AsyncService(self._context, self.endpoints.editor, keys)
        self.broker = AsyncService(self._context, self.endpoints.broker, keys)

    async def __aenter__(self):
        return self

    async def __aexit__(self, *_):
        for service in (self.catalog, self.thumbnailer, self.editor, self.broker):
            service.close()

    async def ids(self, fetch):
        """Returns the identifiers of a fetch of assets, and the token at which they are valid."""
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
        """Yields every change after a token, like `Library.changes`."""
        state = Feed(since, topics)
        with AsyncSubscription(self, state.topics or ["changes"]) as subscription:
            while True:
                for event in await self._advance_feed(state, subscription):
                    if should_deliver(event, events):
                        yield event

    async def live(self, fetch):
        """Yields the list of identifiers of a fetch, like `Library.live`."""
        state = LiveList(fetch)
        delivered_version = 0
        with AsyncSubscription(self, []) as subscription:
            while True:
                await self._advance_live_list(state, subscription)
                if state.version > delivered_version and state.next_action == ("live",):
                    delivered_version = state.version
                    yield state

    async def _advance_feed(self, state, subscription):
        action = state.next_action
        try:
            if action[0] == "head":
                return state.begin(await self.broker.call("feed.head", deadline=FOLLOW_DEADLINE))
            if action[0] == "page":
                params = {"token": action[1], "limit": 500, "topics": sorted(state.topics)}
                return state.page(await self.broker.call("feed.since", params, deadline=FOLLOW_DEADLINE))
        except SafelightError as error:
            if error.name == "token_expired" and "head" in error.data:
                return state.expired(error.data["head"], error.data["oldest"])
            if not error.is_temporary:
                raise
            await asyncio.sleep(FOLLOW_RETRY_DELAY)
            return []
        return handle_message(state, await subscription.receive(RECEIVE_TIMEOUT))

    async def _advance_live_list(self, state, subscription):
        action = state.next_action
        try:
            if action[0] == "list":
                state.listed(*await self.ids(state.fetch))
            elif action[0] == "observe":
                params = {"fetch": state.fetch, "token": action[1]}
                state.observed(await self.broker.call("fetch.observe", params, deadline=FOLLOW_DEADLINE))
            elif action[0] == "subscribe":
                subscription.subscribe(action[1])
                state.subscribed(action[1])
            elif action[0] == "details":
                params = {"observation": state.observation, "token": action[1]}
                state.detailed(await self.broker.call("fetch.details", params, deadline=FOLLOW_DEADLINE))
            else:
                handle_message(state, await subscription.receive(RECEIVE_TIMEOUT))
        except SafelightError as error:
            if state.failed(error):
                return
            if not error.is_temporary:
                raise
            await asyncio.sleep(FOLLOW_RETRY_DELAY)


class AsyncSubscription(Subscription):
    """A subscription whose `receive` is a coroutine."""

    async def receive(self, seconds):
        end = time.monotonic() + seconds
        while await self._socket.poll(max(0, end - time.monotonic()) * 1000):
            message = parse_message(await self._socket.recv_multipart(), self._topics)
            if message:
                return message
        return None
