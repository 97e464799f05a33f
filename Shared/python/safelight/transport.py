"""Requests to one service: the messages, the events of a connection, and a client with blocking sockets."""

import json
import math
import os
import threading
import time
import weakref
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple, Union

import zmq
from zmq.utils.monitor import parse_monitor_message

from .endpoints import check_address, not_running
from .errors import (
    JSON, AccessUserDeniedError, ConnectionLostError, DeadlineExceededError, InvalidParametersError, NotRunningError,
    SafelightError, UnavailableError, UserCancelledError,
)
from .instances import (
    CATALOG_READS, CATALOG_SINGLE_READS, HEALTH_CHECK_DELAY, HEALTH_CHECK_TIMEOUT, HEDGING_DELAY, WRITER_RETRY_DELAY,
    CatalogChoice, Instances, decisive_error, is_standby_error, may_be_different_elsewhere,
)

CONNECT_TIMEOUT = 0.7  # seconds until a connection exists
HANDSHAKE_TIMEOUT = 5.0  # seconds from then until the handshake has ended
SHORT_HANDSHAKE_TIMEOUT = 1.0  # the same, if another catalog can be asked
SEND_TIMEOUT = 1000  # milliseconds
MAX_POLL_SECONDS = 0.5  # after which a waiting request checks if the library was closed
# Milliseconds between heartbeats, and without a response to one until the connection is lost. Only they detect a
# connection that ended silently, as at a router that has dropped its state.
HEARTBEAT_INTERVAL = 3000
HEARTBEAT_TIMEOUT = 13_000
KEEPALIVE_IDLE = 30  # seconds without a message after which the kernel probes the connection to the editor
KEY_REFUSED = 400  # the status of a key that is on no list

# The paths of the client's secret certificate and of the server's public certificate (CURVE).
Keys = Tuple[str, str]
Attachments = Sequence[Union[bytes, memoryview]]
# Receives the method, the parameters and the attachments of a notification.
NotificationHandler = Callable[[str, JSON, List[bytes]], None]

CONNECTION_EVENTS = (
    zmq.EVENT_CONNECTED | zmq.EVENT_CONNECT_RETRIED | zmq.EVENT_DISCONNECTED | zmq.EVENT_HANDSHAKE_SUCCEEDED
    | zmq.EVENT_HANDSHAKE_FAILED_AUTH | zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL | zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL
)


class Reply(NamedTuple):
    """The result of a request, and the attachments of its response."""

    result: Any
    attachments: List[bytes]


class ConnectionState:
    """The state of a connection, from the events of its socket."""

    def __init__(self, service: str, address: str, is_replaceable: bool = False) -> None:
        self.service = service
        self.address = address
        self.handshake = SHORT_HANDSHAKE_TIMEOUT if is_replaceable else HANDSHAKE_TIMEOUT
        self.is_connected = False
        self.is_ready = False
        self.is_lost = False
        # True if the key is on no list of the service.
        self.is_refused = False

    def handle(self, frames: List[bytes]) -> None:
        """Handles a message of the socket's monitor."""
        message = parse_monitor_message(frames)
        event = message["event"]
        if event == zmq.EVENT_CONNECTED:
            self.is_connected = True
        elif event == zmq.EVENT_HANDSHAKE_SUCCEEDED:
            self.is_ready = True
        else:
            self.is_refused = event == zmq.EVENT_HANDSHAKE_FAILED_AUTH and message["value"] == KEY_REFUSED
            self.is_lost = True

    @property
    def timeout(self) -> float:
        """Seconds until the connection must be ready."""
        return self.handshake if self.is_connected else CONNECT_TIMEOUT

    def failure(self) -> SafelightError:
        """Returns the reason for which the connection did not become ready."""
        if self.is_refused:
            return AccessUserDeniedError(
                message=f"the {self.service} at {self.address} refuses this key, which is not on its list or was "
                "revoked: check SAFELIGHT_CLIENT_KEY, and `safelight keys list` at the services"
            )
        if self.is_connected:
            return not_running(
                f"{self.address} accepts connections, but not this one: check that it is the {self.service}, and the "
                "keys, SAFELIGHT_CLIENT_KEY and SAFELIGHT_SERVER_KEY"
            )
        return not_running(
            f"the {self.service} is not running: nothing answers at {self.address}; "
            "start the services with: safelight up"
        )

    def lost(self, method: str) -> ConnectionLostError:
        return ConnectionLostError(message=f"the connection to the {self.service} was lost during {method}")


