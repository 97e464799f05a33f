"""Keeps a list of photos exactly as the library has it, and prints it when it changes: also through broker restarts."""
import json, os, time, zmq
runtime = os.getenv("XDG_RUNTIME_DIR")
run = os.getenv("SAFELIGHT_RUN") or (f"{runtime}/safelight" if runtime else f"/tmp/safelight-{os.getuid()}")
fetch = json.loads(os.getenv("FETCH", '{"predicate": "isFavorite == TRUE", "limit": 20}'))
context = zmq.Context.instance()
context.req_relaxed = context.req_correlate = True  # a request is sent again when no answer came
catalog, broker, feed = (context.socket(kind) for kind in (zmq.REQ, zmq.REQ, zmq.SUB))
for socket, key, name in (catalog, "CATALOG", "catalog"), (broker, "BROKER", "change-broker"), (feed, "FEED", "feed"):
    socket.connect(os.getenv(f"SAFELIGHT_{key}", f"ipc://{run}/{name}.sock"))
feed.subscribe("head")  # where the feed stands, once a second

def ask(socket, method, **params):
    while True:
        socket.send_json({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
        answer = socket.recv_json() if socket.poll(2000) else {}
        if "result" in answer or "_expired" in str(answer.get("error")): return answer.get("result")  # none: anew
        time.sleep(0.1)

token = watch = None  # the moment of the list, and what fetch.observe answered
while True:
    if token is None:  # fetch, observe from there, and from then on take in what changes
        page, watch, behind = ask(catalog, "fetch.assets", fetch=fetch, count=1000), None, 0
        ids, token = [asset["id"] for asset in page["assets"]], page["token"]
    if watch is None:
        watch = news = ask(broker, "fetch.observe", fetch=fetch, token=token)
        if watch: feed.subscribe(watch["topic"])
    else:
        news, at = json.loads(feed.recv_multipart()[1]), int(token.split(".")[1])
        behind = behind + 1 if "instance" in news and news["sequence"] > at else 0
        if news.get("instance", watch["instance"]) != watch["instance"]: watch = None  # a new broker: observe again
        if "instance" in news and behind < 5 or news["sequence"] <= at: continue
        if behind or news["previous"] > at or "truncated" in news:  # something was lost, or is too large for a message
            news, behind = ask(broker, "fetch.details", observation=watch["observation"], token=token), 0
    change = (news or {}).get("details", {"hasIncrementalChanges": True})
    token, watch = news["token"] if news and change["hasIncrementalChanges"] else None, watch if news else None
    left = {one.get("before", one.get("index")) for kind in ("removed", "moved") for one in change.get(kind, [])}
    new = [one for kind in ("inserted", "moved") for one in change.get(kind, [])]
    ids = [one for index, one in enumerate(ids) if index not in left]
    for index, one in sorted((one.get("after", one.get("index")), one["id"]) for one in new): ids.insert(index, one)
    if token and (len(change) > 1 or watch is news): print(token.split(".")[1], *ids, flush=True)
