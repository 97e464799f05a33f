import TestSupport
import Testing

/// The library of an identity with a limited grant, as a script with its key sees it (T-41, P-06).
@Suite(.serialized, .timeLimit(.minutes(4)))
struct LimitedScriptTests {
    @Test(.spec("T-41", "P-06"))
    func `a limited view is the owner's view filtered, at every moment, and tells nothing else`() throws {
        let script = try GrantScript()
        try script.key("viewer", "--access", "limited")
        for name in ["narrowed", "widened"] { try script.key(name) }
        try script.run(
            Self.script,
            parts: [
                "empty_before_the_list", "random_changes", "errors_of_unknown_and_forbidden", "adding",
                "narrowing_ends_streams",
                "earlier_tokens", "consent_and_revoking",
            ]
        )
    }

    private static let script = #"""
        import random
        chance = random.Random(7)
        frames = []


        class Watched(Client):
            """A client whose received messages are kept, to be searched."""

            def receive(self, service, seconds=30):
                socket = self.sockets[service]
                if not socket.poll(int(seconds * 1000)):
                    return None
                parts = socket.recv_multipart()
                frames.extend(parts)
                return json.loads(parts[0])


        viewer = Watched("viewer")


        def limit(action, ids, identity="key:viewer"):
            return decide("limit", identity=identity, assets=sorted(ids), action=action)["grant"]


        def stripped(found):
            return [{name: value for name, value in asset.items() if name != "memberships"} for asset in found]


        def everything(client):
            """All assets of a client's view by identifier."""
            every = {"includeHidden": True, "includeAllBurstAssets": True, "sourceTypes": 7}
            found = assets(client, **every) + assets(client, inTrash=True, **every)
            return {asset["id"]: asset for asset in stripped(found)}


        def shapes():
            favorites = owner.call("catalog", "fetch.collections", fetch={
                "kind": "collections", "type": "smartAlbum", "subtype": "smartAlbumFavorites"})["collections"][0]["id"]
            ids = sorted(everything(owner))
            return [
                {}, {"sort": [{"key": "rating", "ascending": False}]}, {"predicate": "isFavorite == YES"},
                {"predicate": "rating >= 2", "sort": [{"key": "creationDate", "ascending": True}]},
                {"predicate": "ANY keywords == 'red'"}, {"predicate": "caption CONTAINS 'e'"}, {"in": favorites},
                {"in": favorites, "includeHidden": True}, {"mediaType": "image"}, {"mediaType": "video"},
                {"includeHidden": True}, {"inTrash": True}, {"limit": 3}, {"offset": 2, "limit": 2},
                {"sort": [{"key": "isFavorite", "ascending": False}], "limit": 4}, {"ids": ids[::-1]},
                {"ids": ids[::2], "includeHidden": False}, {"sort": [{"key": "addedDate", "ascending": False}]},
                {"predicate": "isHidden == NO AND rating < 4"}, {"predicate": "mediaType == 1"},
            ]


        def compare(listed, token):
            """Compares each fetch of the viewer with that of the owner, filtered."""
            for shape in shapes():
                whole = {name: value for name, value in shape.items() if name not in ("limit", "offset")}
                wanted = [a for a in stripped(assets(**whole)) if a["id"] in listed]
                wanted = wanted[shape.get("offset", 0):]
                wanted = wanted[:shape["limit"]] if "limit" in shape else wanted
                page = viewer.call("catalog", "fetch.assets", fetch={"kind": "assets", **shape})
                equal((shape, page["assets"], page["count"]), (shape, wanted, len(wanted)))
                if "ids" in shape:
                    existing = everything(owner)
                    equal(page.get("missing", []), [i for i in shape["ids"] if i not in listed or i not in existing])
                    assert set(page.get("trashed", [])) <= listed
                fetch = {"kind": "assets", **shape}
                counts = viewer.call("catalog", "fetch.counts", fetches=[fetch], byMediaType=True)
                equal((shape, counts["counts"]), (shape, [len(wanted)]))
                equal(sum(counts["byMediaType"][0].values()), len(wanted))
                names = viewer.call("catalog", "fetch.assets", fetch=fetch, members=["id"])["assets"]
                equal([a["id"] for a in names], [a["id"] for a in wanted])
                every = sorted(everything(owner))
                found = viewer.call("catalog", "fetch.find", fetch=fetch, ids=every)["indexes"]
                order = [a["id"] for a in wanted]
                equal(found, [order.index(i) if i in order else None for i in every])
                if wanted:
                    some = viewer.call("catalog", "fetch.objects", fetch=fetch, at=[len(wanted) - 1])["assets"]
                    equal(some, wanted[-1:])