def load_key(path: str, is_secret: bool) -> Tuple[bytes, Optional[bytes]]:
    """Returns the public and the secret key in a file. Raises InvalidParametersError, whose message names the file."""
    from zmq.auth import load_certificate

    try:
        public, secret = load_certificate(path)
    except (OSError, ValueError) as error:
        is_there = os.path.exists(path)
        problem = f"it has no key ({error})" if is_there else "there is no such file"
        raise InvalidParametersError(message=f"keys: {path}: {problem}", data={"parameter": "keys"}) from None
    if is_secret and secret is None:
        raise InvalidParametersError(
            message=f"keys: {path} has no secret key: give the file NAME.key_secret of `safelight keys create`",
            data={"parameter": "keys"},
        )
    return public, secret


def new_socket(context: Any, kind: int, address: str, keys: Optional[Keys]) -> Any:
    """Returns a new socket for an address, which is not connected yet. Keys are for TCP only."""
    loaded = None
    if keys and address.startswith("tcp://"):
        client, server = keys
        loaded = (*load_key(client, True), load_key(server, False)[0])
    socket = context.socket(kind)
    if loaded:
        socket.curve_publickey, socket.curve_secretkey, socket.curve_serverkey = loaded
    socket.linger = 0
    if kind == zmq.PUSH:
        # The editor does not read while it has too many edits, and then does not respond to heartbeats either.
        socket.tcp_keepalive = 1
        socket.tcp_keepalive_idle = KEEPALIVE_IDLE
        socket.tcp_maxrt = HEARTBEAT_TIMEOUT
    else:
        socket.heartbeat_ivl = HEARTBEAT_INTERVAL
        socket.heartbeat_timeout = HEARTBEAT_TIMEOUT
    return socket


def connect(socket: Any, address: str) -> None:
    """Connects a socket. Closes it and raises InvalidParametersError if the address is malformed."""
    try:
        socket.connect(address)
    except zmq.ZMQError as error:
        socket.close(0)
        raise InvalidParametersError(
            message=f"{address!r} is not an address of a service ({error}): write tcp://HOST:PORT or ipc:///PATH"
        ) from None


def request_socket(context: Any, address: str, keys: Optional[Keys]) -> Any:
    """Returns a new socket for requests, which queues no messages for a service that is not connected."""
    socket = new_socket(context, zmq.DEALER, address, keys)
    socket.immediate = True
    socket.sndtimeo = SEND_TIMEOUT
    return socket


# The sockets and contexts of the process that this one was forked from. libzmq cannot be used in a forked process, not
# even to close them, so they are kept until it ends.
_inherited: List[Any] = []


def context_of_process(context: Any, process: int) -> Any:
    """Returns the context if it belongs to this process; another one if this process was forked from `process`."""
    if process == os.getpid():
        return context
    _inherited.append(context)
    return type(context).instance()


def leave_to_parent(*sockets: Any) -> None:
    """Keeps sockets of the process that this one was forked from."""
    _inherited.extend(sockets)


def encode_request(number: int, method: str, params: Optional[Mapping[str, Any]], deadline: float) -> bytes:
    """Returns a JSON-RPC request. The service gives up after the deadline, in seconds; never if it is infinite, which
    needs `credit` in the parameters."""
    members = dict(params or {})
    if deadline != math.inf:
        members["deadlineMs"] = max(1, int(deadline * 1000))
    try:
        return encode_json({"jsonrpc": "2.0", "id": number, "method": method, "params": members})
    except ValueError as error:
        raise ValueError(f"{method}: {error}") from None


def encode_json(message: JSON) -> bytes:
    """Returns a message as JSON. Raises ValueError for values that JSON cannot represent: NaN, infinity, and lone
    surrogates, as in a file name that is not UTF-8."""
    return json.dumps(message, ensure_ascii=False, allow_nan=False).encode()


