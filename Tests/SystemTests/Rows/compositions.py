"""How videos are composed: tracks, segments, time map, volume and source files (S-61)."""

import json
import math
import os
import struct
import subprocess

from rows import asset, call, equal, file, perform, refusal, run

created = {}


def new(*names):
    if names not in created:
        resources = [{"type": kind, "attachment": index, "originalFilename": name}
                     for index, (kind, name) in enumerate(zip(("photo", "pairedVideo"), names))]
        request = {"type": "asset.create", "ref": "a", "resources": resources}
        created[names] = perform(request, attachments=[file(name) for name in names])["placeholders"]["a"]
    return created[names]


def composition(*names, **more):
    return call("thumbnailer", "video.asset", asset=new(*names), **more)


def probe(name, *options):
    words = [os.environ["FFPROBE"], "-v", "error", *options, "-of", "json", "-show_format", "-show_streams",
             f"{os.environ['FILES']}/{name}"]
    return json.loads(subprocess.run(words, capture_output=True, check=True).stdout)


def boxes(data, start=0, end=None):
    """Returns the boxes of a part of a file: name, first byte of the content, and end."""
    end = len(data) if end is None else end
    while start + 8 <= end:
        length, name = struct.unpack(">I4s", data[start:start + 8])
        yield name.decode("latin1"), start + 8, start + length
        start += length


def inside(data, path, start=0, end=None):
    """Returns the contents of all boxes at a path."""
    for name, first, last in boxes(data, start, end):
        if name == path[0]:
            if len(path) == 1:
                yield first, last
            else:
                yield from inside(data, path[1:], first, last)


def edit_lists(name):
    """Returns the edit list of each track, by a parser of its own: seconds shown, and seconds of the media or None."""
    data = file(name)
    (header, _), = inside(data, ["moov", "mvhd"])
    scale, = struct.unpack(">I", data[header + 12:header + 16])
    lists = []
    for track in inside(data, ["moov", "trak"]):
        (times, _), = inside(data, ["mdia", "mdhd"], *track)
        media, = struct.unpack(">I", data[times + 12:times + 16])
        for list, _ in inside(data, ["edts", "elst"], *track):
            count, = struct.unpack(">I", data[list + 4:list + 8])
            rows = [struct.unpack(">IiHH", data[list + 8 + 12 * row:list + 20 + 12 * row]) for row in range(count)]
            lists.append([(shown / scale, None if time < 0 else time / media, rate) for shown, time, rate, _ in rows])
    return lists


def near(found, expected, tolerance=0.002):
    assert abs(found - expected) <= tolerance, f"{found} is not {expected}"


def tracks_are_those_of_ffprobe():
    for name in ("plain.mp4", "cut.mp4", "gap.mp4", "slow.mov", "film.mkv", "film.avi"):
        got, probed = composition(name), probe(name)
        equal((name, got["resource"]["digest"], [one["digest"] for one in got["sources"]], got["isRendered"]),
              (name, got["sources"][0]["digest"], [asset(new(name))["resources"][0]["digest"]], False))
        equal((name, len(got["tracks"])), (name, len(probed["streams"])))
        for track, stream in zip(got["tracks"], probed["streams"]):
            media = track["media"]
            equal((name, media["kind"], media["codec"]), (name, stream["codec_type"], stream["codec_name"]))
            assert track["isShown"] and track["isEnabled"], (name, track)
            if "id" in stream:
                equal((name, track["id"]), (name, int(stream["id"], 16)))
            if media["kind"] == "video":
                equal((media["pixelWidth"], media["pixelHeight"]), (stream["width"], stream["height"]))
            else:
                equal((media["sampleRate"], media["channels"]), (int(stream["sample_rate"]), stream["channels"]))
            if "nb_frames" in stream:
                equal((name, track["frameCount"]), (name, int(stream["nb_frames"])))
            if "duration" in stream:
                near(track["duration"] / 1e6, float(stream["duration"]))
            start = min(float(other["start_time"]) for other in probed["streams"])
            near(track["start"] / 1e6, float(stream["start_time"]) - start)


