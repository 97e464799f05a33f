"""Tests of connections: keys, heartbeats, threads, processes and event loops, with services in this program."""

import asyncio
import copy
import json
import multiprocessing
import os
import pickle
import tempfile
import threading
import time
import unittest

import zmq
import zmq.auth

from safelight import Asset, Change, Endpoints, Library, errors
from safelight.aio import AsyncLibrary
from safelight.instances import decisive_error
from safelight.transport import Service, ServiceInstances, new_socket

TOKEN = "0" * 32 + ".7"


class Answering:
    """A service that answers in a thread of this program, and records the requests."""

    def __init__(self, address):
        self.requests = []
        self.context = zmq.Context()
        self.socket = self.context.socket(zmq.ROUTER)
        self.socket.linger = 0
        self.socket.bind(address)
        self.is_over = threading.Event()
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self):
        while not self.is_over.is_set():
            if self.socket.poll(20):
                client, frame = self.socket.recv_multipart()
                request = json.loads(frame)
                self.requests.append(request)
                result = self.answer(request["method"], request["params"])
                if result is not None:
                    response = {"id": request["id"], "result": result}
                    self.socket.send_multipart([client, json.dumps(response).encode()])
        self.socket.close()

    def answer(self, method, params):
        """Returns the result of a request; None if it gets no answer."""
        return {"status": "ok"} if method == "health" else None

    def wait_for(self, condition):
        end = time.monotonic() + 10
        while not condition(self.requests):
            if time.monotonic() > end:
                raise AssertionError(self.requests)
            time.sleep(0.01)

    def close(self):
        self.is_over.set()
        self.thread.join()
        self.context.destroy(0)


class ChangingCatalog(Answering):
    """A catalog whose state changes with each request without a token. Ids of assets contain the state."""

    state = 0

    def answer(self, method, params):
        if method != "fetch.assets":
            return None
        if "token" not in params:
            self.state += 1
            time.sleep(0.05)
        state = int(params["token"].rsplit(".", 1)[1]) if "token" in params else self.state
        start, count = params["from"], params["count"]
        assets = [{"id": f"a{state}.{index}"} for index in range(start, min(start + count, 40))]
        return {"assets": assets, "count": 40, "token": f"h.{state}"}


