"""A client for asyncio: fetches, changes, live lists, and requests of the protocol.

    async with AsyncLibrary() as library:
        async for asset in library.fetch(where="isFavorite == TRUE"):
            image = await library.thumbnail(asset, 512)

        async for change in library.changes():
            print(change.sequence)

The methods of assets are blocking; call them in a thread: `await asyncio.to_thread(asset.edit, exposure=0.5)`.
`library.blocking` is a `Library` for everything else, which is also called in a thread.
"""

import asyncio
import json
import os
import time
from typing import (
    Any, AsyncIterator, Awaitable, Callable, Dict, Iterable, List, Literal, Mapping, Optional, Sequence, Tuple, Union,
    overload,
)

import zmq
import zmq.asyncio

from . import images
from .change import Change
from .endpoints import Endpoints, check_address, split_addresses
from .errors import (
    JSON, ConnectionLostError, DeadlineExceededError, InvalidParametersError, LimitExceededError, NotRunningError,
    SafelightError, UnavailableError,
)
from .feed import Event, Feed
from .fetching import Predicate, Sort, description
from .following import (
    FOLLOW_DEADLINE, FOLLOW_RETRY_DELAY, RECEIVE_TIMEOUT, BaseSubscription, Message, handle_message,
    parse_message, should_deliver,
)
from .images import ImageData, Size
from .instances import (
    CATALOG_READS, CATALOG_SINGLE_READS, HEALTH_CHECK_DELAY, HEALTH_CHECK_TIMEOUT, HEDGING_DELAY, WRITER_RETRY_DELAY,
    CatalogChoice, Instances, decisive_error, is_standby_error, may_be_different_elsewhere,
)
from .library import DOWNLOAD_DEADLINE, PART_SIZE, RETRY_DELAYS, Library, keys_of_environment, live_description
from .live import LiveList
from .objects import Asset, Object, identifier
from .transaction_ids import new_transaction_id
from .transport import (
    CONNECTION_EVENTS, Attachments, ConnectionState, Keys, Reply, connect, context_of_process, decode_response,
    encode_cancellation, encode_request, is_response, leave_to_parent, request_socket, timeout_error,
)

PAGE_SIZE = 200


class AsyncConnection:
    """A connected socket, and the requests that wait for their responses."""

    def __init__(self, context: zmq.asyncio.Context, service: str, address: str, keys: Optional[Keys]) -> None:
        check_address(service, address)
        self.state = ConnectionState(service, address)
        self.process = os.getpid()
        self.loop = asyncio.get_running_loop()
        self.socket: Any = request_socket(context, address, keys)
        self.monitor: Any = self.socket.get_monitor_socket(CONNECTION_EVENTS)
        try:
            connect(self.socket, address)
        except InvalidParametersError:
            self.monitor.close(0)
            raise
        self._last_number = 0
        self._pending: "Dict[int, asyncio.Future[Any]]" = {}
        self._tasks: "List[asyncio.Task[None]]" = []

    async def open(self) -> None:
        """Waits until the connection is ready."""
        start = time.monotonic()
        try:
            while not self.state.is_ready:
                left = start + self.state.timeout - time.monotonic()
                if self.state.is_lost or left <= 0 or not await self.monitor.poll(left * 1000):
                    raise self.state.failure()
                self.state.handle(await self.monitor.recv_multipart())
        except BaseException:
            # Also when the task is cancelled: the event loop refers to the sockets until they are closed.
            self.close()
            raise
        self._tasks = [asyncio.ensure_future(self._read()), asyncio.ensure_future(self._watch())]

    async def request(
        self, method: str, params: Optional[Mapping[str, Any]], attachments: Attachments, deadline: float
    ) -> Reply:
        self._last_number += 1
        number = self._last_number
        future = self._pending[number] = asyncio.get_running_loop().create_future()
        try:
            await self.socket.send_multipart([encode_request(number, method, params, deadline), *attachments])
            frames = await asyncio.wait_for(future, deadline + 1)
        except zmq.Again:
            raise self.state.lost(method) from None
        except asyncio.TimeoutError:
            raise timeout_error(method) from None
        except asyncio.CancelledError:
            self._cancel(number)
            raise
        finally:
            self._pending.pop(number, None)
        if frames is None:
            raise self.state.lost(method)
        return decode_response(json.loads(frames[0]), frames[1:])

    def _cancel(self, number: int) -> None:
        """Asks the service to cancel a request, without waiting."""
        if self.state.is_lost:
            return
        sent = self.socket.send(encode_cancellation(number), zmq.NOBLOCK)
        sent.add_done_callback(lambda future: future.cancelled() or future.exception())

    async def _read(self) -> None:
        while True:
            frames = await self.socket.recv_multipart()
            response = json.loads(frames[0])
            future = self._pending.get(response.get("id"))
            if future and not future.done() and is_response(response):
                future.set_result(frames)

    async def _watch(self) -> None:
        while not self.state.is_lost:
            self.state.handle(await self.monitor.recv_multipart())
        for future in self._pending.values():
            if not future.done():
                future.set_result(None)

    def close(self) -> None:
        self.state.is_lost = True
        if self.process != os.getpid():
            leave_to_parent(self.socket, self.monitor)
            return
        if not self.loop.is_closed():
            for task in self._tasks:
                task.cancel()
            for future in self._pending.values():
                if not future.done():
                    future.set_result(None)
        self.socket.disable_monitor()
        self.monitor.close(0)
        self.socket.close(0)


