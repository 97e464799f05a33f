"""Originals in remote storage (S-47, S-48, T-33, P-10, P-24), with the request log of the S3 server as the oracle."""

import hashlib
import json
import os
import time

import boto3
import botocore.config
import botocore.exceptions
import jsonschema
import zmq

from rows import (
    Client, Refused, address, asset, assets, call, client, context, create, equal, file, ids, import_file, perform,
    refusal, run, Subscription,
)

S3 = os.environ["S3"]
LIBRARY = os.environ["SAFELIGHT_LIBRARY"]


def requests(method=None):
    """Returns the requests that have reached the S3 server."""
    try:
        with open(f"{S3}/requests") as opened:
            found = [json.loads(line) for line in opened]
    except FileNotFoundError:
        return []
    return [one for one in found if method in (None, one["method"])]


def objects_read():
    """Returns the requests for the bytes of objects."""
    return [one for one in requests("GET") if "?" not in one["path"]]


def faults(**named):
    with open(f"{S3}/faults.new", "w") as opened:
        json.dump(named, opened)
    os.rename(f"{S3}/faults.new", f"{S3}/faults")


def until(what, condition, seconds=60, state=lambda: call("catalog", "storage.status")):
    end = time.monotonic() + seconds
    while True:
        found = condition()
        if found:
            return found
        assert time.monotonic() < end, f"not within {seconds} s: {what}; {state()}"
        time.sleep(0.05)


def path(digest):
    return f"{LIBRARY}/resources/{digest[:2]}/{digest[2:4]}/{digest}"


def uploaded():
    def is_done():
        status = call("catalog", "storage.status")
        return status["waitingCount"] == 0 and status["failedCount"] == 0 and status.get("problem") is None
    until("everything is uploaded", is_done)


def release(id):
    """Releases the local files of an asset, and checks that they are removed."""
    digest = asset(id)["resources"][0]["digest"]

    def is_gone():
        # The last request that used a file may have it open for a short time after its answer; then the file stays.
        call("catalog", "storage.keep", fetch={"kind": "assets", "ids": [id]}, keep=False)
        return not os.path.exists(path(digest))
    until(f"the file of {id} is released", is_gone)
    return digest


def remote(name):
    """Imports an asset whose original is then only at the store."""
    id = import_file(name)
    uploaded()
    release(id)
    return id


def progress(notifications):
    document = call("catalog", "rpc.discover")
    [schema] = [one["params"] for method in document["methods"] for one in method.get("x-notifications", [])
                if (method["name"], one["name"]) == ("resource.read", "resource.progress")]
    whole = {"allOf": [schema], "unevaluatedProperties": False, "components": document["components"]}
    found = [message["params"] for message, _ in notifications if message["method"] == "resource.progress"]
    for params in found:
        jsonschema.Draft202012Validator(whole).validate(params)
    return [params["progress"] for params in found]


def upload_release_and_read():
    data = file("one.jpg")
    id = import_file("one.jpg")
    uploaded()
    digest = asset(id)["resources"][0]["digest"]
    equal(digest, hashlib.sha256(data).hexdigest())
    assert any(digest in one["path"] for one in requests("PUT")), requests()
    # A local original: no progress, and no request to the store.
    before = len(requests())
    result, frames = call("catalog", "resource.read", asset=id, networkAccessAllowed=True)
    equal((frames[0], progress(client.notifications)), (data, []))
    equal(len(requests()), before)
    release(id)
    equal(len(objects_read()), 0)
    # Without network access: a named error, and no request reaches the store.
    before = len(requests())
    for method in ("resource.read", "resource.export", "resource.download"):
        try:
            call("catalog", method, asset=id)
            raise AssertionError(f"{method} was answered")
        except Refused as error:
            equal((error.name, error.code, error.data["isInCloud"]), ("network_access_required", 3164, True))
    equal(len(requests()), before)
    # With network access: progress, then the bytes, once.
    result, frames = call("catalog", "resource.read", asset=id, networkAccessAllowed=True)
    equal(frames[0], data)
    fractions = progress(client.notifications)
    assert fractions == sorted(fractions) and fractions[0] >= 0 and fractions[-1] == 1, fractions
    equal(len(objects_read()), 1)
    _, frames = call("catalog", "resource.read", asset=id)
    equal((frames[0], len(objects_read())), (data, 1))


def concurrent_requests_share_a_transfer():
    id = remote("two.jpg")
    before = len(objects_read())
    faults(delay=0.5)
    others = [Client() for _ in range(5)]
    for other in others:
        other.send("catalog", "resource.read", asset=id, networkAccessAllowed=True)
    for other in others:
        while True:
            message, frames = other.receive("catalog")
            if "method" not in message:
                break
        equal(frames[0], file("two.jpg"))
        other.close()
    faults()
    equal(len(objects_read()), before + 1)


