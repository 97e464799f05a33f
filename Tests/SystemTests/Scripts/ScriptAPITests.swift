import Foundation
import JSONValue
import TestSupport
import Testing

/// The messages as the author of a script sees them, by plain pyzmq.
@Suite(.serialized, .timeLimit(.minutes(5)))
struct ScriptAPITests {
    /// Runs a script after ``prelude``; its assertions are the test.
    private func run(_ script: String, _ services: SafelightFixture, seconds: Double = 120) throws -> String {
        let path = try services.folder.write(Array((Self.prelude + script).utf8), to: "script.py")
        let python = try Needed.python()
        let run = try RunningProgram.run(
            python,
            ["-B", "-u", path],
            environment: services.environment,
            seconds: seconds
        )
        #expect(run.status == 0, "\(run.output.suffix(2000))\n\(run.errors.suffix(4000))\n\(services.logs)")
        return run.output
    }

    private func importPhotos(_ count: Int, _ services: SafelightFixture) throws {
        for number in 1...count {
            try services.folder.write(
                TestImages.jpeg(
                    width: 64,
                    height: 48,
                    date: "2024:05:0\(number % 9 + 1) 12:00:00",
                    seed: UInt64(number)
                ),
                to: "photos/\(number).jpg"
            )
        }
        let run = try services.safelight(["import", services.folder.file("photos")])
        try #require(run.status == 0, "\(run.errors)")
    }

    private static let prelude = #"""
        import json, os, time, zmq
        context, sockets = zmq.Context.instance(), {}

        def connect(service, kind=zmq.DEALER):
            socket = context.socket(kind)
            socket.linger, socket.rcvtimeo = 0, 60_000
            socket.connect(f"ipc://{os.environ['SAFELIGHT_RUN']}/{service}.sock")
            return socket

        def ask(service, request, *attachments):
            if service not in sockets: sockets[service] = connect(service)
            sockets[service].send_multipart([json.dumps({"jsonrpc": "2.0", "id": 1, **request}).encode(), *attachments])
            while True:
                reply = json.loads(sockets[service].recv_multipart()[0])
                if "method" not in reply: return reply

        def call(service, method, *attachments, **params):
            reply = ask(service, {"method": method, "params": params}, *attachments)
            assert "result" in reply, (method, reply)
            return reply["result"]

        def refused(service, method, *attachments, **params):
            reply = ask(service, {"method": method, "params": params}, *attachments)
            assert "error" in reply, (method, params, reply)
            return reply["error"]["data"]["name"], reply["error"]["message"], reply["error"]["data"]

        def perform(*requests): return call("catalog", "changes.perform", requests=list(requests))

        """#

    @Test(.spec("S-19"))
    func `fetches of collections and lists need no kind, and types have PhotoKit's numbers too`() throws {
        let services = try SafelightFixture("kinds")
        try services.start([.catalog])
        try importPhotos(2, services)
        _ = try run(
            #"""
            asset = call("catalog", "fetch.assets")["assets"][0]["id"]
            reply = perform({"type": "list.create", "ref": "f", "title": "Trips"},
                            {"type": "collection.create", "ref": "c", "title": "Alps", "parent": {"ref": "f"}, "add": [asset]})
            album, folder = reply["placeholders"]["c"], reply["placeholders"]["f"]

            def titles(method, **fetch):
                page = call("catalog", "fetch." + method, fetch=fetch)
                return [item.get("title") for item in page["collections" if method == "collections" else "lists"]]

