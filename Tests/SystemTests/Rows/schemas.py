"""The JSON Schemas of rpc.discover against real messages, by the package jsonschema: every notification of every
method, and every kind of message of every topic of the feed. A member that its schema does not describe is a problem
too."""

import collections
import time

import jsonschema

from rows import *

documents = {name: call(name, "rpc.discover") for name in ("catalog", "thumbnailer", "editor", "change-broker")}
notifications = {
    one["name"]: (one["params"], document)
    for document in documents.values()
    for method in document["methods"]
    for one in method.get("x-notifications", [])
}
topics = {one["topic"]: one["message"] for one in documents["change-broker"]["x-topics"]}
seen = collections.Counter()
mismatches = []
validators = {}


def validator(name, schema, document):
    """Returns a validator that also refuses members that the schema does not name."""
    if name not in validators:
        whole = {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "allOf": [schema],
            "unevaluatedProperties": False,
            "components": document["components"],
        }
        jsonschema.Draft202012Validator.check_schema(schema)
        validators[name] = jsonschema.Draft202012Validator(whole)
    return validators[name]


def problems(name, schema, document, message):
    found = validator(name, schema, document).iter_errors(message)
    return [f"{name}{error.json_path}: {error.message[:500]}" for error in found]


def family(topic):
    """Returns `asset.<id>` for the topic of an asset."""
    kind = topic.split(".")[0]
    return next(name for name in topics if name.split(".")[0] == kind)


def kind_of(topic, message):
    """Returns the kinds of messages that a topic has."""
    if message.get("truncated"):
        return "truncated"
    if topic.startswith("edit."):
        change = message["change"]
        return "refused" if change["state"] == "applied" and "errorName" in change else change["state"]
    if message.get("objectWasDeleted"):
        return "deleted"
    return "whole"


def validate_message(topic, message):
    mismatches.extend(problems(family(topic), topics[family(topic)], documents["change-broker"], message))
    # A message matches the schema of its own topic only.
    for other in ("head", "changes", "fetch.<observation>"):
        if family(topic) != other and not message.get("truncated"):
            assert problems(other, topics[other], documents["change-broker"], message), f"{topic} passes as {other}"
    seen[family(topic), kind_of(topic, message)] += 1


def validate_notification(message):
    schema, document = notifications[message["method"]]
    mismatches.extend(problems(message["method"], schema, document, message["params"]))
    seen[message["method"]] += 1


def notes(service, method, expected, attachments=(), until_reply=True, **params):
    """Sends a request, and validates its notifications until the reply or, for a stream, the expected one."""
    other = Client()
    number = other.send(service, method, attachments, credit=32 << 20, **params)
    before = seen[expected]
    while True:
        message, _ = other.receive(service)
        if "method" not in message:
            assert "result" in message, (method, message)
            break
        equal(message["params"]["id"], number)
        validate_notification(message)
        if seen[expected] > before and not until_reply:
            break
    other.close()
    assert seen[expected] > before, f"{method} sent no {expected}"


def notifications_of_streams():
    start = call("catalog", "changes.token")["token"]
    photos = [import_file(f"{number}.jpg") for number in range(1, 8)]
    big = perform({"type": "asset.create", "ref": "a", "resources": [
        {"path": f"{os.environ['FILES']}/big.jpg"}]})["placeholders"]["a"]
    notes("catalog", "changes.follow", "changes.records", until_reply=False, token=start)
    notes("change-broker", "feed.follow", "feed.records", until_reply=False, token=start)
    notes("change-broker", "feed.follow", "feed.progress", until_reply=False)
    notes("catalog", "fetch.keys", "fetch.keys", fetch={})
    notes("catalog", "resource.read", "resource.chunk", asset=photos[0])
    notes("catalog", "library.backup", "library.progress", target=os.environ["SAFELIGHT_RUN"] + "/backup")
    notes("catalog", "library.rescan", "library.progress", root=os.environ["FILES"])
    # A smaller cached image is sent at once.
    small, large = ({"width": side, "height": side} for side in (400, 900))
    call("thumbnailer", "image.request", asset=big, targetSize=small, deliveryMode="highQualityFormat")
    notes("thumbnailer", "image.request", "image.degraded", asset=big, targetSize=large)
    notes("thumbnailer", "image.data", "image.chunk", asset=big)
    list = {"version": 1, "operations": [{"operation": "exposure", "value": 0.1}]}
    notes("editor", "edits.apply", "edits.progress", assets=photos[:3], adjustments=list)
    notes("editor", "edits.copy", "edits.progress", **{"from": photos[0]}, to=photos[3:6])
    # Only a catalog with an object store sends resource.progress: storage.py validates it.
    equal(sorted(set(notifications) - set(seen)), ["resource.progress"])
    equal(mismatches, [])


