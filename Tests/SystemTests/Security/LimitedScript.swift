/// The parts of the script of ``LimitedScriptTests`` without random input.
enum LimitedScript {
    static let text = #"""
        def errors_of_unknown_and_forbidden():
            known = sorted(everything(owner))
            limit("set", known[:2])
            forbidden, unknown = known[3], "a" + "0" * 26
            album = owner.perform({"type": "collection.create", "ref": "c", "title": "x", "add": known[:1]}
                                  )["placeholders"]["c"]

            def outcome(service, method, attachments=(), **params):
                id = viewer.send(service, method, attachments, **params)
                reply = viewer.receive(service)
                return json.dumps(reply.get("error", reply.get("result")), sort_keys=True)

            size = {"width": 32, "height": 32}
            # The image is in the thumbnailer's memory, and a cache hit must reveal nothing either.
            owner.call("thumbnailer", "image.request", asset=forbidden, targetSize=size)
            for service, method, make in (
                    ("catalog", "resource.read", lambda id: {"asset": id, "type": "photo"}),
                    ("catalog", "resource.export", lambda id: {"asset": id, "type": "photo"}),
                    ("catalog", "resource.download", lambda id: {"asset": id}),
                    ("catalog", "transient.create", lambda id: {"ids": [known[0], id]}),
                    ("catalog", "fetch.can", lambda id: {"ids": [id]}),
                    ("broker", "fetch.observe", lambda id: {"fetch": {"kind": "assets", "in": "c" + id[1:]}}),
                    ("thumbnailer", "image.frames", lambda id: {"asset": id, "targetSize": size, "count": 1}),
                    ("thumbnailer", "livePhoto.request", lambda id: {"asset": id, "targetSize": size}),
                    ("thumbnailer", "video.playback", lambda id: {"asset": id}),
                    ("thumbnailer", "video.asset", lambda id: {"asset": id}),
                    ("thumbnailer", "video.read", lambda id: {"asset": id, "stream": "0" * 16}),
                    ("thumbnailer", "video.export", lambda id: {"asset": id, "preset": "low"}),
                    ("thumbnailer", "image.sheet", lambda id: {"assets": [known[0], id], "columns": 2, "cell": 32}),
                    ("editor", "editing.begin", lambda id: {"asset": id}),
                    ("editor", "edits.preview", lambda id: {"asset": id, "adjustments": NOTHING}),
                    ("editor", "edits.livePhoto", lambda id: {"asset": id}),
                    ("editor", "edits.apply", lambda id: {"assets": [known[0], id], "adjustments": NOTHING}),
                    ("editor", "edits.copy", lambda id: {"from": id, "to": [known[0]]}),
                    ("editor", "edits.copy", lambda id: {"from": known[0], "to": [id]}),
                    ("editor", "edits.revert", lambda id: {"asset": id}),
                    ("editor", "edits.history", lambda id: {"asset": id}),
                    ("editor", "edits.undo", lambda id: {"asset": id, "step": 0}),
                    ("editor", "edits.compare", lambda id: {"asset": id}),
                    ("editor", "edits.suggest", lambda id: {"asset": id}),
                    ("editor", "edits.describe", lambda id: {"asset": id, "as": "convert"}),
                    ("thumbnailer", "image.request", lambda id: {"asset": id, "targetSize": size}),
                    ("thumbnailer", "image.data", lambda id: {"asset": id}),
                    ("catalog", "fetch.assets", lambda id: {"fetch": {"kind": "assets", "ids": [id]}}),
                    ("catalog", "fetch.find", lambda id: {"fetch": {"kind": "assets"}, "ids": [id]}),
                    ("catalog", "changes.perform", lambda id: {"requests": [
                        {"type": "asset.update", "id": known[0], "set": {"rating": 1}},
                        {"type": "asset.update", "id": id, "set": {"rating": 1}}]}),
                    ("catalog", "changes.perform", lambda id: {"requests": [
                        {"type": "asset.trash", "ids": [known[0], id]}]}),
                    ("catalog", "changes.perform", lambda id: {"requests": [{"type": "asset.delete", "ids": [id]}]}),
                    ("catalog", "changes.perform", lambda id: {"requests": [{"type": "asset.revert", "id": id}]}),
                    ("catalog", "changes.perform", lambda id: {"requests": [
                        {"type": "asset.revert", "id": id, "ifContentRevision": "r99999"}]}),
                    ("catalog", "changes.perform", lambda id: {
                        "attachments": [file("2.jpg"), b"{}"],
                        "requests": [{"type": "asset.edit", "id": id, "render": {"type": "photo", "attachment": 0},
                                      "adjustmentData": {"formatIdentifier": "org.example.edit", "formatVersion": "1",
                                                         "attachment": 1}}]})):
                answers = [outcome(service, method, **make(id)).replace(id[1:], "ID") for id in (forbidden, unknown)]
                equal((method, answers[0]), (method, answers[1]))
                assert "invalid_params" not in answers[0], (method, answers[0])
            unknown_album = "c" + "0" * 26
            answers = [outcome("catalog", "fetch.assets", fetch={"kind": "assets", "in": id}).replace(id, "ID")
                   for id in (album, unknown_album)]
            equal(answers[0], answers[1])
            assert "identifier_not_found" in answers[0]
            # Assets on the list are served.
            viewer.call("thumbnailer", "image.request", asset=known[0], targetSize=size)
            viewer.call("catalog", "resource.read", asset=known[0], type="photo")
            viewer.perform({"type": "asset.update", "id": known[0], "set": {"rating": 2}})
            for request in ({"type": "collection.create", "title": "mine"},
                            {"type": "collection.update", "id": album, "add": [known[0]]},
                            {"type": "asset.update", "id": known[0], "set": {"representsBurst": True}},
                            create("1.jpg", burst={"identifier": "b"})):
                try:
                    viewer.perform(request, attachments=[file("1.jpg")])
                    raise AssertionError(f"{request} was performed")
                except Refused as error:
                    equal((request["type"], error.name), (request["type"], "access_denied"))


