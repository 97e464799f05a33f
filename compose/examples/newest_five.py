# Saves an image of each of the five newest photos, at most 512 pixels a side, to the current folder.
#
# A request is a JSON-RPC message on a REQ socket. The first frame of the reply is the JSON-RPC response; binary data,
# such as an image, follows in further frames (attachments).

import json, os, zmq

# The services listen on sockets in the run folder, unless SAFELIGHT_CATALOG and so on name other addresses. Over TCP
# the sockets need keys, as in follow_changes.py.
runtime = os.getenv("XDG_RUNTIME_DIR")
run = os.getenv("SAFELIGHT_RUN") or (f"{runtime}/safelight" if runtime else f"/tmp/safelight-{os.getuid()}")


def call(service, method, **params):
    socket = zmq.Context.instance().socket(zmq.REQ)
    socket.connect(os.getenv(f"SAFELIGHT_{service.upper()}", f"ipc://{run}/{service}.sock"))
    socket.send_json({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
    return socket.recv_multipart()


# Step 1: fetch the five newest assets from the catalog.
newest = {"sort": [{"key": "creationDate", "ascending": False}], "limit": 5}
reply = call("catalog", "fetch.assets", fetch=newest)

# Step 2: request an image of each asset from the thumbnailer, and save its attachment.
for asset in json.loads(reply[0])["result"]["assets"]:
    _, image = call("thumbnailer", "image.request", asset=asset["id"], targetSize={"width": 512, "height": 512})
    with open(f"{asset['id']}.jpg", "wb") as file:
        file.write(image)