def a_cancelled_download_leaves_no_file():
    id = remote("three.jpg")
    digest = asset(id)["resources"][0]["digest"]
    faults(slow=20)
    other = Client()
    number = other.send("catalog", "resource.read", asset=id, networkAccessAllowed=True)
    while True:
        message, _ = other.receive("catalog")
        assert message.get("method") == "resource.progress", message
        if 0.1 < message["params"]["progress"]:
            break
    other.socket("catalog").send_json({"jsonrpc": "2.0", "method": "rpc.cancel", "params": {"id": number}})
    while True:
        message, _ = other.receive("catalog")
        if "error" in message:
            break
    equal(message["error"]["data"]["name"], "user_cancelled")
    until("the partial file is gone", lambda: not os.listdir(f"{LIBRARY}/resources/.incoming"), 10)
    assert not os.path.exists(path(digest))
    faults()
    _, frames = call("catalog", "resource.read", asset=id, networkAccessAllowed=True)
    equal(frames[0], file("three.jpg"))
    other.close()


def faulty_stores_are_named_and_recover():
    id = remote("four.jpg")
    digest = asset(id)["resources"][0]["digest"]
    expected = {
        "store_busy": {"status": 503, "code": "SlowDown"},
        "access_denied": {"status": 403, "code": "SignatureDoesNotMatch"},
        "no_bucket": {"status": 404, "code": "NoSuchBucket"},
        "store_full": {"status": 507, "code": "InsufficientStorage"},
        "object_damaged": {"swap": True},
        "truncated": {"truncate": True},
    }
    for problem, fault in expected.items():
        faults(**fault)
        try:
            call("catalog", "resource.read", asset=id, networkAccessAllowed=True)
            raise AssertionError(f"answered in spite of {fault}")
        except Refused as error:
            if problem == "truncated":
                # Each attempt continues where the last one ended, so the transfer may still succeed.
                pass
            equal((error.name, error.code, error.data["problem"]), ("network_error", 3169, problem))
        assert not os.path.exists(path(digest)), fault
        assert not os.listdir(f"{LIBRARY}/resources/.incoming")
    faults()
    _, frames = call("catalog", "resource.read", asset=id, networkAccessAllowed=True)
    equal(frames[0], file("four.jpg"))


def uploads_wait_for_a_faulty_store_and_recover():
    expected = {
        "access_denied": {"status": 403, "code": "InvalidAccessKeyId"},
        "store_full": {"full": True},
        "store_busy": {"status": 503, "code": "SlowDown"},
        "no_bucket": {"status": 404, "code": "NoSuchBucket"},
    }
    for number, (problem, fault) in enumerate(expected.items()):
        faults(**fault)
        # Other bytes: some are appended to the photo.
        data = file("five.jpg") + bytes([number]) * 100
        perform({"type": "asset.create", "ref": "a", "resources": [{"attachment": 0}]}, attachments=[data])
        until(problem, lambda: call("catalog", "storage.status").get("problem") == problem)
        equal(call("catalog", "storage.status")["waitingCount"], 1)
        faults()
        uploaded()
    # A store whose clock is ahead: its time is used, and the difference is named.
    faults(skew=7200)
    request = {"type": "asset.create", "ref": "a", "resources": [{"attachment": 0}]}
    perform(request, attachments=[file("five.jpg") + b"x"])

    def is_done():
        status = call("catalog", "storage.status")
        return status["waitingCount"] == 0 and status.get("problem") == "clock_skew"
    until("uploaded in spite of the clock", is_done)
    faults()
    perform(request, attachments=[file("five.jpg") + b"y"])
    uploaded()


def deleted_assets_are_deleted_at_the_store():
    id = remote("five.jpg")
    digest = asset(id)["resources"][0]["digest"]
    perform({"type": "asset.delete", "ids": [id]})
    until("the object is deleted", lambda: any(digest in one["path"] for one in requests("DELETE")))


def job(number):
    [found] = call("catalog", "jobs.list", jobs=[number])["jobs"]
    return found


def ended(number):
    until(f"job {number} ends", lambda: job(number)["stateNumber"] >= 3)
    return job(number)