class AsyncService:
    """A client of one service that sends any number of requests at a time."""

    def __init__(
        self, context: zmq.asyncio.Context, address: str, keys: Optional[Keys] = None, name: str = "service",
        wait: float = 0.0,
    ) -> None:
        self.address = address
        self.name = name
        self._context = context
        self._keys = keys
        self._wait = wait
        self._was_reached = False
        self._process = os.getpid()
        # Each event loop has a connection of its own: a program may call `asyncio.run` several times.
        self._connections: "Dict[asyncio.AbstractEventLoop, AsyncConnection]" = {}
        self._connecting: "Dict[asyncio.AbstractEventLoop, asyncio.Lock]" = {}

    async def call(
        self, method: str, params: Optional[Mapping[str, Any]] = None, attachments: Attachments = (),
        deadline: float = 30.0,
    ) -> Any:
        """Returns the result of a request, or `(result, attachments)` if the reply has attachments.

        Raises SafelightError. `deadline` is in seconds.
        """
        reply = await self.request(method, params, attachments, deadline)
        return (reply.result, reply.attachments) if reply.attachments else reply.result

    async def request(
        self, method: str, params: Optional[Mapping[str, Any]] = None, attachments: Attachments = (),
        deadline: float = 30.0,
    ) -> Reply:
        """Returns the result and the attachments of a request, which is sent once."""
        loop = asyncio.get_running_loop()
        async with self._connecting.setdefault(loop, asyncio.Lock()):
            connection = self._connections.get(loop)
            if connection is None or connection.state.is_lost or connection.process != os.getpid():
                self._close(loop)
                connection = self._connections[loop] = await self._connect()
        return await connection.request(method, params, attachments, deadline)

    async def _connect(self) -> AsyncConnection:
        for ended in [loop for loop in self._connecting if loop.is_closed()]:
            self._close(ended)
            self._connecting.pop(ended, None)
        self._context = context_of_process(self._context, self._process)
        self._process = os.getpid()
        end = time.monotonic() + self._wait
        while True:
            try:
                connection = AsyncConnection(self._context, self.name, self.address, self._keys)
                await connection.open()
                self._was_reached = True
                return connection
            except NotRunningError as error:
                if self._was_reached:
                    raise UnavailableError(message=error.message, data={"isUnsent": True}) from None
                if time.monotonic() >= end:
                    raise
                await asyncio.sleep(0.05)

    def _close(self, loop: asyncio.AbstractEventLoop) -> None:
        connection = self._connections.pop(loop, None)
        if connection is not None:
            connection.close()

    def close(self) -> None:
        """Closes the connection of this event loop, and those of loops that have ended."""
        try:
            current: Optional[asyncio.AbstractEventLoop] = asyncio.get_running_loop()
        except RuntimeError:
            current = None
        for loop in list(self._connections):
            if loop is current or not loop.is_running():
                self._close(loop)


