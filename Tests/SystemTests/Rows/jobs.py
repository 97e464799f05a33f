"""The progress of jobs (T-34): by waiting for it, and on the topic `jobs`."""

import json
import time

import jsonschema

from rows import Subscription, call, equal, file, run
from storage import faults, until

NOISE = file("noise.png")


def import_slow_photo(name, copy):
    """Imports a photo of several megabytes whose upload is slow; each copy has other bytes."""
    request = {"type": "asset.create", "ref": "a", "resources": [{"attachment": 0}]}
    result = call("catalog", "changes.perform", [NOISE + bytes([copy])], requests=[request])
    return result["placeholders"]["a"]


def states(job, version, seconds=60):
    """Returns the states of a job and the progress in each, as a waiting client receives them."""
    found, end = [], time.monotonic() + seconds
    while time.monotonic() < end:
        page = call("catalog", "jobs.list", changedAfter=version, deadlineMs=5000)
        assert page["version"] >= version
        version = page["version"]
        found += [(one["state"], one.get("progress")) for one in page["jobs"] if one["id"] == job["id"]]
        if found and found[-1][0] in ("succeeded", "failed", "cancelled"):
            return found
    raise AssertionError(f"the job has not ended: {found}")


def check_progress(found):
    """Checks that the progress of a complete transfer check_progress and ends with success."""
    progress = [part for state, part in found if state == "pending"]
    equal(found[-1], ("succeeded", None))
    assert progress == sorted(progress) and all(0 <= part <= 1 for part in progress), found
    assert len({part for part in progress if 0 < part < 1}) >= 3, found


def received(subscription, job, until):
    """Returns the messages of the topic about a job, up to one with a state."""
    document = call("change-broker", "rpc.discover")
    [schema] = [one["message"] for one in document["x-topics"] if one["topic"] == "jobs"]
    whole = {"allOf": [schema], "unevaluatedProperties": False, "components": document["components"]}
    found = []
    while True:
        topic, message = subscription.receive()
        if topic != "jobs":
            continue
        jsonschema.Draft202012Validator(whole).validate(message)
        found += [(one["state"], one.get("progress")) for one in message["jobs"] if one["id"] == job["id"]]
        if found and found[-1][0] == until:
            return found


def uploads_report_their_progress():
    subscription = Subscription("jobs")
    version = call("catalog", "jobs.list")["version"]
    # The upload has not begun when the job is created.
    faults(status=503, code="SlowDown")
    id = import_slow_photo("noise.png", 1)
    until("the store is known to fail", lambda: call("catalog", "storage.status").get("problem") == "store_busy")
    [job] = call("catalog", "jobs.create", assets=[id])["jobs"]
    equal(job["state"], "registered")
    equal(call("catalog", "storage.status")["waitingJobCount"], 1)
    faults()
    found = states(job, version)
    equal(found[0], ("registered", None))
    check_progress(found)
    live = received(subscription, job, "succeeded")
    assert {"pending", "succeeded"} <= {state for state, _ in live}, live
    assert [part for state, part in live if state == "pending" and 0 < part < 1], live


def a_job_for_a_running_upload_is_pending():
    id = import_slow_photo("noise.png", 2)
    # A job that is created while the upload already runs is pending at once.
    def pending():
        [job] = call("catalog", "jobs.create", assets=[id])["jobs"]
        assert job["state"] != "succeeded", "the upload was too fast"
        return job if job["state"] == "pending" else None
    job = until("the upload runs", pending)
    assert 0 <= job["progress"] <= 1, job
    version = call("catalog", "jobs.list")["version"]
    check_progress([("pending", job["progress"])] + states(job, version))


def waiting_ends_with_the_deadline():
    """Without a change, the answer arrives at the deadline and has no job."""
    version = call("catalog", "jobs.list")["version"]
    start = time.monotonic()
    page = call("catalog", "jobs.list", changedAfter=version, deadlineMs=1500)
    equal((page["jobs"], page["version"]), ([], version))
    assert time.monotonic() - start > 0.5


def pages_follow_each_other():
    """A page is cut at a job, and the next continues after it."""
    [first] = call("catalog", "jobs.list", jobs=[call("catalog", "jobs.list")["jobs"][0]["id"]])["jobs"]
    rest = call("catalog", "jobs.list", after=first["id"])["jobs"]
    equal([first] + rest, call("catalog", "jobs.list")["jobs"])


run(uploads_report_their_progress, a_job_for_a_running_upload_is_pending, waiting_ends_with_the_deadline,
    pages_follow_each_other)
