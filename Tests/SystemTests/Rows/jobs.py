"""The progress of jobs (T-34): by waiting for it, and on the topic `jobs`."""

import json
import time

import jsonschema

from rows import Subscription, call, equal, file, run
from storage import faults, until

NOISE = file("noise.png")


def added(name, copy):
    """A photo of several megabytes whose upload is slow; each copy has other bytes."""
    request = {"type": "asset.create", "ref": "a", "resources": [{"attachment": 0}]}
    result = call("catalog", "changes.perform", [NOISE + bytes([copy])], requests=[request])
    return result["placeholders"]["a"]


def states(made, version, seconds=60):
    """What waiting tells of a job: its states, and the progress in each."""
    found, end = [], time.monotonic() + seconds
    while time.monotonic() < end:
        page = call("catalog", "jobs.list", changedAfter=version, deadlineMs=5000)
        assert page["version"] >= version
        version = page["version"]
        found += [(one["state"], one.get("progress")) for one in page["jobs"] if one["id"] == made["id"]]
        if found and found[-1][0] in ("succeeded", "failed", "cancelled"):
            return found
    raise AssertionError(f"the job has not ended: {found}")


def rises(found):
    """Checks the states of a transfer that was seen from its beginning."""
    progress = [part for state, part in found if state == "pending"]
    equal(found[-1], ("succeeded", None))
    assert progress == sorted(progress) and all(0 <= part <= 1 for part in progress), found
    assert len({part for part in progress if 0 < part < 1}) >= 3, found


def heard(subscription, made, until):
    """The messages of the topic about a job, up to one with a state."""
    document = call("change-broker", "rpc.discover")
    [schema] = [one["message"] for one in document["x-topics"] if one["topic"] == "jobs"]
    whole = {"allOf": [schema], "unevaluatedProperties": False, "components": document["components"]}
    found = []
    while True:
        topic, message = subscription.receive()
        if topic != "jobs":
            continue
        jsonschema.Draft202012Validator(whole).validate(message)
        found += [(one["state"], one.get("progress")) for one in message["jobs"] if one["id"] == made["id"]]
        if found and found[-1][0] == until:
            return found


def uploads_tell_their_progress():
    subscription = Subscription("jobs")
    version = call("catalog", "jobs.list")["version"]
    # The upload has not begun when the job is created.
    faults(status=503, code="SlowDown")
    id = added("noise.png", 1)
    until("the store is known to fail", lambda: call("catalog", "storage.status").get("problem") == "store_busy")
    [made] = call("catalog", "jobs.create", assets=[id])["jobs"]
    equal(made["state"], "registered")
    equal(call("catalog", "storage.status")["waitingJobCount"], 1)
    faults()
    found = states(made, version)
    equal(found[0], ("registered", None))
    rises(found)
    live = heard(subscription, made, "succeeded")
    assert {"pending", "succeeded"} <= {state for state, _ in live}, live
    assert [part for state, part in live if state == "pending" and 0 < part < 1], live


def a_job_for_a_running_upload_is_pending():
    id = added("noise.png", 2)
    # An upload that runs before there is a job for it is seen by its effect on one that is created then.
    def pending():
        [made] = call("catalog", "jobs.create", assets=[id])["jobs"]
        assert made["state"] != "succeeded", "the upload was too fast"
        return made if made["state"] == "pending" else None
    made = until("the upload runs", pending)
    assert 0 <= made["progress"] <= 1, made
    version = call("catalog", "jobs.list")["version"]
    rises([("pending", made["progress"])] + states(made, version))


def waiting_ends_with_the_deadline():
    """Without a change, the answer comes at the deadline and has no job."""
    version = call("catalog", "jobs.list")["version"]
    start = time.monotonic()
    page = call("catalog", "jobs.list", changedAfter=version, deadlineMs=1500)
    equal((page["jobs"], page["version"]), ([], version))
    assert time.monotonic() - start > 0.5


def pages_follow_each_other():
    """A page is cut at a job, and the next continues behind it."""
    [first] = call("catalog", "jobs.list", jobs=[call("catalog", "jobs.list")["jobs"][0]["id"]])["jobs"]
    rest = call("catalog", "jobs.list", after=first["id"])["jobs"]
    equal([first] + rest, call("catalog", "jobs.list")["jobs"])


run(uploads_tell_their_progress, a_job_for_a_running_upload_is_pending, waiting_ends_with_the_deadline,
    pages_follow_each_other)
