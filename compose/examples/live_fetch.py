# Keeps the result of a fetch current, and prints it after each change, even if the change-broker restarts.
#
# The catalog returns the list. The change-broker observes the fetch from there: it publishes the differences (details)
# on a topic of its own. A message that continues the list is applied directly; after a gap the details since the last
# token are requested. If the broker does not have the details either, the program starts again with a fetch.

import json, os, time, zmq

runtime = os.getenv("XDG_RUNTIME_DIR")
run = os.getenv("SAFELIGHT_RUN") or (f"{runtime}/safelight" if runtime else f"/tmp/safelight-{os.getuid()}")
fetch = json.loads(os.getenv("FETCH", '{"predicate": "isFavorite == TRUE", "limit": 20}'))

# Step 1: connect. The first two options allow sending a request again if no reply arrived; heartbeats reveal a
# connection that has ended silently. Over TCP the sockets need keys, as in follow_changes.py.
context = zmq.Context.instance()
context.req_relaxed, context.req_correlate, context.heartbeat_ivl, context.heartbeat_timeout = True, True, 3000, 13000
catalog, broker, feed = (context.socket(kind) for kind in (zmq.REQ, zmq.REQ, zmq.SUB))
for socket, key, name in (catalog, "CATALOG", "catalog"), (broker, "BROKER", "change-broker"), (feed, "FEED", "feed"):
    socket.connect(os.getenv(f"SAFELIGHT_{key}", f"ipc://{run}/{name}.sock"))

# The head announces the newest sequence of the feed once a second.
feed.subscribe("head")


# Sends a request repeatedly until it is answered. Returns None if the token or the observation has expired.
def call(socket, method, **params):
    while True:
        socket.send_json({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
        reply = socket.recv_json() if socket.poll(2000) else {}
        if "result" in reply or "_expired" in str(reply.get("error")): return reply.get("result")
        time.sleep(0.1)


token = observation = None

while True:
    # Step 2: fetch the list. The token is the state of the library that the list shows.
    if token is None:
        page = call(catalog, "fetch.assets", fetch=fetch, count=1000, members=["id"])
        ids, token, observation, heads_ahead = [asset["id"] for asset in page["assets"]], page["token"], None, 0

    # Step 3: observe the fetch. The reply contains what has changed since the token.
    if observation is None:
        observation = message = call(broker, "fetch.observe", fetch=fetch, token=token)
        if observation: feed.subscribe(observation["topic"])

    # Step 4: receive a head or details. A head of another instance means that the broker has restarted: observe again.
    else:
        message, sequence = json.loads(feed.recv_multipart()[1]), int(token.split(".")[1])
        heads_ahead = heads_ahead + 1 if "instance" in message and message["sequence"] > sequence else 0
        if message.get("instance", observation["instance"]) != observation["instance"]: observation = None
        if "instance" in message and (heads_ahead < 5 or observation is None): continue
        if message["sequence"] <= sequence: continue

        # Step 5: request the details if a message was lost, if one was too large, or after five heads without one.
        if heads_ahead or message["previous"] > sequence or "truncated" in message:
            message, heads_ahead = call(broker, "fetch.details", observation=observation["observation"], token=token), 0

    # Step 6: without a reply, or if the differences are unknown, start again with the fetch.
    details = (message or {}).get("details", {"hasIncrementalChanges": True})
    token = message["token"] if message and details["hasIncrementalChanges"] else None

    # Step 7: remove all removed and moved assets at their old indexes, then insert the others in ascending order.
    vacated = {item.get("before", item.get("index")) for kind in ("removed", "moved") for item in details.get(kind, [])}
    ids = [id for index, id in enumerate(ids) if index not in vacated]
    added = [item for kind in ("inserted", "moved") for item in details.get(kind, [])]
    for index, id in sorted((item.get("after", item.get("index")), item["id"]) for item in added): ids.insert(index, id)

    # Step 8: print the list if it is new or has changed.
    if token and (len(details) > 1 or observation is message): print(token.split(".")[1], *ids, flush=True)
