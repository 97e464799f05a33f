import Foundation
import JSONValue
import TestSupport
import Testing

/// The rows about videos as a script sees them: plain pyzmq against the real executables, with videos that ffmpeg made.
@Suite(.serialized, .timeLimit(.minutes(5)))
struct VideoRowsByScriptTests {
    @Test(.spec("S-34", "S-40", "S-52", "S-59", "S-61", "S-62"))
    func `videos have properties, frames and streams as specified`() throws {
        let python = try Needed.python()
        let services = try SafelightFixture("videos")
        try Self.makeVideos(services.folder)
        try services.start([.catalog, .changeBroker, .thumbnailer])
        let environment = services.environment.merging([
            "FILES": services.folder.path, "FFMPEG": try Needed.program("ffmpeg"),
            "FFPROBE": try Needed.program("ffprobe"),
        ]) { $1 }
        let run = try RunningProgram.run(python, ["-c", Self.script], environment: environment, seconds: 200)
        #expect(run.status == 0, "\(run.errors)\n\(services.logs)")
        let lines = try run.output.split(separator: "\n").map { try JSON(parsing: String($0)) }
        #expect(lines.count == 10, "\(run.output)\n\(run.errors)")
        for line in lines { #expect(line["problem"] == nil, "\(line.text)") }

        // The command line: facts, a saved stream that plays, and a player.
        let id = try #require(lines.last?["id"]?.stringValue)
        #expect(try services.safelight(["video", id]).output.contains("video: h264"))
        let saved = services.folder.file("saved.mp4")
        try #require(try services.safelight(["video", id, "--output", saved]).status == 0)
        let frames = try FFmpegVideos.frame(of: saved, at: 0.5)
        #expect(try frames == FFmpegVideos.frame(of: services.folder.file("end.mp4"), at: 0.5))
        let played = services.folder.file("played.mp4")
        #expect(try services.safelight(["play", id, "--player", "cat > \(played)"]).status == 0)
        #expect(try Data(contentsOf: URL(fileURLWithPath: played)) == Data(contentsOf: URL(fileURLWithPath: saved)))
        #expect(try services.safelight(["play", id, "--player", "true"]).status == 0)
        let thumb = services.folder.file("frame.jpg")
        #expect(try services.safelight(["thumb", id, "--at", "1.5", "-o", thumb]).status == 0)
        #expect(services.stop() == [])
    }

    private static func makeVideos(_ folder: TemporaryFolder) throws {
        let h264 = ["-c:v", "libx264", "-preset", "veryfast", "-pix_fmt", "yuv420p", "-c:a", "aac"]
        func video(_ name: String, seconds: Double = 1, size: String = "320x240", rate: Int = 25, _ options: [String])
            throws
        {
            try FFmpegVideos.make(folder.file(name), size: size, rate: rate, seconds: seconds, options)
        }
        try video("end.mp4", seconds: 3, h264 + ["-g", "25"])
        try video("start.mp4", seconds: 2, h264 + ["-movflags", "+faststart"])
        try video(
            "apple.mov",
            h264 + [
                "-movflags", "use_metadata_tags", "-metadata",
                "com.apple.quicktime.creationdate=2024-06-01T12:30:00+0200",
                "-metadata", "com.apple.quicktime.location.ISO6709=+48.1372+011.5756+519.000/", "-metadata",
                "com.apple.quicktime.make=Apple", "-metadata", "com.apple.quicktime.model=iPhone 15", "-metadata",
                "creation_time=2020-01-01T00:00:00Z",
            ]
        )
        try video(
            "android.mp4",
            h264 + [
                "-metadata", "location=+52.5200+013.4050/", "-metadata", "creation_time=2023-05-06T07:08:09Z",
                "-metadata", "title=Sea", "-metadata", "comment=Waves",
            ]
        )
        try video(
            "loci.3gp",
            size: "352x288",
            [
                "-c:v", "h263", "-c:a", "aac", "-metadata", "location=-33.8688+151.2093/", "-metadata", "title=Harbour",
            ]
        )
        try video(
            "film.mkv",
            h264 + ["-metadata", "creation_time=2022-02-03T04:05:06Z", "-metadata", "title=Mountain"]
        )
        try video("film.webm", ["-c:v", "libvpx", "-b:v", "1M", "-deadline", "realtime", "-c:a", "libopus"])
        try video("film.avi", ["-c:v", "mpeg4", "-q:v", "3", "-c:a", "mp3", "-metadata", "title=Old"])
        try video(
            "film.mts",
            ["-c:v", "libx264", "-pix_fmt", "yuv420p", "-c:a", "ac3", "-f", "mpegts", "-mpegts_m2ts_mode", "1"]
        )
        try video("film.mpg", ["-c:v", "mpeg2video", "-q:v", "3", "-c:a", "mp2"])
        try video("slow.mov", rate: 120, h264)
        try video("anamorphic.mp4", size: "360x288", h264 + ["-vf", "setsar=16/15"])
        try FFmpegVideos.ffmpeg([
            "-i", folder.file("end.mp4"), "-c", "copy", "-metadata:s:v:0", "rotate=90", folder.file("turned.mp4"),
        ])
        try video(
            "hdr.mp4",
            [
                "-vf", "scale=out_color_matrix=bt2020,format=yuv420p10le", "-c:v", "libx265", "-x265-params",
                "log-level=none:colorprim=bt2020:transfer=smpte2084:colormatrix=bt2020nc", "-tag:v", "hvc1", "-c:a",
                "aac",
            ]
        )
        let whole = try Data(contentsOf: URL(fileURLWithPath: folder.file("start.mp4")))
        try folder.write(whole.prefix(whole.count / 3), to: "cut.mp4")
        try FFmpegVideos.ffmpeg(["-f", "lavfi", "-i", "sine=duration=1", "-c:a", "aac", folder.file("sound.mp4")])
        try folder.write(TestImages.jpeg(width: 64, height: 48), to: "photo.jpg")
    }

    private static let script = #"""
        import hashlib, json, os, subprocess, traceback, zmq

        context = zmq.Context.instance()
        sockets = {}
        created = {}


        class Refused(Exception):
            pass


        def path(name):
            return f"{os.environ['FILES']}/{name}"


        def file(name):
            with open(path(name), "rb") as opened:
                return opened.read()


        def call(service, method, attachments=(), **params):
            if service not in sockets:
                sockets[service] = context.socket(zmq.REQ)
                sockets[service].rcvtimeo = 60000
                sockets[service].connect(f"ipc://{os.environ['SAFELIGHT_RUN']}/{service}.sock")
            request = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
            sockets[service].send_multipart([json.dumps(request).encode(), *attachments])
            reply, *frames = sockets[service].recv_multipart()
            reply = json.loads(reply)
            if "error" in reply:
                raise Refused(reply["error"]["data"]["name"])
            return reply["result"], frames


        def refusal(*arguments, **params):
            try:
                call(*arguments, **params)
            except Refused as error:
                return str(error)


        def asset_id(name):
            if name not in created:
                request = {"type": "asset.create", "ref": "a", "resources": [{"attachment": 0, "originalFilename": name}]}
                reply, _ = call("catalog", "changes.perform", [file(name)], requests=[request])
                created[name] = reply["placeholders"]["a"]
            return created[name]


        def asset(name):
            return call("catalog", "fetch.assets", fetch={"kind": "assets", "ids": [asset_id(name)]})[0]["assets"][0]


        def image(name, side=160, **params):
            params.setdefault("deliveryMode", "highQualityFormat")
            return call("thumbnailer", "image.request", asset=asset_id(name), targetSize={"width": side, "height": side}, **params)


        def equal(actual, expected):
            assert actual == expected, f"{actual} is not {expected}"


        def probe(name):
            words = [os.environ["FFPROBE"], "-v", "error", "-of", "json", "-show_format", "-show_streams", path(name)]
            return json.loads(subprocess.run(words, capture_output=True, check=True).stdout)


        def decoded(data, *options):
            flags = ["-sws_flags", "bicubic+accurate_rnd+full_chroma_int+full_chroma_inp"]
            words = [os.environ["FFMPEG"], "-v", "error", "-i", "-", *options, *flags, "-f", "rawvideo", "-pix_fmt", "rgb24", "-"]
            return subprocess.run(words, input=data, capture_output=True, check=True).stdout


        def psnr(first, second):
            import math
            assert len(first) == len(second) and first, f"{len(first)} {len(second)}"
            error = sum((a - b) ** 2 for a, b in zip(first, second)) / len(first)
            return 99 if error == 0 else 10 * math.log10(255 ** 2 / error)


        videos = ["end.mp4", "apple.mov", "loci.3gp", "film.mkv", "film.webm", "film.avi", "film.mts", "film.mpg",
                  "hdr.mp4"]


        def containers_are_imported():
            kinds = ["public.mpeg-4", "com.apple.quicktime-movie", "public.3gpp", "org.matroska.mkv",
                     "org.webmproject.webm", "public.avi", "public.avchd-mpeg-2-transport-stream", "public.mpeg",
                     "public.mpeg-4"]
            for name, kind in zip(videos, kinds):
                properties, probed = asset(name), probe(name)
                video = next(stream for stream in probed["streams"] if stream["codec_type"] == "video")
                equal((name, properties["mediaType"], properties["contentType"]), (name, "video", kind))
                wide, high = (int(part) for part in video.get("sample_aspect_ratio", "1:1").split(":"))
                equal((name, properties["pixelWidth"], properties["pixelHeight"]),
                      (name, round(video["width"] * wide / high), video["height"]))
                difference = abs(properties["duration"] / 1e6 - float(probed["format"]["duration"]))
                assert difference < 0.05, f"{name}: {properties['duration']} {probed['format']['duration']}"
            equal((asset("turned.mp4")["pixelWidth"], asset("turned.mp4")["pixelHeight"]), (240, 320))
            equal((asset("anamorphic.mp4")["pixelWidth"], asset("anamorphic.mp4")["pixelHeight"]), (384, 288))


        def dates_places_and_texts():
            apple = asset("apple.mov")
            equal((apple["creationDate"], apple["creationOffset"]), (1717237800000000, 7200))
            equal((apple["cameraMake"], apple["cameraModel"]), ("Apple", "iPhone 15"))
            location = apple["location"]
            assert abs(location["latitude"] - 48.1372) < 1e-4 and abs(location["longitude"] - 11.5756) < 1e-4, location
            android = asset("android.mp4")
            equal(android["creationDate"], 1683356889000000)
            location = android["location"]
            assert abs(location["latitude"] - 52.52) < 1e-4 and abs(location["longitude"] - 13.405) < 1e-4, location
            equal((android["metadata"]["title"], android["caption"]), ("Sea", "Waves"))
            location = asset("loci.3gp")["location"]
            assert abs(location["latitude"] + 33.8688) < 1e-3 and abs(location["longitude"] - 151.2093) < 1e-3, location
            matroska = asset("film.mkv")
            equal((matroska["creationDate"], matroska["metadata"]["title"]), (1643861106000000, "Mountain"))
            equal(asset("film.avi")["metadata"]["title"], "Old")


        def slow_motion():
            asset_id("slow.mov")
            fetch = {"kind": "collections", "type": "smartAlbum", "subtype": "smartAlbumSlomoVideos"}
            album = call("catalog", "fetch.collections", fetch=fetch)[0]["collections"][0]["id"]
            page = call("catalog", "fetch.assets", fetch={"kind": "assets", "in": album})[0]["assets"]
            equal([item["id"] for item in page], [asset_id("slow.mov")])


        def frames_of_all_videos():
            for name in videos:
                reply, parts = image(name)
                assert parts[0].startswith(b"\xff\xd8"), name
                equal((name, reply["pixelWidth"] == 160, reply["isDegraded"]), (name, True, False))
                # Sound may start a little before the video.
                assert reply["frameTime"] < 50000, (name, reply)
                again, _ = image(name)
                assert again["isCacheHit"], name
            for name, size in (("turned.mp4", (120, 160)), ("anamorphic.mp4", (160, 120))):
                reply, _ = image(name)
                equal((name, (reply["pixelWidth"], reply["pixelHeight"])), (name, size))


        def the_frame_at_a_time():
            for microseconds, expected in ((0, 0), (1500000, 1520000), (2960000, 2960000)):
                reply, parts = image("end.mp4", 320, frameTime=microseconds, format="png")
                equal(reply["frameTime"], expected)
                seconds = f"{expected / 1e6 - 0.001:.3f}" if expected else "0"
                reference = decoded(file_of_end(), "-ss", seconds, "-frames:v", "1")
                frame = decoded(parts[0])
                assert psnr(frame, reference) > 35, f"{microseconds}: {psnr(frame, reference)}"
            # Every option of a photo.
            reply, _ = image("end.mp4", 100, contentMode="aspectFill", resizeMode="exact", frameTime=1000000)
            equal((reply["pixelWidth"], reply["pixelHeight"]), (100, 100))
            reply, _ = image("end.mp4", 80, resizeMode="exact", normalizedCropRect={"x": 0, "y": 0, "width": 0.5, "height": 1})
            equal((reply["pixelWidth"], reply["pixelHeight"]), (53, 80))
            reply, parts = call("thumbnailer", "image.request", asset=asset_id("end.mp4"), targetSize="max", format="webp")
            equal((reply["pixelWidth"], reply["pixelHeight"], parts[0][8:12]), (320, 240, b"WEBP"))
            equal(refusal("thumbnailer", "image.request", asset=asset_id("end.mp4"), targetSize="max", frameTime=9000000),
                  "invalid_options")
            equal(refusal("thumbnailer", "image.request", asset=asset_id("photo.jpg"), targetSize="max", frameTime=0),
                  "invalid_options")
            equal(refusal("thumbnailer", "image.data", asset=asset_id("end.mp4")), "missing_resource")


        def file_of_end():
            # ffmpeg cannot seek in a pipe, so the index must come first.
            return read_stream("end.mp4")


        def degraded_first():
            socket = context.socket(zmq.DEALER)
            socket.rcvtimeo = 60000
            socket.connect(f"ipc://{os.environ['SAFELIGHT_RUN']}/thumbnailer.sock")
            params = {"asset": asset_id("end.mp4"), "targetSize": {"width": 300, "height": 300}, "frameTime": 2900000,
                      "credit": 1 << 24}
            socket.send_multipart([json.dumps(
                {"jsonrpc": "2.0", "id": 7, "method": "image.request", "params": params}).encode()])
            messages = []
            while not messages or "method" in messages[-1]:
                head, *_ = socket.recv_multipart()
                messages.append(json.loads(head))
            final = messages[-1]["result"]
            equal((final["isDegraded"], final["frameTime"]), (False, 2920000))
            for message in messages[:-1]:
                assert message["params"]["isDegraded"] and message["params"]["frameTime"] <= 2920000, message


        def sheets_show_videos():
            ids = [asset_id(name) for name in ("end.mp4", "photo.jpg", "film.avi")]
            reply, parts = call("thumbnailer", "image.sheet", assets=ids, columns=3, cell=120)
            equal(reply.get("failed", {}), {})
            with open(path("sheet.jpg"), "wb") as sheet:
                sheet.write(parts[0])


        def strips():
            reply, parts = call("thumbnailer", "image.frames", asset=asset_id("end.mp4"), times=[0, 1000000, 2500000],
                                targetSize={"width": 120, "height": 120})
            equal([frame["frameTime"] for frame in reply["frames"]], [0, 1000000, 2520000])
            equal([len(part) for part in parts], [frame["size"] for frame in reply["frames"]])
            equal({(frame["pixelWidth"], frame["pixelHeight"]) for frame in reply["frames"]}, {(120, 90)})
            assert len(set(parts)) == 3
            reply, parts = call("thumbnailer", "image.frames", asset=asset_id("end.mp4"), count=12)
            equal(len(parts), 12)
            times = [frame["frameTime"] for frame in reply["frames"]]
            equal(times, sorted(times))
            for asked, shown in zip((frame["time"] for frame in reply["frames"]), times):
                assert asked - 125000 <= shown <= asked + 80000, (asked, shown)
            again, _ = call("thumbnailer", "image.frames", asset=asset_id("end.mp4"), count=12)
            assert all(frame["isCacheHit"] for frame in again["frames"])
            for params in ({}, {"times": [0], "count": 2}):
                equal(refusal("thumbnailer", "image.frames", asset=asset_id("end.mp4"), **params), "invalid_options")
            equal(refusal("thumbnailer", "image.frames", asset=asset_id("photo.jpg"), count=2), "missing_resource")


        def read_stream(name, offset=0):
            ticket, _ = call("thumbnailer", "video.playback", asset=asset_id(name))
            stream = b""
            while offset + len(stream) < ticket["size"]:
                reply, parts = call("thumbnailer", "video.read", asset=asset_id(name), stream=ticket["stream"],
                                    offset=offset + len(stream), length=50021)
                stream += parts[0]
            return stream


        def playback():
            for name in videos:
                ticket, _ = call("thumbnailer", "video.playback", asset=asset_id(name))
                probed = probe(name)
                equal((name, ticket["size"]), (name, len(file(name))))
                equal((name, [track["codec"] for track in ticket["tracks"]]),
                      (name, [stream["codec_name"] for stream in probed["streams"]]))
                assert ticket["isFastStart"], name
                equal((name, ticket["isReordered"]), (name, name.split(".")[1] in ("mp4", "mov", "3gp")))
                equal((name, ticket["isHDR"]), (name, name == "hdr.mp4"))
            # The index is at the beginning, and the stream plays from a pipe: from the start, and after a seek.
            stream, original = read_stream("end.mp4"), file("end.mp4")
            equal(len(stream), len(original))
            assert stream.index(b"moov") < stream.index(b"mdat") and original.index(b"moov") > original.index(b"mdat")
            with open(path("stream.mp4"), "wb") as opened:
                opened.write(stream)
            sums = set()
            for name in ("end.mp4", "stream.mp4"):
                words = [os.environ["FFMPEG"], "-v", "error", "-i", path(name), "-f", "md5", "-"]
                run = subprocess.run(words, capture_output=True, check=True)
                assert run.stderr == b"", run.stderr
                sums.add(run.stdout)
            equal(len(sums), 1)
            _, frame = image("end.mp4", 320, frameTime=2000000, format="png")
            assert psnr(decoded(frame[0]), decoded(stream, "-ss", "1.999", "-frames:v", "1")) > 35
            equal(read_stream("end.mp4", 70000), stream[70000:])
            # The catalog's resource.read has the file as it was imported.
            ticket, _ = call("thumbnailer", "video.playback", asset=asset_id("end.mp4"), deliveryMode="fastFormat")
            _, parts = call("catalog", "resource.read", asset=asset_id("end.mp4"), type=ticket["resource"]["type"],
                            offset=1000, length=5000)
            equal(parts[0], original[1000:6000])
            equal(call("thumbnailer", "video.playback", asset=asset_id("start.mp4"))[0]["isReordered"], False)
            equal(read_stream("start.mp4"), file("start.mp4"))
            equal(refusal("thumbnailer", "video.playback", asset=asset_id("photo.jpg")), "missing_resource")
            equal(refusal("thumbnailer", "video.playback", asset=asset_id("end.mp4"), version="unadjusted"), "invalid_params")
            equal(refusal("thumbnailer", "video.read", asset=asset_id("end.mp4"), stream="0" * 64), "missing_resource")
            equal(refusal("thumbnailer", "video.read", asset=asset_id("end.mp4"), stream=ticket["stream"], offset=1 << 40),
                  "range_error")


        def broken_files_are_refused():
            for name in ("cut.mp4", "sound.mp4"):
                equal((name, refusal("catalog", "changes.perform", [file(name)], requests=[
                    {"type": "asset.create", "ref": "a", "resources": [{"attachment": 0}]}])), (name, "invalid_resource"))


        for point in (containers_are_imported, dates_places_and_texts, slow_motion, frames_of_all_videos, playback,
                      the_frame_at_a_time, degraded_first, sheets_show_videos, strips, broken_files_are_refused):
            line = {"point": point.__name__, "id": created.get("end.mp4")}
            try:
                point()
            except Exception:
                line["problem"] = traceback.format_exc(limit=-2)
            print(json.dumps(line), flush=True)
        """#
}