        def adding():
            token = viewer.call("catalog", "changes.token")["token"]
            reply = viewer.perform(create("1.jpg"), create("2.jpg", "b"), attachments=[file("1.jpg"), file("2.jpg")])
            equal(set(reply), {"token", "sequence", "isChanged", "placeholders"})
            new = set(reply["placeholders"].values())
            page = viewer.call("catalog", "changes.since", token=token)
            equal(len(page["records"]), 1)
            equal({c["after"]["id"] for c in page["records"][0]["assets"]}, new)
            equal(set(page["records"][0]["grants"][0]["after"]["added"]), new)
            assert new <= {asset["id"] for asset in assets(viewer)}
            viewer.perform({"type": "asset.update", "id": sorted(new)[0], "set": {"caption": "mine"}})
            equal([g["assetCount"] for g in owner.call("catalog", "grants.list")["grants"] if g["id"] == "key:viewer"],
                  [4])


        def narrowing_ends_streams():
            """A client with access to everything that becomes limited keeps no stream of everything."""
            client = Client("narrowed")
            known = sorted(everything(owner))
            equal(len(everything(client)), len(known))
            streams = {service: client.send(service, method, credit=1 << 20) for service, method in (
                ("catalog", "changes.follow"), ("broker", "feed.follow"))}
            # The streams must run already: one that started later would be limited to the list.
            equal(client.receive("broker")["method"], "feed.progress")
            client.call("catalog", "health")
            limit("set", known[:1], "key:narrowed")
            for service, id in streams.items():
                while True:
                    reply = client.receive(service, 10)
                    assert reply, f"{service}: the stream did not end"
                    if reply.get("id") == id and "error" in reply:
                        equal((service, reply["error"]["code"]), (service, 3311))
                        break
            equal(set(everything(client)), set(known[:1]))
            size = {"width": 32, "height": 32}
            until = time.monotonic() + 5
            while client.refusal("thumbnailer", "image.request", asset=known[1], targetSize=size) is None:
                assert time.monotonic() < until
            # In the other direction, the stream of the limited view ends.
            id = client.send("catalog", "changes.follow", credit=1 << 20)
            client.call("broker", "health")
            decide("approve", identity="key:narrowed", scope="all")
            while True:
                reply = client.receive("catalog", 10)
                assert reply, "the stream of the limited view did not end"
                if reply.get("id") == id and "error" in reply:
                    break
            equal(len(everything(client)), len(known))


        def earlier_tokens():
            """A token of a time at which the view was another kind is expired, not wrong."""
            client = Client("widened")
            known = sorted(id for id, asset in everything(owner).items() if "trashedDate" not in asset)
            whole = client.call("catalog", "changes.token")["token"]
            limit("set", known[:2], "key:widened")
            for method, params in (("changes.since", {"token": whole}),
                                   ("fetch.assets", {"fetch": {"kind": "assets"}, "token": whole}),
                                   ("changes.details", {"from": whole, "fetch": {"kind": "assets"}})):
                equal((method, client.refusal("catalog", method, **params)), (method, "token_expired"))
            first = client.call("catalog", "changes.token")["token"]
            limit("add", known[2:4], "key:widened")
            limit("remove", known[:1], "key:widened")
            every = {"kind": "assets", "includeHidden": True, "includeAllBurstAssets": True, "sourceTypes": 7}
            then = client.call("catalog", "fetch.assets", fetch=every, token=first)["assets"]
            equal({asset["id"] for asset in then}, set(known[:2]))
            details = client.call("catalog", "changes.details", **{"from": first}, fetch=every)["details"]
            equal(details["hasIncrementalChanges"], True)
            equal({p["id"] for p in details.get("inserted", [])}, set(known[2:4]))
            equal({p["id"] for p in details.get("removed", [])}, set(known[:1]))