def encode_credit(number: int, size: int) -> bytes:
    """Returns the message that allows a service to send more notifications."""
    params = {"id": number, "bytes": size}
    return json.dumps({"jsonrpc": "2.0", "method": "rpc.credit", "params": params}).encode()


def encode_cancellation(number: int) -> bytes:
    """Returns the message that makes a service cancel a request."""
    return json.dumps({"jsonrpc": "2.0", "method": "rpc.cancel", "params": {"id": number}}).encode()


def is_response(message: JSON) -> bool:
    """Returns whether a message is a response, and not a notification."""
    return "result" in message or "error" in message


def decode_response(response: JSON, attachments: List[bytes]) -> Reply:
    """Returns the result and the attachments. Raises the error of the response."""
    if "error" in response:
        raise SafelightError.from_json(response["error"])
    return Reply(response["result"], attachments)


def timeout_error(method: str) -> DeadlineExceededError:
    return DeadlineExceededError(message=f"{method} was not answered in time")


class Connection:
    """A connected socket of one thread."""

    def __init__(
        self, context: "zmq.Context[Any]", service: str, address: str, keys: Optional[Keys],
        is_replaceable: bool = False,
    ) -> None:
        check_address(service, address)
        self.state = ConnectionState(service, address, is_replaceable)
        self.process = os.getpid()
        # Set by another thread that closes the library.
        self.is_closing = False
        self.socket: "zmq.Socket[bytes]" = request_socket(context, address, keys)
        self.monitor: "zmq.Socket[bytes]" = self.socket.get_monitor_socket(CONNECTION_EVENTS)
        self.last_number = 0
        try:
            connect(self.socket, address)
        except InvalidParametersError:
            self.monitor.close(0)
            raise
        start = time.monotonic()
        while not self.state.is_ready:
            left = start + self.state.timeout - time.monotonic()
            if self.state.is_lost or left <= 0 or not self.monitor.poll(left * 1000):
                self.close()
                raise self.state.failure()
            self.state.handle(self.monitor.recv_multipart())

    def check(self) -> bool:
        """Returns whether the connection still exists."""
        if self.is_closing or self.process != os.getpid():
            return False
        while not self.state.is_lost and self.monitor.poll(0):
            self.state.handle(self.monitor.recv_multipart())
        return not self.state.is_lost

    def lost(self, method: str) -> SafelightError:
        """Returns the error of a request whose connection has ended."""
        if self.is_closing:
            return UserCancelledError(message=f"the library was closed during {method}")
        return self.state.lost(method)

    def request(
        self, method: str, params: Optional[Mapping[str, Any]], attachments: Attachments, deadline: float,
        on_notification: Optional[NotificationHandler], checks_health: bool = False,
    ) -> Reply:
        """Returns the reply. With `checks_health`, raises ConnectionLostError if the service does not respond to
        `health` meanwhile."""
        pending = PendingRequest(self, method, params, attachments, deadline, on_notification)
        end = time.monotonic() + deadline + 1
        next_check = time.monotonic() + HEALTH_CHECK_DELAY
        is_checked = False
        while True:
            now = time.monotonic()
            if now >= end:
                raise timeout_error(method)
            wait = end - now
            if checks_health:
                if now >= next_check:
                    if is_checked:
                        raise self.state.lost(method)
                    self.request_health()
                    is_checked, next_check = True, now + HEALTH_CHECK_TIMEOUT
                wait = min(wait, next_check - now)
            if not poll([self], wait):
                if self.is_closing:
                    raise self.lost(method)
                continue
            reply = pending.receive()
            if reply:
                return reply
            is_checked, next_check = False, time.monotonic() + HEALTH_CHECK_DELAY

    def request_health(self) -> None:
        """Sends a request for the health of the service. Its response only shows that the service responds."""
        self.last_number += 1
        try:
            self.socket.send(encode_request(self.last_number, "health", None, HEALTH_CHECK_TIMEOUT), zmq.NOBLOCK)
        except zmq.Again:
            pass

    def close(self) -> None:
        if self.process != os.getpid():
            leave_to_parent(self.socket, self.monitor)
        elif not self.socket.closed:
            self.socket.disable_monitor()
            self.monitor.close(0)
            self.socket.close(0)

    def __del__(self) -> None:
        # The connection of a thread that has ended, or of a library that was closed.
        if hasattr(self, "monitor"):
            self.close()


