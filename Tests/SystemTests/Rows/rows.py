"""Code that the test scripts of this folder share: requests and subscriptions with pyzmq, and the report of each part.

A script defines parts, functions that assert the documented behaviour, and passes them to `run`, which prints one
line of JSON for each: its name and, if it failed, the problem.
"""

import json
import os
import sys
import traceback

import zmq

context = zmq.Context.instance()


class Refused(Exception):
    """The error response of a request. `name` is its name in the protocol."""

    def __init__(self, error):
        super().__init__(f'{error["data"]["name"]}: {error["message"]}')
        self.name = error["data"]["name"]
        self.code = error["code"]
        self.data = error["data"]
        self.message = error["message"]


def file(name):
    """Returns the bytes of a file that the test has written."""
    with open(f"{os.environ['FILES']}/{name}", "rb") as opened:
        return opened.read()


def address(name):
    return f"ipc://{os.environ['SAFELIGHT_RUN']}/{name}.sock"


class Client:
    """One connection to each service. Each object has connections of its own."""

    def __init__(self):
        self.sockets = {}
        self.last = 0
        self.notifications = []

    def socket(self, service):
        if service not in self.sockets:
            socket = context.socket(zmq.DEALER)
            socket.linger = 0
            socket.rcvtimeo = 30_000
            socket.connect(address(service))
            self.sockets[service] = socket
        return self.sockets[service]

    def send(self, service, method, attachments=(), **params):
        """Sends a request, and returns its id."""
        self.last += 1
        request = {"jsonrpc": "2.0", "id": self.last, "method": method, "params": params}
        self.socket(service).send_multipart([json.dumps(request).encode(), *attachments])
        return self.last

    def receive(self, service):
        """Returns the next message of a service and its attachments."""
        message, *attachments = self.socket(service).recv_multipart()
        return json.loads(message), attachments

    def call(self, service, method, attachments=(), **params):
        """Returns the result, and the attachments if there are any. Stores the notifications before it."""
        number = self.send(service, method, attachments, **params)
        self.notifications = []
        while True:
            message, frames = self.receive(service)
            if "method" in message:
                self.notifications.append((message, frames))
            elif message["id"] == number:
                break
        if "error" in message:
            raise Refused(message["error"])
        return (message["result"], frames) if frames else message["result"]

    def refusal(self, *arguments, **params):
        """Returns the name of the error of a request, or None."""
        try:
            self.call(*arguments, **params)
        except Refused as error:
            return error.name

    def close(self):
        for socket in self.sockets.values():
            socket.close()


class Subscription:
    """A SUB socket that receives the given topics. It is subscribed when it is created."""

    def __init__(self, *topics):
        self.socket = context.socket(zmq.SUB)
        self.socket.rcvtimeo = 30_000
        for topic in [*topics, "head"]:
            self.socket.subscribe(topic)
        self.socket.connect(address("feed"))
        # The broker sends a head to each new subscriber of head, whose other subscriptions it has received before.
        while self.socket.recv_multipart()[0] != b"head":
            pass

    def receive(self):
        topic, body = self.socket.recv_multipart()
        return topic.decode(), json.loads(body)

    def messages_through(self, token):
        """Returns the messages that were published up to a token, as pairs of topic and message."""
        sequence = int(token.rsplit(".")[-1])
        found = []
        while True:
            topic, message = self.receive()
            if topic != "head":
                found.append((topic, message))
            elif message["sequence"] >= sequence:
                return found


client = Client()
call, refusal = client.call, client.refusal


def perform(*requests, attachments=(), **params):
    return call("catalog", "changes.perform", attachments, requests=list(requests), **params)


def create(name, ref="a", **more):
    request = {"type": "asset.create", "ref": ref, "resources": [{"attachment": 0}], **more}
    return perform(request, attachments=[file(name)])


def import_file(name, **more):
    """Imports a file, and returns the identifier of its asset."""
    return create(name, **more)["placeholders"]["a"]


def assets(**fetch):
    return call("catalog", "fetch.assets", fetch={"kind": "assets", **fetch})["assets"]


def ids(**fetch):
    return [asset["id"] for asset in assets(**fetch)]


def asset(id):
    return assets(ids=[id])[0]


def smart_album(subtype):
    """Returns the identifier of a smart album."""
    fetch = {"kind": "collections", "type": "smartAlbum", "subtype": subtype}
    found = call("catalog", "fetch.collections", fetch=fetch)["collections"]
    return found[0]["id"] if found else None


def equal(found, expected):
    assert found == expected, f"{found} is not {expected}"


def run(*parts):
    """Runs each part and prints its outcome. Names on the command line select some."""
    for part in parts:
        if len(sys.argv) > 1 and part.__name__ not in sys.argv[1:]:
            continue
        line = {"part": part.__name__}
        try:
            part()
        except Exception:
            line["problem"] = traceback.format_exc()
        print(json.dumps(line), flush=True)
