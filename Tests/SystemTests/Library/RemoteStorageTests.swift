import Basics
import Foundation
import JSONValue
import TestSupport
import Testing

/// Originals in remote storage, against a real S3 server process whose request log is the oracle: moto's server, which
/// checks each signature with botocore.
@Suite(.serialized, .timeLimit(.minutes(60)))
struct RemoteStorageTests {
    @Test(.spec("S-47", "S-48", "T-33", "P-24"))
    func `originals go to the store and come back on request only, whole, once and with progress`() throws {
        let store = try S3Server()
        let services = try SafelightFixture(
            "remote-storage",
            environment: try store.environment.merging(["SAFELIGHT_COLLECT_AFTER_SECONDS": "1"]) { $1 }
        )
        for (index, name) in ["one", "two", "three", "four", "five"].enumerated() {
            try services.folder.write(TestImages.jpeg(width: 600, height: 400, seed: UInt64(index)), to: "\(name).jpg")
        }
        try services.start([.catalog])
        try RowScript.run(
            "storage.py",
            services,
            module: "moto",
            parts: [
                "upload_release_and_read", "concurrent_requests_share_a_transfer",
                "a_cancelled_download_leaves_no_file", "faulty_stores_are_named_and_recover",
                "uploads_wait_for_a_faulty_store_and_recover",
                "deleted_assets_are_deleted_at_the_store",
            ]
        )
        #expect(services.stop() == [])
        #expect(!services.logs.contains(S3Server.secret), "the secret is in the log")
    }

    /// libcurl finds each name below `localhost` on this machine (RFC 6761, section 6.3).
    @Test func `a bucket is addressed by its host, if that style is configured`() throws {
        let store = try S3Server()
        let style = [
            "SAFELIGHT_OBJECT_STORE_STYLE": "virtualHost",
            "SAFELIGHT_OBJECT_STORE_ENDPOINT": "http://localhost:" + (try store.port),
            "no_proxy": "localhost,.localhost",
        ]
        let services = try SafelightFixture("remote-style", environment: store.environment.merging(style) { $1 })
        try services.folder.write(TestImages.jpeg(width: 600, height: 400), to: "one.jpg")
        try services.start([.catalog])
        try RowScript.run("storage.py", services, module: "moto", parts: ["upload_release_and_read"])
        let paths = try store.requests.compactMap { try JSON(parsing: $0)["path"]?.stringValue }
        #expect(paths.contains { $0.hasPrefix("/library/") } && !paths.contains { $0.hasPrefix("/photos") }, "\(paths)")
        #expect(services.stop() == [])
    }

    @Test(.spec("T-42"))
    func `a store that does not answer is a state of the library, and everything else works`() throws {
        let store = try S3Server()
        let services = try SafelightFixture("remote-availability", environment: store.environment)
        for (index, name) in ["thirteen", "fourteen"].enumerated() {
            let seed = UInt64(30 + index)
            try services.folder.write(TestImages.jpeg(width: 600, height: 400, seed: seed), to: "\(name).jpg")
        }
        try services.start([.catalog, .changeBroker])
        try RowScript.run(
            "storage.py",
            services,
            module: "moto",
            parts: ["a_store_that_does_not_answer_is_reported"]
        )
        #expect(services.stop() == [])
    }