def segments_are_those_of_the_edit_list():
    for name in ("cut.mp4", "gap.mp4", "plain.mp4"):
        got, lists = composition(name)["tracks"], edit_lists(name)
        equal(len(got), len(lists))
        for track, rows in zip(got, lists):
            equal((name, len(track["segments"])), (name, len(rows)))
            at = 0
            for segment, (shown, time, rate) in zip(track["segments"], rows):
                near(segment["start"] / 1e6, at)
                near(segment["duration"] / 1e6, shown)
                equal(segment.get("sourceStart") is None, time is None)
                if time is not None:
                    near(segment["sourceStart"] / 1e6, time)
                    near(segment["sourceDuration"] / 1e6, shown)
                    equal(segment["rate"], rate)
                at += shown
    # The cut begins within the media, and the audio of the other file after a gap.
    cut = composition("cut.mp4")["tracks"][0]["segments"]
    assert cut[-1]["sourceStart"] > 100_000, cut
    shown, hidden = (float(probe("cut.mp4", *options)["streams"][0]["start_time"])
                     for options in ((), ("-ignore_editlist", "1")))
    assert shown == 0 and hidden != 0, (shown, hidden)
    gap = composition("gap.mp4")["tracks"][1]["segments"]
    equal("sourceStart" in gap[0], False)
    near(gap[0]["duration"] / 1e6, 0.5, 0.03)
    # Other containers have no edit lists: one segment has the whole media.
    segment, = composition("film.mkv")["tracks"][0]["segments"]
    equal((segment["sourceStart"], segment["rate"]), (0, 1))
    near(segment["duration"] / 1e6, 2, 0.1)


def decoded(data, *options):
    path = f"{os.environ['FILES']}/input"
    with open(path, "wb") as opened:
        opened.write(data)
    words = [os.environ["FFMPEG"], "-v", "error", "-i", path, *options, "-f", "rawvideo", "-pix_fmt", "rgb24", "-"]
    return subprocess.run(words, capture_output=True, check=True).stdout


def frame(data, time):
    return decoded(data, "-ss", f"{max(0, time - 0.001):.4f}", "-frames:v", "1", "-vf", "scale=160:120:flags=area")


def psnr(one, other):
    assert len(one) == len(other) and one, f"{len(one)} {len(other)}"
    error = sum((a - b) ** 2 for a, b in zip(one, other)) / len(one)
    return 99 if error == 0 else 10 * math.log10(255 ** 2 / error)


def exported(id, preset, **more):
    status = call("thumbnailer", "video.export", asset=id, preset=preset, **more)
    while status["state"] in ("waiting", "running"):
        status = call("thumbnailer", "video.exportStatus", export=status["export"], wait=20_000)
    equal((status["state"], status.get("error")), ("done", None))
    _, (data,) = call("thumbnailer", "video.read", asset=id, stream=status["stream"], offset=0, length=status["size"])
    path = f"{os.environ['FILES']}/exported.mp4"
    with open(path, "wb") as opened:
        opened.write(data)
    return data, probe("exported.mp4")


def slow_motion_is_mapped_and_rendered():
    got = composition("slow.mov")
    seconds = [(part["sourceStart"] / 1e6, part["sourceDuration"] / 1e6, part["rate"], part["start"] / 1e6,
                part["duration"] / 1e6) for part in got["timeMap"]]
    expected = [(0, 0.4, 1, 0, 0.4), (0.4, 1.2, 0.25, 0.4, 4.8), (1.6, 0.4, 1, 5.2, 0.4)]
    for one, other in zip(seconds, expected):
        for found, target in zip(one, other):
            near(found, target, 0.03)
    near(got["duration"] / 1e6, 5.6, 0.05)
    equal((got["isRendered"], got["audioCurve"]), (False, [{"time": 0, "volume": 1}]))
    # The frames of the source are displayed at the times of the map.
    source = file("slow.mov")
    data, probed = exported(new("slow.mov"), "640x480")
    for stream in probed["streams"]:
        near(float(stream["duration"]), 5.6, 0.15)
    equal({stream["codec_type"] for stream in probed["streams"]}, {"video", "audio"})
    equal(next(stream for stream in probed["streams"] if stream["codec_type"] == "video")["avg_frame_rate"], "30/1")
    for shown, time in ((0.2, 0.2), (2.0, 0.8), (3.6, 1.2), (5.4, 1.8)):
        found = psnr(frame(data, shown), frame(source, time))
        assert found > 30, f"{shown}: {found}"
    assert psnr(frame(data, 2.0), frame(source, 1.9)) < 28
    # The original, and copied tracks, have the speed at which they were recorded.
    for preset, more in (("640x480", {"version": "original"}), ("passthrough", {})):
        _, probed = exported(new("slow.mov"), preset, **more)
        near(float(probed["format"]["duration"]), 2, 0.1)
    part, = composition("intent.mov")["timeMap"]
    equal((part["rate"], part["start"], part["sourceStart"]), (1, 0, 0))
    # After an edit of colours the video stays in slow motion; an edit of the speed replaces the map.
    call("editor", "edits.apply", asset=new("slow.mov"),
         adjustments={"version": 1, "operations": [{"operation": "blackAndWhite"}]})
    got = composition("slow.mov")
    equal((len(got["timeMap"]), got["isRendered"], len(got["sources"])), (3, False, 2))
    call("editor", "edits.apply", asset=new("slow.mov"),
         adjustments={"version": 1, "operations": [{"operation": "speed", "value": 0.5}]})
    got = composition("slow.mov")
    equal((len(got["timeMap"]), got["timeMap"][0]["rate"], got["isRendered"]), (1, 0.5, True))