def jobs_are_kept_until_they_are_acknowledged():
    """T-34: states, types, the limit, acknowledging, one retry, cancelling, downloads."""
    id = import_file("one.jpg")
    created = call("catalog", "jobs.create", assets=[id])
    [new_job] = created["jobs"]
    equal((new_job["type"], new_job["typeNumber"], new_job["asset"], new_job["isRetried"]), ("upload", 0, id, False))
    equal(ended(new_job["id"])["state"], "succeeded")
    digest = asset(id)["resources"][0]["digest"]
    assert any(digest in one["path"] for one in requests("PUT"))
    # An ended job stays, and can neither be cancelled nor retried.
    for action in ("cancel", "retry"):
        equal(refused("catalog", "jobs.update", jobs=[new_job["id"]], action=action).name, "request_not_supported")
    equal([one["id"] for one in call("catalog", "jobs.list", action="acknowledge")["jobs"]], [new_job["id"]])
    # Fill to the limit: the next is refused as a whole; acknowledging one job frees capacity for one.
    capacity = call("catalog", "jobs.list")["capacity"]
    equal(capacity, 999)
    filled = call("catalog", "jobs.create", assets=[id] * capacity)
    equal((len(filled["jobs"]), filled["capacity"], filled["jobs"][0]["state"]), (999, 0, "succeeded"))
    error = refused("catalog", "jobs.create", assets=[id])
    equal((error.name, error.data["limit"]), ("limit_exceeded", 1000))
    equal(call("catalog", "jobs.update", jobs=[new_job["id"]], action="acknowledge")["capacity"], 1)
    equal(refused("catalog", "jobs.update", jobs=[new_job["id"]], action="acknowledge").name, "identifier_not_found")
    equal(refused("catalog", "jobs.create", assets=[id, id]).name, "limit_exceeded")
    equal(call("catalog", "jobs.list")["capacity"], 1)
    numbers = [one["id"] for one in call("catalog", "jobs.list", action="acknowledge")["jobs"]]
    equal(call("catalog", "jobs.update", jobs=numbers, action="acknowledge")["capacity"], 1000)
    # After a download has succeeded, the file is local.
    release(id)
    [new_job] = call("catalog", "jobs.create", assets=[id], type="downloadOnly")["jobs"]
    equal((new_job["typeNumber"], ended(new_job["id"])["state"]), (1, "succeeded"))
    assert os.path.exists(path(digest))
    call("catalog", "jobs.update", jobs=[new_job["id"]], action="acknowledge")
    # A job that fails can be retried once. The store returns wrong bytes.
    release(id)
    faults(swap=True)
    [new_job] = call("catalog", "jobs.create", assets=[id], type="downloadOnly")["jobs"]
    failed = ended(new_job["id"])
    equal((failed["state"], failed["stateNumber"], failed["problem"]), ("failed", 3, "object_damaged"))
    call("catalog", "jobs.update", jobs=[new_job["id"]], action="retry")
    equal((ended(new_job["id"])["state"], job(new_job["id"])["isRetried"]), ("failed", True))
    equal(refused("catalog", "jobs.update", jobs=[new_job["id"]], action="retry").name, "request_not_supported")
    faults()
    call("catalog", "jobs.update", jobs=[new_job["id"]], action="acknowledge")
    # While the store cannot be reached, the job does not fail. It is cancelled meanwhile.
    faults(status=503, code="SlowDown")
    [new_job] = call("catalog", "jobs.create", assets=[id], type="downloadOnly")["jobs"]
    until("the problem is known", lambda: call("catalog", "storage.status").get("problem") == "store_busy")
    equal(call("catalog", "jobs.update", jobs=[new_job["id"]], action="cancel")["jobs"][0]["state"], "cancelled")
    faults()
    equal(refused("catalog", "jobs.create", assets=["a" + "0" * 26]).name, "identifier_not_found")
    call("catalog", "jobs.update", jobs=[new_job["id"]], action="acknowledge")


def jobs_before_a_restart():
    """Creates jobs for uploads that cannot end yet."""
    faults(status=503, code="SlowDown")
    ids = [import_file(name) for name in ("two.jpg", "three.jpg")]
    call("catalog", "jobs.create", assets=ids)


def jobs_after_a_restart():
    """The jobs continue in a new process of the catalog."""
    numbers = [one["id"] for one in call("catalog", "jobs.list")["jobs"]]
    equal(len(numbers), 2)
    faults()
    equal({ended(number)["state"] for number in numbers}, {"succeeded"})
    for number in numbers:
        digest = job(number)["digest"]
        assert any(digest in one["path"] for one in requests("PUT")), digest


def refused(service, method, **params):
    """Returns the error of a request, with the notifications before it in the client."""
    try:
        call(service, method, **params)
    except Refused as error:
        return error
    raise AssertionError(f"{method} was answered")


def resources(id):
    return asset(id)["resources"]


