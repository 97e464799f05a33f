"""Tests of requests that are repeated, with services in threads of this program that are unavailable, stop or end."""

import json
import tempfile
import threading
import time
import unittest
from unittest import mock

import zmq

from safelight import Library, errors
from safelight.changing import upload_with_digest
from safelight.instances import READS, TRANSACTIONS
from safelight.transport import Reply, Service

STOPPING = {"name": "interrupted", "message": "the service is stopping; send the request again",
            "data": {"isStopping": True}}


class ScriptedService:
    """A service that returns or raises the given replies, and records the requests."""

    def __init__(self, *replies):
        self.replies = list(replies)
        self.requests = []

    def request(self, method, params=None, attachments=(), deadline=30.0, on_notification=None):
        self.requests.append((method, params, deadline))
        if len(self.requests) > 1000:
            raise AssertionError(f"{method} is repeated without end")
        reply = self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]
        if isinstance(reply, Exception):
            raise reply
        return Reply(reply, [])


class Clock:
    """The time of a test, which goes on while the program sleeps."""

    def __init__(self):
        self.now = 1000.0

    def sleep(self, seconds):
        self.now += seconds

    def patched(self):
        return mock.patch.multiple("time", monotonic=lambda: self.now, sleep=self.sleep)


def library_of(**services):
    library = Library("/nonexistent")
    for name, service in services.items():
        setattr(library, name, service)
    return library


class StoppingServiceTests(unittest.TestCase):
    def test_the_error_of_a_stopping_service_is_temporary_and_a_decision_is_not(self):
        for data, is_temporary in [
            ({"isStopping": True}, True), ({}, False), ({"question": "q1"}, False), ({"isReplaced": True}, False),
        ]:
            error = errors.make_error("user_cancelled", "", data=data)
            self.assertIsInstance(error, errors.UserCancelledError)
            self.assertEqual((data, error.is_temporary), (data, is_temporary))

    def test_a_request_is_repeated_after_its_service_stopped(self):
        catalog = ScriptedService(errors.make_error(**STOPPING), errors.make_error(**STOPPING), {"state": "available"})
        with Clock().patched():
            self.assertEqual(library_of(catalog=catalog).status(after=3)["state"], "available")
        self.assertEqual(len(catalog.requests), 3)

    def test_a_transaction_that_waits_for_consent_is_repeated_and_one_that_was_declined_is_not(self):
        catalog = ScriptedService(errors.make_error(**STOPPING), {"placeholders": {}})
        with Clock().patched(), library_of(catalog=catalog).changing(deadline=600) as changes:
            changes.trash("a1")
        first, second = catalog.requests
        self.assertEqual(first[1], second[1])
        catalog = ScriptedService(errors.UserCancelledError(data={"question": "q1"}))
        with self.assertRaises(errors.UserCancelledError), library_of(catalog=catalog).changing() as changes:
            changes.trash("a1")
        self.assertEqual(len(catalog.requests), 1)

    def test_an_upload_begins_again_after_any_error_of_a_restarting_catalog(self):
        for error in [
            errors.make_error(**STOPPING), errors.BusyError(data={"isStopping": True}), errors.UnavailableError(),
            errors.ConnectionLostError(),
        ]:
            begun = {"upload": "u1", "chunkBytes": 4}
            catalog = ScriptedService(begun, error, begun, {}, {"upload": "u2"})
            with Clock().patched():
                upload, _ = upload_with_digest(library_of(catalog=catalog), b"abc")
            self.assertEqual((error.name, upload, len(catalog.requests)), (error.name, "u2", 5))

    def test_an_upload_waits_for_an_unavailable_catalog_as_long_as_other_requests(self):
        clock = Clock()
        catalog = ScriptedService(errors.UnavailableError())
        with clock.patched(), self.assertRaises(errors.UnavailableError):
            upload_with_digest(library_of(catalog=catalog), b"abc")
        self.assertLess(clock.now - 1000, 31)


class UnlimitedRequestTests(unittest.TestCase):
    """Requests that may download originals have no deadline at the service."""

    def test_a_request_waits_for_an_unavailable_service_until_the_deadline(self):
        for request, seconds in [
            (lambda library: library.thumbnail("a1", 200, network_access_allowed=True), 30),
            (lambda library: library.edit(["a1"], exposure=1, deadline=60, network_access_allowed=True), 60),
        ]:
            clock = Clock()
            service = ScriptedService(errors.UnavailableError())
            with clock.patched(), self.assertRaises(errors.UnavailableError):
                request(library_of(thumbnailer=service, editor=service))
            self.assertTrue(seconds - 2 <= clock.now - 1000 <= seconds, clock.now)
            self.assertEqual({deadline for _, _, deadline in service.requests}, {float("inf")})

    def test_the_deadline_starts_again_after_a_service_has_worked_for_a_long_time(self):
        clock = Clock()

        class Restarting(ScriptedService):
            def request(self, *arguments):
                # Away for 20 seconds, then it works on the request for two hours, and so on.
                clock.now += 7200 if len(self.requests) % 20 == 19 else 0
                return super().request(*arguments)

        away = [errors.UnavailableError()] * 19
        replies = [*away, errors.ConnectionLostError(), *away, errors.ConnectionLostError(), {}]
        service = Restarting(*replies)
        with clock.patched():
            library_of(thumbnailer=service).image_data("a1", network_access_allowed=True)
        self.assertEqual(len(service.requests), len(replies))

    def test_a_request_ends_if_the_catalog_of_its_service_does_not_answer(self):
        clock = Clock()

        class Waiting(ScriptedService):
            def request(self, *arguments):
                clock.now += 40
                return super().request(*arguments)

        service = Waiting(errors.DeadlineExceededError())
        with clock.patched(), self.assertRaises(errors.DeadlineExceededError):
            library_of(thumbnailer=service).image_data("a1", network_access_allowed=True)
        self.assertEqual(len(service.requests), 2)

    def test_a_request_ends_at_the_deadline_if_its_connection_is_lost_repeatedly(self):
        clock = Clock()
        service = ScriptedService(errors.ConnectionLostError())
        with clock.patched(), self.assertRaises(errors.ConnectionLostError):
            library_of(thumbnailer=service).image_data("a1", network_access_allowed=True)
        self.assertLessEqual(clock.now - 1000, 30)