            assert titles("collections", type="album") == ["Alps"]
            assert titles("collections", ids=[album]) == ["Alps"]
            assert titles("collections", containing=asset, type="album") == ["Alps"]
            assert titles("collections", **{"in": folder}) == ["Alps"], "the children of a folder"
            assert titles("lists", ids=[folder]) == ["Trips"]
            assert titles("lists", containing=album) == ["Trips"]
            # By number.
            assert titles("collections", type=1) == ["Alps"]
            assert titles("collections", type=1, subtype=2) == ["Alps"]
            assert titles("collections", type="album", subtype=9223372036854775807) == ["Alps"], "any"
            favorites = {"type": "smartAlbum", "subtype": "smartAlbumFavorites"}
            assert titles("collections", type=2, subtype=203) == titles("collections", **favorites) != []
            assert "Trips" in titles("lists", type=2)
            assert call("catalog", "fetch.assets", fetch={"mediaType": 1})["count"] == 2
            name, message, data = refused("catalog", "fetch.collections", fetch={"type": 77})
            assert name == "invalid_options" and "smartAlbum (2)" in message and "album" in data["allowed"], message
            # Elsewhere the kind follows from the other members.
            fetches = [{"ids": [album]}, {"ids": [folder]}, {"containing": asset, "type": "album"}, {"type": "folder"}, {}]
            assert call("catalog", "fetch.counts", fetches=fetches)["counts"][:3] == [1, 1, 1]
            assert call("catalog", "fetch.find", fetch={"type": "album"}, ids=[album])["indexes"] == [0]
            """#,
            services
        )
        #expect(services.stop() == [])
    }

    @Test(.spec("S-27"))
    func `a page may have selected members only, and dates as text`() throws {
        let services = try SafelightFixture("members")
        try services.start([.catalog])
        try importPhotos(6, services)
        _ = try run(
            #"""
            whole = call("catalog", "fetch.assets", count=6)
            ids = call("catalog", "fetch.assets", count=100_000, members=["id"])
            assert ids["assets"] == [{"id": item["id"]} for item in whole["assets"]], ids
            assert ids["count"] == 6 and ids["token"] == whole["token"]
            rest = call("catalog", "fetch.assets", **{"from": 4}, count=100, members=["id"], token=ids["token"])
            assert rest["assets"] == ids["assets"][4:]
            some = call("catalog", "fetch.assets", members=["id", "originalFilename", "creationDate"])["assets"]
            assert all(set(item) == {"id", "originalFilename", "creationDate"} for item in some), some
            assert [item["creationDate"] for item in some] == [item["creationDate"] for item in whole["assets"]]