def images_of_remote_originals():
    id = import_file("six.jpg")
    size = {"width": 300, "height": 300}
    larger = {"width": 450, "height": 450}
    call("thumbnailer", "image.request", asset=id, targetSize=size, deliveryMode="highQualityFormat")
    uploaded()
    equal(resources(id)[0].get("locallyAvailable"), None)
    release(id)
    equal(resources(id)[0]["locallyAvailable"], False)
    before = len(objects_read())
    # A rendition from before the release is still cached.
    result, _ = call("thumbnailer", "image.request", asset=id, targetSize=size, deliveryMode="highQualityFormat")
    equal((result["isCacheHit"], result["isDegraded"]), (True, False))
    # A rendition never replaces the requested image (P-10).
    error = refused("thumbnailer", "image.request", asset=id, targetSize=larger, deliveryMode="highQualityFormat")
    equal((error.code, error.data["isInCloud"], client.notifications), (3164, True, []))
    error = refused("thumbnailer", "image.data", asset=id)
    equal((error.code, error.data["isInCloud"], client.notifications), (3164, True, []))
    # Opportunistic: the local degraded image first, then the terminal message.
    error = refused("thumbnailer", "image.request", asset=id, targetSize=larger)
    equal((error.code, error.data["isInCloud"]), (3164, True))
    equal([message["method"] for message, _ in client.notifications], ["image.degraded"])
    equal(client.notifications[0][0]["params"]["isDegraded"], True)
    result, _ = call("thumbnailer", "image.request", asset=id, targetSize=larger, deliveryMode="fastFormat")
    equal(result["isDegraded"], True)
    # A store that does not run: a named error, no empty image.
    equal(len(objects_read()), before)
    faults(status=503, code="SlowDown")
    error = refused("thumbnailer", "image.data", asset=id, networkAccessAllowed=True)
    equal((error.name, error.code), ("network_error", 3169))
    faults()
    # With network access: progress, then the image in the size of the original.
    result, _ = call("thumbnailer", "image.request", asset=id, targetSize="max", resizeMode="none",
                     deliveryMode="highQualityFormat", networkAccessAllowed=True)
    fractions = progress(client.notifications)
    assert fractions == sorted(fractions) and fractions[0] >= 0 and fractions[-1] == 1, fractions
    equal((result["pixelWidth"], result["pixelHeight"]), (600, 400))
    result, frames = call("thumbnailer", "image.data", asset=id, networkAccessAllowed=True)
    equal((b"".join(frames), progress(client.notifications)), (file("six.jpg"), []))
    equal(resources(id)[0].get("locallyAvailable"), None)


def videos_of_remote_originals():
    resources = [{"type": "video", "path": f"{os.environ['FILES']}/film.mov"}]
    id = perform({"type": "asset.create", "ref": "a", "resources": resources})["placeholders"]["a"]
    uploaded()
    release(id)
    before = len(objects_read())
    size = {"width": 64, "height": 64}
    for method, params in (("video.playback", {}), ("image.frames", {"count": 2, "targetSize": size})):
        equal(refused("thumbnailer", method, asset=id, **params).code, 3164)
    equal(len(objects_read()), before)
    ticket = call("thumbnailer", "video.playback", asset=id, networkAccessAllowed=True)
    equal(progress(client.notifications)[-1], 1)
    _, (data,) = call("thumbnailer", "video.read", asset=id, stream=ticket["stream"], offset=0, length=1000)
    equal(len(data), min(1000, ticket["size"]))


def edits_of_remote_originals():
    id = import_file("eight.jpg")
    uploaded()
    release(id)
    before = len(objects_read())
    adjustments = {"version": 1, "operations": [{"operation": "exposure", "value": 0.5}]}
    for method, params in (("editing.begin", {}), ("edits.apply", {"adjustments": adjustments}),
                           ("edits.preview", {"adjustments": adjustments}), ("edits.compare", {})):
        error = refused("editor", method, asset=id, **params)
        equal((method, error.code, error.data["isInCloud"]), (method, 3164, True))
    equal(len(objects_read()), before)
    result, frames = call("editor", "editing.begin", asset=id, networkAccessAllowed=True)
    fractions = progress(client.notifications)
    assert fractions == sorted(fractions) and fractions[-1] == 1, fractions
    equal(frames[result["input"]], file("eight.jpg"))
    call("editor", "edits.apply", asset=id, adjustments=adjustments)
    result, _ = call("editor", "editing.begin", asset=id, networkAccessAllowed=True)
    equal(progress(client.notifications), [])


def is_progress():
    """Checks the progress of the last request: growing from 0 to 1."""
    fractions = progress(client.notifications)
    assert fractions and fractions == sorted(fractions) and fractions[0] >= 0 and fractions[-1] == 1, fractions


