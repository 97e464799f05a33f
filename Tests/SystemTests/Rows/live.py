"""Live Photos and motion photos (T-47)."""

import glob
import hashlib
import os
import struct

from rows import Client, Refused, address, asset, call, client, equal, file, perform, refusal, run, smart_album

kinds = ["microVideo", "container", "elements", "samsung"]
created = {}


def create(*names, types=("photo", "pairedVideo")):
    resources = [{"type": kind, "attachment": index, "originalFilename": name}
                 for index, (kind, name) in enumerate(zip(types, names))]
    request = {"type": "asset.create", "ref": "a", "resources": resources}
    return perform(request, attachments=[file(name) for name in names])["placeholders"]["a"]


def new(*names):
    if names not in created:
        created[names] = create(*names)
    return created[names]


def resource(id, kind):
    return next((one for one in asset(id)["resources"] if one["type"] == kind), None)


def live(id, side=320, **params):
    params.setdefault("deliveryMode", "highQualityFormat")
    size = {"width": side, "height": side}
    result, frames = call("thumbnailer", "livePhoto.request", asset=id, targetSize=size, **params)
    return result, frames


def stream(ticket):
    data = b""
    while len(data) < ticket["size"]:
        part = call("thumbnailer", "video.read", asset=ticket["asset"], stream=ticket["stream"], offset=len(data),
                    length=min(50_000, ticket["size"] - len(data)))
        data += part[1][0]
    return data


def in_order(video):
    """Returns the top-level boxes of a video, in the order of the file."""
    names, at = [], 0
    while at < len(video):
        length, name = struct.unpack(">I4s", video[at:at + 8])
        names.append(name.decode())
        at += length
    return names


