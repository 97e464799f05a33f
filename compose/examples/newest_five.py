import json, os, zmq  # saves a 512 pixel picture of each of the five newest photos, in this folder
runtime = os.getenv("XDG_RUNTIME_DIR")
run = os.getenv("SAFELIGHT_RUN") or (f"{runtime}/safelight" if runtime else f"/tmp/safelight-{os.getuid()}")

def ask(service, method, **params):
    socket = zmq.Context.instance().socket(zmq.REQ)
    socket.connect(os.getenv(f"SAFELIGHT_{service.upper()}", f"ipc://{run}/{service}.sock"))
    socket.send_json({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
    return socket.recv_multipart()  # the answer, then its attachments

newest = {"kind": "assets", "sort": [{"key": "creationDate", "ascending": False}], "limit": 5}
for photo in json.loads(ask("catalog", "fetch.assets", fetch=newest)[0])["result"]["assets"]:
    _, picture = ask("thumbnailer", "image.request", asset=photo["id"], targetSize={"width": 512, "height": 512})
    open(f"{photo['id']}.jpg", "wb").write(picture)