def streams_and_exports_of_remote_videos():
    """Each request is refused without network access, and downloads with it."""
    resources = [{"type": "video", "path": f"{os.environ['FILES']}/film.mov"}]
    id = perform({"type": "asset.create", "ref": "a", "resources": resources})["placeholders"]["a"]
    uploaded()
    ticket = call("thumbnailer", "video.playback", asset=id)
    for method, params in (
        ("image.frames", {"count": 2, "targetSize": {"width": 48, "height": 48}}),
        ("video.read", {"stream": ticket["stream"], "length": 500}),
        ("video.export", {"preset": "640x480"}),
    ):
        release(id)
        before = len(objects_read())
        error = refused("thumbnailer", method, asset=id, **params)
        equal((method, error.code, error.data["isInCloud"]), (method, 3164, True))
        equal(len(objects_read()), before)
        faults(status=503, code="SlowDown")
        error = refused("thumbnailer", method, asset=id, networkAccessAllowed=True, **params)
        equal((method, error.code, error.data["problem"]), (method, 3169, "store_busy"))
        faults()
        result = call("thumbnailer", method, asset=id, networkAccessAllowed=True, **params)
        is_progress()
        call("thumbnailer", method, asset=id, networkAccessAllowed=True, **params)
        equal(progress(client.notifications), [])
    # The export has the file open, so that it may be released meanwhile.
    export = call("thumbnailer", "video.export", asset=id, preset="960x540")
    release(id)
    while export["state"] in ("waiting", "running"):
        export = call("thumbnailer", "video.exportStatus", export=export["export"], wait=500)
    equal(export["state"], "done")


def edits_with_network_access():
    id, other = import_file("nine.jpg"), import_file("ten.jpg")
    uploaded()
    adjustments = {"version": 1, "operations": [{"operation": "exposure", "value": 0.5}]}
    more = {"version": 1, "operations": [{"operation": "contrast", "value": 0.2}]}
    call("editor", "edits.apply", asset=other, adjustments=more)
    uploaded()
    for method, params in (
        ("edits.preview", {"adjustments": adjustments}), ("edits.suggest", {}), ("edits.compare", {}),
        ("edits.describe", {"as": "convert", "adjustments": adjustments}),
        ("edits.apply", {"adjustments": adjustments}),
    ):
        release(id)
        before = len(objects_read())
        error = refused("editor", method, asset=id, **params)
        equal((method, error.code, error.data["isInCloud"]), (method, 3164, True))
        equal(len(objects_read()), before)
        call("editor", method, asset=id, networkAccessAllowed=True, **params)
        is_progress()
    # The same transaction with network access is the same edit.
    uploaded()
    release(id)
    named = {"asset": id, "adjustments": more, "transaction": "edit-1"}
    equal(refused("editor", "edits.apply", **named).code, 3164)
    first = call("editor", "edits.apply", networkAccessAllowed=True, **named)
    equal(call("editor", "edits.apply", **named)["token"], first["token"])
    # Several assets at a time, a copy, and a step of the history.
    uploaded()
    release(id)
    release(other)
    result = call("editor", "edits.apply", assets=[id, other], adjustments=adjustments)
    equal([one["error"]["name"] for one in result["results"]], ["network_access_required"] * 2)
    result = call("editor", "edits.apply", assets=[id, other], adjustments=adjustments, networkAccessAllowed=True)
    equal((result["done"], result.get("failed", 0), progress(client.notifications)), (2, 0, []))
    uploaded()
    release(id)
    result = call("editor", "edits.copy", **{"from": other, "to": [id], "mode": "append", "networkAccessAllowed": True})
    equal((result["done"], result.get("failed", 0)), (1, 0))
    uploaded()
    release(id)
    equal(refused("editor", "edits.undo", asset=id, step=1).code, 3164)
    call("editor", "edits.undo", asset=id, step=1, networkAccessAllowed=True)
    is_progress()
    # A store that is down.
    uploaded()
    release(id)
    faults(status=503, code="SlowDown")
    error = refused("editor", "edits.preview", asset=id, adjustments=adjustments, networkAccessAllowed=True)
    equal((error.code, error.data["problem"]), (3169, "store_busy"))
    faults()