class PendingRequest:
    """A request that was sent and has no response yet."""

    def __init__(
        self, connection: Connection, method: str, params: Optional[Mapping[str, Any]], attachments: Attachments,
        deadline: float, on_notification: Optional[NotificationHandler] = None,
    ) -> None:
        self.connection = connection
        self._method = method
        self._has_credit = bool(params and params.get("credit"))
        self._on_notification = on_notification
        connection.last_number += 1
        self._number = connection.last_number
        try:
            connection.socket.send_multipart([encode_request(self._number, method, params, deadline), *attachments])
        except zmq.Again:
            raise connection.lost(method) from None

    def receive(self) -> Optional[Reply]:
        """Handles one message, if there is one. Returns the reply if it is the response. Raises its error, and
        ConnectionLostError."""
        socket = self.connection.socket
        if not socket.poll(0):
            if not self.connection.check():
                raise self.connection.lost(self._method)
            return None
        frames = socket.recv_multipart()
        message = json.loads(frames[0])
        if message.get("id") == self._number and is_response(message):
            return decode_response(message, frames[1:])
        values = message.get("params") or {}
        if values.get("id") == self._number:
            if self._on_notification:
                self._on_notification(message["method"], values, frames[1:])
            if self._has_credit:
                try:
                    socket.send(encode_credit(self._number, sum(map(len, frames))))
                except zmq.Again:
                    raise self.connection.lost(self._method) from None
        return None


def poll(connections: Sequence[Connection], seconds: float) -> bool:
    """Waits at most half a second for an event of one of the connections. Returns whether there was one."""
    poller = zmq.Poller()
    for connection in connections:
        poller.register(connection.socket, zmq.POLLIN)
        poller.register(connection.monitor, zmq.POLLIN)
    return bool(poller.poll(max(1, math.ceil(min(seconds, MAX_POLL_SECONDS) * 1000))))


class Service:
    """A client of one service. Each thread has a connection of its own and sends one request at a time."""

    def __init__(
        self, context: "zmq.Context[Any]", address: str, keys: Optional[Keys] = None, name: str = "service",
        wait: float = 0.0, is_replaceable: bool = False,
    ) -> None:
        self.address = address
        self.name = name
        # True if another instance can be asked: then the handshake has a shorter timeout, and a request fails if the
        # service does not respond to health checks.
        self._is_replaceable = is_replaceable
        self._context = context
        self._process = os.getpid()
        self._keys = keys
        self._wait = wait
        self._was_reached = False
        self._local = threading.local()
        self._connections: "weakref.WeakSet[Connection]" = weakref.WeakSet()

    def call(
        self, method: str, params: Optional[Mapping[str, Any]] = None, attachments: Attachments = (),
        deadline: float = 30.0,
    ) -> Any:
        """Returns the result of a request, or `(result, attachments)` if the reply has attachments.

        Raises SafelightError. `deadline` is in seconds.
        """
        reply = self.request(method, params, attachments, deadline)
        return (reply.result, reply.attachments) if reply.attachments else reply.result

    def request(
        self, method: str, params: Optional[Mapping[str, Any]] = None, attachments: Attachments = (),
        deadline: float = 30.0, on_notification: Optional[NotificationHandler] = None,
    ) -> Reply:
        """Returns the result and the attachments of a request, which is sent once."""
        connection = self.connection()
        # A request that the handler sends uses another connection: on this one it would receive this response.
        self._local.connection = None
        try:
            return connection.request(method, params, attachments, deadline, on_notification, self._is_replaceable)
        except SafelightError as error:
            if isinstance(error, (ConnectionLostError, DeadlineExceededError)) or connection.is_closing:
                self._forget(connection)  # a late response must not reach the next request
            raise
        except BaseException:
            # Interrupted, also by an exception of the handler: closing the connection cancels the request.
            self._forget(connection)
            raise
        finally:
            if not connection.socket.closed:
                self.forget()
                self._local.connection = connection

    def connection(self) -> Connection:
        """Returns the connection of this thread, a new one if there is none."""
        connection: Optional[Connection] = getattr(self._local, "connection", None)
        if connection is None or not connection.check():
            self._forget(connection)
            connection = self._local.connection = self._connect()
            self._connections.add(connection)
        return connection

    def forget(self) -> None:
        """Closes the connection of this thread, so that a late response does not reach the next request, and the
        service cancels the request."""
        self._forget(getattr(self._local, "connection", None))

    def instance(self, params: Optional[Mapping[str, Any]]) -> "Service":
        """Returns the instance of the service that gets a request, for requests that belong together."""
        return self

    @property
    def instances(self) -> List["Service"]:
        """One client for each instance of the service."""
        return [self]

    def _connect(self) -> Connection:
        end = time.monotonic() + self._wait
        self._context = context_of_process(self._context, self._process)
        self._process = os.getpid()
        while True:
            try:
                connection = Connection(self._context, self.name, self.address, self._keys, self._is_replaceable)
                self._was_reached = True
                return connection
            except NotRunningError as error:
                if self._was_reached:
                    raise UnavailableError(message=error.message, data={"isUnsent": True}) from None
                if time.monotonic() >= end:
                    raise
                time.sleep(0.05)

    def _forget(self, connection: Optional[Connection]) -> None:
        if connection is not None:
            self._connections.discard(connection)
            connection.close()
            if getattr(self._local, "connection", None) is connection:
                self._local.connection = None

    def close(self) -> None:
        """Closes the connections of all threads. Requests that wait raise UserCancelledError; a later one connects
        again."""
        # A socket is closed by the thread that uses it, which notices this; one that no thread uses, by its deletion.
        for connection in list(self._connections):
            connection.is_closing = True
        self._connections.clear()
        self._local = threading.local()


