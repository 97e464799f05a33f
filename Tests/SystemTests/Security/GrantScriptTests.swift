import TestSupport
import Testing

/// The access of identities, as scripts with keys see it.
@Suite(.serialized, .timeLimit(.minutes(4)))
struct GrantScriptTests {
    @Test(.spec("S-10", "S-11", "S-12", "T-40", "P-29"))
    func `consent, add-only access and subscriptions before the grant are as documented`() throws {
        let script = try GrantScript()
        for name in ["asker", "silent", "barred", "late", "crowd"] { try script.createKeys(name, "--access", "ask") }
        try script.createKeys("adder", "--access", "addOnly", "--purpose", "uploads from the camera")
        for name in ["writer", "reader"] { try script.createKeys(name) }
        try script.createKeys("boss", "--access", "owner")
        try script.run(
            Self.asking,
            parts: [
                "purpose_is_required", "asked_once_and_answered", "undecided_until_the_deadline",
                "questions_are_bounded",
                "owners_and_old_keys", "add_only", "subscribing_before_the_grant", "published_edits", "counted",
            ]
        )
    }

    @Test(.spec("S-11")) func `each method is refused to exactly the identities that its table names`() throws {
        let script = try GrantScript()
        try script.createKeys("silent", "--access", "ask")
        for name in ["barred", "writer"] { try script.createKeys(name) }
        try script.createKeys("adder", "--access", "addOnly")
        try script.createKeys("viewer", "--access", "limited")
        try script.createKeys("boss", "--access", "owner")
        try script.createKeys("helper", "--domain", "requests,services")
        try script.run(Self.roles, parts: ["every_method_and_role"])
    }

    private static let roles = #"""
        def every_method_and_role():
            roles = {"undecided": "silent", "denied": "barred", "addOnly": "adder", "limited": "viewer",
                     "readWrite": "writer", "service": "helper", "owner": "boss", "host": owner}
            allowed = {
                "public": set(roles), "add": {"addOnly", "limited", "readWrite", "service", "owner", "host"},
                "view": {"limited", "readWrite", "service", "owner", "host"},
                "read": {"readWrite", "service", "owner", "host"},
                "change": {"readWrite", "service", "owner", "host"},
                "owner": {"owner", "host"}, "service": {"service", "host"}}
            refusals = {"undecided": "not_determined"}
            calls = 0
            decide("deny", identity="key:barred")
            for service in SERVICES:
                table = {method["name"]: method["x-access"]
                         for method in owner.call(service, "rpc.discover")["methods"] if "x-pushed-to" not in method}
                assert len(table) > 8
                for role, name in roles.items():
                    client = name if name is owner else Client(name)
                    for method, access in table.items():
                        if method in ("rpc.cancel", "rpc.credit"):
                            continue
                        # An unknown parameter: a method that is allowed refuses it before it does anything else.
                        got = client.refusal(service, method, thisParameterDoesNotExist=1)
                        wanted = "invalid_params"
                        if role not in allowed[access]:
                            wanted = refusals.get(role, "access_denied")
                        equal((service, method, role, got), (service, method, role, wanted))
                        calls += 1
                nobody = context.socket(zmq.DEALER)
                nobody.linger = 0
                nobody.connect(addresses[service])
                nobody.send_json({"jsonrpc": "2.0", "id": 1, "method": "health", "params": {}})
                assert not nobody.poll(300), f"{service} answers clients without a key"
            return f"{calls} calls of every method of every service in {len(roles)} roles"
        """#

    private static let asking = #"""
        def purpose_is_required():
            asker = Client("asker")
            equal(asker.refusal("catalog", "session.open", client="script"), "missing_purpose")
            equal(asker.refusal("catalog", "session.open", purpose="  \n"), "missing_purpose")
            equal(owner.call("catalog", "grants.pending")["grants"], [])