def published_edits_with_network_access():
    id = remote("eleven.jpg")
    adjustments = {"version": 1, "operations": [{"operation": "exposure", "value": 0.5}]}
    push = context.socket(zmq.PUSH)
    push.connect(address("edits"))

    def publish(name, **params):
        params = {"id": name, "asset": id, "adjustments": adjustments, **params}
        push.send_json({"jsonrpc": "2.0", "method": "edits.publish", "params": params})

        def outcome():
            edits = call("catalog", "edits.status", ids=[name])["edits"]
            return next((edit for edit in edits if edit.get("state") in ("applied", "failed")), None)
        return until(f"{name} ends", outcome)
    before = len(objects_read())
    edit = publish("without")
    equal((edit["state"], edit["errorName"], len(objects_read())), ("failed", "network_access_required", before))
    edit = publish("with", networkAccessAllowed=True)
    equal((edit["state"], len(objects_read())), ("applied", before + 1))
    push.close()


def sheets_and_prefetches_of_remote_originals():
    id = remote("twelve.jpg")
    digest = resources(id)[0]["digest"]
    before = len(objects_read())
    result, _ = call("thumbnailer", "image.sheet", assets=[id], cell=64)
    equal(result["failed"][id]["name"], "network_access_required")
    equal(len(objects_read()), before)
    size = {"width": 90, "height": 90}
    cache = call("thumbnailer", "cache.open")["cache"]

    def done():
        status = call("thumbnailer", "cache.status", cache=cache)
        return status["waiting"] + status["preparing"] == 0 and status
    # Without network access nothing is downloaded, and the image is not prepared.
    call("thumbnailer", "cache.start", cache=cache, assets=[id], targetSize=size)
    equal((until("it has tried", done)["failed"], len(objects_read())), (1, before))
    call("thumbnailer", "cache.start", cache=cache, assets=[id], targetSize=size, networkAccessAllowed=True)
    equal(until("it is prepared", done)["prepared"], 1)
    equal((len(objects_read()) > 0, os.path.exists(path(digest))), (True, True))
    # A request finds it, also after the local file was released again; nothing more is downloaded for it.
    release(id)
    before = len(objects_read())
    result, _ = call("thumbnailer", "image.request", asset=id, targetSize=size, deliveryMode="highQualityFormat",
                     cache=cache, networkAccessAllowed=True)
    equal((result["isCacheHit"], len(objects_read())), (True, before))
    result, _ = call("thumbnailer", "image.sheet", assets=[id], cell=100, networkAccessAllowed=True)
    equal(result.get("failed", {}), {})


def fetches_by_place():
    """Fetches with the predicate isLocal can be read and counted, but not observed."""
    away_ids = [import_file("six.jpg", ref=name) for name in "a"] + [import_file("nine.jpg")]
    here = import_file("ten.jpg")
    uploaded()
    for id in away_ids:
        release(id)
    named = {"ids": away_ids + [here]}
    equal(ids(predicate="isLocal == NO", **named), away_ids)
    equal(ids(predicate="isLocal == YES", **named), [here])
    equal(ids(predicate="NOT isLocal == YES AND mediaType == 'image'", **named), away_ids)
    fetch = {"kind": "assets", "predicate": "isLocal == NO", "mediaType": "image"}
    count = call("catalog", "fetch.counts", fetches=[fetch])["counts"][0]
    equal(count, len([one for one in assets(mediaType="image") if any(
        resource.get("locallyAvailable") is False for resource in one["resources"])]))
    # The pages of a token belong to one result, even if files are downloaded meanwhile; a new fetch shows the current
    # state. No such change has a record.
    first = call("catalog", "fetch.assets", fetch=fetch, count=1)
    call("catalog", "resource.download", asset=away_ids[0], networkAccessAllowed=True)
    rest = call("catalog", "fetch.assets", fetch=fetch, **{"from": 1, "count": 100, "token": first["token"]})
    equal((rest["count"], len(first["assets"] + rest["assets"])), (count, count))
    now = call("catalog", "fetch.assets", fetch=fetch)
    equal((now["count"], now["token"]), (count - 1, first["token"]))
    equal(call("catalog", "fetch.counts", fetches=[fetch])["counts"], [count - 1])
    # At an earlier token, and as an observed result, it is refused.
    perform({"type": "asset.update", "id": here, "set": {"rating": 3}})
    other = {**fetch, "limit": 7, "predicate": "isLocal == NO AND rating < 5"}
    equal(refusal("catalog", "fetch.assets", fetch=other, token=first["token"]), "token_expired")
    for service, method, params in (
        ("change-broker", "fetch.observe", {"fetch": fetch}), ("catalog", "fetch.keys", {"fetch": fetch}),
        ("catalog", "changes.details", {"fetch": fetch, "from": first["token"]}),
        ("catalog", "details.diff", {"from": {"fetch": fetch, "token": first["token"]},
                                     "to": {"fetch": fetch, "token": first["token"]}}),
    ):
        error = refused(service, method, **params)
        equal((method, error.name), (method, "not_observable"))
        assert "isLocal" in error.message, error.message
    equal(refusal("catalog", "fetch.assets", fetch={"sort": [{"key": "isLocal"}]}), "unsupported_sort_key")


