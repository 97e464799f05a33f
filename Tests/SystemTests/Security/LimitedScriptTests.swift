import TestSupport
import Testing

/// The library of an identity with a limited grant, as a script with its key sees it (T-41, P-06).
@Suite(.serialized, .timeLimit(.minutes(120)))
struct LimitedScriptTests {
    @Test(.spec("T-39", "T-41", "P-06"))
    func `a limited view is the owner's view, filtered, at every sequence, and reveals nothing else`() throws {
        let script = try GrantScript()
        try script.createKeys("viewer", "--access", "limited")
        for name in ["narrowed", "widened"] { try script.createKeys(name) }
        try script.run(
            "ROUNDS = \(TestEnvironment.rounds(60))\n" + Self.script + LimitedCollectionsScript.text
                + LimitedScript.text,
            parts: [
                "empty_before_the_list", "random_changes", "errors_of_unknown_and_forbidden", "adding",
                "observed_moments", "narrowing_ends_streams",
                "earlier_tokens", "ending_live_fetches", "edits_videos_and_sheets", "consent_and_revoking",
            ],
            seconds: Double(180 + 120 * TestEnvironment.rounds(1))
        )
    }

    private static let script = #"""
        import random
        rng = random.Random(7)
        frames = []


        class Watched(Client):
            """A client that records the received messages, to search them."""

            def receive(self, service, seconds=30):
                socket = self.sockets[service]
                if not socket.poll(int(seconds * 1000)):
                    return None
                parts = socket.recv_multipart()
                frames.extend(parts)
                return json.loads(parts[0])


        viewer = Watched("viewer")
        NOTHING = {"version": 1, "operations": []}


        def limit(action, ids, identity="key:viewer"):
            return decide("limit", identity=identity, assets=sorted(ids), action=action)["grant"]


        def stripped(found):
            return [{name: value for name, value in asset.items() if name != "memberships"} for asset in found]


        def everything(client):
            """Returns all assets of a client's view by identifier."""
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
            """Compares each fetch of the viewer with the same fetch of the owner, filtered by the list."""
            for shape in shapes():
                whole = {name: value for name, value in shape.items() if name not in ("limit", "offset")}
                expected = [a for a in stripped(assets(**whole)) if a["id"] in listed]
                expected = expected[shape.get("offset", 0):]
                expected = expected[:shape["limit"]] if "limit" in shape else expected
                page = viewer.call("catalog", "fetch.assets", fetch={"kind": "assets", **shape})
                equal((shape, page["assets"], page["count"]), (shape, expected, len(expected)))
                if "ids" in shape:
                    existing = everything(owner)
                    equal(page.get("missing", []), [i for i in shape["ids"] if i not in listed or i not in existing])
                    assert set(page.get("trashed", [])) <= listed
                fetch = {"kind": "assets", **shape}
                counts = viewer.call("catalog", "fetch.counts", fetches=[fetch], byMediaType=True)
                equal((shape, counts["counts"]), (shape, [len(expected)]))
                equal(sum(counts["byMediaType"][0].values()), len(expected))
                names = viewer.call("catalog", "fetch.assets", fetch=fetch, members=["id"])["assets"]
                equal([a["id"] for a in names], [a["id"] for a in expected])
                every = sorted(everything(owner))
                found = viewer.call("catalog", "fetch.find", fetch=fetch, ids=every)["indexes"]
                order = [a["id"] for a in expected]
                equal(found, [order.index(i) if i in order else None for i in every])
                if expected:
                    some = viewer.call("catalog", "fetch.objects", fetch=fetch, at=[len(expected) - 1])["assets"]
                    equal(some, expected[-1:])


        def empty_before_the_list():
            for number in range(1, 7):
                owner.perform(create(f"{number}.jpg"), attachments=[file(f"{number}.jpg")])
            owner.perform({"type": "collection.create", "ref": "c", "title": "named"})
            session = viewer.open()
            equal((session["status"], session["statusNumber"], session["scope"]), ("limited", 4, "limited"))
            equal(assets(viewer), [])
            for service, method, params in (
                    ("catalog", "fetch.duplicates", {}),
                    ("catalog", "fetch.collections", {"fetch": {"kind": "children"}}),
                    ("catalog", "fetch.counts", {"fetches": [{"kind": "children"}]}),
                    ("editor", "edits.apply", {"fetch": {"kind": "assets"}, "adjustments": NOTHING}),
                    ("broker", "figures", {}), ("catalog", "changes.since", {"onBehalfOf": "key:widened"})):
                equal((method, viewer.refusal(service, method, **params)), (method, "access_denied"))
            equal(viewer.call("broker", "fetch.observe", fetch={"kind": "assets"})["count"], 0)
            names = [c["subtype"] for c in viewer.call("catalog", "fetch.collections", fetch={"kind": "collections"}
                                                       )["collections"]]
            assert names and all(name.startswith("smartAlbum") for name in names), names
            feed = context.socket(zmq.SUB)
            feed.linger = 0
            secure(feed, "viewer")
            feed.subscribe("")
            feed.connect(os.environ["FEED"])
            owner.perform({"type": "asset.update", "id": assets()[0]["id"], "set": {"rating": 3}})
            assert not feed.poll(1000), "the live feed carries the whole library"
            grant = limit("set", [assets()[0]["id"]])
            equal((grant["status"], grant["assetCount"], grant.get("added")), ("limited", 1, None))


