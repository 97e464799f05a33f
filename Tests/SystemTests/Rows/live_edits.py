"""Edits of Live Photos: the still and each frame of the video (T-48)."""

import json
import math
import os
import subprocess

from rows import Client, asset, call, client, equal, file, perform, refusal, run

# The frame of the video that the still shows, in microseconds.
SHOWN = 480_000
created = {}


def create(*names):
    resources = [{"type": kind, "attachment": index, "originalFilename": name}
                 for index, (kind, name) in enumerate(zip(("photo", "pairedVideo"), names))]
    request = {"type": "asset.create", "ref": "a", "resources": resources, "ifDuplicate": "create"}
    return perform(request, attachments=[file(name) for name in names])["placeholders"]["a"]


def new(*names):
    if names not in created:
        created[names] = create(*names)
    return created[names]


def pair():
    return new("live.jpg", "live.mov")


def operations(*pairs):
    return {"version": 1, "operations": [{"operation": name, **members} for name, members in pairs]}


def save(id, list, **more):
    return call("editor", "edits.livePhoto", asset=id, adjustments=list, **more)


def decoded(data, *options):
    """Returns the raw bytes to which ffmpeg decodes a file."""
    path = f"{os.environ['FILES']}/input"
    with open(path, "wb") as opened:
        opened.write(data)
    words = [os.environ["FFMPEG"], "-v", "error", "-i", path, *options, "-"]
    return subprocess.run(words, capture_output=True, check=True).stdout


def rgb_bytes(data, size, time=None):
    """Returns an image, or the frame of a video at a time, as rows of red, green and blue in a size."""
    scale = f"scale={size[0]}:{size[1]}:flags=area+accurate_rnd+full_chroma_int+full_chroma_inp"
    when = [] if time is None else ["-ss", f"{max(0, time / 1e6 - 0.001):.4f}"]
    return decoded(data, *when, "-frames:v", "1", "-vf", scale, "-f", "rawvideo", "-pix_fmt", "rgb24")


def psnr(one, other):
    assert len(one) == len(other) and one, f"{len(one)} {len(other)}"
    error = sum((a - b) ** 2 for a, b in zip(one, other)) / len(one)
    return 99 if error == 0 else 10 * math.log10(255 ** 2 / error)


def resource(id, kind):
    try:
        return call("catalog", "resource.read", asset=id, type=kind)[1][0]
    except Exception as error:
        assert "missing_resource" in str(error), error


def kinds(id):
    return [one["type"] for one in asset(id)["resources"]]


