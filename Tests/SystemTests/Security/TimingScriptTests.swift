import TestSupport
import Testing

/// Compares the time for refusing an asset that a client may not see with that for an unknown one (T-40, T-41).
@Suite(.serialized, .timeLimit(.minutes(60)))
struct TimingScriptTests {
    @Test(.spec("T-40", "T-41")) func `a forbidden asset is refused in the time of an unknown one`() throws {
        let store = try S3Server()
        let script = try GrantScript(environment: store.environment)
        try script.createKeys("viewer", "--access", "limited")
        for name in ["adder", "other"] { try script.createKeys(name, "--access", "addOnly") }
        let pairs = TestEnvironment.rounds(960)
        try script.run(
            "PAIRS = \(pairs)\n" + Self.script,
            parts: ["forbidden_and_unknown"],
            seconds: Double(120 + pairs / 10)
        )
    }

    /// The two identifiers of a pair are requested one after the other, in random order, so that changes in the
    /// machine's load affect both alike. If their times do not differ, each is the slower one in half of the pairs: the
    /// number of those pairs is binomial, and beyond 4.5 of its standard deviations in 1 of 150,000 runs.
    private static let script = #"""
        import random

        NOTHING = {"version": 1, "operations": []}


        def forbidden_and_unknown():
            rng = random.Random(11)
            adder, other = Client("adder"), Client("other")
            # The first asset is the only one that the requesting clients may see.
            adder.perform(create("1.jpg"), attachments=[file("1.jpg")])
            for number in range(2, 7):
                client = other if number % 2 else owner
                client.perform(create(f"{number}.jpg", ifDuplicate="create"), attachments=[file(f"{number}.jpg")])
            until = time.monotonic() + 60
            while owner.call("catalog", "storage.status")["waitingCount"]:
                assert time.monotonic() < until
                time.sleep(0.05)
            known = sorted(asset["id"] for asset in assets())
            decide("limit", identity="key:viewer", assets=known[:1], action="set")
            # As many unknown identifiers, with the same creation times.
            letters = "0123456789abcdefghjkmnpqrstvwxyz"
            hidden = known[1:]
            unknown = [id[:11] + "".join(rng.choice(letters) for _ in id[11:]) for id in hidden]
            size = {"width": 32, "height": 32}
            for id in hidden:
                owner.call("thumbnailer", "image.request", asset=id, targetSize=size)
            # The bytes of their originals identify assets elsewhere.
            clouds = {id: mapping["id"] for id, mapping in owner.call("catalog", "ids.toCloud", ids=hidden)["mappings"].items()}
            prefix, length = clouds[hidden[0]].rpartition(":")[0], len(clouds[hidden[0]].rpartition(":")[2])
            for id in unknown:
                clouds[id] = prefix + ":" + "".join(rng.choice("0123456789abcdef") for _ in range(length))
            viewer = Client("viewer")
            notes = []
            for client, service, method, make in (
                    (adder, "catalog", "jobs.create", lambda id: {"assets": [id]}),
                    (viewer, "catalog", "resource.read", lambda id: {"asset": id, "type": "photo"}),
                    (viewer, "catalog", "fetch.assets", lambda id: {"fetch": {"kind": "assets", "ids": [id]}}),
                    (viewer, "catalog", "ids.toCloud", lambda id: {"ids": [id]}),
                    (viewer, "catalog", "ids.toLocal", lambda id: {"cloudIds": [clouds[id]]}),
                    (viewer, "catalog", "changes.perform",
                     lambda id: {"requests": [{"type": "asset.update", "id": id, "set": {"rating": 1}}]}),
                    (viewer, "thumbnailer", "image.request", lambda id: {"asset": id, "targetSize": size}),
                    (viewer, "editor", "edits.preview", lambda id: {"asset": id, "adjustments": NOTHING})):

                def seconds(id):
                    params = make(id)
                    start = time.perf_counter()
                    number = client.send(service, method, **params)
                    while client.receive(service).get("id") != number:
                        pass
                    return time.perf_counter() - start

                def measure(count):
                    times, slower = {True: [], False: []}, 0
                    for _ in range(count // 2):
                        # Each of the two is first as often as the other, because the first one wakes the processor.
                        orders = [(True, False), (False, True)]
                        rng.shuffle(orders)
                        for order in orders:
                            ids = {True: rng.choice(hidden), False: rng.choice(unknown)}
                            took = {isHidden: seconds(ids[isHidden]) for isHidden in order}
                            slower += took[True] > took[False]
                            for isHidden in took:
                                times[isHidden].append(took[isHidden])
                    deviations = (slower - count / 2) / (count / 4) ** 0.5
                    middle = {isHidden: sorted(found)[count // 2] * 1e6 for isHidden, found in times.items()}
                    text = f"{method}: {middle[True]:.1f} and {middle[False]:.1f} us, {deviations:+.1f} deviations"
                    return abs(deviations) < 4.5, text

                measure(20)
                isAlike, text = measure(PAIRS // 8)
                if not isAlike:
                    # A difference of the services is clearer in more pairs; one caused by the machine disappears.
                    first = text
                    isAlike, text = measure(4 * (PAIRS // 8))
                    assert isAlike, (first, text)
                notes.append(text)
            return f"{PAIRS} pairs of a forbidden and an unknown asset; " + "; ".join(notes)
        """#
}