        class Observed:
            """An observed fetch of the viewer, whose list is updated only with change details."""

            def __init__(self, shape):
                self.fetch = {"kind": "assets", **shape}
                self.facts, self.token = self.page()
                self.ids = list(self.facts)
                self.observe()

            def page(self, **more):
                """Returns the objects of the fetch by identifier, in order, and the token."""
                if self.fetch["kind"] == "assets":
                    page = viewer.call("catalog", "fetch.assets", fetch=self.fetch, members=["id"], **more)
                    return {a["id"]: None for a in page["assets"]}, page["token"]
                member = "lists" if self.fetch["kind"] == "lists" else "collections"
                page = viewer.call("catalog", "fetch." + member, fetch=self.fetch, **more)
                return dict(zip([entity["id"] for entity in page[member]], plain(page[member]))), page["token"]

            def observe(self):
                reply = viewer.call("broker", "fetch.observe", fetch=self.fetch, token=self.token)
                self.observation = reply["observation"]
                return self.apply(reply)

            def follow(self):
                try:
                    reply = viewer.call("broker", "fetch.details", observation=self.observation, token=self.token)
                except Refused as error:
                    # The change-broker was restarted.
                    equal(error.name, "handle_expired")
                    return self.observe()
                return self.apply(reply)

            def apply(self, reply):
                details = reply.get("details")
                if details:
                    equal(details["hasIncrementalChanges"], True)
                    before, moved = list(self.ids), details.get("moved", [])
                    equal(details["countBefore"], len(before))
                    for removal in details.get("removed", []):
                        equal(before[removal["index"]], removal["id"])
                    removed_indexes = {p["index"] for p in details.get("removed", [])} | {p["before"] for p in moved}
                    after = [id for index, id in enumerate(before) if index not in removed_indexes]
                    insertions = [(p["index"], p["id"]) for p in details.get("inserted", [])]
                    for index, id in sorted(insertions + [(p["after"], p["id"]) for p in moved]):
                        after.insert(index, id)
                    self.ids = after
                self.changed = {p["id"] for p in (details or {}).get("changed", [])}
                self.token = reply["token"]
                equal(reply["count"], len(self.ids))
                return reply

            def check(self):
                """Compares the list with a fetch, and what has changed with the facts of collections."""
                try:
                    facts, _ = self.page(token=self.token)
                except Refused as error:
                    equal((error.name, "in" in self.fetch), ("identifier_not_found", True))
                    facts = {}
                equal((self.fetch, self.ids), (self.fetch, list(facts)))
                other = {id for id in facts if id in self.facts and facts[id] != self.facts[id]}
                assert other <= self.changed, (self.fetch, other, self.changed)
                self.facts = facts


        def attempt(*requests, **more):
            """Performs a change, which may be refused: an asset in the trash cannot be trashed again, for example."""
            try:
                owner.perform(*requests, **more)
            except Refused:
                pass