    @Test(.spec("S-47", "S-48", "S-93", "P-10", "P-24"))
    func `images, videos and edits of originals that are only in the store are as specified`() throws {
        let store = try S3Server()
        let services = try SafelightFixture("remote-images", environment: store.environment)
        let names = ["six", "seven", "eight", "nine", "ten", "eleven", "twelve"]
        for (index, name) in names.enumerated() {
            let seed = UInt64(10 + index)
            try services.folder.write(TestImages.jpeg(width: 600, height: 400, seed: seed), to: "\(name).jpg")
        }
        try FFmpegVideos.make(services.folder.file("film.mov"), ["-c:v", "libx264", "-pix_fmt", "yuv420p"])
        try services.start()
        try RowScript.run(
            "storage.py",
            services,
            module: "moto",
            parts: [
                "images_of_remote_originals", "videos_of_remote_originals",
                "edits_of_remote_originals", "streams_and_exports_of_remote_videos",
                "edits_with_network_access", "published_edits_with_network_access",
                "sheets_and_prefetches_of_remote_originals", "fetches_by_place",
                "lost_and_swapped_objects_are_found",
            ]
        )
        let status = try services.safelight(["storage"])
        #expect(status.status == 0 && status.output.contains("s3://photos/library, policy all"), "\(status.output)")
        let doctor = try services.safelight(["doctor"])
        #expect(doctor.output.contains("object store") && doctor.output.contains("s3://photos"), "\(doctor.output)")
        #expect(services.stop() == [])
    }

    @Test(.spec("T-34"))
    func `jobs of uploads and downloads remain until they are acknowledged, even after a kill`() throws {
        let store = try S3Server()
        let services = try SafelightFixture("remote-jobs", environment: store.environment)
        for (index, name) in ["one", "two", "three"].enumerated() {
            let seed = UInt64(40 + index)
            try services.folder.write(TestImages.jpeg(width: 600, height: 400, seed: seed), to: "\(name).jpg")
        }
        try services.start([.catalog])
        func run(_ part: String) throws {
            try RowScript.run("storage.py", services, module: "moto", parts: [part])
        }
        try run("jobs_are_kept_until_they_are_acknowledged")
        try run("jobs_before_a_restart")
        services.killHard(.catalog)
        try services.start([.catalog])
        try run("jobs_after_a_restart")
        let listed = try services.safelight(["storage", "jobs"])
        #expect(listed.status == 0 && listed.output.contains("succeeded"), "\(listed)")
        let all = try services.safelight(["storage", "jobs", "acknowledge", "--all"])
        #expect(all.status == 0 && all.output == "2 jobs acknowledged\n", "\(all)")
        _ = try services.safelight(["fetch", "--limit", "1"])
        let upload = try services.safelight(["storage", "jobs", "upload", "@1"])
        #expect(upload.status == 0 && upload.output.contains("upload"), "\(upload)")
        #expect(services.stop() == [])
    }