        def empty_before_the_list():
            for number in range(1, 7):
                owner.perform(create(f"{number}.jpg"), attachments=[file(f"{number}.jpg")])
            session = viewer.open()
            equal((session["status"], session["statusNumber"], session["scope"]), ("limited", 4, "limited"))
            equal(assets(viewer), [])
            for service, method, params in (
                    ("broker", "feed.since", {}), ("broker", "fetch.observe", {"fetch": {"kind": "assets"}}),
                    ("catalog", "fetch.collections", {"fetch": {"kind": "collections"}}),
                    ("catalog", "transient.create", {"ids": []}), ("editor", "editing.begin", {"asset": "a" + "0" * 26}),
                    ("thumbnailer", "cache.open", {})):
                equal((method, viewer.refusal(service, method, **params)), (method, "access_denied"))
            feed = context.socket(zmq.SUB)
            feed.linger = 0
            secure(feed, "viewer")
            feed.subscribe("")
            feed.connect(os.environ["FEED"])
            owner.perform({"type": "asset.update", "id": assets()[0]["id"], "set": {"rating": 3}})
            assert not feed.poll(1000), "the live feed carries the whole library"
            grant = limit("set", [assets()[0]["id"]])
            equal((grant["status"], grant["assetCount"], grant.get("added")), ("limited", 1, None))


        def attempt(*requests, **more):
            """A random change, which the rules may refuse: an asset in the trash cannot be trashed again, for example."""
            try:
                owner.perform(*requests, **more)
            except Refused:
                pass


        def random_changes():
            """Random changes, widening and narrowing; every view of the viewer equals the owner's, filtered."""
            listed = {assets()[0]["id"]}
            album = owner.perform({"type": "collection.create", "ref": "c", "title": "secret-album"})["placeholders"]["c"]
            start = viewer.call("catalog", "changes.token")["token"]
            model, token, secrets, shown = everything(viewer), start, {}, set()
            follow = Watched("viewer")
            stream = follow.send("catalog", "changes.follow", credit=1 << 22, token=start)
            rounds = 60
            for turn in range(rounds):
                ids = sorted(everything(owner))
                some = lambda count: chance.sample(ids, min(len(ids), count))
                action = chance.randrange(9)
                if action == 0:
                    number = chance.randrange(1, 7)
                    owner.perform(create(f"{number}.jpg", ifDuplicate="create"), attachments=[file(f"{number}.jpg")])
                elif action in (1, 2, 3):
                    requests = []
                    for id in some(3):
                        secret = f"secret-{turn}-{chance.getrandbits(48):x}"
                        secrets[secret] = id
                        requests.append({"type": "asset.update", "id": id, "set": {
                            "caption": secret, "rating": chance.randrange(6), "isFavorite": chance.random() < 0.5,
                            "isHidden": chance.random() < 0.2, "keywords": chance.sample(["red", "green", "blue"], 2)}})
                    attempt(*requests)
                elif action == 4:
                    attempt({"type": chance.choice(["asset.trash", "asset.restore"]), "ids": some(2)})
                elif action == 5:
                    attempt({"type": "collection.update", "id": album, "add": some(2)})
                    if len(ids) > 8:
                        attempt({"type": "asset.delete", "ids": some(1)})
                elif action == 6:
                    added = set(some(3))
                    limit("add", added)
                    listed |= added
                elif action == 7:
                    removed = set(some(2))
                    limit("remove", removed)
                    listed -= removed
                else:
                    listed = set(some(4))
                    limit("set", listed)
                present = everything(owner)
                shown |= {a.get("caption") for a in present.values() if a["id"] in listed}
                # The feed of the view, from the last token.
                before_ids = [a["id"] for a in model.values()]
                page = viewer.call("catalog", "changes.since", token=token)
                details = viewer.call("catalog", "changes.details", **{"from": token, "to": page["token"]},
                                      fetch={"kind": "assets", "includeHidden": True}, ids=sorted(ids)[:20])
                for record in page["records"]:
                    assert not any(record.get(name) for name in ("collections", "lists", "edits")), record
                    for change in record.get("assets", []):
                        before, after = change["before"], change["after"]
                        id = (before or after)["id"]
                        equal(model.get(id), before)
                        if after is None:
                            del model[id]
                        else:
                            model[id] = after
                token = page["token"]
                view = everything(viewer)
                equal(model, view)
                equal(view, {id: asset for id, asset in present.items() if id in listed})
                visible = {id for id, a in view.items() if "trashedDate" not in a}
                equal(details["details"]["hasIncrementalChanges"] if details.get("details") else True, True)
                if details.get("details"):
                    inserted = {place["id"] for place in details["details"].get("inserted", [])}
                    assert inserted <= visible, (inserted, visible)
                if turn % 6 == 0:
                    compare(listed, token)
                if turn in (20, 40):
                    # At an earlier moment the list was another one.
                    equal(stripped(viewer.call("catalog", "fetch.assets", fetch={"kind": "assets"}, token=token)
                                   ["assets"]), stripped(assets(viewer)))
            # The stream from the start leads to the same view.
            streamed, position = {}, None
            first = viewer.call("catalog", "fetch.assets", token=start, fetch={
                "kind": "assets", "includeHidden": True, "includeAllBurstAssets": True, "sourceTypes": 7})["assets"]
            streamed = {asset["id"]: asset for asset in first}
            last = model
            until = time.monotonic() + 20
            while streamed != last and time.monotonic() < until:
                message = follow.receive("catalog", 5)
                assert message, "the stream is behind"
                for record in message["params"]["records"]:
                    for change in record.get("assets", []):
                        before, after = change["before"], change["after"]
                        id = (before or after)["id"]
                        equal(streamed.get(id), before)
                        streamed.pop(id, None)
                        if after:
                            streamed[id] = after
            equal(streamed, last)
            # Not a word of what was never on the list.
            text = b"\n".join(frames)
            hidden = [secret for secret in secrets if secret not in shown]
            assert len(hidden) > 10
            leaked = [secret for secret in hidden if secret.encode() in text]
            equal(leaked, [])
            assert b"secret-album" not in text and album.encode() not in text
            return f"{rounds} rounds, {len(secrets)} captions of which {len(hidden)} were never in the view; " \
                   f"{len(text)} bytes received"