class ServiceTests(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def start(self, kind=Answering, name="catalog"):
        service = kind(f"ipc://{self.folder}/{name}.sock")
        self.addCleanup(service.close)
        return service

    def library(self):
        library = Library(self.folder)
        self.addCleanup(library.close)
        return library


class ClosingTests(ServiceTests):
    def test_closing_a_library_ends_the_requests_of_other_threads(self):
        service = self.start()
        library = self.library()
        ended = []

        def wait():
            try:
                library.status(after=1, deadline=60)
            except errors.SafelightError as error:
                ended.append((error.name, error.is_temporary))

        threads = [threading.Thread(target=wait) for _ in range(3)]
        for thread in threads:
            thread.start()
        service.wait_for(lambda requests: len(requests) == 3)
        library.close()
        for thread in threads:
            thread.join(5)
        self.assertEqual(ended, [("user_cancelled", False)] * 3)
        self.assertEqual(library.catalog.request("health").result, {"status": "ok"})

    def test_closing_a_library_ends_the_changes_and_live_lists_of_other_threads(self):
        for name in ("catalog", "change-broker"):
            self.start(name=name)
        library = self.library()
        ended = []

        def follow(iterator):
            ended.append(list(iterator))

        iterators = [library.changes(since=TOKEN), library.live({})]
        threads = [threading.Thread(target=follow, args=(one,)) for one in iterators]
        for thread in threads:
            thread.start()
        time.sleep(0.3)
        library.close()
        for thread in threads:
            thread.join(10)
        self.assertEqual(ended, [[], []])

    def test_closing_a_library_ends_a_request_that_waits_for_a_service(self):
        library = self.library()
        library.catalog._was_reached = True
        ended = []

        def ask():
            try:
                library.status()
            except errors.SafelightError as error:
                ended.append(error.name)

        thread = threading.Thread(target=ask)
        thread.start()
        time.sleep(0.2)
        library.close()
        thread.join(5)
        self.assertEqual(ended, ["user_cancelled"])

    def test_closing_a_library_closes_the_connections_of_idle_threads(self):
        self.start()
        library = self.library()
        may_end, is_asked = threading.Event(), threading.Semaphore(0)

        def ask():
            library.catalog.request("health")
            is_asked.release()
            may_end.wait(20)

        threads = [threading.Thread(target=ask) for _ in range(4)]
        for thread in threads:
            thread.start()
            is_asked.acquire()
        connections = list(library.catalog._connections)
        sockets = [connection.socket for connection in connections]
        del connections
        library.close()
        self.assertEqual([socket.closed for socket in sockets], [True] * 4)
        may_end.set()
        for thread in threads:
            thread.join()


def health_of(library):
    return library.catalog.request("health", deadline=5).result["status"]


class ProcessTests(ServiceTests):
    def test_a_forked_process_can_use_the_library_of_its_parent(self):
        self.start()
        library = self.library()
        self.assertEqual(health_of(library), "ok")
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                os.write(writer, health_of(library).encode())
                library.close()
                os.write(writer, health_of(library).encode())
            finally:
                os._exit(0)
        os.close(writer)
        with os.fdopen(reader) as file:
            self.assertEqual(file.read(), "okok")
        os.waitpid(child, 0)
        self.assertEqual(health_of(library), "ok")

    def test_unpickled_objects_share_one_library(self):
        self.start()
        library = self.library()
        assets = [Asset({"id": f"a{number}"}, library) for number in range(3)]
        change = Change(sequence=7, library="h", assets=[{"after": assets[0].json}])
        change.client_library = library
        received, first = pickle.loads(pickle.dumps((assets, change)))
        again = pickle.loads(pickle.dumps(assets[1]))
        self.assertEqual((received, first), (assets, change))
        libraries = {id(one.library) for one in [*received, again, first.assets[0].after]}
        self.assertEqual(len(libraries), 1)
        self.assertEqual(health_of(again.library), "ok")
        again.library.close()
        self.assertIs(copy.deepcopy(assets[0]).library, library)

    def test_a_fetch_result_can_be_sent_to_a_pool_of_processes(self):
        self.start(ChangingCatalog)
        result = self.library().fetch()
        self.assertEqual(len(result), 40)
        with multiprocessing.get_context("fork").Pool(2) as pool:
            self.assertEqual(pool.map(len, [result, result]), [40, 40])


class FetchTokenTests(ServiceTests):
    def test_all_pages_of_a_result_are_read_at_one_token(self):
        self.start(ChangingCatalog)
        library = self.library()
        result = library.fetch()
        result._page_size = 5
        found = []

        def read(index):
            found.append(result[index].id)

        threads = [threading.Thread(target=read, args=(index,)) for index in range(40)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual({id.split(".")[0] for id in found}, {"a1"})

    def test_all_pages_of_a_result_are_read_at_one_token_with_asyncio(self):
        self.start(ChangingCatalog)

        async def run():
            async with AsyncLibrary(self.folder) as library:
                result = library.fetch()
                found = await asyncio.gather(*(result._assets(start, 5) for start in range(0, 40, 5)))
                return {asset["id"].split(".")[0] for page in found for asset in page}

        self.assertEqual(asyncio.run(run()), {"a1"})


class AsyncioTests(ServiceTests):
    def test_a_library_can_be_used_in_several_event_loops(self):
        self.start()
        library = AsyncLibrary(self.folder)

        async def ask(is_last=False):
            reply = await library.catalog.request("health", deadline=5)
            if is_last:
                await library.__aexit__()
            return reply.result["status"]

        self.assertEqual([asyncio.run(ask()), asyncio.run(ask())], ["ok", "ok"])
        self.assertEqual(len(library.catalog._connections), 1)
        self.assertEqual(asyncio.run(ask(is_last=True)), "ok")
        self.assertEqual(library.catalog._connections, {})

    def test_a_cancelled_task_cancels_its_request_at_the_service(self):
        service = self.start()

        async def run():
            async with AsyncLibrary(self.folder) as library:
                task = asyncio.ensure_future(library.catalog.request("edits.preview"))
                await asyncio.to_thread(service.wait_for, lambda requests: len(requests) == 1)
                task.cancel()
                with self.assertRaises(asyncio.CancelledError):
                    await task
                await asyncio.to_thread(service.wait_for, lambda requests: len(requests) == 2)

        asyncio.run(run())
        self.assertEqual([one["method"] for one in service.requests], ["edits.preview", "rpc.cancel"])
        self.assertEqual(service.requests[1]["params"], {"id": service.requests[0]["id"]})


class KeyTests(ServiceTests):
    def setUp(self):
        super().setUp()
        self.client = zmq.auth.create_certificates(self.folder, "client")
        self.server = zmq.auth.create_certificates(self.folder, "server")
        self.keys = (self.client[1], self.server[0])

    def test_keys_are_used_for_tcp_only(self):
        context = zmq.Context()
        for address, mechanism in [("tcp://127.0.0.1:1", zmq.CURVE), ("ipc:///nowhere", zmq.NULL)]:
            for kind in (zmq.DEALER, zmq.SUB, zmq.PUSH):
                with new_socket(context, kind, address, self.keys) as socket:
                    self.assertEqual((address, socket.mechanism), (address, mechanism))
        context.term()

    def test_a_library_with_keys_uses_local_addresses(self):
        self.start()
        library = Library(self.folder, keys=self.keys)
        self.addCleanup(library.close)
        self.assertEqual(health_of(library), "ok")

    def test_the_error_for_an_unusable_key_file_names_the_file(self):
        empty = f"{self.folder}/empty"
        open(empty, "w").close()
        for keys, expected in [
            ((self.client[0], self.server[0]), f"{self.client[0]} has no secret key"),
            (("/nowhere/ann.key_secret", self.server[0]), "/nowhere/ann.key_secret: there is no such file"),
            ((self.client[1], empty), f"{empty}: it has no key"),
        ]:
            library = Library(Endpoints(catalog="tcp://127.0.0.1:1", feed="tcp://127.0.0.1:1"), keys=keys)
            for request in (lambda: library.catalog.request("health"), lambda: next(library.changes(since=TOKEN))):
                with self.assertRaisesRegex(errors.InvalidParametersError, expected):
                    request()

    def test_the_error_for_a_malformed_address_names_the_address(self):
        for address in ["127.0.0.1:5571", "tcp://127.0.0.1"]:
            library = Library(Endpoints(catalog=address, feed=address))
            for request in (lambda: library.catalog.request("health"), lambda: next(library.changes(since=TOKEN))):
                with self.assertRaisesRegex(errors.InvalidParametersError, f"'{address}' is not an address"):
                    request()

    def test_a_refused_key_raises_an_error_at_once(self):
        context = zmq.Context()
        handler = context.socket(zmq.REP)
        handler.bind("inproc://zeromq.zap.01")
        router = context.socket(zmq.ROUTER)
        router.curve_server = True
        router.curve_secretkey = zmq.auth.load_certificate(self.server[1])[1]
        router.zap_domain = b"requests"
        port = router.bind_to_random_port("tcp://127.0.0.1")
        is_over = threading.Event()

        def refuse():
            while not is_over.is_set():
                if handler.poll(20):
                    number = handler.recv_multipart()[1]
                    handler.send_multipart([b"1.0", number, b"400", b"this key is not on the list", b"", b""])
            handler.close()

        thread = threading.Thread(target=refuse)
        thread.start()
        service = Service(zmq.Context.instance(), f"tcp://127.0.0.1:{port}", self.keys, "catalog", wait=30)
        service._was_reached = True
        start = time.monotonic()
        try:
            with self.assertRaisesRegex(errors.AccessUserDeniedError, "refuses this key") as refused:
                service.request("health")
        finally:
            is_over.set()
            thread.join()
            context.destroy(0)
        self.assertFalse(refused.exception.is_temporary)
        self.assertLess(time.monotonic() - start, 5)


class LossTests(ServiceTests):
    def test_sockets_have_heartbeats_or_keepalive(self):
        context = zmq.Context()
        for kind in (zmq.DEALER, zmq.SUB):
            with new_socket(context, kind, "tcp://127.0.0.1:1", None) as socket:
                self.assertEqual((socket.heartbeat_ivl, socket.heartbeat_timeout), (3000, 13_000))
        # The editor reads nothing while it has too many edits.
        with new_socket(context, zmq.PUSH, "tcp://127.0.0.1:1", None) as socket:
            self.assertEqual((socket.heartbeat_ivl, socket.tcp_keepalive), (0, 1))
        context.term()

    def test_the_error_of_a_restarting_instance_is_preferred_to_that_of_one_that_never_ran(self):
        never, restarting = errors.NotRunningError(), errors.UnavailableError()
        self.assertIs(decisive_error([never, restarting]), restarting)
        self.assertIs(decisive_error([restarting, never]), restarting)
        self.assertIs(decisive_error([never, errors.NotRunningError()]), never)
        context = zmq.Context.instance()
        members = [Service(context, f"ipc://{self.folder}/{name}.sock", name="editor") for name in ("one", "two")]
        members[1]._was_reached = True
        for asset in (f"a{number}" for number in range(8)):
            with self.assertRaises(errors.UnavailableError) as failed:
                ServiceInstances(members).request("edits.history", {"asset": asset})
            self.assertTrue(failed.exception.is_temporary)

    def test_the_first_health_error_contains_the_health_of_the_other_services(self):
        self.start()
        library = self.library()
        with self.assertRaises(errors.NotRunningError) as failed:
            library.health()
        self.assertEqual(failed.exception.data["health"], {"catalog": {"status": "ok"}})


if __name__ == "__main__":
    unittest.main()