    @Test(.spec("S-47", "S-48", "T-33", "P-24"))
    func `commands and the Python package download originals from the store if they are allowed to`() throws {
        let store = try S3Server()
        let services = try SafelightFixture("remote-commands", environment: store.environment)
        let photo = TestImages.jpeg(width: 600, height: 400, seed: 20)
        try services.folder.write(photo, to: "photo.jpg")
        try FFmpegVideos.make(services.folder.file("film.mov"), ["-c:v", "libx264", "-pix_fmt", "yuv420p"])
        try services.start()
        for file in ["photo.jpg", "film.mov"] {
            #expect(try services.safelight(["import", services.folder.file(file)]).status == 0)
        }
        try blockUntil("uploaded") { try services.safelight(["storage"]).output.contains("uploaded  2 files") }
        let output = services.folder.file("output")
        let originals = try ["photo.jpg", "film.mov"].map { name in
            let bytes = try Data(contentsOf: URL(filePath: services.folder.file(name)))
            let digest = SHA256.hash(data: [UInt8](bytes)).hexadecimal
            let relativePath = "\(digest.prefix(2))/\(digest.dropFirst(2).prefix(2))/\(digest)"
            return services.folder.file("library/resources/" + relativePath)
        }
        let commands = [
            ["thumb", "photo.jpg", "--output", "-", "--size", "201"],
            [
                "sheet", "--where", "originalFilename == 'photo.jpg'", "--output", services.folder.file("sheet.jpg"),
                "--cell", "77",
            ],
            ["export", "--where", "originalFilename == 'photo.jpg'", "--output", output],
            ["edit", "photo.jpg", "--exposure", "0.5"], ["compare", "photo.jpg", "--output", "-"],
            ["video", "film.mov"],
            ["video", "film.mov", "--preset", "640x480", "--output", services.folder.file("small.mp4")],
            ["play", "film.mov", "--player", "cat > " + services.folder.file("played.mov")],
        ]
        for command in commands {
            // The renders of the preceding commands are uploaded too.
            try blockUntil("uploaded") {
                try services.safelight(["storage"]).output.contains("waiting   0 files, 0 failed")
            }
            // A file may remain in use for a short time after the command.
            try blockUntil("the originals are given up") {
                let released = try services.safelight(["storage", "release", "--where", "mediaType != 'audio'"])
                #expect(released.status == 0, "\(released)")
                return !originals.contains { FileManager.default.fileExists(atPath: $0) }
            }
            let before = store.requests.count
            let refused = try services.safelight(command)
            #expect(refused.status != 0, "\(command)")
            #expect((refused.errors + refused.output).contains("give --download"), "\(command) \(refused.errors)")
            #expect(store.requests.count == before, "\(command) has asked the store")
            let answered = try services.safelight(command + ["--download"])
            #expect(answered.status == 0, "\(command) \(answered.errors)")
        }
        #expect(try services.safelight(["storage", "release", "--where", "mediaType == 'video'"]).status == 0)
        let away = try services.safelight(["fetch", "--where", "isLocal == NO", "--count"])
        #expect(away.output == "1\n" || away.output == "2\n", "\(away.output)\(away.errors)")
        #expect(FileManager.default.contents(atPath: output + "/photo.jpg") == Data(photo))
        let script = """
            import hashlib, sys, time
            from safelight import Library, NetworkAccessRequiredError
            with Library() as library:
                photo = library.fetch(where="originalFilename == 'photo.jpg'")[0]
                def resource(name, type):
                    return library.fetch(where=f"originalFilename == '{name}'")[0].resource(type)
                def release():
                    end = time.monotonic() + 60
                    while True:
                        # A file may remain in use for a short time after a request.
                        library.call("storage.keep", {"fetch": {"kind": "assets"}, "keep": False})
                        found = [resource("photo.jpg", "photo"), resource("film.mov", "video")]
                        if not any(original.is_locally_available for original in found):
                            return found[0]
                        assert time.monotonic() < end, found
                        time.sleep(0.05)
                original = release()
                assert not original.is_locally_available
                for refused in (original.read, lambda: library.thumbnail(photo, 133, version="original")):
                    try:
                        refused()
                        raise SystemExit("it was answered")
                    except NetworkAccessRequiredError as error:
                        assert error.code == 3164 and error.data["isInCloud"], error
                for allowed in (
                    lambda report: original.read(network_access_allowed=True, progress=report),
                    lambda report: library.thumbnail(photo, 134, version="original", network_access_allowed=True, progress=report),
                    lambda report: library.preview(photo, exposure=1, network_access_allowed=True, progress=report),
                    lambda report: library.edit_one(photo, exposure=1, network_access_allowed=True, progress=report),
                ):
                    release()
                    parts = []
                    allowed(lambda progress: parts.append(progress.fraction))
                    assert parts == sorted(parts) and parts[-1] == 1, parts
                    parts.clear()
                    allowed(lambda progress: parts.append(progress.fraction))
                    assert not parts, parts
                video = library.fetch(where="originalFilename == 'film.mov'")[0]
                release()
                assert len(library.playback(video, network_access_allowed=True).read()) > 1000
                release()
                assert len(library.frames(video, count=2, network_access_allowed=True)) == 2
                release()
                (job,) = library.upload_jobs.download([photo])
                assert (job.type, job.asset) == ("downloadOnly", photo.id), job
                while library.upload_jobs("acknowledge") == []:
                    time.sleep(0.05)
                (done,) = library.upload_jobs()
                assert (done.id, done.state) == (job.id, "succeeded") and done.date >= job.date, done
                library.upload_jobs.acknowledge(done)
                assert library.upload_jobs() == [] and original.read(), library.upload_jobs()
                # An exception of the handler ends the download.
                original = release()
                def stop(progress):
                    raise KeyError("stop")
                try:
                    original.download(stop)
                    raise SystemExit("it was not stopped")
                except KeyError:
                    pass
                assert hashlib.sha256(original.read(network_access_allowed=True)).hexdigest() == original.digest
            """
        let checked = try RunningProgram.run(
            try Needed.python("zmq"),
            ["-B", "-c", script],
            environment: services.environment.merging(PythonPackage.environment) { $1 },
            seconds: 120
        )
        #expect(checked.status == 0, "\(checked.output)\(checked.errors)")
        #expect(services.stop() == [])
    }

