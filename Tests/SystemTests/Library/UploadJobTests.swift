import Foundation
import TestSupport
import Testing

/// Jobs for uploads and downloads (T-34), as clients of all kinds see them.
@Suite(.serialized, .timeLimit(.minutes(5)))
struct UploadJobTests {
    @Test(.spec("T-34"))
    func `jobs tell their progress to who waits for it, and on the feed`() throws {
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
        try RowsByScriptTests.run(
            "jobs.py",
            services,
            module: "moto, jsonschema",
            parts: [
                "uploads_tell_their_progress", "a_job_for_a_running_upload_is_pending",
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
                made = jobs.download(library.fetch())
                seen = [(job.id, job.state) for job in jobs.follow(made)]
                assert [state for _, state in seen].count("succeeded") == len(made) == 2, (made, seen)
                assert sorted({number for number, _ in seen}) == [job.id for job in made]
                assert all(job.has_ended and job.progress is None for job in jobs())
            """
        let python = [TestPaths.package + "/Shared/python", TestEnvironment.text("PYTHONPATH")].compactMap { $0 }
        let followed = try RunningProgram.run(
            try Needed.python("zmq"),
            ["-B", "-c", follow],
            environment: services.environment.merging(["PYTHONPATH": python.joined(separator: ":")]) { $1 }
        )
        #expect(followed.status == 0, "\(followed.errors)")
        #expect(services.stop() == [])
    }

    @Test(.spec("T-34", "T-41"))
    func `each client has its own jobs, a limited one for the assets of its list, and the owner sees all`() throws {
        let store = try S3Server()
        let script = try GrantScript(environment: store.environment)
        try script.key("writer", "--access", "readWrite")
        try script.key("viewer", "--access", "limited")
        try script.key("adder", "--access", "addOnly")
        try script.run(Self.identities, parts: ["own_jobs", "jobs_of_a_list", "limits_of_each"])
    }

    private static let identities = #"""
        writer, viewer, adder = Client("writer"), Client("viewer"), Client("adder")


        def jobs(client, **params):
            return client.call("catalog", "jobs.list", **params)


        def ended(client, number):
            while True:
                [found] = jobs(client, jobs=[number])["jobs"]
                if found["stateNumber"] >= 3:
                    return found
                jobs(client, changedAfter=0, deadlineMs=200)
                time.sleep(0.05)


        def own_jobs():
            for number in (1, 2, 3):
                owner.perform(create(f"{number}.jpg"), attachments=[file(f"{number}.jpg")])
            first = assets()[0]["id"]
            [made] = writer.call("catalog", "jobs.create", assets=[first])["jobs"]
            equal(made["identity"], "key:writer")
            equal(ended(writer, made["id"])["state"], "succeeded")
            [own] = owner.call("catalog", "jobs.create", assets=[first])["jobs"]
            equal([one["id"] for one in jobs(writer)["jobs"]], [made["id"]])
            equal([one["id"] for one in jobs(owner)["jobs"]], [made["id"], own["id"]])
            for action in ("acknowledge", "cancel", "retry"):
                equal(writer.refusal("catalog", "jobs.update", jobs=[own["id"]], action=action), "identifier_not_found")
            # Waiting tells nothing of the jobs of others.
            version = jobs(writer)["version"]
            owner.call("catalog", "jobs.create", assets=[first])
            page = jobs(writer, changedAfter=version, deadlineMs=700)
            equal(page["jobs"], [])
            assert page["version"] > version
            owner.call("catalog", "jobs.update", jobs=[made["id"]], action="acknowledge")
            equal(jobs(writer)["jobs"], [])
            equal(adder.refusal("catalog", "jobs.list"), "access_denied")
            equal(adder.refusal("catalog", "jobs.create", assets=[first]), "access_denied")


        def jobs_of_a_list():
            granted, other = [asset["id"] for asset in assets()[:2]]
            decide("limit", identity="key:viewer", action="set", assets=[granted])
            equal(viewer.open()["status"], "limited")
            unknown = "a" + "0" * 26
            for id in (other, unknown):
                equal(viewer.refusal("catalog", "jobs.create", assets=[id]), "identifier_not_found")
                equal(viewer.refusal("catalog", "jobs.create", assets=[granted, id]), "identifier_not_found")
            equal(jobs(viewer)["jobs"], [])
            [made] = viewer.call("catalog", "jobs.create", assets=[granted], type="downloadOnly")["jobs"]
            equal(ended(viewer, made["id"])["state"], "succeeded")
            # The list is narrowed: the job is about an asset that is not there any more.
            decide("limit", identity="key:viewer", action="set", assets=[other])
            equal(jobs(viewer)["jobs"], [])
            equal(viewer.refusal("catalog", "jobs.update", jobs=[made["id"]], action="acknowledge"),
                  "identifier_not_found")
            decide("limit", identity="key:viewer", action="set", assets=[granted])
            equal([one["id"] for one in jobs(viewer)["jobs"]], [made["id"]])


        def limits_of_each():
            id = assets()[0]["id"]
            room = jobs(writer)["capacity"]
            equal(room, 1000)
            writer.call("catalog", "jobs.create", assets=[id] * room)
            equal(writer.refusal("catalog", "jobs.create", assets=[id]), "limit_exceeded")
            assert jobs(viewer)["capacity"] == 999, "the jobs of one client take no place of another's"
            page = jobs(owner)
            equal(len(page["jobs"]), 1000)
            more = jobs(owner, after=page["next"])
            assert more["jobs"] and "next" not in more
            numbers = [one["id"] for one in page["jobs"] + more["jobs"]]
            assert numbers == sorted(set(numbers)) and len(numbers) > 1000
        """#
}
