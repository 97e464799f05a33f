import TestSupport
import Testing

/// Consent for each transaction, and revoked access, as scripts with keys see them.
@Suite(.serialized, .timeLimit(.minutes(4)))
struct ConsentScriptTests {
    @Test(.spec("S-13"))
    func `each transaction needs one decision, and revoked access ends open requests within five seconds`() throws {
        let script = try GrantScript()
        try script.createKeys("leaver")
        try script.createKeys("careful", "--consent", "always", "--purpose", "batch edits")
        try script.createKeys("gentle", "--consent", "destructive")
        try script.run(
            Self.script,
            parts: [
                "consent_for_each_transaction", "a_repeated_transaction_waits_for_the_same_decision",
                "destructive_changes_only", "revoked_while_it_runs", "recorded",
            ]
        )
    }

    private static let script = #"""
        def consent_for_each_transaction():
            careful = Client("careful")
            for number in range(1, 4):
                owner.perform(create(f"{number}.jpg"), attachments=[file(f"{number}.jpg")])
            ids = [asset["id"] for asset in assets()]
            batch = [{"type": "asset.update", "id": ids[n % len(ids)], "set": {"rating": 1 + n % 5}} for n in range(50)]
            waiting = careful.in_background(careful.perform, *batch, client="batch")
            questions = pending()["questions"]
            equal([(q["identity"], q["client"], q["counts"], q["state"]) for q in questions],
                  [("key:careful", "batch", {"asset.update": 50}, "asked")])
            equal(set(questions[0]["objects"]), set(ids))
            assert questions[0]["summary"].startswith("asset.update 50: a")
            equal({asset["rating"] if "rating" in asset else 0 for asset in assets()}, {0})
            equal(decide("approve", question=questions[0]["id"])["question"]["state"], "approved")
            equal(waiting()["isChanged"], True)
            equal(owner.refusal("catalog", "grants.approve", question=questions[0]["id"]), "identifier_not_found")

            head = owner.call("catalog", "changes.token")["token"]
            waiting = careful.in_background(careful.perform, {"type": "asset.delete", "ids": ids[:2]})
            decide("deny", question=pending()["questions"][0]["id"])
            declined = waiting()
            equal((declined.code, declined.name), (3072, "user_cancelled"))
            try:
                careful.perform({"type": "asset.delete", "ids": ids[:2]}, deadlineMs=2000)
            except Refused as expired:
                equal((expired.code, expired.name), (3072, "user_cancelled"))
            else:
                raise AssertionError("it was performed")
            equal(owner.call("catalog", "grants.pending")["questions"], [])
            page = owner.call("catalog", "changes.since", token=head)
            equal([r for r in page["records"] if r.get("assets")], [])
            equal(len(assets()), len(ids))


        def a_repeated_transaction_waits_for_the_same_decision():
            asset = assets()[0]["id"]
            request = {"type": "asset.update", "id": asset, "set": {"caption": "joined"}}
            try:
                Client("careful").perform(request, client="c", transaction="t1", deadlineMs=2000)
            except Refused as expired:
                equal(expired.code, 3072)
            else:
                raise AssertionError("it was performed")
            first, second = Client("careful"), Client("careful")
            waiting = [client.in_background(client.perform, request, client="c", transaction="t1")
                       for client in (first, second)]
            other = {"type": "asset.update", "id": asset, "set": {"caption": "other"}}
            time.sleep(0.3)
            equal(Client("careful").refusal("catalog", "changes.perform", requests=[other], client="c",
                                            transaction="t1"), "id_reused")
            questions = pending()["questions"]
            equal(len(questions), 1)
            decide("approve", question=questions[0]["id"])
            outcomes = [wait() for wait in waiting]
            equal(outcomes[0], outcomes[1])
            equal(first.perform(request, client="c", transaction="t1"), outcomes[0])
            equal(owner.call("catalog", "grants.pending")["questions"], [])


