import Foundation
import TestSupport
import Testing

/// Jobs for uploads and downloads (T-34), as clients of all kinds see them.
@Suite(.serialized, .timeLimit(.minutes(5)))
struct UploadJobTests {
    @Test(.spec("T-34"))
    func `jobs report their progress to a waiting client and on the feed`() throws {
        let store = try S3Server()
        let slow = ["SAFELIGHT_OBJECT_STORE_RATE": "1000000"]
        let services = try SafelightFixture("jobs", environment: store.environment.merging(slow) { $1 })
        var random = SeededRandom(seed: 3)
        let noise = TestImages.png(width: 1000, height: 800) { _, _ in
            let bits = random.next()
            return (UInt8(truncatingIfNeeded: bits), UInt8(truncatingIfNeeded: bits >> 8), UInt8(bits >> 56), 255)
        }
        try services.folder.write(noise, to: "noise.png")
        try services.start([.catalog, .changeBroker])
        try RowScript.run(
            "jobs.py",
            services,
            module: "moto, jsonschema",
            parts: [
                "uploads_report_their_progress", "a_job_for_a_running_upload_is_pending",
                "waiting_ends_with_the_deadline",
                "pages_follow_each_other",
            ]
        )
        let watched = try services.safelight(["storage", "jobs", "list", "--watch"])
        #expect(watched.status == 0 && watched.output.contains("succeeded"), "\(watched)")
        let status = try services.safelight(["storage"])
        #expect(status.output.contains("0 waiting, 0 running"), "\(status)")
        let released = try services.safelight(["storage", "release", "--where", "mediaType == 'image'"])
        #expect(released.status == 0, "\(released)")
        let follow = """
            from safelight import Library
            with Library(wait=30) as library:
                jobs = library.upload_jobs
                created = jobs.download(library.fetch())
                seen = [(job.id, job.state) for job in jobs.follow(created)]
                assert [state for _, state in seen].count("succeeded") == len(created) == 2, (created, seen)
                assert sorted({number for number, _ in seen}) == [job.id for job in created]
                assert all(job.has_ended and job.progress is None for job in jobs())
            """
        let followed = try RunningProgram.run(
            try Needed.python("zmq"),
            ["-B", "-c", follow],
            environment: services.environment.merging(PythonPackage.environment) { $1 }
        )
        #expect(followed.status == 0, "\(followed.errors)")
        #expect(services.stop() == [])
    }

