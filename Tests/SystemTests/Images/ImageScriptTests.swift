import Foundation
import JSONValue
import TestSupport
import Testing

/// Images and resources as a script sees them, by plain pyzmq against the real services.
@Suite(.serialized, .timeLimit(.minutes(3)))
struct ImageScriptTests {
    /// Returns pixels that compress to about their own size.
    private static func noise(_ x: Int, _ y: Int) -> (UInt8, UInt8, UInt8, UInt8) {
        var mixed = UInt64(x) &* 0x9E37_79B9_7F4A_7C15 &+ UInt64(y) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ mixed >> 29) &* 0x94D0_49BB_1331_11EB
        mixed ^= mixed >> 32
        return (UInt8(truncatingIfNeeded: mixed), UInt8(truncatingIfNeeded: mixed >> 8), UInt8(mixed >> 16 & 255), 255)
    }

    @Test(.spec("S-45", "S-55", "S-77", "T-31", "P-09"))
    func `a script sees near degraded images, whole resources, the trash, and why images cannot be shown`() throws {
        let python = try Needed.python()
        let services = try SafelightFixture("script")
        try services.start([.catalog, .changeBroker, .thumbnailer])
        let whole = TestImages.jpeg(width: 640, height: 480)
        let large = TestImages.png(width: 2000, height: 1100, pixel: Self.noise)
        let files: [(String, [UInt8])] = [
            ("photo", TestImages.jpeg(width: 1200, height: 800)), ("large", large),
            ("trash", TestImages.jpeg(width: 300, height: 200, seed: 5)),
            ("huge", TestImages.pngStart(width: 12_000, height: 9000) + TestImages.chunk("IEND", [])),
            ("broken", Array(whole.prefix(whole.count * 2 / 3)) + [0xFF, 0xD9]),
        ]
        var input: JSONObject = ["run": .string(services.folder.file("run")), "largeBytes": JSON(large.count)]
        for (name, bytes) in files { input[name] = .string(try services.folder.write(bytes, to: "in/\(name)")) }
        try Self.run(python, Self.promises, input)
        #expect(services.stop() == [])
    }

    @Test(.spec("P-13")) func `a script imports every format and gets its pixels`() throws {
        let python = try Needed.python("zmq, PIL.Image")
        let services = try SafelightFixture("formats")
        try services.start([.catalog, .changeBroker, .thumbnailer])
        try Self.run(
            python,
            Self.formats,
            [
                "run": .string(services.folder.file("run")),
                "photo": .string(try services.folder.write(TestImages.jpeg(width: 480, height: 320), to: "in/photo")),
                "folder": .string(services.folder.file("in")),
            ]
        )
        #expect(services.stop() == [])
    }

    /// Runs a script, which prints a list of problems.
    private static func run(_ python: String, _ part: String, _ input: JSONObject) throws {
        let script = prelude + "\n" + part
        let run = try RunningProgram.run(python, ["-c", script], input: Data(JSON.object(input).bytes), seconds: 120)
        #expect(run.status == 0, "\(run.errors)")
        #expect(try JSON(parsing: Array(run.output.utf8)) == [], "\(run.output)")
    }

    private static let prelude = #"""
        import json, sys, zmq
        given = json.load(sys.stdin)
        context = zmq.Context()
        sockets = {}
        for name in ["catalog", "thumbnailer"]:
            sockets[name] = context.socket(zmq.DEALER)
            sockets[name].setsockopt(zmq.LINGER, 0)
            sockets[name].setsockopt(zmq.RCVTIMEO, 60000)
            sockets[name].connect("ipc://" + given["run"] + "/" + name + ".sock")
        problems = []

        # Returns the messages before the reply, the reply, and its attachments.
        def call(service, method, params, attachments=()):
            request = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
            sockets[service].send_multipart([json.dumps(request).encode()] + list(attachments))
            before = []
            while True:
                frames = sockets[service].recv_multipart()
                message = json.loads(frames[0])
                if "method" not in message:
                    return before, message, frames[1:]
                before.append(message["params"])

        def perform(*requests):
            _, reply, _ = call("catalog", "changes.perform", {"requests": list(requests)})
            if "error" in reply:
                raise SystemExit("changes.perform: " + reply["error"]["message"])
            return reply["result"]

        def add(path):
            reply = perform({"type": "asset.create", "ref": "a", "resources": [{"path": path}]})
            return reply["placeholders"]["a"]

        def image(asset, side, mode, **more):
            size = side if isinstance(side, str) else {"width": side[0], "height": side[1]}
            return call("thumbnailer", "image.request",
                        dict({"asset": asset, "targetSize": size, "deliveryMode": mode}, **more))

        def check(name, holds, found=None):
            if not holds:
                problems.append([name, str(found)[:300]])

        def error(reply):
            return reply.get("error", {}).get("data", {}).get("name")
        """#

    private static let promises = #"""
        # Degraded images have at least a quarter of the target size.
        photo = add(given["photo"])
        image(photo, (2, 2), "highQualityFormat", resizeMode="exact")
        image(photo, (40, 30), "highQualityFormat", resizeMode="exact")
        for side in [(380, 300), (800, 600), (1500, 1500), "max"]:
            for mode in ["fastFormat", "opportunistic"]:
                before, reply, _ = image(photo, side, mode, resizeMode="exact")
                full = (1200, 800) if side == "max" else (side[0], side[0] * 2 // 3)
                full = (min(1200, full[0]), min(800, full[1]))
                for shown in before + [reply["result"]]:
                    near = 4 * shown["pixelWidth"] >= full[0] and 4 * shown["pixelHeight"] >= full[1]
                    check("near %s %s" % (side, mode), near, shown)

        # Without credit the reply has all bytes, or an error that explains how to read them.
        large = add(given["large"])
        size = given["largeBytes"]
        _, reply, attachments = call("catalog", "resource.read", {"asset": large})
        check("read whole", error(reply) == "limit_exceeded", reply)
        read = b""
        while len(read) < size:
            part = {"asset": large, "offset": len(read), "length": 4 << 20}
            _, reply, attachments = call("catalog", "resource.read", part)
            read += attachments[0]
        check("read in ranges", read == open(given["large"], "rb").read())
        _, reply, attachments = call("catalog", "resource.read", {"asset": photo})
        check("read small", attachments and attachments[0] == open(given["photo"], "rb").read())

        # Images of the trash.
        trashed = add(given["trash"])
        perform({"type": "asset.trash", "ids": [trashed]})
        for mode in ["highQualityFormat", "opportunistic"]:
            _, reply, attachments = image(trashed, (50, 50), mode)
            check("trash " + mode, "result" in reply and len(attachments) == 1, reply)
        _, reply, attachments = call("thumbnailer", "image.data", {"asset": trashed})
        check("trash data", attachments and attachments[0] == open(given["trash"], "rb").read(), reply)
        _, reply, _ = call("thumbnailer", "image.sheet", {"assets": [photo, trashed]})
        check("trash sheet", not reply["result"].get("failed"), reply)
        token = perform({"type": "asset.delete", "ids": [trashed]})["token"]
        for _ in range(2):
            _, reply, _ = image(trashed, (50, 50), "highQualityFormat", atLeast=token)
            check("deleted", error(reply) == "identifier_not_found", reply)

        # After cache.stop the reply says where the image came from.
        _, reply, _ = call("thumbnailer", "cache.open", {})
        cache = reply["result"]["cache"]
        images = {"cache": cache, "assets": [photo], "resizeMode": "exact"}
        images["targetSize"] = {"width": 90, "height": 90}
        call("thumbnailer", "cache.start", images)
        while True:
            _, reply, _ = call("thumbnailer", "cache.status", {"cache": cache})
            if reply["result"]["waiting"] + reply["result"]["preparing"] == 0:
                break
        def reason(**more):
            _, reply, _ = image(photo, (90, 90), "highQualityFormat", resizeMode="exact", **more)
            return [reply["result"]["isCacheHit"], reply["result"]["cacheReason"]]
        check("prepared", reason(cache=cache) == [True, "prepared"], reason(cache=cache))
        call("thumbnailer", "cache.stop", images)
        state = reason(cache=cache)
        check("stopped", state == [True, "disk"], state)
        check("again", reason(cache=cache) == [True, "memory"])

        # An image that exceeds the limits is stored and marked.
        huge = add(given["huge"])
        _, reply, _ = call("catalog", "fetch.assets", {"fetch": {"kind": "assets", "ids": [huge]}})
        damage = reply["result"]["assets"][0]["resources"][0].get("damage")
        check("bounds", damage is not None and "too large" in damage, damage)
        _, reply, _ = image(huge, (90, 90), "highQualityFormat")
        check("bounds refused", error(reply) == "limit_exceeded", reply)

        # An image with damaged data is delivered as far as it can be decoded, and marked.
        broken = add(given["broken"])
        _, reply, attachments = image(broken, (120, 120), "highQualityFormat", resizeMode="exact")
        check("damaged", "result" in reply and len(attachments) == 1, reply)
        for _ in range(600):
            _, reply, _ = call("catalog", "fetch.assets", {"fetch": {"kind": "assets", "ids": [broken]}})
            damage = reply["result"]["assets"][0]["resources"][0].get("damage")
            if damage:
                break
            sockets["catalog"].poll(50)
        check("damaged row", damage is not None and "of 480 on" in damage, damage)
        print(json.dumps(problems, indent=1))
        """#

    private static let formats = #"""
        import io, os
        from PIL import Image
        photo = Image.open(given["photo"]).convert("RGB").resize((128, 80))
        kinds = [("ppm", "public.pbm", {}), ("tga", "com.truevision.tga-image", {}),
                 ("tga", "com.truevision.tga-image", {"compression": "tga_rle"}),
                 ("ico", "com.microsoft.ico", {"sizes": [(128, 80)]}),
                 ("ico", "com.microsoft.ico", {"sizes": [(128, 80)], "bitmap_format": "bmp"})]
        paths = []
        for number, (file_extension, kind, options) in enumerate(kinds):
            path = os.path.join(given["folder"], "%d.%s" % (number, file_extension))
            photo.save(path, **options)
            paths.append((path, kind))
        path = os.path.join(given["folder"], "flat.psd")
        with open(path, "wb") as out:
            out.write(b"8BPS\0\1" + bytes(6) + b"\0\3\0\0\0\x50\0\0\0\x80\0\x08\0\3" + bytes(14))
            for band in photo.split():
                out.write(band.tobytes())
        paths.append((path, "com.adobe.photoshop-image"))
        for path, kind in paths:
            asset = add(path)
            _, reply, _ = call("catalog", "fetch.assets", {"fetch": {"kind": "assets", "ids": [asset]}})
            properties = reply["result"]["assets"][0]
            check("type of " + path, properties["contentType"] == kind and properties["mediaType"] == "image",
                  properties)
            check("size of " + path, [properties["pixelWidth"], properties["pixelHeight"]] == [128, 80], properties)
            _, reply, attachments = image(asset, "max", "highQualityFormat", format="png")
            check("image of " + path, "result" in reply, reply)
            if attachments:
                shown = Image.open(io.BytesIO(attachments[0])).convert("RGB")
                check("pixels of " + path, shown.tobytes() == photo.tobytes())
            _, reply, attachments = call("thumbnailer", "image.data", {"asset": asset})
            data = attachments and attachments[0] == open(path, "rb").read()
            check("data of " + path, data and reply["result"]["contentType"] == kind, reply)
            # Damage in the file neither crashes nor hangs a worker.
            bytes_ = bytearray(open(path, "rb").read())
            for offset in range(20, len(bytes_), max(1, len(bytes_) // 7)):
                bytes_[offset] ^= 0xFF
            broken = path + ".broken." + path.rsplit(".")[-1]
            open(broken, "wb").write(bytes_)
            create = {"type": "asset.create", "ref": "a", "resources": [{"path": broken}]}
            _, reply, _ = call("catalog", "changes.perform", {"requests": [create]})
            check("broken " + path, "result" in reply or error(reply) in ["invalid_resource", "unsupported_format"], reply)
            if "result" in reply:
                _, reply, _ = image(reply["result"]["placeholders"]["a"], (50, 50), "highQualityFormat")
                check("broken image " + path, "result" in reply or error(reply) in ["invalid_resource", "limit_exceeded"], reply)
        print(json.dumps(problems, indent=1))
        """#
}
