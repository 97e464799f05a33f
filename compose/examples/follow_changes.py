"""Prints every change of the library once, in order, without a gap: also through restarts of the change-broker."""
import json, os, sys, time, zmq, zmq.auth
runtime = os.getenv("XDG_RUNTIME_DIR")
run = os.getenv("SAFELIGHT_RUN") or (f"{runtime}/safelight" if runtime else f"/tmp/safelight-{os.getuid()}")
live, broker = zmq.Context.instance().socket(zmq.SUB), zmq.Context.instance().socket(zmq.REQ)
for socket in (live, broker) if "SAFELIGHT_CLIENT_KEY" in os.environ else ():  # over TCP it takes keys
    socket.curve_publickey, socket.curve_secretkey = zmq.auth.load_certificate(os.environ["SAFELIGHT_CLIENT_KEY"])
    socket.curve_serverkey, _ = zmq.auth.load_certificate(os.environ["SAFELIGHT_SERVER_KEY"])
for topic in "changes", "head": live.subscribe(topic)  # the head says where the feed stands, once a second
live.connect(os.getenv("SAFELIGHT_FEED", f"ipc://{run}/feed.sock"))
broker.req_relaxed = broker.req_correlate = True  # it may ask again when no answer came
broker.connect(os.getenv("SAFELIGHT_BROKER", f"ipc://{run}/change-broker.sock"))

def ask(method, **params):
    while True:
        broker.send_json({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
        answer = broker.recv_json() if broker.poll(1000) else {}
        if "result" in answer: return answer["result"]
        if answer and answer["error"]["data"]["name"] == "token_expired": sys.exit(answer["error"]["message"])
        time.sleep(0.1)

seen, token, library = 0, None, None  # the last change printed; to begin with the present, take them from feed.head
while True:
    topic, message = live.recv_multipart()
    news = json.loads(message)
    if news["library"] == library and news["sequence"] <= seen: continue
    page = {"records": [news], "token": news["token"]}
    if topic == b"head" or news["library"] != library or news["previous"] > seen or "truncated" in news:
        page = ask("feed.since", token=token, limit=1000)  # live messages were lost, or this one is too large
    for change in page["records"]: print(change["sequence"], json.dumps(change), flush=True)
    seen, token, library = max([seen] + [one["sequence"] for one in page["records"]]), page["token"], news["library"]