        def destructive_changes_only():
            gentle, asset = Client("gentle"), assets()[0]["id"]
            gentle.perform({"type": "asset.update", "id": asset, "set": {"rating": 2}})
            gentle.perform(create("6.jpg"), attachments=[file("6.jpg")])
            waiting = gentle.in_background(gentle.perform, {"type": "asset.trash", "ids": [asset]})
            decide("deny", question=pending()["questions"][0]["id"])
            equal(waiting().code, 3072)
            # An edit that the editor makes for a client is the client's transaction.
            adjustments = {"version": 1, "operations": [{"operation": "exposure", "value": 0.5}]}
            waiting = gentle.in_background(gentle.call, "editor", "edits.apply", asset=asset, adjustments=adjustments,
                                           client="g", transaction="e1")
            question = pending()["questions"][0]
            equal((question["identity"], question["counts"]), ("key:gentle", {"asset.edit": 1}))
            decide("approve", question=question["id"])
            outcome = waiting()
            assert not isinstance(outcome, Refused), outcome


        def revoked_while_it_runs():
            leaver = Client("leaver")
            asset = assets()[0]["id"]
            leaver.call("thumbnailer", "image.request", asset=asset, targetSize={"width": 32, "height": 32})
            transient = leaver.call("catalog", "transient.create", ids=[asset])["id"]
            leaver.call("thumbnailer", "cache.open")
            leaver.call("broker", "fetch.observe", fetch={"kind": "assets"},
                        token=leaver.call("catalog", "changes.token")["token"])
            equal(owner.call("broker", "figures")["feed"]["fetches"]["count"], 1)
            streams = {"catalog": leaver.send("catalog", "changes.follow", credit=1 << 20),
                       "broker": leaver.send("broker", "feed.follow", credit=1 << 20)}
            feed = context.socket(zmq.SUB)
            feed.linger = 0
            secure(feed, "leaver")
            feed.subscribe("changes")
            feed.connect(os.environ["FEED"])
            while not feed.poll(200):
                owner.perform({"type": "asset.update", "id": asset, "set": {"rating": int(time.time()) % 5}})
                owner.perform({"type": "asset.update", "id": asset, "set": {"rating": 5}})
            began = time.monotonic()
            decide("revoke", identity="key:leaver")
            for service, id in streams.items():
                while True:
                    reply = leaver.receive(service, 10)
                    assert reply, f"{service}: the stream did not end"
                    if reply.get("id") == id and "error" in reply:
                        equal((service, reply["error"]["code"]), (service, 3311))
                        break
            took = time.monotonic() - began
            assert took < 5, f"ended after {took} s"
            for service, method, params in (
                    ("catalog", "fetch.assets", {"fetch": {"kind": "assets"}}), ("broker", "feed.head", {}),
                    ("thumbnailer", "image.request", {"asset": asset, "targetSize": {"width": 32, "height": 32}}),
                    ("editor", "edits.history", {"asset": asset})):
                until = time.monotonic() + 5
                while leaver.refusal(service, method, **params) != "access_denied":
                    assert time.monotonic() < until, f"{method} is still answered"
            all_refused = time.monotonic() - began
            time.sleep(1.2)
            while feed.poll(0):
                feed.recv_multipart()
            owner.perform({"type": "asset.update", "id": asset, "set": {"rating": 1}})
            assert not feed.poll(500), "the live feed was still delivered"
            equal(owner.refusal("catalog", "grants.revoke", identity="key:leaver"), "identifier_not_found")
            equal(owner.call("broker", "figures")["feed"]["fetches"]["count"], 0)
            equal(owner.call("thumbnailer", "figures")["caching"]["managers"], 0)
            decide("approve", identity="key:leaver")
            until = time.monotonic() + 5
            while leaver.refusal("broker", "feed.head") and time.monotonic() < until:
                pass
            equal(leaver.refusal("catalog", "fetch.assets", fetch={"kind": "assets", "in": transient}),
                  "handle_expired")
            return f"revoked: streams ended after {took * 1000:.0f} ms, every service refused after " \
                   f"{all_refused * 1000:.0f} ms"


        def recorded():
            history = owner.call("catalog", "grants.history", identity="key:leaver")["records"]
            equal([(r["grants"][0]["after"]["status"], r["origin"]["identity"].split(":")[0]) for r in history],
                  [("authorized", "uid"), ("denied", "uid")])
            states = [q["state"] for r in owner.call("catalog", "grants.history", identity="key:careful")["records"]
                      for q in r.get("questions", [])]
            equal(states, ["approved", "asked", "expired", "asked", "declined", "asked", "approved", "asked"])
        """#
}