def compare(id, minimum, time=SHOWN):
    """Compares the edited still with the frame of the edited video, both in half the size of the video."""
    video = next(one for one in asset(id)["resources"] if one["type"] == "fullSizePairedVideo")
    size = (video["pixelWidth"] // 2, video["pixelHeight"] // 2)
    still = rgb_bytes(resource(id, "fullSizePhoto"), size)
    frame = rgb_bytes(resource(id, "fullSizePairedVideo"), size, time)
    found = psnr(still, frame)
    assert found > minimum, f"{found:.1f} dB at {size}"
    return found


EDITS = [
    (operations(("exposure", {"value": 0.5}), ("temperature", {"value": 0.4}), ("contrast", {"value": 0.3})),
     (640, 480), 34),
    (operations(("blackAndWhite", {})), (640, 480), 34),
    (operations(("crop", {"x": 0.25, "y": 0.1, "width": 0.5, "height": 0.8}), ("rotate", {"value": 90})),
     (384, 320), 32),
    (operations(("flip", {"value": "horizontal"}), ("sepia", {"value": 0.8})), (640, 480), 34),
    (operations(("straighten", {"value": 6})), (564, 422), 30),
    (operations(("resize", {"width": 320}), ("saturation", {"value": 0.5})), (320, 240), 32),
]


def still_and_frames_get_the_same_edit():
    id = pair()
    # Unedited, they differ by their encodings only.
    bare = psnr(rgb_bytes(file("live.jpg"), (320, 240)), rgb_bytes(file("live.mov"), (320, 240), SHOWN))
    assert bare > 34, bare
    before = asset(id)
    for list, size, minimum in EDITS:
        save(id, list)
        equal(kinds(id), ["photo", "pairedVideo", "fullSizePhoto", "fullSizePairedVideo", "adjustmentData"])
        video = asset(id)["resources"][3]
        got = (video["pixelWidth"], video["pixelHeight"])
        assert abs(got[0] - size[0]) <= 2 and abs(got[1] - size[1]) <= 2, f"{got} {size}"
        compare(id, minimum)
        # The edited video has all frames.
        video = resource(id, "fullSizePairedVideo")
        count = len(decoded(video, "-vf", "scale=8:8", "-f", "rawvideo", "-pix_fmt", "gray")) // 64
        equal(count, 25)
    now = asset(id)
    equal((now["playbackStyle"], now["mediaSubtypes"], now["creationDate"]),
          (before["playbackStyle"], before["mediaSubtypes"], before["creationDate"]))
    equal((resource(id, "photo"), resource(id, "pairedVideo")), (file("live.jpg"), file("live.mov")))
    # The edited video is still a QuickTime file with the identifier that pairs it with the photo.
    assert b"LIVE-ID" in resource(id, "fullSizePairedVideo")
    equal(now["resources"][3]["contentType"], "com.apple.quicktime-movie")
    call("editor", "edits.revert", asset=id)
    equal(kinds(id), ["photo", "pairedVideo"])


def loudness(video):
    sound = decoded(video, "-map", "0:a?", "-f", "s16le", "-ac", "1") if video else b""
    values = [int.from_bytes(sound[at:at + 2], "little", signed=True) for at in range(0, len(sound), 64)]
    return math.sqrt(sum(value * value for value in values) / len(values)) if values else 0


def audio_volume():
    id = pair()
    original_loudness = loudness(file("live.mov"))
    for volume, expected in ((0.5, 0.5), (0.25, 0.25), (1, 1)):
        save(id, operations(("exposure", {"value": 0.2})), audioVolume=volume)
        found = loudness(resource(id, "fullSizePairedVideo")) / original_loudness
        assert abs(found - expected) < 0.05, f"{volume}: {found}"
    save(id, operations(), audioVolume=0)
    video = resource(id, "fullSizePairedVideo")
    path = f"{os.environ['FILES']}/mute.mov"
    with open(path, "wb") as opened:
        opened.write(video)
    words = [os.environ["FFPROBE"], "-v", "error", "-of", "json", "-show_streams", path]
    streams = json.loads(subprocess.run(words, capture_output=True, check=True).stdout)["streams"]
    equal([stream["codec_type"] for stream in streams], ["video"])
    for wrong in (-0.1, 1.1):
        equal(refusal("editor", "edits.livePhoto", asset=id, audioVolume=wrong), "invalid_params")


def key_frame():
    id = pair()
    list = operations(("exposure", {"value": 0.3}))
    save(id, list, keyFrame=160_000)
    now = asset(id)
    still = next(one for one in now["resources"] if one["type"] == "fullSizePhoto")
    equal((still["pixelWidth"], still["pixelHeight"]), (640, 480))
    compare(id, 32, time=160_000)
    other = psnr(rgb_bytes(resource(id, "fullSizePhoto"), (320, 240)),
                 rgb_bytes(resource(id, "fullSizePairedVideo"), (320, 240), SHOWN))
    assert other < 30, other
    # The date of the photo is in it.
    assert b"2024:06:01 12:30:00" in resource(id, "fullSizePhoto")
    # If only the key frame changes, no video is rendered.
    save(id, operations(), keyFrame=160_000)
    equal(kinds(id), ["photo", "pairedVideo", "fullSizePhoto", "adjustmentData"])
    equal(refusal("editor", "edits.livePhoto", asset=id, keyFrame=5_000_000), "invalid_params")


def second_save_cancels_the_first():
    id = new("long.jpg")
    other = Client()
    sepia = operations(("sepia", {"value": 1}))
    first = other.send("editor", "edits.livePhoto", asset=id, adjustments=sepia, credit=1 << 16)
    # The first is being rendered when the second arrives.
    while True:
        message, _ = other.receive("editor")
        assert message.get("method") == "edits.progress", message
        if message["params"]["part"] > 0:
            break
    second = other.send("editor", "edits.livePhoto", asset=id, adjustments=operations(("rotate", {"value": 90})))
    answers = {}
    while len(answers) < 2:
        message, _ = other.receive("editor")
        if "id" in message:
            answers[message["id"]] = message
    other.close()
    error = answers[first]["error"]
    equal((error["data"]["name"], error["data"]["isReplaced"], error["data"]["asset"]), ("user_cancelled", True, id))
    assert answers[second]["result"]["isChanged"]
    history = call("editor", "edits.history", asset=id)
    equal([step["adjustments"]["operations"][0]["operation"] for step in history["steps"]], ["rotate"])
    video = next(one for one in asset(id)["resources"] if one["type"] == "fullSizePairedVideo")
    equal((video["pixelWidth"], video["pixelHeight"]), (720, 1280))
    # A cancelled request changes nothing either, and has one response.
    other = Client()
    number = other.send("editor", "edits.livePhoto", asset=id, adjustments=sepia, credit=1 << 16)
    other.receive("editor")
    other.send("editor", "rpc.cancel", **{"id": number})
    while True:
        message, _ = other.receive("editor")
        if message.get("id") == number:
            break
    equal((message["error"]["data"]["name"], message["error"]["data"].get("isReplaced")), ("user_cancelled", None))
    other.close()
    equal(len(call("editor", "edits.history", asset=id)["steps"]), 1)


def stream(ticket):
    data = b""
    while len(data) < ticket["size"]:
        part = call("thumbnailer", "video.read", asset=ticket["asset"], stream=ticket["stream"], offset=len(data),
                    length=min(1_000_000, ticket["size"] - len(data)))
        data += part[1][0]
    return data


def requests_deliver_the_edited_pair():
    id = new("motion.jpg")
    equal("offset" in asset(id)["resources"][1], True)
    save(id, operations(("blackAndWhite", {})))
    size = {"width": 320, "height": 320}
    for version, kind, grey in (("current", "fullSizePairedVideo", True), ("original", "pairedVideo", False),
                                ("unadjusted", "pairedVideo", False)):
        result, (still,) = call("thumbnailer", "livePhoto.request", asset=id, targetSize=size, version=version,
                                deliveryMode="highQualityFormat")
        equal((version, result["film"]["resource"]["type"]), (version, kind))
        video = stream(result["film"])
        for pixels in (rgb_bytes(still, (64, 48)), rgb_bytes(video, (64, 48), SHOWN)):
            spread = max(max(pixels[at:at + 3]) - min(pixels[at:at + 3]) for at in range(0, len(pixels), 3))
            assert (spread < 12) == grey, f"{version}: {spread}"
        if version == "current":
            equal(call("thumbnailer", "video.playback", asset=id)["stream"], result["film"]["stream"])
    # An edit of the still alone shows the video as it was taken.
    call("editor", "edits.apply", asset=id, adjustments=operations(("sharpen", {"amount": 0.5})))
    equal(kinds(id), ["photo", "pairedVideo", "fullSizePhoto", "adjustmentData"])
    call("editor", "edits.undo", asset=id)
    equal(kinds(id), ["photo", "pairedVideo", "fullSizePhoto", "fullSizePairedVideo", "adjustmentData"])


def lists_are_appended_undone_and_copied():
    id = pair()
    save(id, operations(("blackAndWhite", {})), audioVolume=0.5)
    save(id, operations(("rotate", {"value": 90})), mode="append")
    step = call("editor", "edits.history", asset=id)["steps"][-1]["adjustments"]
    equal([one["operation"] for one in step["operations"]], ["blackAndWhite", "rotate"])
    equal(step["livePhoto"], {"audioVolume": 0.5})
    # A list that has the member is the same edit in edits.apply.
    call("editor", "edits.apply", asset=id, mode="append", adjustments=operations(("flip", {"value": "vertical"})))
    compare(id, 30)
    video = resource(id, "fullSizePairedVideo")
    assert abs(loudness(video) / loudness(file("live.mov")) - 0.5) < 0.05
    call("editor", "edits.undo", asset=id)
    equal(call("editor", "edits.history", asset=id)["steps"][-1]["adjustments"]["operations"], step["operations"])
    # Copied to a photo without a video, it is an edit of a photo.
    plain = new("plain.jpg")
    call("editor", "edits.copy", **{"from": id, "to": [plain]})
    equal(kinds(plain), ["photo", "fullSizePhoto", "adjustmentData"])
    equal("livePhoto" in call("editor", "edits.history", asset=plain)["steps"][-1]["adjustments"], False)
    copy = new("motion.jpg")
    call("editor", "edits.copy", **{"from": id, "to": [copy]})
    assert "fullSizePairedVideo" in kinds(copy), kinds(copy)


def previews_have_still_and_video():
    id = pair()
    call("editor", "edits.revert", asset=id)
    before = asset(id)["revision"]
    list = operations(("exposure", {"value": 0.5}), ("crop", {"x": 0, "y": 0, "width": 0.5, "height": 1}))
    both = {**list, "livePhoto": {}}
    result, (still, video) = call("editor", "edits.preview", asset=id, adjustments=both, maximumSide=240)
    equal((result["pixelWidth"], result["pixelHeight"], result["film"]["pixelWidth"], result["film"]["pixelHeight"]),
          (160, 240, 160, 240))
    found = psnr(rgb_bytes(still, (160, 240)), rgb_bytes(video, (160, 240), SHOWN))
    assert found > 28, found
    result, attachments = call("editor", "edits.preview", asset=id, adjustments=list, maximumSide=240)
    equal((len(attachments), "film" in result), (1, False))
    equal(asset(id)["revision"], before)


def input_of_another_program():
    id = create("live.jpg", "live.mov")
    begun, _ = call("editor", "editing.begin", asset=id, skipsDisplaySizeImage=True)
    equal((begun["pairedVideo"]["type"], begun["pairedVideo"]["duration"] // 100_000), ("pairedVideo", 10))

    def commit(name, video, **more):
        data = {"formatIdentifier": "org.example.a", "formatVersion": "1", "attachment": 2}
        request = {"type": "asset.edit", "id": id, "render": {"attachment": 0}, "pairedVideo": {"attachment": 1},
                   "adjustmentData": data, **more}
        return perform(request, attachments=[file(name), file(video), b"J"])

    commit("plain.jpg", "render.mp4", inputToken=begun["inputToken"])
    equal(kinds(id), ["photo", "pairedVideo", "fullSizePhoto", "fullSizePairedVideo", "adjustmentData"])
    equal(resource(id, "fullSizePairedVideo"), file("render.mp4"))
    # This editor starts from the current version, and keeps its photo and video as bases.
    save(id, operations(("rotate", {"value": 90})))
    assert {"adjustmentBasePhoto", "adjustmentBasePairedVideo"} <= set(kinds(id)), kinds(id)
    equal(resource(id, "adjustmentBasePairedVideo"), file("render.mp4"))
    video = next(one for one in asset(id)["resources"] if one["type"] == "fullSizePairedVideo")
    equal((video["pixelWidth"], video["pixelHeight"]), (240, 320))
    # Again from the same base.
    save(id, operations(("rotate", {"value": 180})))
    video = next(one for one in asset(id)["resources"] if one["type"] == "fullSizePairedVideo")
    equal((video["pixelWidth"], video["pixelHeight"]), (320, 240))
    for request in ({"render": {"attachment": 0}, "pairedVideo": {"attachment": 0}},):
        body = {"type": "asset.edit", "id": id, **request,
                "adjustmentData": {"formatIdentifier": "org.example.a", "formatVersion": "1", "attachment": 1}}
        equal(refusal("catalog", "changes.perform", [file("plain.jpg"), b"J"], requests=[body]),
              "request_not_supported")
    body = {"type": "asset.edit", "id": new("plain.jpg"), "render": {"attachment": 0}, "pairedVideo": {"attachment": 1},
            "adjustmentData": {"formatIdentifier": "org.example.a", "formatVersion": "1", "attachment": 2}}
    equal(refusal("catalog", "changes.perform", [file("plain.jpg"), file("render.mp4"), b"J"], requests=[body]),
          "request_not_supported")


def invalid_requests_are_refused():
    for list, id, name in ((operations(("sharpen", {"amount": 0.5})), pair(), "request_not_supported"),
                           (operations(("volume", {"value": 0.5})), pair(), "request_not_supported"),
                           (operations(("exposure", {"value": 0.5})), new("plain.jpg"), "request_not_supported"),
                           ({**operations(), "livePhoto": {"loudness": 1}}, pair(), "invalid_params"),
                           ({**operations(), "livePhoto": {"audioVolume": 2}}, pair(), "invalid_params")):
        equal((list, refusal("editor", "edits.livePhoto", asset=id, adjustments=list)), (list, name))


if __name__ == "__main__":
    run(still_and_frames_get_the_same_edit, audio_volume, key_frame, second_save_cancels_the_first,
        requests_deliver_the_edited_pair, lists_are_appended_undone_and_copied, previews_have_still_and_video,
        input_of_another_program, invalid_requests_are_refused)