        def random_changes():
            """Performs random changes, widening and narrowing; each view of the viewer is the owner's, filtered."""
            listed = {assets()[0]["id"]}
            album = owner.perform({"type": "collection.create", "ref": "c", "title": "secret-album"})["placeholders"]["c"]
            start = viewer.call("catalog", "changes.token")["token"]
            model, token, secrets, shown = everything(viewer), start, {}, set()
            follow = Watched("viewer")
            stream = follow.send("catalog", "changes.follow", credit=1 << 22, token=start)
            # The same from the change-broker, with other clients' changes only of assets on the list.
            feed = Watched("viewer")
            feed.send("broker", "feed.follow", credit=1 << 22, token=start)
            observed = [Observed(shape) for shape in shapes()[:9] + shapes()[12:13] + shapes()[17:]] + [
                Observed(shape) for shape in (
                    {"kind": "collections", "type": "moment"}, {"kind": "lists", "type": "momentList"},
                    {"kind": "collections", "type": "moment", "predicate": "estimatedAssetCount > 1", "limit": 2,
                     "sort": [{"key": "endDate", "ascending": False}]},
                    {"kind": "lists", "sort": [{"key": "startDate", "ascending": False}], "offset": 1, "limit": 2})]
            rounds = ROUNDS
            for turn in range(rounds):
                if turn % 25 == 20:
                    kill(rng.choice(["broker", "broker", "catalog", "thumbnailer", "editor"]), viewer)
                    for client, service in ((follow, "catalog"), (feed, "broker")):
                        client.sockets.pop(service).close()
                    follow.send("catalog", "changes.follow", credit=1 << 22, token=start)
                    feed.send("broker", "feed.follow", credit=1 << 22, token=start)
                ids = sorted(everything(owner))
                some = lambda count: rng.sample(ids, min(len(ids), count))
                action = rng.randrange(9)
                if action == 0 and len(ids) < 60:
                    number = rng.randrange(1, 7)
                    owner.perform(create(f"{number}.jpg", ifDuplicate="create"), attachments=[file(f"{number}.jpg")])
                elif action in (1, 2, 3):
                    requests = []
                    for id in some(3):
                        secret = f"secret-{turn}-{rng.getrandbits(48):x}"
                        secrets[secret] = id
                        requests.append({"type": "asset.update", "id": id, "set": {
                            "caption": secret, "rating": rng.randrange(6), "isFavorite": rng.random() < 0.5,
                            "creationDate": DAY * rng.randrange(19_700, 19_705) + rng.randrange(DAY),
                            "location": rng.choice([None, {"latitude": 47.3, "longitude": 8.5},
                                                       {"latitude": 59.9, "longitude": 10.7}]),
                            "isHidden": rng.random() < 0.2, "keywords": rng.sample(["red", "green", "blue"], 2)}})
                    attempt(*requests)
                elif action == 4:
                    attempt({"type": rng.choice(["asset.trash", "asset.restore"]), "ids": some(2)})
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
                feed_page = viewer.call("broker", "feed.since", token=token)
                equal((feed_page["records"], feed_page["token"]), (page["records"], page["token"]))
                for observation in rng.sample(observed, 5):
                    observation.follow()
                    observation.check()
                token = page["token"]
                view = everything(viewer)
                equal(model, view)
                equal(view, {id: asset for id, asset in present.items() if id in listed})
                visible = {id for id, a in view.items() if "trashedDate" not in a}
                equal(details["details"]["hasIncrementalChanges"] if details.get("details") else True, True)
                if details.get("details"):
                    inserted = {item["id"] for item in details["details"].get("inserted", [])}
                    assert inserted <= visible, (inserted, visible)
                if turn % 6 == 0:
                    compare(listed, token)
                    compare_collections(listed)
                    compare_cloud_identifiers(listed)
                if turn in (20, 40):
                    # At an earlier token the list was different.
                    equal(stripped(viewer.call("catalog", "fetch.assets", fetch={"kind": "assets"}, token=token)
                                   ["assets"]), stripped(assets(viewer)))
            for observation in observed:
                observation.follow()
                observation.check()
            # The streams from the start lead to the same view.
            for stream in ((follow, "catalog"), (feed, "broker")):
                streamed_view(start, model, *stream)
            # The replies never mention assets that were never on the list.
            text = b"\n".join(frames)
            hidden = [secret for secret in secrets if secret not in shown]
            assert len(hidden) > 10
            assert sum(len(moments) for _, moments in earlier) > 10, earlier
            leaked = [secret for secret in hidden if secret.encode() in text]
            equal(leaked, [])
            assert b"secret-album" not in text and album.encode() not in text
            return f"{rounds} rounds, {len(secrets)} captions of which {len(hidden)} were never in the view; " \
                   f"{len(text)} bytes received"


        def streamed_view(start, last, follow, service):
            streamed = {}
            first = viewer.call("catalog", "fetch.assets", token=start, fetch={
                "kind": "assets", "includeHidden": True, "includeAllBurstAssets": True, "sourceTypes": 7})["assets"]
            streamed = {asset["id"]: asset for asset in first}
            until = time.monotonic() + 20 + ROUNDS / 50
            while streamed != last and time.monotonic() < until:
                message = follow.receive(service, 5)
                assert message, f"{service}: the stream is behind"
                credit = {"id": follow.last, "bytes": len(frames[-1])}
                follow.sockets[service].send_json({"jsonrpc": "2.0", "method": "rpc.credit", "params": credit})
                for record in message["params"].get("records", []):
                    for change in record.get("assets", []):
                        before, after = change["before"], change["after"]
                        id = (before or after)["id"]
                        equal(streamed.get(id), before)
                        streamed.pop(id, None)
                        if after:
                            streamed[id] = after
            equal(streamed, last)


        """#
}