def check(id, video):
    now = asset(id)
    assert "photoLive" in now["mediaSubtypes"], now
    equal((now["mediaType"], now["playbackStyle"]), ("image", "livePhoto"))
    result, (still,) = live(id)
    equal((result["isDegraded"], result["isFinal"], result["still"]["mimeType"]), (False, True, "image/jpeg"))
    equal(max(result["still"]["pixelWidth"], result["still"]["pixelHeight"]), 320)
    equal(len(still), result["still"]["size"])
    ticket = result["film"]
    equal((ticket["asset"], ticket["isFastStart"], ticket["size"]), (id, True, len(video)))
    # The index comes first; the other boxes are unchanged.
    got = stream(ticket)
    equal(sorted(in_order(got)), sorted(in_order(video)))
    assert in_order(got).index("moov") < in_order(got).index("mdat")
    equal((ticket["duration"] // 100_000, {track["kind"] for track in ticket["tracks"]}),
          (call("thumbnailer", "video.playback", asset=id)["duration"] // 100_000, {"video", "audio"}))


def videos_inside_photos():
    video = file("film.mp4")
    for kind in kinds:
        id = new(f"{kind}.jpg")
        part, photo = resource(id, "pairedVideo"), resource(id, "photo")
        bytes = file(f"{kind}.jpg")
        equal((kind, part["offset"], part["size"]), (kind, bytes.index(video), len(video)))
        equal((part["digest"], photo["digest"], "offset" in photo),
              (photo["digest"], hashlib.sha256(bytes).hexdigest(), False))
        equal((part["contentType"], part["pixelWidth"], part["pixelHeight"]), ("public.mpeg-4", 320, 240))
        check(id, video)
    equal(asset(new("plain.jpg"))["playbackStyle"], "image")


def video_inside_a_boxed_photo():
    size = {"width": 400, "height": 300}
    _, (still,) = call("thumbnailer", "image.request", asset=new("plain.jpg"), targetSize=size, format="avif",
                       deliveryMode="highQualityFormat")
    video = file("film.mp4")
    with open(f"{os.environ['FILES']}/boxed.avif", "wb") as opened:
        opened.write(still + struct.pack(">I4s", len(video) + 8, b"mpvd") + video)
    id = new("boxed.avif")
    equal(resource(id, "pairedVideo")["offset"], len(still) + 8)
    check(id, video)


def videos_inside_heics():
    """Motion Photo version 2: the HEIC files of the test, with a video in an appended box `mpvd`."""
    video = file("film.mp4")
    for index, path in enumerate(sorted(glob.glob(f"{os.environ['FILES']}/*.heic"))):
        name = f"motion{index}.heic"
        still = file(os.path.basename(path))
        short = struct.pack(">I4s", len(video) + 8, b"mpvd")
        head = (short, struct.pack(">I4sQ", 1, b"mpvd", len(video) + 16))[index % 2]
        with open(f"{os.environ['FILES']}/{name}", "wb") as opened:
            opened.write(still + head + video)
        id = new(name)
        part, photo = resource(id, "pairedVideo"), resource(id, "photo")
        equal((part["offset"], part["size"], part["digest"]), (len(still) + len(head), len(video), photo["digest"]))
        equal((photo["contentType"].startswith("public.hei"), asset(id)["pixelWidth"] > 0), (True, True))
        check(id, video)
        _, (data,) = call("catalog", "resource.read", asset=id, type="pairedVideo", offset=0, length=len(video))
        equal(data, video)
    assert index > 1, index


def pairs_by_identifier():
    id = new("apple.jpg", "ONE.mov")
    equal([one["type"] for one in asset(id)["resources"]], ["photo", "pairedVideo"])
    equal("offset" in resource(id, "pairedVideo"), False)
    result, _ = live(id)
    equal((result["film"]["pixelWidth"], result["film"]["pixelHeight"]), (480, 360))
    try:
        create("other.jpg", "TWO.mov")
        assert False, "the video of another Live Photo was accepted"
    except Refused as error:
        equal(error.name, "resources_disagree")
    fetch = {"kind": "assets", "in": smart_album("smartAlbumLivePhotos")}
    equal(call("catalog", "fetch.assets", count=1, fetch=fetch)["count"], 6)


def degraded_still_first():
    id = new("container.jpg")
    # A smaller cached still is sent at once.
    live(id, side=400)
    result, frames = live(id, side=1200, deliveryMode="opportunistic")
    notes = [(message["method"], message["params"]["isDegraded"], message["params"]["isFinal"])
             for message, _ in client.notifications]
    equal(notes, [("image.degraded", True, False)])
    equal((result["isDegraded"], result["isFinal"], result["still"]["pixelWidth"]), (False, True, 1200))
    # A client that receives only one message gets the complete Live Photo.
    equal(live(id, side=900)[0]["isDegraded"], False)


def one_terminal_message():
    other = Client()
    id = new("elements.jpg")
    number = other.send("thumbnailer", "livePhoto.request", asset=id, targetSize={"width": 1500, "height": 1500},
                        format="png", deliveryMode="highQualityFormat")
    other.send("thumbnailer", "rpc.cancel", **{"id": number})
    terminal = []
    other.send("thumbnailer", "health")
    while True:
        message, _ = other.receive("thumbnailer")
        if message.get("id") == number:
            terminal.append(message)
        elif message.get("id") == other.last:
            break
    while not terminal:
        message, _ = other.receive("thumbnailer")
        terminal += [message] if message.get("id") == number else []
    # It was cancelled, or had been answered before.
    equal(len(terminal), 1)
    assert "result" in terminal[0] or terminal[0]["error"]["data"]["name"] == "user_cancelled", terminal
    other.close()


def options_of_live_photos():
    id = new("microVideo.jpg")
    size = {"width": 100, "height": 100}
    for wrong in ({"synchronous": True}, {"resizeMode": "exact"}):
        equal(refusal("thumbnailer", "livePhoto.request", asset=id, targetSize=size, **wrong), "invalid_params")
    equal(refusal("thumbnailer", "livePhoto.request", asset=new("plain.jpg"), targetSize=size), "missing_resource")
    zero, _ = call("thumbnailer", "livePhoto.request", asset=id, targetSize={"width": 0, "height": 0},
                   deliveryMode="highQualityFormat")
    equal((zero["still"]["pixelWidth"], zero["still"]["pixelHeight"]), (1600, 1200))
    equal(live(id, version="original")[0]["film"]["size"], len(file("film.mp4")))


def parts_are_read_exported_and_kept():
    video, id = file("film.mp4"), new("samsung.jpg")
    result, (data,) = call("catalog", "resource.read", asset=id, type="pairedVideo")
    equal((data == video, result["resource"]["offset"]), (True, file("samsung.jpg").index(video)))
    _, (middle,) = call("catalog", "resource.read", asset=id, type="pairedVideo", offset=1000, length=500)
    equal(middle, video[1000:1500])
    equal(refusal("catalog", "resource.read", asset=id, type="pairedVideo", offset=len(video) + 1), "range_error")
    path = f"{os.environ['FILES']}/part.mp4"
    equal(call("catalog", "resource.export", asset=id, type="pairedVideo", path=path)["path"], path)
    equal(file("part.mp4"), video)
    _, (data,) = call("catalog", "resource.export", asset=id, type="pairedVideo")
    equal(data, video)
    # Importing it again finds it; nothing was copied.
    equal(create("samsung.jpg"), id)
    digest = resource(id, "photo")["digest"]
    equal(resource(id, "pairedVideo")["digest"], digest)
    name = hashlib.sha256(video).hexdigest()
    stored = glob.glob(f"{os.environ['SAFELIGHT_LIBRARY']}/resources/**/{name}", recursive=True)
    equal(stored, [])


if __name__ == "__main__":
    run(videos_inside_photos, video_inside_a_boxed_photo, videos_inside_heics, pairs_by_identifier,
        degraded_still_first, one_terminal_message, options_of_live_photos, parts_are_read_exported_and_kept)