            text = call("catalog", "fetch.assets", dates="rfc3339")["assets"]
            for item, other in zip(text, whole["assets"]):
                day = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(one_date := other["creationDate"] // 1_000_000))
                assert item["creationDate"] == day and item["addedDate"].startswith("20"), item
                assert {**item, **{name: other[name] for name in item if name.endswith("Date")}} == other
            # The text is accepted wherever a date is.
            asset = text[0]["id"]
            for date in ("2023-02-03T04:05:06+01:00", "2023-02-03", 1_675_390_000_000_000):
                perform({"type": "asset.update", "id": asset, "set": {"creationDate": date}})
                page = call("catalog", "fetch.assets", fetch={"ids": [asset]}, members=["creationDate"], dates="rfc3339")
                assert page["assets"] == [{"creationDate": {"2023-02-03T04:05:06+01:00": "2023-02-03T03:05:06Z",
                    "2023-02-03": "2023-02-03T00:00:00Z"}.get(date, "2023-02-03T02:06:40Z")}], page
            assert "RFC 3339" in refused("catalog", "changes.perform", requests=[
                {"type": "asset.update", "id": asset, "set": {"creationDate": "yesterday"}}])[1]

            name, message, data = refused("catalog", "fetch.assets", members=["id", "colour"])
            assert name == "invalid_params" and data["parameter"] == "members" and "keywords" in message, message
            name, message, data = refused("catalog", "fetch.assets", count=1001)
            assert name == "invalid_params" and '["id"]' in message and "from" in message and data["limit"] == 1000, message
            for method, member in (("collections", "collections"), ("lists", "lists")):
                page = call("catalog", "fetch." + method, members=["id", "title", "creationDate"], dates="rfc3339")
                assert page[member] and all(set(item) <= {"id", "title", "creationDate"} for item in page[member])
                assert all(item["creationDate"].endswith("Z") for item in page[member]), page
            at = call("catalog", "fetch.objects", fetch={}, at=[1], members=["id"])
            assert at["assets"] == call("catalog", "fetch.objects", fetch={}, at=[1])["assets"][:0] + [{"id": at["assets"][0]["id"]}]
            """#,
            services
        )
        #expect(services.stop() == [])
    }

    @Test(.spec("T-01"))
    func `a fetch by identifiers names those that are missing or in the trash`() throws {
        let services = try SafelightFixture("trashed")
        try services.start([.catalog])
        try importPhotos(4, services)
        _ = try run(
            #"""
            page = call("catalog", "fetch.assets", members=["id"])
            a, b, c, d = [item["id"] for item in page["assets"]]
            perform({"type": "asset.trash", "ids": [b]})
            perform({"type": "asset.delete", "ids": [c]})
            for members in ({}, {"members": ["id"]}, {"members": ["id", "rating"]}):
                answer = call("catalog", "fetch.assets", fetch={"ids": [d, c, b, a]}, **members)
                assert [item["id"] for item in answer["assets"]] == [d, a], answer
                assert answer["missing"] == [c] and answer["trashed"] == [b], answer
                before = call("catalog", "fetch.assets", fetch={"ids": [d, c, b, a]}, token=page["token"], **members)
                assert [item["id"] for item in before["assets"]] == [d, c, b, a], before
                assert "missing" not in before and "trashed" not in before, before
            inside = call("catalog", "fetch.assets", fetch={"ids": [b], "inTrash": True})
            assert [item["id"] for item in inside["assets"]] == [b] and "trashed" not in inside
            """#,
            services
        )
        #expect(services.stop() == [])
    }

    @Test(.spec("S-78"))
    func `errors name the right service, the member in the wrong place, and what to use instead`() throws {
        let services = try SafelightFixture("errors")
        try services.start([.catalog, .thumbnailer])
        _ = try run(
            #"""
            name, message, data = refused("catalog", "image.request")
            assert name == "method_not_found" and data["services"] == ["thumbnailer"] and "thumbnailer.sock" in message
            assert refused("thumbnailer", "fetch.assets")[2]["services"] == ["catalog"]
            assert refused("catalog", "fetch.observe")[2]["services"] == ["change-broker"]
            assert refused("catalog", "edits.publish")[1].count("edits.sock") == 1
            name, message, data = refused("catalog", "fetch.asset")
            assert name == "method_not_found" and "fetch.assets" in data["similar"] and "fetch.assets" in message, message
            assert "services" not in refused("catalog", "no.such.method")[2]

            for member, value in (("deadlineMs", 10), ("credit", 10), ("count", 1), ("param", {}), ("fetch", {})):
                reply = ask("catalog", {"method": "fetch.assets", "params": {}, member: value})
                error = reply["error"]
                assert error["data"]["name"] == "invalid_request" and reply["id"] == 1, reply
                assert member in error["message"] and "inside params" in error["message"], reply

            name, message, _ = refused("catalog", "changes.perform", bytes(9 << 20), requests=[])
            assert name == "invalid_request" and "8388608" in message and "upload.append" in message, message
            name, message, _ = refused("catalog", "changes.perform", *[bytes(6 << 20)] * 3, requests=[])
            assert name == "invalid_request" and "16777216" in message and "upload.begin" in message, message
            name, message, _ = refused("catalog", "changes.perform", *[b""] * 70, requests=[])
            assert name == "invalid_request" and "64 frames" in message and "split" in message, message
            name, message, _ = refused("catalog", "upload.append", bytes(9 << 20), upload="u", offset=0)
            assert name == "invalid_request" and "several requests" in message, message
            name, message, _ = refused("catalog", "fetch.assets", fetch={"predicate": "x" * (5 << 20)})
            assert name == "limit_exceeded" and "split" in message, message
            name, message, _ = refused("catalog", "fetch.assets", fetch={"ids": ["a" + "0" * 26] * 10_001})
            assert "10000 elements: 10001" in message and "several requests" in message, message

            # A frame above 16 MiB ends the connection; libzmq connects again and further requests are answered.
            socket = connect("catalog")
            socket.send_multipart([b'{"jsonrpc":"2.0","id":1,"method":"health"}', bytes(17 << 20)])
            socket.rcvtimeo = 1500
            try:
                raise SystemExit(f"an answer: {socket.recv_multipart()}")
            except zmq.Again:
                pass
            socket.rcvtimeo = 20_000
            socket.send_json({"jsonrpc": "2.0", "id": 2, "method": "health"})
            assert json.loads(socket.recv())["id"] == 2
            """#,
            services
        )
        #expect(services.stop() == [])
    }

    @Test
    func `rpc.discover has schemas that predicates, records, notifications and live messages satisfy`() throws {
        let services = try SafelightFixture("schemas")
        try services.start()
        try importPhotos(3, services)
        _ = try run(
            Self.validator
                + #"""
                documents = {name: call(name, "rpc.discover") for name in ("catalog", "thumbnailer", "editor", "change-broker")}
                for document in documents.values():
                    methods = {item["name"]: item for item in document["methods"]}
                    assert [item["name"] for item in methods["rpc.cancel"]["params"]] == ["id"]
                    assert {item["name"] for item in methods["rpc.credit"]["params"]} == {"id", "bytes"}
                    check_references(document, document)
                schemas = documents["catalog"]["components"]["schemas"]
                notifications = {n["name"]: n for d in documents.values() for m in d["methods"] for n in m.get("x-notifications", [])}
                assert set(notifications) == {"changes.records", "feed.records", "feed.progress", "fetch.keys", "resource.chunk",
                    "library.progress", "image.degraded", "image.chunk", "edits.progress", "resource.progress"}, sorted(notifications)
                assert "edits.publish" in {item["name"] for item in documents["editor"]["methods"]}

                def validate(schema, value, document=documents["catalog"]):
                    problem = problem_of(schema, value, document)
                    assert problem is None, (problem, json.dumps(value)[:2000])

                # Predicates: the service and the schema agree.
                good = ["rating > 3", {"format": "rating > %@", "arguments": [3]}, True,
                    {"key": "creationDate", "op": "between", "value": ["2024-05-01", "2024-05-31"]},
                    {"key": "mediaSubtypes", "mask": 2, "op": "!=", "value": 0}, {"any": "keywords", "op": "in", "value": ["a"]},
                    {"key": "location", "op": "==", "value": None}, {"key": "keywords.@count", "op": "==", "value": 0},
                    {"key": "caption", "op": "contains", "value": "x", "options": "cd"},
                    {"near": {"latitude": 1, "longitude": 2, "radius": 3}},
                    {"inside": {"south": 1, "west": 2, "north": 3, "east": 4}},
                    {"and": [{"not": {"key": "favorite", "op": "==", "value": True}}, {"or": [False]}]}]
                bad = [7, [], {"key": "rating"}, {"key": "rating", "op": "~", "value": 1}, {"and": 1}, {"near": {"latitude": 1}},
                    {"colour": "red"}, {"key": "colour", "op": "==", "value": 1}, {"not": True, "or": []}]
                for predicate in good:
                    validate(schemas["Predicate"], predicate)
                    call("catalog", "fetch.assets", fetch={"predicate": predicate})
                for predicate in bad:
                    assert problem_of(schemas["Predicate"], predicate, documents["catalog"]), predicate
                    refused("catalog", "fetch.assets", fetch={"predicate": predicate})

                # Live messages and records of some changes, and the notifications of streams.
                observed = call("change-broker", "fetch.observe", fetch={"predicate": "rating >= 0"})
                feed = connect("feed", zmq.SUB)
                feed.subscribe("")
                while feed.recv_multipart()[0] != b"head": pass
                asset, *_ = [item["id"] for item in call("catalog", "fetch.assets")["assets"]]
                reply = perform({"type": "collection.create", "ref": "c", "title": "Alps", "add": [asset]})
                last = perform({"type": "asset.update", "id": asset, "set": {"rating": 5}, "addKeywords": ["x"]},
                    {"type": "collection.delete", "ids": [reply["placeholders"]["c"]]})
                topics = {item["topic"]: item["message"] for item in documents["change-broker"]["x-topics"]}
                seen = set()
                while not {"changes", "asset.<id>", "collection.<id>", "fetch.<observation>", "head"} <= seen:
                    topic, body = feed.recv_multipart()
                    topic, body = topic.decode(), json.loads(body)
                    family = {"asset": "asset.<id>", "collection": "collection.<id>", "list": "list.<id>",
                        "fetch": "fetch.<observation>"}.get(topic.split(".")[0], topic)
                    validate(topics[family], body)
                    seen.add(family)
                    if family == "changes": assert problem_of(topics["head"], body, documents["catalog"])
                for record in call("catalog", "changes.since", token=observed["token"])["records"]:
                    validate(schemas["ChangeRecord"], record)

                def notes(service, method, until, **params):
                    socket = connect(service)
                    socket.send_json({"jsonrpc": "2.0", "id": "s", "method": method, "params": {"credit": 1 << 20, **params}})
                    while True:
                        message = json.loads(socket.recv_multipart()[0])
                        if "method" not in message: return
                        validate(notifications[message["method"]]["params"], message["params"])
                        if message["method"] == until: return

                notes("catalog", "changes.follow", "changes.records", token=observed["token"])
                notes("change-broker", "feed.follow", "feed.records", token=observed["token"])
                notes("catalog", "resource.read", "resource.chunk", asset=asset)
                notes("catalog", "library.backup", "library.progress", target=os.environ["SAFELIGHT_RUN"] + "/backup")
                notes("thumbnailer", "image.request", None, asset=asset, targetSize={"width": 20, "height": 20})
                """#,
            services
        )
        #expect(services.stop() == [])
    }

    /// The part of JSON Schema that the documents use.
    private static let validator = #"""
        def resolve(schema, document):
            while "$ref" in schema:
                target = document
                for name in schema["$ref"].split("/")[1:]: target = target[name]
                schema = target
            return schema

        def check_references(json, document):
            if isinstance(json, dict):
                if "$ref" in json: resolve(json, document)
                for value in json.values(): check_references(value, document)
            elif isinstance(json, list):
                for value in json: check_references(value, document)

        kinds = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None)}

        def is_kind(kind, value):
            if kind in ("integer", "number"):
                return isinstance(value, int if kind == "integer" else (int, float)) and not isinstance(value, bool)
            return isinstance(value, kinds[kind])

        def problem_of(schema, value, document, at=""):
            schema = resolve(schema, document)
            allowed = schema.get("type", [])
            allowed = [allowed] if isinstance(allowed, str) else allowed
            if allowed and not any(is_kind(kind, value) for kind in allowed): return f"{at}: not {allowed}"
            if "const" in schema and value != schema["const"]: return f"{at}: not {schema['const']}"
            if "enum" in schema and value not in schema["enum"]: return f"{at}: not one of {schema['enum']}"
            for choice in ("anyOf", "oneOf"):
                problems = [problem_of(item, value, document, at) for item in schema.get(choice, [])]
                if problems and None not in problems: return f"{at}: none of {problems}"
            for item in schema.get("allOf", []):
                if problem := problem_of(item, value, document, at): return problem
            if isinstance(value, (int, float)) and not isinstance(value, bool):
                if value < schema.get("minimum", value) or value > schema.get("maximum", value): return f"{at}: out of range"
            if isinstance(value, list) and "items" in schema:
                for index, item in enumerate(value):
                    if problem := problem_of(schema["items"], item, document, f"{at}[{index}]"): return problem
            if isinstance(value, dict):
                for name in schema.get("required", []):
                    if name not in value: return f"{at}: no {name}"
                for name, item in value.items():
                    if name in schema.get("properties", {}):
                        if problem := problem_of(schema["properties"][name], item, document, f"{at}.{name}"): return problem
                    elif schema.get("additionalProperties") is False: return f"{at}: {name} is unknown"
            return None


        """#
}