class CallTests(unittest.TestCase):
    def call(self, method, *replies, **params):
        service = ScriptedService(*replies)
        library = library_of(catalog=service, editor=service, thumbnailer=service, broker=service)
        try:
            with Clock().patched():
                library.call(method, params)
        except errors.SafelightError as error:
            return service.requests, error.name
        return service.requests, None

    def test_a_change_is_repeated_under_one_transaction(self):
        for method in TRANSACTIONS:
            (first, second), error = self.call(method, errors.ConnectionLostError(), {})
            self.assertIsNone(error)
            self.assertTrue(first[1]["transaction"])
            self.assertEqual((first[1], first[1]["client"]), (second[1], "python"))
            requests, _ = self.call(method, {}, transaction="mine", client="me")
            self.assertEqual(requests[0][1], {"transaction": "mine", "client": "me"})

    def test_a_read_is_repeated_with_the_same_parameters(self):
        for method in READS:
            requests, error = self.call(method, errors.ConnectionLostError(), {}, a=1)
            self.assertEqual((method, error, [params for _, params, _ in requests]), (method, None, [{"a": 1}] * 2))

    def test_other_methods_are_repeated_only_if_they_were_certainly_not_carried_out(self):
        methods = ["jobs.create", "upload.append", "transient.create", "resource.export", "storage.keep", "new.one"]
        for method in methods:
            for lost in [errors.ConnectionLostError(), errors.DeadlineExceededError(), errors.make_error(**STOPPING)]:
                requests, error = self.call(method, lost, {})
                self.assertEqual((method, len(requests), error), (method, 1, lost.name))
            for unsent in [errors.BusyError(), errors.UnavailableError(data={"isUnsent": True})]:
                requests, error = self.call(method, unsent, {})
                self.assertEqual((method, len(requests), error), (method, 2, None))

    def test_the_error_of_a_service_that_was_reached_before_is_temporary_and_unsent(self):
        service = Service(zmq.Context.instance(), "ipc:///nonexistent/catalog.sock")
        with self.assertRaises(errors.NotRunningError) as never:
            service.request("health")
        service._was_reached = True
        with self.assertRaises(errors.UnavailableError) as gone:
            service.request("health")
        self.assertEqual((never.exception.is_temporary, gone.exception.is_temporary, gone.exception.is_unsent),
                         (False, True, True))


class EndingEditor:
    """An editor that ends after some progress of its first request. Another editor answers the next request."""

    def __init__(self, folder):
        self.address = f"ipc://{folder}/editor.sock"
        self.requests = []
        self.may_end, self.may_start, self.is_over = (threading.Event() for _ in range(3))
        self.context = zmq.Context()
        router = self.context.socket(zmq.ROUTER)
        router.bind(self.address)
        self.thread = threading.Thread(target=self.run, args=(router,))
        self.thread.start()

    def run(self, router):
        self.answer(router, method="edits.progress", params={"done": 1, "failed": 0, "total": 2})
        self.may_end.wait(20)
        self.context.destroy(0)
        self.may_start.wait(20)
        self.context = zmq.Context()
        router = self.context.socket(zmq.ROUTER)
        router.bind(self.address)
        self.answer(router, result={"sequence": 7})
        self.is_over.wait(20)
        self.context.destroy(0)

    def answer(self, router, **message):
        if router.poll(20_000):
            client, frame = router.recv_multipart()
            request = json.loads(frame)
            self.requests.append(request["params"])
            # A notification names its request in the parameters.
            message.get("params", message)["id"] = request["id"]
            router.send_multipart([client, json.dumps(message).encode()])


class EndingServiceTests(unittest.TestCase):
    def edit(self, **options):
        """Returns the requests and the outcome of an edit whose editor ends while its progress is handled."""
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        editor = EndingEditor(folder.name)
        library = Library(folder.name)
        pause = time.sleep

        def progress(_):
            editor.may_end.set()
            (connection,) = library.editor._connections
            end = time.monotonic() + 20
            while connection.socket.poll(0, zmq.POLLOUT) and time.monotonic() < end:
                pause(0.01)

        def sleep(seconds):
            editor.may_start.set()
            pause(seconds)

        try:
            with mock.patch("time.sleep", sleep), mock.patch("safelight.transport.SEND_TIMEOUT", 100):
                outcome = library.edit(["a1"], exposure=0.5, progress=progress, deadline=20, **options)
        finally:
            library.close()
            for event in (editor.may_end, editor.may_start, editor.is_over):
                event.set()
            editor.thread.join()
        return editor.requests, outcome

    def test_an_edit_whose_service_is_killed_during_its_progress_is_repeated_under_its_transaction(self):
        for options in [{}, {"network_access_allowed": True}, {"transaction": "mine"}]:
            (first, second), outcome = self.edit(**options)
            self.assertEqual((outcome.sequence, first["transaction"]), (7, second["transaction"]))


if __name__ == "__main__":
    unittest.main()