    @Test func `a library larger than its budget keeps thumbnails on the local disk and reads all originals`() throws {
        let store = try S3Server()
        let environment = try store.environment.merging([
            "SAFELIGHT_OBJECT_STORE_POLICY": "optimize", "SAFELIGHT_LOCAL_BYTES": "300000",
        ]) { $1 }
        let services = try SafelightFixture("remote-budget", environment: environment)
        for index in 0..<24 {
            let photo = TestImages.jpeg(width: 400, height: 300, seed: UInt64(100 + index))
            try services.folder.write(photo + [UInt8](repeating: 7, count: 30_000), to: "many-\(index).jpg")
        }
        try services.start([.catalog, .changeBroker, .thumbnailer])
        try RowScript.run(
            "storage.py",
            services,
            module: "moto",
            parts: ["a_library_larger_than_its_budget"]
        )
        // A backup lists the originals that are only in the store, and a restored library reads them.
        let backup = services.folder.file("backup")
        let run = try services.safelight(["backup", backup])
        #expect(run.status == 0 && run.output.contains("in the object store and not copied"), "\(run.output)")
        let restored = services.folder.file("restored")
        let again = try services.safelight(["restore", backup, "--library", restored])
        #expect(again.output.contains("in the object store only"), "\(again.output) \(again.errors)")
        try RowScript.run("storage.py", services, module: "moto", parts: ["all_originals_can_be_read"])
        let download = try services.safelight(["storage", "restore", "--all"])
        #expect(download.status == 0 && download.output.contains("24 assets"), "\(download.output) \(download.errors)")
        let doctor = try services.safelight(["doctor"])
        #expect(!doctor.output.contains("missing:"), "\(doctor.output)")
        #expect(services.stop() == [])
    }

    @Test func `new assets have thumbnails after their originals were evicted, even after a kill`() throws {
        let store = try S3Server()
        let environment = try store.environment.merging([
            "SAFELIGHT_OBJECT_STORE_POLICY": "optimize", "SAFELIGHT_LOCAL_BYTES": "300000",
        ]) { $1 }
        let services = try SafelightFixture("remote-new", environment: environment)
        for index in 0..<36 {
            let photo = TestImages.jpeg(width: 400, height: 300, seed: UInt64(100 + index))
            let name = "\(index / 12)/many-\(index).jpg"
            try services.folder.write(photo + [UInt8](repeating: 7, count: 30_000), to: name)
        }
        func add(_ part: Int) throws {
            #expect(try services.safelight(["import", services.folder.file("\(part)")]).status == 0)
        }
        try services.start([.catalog, .changeBroker])
        // Assets that were imported before it starts are prepared too.
        try add(0)
        try services.start([.thumbnailer])
        try add(1)
        // Assets that are added now are prepared when it runs again.
        services.killHard(.thumbnailer)
        try add(2)
        try services.start([.thumbnailer])
        try RowScript.run("storage.py", services, module: "moto", parts: ["new_assets_have_thumbnails"])
        #expect(services.stop() == [])
    }
}