def messages_of_the_feed():
    photos = [import_file(f"{number}.jpg") for number in range(11, 31)]
    named = {"predicate": "title == 'Album of 7000'"}
    large = call("catalog", "fetch.collections", fetch=named)["collections"][0]["id"]
    by_rating = call("change-broker", "fetch.observe", fetch={"predicate": "rating == 3"})
    shelf = perform({"type": "list.create", "ref": "l", "title": "Shelf"})["placeholders"]["l"]
    perform({"type": "list.update", "id": shelf, "edits": [{"op": "add", "members": [large]}]})
    call("change-broker", "fetch.observe", fetch={"kind": "assets", "in": shelf})
    feed = Subscription("")
    created = perform(
        {"type": "list.create", "ref": "l", "title": "Trips"},
        {"type": "collection.create", "ref": "c", "title": "Alps", "add": photos[:2], "parent": {"ref": "l"}},
    )
    folder, album = created["placeholders"]["l"], created["placeholders"]["c"]
    call("change-broker", "fetch.observe", fetch={"in": album})
    perform({"type": "asset.update", "id": photos[0], "set": {"rating": 3, "caption": "x"}, "addKeywords": ["k"]})
    data = {"formatIdentifier": "org.example", "formatVersion": "1", "attachment": 1}
    request = {"type": "asset.edit", "id": photos[1], "render": {"attachment": 0}, "adjustmentData": data}
    perform(request, attachments=[file("31.jpg"), b"data"])
    perform({"type": "collection.update", "id": album, "title": "Alpes", "add": [photos[2]], "remove": [photos[0]]})
    perform({"type": "list.update", "id": folder, "title": "Voyages"})
    perform({"type": "collection.delete", "ids": [album]})
    perform({"type": "list.delete", "ids": [folder]})
    perform({"type": "asset.trash", "ids": [photos[3]]})
    perform({"type": "asset.delete", "ids": [photos[3]]})
    # Above 256 KiB: a record of long captions, and an album of 7,000 that leaves a folder.
    for letter in "\u00e9\u00e8":
        perform(*[{"type": "asset.update", "id": one, "set": {"caption": letter * 4000}} for one in photos[4:]])
    perform({"type": "list.update", "id": shelf, "edits": [{"op": "remove", "members": [large]}]})

    call("catalog", "grants.approve", identity="uid:54321", purpose="schemas")
    call("catalog", "grants.limit", identity="uid:54321", assets=photos[4:6])

    push = context.socket(zmq.PUSH)
    push.linger = 0
    push.connect(address("edits"))

    def publish(id, asset, value):
        list = {"version": 1, "operations": [{"operation": "exposure", "value": value}]}
        params = {"id": id, "asset": asset, "adjustments": list}
        push.send_json({"jsonrpc": "2.0", "method": "edits.publish", "params": params})

    publish("good", photos[1], 0.2)
    publish("bad", photos[1], 1000)
    expected = {
        ("changes", "whole"), ("changes", "truncated"), ("asset.<id>", "whole"), ("asset.<id>", "deleted"),
        ("collection.<id>", "whole"), ("collection.<id>", "deleted"), ("list.<id>", "whole"), ("list.<id>", "deleted"),
        ("edit.<id>", "accepted"), ("edit.<id>", "applied"), ("edit.<id>", "failed"), ("edit.<id>", "refused"),
        ("fetch.<observation>", "whole"), ("fetch.<observation>", "deleted"), ("fetch.<observation>", "truncated"),
        ("head", "whole"), ("grants", "whole"), ("availability", "whole"),
    }
    is_published_again = False
    end = time.monotonic() + 60
    while not expected <= set(seen):
        assert time.monotonic() < end, f"never seen: {sorted(expected - set(seen))}"
        validate_message(*feed.receive())
        if seen["edit.<id>", "applied"] and not is_published_again:
            is_published_again = True
            publish("good", photos[1], 0.3)
    # Without an object store there are no jobs: jobs.py has their messages.
    equal({name for name, _ in expected} | {"jobs"}, set(topics))
    # The same records, read from the history.
    schema = {"$ref": "#/components/schemas/ChangeRecord"}
    token = by_rating["token"]
    while True:
        page = call("change-broker", "feed.since", token=token)
        for record in page["records"]:
            mismatches.extend(problems("record", schema, documents["change-broker"], record))
        token = page["token"]
        if not page.get("hasMore"):
            break
    push.close()
    equal(mismatches, [])


if __name__ == "__main__":
    run(notifications_of_streams, messages_of_the_feed)