def a_library_larger_than_its_budget():
    """Under `optimize` with a budget of a third of the photos."""
    files = sorted(name for name in os.listdir(os.environ["FILES"]) if name.startswith("many-"))
    sizes = {name: len(file(name)) for name in files}
    budget = int(os.environ["SAFELIGHT_LOCAL_BYTES"])
    ids = {name: import_file(name) for name in files}
    thumbnails = {"targetSize": {"width": 80, "height": 80}, "deliveryMode": "highQualityFormat"}

    def is_within():
        status = call("catalog", "storage.status")
        return status["waitingCount"] == 0 and status["localBytes"] <= budget
    # The thumbnails are rendered while the originals are local.
    for id in ids.values():
        call("thumbnailer", "image.request", asset=id, networkAccessAllowed=True, **thumbnails)
    until("local files are within the budget", is_within)
    here = sum(os.path.getsize(f"{folder}/{name}") for folder, _, names in os.walk(f"{LIBRARY}/resources")
               for name in names)
    assert here <= budget < sum(sizes.values()), (here, budget)
    before = len(objects_read())
    for id in ids.values():
        result, _ = call("thumbnailer", "image.request", asset=id, **thumbnails)
        equal(result["isCacheHit"], True)
    equal(len(objects_read()), before)


def new_assets_have_thumbnails():
    """Thumbnails of new assets are prepared without a request for them, and need no request to the store."""
    def are_away():
        status = call("catalog", "storage.status")
        return status["waitingCount"] == 0 and status["localBytes"] <= int(os.environ["SAFELIGHT_LOCAL_BYTES"])
    until("local files are within the budget", are_away)

    def is_prepared():
        state = call("thumbnailer", "figures")["newAssets"]
        return (state["preparing"], state["failed"], state["sequence"]) == (0, 0, call("catalog", "health")["sequence"])
    until("the images of all new assets are rendered", is_prepared,
          state=lambda: (call("thumbnailer", "figures")["newAssets"], call("catalog", "health")["sequence"]))
    before = len(objects_read())
    for one in assets():
        result = call("thumbnailer", "image.request", asset=one["id"], targetSize={"width": 256, "height": 256})[0]
        equal(result["isCacheHit"], True)
    equal(len(objects_read()), before)
    assert not all(resource.get("locallyAvailable", True) for one in assets() for resource in one["resources"])


def all_originals_can_be_read():
    files = sorted(name for name in os.listdir(os.environ["FILES"]) if name.startswith("many-"))
    expected = {hashlib.sha256(file(name)).hexdigest() for name in files}
    found = set()
    for one in assets():
        _, frames = call("catalog", "resource.read", asset=one["id"], networkAccessAllowed=True)
        found.add(hashlib.sha256(frames[0]).hexdigest())
    equal(found == expected, True)
    result = call("catalog", "storage.verify", readBytes=True)
    equal((result["checked"], result.get("missing"), result.get("damaged")), (len(files), None, None))


def lost_and_swapped_objects_are_found():
    name = "seven.jpg"
    id = import_file(name)
    uploaded()
    faults(swap=True)
    result = call("catalog", "storage.verify", readBytes=True)
    assert result["damaged"] and result["repaired"] > 0, result
    faults()
    uploaded()
    equal(call("catalog", "storage.verify", readBytes=True).get("damaged"), None)


def a_store_that_does_not_answer_is_reported():
    """An object store that does not answer is a state of its own (T-42), in which everything else works."""
    topic = Subscription("availability")

    def received(state):
        while True:
            name, message = topic.receive()
            if name == "availability" and message["state"] == state:
                return message

    id = remote("thirteen.jpg")
    received("available")
    faults(status=503)
    # A request that needs the store.
    try:
        call("catalog", "resource.read", asset=id, networkAccessAllowed=True)
        raise AssertionError("bytes were delivered although the store does not answer")
    except Refused as error:
        equal((error.name, error.code), ("network_error", 3169))
    message = received("storeOffline")
    equal((message["isReadable"], message["isWritable"]), (True, True))
    equal([(p["state"], p["name"], p["code"]) for p in message["problems"]], [("storeOffline", "network_error", 3169)])
    equal(call("catalog", "library.status"), message)
    local = import_file("fourteen.jpg")
    equal(call("catalog", "resource.read", asset=local)[1][0], file("fourteen.jpg"))
    faults()
    # No request is needed: uploads and the checks of the catalog detect it.
    received("available")
    equal(call("catalog", "resource.read", asset=id, networkAccessAllowed=True)[1][0], file("thirteen.jpg"))


