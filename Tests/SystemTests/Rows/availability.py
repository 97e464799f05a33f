"""A library that cannot be used for a while (T-42): its folder missing, its disk read-only or full, its database
locked.

`library.status` and the topic `availability` report each cause, every request that it affects has the error of the
cause, and everything works again when the cause has ended, with the same processes.
"""

import errno
import fcntl
import os
import sqlite3
import subprocess
import time

from rows import (
    Client, Refused, Subscription, assets, call, client, create, equal, file, import_file, perform, refusal, run,
)

LIBRARY = os.environ["SAFELIGHT_LIBRARY"]
DISK = os.path.dirname(LIBRARY)
SIZE = {"width": 48, "height": 48}
NOTHING = {"version": 1, "operations": []}


class Topic:
    """The topic `availability`, and the statuses that it has published."""

    def __init__(self):
        self.subscription = Subscription("availability")
        self.since = 0

    def until(self, state, seconds=20):
        """Returns the message of a state, which is the status that the catalog has too."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            topic, message = self.subscription.receive()
            if topic != "availability":
                continue
            assert message["since"] >= self.since, (message, self.since)
            self.since = message["since"]
            if message["state"] == state:
                equal(call("catalog", "library.status"), message)
                return message
        raise AssertionError(f"{state} was not published within {seconds} s; {call('catalog', 'library.status')}")


def check_status(message, state, name, code, readable, writable):
    equal((message["state"], message["isReadable"], message["isWritable"]), (state, readable, writable))
    problem = message["problems"][0]
    equal((problem["state"], problem["name"], problem["code"]), (state, name, code))
    assert problem["message"], message


def reading(id):
    """Returns requests to each service that read the library. The thumbnailer has not cached the requested image."""
    return [
        ("catalog", "fetch.assets", {"fetch": {"kind": "assets"}}),
        ("catalog", "fetch.counts", {"fetches": [{"kind": "assets"}]}),
        ("catalog", "fetch.collections", {"fetch": {"kind": "collections"}}),
        ("catalog", "fetch.lists", {"fetch": {"kind": "lists"}}),
        ("catalog", "fetch.objects", {"fetch": {"kind": "assets"}, "at": [0]}),
        ("catalog", "fetch.find", {"fetch": {"kind": "assets"}, "ids": [id]}),
        ("catalog", "changes.token", {}),
        ("catalog", "changes.since", {}),
        ("catalog", "resource.read", {"asset": id}),
        ("catalog", "ids.toCloud", {"ids": [id]}),
        ("catalog", "edits.status", {"ids": ["e"]}),
        ("broker", "fetch.observe", {"fetch": {"kind": "assets", "predicate": "rating == 5"}}),
        ("thumbnailer", "image.request", {"asset": id, "targetSize": {"width": 31, "height": 31}}),
        ("thumbnailer", "image.data", {"asset": id}),
        ("editor", "editing.begin", {"asset": id}),
        ("editor", "edits.preview", {"asset": id, "adjustments": NOTHING}),
    ]


def writing(id):
    """Returns requests that change the library."""
    return [
        ("catalog", "changes.perform", {"requests": [{"type": "asset.update", "id": id, "set": {"rating": 1}}]}),
        ("catalog", "upload.begin", {}),
        ("catalog", "grants.approve", {"identity": "key:nobody"}),
        ("editor", "edits.apply", {"asset": id, "adjustments": {
            "version": 1, "operations": [{"operation": "exposure", "value": 0.5}]}}),
    ]


def refused(requests, name):
    service = {"broker": "change-broker"}
    for owner, method, params in requests:
        try:
            found = call(service.get(owner, owner), method, **params)
            raise AssertionError(f"{method} was answered: {found}")
        except Refused as error:
            equal((method, error.name), (method, name))


def works(id, rating):
    """Checks that the library can be read and changed, and that nothing is lost."""
    perform({"type": "asset.update", "id": id, "set": {"rating": rating}})
    found = {asset["id"]: asset for asset in assets()}
    equal(found[id]["rating"], rating)
    image, frames = call("thumbnailer", "image.request", asset=id, targetSize={"width": 30 - rating, "height": 30})
    assert frames[0]
    result, frames = call("catalog", "resource.read", asset=id)
    assert frames[0]
    call("editor", "edits.preview", asset=id, adjustments=NOTHING)
    # An observed fetch continues.
    observed = call("change-broker", "fetch.observe", fetch={"kind": "assets"})
    equal(observed["count"], len(found))


def until_delivered(id, seconds=20):
    end = time.monotonic() + seconds
    while True:
        try:
            return call("thumbnailer", "image.request", asset=id, targetSize=SIZE)
        except Refused:
            if time.monotonic() > end:
                raise
            time.sleep(0.1)


def while_away(topic, id, state, name, code, leave, back):
    """Makes the library unavailable, and then available again."""
    before = call("catalog", "changes.token")["token"]
    leave()
    check_status(topic.until(state), state, name, code, False, False)
    refused(reading(id) + writing(id), name)
    equal(call("catalog", "health")["isHealthy"], False)
    # What is in memory is not older than the library, and is delivered, unless the feed is silent for a short time.
    until_delivered(id)
    # A client that waits for the next status receives it.
    waiting = Client()
    status = call("catalog", "library.status")
    waiting.send("catalog", "library.status", after=status["since"])
    back()
    message, _ = waiting.receive("catalog")
    equal(message["result"]["state"], "available")
    waiting.close()
    available = topic.until("available")
    equal((available["isReadable"], available["isWritable"], available.get("problems", [])),
          (True, True, []))
    equal(call("catalog", "changes.token")["token"], before)
    equal(call("catalog", "health")["isHealthy"], True)


def folder_renamed_away():
    topic = Topic()
    topic.until("available")
    id = import_file("1.jpg")
    call("thumbnailer", "image.request", asset=id, targetSize=SIZE)
    aside = LIBRARY + ".aside"
    while_away(topic, id, "relinquished", "library_relinquished", 3142,
               lambda: os.rename(LIBRARY, aside), lambda: os.rename(aside, LIBRARY))
    works(id, 1)


def another_library_is_being_restored():
    """Another library is restored into the folder, which another program has locked meanwhile."""
    topic = Topic()
    id = import_file("2.jpg")
    call("thumbnailer", "image.request", asset=id, targetSize=SIZE)
    aside = LIBRARY + ".aside"
    locked = []

    def leave():
        os.rename(LIBRARY, aside)
        os.mkdir(LIBRARY)
        locked.append(open(f"{LIBRARY}/lock", "w"))
        fcntl.flock(locked[0], fcntl.LOCK_EX)

    def back():
        locked[0].close()
        os.unlink(f"{LIBRARY}/lock")
        # Succeeds only if the catalog has stored no file in it.
        os.rmdir(LIBRARY)
        os.rename(aside, LIBRARY)

    while_away(topic, id, "switching", "library_switching", 3143, leave, back)
    works(id, 2)


def waiting_for_a_status():
    status = call("catalog", "library.status")
    equal((status["state"], status.get("problems", [])), ("available", []))
    begun = time.monotonic()
    # A request that names another status than the current one is answered at once.
    equal(call("catalog", "library.status", after=0), status)
    client.last += 1
    client.socket("catalog").send_json({
        "jsonrpc": "2.0", "id": client.last, "method": "library.status",
        "params": {"after": status["since"], "deadlineMs": 1000}})
    message, _ = client.receive("catalog")
    equal(message, {"jsonrpc": "2.0", "id": client.last, "result": status})
    assert time.monotonic() - begun < 10
    equal(refusal("change-broker", "feed.since", topics=["availability"]), "invalid_params")


def database_locked():
    topic = Topic()
    id = import_file("3.jpg")
    other = sqlite3.connect(f"{LIBRARY}/library.sqlite", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    refused(writing(id)[:1], "busy")
    check_status(topic.until("busy"), "busy", "busy", 9001, True, False)
    assert any(asset["id"] == id for asset in assets())
    other.execute("ROLLBACK")
    other.close()
    topic.until("available")
    works(id, 3)


def program(*arguments):
    subprocess.run(arguments, check=True)


def volume_unmounted():
    """The library is on a volume, which is mounted at two paths."""
    topic = Topic()
    id = import_file("1.jpg")
    call("thumbnailer", "image.request", asset=id, targetSize=SIZE)
    while_away(topic, id, "offline", "library_offline", 3114,
               lambda: program("umount", "-l", DISK), lambda: program("mount", "--bind", os.environ["VOLUME"], DISK))
    works(id, 1)


def filesystem_read_only():
    topic = Topic()
    id = import_file("2.jpg")
    # A bind mount becomes read-only while files are open. Only a kernel that found an error could do that to the
    # filesystem itself.
    program("mount", "--bind", DISK, DISK)
    program("mount", "-o", "remount,ro,bind", DISK)
    check_status(topic.until("readOnly"), "readOnly", "library_read_only", 9026, True, False)
    refused(writing(id), "library_read_only")
    equal(len([asset for asset in assets() if asset["id"] == id]), 1)
    call("thumbnailer", "image.request", asset=id, targetSize=SIZE)
    # Lazily, because the source file of a reply may still be open.
    program("umount", "-l", DISK)
    topic.until("available")
    works(id, 2)


def resources_not_writable():
    """The folder of the files cannot be written, not even by root."""
    topic = Topic()
    topic.until("available")
    id = import_file("1.jpg")
    folders = [f"{LIBRARY}/resources", f"{LIBRARY}/resources/.incoming"]
    program("chattr", "+i", *folders)
    try:
        try:
            create("big.jpg")
            raise AssertionError("a photo was stored in a folder that cannot be written")
        except Refused as error:
            equal(error.name, "library_read_only")
        check_status(topic.until("readOnly"), "readOnly", "library_read_only", 9026, True, False)
        refused(writing(id), "library_read_only")
        equal(len([asset for asset in assets() if asset["id"] == id]), 1)
    finally:
        program("chattr", "-i", *folders)
    topic.until("available")
    works(id, 1)


def disk_full():
    topic = Topic()
    id = import_file("3.jpg")
    filler = f"{DISK}/filler"
    with open(filler, "wb", buffering=0) as opened:
        try:
            while opened.write(bytes(4096)):
                pass
        except OSError as error:
            equal(error.errno, errno.ENOSPC)
    problem = None
    for number in range(3000):
        try:
            perform({"type": "asset.update", "id": id, "set": {"caption": f"{number}" * 100}})
        except Refused as error:
            problem = error
            break
    equal((problem.name, problem.code), ("not_enough_space", 3305))
    check_status(topic.until("full"), "full", "not_enough_space", 3305, True, False)
    try:
        create("big.jpg")
        raise AssertionError("a photo was stored on a full disk")
    except Refused as error:
        equal(error.name, "not_enough_space")
    equal(len([asset for asset in assets() if asset["id"] == id]), 1)
    os.unlink(filler)
    # The catalog reports it without a request.
    topic.until("available")
    works(id, 3)


run(folder_renamed_away, another_library_is_being_restored, waiting_for_a_status, database_locked, volume_unmounted,
    filesystem_read_only, resources_not_writable, disk_full)