def edits_have_their_times_and_volume():
    id = new("plain.mp4")
    call("editor", "edits.apply", asset=id, adjustments={"version": 1, "operations": [
        {"operation": "timeRange", "start": 0.5, "end": 2.5}, {"operation": "speed", "value": 2},
        {"operation": "volume", "value": 0.5}]})
    got = composition("plain.mp4")
    part, = got["timeMap"]
    near(part["sourceStart"] / 1e6, 0.5)
    near(part["sourceDuration"] / 1e6, 2, 0.15)
    near(part["duration"] / 1e6, 1, 0.08)
    equal((part["rate"], got["audioCurve"], got["isRendered"]), (2, [{"time": 0, "volume": 0.5}], True))
    equal([one["type"] for one in got["sources"]], ["fullSizeVideo", "video"])
    equal(got["resource"], got["sources"][0])
    got = composition("plain.mp4", version="original")
    equal(([one["type"] for one in got["sources"]], got["timeMap"][0]["rate"], got["isRendered"]),
          (["video"], 1, False))


def live_photos_have_the_time_of_their_still():
    """Writes a track like Apple's, with the time of the still after a gap."""
    def box(name, *content):
        return struct.pack(">I4s", 8 + sum(map(len, content)), name.encode()) + b"".join(content)

    video = file("start.mov")
    (header, _), = inside(video, ["moov", "mvhd"])
    scale, = struct.unpack(">I", video[header + 12:header + 16])
    key = box("keyd", b"mdtacom.apple.quicktime.still-image-time")
    sample = box("mebx", bytes(6), struct.pack(">H", 1), box("keys", box("\0\0\0\1", key)))
    tables = [box("stsd", struct.pack(">II", 0, 1), sample), box("stts", bytes(8)), box("stsc", bytes(8)),
              box("stsz", bytes(12)), box("stco", bytes(8))]
    matrix = struct.pack(">9I", 0x10000, 0, 0, 0, 0x10000, 0, 0, 0, 0x40000000)
    track = box("trak",
                box("tkhd", struct.pack(">IIIIII", 15, 0, 0, 77, 0, scale), bytes(8), bytes(8), matrix, bytes(8)),
                box("edts", box("elst", struct.pack(">II", 0, 2), struct.pack(">IiI", scale * 480 // 1000, -1, 0x10000),
                                struct.pack(">IiI", 1, 0, 0x10000))),
                box("mdia", box("mdhd", struct.pack(">IIIIIHH", 0, 0, 0, 600, 600, 0, 0)),
                    box("hdlr", bytes(8), b"meta", bytes(13)), box("minf", box("stbl", *tables))))
    at, end = next(inside(video, ["moov"]))
    moov = box("moov", video[at:end], track)
    with open(f"{os.environ['FILES']}/still.mov", "wb") as opened:
        opened.write(video[:at - 8] + moov + video[end:])
    got = composition("photo.jpg", "still.mov")
    near(got["photoTime"] / 1e6, 0.48)
    equal(got["resource"]["type"], "pairedVideo")
    equal("photoTime" in composition("plain.mp4"), False)


def invalid_requests_are_refused():
    equal(refusal("thumbnailer", "video.asset", asset=new("plain.jpg")), "missing_resource")
    equal(refusal("thumbnailer", "video.asset", asset=new("plain.mp4"), version="unadjusted"), "invalid_params")


if __name__ == "__main__":
    run(tracks_are_those_of_ffprobe, segments_are_those_of_the_edit_list, slow_motion_is_mapped_and_rendered,
        edits_have_their_times_and_volume, live_photos_have_the_time_of_their_still, invalid_requests_are_refused)