    @Test func `a file that the store refuses is listed as failed, and the others are uploaded`() throws {
        let store = try S3Server()
        let services = try SafelightFixture("refused-file", environment: store.environment)
        let photo = TestImages.jpeg(width: 60, height: 40)
        try services.folder.write(photo, to: "small.jpg")
        try services.folder.write(photo + [UInt8](repeating: 7, count: 200_000), to: "large.jpg")
        try store.setFaults(#"{"largest": 100000}"#)
        try services.start([.catalog])
        for name in ["large.jpg", "small.jpg"] {
            #expect(try services.safelight(["import", services.folder.file(name)]).status == 0)
        }
        try waitForStorage("waiting   0 files, 1 failed", services)
        try waitForStorage("uploaded  1 file", services)
        try store.setFaults("{}")
        #expect(try services.safelight(["storage", "retry"]).status == 0)
        try waitForStorage("waiting   0 files, 0 failed", services)
        #expect(services.stop() == [])
    }

    /// Waits until the output of `safelight storage` contains a text.
    private func waitForStorage(_ text: String, _ services: SafelightFixture, _ arguments: [String] = []) throws {
        try blockUntil("safelight storage prints \(text)") {
            try services.safelight(["storage"] + arguments).output.contains(text)
        }
    }

    @Test func `files wait for a read-only store, and do not count as failed`() throws {
        let store = try S3Server()
        let services = try SafelightFixture("unwritable-store", environment: store.environment)
        try services.folder.write(TestImages.jpeg(width: 60, height: 40), to: "one.jpg")
        try store.setFaults(#"{"unwritable": true}"#)
        try services.start([.catalog])
        #expect(try services.safelight(["import", services.folder.file("one.jpg")]).status == 0)
        // After a refusal of the file, the store is asked for another one.
        try blockUntil("another object is written") {
            store.requests.contains { $0.contains("\"PUT\"") && $0.contains("/availability\"") }
        }
        #expect(try services.safelight(["storage"]).output.contains("waiting   1 file, 0 failed"))
        try store.setFaults("{}")
        try waitForStorage("uploaded  1 file", services)
        #expect(services.stop() == [])
    }

    @Test func `a download that needs ranges fails without them, and later downloads succeed`() throws {
        let store = try S3Server()
        let services = try SafelightFixture("rangeless-store", environment: store.environment)
        try services.folder.write(TestImages.jpeg(width: 60, height: 40), to: "one.jpg")
        try services.start([.catalog])
        #expect(try services.safelight(["import", services.folder.file("one.jpg")]).status == 0)
        try waitForStorage("uploaded  1 file", services)
        // The file may remain in use for a short time.
        let all = ["--where", "mediaType == 'image'"]
        let end = ContinuousClock.now + .seconds(60)
        while try !services.safelight(["storage"]).output.contains("local     0 files") {
            guard ContinuousClock.now < end else { throw FixtureError(description: "not given up in 60 s") }
            _ = try services.safelight(["storage", "release"] + all)
        }
        try store.setFaults(#"{"truncate": true, "rangeless": true}"#)
        #expect(try services.safelight(["storage", "jobs", "download"] + all).status == 0)
        try waitForStorage("unexpected_reply", services, ["jobs"])
        try store.setFaults("{}")
        #expect(try services.safelight(["storage", "jobs", "download"] + all).status == 0)
        try waitForStorage("succeeded", services, ["jobs"])
        #expect(services.stop() == [])
    }

    @Test(.spec("T-34", "T-41"))
    func `each client has its own jobs, a limited one for the assets of its list, and the owner sees all`() throws {
        let store = try S3Server()
        let script = try GrantScript(environment: store.environment)
        try script.createKeys("writer", "--access", "readWrite")
        try script.createKeys("viewer", "--access", "limited")
        try script.createKeys("adder", "--access", "addOnly")
        try script.run(Self.helpers + Self.identities, parts: ["own_jobs", "jobs_of_a_list", "limits_of_each"])
    }

    @Test(.spec("T-34", "T-40"))
    func `an add-only client follows the uploads of the assets that it has added, and of no others`() throws {
        let store = try S3Server()
        let script = try GrantScript(environment: store.environment)
        try script.createKeys("viewer", "--access", "limited")
        try script.createKeys("asker", "--access", "ask")
        for name in ["adder", "other"] { try script.createKeys(name, "--access", "addOnly") }
        try script.run(
            Self.helpers + Self.adding,
            parts: ["own_uploads", "jobs_of_others", "resources_of_others", "bytes_of_others", "earlier_access"]
        )
    }

    private static let adding = #"""
        import hashlib

        adder, other, viewer, asker = Client("adder"), Client("other"), Client("viewer"), Client("asker")
        UNKNOWN = "a" + "0" * 26


        def faults(**named):
            path = f"{os.environ['S3']}/faults"
            with open(f"{path}.new", "w") as opened:
                json.dump(named, opened)
            os.rename(f"{path}.new", path)


        def until(what, condition):
            end = time.monotonic() + 60
            while not (found := condition()):
                assert time.monotonic() < end, what
                time.sleep(0.05)
            return found


        def status():
            return owner.call("catalog", "storage.status")


        def add(client, name):
            return client.perform(create(name), attachments=[file(name)])["placeholders"]["a"]


        def uploads(name):
            """Returns how often the bytes of a file were sent to the store."""
            digest = hashlib.sha256(file(name)).hexdigest()
            with open(f"{os.environ['S3']}/requests") as log:
                requests = [json.loads(line) for line in log]
            return sum(request["method"] == "PUT" and request["path"].endswith(digest) for request in requests)


        def own_uploads():
            upload = adder.call("catalog", "upload.begin")["upload"]
            adder.call("catalog", "upload.append", [file("1.jpg")], upload=upload, offset=0)
            adder.call("catalog", "upload.finish", upload=upload)
            reply = adder.perform({"type": "asset.create", "ref": "a", "resources": [{"upload": upload}]})
            mine, version = reply["placeholders"]["a"], jobs(adder)["version"]
            page = adder.call("catalog", "jobs.create", assets=[mine])
            [created] = page["jobs"]
            equal((created["asset"], created["identity"], created["type"]), (mine, "key:adder", "upload"))
            equal(created["digest"], hashlib.sha256(file("1.jpg")).hexdigest())
            equal(page["capacity"], 999)
            # Waiting ends when the client's own job changes.
            states = [created["state"]]
            while states[-1] != "succeeded":
                page = jobs(adder, changedAfter=version, deadlineMs=10000)
                version = page["version"]
                states += [job["state"] for job in page["jobs"]]
                assert page["jobs"], states
            equal([job["id"] for job in jobs(adder, action="acknowledge")["jobs"]], [created["id"]])
            equal(adder.call("catalog", "jobs.update", jobs=[created["id"]], action="acknowledge")["jobs"], [])
            equal(jobs(adder), {"jobs": [], "capacity": 1000, "version": 0})
            for method, params in (
                    ("fetch.objects", {"ids": [mine]}), ("resource.read", {"asset": mine, "type": "photo"}),
                    ("resource.download", {"asset": mine, "type": "photo"}), ("storage.status", {})):
                try:
                    adder.call("catalog", method, **params)
                    raise AssertionError(f"{method} was answered")
                except Refused as error:
                    equal((method, error.code), (method, 3311))


        def error_of(client, **params):
            """Returns the error of a refused request, without the identifier that was sent."""
            request = client.send("catalog", "jobs.create", **params)
            reply = client.receive("catalog")
            equal(reply["id"], request)
            return json.dumps(reply["error"]).replace(params["assets"][-1], "ID")


        def jobs_of_others():
            mine, theirs = add(adder, "2.jpg"), add(owner, "3.jpg")
            unknown = error_of(adder, assets=[UNKNOWN])
            assert "identifier_not_found" in unknown
            for client, id in ((adder, theirs), (other, mine), (other, theirs), (other, UNKNOWN)):
                equal(error_of(client, assets=[id]), unknown)
            equal(error_of(adder, assets=[mine, theirs]), unknown)
            equal((jobs(adder)["jobs"], jobs(other)["jobs"]), ([], []))
            # A download needs read access; the error is the same for known and unknown assets.
            refused = error_of(adder, assets=[mine], type="downloadOnly")
            assert "access_denied" in refused and "3311" in refused, refused
            for id in (theirs, UNKNOWN):
                equal(error_of(adder, assets=[id], type="downloadOnly"), refused)
            # Jobs of other clients, even for the same asset.
            [their] = owner.call("catalog", "jobs.create", assets=[mine])["jobs"]
            equal(ended(owner, their["id"])["state"], "succeeded")
            for action in ("acknowledge", "cancel", "retry"):
                equal(adder.refusal("catalog", "jobs.update", jobs=[their["id"]], action=action),
                      "identifier_not_found")
            equal(jobs(adder), {"jobs": [], "capacity": 1000, "version": 0})
            equal(jobs(adder, changedAfter=0, deadlineMs=500), {"jobs": [], "capacity": 1000, "version": 0})


        def resources_of_others():
            """An add-only client cannot upload the owner's edit of its asset."""
            mine = add(adder, "4.jpg")
            data = {"formatIdentifier": "org.example", "formatVersion": "1", "attachment": 1}
            owner.perform({"type": "asset.edit", "id": mine, "render": {"attachment": 0}, "adjustmentData": data},
                          attachments=[file("5.jpg"), b"any"])
            owner.call("catalog", "jobs.create", assets=[mine], resourceType="fullSizePhoto")
            try:
                adder.call("catalog", "jobs.create", assets=[mine], resourceType="fullSizePhoto")
                raise AssertionError("a job was created")
            except Refused as error:
                equal((error.name, error.data["allowed"]), ("missing_resource", ["photo"]))
            [created] = adder.call("catalog", "jobs.create", assets=[mine])["jobs"]
            equal(created["digest"], hashlib.sha256(file("4.jpg")).hexdigest())
            # A deleted asset is not found, and its job can still be acknowledged.
            equal(ended(adder, created["id"])["state"], "succeeded")
            owner.perform({"type": "asset.trash", "ids": [mine]})
            owner.perform({"type": "asset.delete", "ids": [mine]})
            equal(adder.refusal("catalog", "jobs.create", assets=[mine]), "identifier_not_found")
            adder.call("catalog", "jobs.update", jobs=[created["id"]], action="acknowledge")


        def bytes_of_others():
            """Bytes that are already in the store are uploaded again, so that a job does not reveal them."""
            until("everything is uploaded", lambda: status()["waitingCount"] == 0)
            equal((uploads("3.jpg"), uploads("6.jpg")), (1, 0))
            fetch = {"kind": "assets", "ids": [add(owner, "3.jpg")]}
            for client in (adder, viewer):
                # The file is at the store only, until the client sends it again. It may remain in use for a short time.
                until("the file is given up",
                      lambda: owner.call("catalog", "storage.keep", fetch=fetch, keep=False)["count"] == 1)
                faults(status=503, code="SlowDown")
                known = add(client, "3.jpg")
                [old] = client.call("catalog", "jobs.create", assets=[known])["jobs"]
                new = add(client, "6.jpg")
                [fresh] = client.call("catalog", "jobs.create", assets=[new])["jobs"]
                assert old["state"] in ("registered", "pending"), old
                assert fresh["state"] in ("registered", "pending"), fresh
                before = uploads("3.jpg"), uploads("6.jpg")
                faults()
                equal({ended(client, job["id"])["state"] for job in (old, fresh)}, {"succeeded"})
                assert uploads("3.jpg") > before[0] and uploads("6.jpg") > before[1], "they were sent"
            # For the owner the job succeeds at once, because the store has the file.
            [created] = owner.call("catalog", "jobs.create", assets=[known])["jobs"]
            equal(created["state"], "succeeded")


        def earlier_access():
            """Jobs that a client created with read access are hidden from it while it has add-only access."""
            theirs = add(owner, "5.jpg")
            decide("approve", identity="key:asker", access="readWrite")
            until("the grant holds", lambda: asker.open()["access"] == "readWrite")
            [created] = asker.call("catalog", "jobs.create", assets=[theirs], type="downloadOnly")["jobs"]
            mine = add(asker, "1.jpg")
            decide("approve", identity="key:asker", access="addOnly")
            until("the grant holds", lambda: asker.open()["access"] == "addOnly")
            equal(jobs(asker)["jobs"], [])
            for id in (theirs, mine):
                equal(asker.refusal("catalog", "jobs.create", assets=[id]), "identifier_not_found")
            equal(asker.refusal("catalog", "jobs.update", jobs=[created["id"]], action="acknowledge"),
                  "identifier_not_found")
        """#

    private static let helpers = #"""
        def jobs(client, **params):
            return client.call("catalog", "jobs.list", **params)


        def ended(client, number):
            while True:
                [found] = jobs(client, jobs=[number])["jobs"]
                if found["stateNumber"] >= 3:
                    return found
                jobs(client, changedAfter=0, deadlineMs=200)
                time.sleep(0.05)


        """#

    private static let identities = #"""
        writer, viewer, adder = Client("writer"), Client("viewer"), Client("adder")


        def own_jobs():
            for number in (1, 2, 3):
                owner.perform(create(f"{number}.jpg"), attachments=[file(f"{number}.jpg")])
            first = assets()[0]["id"]
            [created] = writer.call("catalog", "jobs.create", assets=[first])["jobs"]
            equal(created["identity"], "key:writer")
            equal(ended(writer, created["id"])["state"], "succeeded")
            [own] = owner.call("catalog", "jobs.create", assets=[first])["jobs"]
            equal([job["id"] for job in jobs(writer)["jobs"]], [created["id"]])
            equal([job["id"] for job in jobs(owner)["jobs"]], [created["id"], own["id"]])
            for action in ("acknowledge", "cancel", "retry"):
                equal(writer.refusal("catalog", "jobs.update", jobs=[own["id"]], action=action), "identifier_not_found")
            # Waiting reveals no jobs of others.
            version = jobs(writer)["version"]
            owner.call("catalog", "jobs.create", assets=[first])
            page = jobs(writer, changedAfter=version, deadlineMs=700)
            equal(page["jobs"], [])
            assert page["version"] > version
            owner.call("catalog", "jobs.update", jobs=[created["id"]], action="acknowledge")
            equal(jobs(writer)["jobs"], [])
            equal((jobs(adder)["jobs"], jobs(adder)["version"]), ([], 0))
            equal(adder.refusal("catalog", "jobs.create", assets=[first]), "identifier_not_found")


        def jobs_of_a_list():
            granted, other = [asset["id"] for asset in assets()[:2]]
            decide("limit", identity="key:viewer", action="set", assets=[granted])
            equal(viewer.open()["status"], "limited")
            unknown = "a" + "0" * 26
            for id in (other, unknown):
                equal(viewer.refusal("catalog", "jobs.create", assets=[id]), "identifier_not_found")
                equal(viewer.refusal("catalog", "jobs.create", assets=[granted, id]), "identifier_not_found")
            equal(jobs(viewer)["jobs"], [])
            [created] = viewer.call("catalog", "jobs.create", assets=[granted], type="downloadOnly")["jobs"]
            equal(ended(viewer, created["id"])["state"], "succeeded")
            # The list is narrowed: the asset of the job is no longer on it.
            decide("limit", identity="key:viewer", action="set", assets=[other])
            equal(jobs(viewer)["jobs"], [])
            equal(viewer.refusal("catalog", "jobs.update", jobs=[created["id"]], action="acknowledge"),
                  "identifier_not_found")
            decide("limit", identity="key:viewer", action="set", assets=[granted])
            equal([job["id"] for job in jobs(viewer)["jobs"]], [created["id"]])


        def limits_of_each():
            id = assets()[0]["id"]
            capacity = jobs(writer)["capacity"]
            equal(capacity, 1000)
            writer.call("catalog", "jobs.create", assets=[id] * capacity)
            equal(writer.refusal("catalog", "jobs.create", assets=[id]), "limit_exceeded")
            assert jobs(viewer)["capacity"] == 999, "the jobs of one client do not reduce the capacity of another"
            page = jobs(owner)
            equal(len(page["jobs"]), 1000)
            more = jobs(owner, after=page["next"])
            assert more["jobs"] and "next" not in more
            numbers = [job["id"] for job in page["jobs"] + more["jobs"]]
            assert numbers == sorted(set(numbers)) and len(numbers) > 1000
        """#
}
