# Prints every change of the library exactly once and in order, even if messages are lost or the change-broker restarts.
#
# The feed (a SUB socket) publishes each change once, so a subscriber can miss some. The change-broker (a REQ socket)
# returns all changes after a token from the history. A live message that continues the sequence is printed directly;
# in all other cases the changes since the last token are requested from the broker.

import json, os, sys, time, zmq, zmq.auth

runtime = os.getenv("XDG_RUNTIME_DIR")
run = os.getenv("SAFELIGHT_RUN") or (f"{runtime}/safelight" if runtime else f"/tmp/safelight-{os.getuid()}")

# Step 1: create the sockets. The two options allow sending a request again if no reply arrived.
feed, broker = map(zmq.Context.instance().socket, (zmq.SUB, zmq.REQ))
broker.req_relaxed = broker.req_correlate = True

# Over a network, only heartbeats reveal a connection that has ended silently.
for socket in (feed, broker): socket.heartbeat_ivl, socket.heartbeat_timeout = 3000, 13000

# Step 2: over TCP, set the keys that `safelight keys create` made.
for socket in (feed, broker) if os.getenv("SAFELIGHT_FEED", "").startswith("tcp:") else ():
    socket.curve_publickey, socket.curve_secretkey = zmq.auth.load_certificate(os.environ["SAFELIGHT_CLIENT_KEY"])
    socket.curve_serverkey, _ = zmq.auth.load_certificate(os.environ["SAFELIGHT_SERVER_KEY"])

# Step 3: subscribe to all changes, and to the head, which announces the newest sequence once a second.
for topic in "changes", "head": feed.subscribe(topic)
feed.connect(os.getenv("SAFELIGHT_FEED", f"ipc://{run}/feed.sock"))
broker.connect(os.getenv("SAFELIGHT_BROKER", f"ipc://{run}/change-broker.sock"))


# Sends a request repeatedly until it is answered. The program ends if the history no longer reaches back to the token.
def call(method, **params):
    while True:
        broker.send_json({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
        reply = broker.recv_json() if broker.poll(1000) else {}
        if "result" in reply: return reply["result"]
        if reply and reply["error"]["data"]["name"] == "token_expired": sys.exit(reply["error"]["message"])
        time.sleep(0.1)


# Step 4: start at the oldest change. (To start with new changes only, take these values from `feed.head`.)
last, token, library = 0, None, None

while True:
    topic, body = feed.recv_multipart()
    message = json.loads(body)

    # Step 5: ignore changes that were printed before.
    if message["library"] == library and message["sequence"] <= last: continue

    # Step 6: a change that directly follows the last one is complete, unless it is too large for a live message.
    is_next = topic != b"head" and message["library"] == library and message["previous"] <= last
    page = {"records": [message], "token": message["token"]}
    if not is_next or "truncated" in message: page = call("feed.since", token=token, limit=1000)

    # Step 7: print the changes, and remember how far they reach.
    for change in page["records"]: print(change["sequence"], json.dumps(change), flush=True)
    last, token, library = max([last] + [row["sequence"] for row in page["records"]]), page["token"], message["library"]