        def errors_of_unknown_and_forbidden():
            known = sorted(everything(owner))
            limit("set", known[:2])
            forbidden, unknown = known[3], "a" + "0" * 26
            album = owner.perform({"type": "collection.create", "ref": "c", "title": "x", "add": known[:1]}
                                  )["placeholders"]["c"]

            def outcome(service, method, **params):
                id = viewer.send(service, method, **params)
                reply = viewer.receive(service)
                return json.dumps(reply.get("error", reply.get("result")), sort_keys=True)

            size = {"width": 32, "height": 32}
            # In the thumbnailer's memory: a hit tells nothing either.
            owner.call("thumbnailer", "image.request", asset=forbidden, targetSize=size)
            for service, method, make in (
                    ("catalog", "resource.read", lambda id: {"asset": id, "type": "photo"}),
                    ("thumbnailer", "image.request", lambda id: {"asset": id, "targetSize": size}),
                    ("thumbnailer", "image.data", lambda id: {"asset": id}),
                    ("catalog", "fetch.assets", lambda id: {"fetch": {"kind": "assets", "ids": [id]}}),
                    ("catalog", "fetch.find", lambda id: {"fetch": {"kind": "assets"}, "ids": [id]}),
                    ("catalog", "changes.perform", lambda id: {"requests": [
                        {"type": "asset.update", "id": known[0], "set": {"rating": 1}},
                        {"type": "asset.update", "id": id, "set": {"rating": 1}}]}),
                    ("catalog", "changes.perform", lambda id: {"requests": [
                        {"type": "asset.trash", "ids": [known[0], id]}]}),
                    ("catalog", "changes.perform", lambda id: {"requests": [{"type": "asset.delete", "ids": [id]}]})):
                got = [outcome(service, method, **make(id)).replace(id, "ID") for id in (forbidden, unknown)]
                equal((method, got[0]), (method, got[1]))
            unknown_album = "c" + "0" * 26
            got = [outcome("catalog", "fetch.assets", fetch={"kind": "assets", "in": id}).replace(id, "ID")
                   for id in (album, unknown_album)]
            equal(got[0], got[1])
            assert "identifier_not_found" in got[0]
            # Assets on the list are served.
            viewer.call("thumbnailer", "image.request", asset=known[0], targetSize=size)
            viewer.call("catalog", "resource.read", asset=known[0], type="photo")
            viewer.perform({"type": "asset.update", "id": known[0], "set": {"rating": 2}})
            for request in ({"type": "collection.create", "title": "mine"}, {"type": "asset.revert", "id": known[0]},
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
            # And back: the stream of the limited view ends.
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
            known = sorted(everything(owner))
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
            untrashed = {id for id, a in everything(owner).items() if "trashedDate" not in a}
            then = client.call("catalog", "fetch.assets", fetch=every, token=first)["assets"]
            equal({asset["id"] for asset in then}, set(known[:2]) & untrashed)
            details = client.call("catalog", "changes.details", **{"from": first}, fetch=every)["details"]
            equal(details["hasIncrementalChanges"], True)
            equal({p["id"] for p in details.get("inserted", [])}, set(known[2:4]) & untrashed)
            equal({p["id"] for p in details.get("removed", [])}, set(known[:1]) & untrashed)


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