        def asked_once_and_answered():
            asker = Client("asker")
            for service, method in (("catalog", "fetch.assets"), ("broker", "feed.head"), ("editor", "figures"),
                                    ("thumbnailer", "cache.open")):
                equal(asker.refusal(service, method, fetch={"kind": "assets"}), "not_determined")
            waiting = asker.in_background(asker.open, "shows the wedding", access="readWrite")
            question = pending()["grants"]
            equal([(q["id"], q["purpose"], q["client"], q["status"], q["statusNumber"]) for q in question],
                  [("key:asker", "shows the wedding", "script", "notDetermined", 0)])
            decide("approve", identity="key:asker")
            first = waiting()
            equal((first["status"], first["statusNumber"], first["access"], first["accessNumber"], first["isOwner"]),
                  ("authorized", 3, "readWrite", 2, False))
            began = time.monotonic()
            equal(asker.open("shows the wedding"), first)
            assert time.monotonic() - began < 5, "a decided question was not answered at once"
            assets(asker)
            equal(owner.call("catalog", "grants.pending")["grants"], [])


        def undecided_until_the_deadline():
            silent = Client("silent")
            began = time.monotonic()
            equal(silent.open("nothing", deadlineMs=2000)["status"], "notDetermined")
            assert 1 < time.monotonic() - began < 10
            equal(silent.open("nothing", access=1, deadlineMs=2000)["access"], "addOnly")
            decide("deny", identity="key:barred")
            equal(Client("barred").open("anything")["statusNumber"], 2)
            equal(Client("barred").refusal("catalog", "fetch.assets", fetch={"kind": "assets"}), "access_denied")


        def questions_are_bounded():
            crowd = Client("crowd")
            for number in range(40):
                crowd.send("catalog", "session.open", purpose="many", deadlineMs=20000)
            names = []
            while len(names) < 8:
                names.append(crowd.receive("catalog")["error"]["data"]["name"])
            equal(set(names), {"limit_exceeded"})
            # The request for access is stored while the further ones are refused.
            until = time.monotonic() + 10
            while "key:crowd" not in {g["id"] for g in owner.call("catalog", "grants.pending")["grants"]}:
                assert time.monotonic() < until
            equal(len([g for g in owner.call("catalog", "grants.pending")["grants"] if g["id"] == "key:crowd"]), 1)
            decide("deny", identity="key:crowd")
            equal({crowd.receive("catalog")["result"]["status"] for _ in range(32)}, {"denied"})


        def owners_and_old_keys():
            equal((owner.open()["isOwner"], owner.open()["status"]), (True, "authorized"))
            equal(Client("boss").open()["isOwner"], True)
            equal(Client("writer").open()["status"], "authorized")
            boss = Client("boss")
            assert len(boss.call("catalog", "grants.list")["grants"]) >= 9
            equal(Client("writer").refusal("catalog", "grants.list"), "access_denied")
            equal(owner.refusal("catalog", "grants.approve", identity="key:nobody"), "identifier_not_found")
            equal(owner.refusal("catalog", "grants.limit", identity="key:silent", assets=[], action="add"),
                  "identifier_not_found")
            equal(owner.refusal("catalog", "grants.limit", identity="key:silent", assets=["a" + "0" * 26]),
                  "identifier_not_found")
            equal(owner.refusal("catalog", "grants.deny"), "invalid_options")


