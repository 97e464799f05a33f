"""Tests of the editing requirements S-86, S-90, S-92 and D4: the version from which each kind of edit starts, and the
states of published edits."""

from concurrent.futures import ThreadPoolExecutor

from rows import *

SEPIA = {"version": 1, "operations": [{"operation": "sepia", "value": 0.7}]}
BRIGHTER = {"version": 1, "operations": [{"operation": "exposure", "value": 0.4}]}


def edit(id, name, format, data, **more):
    """Commits the pixels of a file as another program's edit."""
    request = {
        "type": "asset.edit",
        "id": id,
        "render": {"attachment": 0},
        "adjustmentData": {"formatIdentifier": format, "formatVersion": "1", "attachment": 1},
        **more,
    }
    return perform(request, attachments=[file(name), data])


def begin(id, *formats):
    """Returns the input of an edit: its version, its bytes, and the adjustment data or None."""
    handled = [{"formatIdentifier": format} for format in formats]
    result, attachments = call("editor", "editing.begin", asset=id, canHandle=handled, skipsDisplaySizeImage=True)
    data = result.get("adjustmentData")
    return result["version"], attachments[result["input"]], None if data is None else attachments[data]


def resource(id, type):
    """Returns the bytes of a resource, or None."""
    try:
        return call("catalog", "resource.read", asset=id, type=type)[1][0]
    except Refused as error:
        equal(error.name, "missing_resource")


def states(id):
    """Returns the bytes of the base, the current version and the adjustment data."""
    base = resource(id, "adjustmentBasePhoto") or resource(id, "photo")
    return base, resource(id, "fullSizePhoto"), resource(id, "adjustmentData")


def apply(id, adjustments, **more):
    return call("editor", "edits.apply", asset=id, adjustments=adjustments, **more)


def rendered(name_or_bytes, adjustments):
    """Returns the render of a list on a file that is imported as an original."""
    content = file(name_or_bytes) if isinstance(name_or_bytes, str) else name_or_bytes
    request = {"type": "asset.create", "ref": "a", "resources": [{"attachment": 0}], "ifDuplicate": "create"}
    copy = perform(request, attachments=[content])["placeholders"]["a"]
    apply(copy, adjustments)
    return resource(copy, "fullSizePhoto")


def version_that_an_edit_starts_from():
    photo, a, b = import_file("1.jpg"), "org.example.a", "org.example.b"
    original = file("1.jpg")
    # No edit: the original.
    equal(begin(photo, a), ("original", original, None))
    # A's edit of the original. A resumes it from the original, B starts from what is shown.
    edit(photo, "21.jpg", a, b"J by A")
    equal(begin(photo, a), ("original", original, b"J by A"))
    equal(begin(photo, b), ("current", file("21.jpg"), None))
    # B's edit of A's. B resumes it from A's, not from the original; A starts from what is shown.
    token = call("editor", "editing.begin", asset=photo, skipsInput=True, skipsDisplaySizeImage=True)["inputToken"]
    edit(photo, "22.jpg", b, b"J by B", inputToken=token)
    equal(begin(photo, b), ("previous", file("21.jpg"), b"J by B"))
    equal(begin(photo, a), ("current", file("22.jpg"), None))
    equal(states(photo), (file("21.jpg"), file("22.jpg"), b"J by B"))
    # B again: the base stays.
    handled = [{"formatIdentifier": b}]
    token = call("editor", "editing.begin", asset=photo, canHandle=handled, skipsInput=True,
                 skipsDisplaySizeImage=True)[0]["inputToken"]
    edit(photo, "23.jpg", b, b"J' by B", inputToken=token)
    equal(states(photo), (file("21.jpg"), file("23.jpg"), b"J' by B"))
    # Revert: no base, the original, no adjustment data.
    perform({"type": "asset.revert", "id": photo})
    equal(begin(photo, a, b), ("original", original, None))
    equal(states(photo), (original, None, None))


def own_edit_starts_from_what_is_shown():
    photo = import_file("2.jpg")
    edit(photo, "24.jpg", "org.example.a", b"A")
    apply(photo, SEPIA)
    base, current, _ = states(photo)
    assert base == file("24.jpg"), "another program's version is the base"
    assert current == rendered("24.jpg", SEPIA), "the operations apply to what was shown"
    apply(photo, BRIGHTER)
    equal(states(photo)[0] == base, True)
    assert states(photo)[1] == rendered("24.jpg", BRIGHTER), "the editor's own list is replaced"
    # The other program cannot read our data, and starts from what is shown.
    equal(begin(photo, "org.example.a")[0], "current")


def undo_brings_another_program_back():
    photo = import_file("3.jpg")
    edit(photo, "25.jpg", "org.example.a", b"A")
    edit(photo, "26.jpg", "org.example.b", b"B", inputToken=call(
        "editor", "editing.begin", asset=photo, skipsInput=True, skipsDisplaySizeImage=True)["inputToken"])
    apply(photo, SEPIA)
    sepia = states(photo)[1]
    call("editor", "edits.undo", asset=photo)
    equal(begin(photo, "org.example.b"), ("previous", file("25.jpg"), b"B"))
    equal(states(photo)[1] == file("26.jpg"), True)
    call("editor", "edits.undo", asset=photo, step=1)
    equal(begin(photo, "org.example.a"), ("original", file("3.jpg"), b"A"))
    call("editor", "edits.undo", asset=photo, step=3)
    equal(states(photo)[1] == sepia, True)
    call("editor", "edits.undo", asset=photo, step=0)
    equal(begin(photo)[0], "original")
    steps = call("editor", "edits.history", asset=photo)["steps"]
    equal([step["kind"] for step in steps], ["edit"] * 6 + ["revert"])