class AsyncServiceInstances(AsyncService):
    """A client of a service of which several instances run, like `ServiceInstances`."""

    def __init__(self, members: Sequence[AsyncService], wait: float = 0.0) -> None:
        first = members[0]
        super().__init__(first._context, first.address, first._keys, first.name, wait)
        self._instances = Instances(members)

    async def request(
        self, method: str, params: Optional[Mapping[str, Any]] = None, attachments: Attachments = (),
        deadline: float = 30.0,
    ) -> Reply:
        end = time.monotonic() + self._wait
        while True:
            failures: List[SafelightError] = []
            for instance in self._instances.choose(params):
                try:
                    reply = await instance.request(method, params, attachments, deadline)
                except SafelightError as error:
                    if not self._instances.note_error(instance, error, method):
                        raise
                    failures.append(error)
                else:
                    self._instances.mark_present(instance)
                    return reply
            if failures and time.monotonic() >= end:
                raise decisive_error(failures)
            await asyncio.sleep(0.05)

    def close(self) -> None:
        for instance in self._instances.members:
            instance.close()


class AsyncCatalogs(AsyncService):
    """A client of the catalogs of one library, like `Catalogs`."""

    def __init__(self, members: Sequence[AsyncService], wait: float = 0.0) -> None:
        first = members[0]
        super().__init__(first._context, first.address, first._keys, first.name, wait)
        self._choice = CatalogChoice(members)

    async def request(
        self, method: str, params: Optional[Mapping[str, Any]] = None, attachments: Attachments = (),
        deadline: float = 30.0,
    ) -> Reply:
        start = time.monotonic()
        while True:
            try:
                if method in CATALOG_READS:
                    return await self._hedged_read(method, params, deadline)
                if method in CATALOG_SINGLE_READS:
                    return await self._single_read(method, params, deadline)
                return await self._change(method, params, attachments, deadline)
            except NotRunningError:
                if time.monotonic() >= start + self._wait:
                    raise
                await asyncio.sleep(0.05)

    async def _hedged_read(self, method: str, params: Optional[Mapping[str, Any]], deadline: float) -> Reply:
        choice = self._choice
        asked = choice.order(choice.reader)
        first = asked[0]
        pending: "Dict[asyncio.Future[Reply], int]" = {}
        failures: List[SafelightError] = []
        is_hedged = False

        def ask_next() -> None:
            index = asked.pop(0)
            pending[asyncio.ensure_future(choice.members[index].request(method, params, (), deadline))] = index

        try:
            ask_next()
            while pending:
                done, _ = await asyncio.wait(
                    pending, timeout=HEDGING_DELAY if asked else None, return_when=asyncio.FIRST_COMPLETED
                )
                for task in done:
                    index = pending.pop(task)
                    try:
                        reply: Reply = task.result()
                    except SafelightError as error:
                        choice.note_error(index, error)
                        if not may_be_different_elsewhere(error) and (index == first or not pending):
                            raise
                        failures.insert(0 if index == first else len(failures), error)
                    else:
                        choice.mark_present(index)
                        choice.reader = index
                        return reply
                if asked and not done and not is_hedged:
                    is_hedged = choice.begin_hedging()
                if asked and (not pending or (not done and is_hedged)):
                    ask_next()
            raise decisive_error(failures)
        finally:
            if is_hedged:
                choice.end_hedging()
            for task, index in pending.items():
                choice.mark_absent(index)
                task.cancel()

    async def _single_read(self, method: str, params: Optional[Mapping[str, Any]], deadline: float) -> Reply:
        failures: List[SafelightError] = []
        end = time.monotonic() + deadline
        for index in self._choice.order(self._choice.reader):
            try:
                reply = await self._request_while_healthy(index, method, params, (), max(0.1, end - time.monotonic()))
            except SafelightError as error:
                self._choice.note_error(index, error)
                if not may_be_different_elsewhere(error):
                    raise
                failures.append(error)
            else:
                self._choice.mark_present(index)
                self._choice.reader = index
                return reply
        raise decisive_error(failures)

    async def _change(
        self, method: str, params: Optional[Mapping[str, Any]], attachments: Attachments, deadline: float
    ) -> Reply:
        choice = self._choice
        end = time.monotonic() + deadline
        while True:
            failures: List[SafelightError] = []
            for index in choice.writers():
                left = max(0.1, end - time.monotonic())
                try:
                    reply = await self._request_while_healthy(index, method, params, attachments, left)
                except SafelightError as error:
                    if not choice.note_change_error(index, error):
                        raise
                    failures.append(error)
                else:
                    choice.mark_present(index)
                    choice.writer = index
                    return reply
            # All have refused: another catalog may be about to become the writer.
            is_over = time.monotonic() + WRITER_RETRY_DELAY >= end
            if is_over or all(isinstance(error, NotRunningError) for error in failures):
                raise next((error for error in failures if is_standby_error(error)), failures[0])
            await asyncio.sleep(WRITER_RETRY_DELAY)

    async def _request_while_healthy(
        self, index: int, method: str, params: Optional[Mapping[str, Any]], attachments: Attachments, deadline: float
    ) -> Reply:
        """Returns the reply of a catalog. Raises ConnectionLostError if it does not respond to `health` meanwhile."""
        member = self._choice.members[index]
        task: "asyncio.Future[Reply]" = asyncio.ensure_future(member.request(method, params, attachments, deadline))
        try:
            while not (await asyncio.wait([task], timeout=HEALTH_CHECK_DELAY))[0]:
                try:
                    health = member.request("health", deadline=HEALTH_CHECK_TIMEOUT)
                    await asyncio.wait_for(health, HEALTH_CHECK_TIMEOUT)
                except (asyncio.TimeoutError, DeadlineExceededError):
                    member.close()
                    raise ConnectionLostError(message=f"{member.address} did not answer during {method}") from None
                except SafelightError:
                    pass  # the request itself gets an error or a response
            return task.result()
        finally:
            task.cancel()

    def close(self) -> None:
        for member in self._choice.members:
            member.close()