class ServiceInstances(Service):
    """A client of a service of which several instances run. Requests about an asset go to the same instance, whose
    cache has its images, and to the next one while that does not respond."""

    def __init__(self, members: Sequence[Service], wait: float = 0.0) -> None:
        first = members[0]
        super().__init__(first._context, first.address, first._keys, first.name, wait)
        self._instances = Instances(members)

    def request(
        self, method: str, params: Optional[Mapping[str, Any]] = None, attachments: Attachments = (),
        deadline: float = 30.0, on_notification: Optional[NotificationHandler] = None,
    ) -> Reply:
        was_notified = False

        def notified(name: str, values: JSON, parts: List[bytes]) -> None:
            nonlocal was_notified
            was_notified = True
            if on_notification:
                on_notification(name, values, parts)

        end = time.monotonic() + self._wait
        while True:
            failures: List[SafelightError] = []
            for instance in self._instances.choose(params):
                try:
                    reply = instance.request(method, params, attachments, deadline, notified)
                except SafelightError as error:
                    if not self._instances.note_error(instance, error, None if was_notified else method):
                        raise
                    failures.append(error)
                else:
                    self._instances.mark_present(instance)
                    return reply
            if failures and time.monotonic() >= end:
                raise decisive_error(failures)
            time.sleep(0.05)

    def instance(self, params: Optional[Mapping[str, Any]]) -> Service:
        return self._instances.choose(params)[0]

    @property
    def instances(self) -> List[Service]:
        return list(self._instances.members)

    def close(self) -> None:
        for instance in self._instances.members:
            instance.close()


