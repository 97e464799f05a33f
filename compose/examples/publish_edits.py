"""Publishes edits and prints the state of each.

Each line of standard input is an edit as JSON:

    {"asset": "a01...", "adjustments": {"version": 1, "operations": [{"operation": "exposure", "value": 0.5}]}}

With an "id" of your own, running the script again with the same line publishes the same edit, which is applied only
once. Another edit needs another id. The edits of one asset are applied in the order of their lines.

Edits are pushed to the editor. A push has no reply, so the script sends an edit again until the catalog has recorded
it; the editor recognizes repeated edits by their id, and every edit is applied exactly once, even if a service is
killed.
"""

import json
import os
import re
import sys
import time
import uuid

import zmq
import zmq.auth

SECONDS_BETWEEN_REQUESTS = 1
EDITS_PER_REQUEST = 1000

runtime = os.getenv("XDG_RUNTIME_DIR")
run = os.getenv("SAFELIGHT_RUN") or (f"{runtime}/safelight" if runtime else f"/tmp/safelight-{os.getuid()}")


def make_socket(kind, variable, name):
    """Returns a socket that is not connected yet, and the address of its service."""
    socket = zmq.Context.instance().socket(kind)
    socket.linger = 0
    address = os.getenv(variable, f"ipc://{run}/{name}.sock")

    # TCP connections require the keys that `safelight keys create` makes.
    if address.startswith("tcp:") and os.getenv("SAFELIGHT_CLIENT_KEY"):
        server_key, _ = zmq.auth.load_certificate(os.environ["SAFELIGHT_SERVER_KEY"])
        public_key, secret_key = zmq.auth.load_certificate(os.environ["SAFELIGHT_CLIENT_KEY"])
        socket.curve_serverkey = server_key
        socket.curve_publickey = public_key
        socket.curve_secretkey = secret_key

    return socket, address


# Step 1: subscribe to the states of published edits. Those of other clients arrive, too.
feed, feed_address = make_socket(zmq.SUB, "SAFELIGHT_FEED", "feed")
feed.subscribe("edit.")
feed.connect(feed_address)

# Step 2: connect to the editor, which receives the edits.
editor, editor_address = make_socket(zmq.PUSH, "SAFELIGHT_EDITS", "edits")
editor.connect(editor_address)

# Step 3: connect to the catalog, which stores the state of each edit. The options allow sending a request again if no
# reply arrived.
catalog, catalog_address = make_socket(zmq.REQ, "SAFELIGHT_CATALOG", "catalog")
catalog.req_relaxed = True
catalog.req_correlate = True
catalog.connect(catalog_address)

# Step 4: read the edits. "after" names the edit that must be applied first.
unfinished_edits = {}
last_edit_of_asset = {}

for number, line in enumerate(sys.stdin, 1):
    if not line.strip():
        continue

    edit = json.loads(line)
    edit.setdefault("id", uuid.uuid4().hex)

    # The editor cannot record the failure of an edit that names no asset, so the catalog would report the edit as
    # unknown for ever.
    if not re.fullmatch("a[0-9a-z]{26}", str(edit.get("asset"))):
        sys.exit(f"line {number}: asset: expected the identifier of an asset")

    if edit["id"] in unfinished_edits:
        sys.exit(f"two lines have the id {edit['id']}")

    if edit["asset"] in last_edit_of_asset:
        edit.setdefault("after", last_edit_of_asset[edit["asset"]])

    last_edit_of_asset[edit["asset"]] = edit["id"]
    unfinished_edits[edit["id"]] = edit

printed_states = {}
has_failures = False


def report(edit, sequence):
    """Prints the state of an edit if it is new: accepted, applied or failed."""
    global has_failures
    edit_id = edit["id"]
    state = edit["state"]

    if edit_id not in unfinished_edits or printed_states.get(edit_id) == state:
        return
    printed_states[edit_id] = state
    print(edit_id, state, sequence, edit.get("errorName", ""), edit.get("errorMessage", ""), flush=True)

    if state != "accepted":
        del unfinished_edits[edit_id]
    if state == "failed":
        has_failures = True


def request_states():
    """Asks the catalog for the states of unfinished edits, and publishes those that it reports as unknown."""
    edit_ids = list(unfinished_edits)[:EDITS_PER_REQUEST]
    catalog.send_json({"jsonrpc": "2.0", "id": 1, "method": "edits.status", "params": {"ids": edit_ids}})
    reply = catalog.recv_json() if catalog.poll(1000) else {}
    result = reply.get("result", {})

    for edit in result.get("edits", []):
        if edit["asset"] != unfinished_edits[edit["id"]]["asset"]:
            message = f"an edit of {edit['asset']} was published with this id before; use a new id for each edit"
            edit = {**edit, "state": "failed", "errorName": "id_reused", "errorMessage": message}
        report(edit, edit["sequence"])

    for edit_id in result.get("unknown", []):
        # The socket accepts no message if the editor does not run or has too many edits waiting.
        if not editor.poll(100, zmq.POLLOUT):
            break
        editor.send_json({"jsonrpc": "2.0", "method": "edits.publish", "params": unfinished_edits[edit_id]})


def receive_states(end):
    """Reports the states that the feed publishes, until none arrives for 100 ms or the end time has passed."""
    while unfinished_edits and feed.poll(100):
        frames = feed.recv_multipart()
        message = json.loads(frames[1])
        change = message.get("change", {})
        edit = unfinished_edits.get(change.get("id"))
        # Another client may use the same id. A refusal of other content leaves the state of the edit as it is.
        if edit and edit["asset"] == change["asset"] and change.get("errorName") != "id_reused":
            report(change, message["sequence"])
        if time.monotonic() >= end:
            break


# Step 5: follow the edits until all are applied or have failed.
next_request = 0

while unfinished_edits:
    if time.monotonic() >= next_request:
        next_request = time.monotonic() + SECONDS_BETWEEN_REQUESTS
        request_states()
    receive_states(next_request)

sys.exit(1 if has_failures else 0)