def two_edits_then_revert():
    photo = import_file("4.jpg")
    original = asset(photo)
    edit(photo, "27.jpg", "org.example.a", b"A")
    apply(photo, SEPIA)
    feed = Subscription(f"asset.{photo}")
    token = perform({"type": "asset.revert", "id": photo})["token"]
    # The earlier edits may be published only now.
    *_, (_, message) = feed.messages_through(token)
    assert message["assetContentChanged"] is True and message["objectWasDeleted"] is False
    _, current = call("thumbnailer", "image.data", asset=photo)
    equal((current[0] == file("4.jpg"), states(photo)[1:]), (True, (None, None)))
    now = asset(photo)
    equal((now["pixelWidth"], now["resources"]), (original["pixelWidth"], original["resources"]))
    # Nothing to discard.
    equal(perform({"type": "asset.revert", "id": photo})["isChanged"], False)


def videos_of_other_programs():
    request = {"type": "asset.create", "ref": "a", "resources": [{"attachment": 0, "type": "video"}]}
    video = perform(request, attachments=[file("1.mov")])["placeholders"]["a"]
    edit(video, "2.mov", "org.example.cut", b"cut")
    # No previous version is kept for a video; `previousAvailable` is false.
    handled = [{"formatIdentifier": "org.example.cut"}]
    found = call("editor", "editing.begin", asset=video, canHandle=handled, skipsInput=True,
                 skipsDisplaySizeImage=True)[0]
    equal((found["version"], found["previousAvailable"], found["formatIdentifier"]),
          ("current", False, "org.example.cut"))
    perform({"type": "asset.revert", "id": video})
    equal([one["type"] for one in asset(video)["resources"]], ["video"])
    equal(refusal("editor", "edits.undo", asset=video, step=1), "request_not_supported")


def an_applied_edit_is_never_called_failed():
    photo, other = import_file("5.jpg"), import_file("6.jpg")
    feed = Subscription("edit.once")
    push = context.socket(zmq.PUSH)
    push.linger = 0
    push.connect(address("edits"))

    def publish(asset, adjustments):
        params = {"id": "once", "asset": asset, "adjustments": adjustments}
        push.send_json({"jsonrpc": "2.0", "method": "edits.publish", "params": params})

    def next_state():
        while True:
            topic, message = feed.receive()
            if topic == "edit.once":
                return message["change"]

    publish(photo, BRIGHTER)
    equal([next_state()["state"], next_state()["state"]], ["accepted", "applied"])
    shown = resource(photo, "fullSizePhoto")
    # Other content under the same id is refused, and the edit keeps its state.
    publish(other, SEPIA)
    refused = next_state()
    equal((refused["state"], refused["errorName"]), ("applied", "id_reused"))
    status = call("catalog", "edits.status", ids=["once"])["edits"][0]
    equal((status["state"], status.get("errorName")), ("applied", None))
    equal((resource(photo, "fullSizePhoto") == shown, resource(other, "fullSizePhoto")), (True, None))
    push.close()


def own_writes_are_read_at_once():
    """S-90: every service answers with the state after an edit that was acknowledged, without atLeast."""
    photos = [import_file(name) for name in ("7.jpg", "8.jpg", "9.jpg")]
    size = {"width": 30, "height": 30}
    favourites = call("change-broker", "fetch.observe", fetch={"predicate": "isFavorite == TRUE"})
    questions = {
        "image.request": ("thumbnailer", {"targetSize": size, "deliveryMode": "highQualityFormat"}),
        "image.data": ("thumbnailer", {}),
        "edits.history": ("editor", {}),
        "editing.begin": ("editor", {"skipsInput": True, "skipsDisplaySizeImage": True}),
    }
    readers = {method: Client() for method in questions}
    old = []
    with ThreadPoolExecutor() as pool:

        def revision(method, photo):
            service, more = questions[method]
            answer = readers[method].call(service, method, asset=photo, **more)
            return (answer[0] if isinstance(answer, tuple) else answer)["contentRevision"]

        for round in range(40):
            photo = photos[round % 3]
            # The thumbnailer has the asset and its image in memory.
            revision("image.request", photo)
            if round % 4 == 3:
                perform({"type": "asset.revert", "id": photo})
            elif round % 4 == 0:
                apply(photo, {"version": 1, "operations": [{"operation": "exposure", "value": round / 100}]})
            else:
                edit(photo, f"{28 + round % 10}.jpg", "org.example.a", str(round).encode())
            found = {method: pool.submit(revision, method, photo) for method in questions}
            expected = asset(photo)["contentRevision"]
            old += [(round, method) for method in questions if found[method].result() != expected]
            isFavorite = round // 3 % 2 == 0
            before = ids(predicate="isFavorite == TRUE")
            perform({"type": "asset.update", "id": photo, "set": {"isFavorite": isFavorite}})
            expected = len(set(before) | {photo} if isFavorite else set(before) - {photo})
            details = call("change-broker", "fetch.details", observation=favourites["observation"],
                           token=favourites["token"])
            again = call("change-broker", "fetch.observe", fetch={"predicate": "isFavorite == TRUE"})
            old += [(round, name) for name, one in (("fetch.details", details), ("fetch.observe", again))
                    if one["count"] != expected]
    equal(old, [])


if __name__ == "__main__":
    run(
        version_that_an_edit_starts_from,
        own_edit_starts_from_what_is_shown,
        undo_brings_another_program_back,
        two_edits_then_revert,
        videos_of_other_programs,
        an_applied_edit_is_never_called_failed,
        own_writes_are_read_at_once,
    )
