"""Exports of videos (S-60)."""

import json
import os
import subprocess
import time

from rows import Client, asset, call, equal, import_file, perform, refusal, run

created = {}


def import_once(name):
    if name not in created:
        # By its path, because it may be larger than an attachment.
        resources = [{"path": f"{os.environ['FILES']}/{name}", "originalFilename": name}]
        created[name] = perform({"type": "asset.create", "ref": "a", "resources": resources})["placeholders"]["a"]
    return created[name]


def begin_export(name, preset, client=None):
    return (client.call if client else call)("thumbnailer", "video.export", asset=import_once(name), preset=preset)


def wait_until_ended(status, client=None):
    while status["state"] in ("waiting", "running"):
        status = (client.call if client else call)(
            "thumbnailer", "video.exportStatus", export=status["export"], wait=5000)
    return status


def export(name, preset):
    """Returns the finished export and its bytes."""
    status = wait_until_ended(begin_export(name, preset))
    equal((status["state"], status.get("error")), ("done", None))
    data = b""
    while len(data) < status["size"]:
        _, (part,) = call("thumbnailer", "video.read", asset=import_once(name), stream=status["stream"],
                          offset=len(data), length=min(1_000_000, status["size"] - len(data)))
        data += part
    return status, data


def probe(data):
    path = f"{os.environ['FILES']}/probed.mp4"
    with open(path, "wb") as opened:
        opened.write(data)
    words = ["ffprobe", "-v", "error", "-of", "json", "-show_format", "-show_streams", path]
    return json.loads(subprocess.run(words, capture_output=True, check=True).stdout)


def track(probed, kind):
    return next((one for one in probed["streams"] if one["codec_type"] == kind), None)


def presets_have_their_size():
    sizes = {
        "640x480": ("wide.mp4", 640, 360, "h264"), "960x540": ("wide.mp4", 960, 540, "h264"),
        "1280x720": ("wide.mp4", 1280, 720, "h264"), "1920x1080": ("wide.mp4", 1280, 720, "h264"),
        "low": ("wide.mp4", 480, 270, "h264"), "medium": ("wide.mp4", 960, 540, "h264"),
        "highest": ("wide.mp4", 1280, 720, "h264"), "hevc1920x1080": ("upright.mp4", 240, 320, "hevc"),
        "passthrough": ("film.mkv", 320, 240, "h264"),
    }
    for preset, (name, width, height, codec) in sizes.items():
        status, data = export(name, preset)
        equal((preset, status["pixelWidth"], status["pixelHeight"]), (preset, width, height))
        probed = probe(data)
        video = track(probed, "video")
        equal((preset, video["width"], video["height"], video["codec_name"]), (preset, width, height, codec))
        duration = float(probed["format"]["duration"])
        assert abs(duration - asset(import_once(name))["duration"] / 1e6) < 0.1, probed["format"]
        assert track(probed, "audio"), preset
    status, data = export("upright.mp4", "640x480")
    video = track(probe(data), "video")
    # The pixels are rotated; there is no display matrix.
    equal((video["width"], video["height"], video.get("side_data_list")), (240, 320, None))
    # The index comes first.
    assert data.index(b"moov") < data.index(b"mdat")


def other_containers_are_exported():
    for name in ("film.avi", "film.mts", "film.webm", "hdr.mp4"):
        status, data = export(name, "640x480")
        probed = probe(data)
        video = track(probed, "video")
        equal((name, video["codec_name"], video["pix_fmt"]), (name, "h264", "yuv420p"))
        assert track(probed, "audio")["codec_name"] in ("aac", "ac3", "mp3"), name
    equal([track(probe(data), "video").get(key) for key in ("color_space", "color_transfer", "color_primaries")],
          ["bt709", "bt709", "bt709"])


def facts_are_kept():
    for name in ("apple.mov", "android.mp4"):
        _, data = export(name, "640x480")
        with open(f"{os.environ['FILES']}/again-{name}.mp4", "wb") as opened:
            opened.write(data)
        before, after = asset(import_once(name)), asset(import_once(f"again-{name}.mp4"))
        keys = ["creationDate", "creationOffset", "location", "cameraMake", "cameraModel"]
        equal([after.get(key) for key in keys], [before.get(key) for key in keys])
        assert before.get("location"), before


def equal_exports_share_one_file():
    before = call("thumbnailer", "figures")["exports"]["completed"]
    other = Client()
    first, second = begin_export("long.mp4", "low"), begin_export("long.mp4", "low", other)
    assert first["export"] != second["export"]
    one, two = wait_until_ended(first), wait_until_ended(second, other)
    equal((one["state"], one["size"]), (two["state"], two["size"]))
    # A third one is finished at once.
    third = begin_export("long.mp4", "low")
    equal((third["state"], third["size"]), ("done", one["size"]))
    equal(call("thumbnailer", "figures")["exports"]["completed"], before + 1)
    other.close()


def progress_and_cancellation():
    status = begin_export("long.mp4", "highest")
    assert status["state"] in ("waiting", "running"), status
    seen = []
    while status["state"] in ("waiting", "running") and len(set(seen)) < 3:
        status = call("thumbnailer", "video.exportStatus", export=status["export"], wait=100)
        seen.append(status["done"])
    assert status["state"] == "running" and seen == sorted(seen), seen
    assert 0 < status["done"] <= status["duration"], status
    # If one of two clients cancels, the other one still gets the export.
    other = begin_export("long.mp4", "highest")
    call("thumbnailer", "video.cancelExport", export=status["export"])
    equal(refusal("thumbnailer", "video.exportStatus", export=status["export"]), "handle_expired")
    equal(call("thumbnailer", "video.exportStatus", export=other["export"])["state"], "running")
    call("thumbnailer", "video.cancelExport", export=other["export"])
    # Both have cancelled: the worker ends, and the next export begins.
    start = time.monotonic()
    equal(wait_until_ended(begin_export("upright.mp4", "low"))["state"], "done")
    assert time.monotonic() - start < 30


def invalid_requests_are_refused():
    equal(refusal("thumbnailer", "video.export", asset=import_file("photo.jpg"), preset="low"), "missing_resource")
    equal(refusal("thumbnailer", "video.export", asset=import_once("wide.mp4"), preset="1x1"), "invalid_params")
    equal(refusal("thumbnailer", "video.exportStatus", export="e0123456789abcdef"), "handle_expired")
    status, data = export("upright.mp4", "640x480")
    equal(refusal("thumbnailer", "video.read", asset=import_once("wide.mp4"), stream=status["stream"]),
          "missing_resource")
    equal(refusal("thumbnailer", "video.read", asset=import_once("upright.mp4"), stream=status["stream"],
                  offset=len(data) + 1), "range_error")
    # MPEG-4 files cannot contain its codec.
    status = wait_until_ended(begin_export("film.webm", "passthrough"))
    equal((status["state"], status["error"]["name"]), ("failed", "unsupported_format"))
    status = wait_until_ended(begin_export("damaged.mp4", "low"))
    assert status["state"] in ("done", "failed"), status


if __name__ == "__main__":
    run(presets_have_their_size, other_containers_are_exported, facts_are_kept, equal_exports_share_one_file,
        progress_and_cancellation, invalid_requests_are_refused)