class AsyncFetchResult:
    """The result of a fetch: `async for asset in result`, `await result.count()`, `await result.get(index)`.

    All pages are read at the same token, `token`, which the first page sets. Only the last page is kept.
    """

    def __init__(self, library: "AsyncLibrary", fetch: JSON, token: Optional[str] = None) -> None:
        self._library = library
        self.fetch = fetch
        self.token = token
        self._count: Optional[int] = None
        # Held while the first page is read, because all others are read at its token.
        self._first: Optional[asyncio.Lock] = None
        self._page: Tuple[int, List[Asset]] = (-1, [])

    async def count(self) -> int:
        """Returns the number of assets."""
        if self._count is None:
            await self._read(0)
        return self._count or 0

    async def get(self, index: int) -> Asset:
        """Returns the asset at an index, which may be negative. Raises IndexError."""
        if index < 0:
            index += await self.count()
        page = await self._read(index // PAGE_SIZE) if index >= 0 else []
        if index % PAGE_SIZE >= len(page):
            raise IndexError(f"the result has {await self.count()} objects")
        return page[index % PAGE_SIZE]

    async def __aiter__(self) -> AsyncIterator[Asset]:
        number = 0
        while True:
            for asset in await self._read(number):
                yield asset
            number += 1
            if number * PAGE_SIZE >= await self.count():
                return

    async def _read(self, number: int) -> List[Asset]:
        if self._page[0] != number:
            assets = await self._assets(number * PAGE_SIZE, PAGE_SIZE)
            self._page = (number, [Asset(one, self._library.blocking) for one in assets])
        return self._page[1]

    async def _request(self, params: JSON) -> List[JSON]:
        if self.token is None:
            self._first = self._first or asyncio.Lock()
            async with self._first:
                if self.token is None:
                    return await self._request_at(params)
        return await self._request_at({**params, "token": self.token})

    async def _request_at(self, params: JSON) -> List[JSON]:
        page = (await self._library.request(self._library.catalog, "fetch.assets", params)).result
        self.token, self._count = page["token"], page["count"]
        assets: List[JSON] = page["assets"]
        return assets

    async def _assets(self, start: int, count: int) -> List[JSON]:
        """Returns the assets of a page, in parts if all together are too large for a message."""
        try:
            return await self._request({"fetch": self.fetch, "from": start, "count": count})
        except LimitExceededError:
            if count == 1:
                raise
        half = count // 2
        return await self._assets(start, half) + await self._assets(start + half, count - half)


class AsyncLibrary:
    """A photo library, for asyncio. The parameters are those of `Library`."""

    def __init__(
        self, endpoints: Union[Endpoints, str, None] = None, client: str = "python", keys: Optional[Keys] = None,
        wait: float = 0.0,
    ) -> None:
        self.endpoints = endpoints if isinstance(endpoints, Endpoints) else Endpoints(endpoints)
        self.client = client
        self.keys = keys or keys_of_environment()
        self._context = zmq.asyncio.Context.instance()
        self._process = os.getpid()
        self.catalog = self._instances("catalog", self.endpoints.catalog, wait)
        self.thumbnailer = self._instances("thumbnailer", self.endpoints.thumbnailer, wait)
        self.editor = self._instances("editor", self.endpoints.editor, wait)
        self.broker = AsyncService(self.context, self.endpoints.broker, self.keys, "change-broker", wait)
        # The library of the objects, whose methods block. It connects on first use.
        self.blocking = Library(self.endpoints, client, self.keys, wait=wait)

    def _instances(self, name: str, address: str, wait: float) -> AsyncService:
        listed = split_addresses(address)
        if len(listed) == 1:
            return AsyncService(self.context, address, self.keys, name, wait)
        members = [AsyncService(self.context, one, self.keys, name) for one in listed]
        return AsyncCatalogs(members, wait) if name == "catalog" else AsyncServiceInstances(members, wait)

    @property
    def context(self) -> zmq.asyncio.Context:
        """The context of the sockets. A forked process has its own."""
        self._context = context_of_process(self._context, self._process)
        self._process = os.getpid()
        return self._context

    async def __aenter__(self) -> "AsyncLibrary":
        return self

    async def __aexit__(self, *_: object) -> None:
        for service in (self.catalog, self.thumbnailer, self.editor, self.broker):
            service.close()
        self.blocking.close()

    async def request(
        self, service: AsyncService, method: str, params: Optional[Mapping[str, Any]] = None,
        attachments: Attachments = (), deadline: float = 30.0,
    ) -> Reply:
        """Returns the reply of a service. The request must be safe to repeat: it is repeated after temporary errors."""
        return await self.with_retries(lambda left: service.request(method, params, attachments, left), deadline)

    async def with_retries(self, function: Callable[[float], Awaitable[Reply]], deadline: float = 30.0) -> Reply:
        """Returns the result of `function(seconds_left)`, like `Library.with_retries`."""
        end = time.monotonic() + deadline
        delays = iter(RETRY_DELAYS)
        while True:
            try:
                return await function(max(0.1, end - time.monotonic()))
            except SafelightError as error:
                delay = next(delays, RETRY_DELAYS[-1])
                if not error.is_temporary or time.monotonic() + delay >= end:
                    raise
                await asyncio.sleep(delay)

    def fetch(
        self, where: Optional[Predicate] = None, *, sort: Sort = (), limit: int = 0, at: Optional[str] = None,
        **options: Any,
    ) -> AsyncFetchResult:
        """Returns assets, as `Library.fetch` does."""
        return AsyncFetchResult(self, description(where, sort=sort, limit=limit, **options), at)

    async def ids(self, fetch: Optional[Mapping[str, Any]] = None) -> Tuple[List[str], str]:
        """Returns the identifiers of a fetch of assets, and the token at which they are valid."""
        ids: List[str] = []
        token: JSON = {}
        while True:
            params = {"fetch": dict(fetch or {}), "from": len(ids), "count": 100_000, "members": ["id"], **token}
            page = (await self.request(self.catalog, "fetch.assets", params)).result
            token = {"token": page["token"]}
            ids += [asset["id"] for asset in page["assets"]]
            if len(ids) >= page["count"] or not page["assets"]:
                return ids, page["token"]

    async def perform(
        self, requests: Sequence[Mapping[str, Any]], transaction: Optional[str] = None, deadline: float = 30.0,
        attachments: Attachments = (),
    ) -> JSON:
        """Performs change requests of the protocol in one transaction, exactly once."""
        params = {"requests": list(requests), "client": self.client, "transaction": transaction or new_transaction_id()}
        performed: JSON = (await self.request(self.catalog, "changes.perform", params, attachments, deadline)).result
        return performed

    async def thumbnail(
        self, asset: Object, size: Size = 512, deadline: Optional[float] = None, **options: Any
    ) -> ImageData:
        """Returns an image of an asset as bytes, up to 15 MiB. `safelight.images.request` has the options.

        The deadline is in seconds: 30 unless it is given, and 600 with `network_access_allowed`, which include the
        download of the original.
        """
        params = {"asset": identifier(asset), **images.request(size, **options)}
        if deadline is None:
            deadline = DOWNLOAD_DEADLINE if params["networkAccessAllowed"] else 30.0
        reply = await self.request(self.thumbnailer, "image.request", params, deadline=deadline)
        return ImageData(reply.result, b"".join(reply.attachments))

    async def resource(
        self, asset: Asset, type: str = "photo", network_access_allowed: bool = False
    ) -> AsyncIterator[bytes]:
        """Yields the bytes of a resource in parts of at most 8 MiB.

        With `network_access_allowed`, a part that must be downloaded first may take ten minutes.
        """
        resource = asset.resource(type)
        offset, size = 0, resource.size
        deadline = DOWNLOAD_DEADLINE if network_access_allowed else 30.0
        while offset < size:
            params = {"asset": asset.id, "type": type, "offset": offset, "length": min(PART_SIZE, size - offset),
                      "networkAccessAllowed": network_access_allowed}
            if resource.offset is None:
                params["digest"] = resource.digest  # the asset may have another file of this type by now
            reply = await self.request(self.catalog, "resource.read", params, deadline=deadline)
            data = b"".join(reply.attachments)
            yield data
            offset += len(data)

    @overload
    def changes(
        self, since: Optional[str] = None, topics: Iterable[str] = (), events: Literal[False] = False
    ) -> AsyncIterator[Change]: ...

    @overload
    def changes(
        self, since: Optional[str] = None, topics: Iterable[str] = (), *, events: bool
    ) -> AsyncIterator[Event]: ...

    async def changes(
        self, since: Optional[str] = None, topics: Iterable[str] = (), events: bool = False
    ) -> AsyncIterator[Any]:
        """Yields every change after a token, like `Library.changes`. Without one it starts with the first change after
        the iteration began."""
        if since == "start":
            since = str((await self.request(self.catalog, "changes.token")).result["oldest"])
        state = Feed(since, topics)
        with AsyncSubscription(self, state.topics or ["changes"]) as subscription:
            while True:
                for event in await self._advance_feed(state, subscription):
                    if isinstance(event, Change):
                        event.client_library = self.blocking
                    if should_deliver(event, events):
                        yield event

    async def live(self, fetch: Optional[Mapping[str, Any]] = None, **options: Any) -> AsyncIterator[LiveList]:
        """Yields the list of identifiers of a fetch, like `Library.live`."""
        state = LiveList(live_description(fetch, options))
        delivered_version = 0
        with AsyncSubscription(self, []) as subscription:
            while True:
                await self._advance_live_list(state, subscription)
                if state.version > delivered_version and state.next_action == ("live",):
                    delivered_version = state.mark_delivered(delivered_version)
                    yield state

    async def _advance_feed(self, state: Feed, subscription: "AsyncSubscription") -> List[Event]:
        action = state.next_action
        try:
            if action[0] == "head":
                return state.begin((await self.broker.request("feed.head", deadline=FOLLOW_DEADLINE)).result)
            if action[0] == "page":
                params = {"token": action[1], "limit": 500, "topics": sorted(state.topics)}
                return state.page((await self.broker.request("feed.since", params, deadline=FOLLOW_DEADLINE)).result)
        except SafelightError as error:
            if error.name == "token_expired" and "head" in error.data:
                return state.expired(error.data["head"], error.data["oldest"])
            if not error.is_temporary:
                raise
            await asyncio.sleep(FOLLOW_RETRY_DELAY)
            return []
        return handle_message(state, await subscription.receive(RECEIVE_TIMEOUT))

    async def _advance_live_list(self, state: LiveList, subscription: "AsyncSubscription") -> None:
        action = state.next_action
        try:
            if action[0] == "list":
                state.set_list(*await self.ids(state.fetch))
            elif action[0] == "observe":
                params: JSON = {"fetch": state.fetch, "token": action[1]}
                reply = await self.broker.request("fetch.observe", params, deadline=FOLLOW_DEADLINE)
                state.handle_observation(reply.result)
            elif action[0] == "subscribe":
                subscription.subscribe(action[1])
                state.subscribed(action[1])
            elif action[0] == "details":
                params = {"observation": state.observation, "token": action[1]}
                reply = await self.broker.request("fetch.details", params, deadline=FOLLOW_DEADLINE)
                state.handle_details(reply.result)
            else:
                handle_message(state, await subscription.receive(RECEIVE_TIMEOUT))
        except SafelightError as error:
            if state.recover_from(error):
                return
            if not error.is_temporary:
                raise
            await asyncio.sleep(FOLLOW_RETRY_DELAY)


class AsyncSubscription(BaseSubscription):
    """A subscription whose `receive` is a coroutine."""

    def __enter__(self) -> "AsyncSubscription":
        return self

    async def receive(self, seconds: float) -> Optional[Message]:
        """Returns the next message, or None after the timeout."""
        end = time.monotonic() + seconds
        while await self._socket.poll(max(0.0, end - time.monotonic()) * 1000):
            message = parse_message(await self._socket.recv_multipart(), self._topics)
            if message:
                return message
        return None