        def add_only():
            adder, owned = Client("adder"), owner.perform(create("1.jpg"), attachments=[file("1.jpg")])
            before = {asset["id"] for asset in assets()}
            upload = adder.call("catalog", "upload.begin")["upload"]
            adder.call("catalog", "upload.append", [file("3.jpg")], upload=upload, offset=0)
            equal("healed" in adder.call("catalog", "upload.finish", upload=upload, verify=True), False)
            edit = {"render": {"attachment": 3}, "adjustmentData": {
                "formatIdentifier": "org.example", "formatVersion": "1", "attachment": 4}}
            reply = adder.perform(
                {"type": "asset.create", "ref": "pair", "set": {"caption": "mine"}, "resources": [
                    {"type": "photo", "attachment": 0},
                    {"type": "alternatePhoto", "attachment": 1, "originalFilename": "pair.dng"}]},
                {"type": "asset.create", "ref": "edited", "resources": [{"attachment": 2}], "edit": edit},
                {"type": "asset.create", "ref": "large", "resources": [{"upload": upload}]},
                attachments=[file("2.jpg"), file("pair.dng"), file("4.jpg"), file("5.jpg"), b"any"])
            equal(set(reply), {"token", "sequence", "isChanged", "placeholders"})
            equal(set(reply["placeholders"]), {"pair", "edited", "large"})
            equal(before & set(reply["placeholders"].values()), set())
            # The reply does not say which bytes the library has.
            again = adder.perform(create("1.jpg"), attachments=[file("1.jpg")])
            equal(set(again), {"token", "sequence", "isChanged", "placeholders"})
            assert again["placeholders"]["a"] != owned["placeholders"]["a"]
            id = again["placeholders"]["a"]
            for service, method, params in (
                    ("catalog", "fetch.assets", {"fetch": {"kind": "assets"}}),
                    ("catalog", "fetch.objects", {"ids": [id]}), ("catalog", "changes.token", {}),
                    ("catalog", "resource.read", {"asset": id, "type": "photo"}), ("catalog", "figures", {}),
                    ("catalog", "edits.status", {"ids": ["x"]}), ("broker", "feed.since", {}),
                    ("broker", "fetch.observe", {"fetch": {"kind": "assets"}}), ("broker", "feed.head", {}),
                    ("thumbnailer", "image.request", {"asset": id, "targetSize": "max"}),
                    ("editor", "editing.begin", {"asset": id}), ("editor", "edits.revert", {"asset": id})):
                try:
                    adder.call(service, method, **params)
                    raise AssertionError(f"{method} was answered")
                except Refused as error:
                    equal((method, error.code, error.name), (method, 3311, "access_denied"))
            for request in ({"type": "asset.update", "id": id, "set": {"rating": 1}},
                            {"type": "asset.delete", "ids": [id]}, {"type": "collection.create", "title": "A"},
                            create("6.jpg", burst={"identifier": "b"})):
                try:
                    adder.perform(create("6.jpg"), request, attachments=[file("6.jpg")])
                    raise AssertionError(f"{request} was performed")
                except Refused as error:
                    equal((error.code, error.data["request"]), (3311, 1))
            equal(len(assets()), len(before) + 4)
            equal(set(adder.open()), {"identity", "status", "statusNumber", "access", "accessNumber", "scope",
                                      "consent", "isOwner"})


        def subscribing_before_the_grant():
            late = Client("late")
            equal(late.refusal("broker", "feed.since"), "not_determined")
            late.send("broker", "feed.follow", credit=1 << 20)
            equal(late.receive("broker")["error"]["data"]["name"], "not_determined")
            feed = context.socket(zmq.SUB)
            feed.linger = 0
            secure(feed, "late")
            feed.subscribe("head")
            feed.connect(os.environ["FEED"])
            assert not feed.poll(1500), "the feed was delivered before the grant"
            decide("approve", identity="key:late")
            assert feed.poll(10000), "the same subscription does not work after the grant"
            until = time.monotonic() + 5
            while late.refusal("broker", "feed.since"):
                assert time.monotonic() < until


        def published_edits():
            asset = assets()[0]["id"]
            edit = {"jsonrpc": "2.0", "method": "edits.publish", "params": {"asset": asset, "adjustments": {
                "version": 1, "operations": [{"operation": "exposure", "value": 0.25}]}}}
            sockets = []
            for name in ("adder", "reader"):
                socket = context.socket(zmq.PUSH)
                socket.linger, socket.sndtimeo = 0, 10000
                secure(socket, name)
                socket.connect(os.environ["EDITS"])
                edit["params"]["id"] = f"by-{name}"
                socket.send_json(edit)
                sockets.append(socket)
            until, seen = time.monotonic() + 30, set()
            while "by-reader" not in seen and time.monotonic() < until:
                page = owner.call("catalog", "changes.since", topics=["edit.by-reader", "edit.by-adder"])
                seen = {edit["id"] for record in page["records"] for edit in record["edits"]
                        if edit["state"] == "applied"}
            equal(seen, {"by-reader"})
            until = time.monotonic() + 10
            while not owner.call("editor", "figures")["published"]["denied"]:
                assert time.monotonic() < until


        def counted():
            refused = owner.call("catalog", "figures")["access"]["refused"]
            assert refused["key:adder"] >= 6 and refused["key:writer"] == 1, refused
        """#
}