        def ending_live_fetches():
            """An observation ends with the access that it was made with, and no other identity can use it."""
            known = sorted(everything(owner))
            whole = owner.call("broker", "fetch.observe", fetch={"kind": "assets"})
            limit("set", known[:2])
            mine = viewer.call("broker", "fetch.observe", fetch={"kind": "assets"})
            assert mine["observation"] != whole["observation"]
            equal(viewer.refusal("broker", "fetch.details", observation=whole["observation"], token=whole["token"]),
                  "handle_expired")
            decide("approve", identity="key:viewer", scope="all")
            until = time.monotonic() + 10
            while viewer.refusal("broker", "fetch.details", observation=mine["observation"], token=mine["token"]) is None:
                assert time.monotonic() < until, "the observation did not end"
            limit("set", known[:2])
            equal(set(a["id"] for a in assets(viewer)) <= set(known[:2]), True)
            # A request that started before the change-broker knew the new list is refused, and may be sent again.
            every = {"kind": "assets", "includeHidden": True}
            until = time.monotonic() + 10
            while viewer.refusal("broker", "fetch.observe", fetch=every) == "access_denied":
                assert time.monotonic() < until
            again = viewer.call("broker", "fetch.observe", fetch=every)
            shown = len(assets(viewer, includeHidden=True))
            equal(again["count"], shown)
            # Another client cannot read the observation of this view either.
            other = Watched("widened")
            equal(other.refusal("broker", "fetch.details", observation=again["observation"], token=again["token"]),
                  "handle_expired")


        def edits_videos_and_sheets():
            known = [id for id, a in everything(owner).items() if "trashedDate" not in a and not a["isHidden"]]
            id = known[0]
            limit("set", [id])
            token = viewer.call("catalog", "changes.token")["token"]
            applied = viewer.call("editor", "edits.apply", asset=id, adjustments={"version": 1, "operations": [
                {"operation": "exposure", "value": 0.5}]})
            equal(applied["isChanged"], True)
            record = viewer.call("broker", "feed.since", token=token)["records"][-1]
            equal((record["origin"]["onBehalfOf"], len(record["assets"][0]["after"]["resources"])),
                  ("key:viewer", 3))
            equal(len(viewer.call("editor", "edits.history", asset=id)["steps"]), 1)
            viewer.call("editor", "edits.preview", asset=id, adjustments=NOTHING)
            viewer.call("editor", "edits.revert", asset=id)
            sheet = viewer.call("thumbnailer", "image.sheet", assets=[id, known[1]], columns=2, cell=32)
            equal([error["name"] for error in sheet["failed"].values()], ["identifier_not_found"])
            cache = viewer.call("thumbnailer", "cache.open")["cache"]
            viewer.call("thumbnailer", "cache.start", cache=cache, assets=[id, known[1]],
                        targetSize={"width": 32, "height": 32})
            # Published edits: of an asset of the list, and of another.
            push = context.socket(zmq.PUSH)
            push.linger = 5000
            secure(push, "viewer")
            push.connect(os.environ["EDITS"])
            exposure = {"version": 1, "operations": [{"operation": "exposure", "value": 0.25}]}
            for name, asset, more in (("listed", id, {}), ("other", known[1], {}), ("copied", id, {"from": known[1]})):
                adjustments = {} if more else {"adjustments": exposure}
                push.send(json.dumps({"jsonrpc": "2.0", "method": "edits.publish", "params": {
                    "id": name, "asset": asset, **adjustments, **more}}).encode())
            expected, states = {"listed": "applied", "other": "failed", "copied": "failed"}, {}
            until = time.monotonic() + 30
            while states != expected:
                assert time.monotonic() < until, states
                edits = viewer.call("catalog", "edits.status", ids=list(expected))["edits"]
                states = {e["id"]: e["state"] for e in edits if e["state"] != "accepted"}
                time.sleep(0.05)
            records = viewer.call("broker", "feed.since", topics=["edit.other"], token=token)["records"]
            equal({r["edits"][0]["state"] for r in records}, {"accepted", "failed"})
            transient = viewer.call("catalog", "transient.create", ids=[id])
            equal([a["id"] for a in assets(viewer, **{"in": transient["id"]})], [id])
            covers = viewer.call("catalog", "fetch.keyAssets", collection=transient["id"])
            equal([a["id"] for a in covers["assets"]], [id])


        def consent_and_revoking():
            decide("approve", identity="key:viewer", consent="always")
            seen = everything(viewer)
            assert seen
            waiting = viewer.in_background(viewer.perform, {"type": "asset.update", "id": sorted(seen)[0],
                                                            "set": {"rating": 4}})
            decide("deny", question=pending()["questions"][0]["id"])
            equal(waiting().code, 3072)
            decide("revoke", identity="key:viewer")
            equal(viewer.refusal("catalog", "fetch.assets", fetch={"kind": "assets"}), "access_denied")
        """#
}