def store():
    """Returns a boto3 client of the object store, with the bucket and the prefix."""
    client = boto3.client(
        "s3", endpoint_url=os.environ["SAFELIGHT_OBJECT_STORE_ENDPOINT"], region_name="us-east-1",
        config=botocore.config.Config(s3={"addressing_style": "path"}),
    )
    bucket, _, prefix = os.environ["SAFELIGHT_OBJECT_STORE"].removeprefix("s3://").partition("/")
    return client, {"Bucket": bucket, "Prefix": prefix}


def no_upload_in_parts_is_left():
    """Checks by boto3 that the store has no parts of an upload that has ended."""
    client, location = store()
    until("no upload in parts is left", lambda: not client.list_multipart_uploads(**location).get("Uploads"))


def is_stored(digest):
    client, location = store()
    try:
        client.head_object(Bucket=location["Bucket"], Key=f"{location['Prefix']}/{digest[:2]}/{digest}")
        return True
    except botocore.exceptions.ClientError as error:
        equal(error.response["ResponseMetadata"]["HTTPStatusCode"], 404)
        return False


def stored(expected=()):
    """Returns the digests of all objects at the store: those that it lists and, whether listed or not, expected ones.

    Each is asked for, because OpenStack Swift has a daemon that corrects lists which a kill has left wrong, and it does
    not run here.
    """
    client, location = store()
    pages = client.get_paginator("list_objects_v2").paginate(**location)
    listed = {one["Key"].rpartition("/")[2] for page in pages for one in page.get("Contents", [])}
    return {digest for digest in listed.union(expected) if is_stored(digest)}


def the_store_has_what_the_library_has():
    """Checks that the store has every original, no other object, and the imported bytes."""
    uploaded()
    found = call("catalog", "fetch.assets", fetch={"kind": "assets"}, count=1000)
    equal(len(found["assets"]), found["count"])
    expected = {resource["digest"] for one in found["assets"] for resource in one["resources"]}
    until("the store has the originals and nothing else", lambda: stored(expected) == expected)
    result = call("catalog", "storage.verify", readBytes=True)
    equal((result["checked"], result.get("missing"), result.get("damaged")), (len(expected), None, None))
    no_upload_in_parts_is_left()


def originals_of_one_and_of_several_parts():
    """Uploads, releases, reads and deletions, as any S3 server answers them, without a log of its requests."""
    for name in ("small.jpg", "large.jpg"):
        data = file(name)
        digest = hashlib.sha256(data).hexdigest()
        id = perform({"type": "asset.create", "ref": "a", "resources": [{"path": f"{os.environ['FILES']}/{name}"}]})
        id = id["placeholders"]["a"]
        uploaded()
        assert is_stored(digest), name
        equal(release(id), digest)
        equal(refused("catalog", "resource.download", asset=id).code, 3164)
        call("catalog", "resource.read", asset=id, offset=1000, length=5000, networkAccessAllowed=True)
        fractions = progress(client.notifications)
        assert fractions == sorted(fractions) and fractions[0] >= 0 and fractions[-1] == 1, fractions
        with open(path(digest), "rb") as opened:
            equal(hashlib.sha256(opened.read()).hexdigest(), digest)
        equal(call("catalog", "storage.verify", readBytes=True).get("damaged"), None)
        perform({"type": "asset.delete", "ids": [id]})
        until(f"{name} is deleted", lambda: not is_stored(digest))
    no_upload_in_parts_is_left()


run(
    upload_release_and_read, originals_of_one_and_of_several_parts,
    concurrent_requests_share_a_transfer, a_cancelled_download_leaves_no_file,
    faulty_stores_are_named_and_recover, uploads_wait_for_a_faulty_store_and_recover,
    deleted_assets_are_deleted_at_the_store, images_of_remote_originals, videos_of_remote_originals,
    edits_of_remote_originals, streams_and_exports_of_remote_videos, edits_with_network_access,
    published_edits_with_network_access, sheets_and_prefetches_of_remote_originals, fetches_by_place,
    a_library_larger_than_its_budget,
    all_originals_can_be_read, new_assets_have_thumbnails,
    lost_and_swapped_objects_are_found, jobs_are_kept_until_they_are_acknowledged, jobs_before_a_restart,
    jobs_after_a_restart,
    a_store_that_does_not_answer_is_reported, no_upload_in_parts_is_left, the_store_has_what_the_library_has,
)