class Catalogs(Service):
    """A client of the catalogs of one library, of which one writes, and all answer reads.

    A read goes to the catalog that answered the last one; if that is lost, to another one at once. Without a response
    for `HEDGING_DELAY` it is sent to another one too, and the first response counts. Everything else goes to the
    catalog that writes: a standby refuses changes with LibraryReadOnlyError, and then the next one is asked.
    """

    def __init__(self, members: Sequence[Service], wait: float = 0.0) -> None:
        first = members[0]
        super().__init__(first._context, first.address, first._keys, first.name, wait)
        self._choice = CatalogChoice(members)

    def request(
        self, method: str, params: Optional[Mapping[str, Any]] = None, attachments: Attachments = (),
        deadline: float = 30.0, on_notification: Optional[NotificationHandler] = None,
    ) -> Reply:
        start = time.monotonic()
        while True:
            try:
                if method in CATALOG_READS:
                    return self._hedged_read(method, params, deadline)
                if method in CATALOG_SINGLE_READS:
                    return self._single_read(method, params, deadline, on_notification)
                return self._change(method, params, attachments, deadline, on_notification)
            except NotRunningError:
                if time.monotonic() >= start + self._wait:
                    raise
                time.sleep(0.05)

    def _hedged_read(self, method: str, params: Optional[Mapping[str, Any]], deadline: float) -> Reply:
        choice = self._choice
        pending: Dict[int, PendingRequest] = {}
        failures: List[SafelightError] = []
        asked = choice.order(choice.reader)
        first = asked[0]
        is_hedged = False

        def fail(index: int, error: SafelightError) -> None:
            pending.pop(index, None)
            choice.note_error(index, error)
            if not isinstance(error, UnavailableError):
                choice.members[index].forget()
            if index != first and pending and not may_be_different_elsewhere(error):
                failures.append(error)  # the first one decides
            elif may_be_different_elsewhere(error):
                failures.insert(0 if index == first else len(failures), error)
            else:
                raise error

        def ask_next() -> None:
            while asked:
                index = asked.pop(0)
                try:
                    connection = choice.members[index].connection()
                    pending[index] = PendingRequest(connection, method, params, (), deadline)
                    return
                except (ConnectionLostError, UnavailableError) as error:
                    fail(index, error)

        end = time.monotonic() + deadline + 1
        try:
            ask_next()
            next_attempt = time.monotonic() + HEDGING_DELAY
            while pending:
                now = time.monotonic()
                if now >= end:
                    raise timeout_error(method)
                # Connecting to a catalog that recently did not respond may take longer.
                if asked and now >= next_attempt + (2 * HEDGING_DELAY if choice.is_absent(asked[0]) else 0):
                    is_hedged = is_hedged or choice.begin_hedging()
                    if is_hedged:
                        ask_next()
                    next_attempt = time.monotonic() + HEDGING_DELAY
                connections = [one.connection for one in pending.values()]
                poll(connections, min(HEDGING_DELAY, end - now) if asked else end - now)
                for index, one in list(pending.items()):
                    try:
                        reply = one.receive()
                    except SafelightError as error:
                        fail(index, error)
                        if not pending:
                            ask_next()
                        continue
                    if reply:
                        del pending[index]
                        choice.mark_present(index)
                        choice.reader = index
                        return reply
            raise decisive_error(failures)
        finally:
            if is_hedged:
                choice.end_hedging()
            for index in pending:
                choice.mark_absent(index)
                choice.members[index].forget()

    def _single_read(
        self, method: str, params: Optional[Mapping[str, Any]], deadline: float,
        on_notification: Optional[NotificationHandler],
    ) -> Reply:
        failures: List[SafelightError] = []
        end = time.monotonic() + deadline
        was_notified = False

        def notified(name: str, values: JSON, parts: List[bytes]) -> None:
            nonlocal was_notified
            was_notified = True
            if on_notification:
                on_notification(name, values, parts)

        for index in self._choice.order(self._choice.reader):
            left = max(0.1, end - time.monotonic())
            try:
                reply = self._choice.members[index].request(method, params, (), left, notified)
            except SafelightError as error:
                self._choice.note_error(index, error)
                if was_notified or not may_be_different_elsewhere(error):
                    raise
                failures.append(error)
            else:
                self._choice.mark_present(index)
                self._choice.reader = index
                return reply
        raise decisive_error(failures) if failures else timeout_error(method)

    def _change(
        self, method: str, params: Optional[Mapping[str, Any]], attachments: Attachments, deadline: float,
        on_notification: Optional[NotificationHandler],
    ) -> Reply:
        choice = self._choice
        end = time.monotonic() + deadline
        while True:
            failures: List[SafelightError] = []
            for index in choice.writers():
                left = max(0.1, end - time.monotonic())
                try:
                    reply = choice.members[index].request(method, params, attachments, left, on_notification)
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
            time.sleep(WRITER_RETRY_DELAY)

    @property
    def instances(self) -> List[Service]:
        return list(self._choice.members)

    def close(self) -> None:
        for member in self._choice.members:
            member.close()
