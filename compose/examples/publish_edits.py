"""Publishes edits, JSON lines on standard input, each once whatever is killed, and prints what becomes of each.

A line: {"asset": "a01...", "adjustments": {"version": 1, "operations": [{"operation": "exposure", "value": 0.5}]}},
with an "id" of your own if it shall be the same edit when you run this again. Edits of an asset come in their order.
"""
import json, os, sys, time, uuid, zmq, zmq.auth
runtime = os.getenv("XDG_RUNTIME_DIR")
run = os.getenv("SAFELIGHT_RUN") or (f"{runtime}/safelight" if runtime else f"/tmp/safelight-{os.getuid()}")

def connect(kind, variable, file):
    socket = zmq.Context.instance().socket(kind)
    socket.linger = 0
    address = os.getenv(variable, f"ipc://{run}/{file}.sock")
    if address.startswith("tcp:") and os.getenv("SAFELIGHT_CLIENT_KEY"):  # the files that `safelight keys create` makes
        socket.curve_serverkey, _ = zmq.auth.load_certificate(os.environ["SAFELIGHT_SERVER_KEY"])
        socket.curve_publickey, socket.curve_secretkey = zmq.auth.load_certificate(os.environ["SAFELIGHT_CLIENT_KEY"])
    if kind == zmq.SUB: socket.subscribe("edit.")  # what becomes of published edits, also of those of others
    if kind == zmq.REQ: socket.req_relaxed = socket.req_correlate = True  # it may ask again when no answer came
    socket.connect(address)
    return socket

feed = connect(zmq.SUB, "SAFELIGHT_FEED", "feed")
edits = connect(zmq.PUSH, "SAFELIGHT_EDITS", "edits")
catalog = connect(zmq.REQ, "SAFELIGHT_CATALOG", "catalog")

opened, told, last, failures = {}, {}, {}, 0  # edits by id, their states, the last edit of each asset
for line in filter(str.strip, sys.stdin):
    edit = json.loads(line)
    edit.setdefault("id", uuid.uuid4().hex)
    if edit["asset"] in last: edit.setdefault("after", last[edit["asset"]])
    last[edit["asset"]] = edit["id"]
    opened[edit["id"]] = edit

def tell(edit, sequence):
    global failures
    name, state = edit["id"], edit["state"]
    if name not in opened or told.get(name) == state or edit.get("errorName") == "id_reused": return
    told[name] = state
    print(name, state, sequence, edit.get("errorName", ""), edit.get("errorMessage", ""), flush=True)
    if state != "accepted": del opened[name]
    failures += state == "failed"

due = 0
while opened:
    if time.monotonic() >= due:  # a push has no receipt: what the catalog does not know is sent, and sent again
        due = time.monotonic() + 1
        names = list(opened)[:1000]
        catalog.send_json({"jsonrpc": "2.0", "id": 1, "method": "edits.status", "params": {"ids": names}})
        answer = catalog.recv_json().get("result", {}) if catalog.poll(1000) else {}
        for edit in answer.get("edits", []): tell(edit, edit["sequence"])
        for name in answer.get("unknown", []):
            if not edits.poll(100, zmq.POLLOUT): break  # nobody is there, or the editor has enough to do
            edits.send_json({"jsonrpc": "2.0", "method": "edits.publish", "params": opened[name]})
    while opened and feed.poll(100):
        message = json.loads(feed.recv_multipart()[1])
        if "change" in message: tell(message["change"], message["sequence"])
        if time.monotonic() >= due: break
sys.exit(1 if failures else 0)
