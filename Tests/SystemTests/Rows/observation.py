"""Tests of the requirements for observed fetches and change details: S-64, S-65, S-67, D7 and P-19."""

import time

from rows import *

# An asset of a year without others is in a moment of its own.
YEARS = iter(range(1950, 2000))


def album(*members, **more):
    request = {"type": "collection.create", "ref": "c", "title": "Album", "add": list(members), **more}
    return perform(request)["placeholders"]["c"]


def observe(by=client, token=None, **fetch):
    token = {"token": token} if token else {}
    return by.call("change-broker", "fetch.observe", fetch=fetch, **token)


def entries(details, name):
    return [one["id"] for one in (details or {}).get(name, [])]


def current_token():
    return call("catalog", "changes.token")["token"]


def deleted_album_and_emptied_moment():
    one, two, lone = import_file("1.jpg"), import_file("2.jpg"), import_file("3.jpg")
    trips = album(one, two)
    perform({"type": "asset.update", "id": lone, "set": {"creationDate": f"{next(YEARS)}-05-01T12:00:00Z"}})
    moments = call("catalog", "fetch.collections", fetch={"type": "moment", "containing": lone})["collections"]
    moment = moments[0]["id"]
    start = current_token()
    objects = {trips: [one, two], moment: [lone]}
    observed = {id: observe(token=start, **{"in": id}) for id in objects}
    feed = Subscription(*[answer["topic"] for answer in observed.values()])
    perform({"type": "collection.delete", "ids": [trips]})
    end = perform({"type": "asset.update", "id": lone, "set": {"isHidden": True}})["token"]
    live = dict(feed.messages_through(end))
    for id, members in objects.items():
        fetch = {"kind": "assets", "in": id}
        # The catalog, of the fetch and of the object itself.
        answer = call("catalog", "changes.details", **{"from": start}, fetch=fetch, ids=[id])
        equal((entries(answer["details"], "removed"), answer["objectWasDeleted"]), (members, True))
        changed, = answer["objects"]
        equal((changed["id"], changed["objectWasDeleted"], changed.get("after")), (id, True, None))
        # The broker, on request, live, and to a client that was not connected.
        answer = call("change-broker", "fetch.details", observation=observed[id]["observation"], token=start)
        equal((entries(answer["details"], "removed"), answer["objectWasDeleted"]), (members, True))
        message = live[observed[id]["topic"]]
        equal((entries(message["details"], "removed"), message["objectWasDeleted"]), (members, True))
        answer = observe(token=start, limit=100, **{"in": id})
        equal((entries(answer["details"], "removed"), answer["objectWasDeleted"]), (members, True))
        # A fetch in a deleted collection finds nothing.
        equal(refusal("catalog", "changes.details", **{"from": end}, fetch=fetch), "identifier_not_found")


def unobserve_ends_only_ones_own():
    photo = import_file("4.jpg")
    one, other = Client(), Client()
    fetch = {"predicate": 'caption BEGINSWITH "now"'}
    first, second = observe(one, **fetch), observe(other, **fetch)
    observation = first["observation"]
    feed = Subscription(first["topic"])

    def messages(caption):
        token = perform({"type": "asset.update", "id": photo, "set": {"caption": caption}})["token"]
        return len(feed.messages_through(token))

    def unobserve(client):
        return client.refusal("change-broker", "fetch.unobserve", observation=observation)

    equal(messages("now 1"), 1)
    equal((unobserve(one), unobserve(one)), (None, "handle_expired"))
    # The other still has it, with messages and details.
    equal(messages("now 2"), 1)
    details = other.call("change-broker", "fetch.details", observation=observation, token=second["token"])
    equal(entries(details["details"], "inserted"), [photo])
    # It is no longer observed: the open SUB socket receives no message.
    equal(unobserve(other), None)
    equal((messages("now 3"), messages("then"), messages("now 4")), (0, 0, 0))
    # Observed again, it delivers the changes from then on.
    observe(one, **fetch)
    equal(messages("then"), 1)
    equal(unobserve(one), None)


def a_closed_connection_leaves_its_observation_to_its_identity():
    photo, gone = import_file("13.jpg"), Client()
    answer = observe(gone, predicate='caption == "left"')
    gone.close()
    other = Client()
    # The service detects the end of a connection with a delay.
    end = time.monotonic() + 30
    while other.refusal("change-broker", "fetch.unobserve", observation=answer["observation"]) is not None:
        assert time.monotonic() < end, "the observation of a closed connection cannot be ended"
        time.sleep(0.01)
    feed = Subscription(answer["topic"])
    token = perform({"type": "asset.update", "id": photo, "set": {"caption": "left"}})["token"]
    equal(feed.messages_through(token), [])
    equal(other.refusal("change-broker", "fetch.unobserve", observation=answer["observation"]), "handle_expired")


def folder_and_containing():
    a, b, c, d = [import_file(f"{number}.jpg") for number in (5, 6, 7, 8)]
    created = perform(
        {"type": "list.create", "ref": "folder", "title": "Folder"},
        {"type": "collection.create", "ref": "inside", "title": "I", "add": [a, b], "parent": {"ref": "folder"}},
        {"type": "collection.create", "ref": "outside", "title": "O", "add": [b, c]},
    )
    folder, inside, outside = [created["placeholders"][ref] for ref in ("folder", "inside", "outside")]
    start = created["token"]
    fetches = [
        {"kind": "assets", "in": folder},
        {"kind": "collections", "type": "album", "containing": c},
        {"kind": "lists", "containing": outside},
    ]
    observed = [observe(token=start, **fetch) for fetch in fetches]
    equal([answer["count"] for answer in observed], [2, 1, 1])
    topics = [answer["topic"] for answer in observed]
    feed = Subscription(*topics)

    def live(*requests):
        found = {topic: message["details"] for topic, message in feed.messages_through(perform(*requests)["token"])}
        return [found.get(topic) for topic in topics]

    # An asset that is in two albums of the folder is in its fetch once.
    found = live({"type": "list.update", "id": folder, "edits": [{"op": "add", "members": [outside]}]})
    equal((entries(found[0], "inserted"), entries(found[2], "inserted")), ([c], [folder]))
    equal(sorted(ids(**{"in": folder})), sorted([a, b, c]))
    found = live({"type": "collection.update", "id": inside, "remove": [b]})
    equal(entries(found[0], "removed"), [])
    found = live({"type": "collection.update", "id": inside, "add": [c, d]})
    equal((entries(found[0], "inserted"), entries(found[1], "inserted")), ([d], [inside]))
    found = live({"type": "list.delete", "ids": [folder]})
    equal((set(entries(found[0], "removed")), set(entries(found[1], "removed"))), ({a, b, c, d}, {inside, outside}))
    # From the start, by the broker as by the catalog.
    for fetch, answer in zip(fetches, observed):
        broker = call("change-broker", "fetch.details", observation=answer["observation"], token=start)
        catalog = call("catalog", "changes.details", **{"from": start}, fetch=fetch)
        removed = entries(catalog["details"], "removed")
        equal((entries(broker["details"], "removed"), removed != []), (removed, True))
        equal(broker.get("objectWasDeleted"), catalog.get("objectWasDeleted"))


def details_between_two_results():
    a, b, c, d = [import_file(f"{number}.jpg") for number in (9, 10, 11, 12)]
    trips = album(a, b, c)

    def diff(before, after, **more):
        return call("catalog", "details.diff", **{"from": before, "to": after}, **more)

    start = current_token()
    fetch = {"kind": "assets", "in": trips}
    # The same fetch at two tokens, between which a is removed and b is changed.
    perform({"type": "asset.update", "id": b, "set": {"caption": "b*"}}, {"type": "asset.trash", "ids": [a]})
    answer = diff({"fetch": fetch, "token": start}, {"fetch": fetch}, form="rice")
    details = answer["details"]
    equal(details["removed"], [{"id": a, "index": 0}])
    equal(details["changed"], [{"id": b, "before": 1, "after": 0}])
    equal((details["countBefore"], details["countAfter"]), (3, 2))
    equal([answer["rice"][name] for name in ("removedIndexes", "changedIndexes")], [[0], [0]])
    # Two different fetches, and two equal ones without a change between them.
    other = {"kind": "assets", "ids": [d, c]}
    details = diff({"fetch": fetch}, {"fetch": other})["details"]
    equal((entries(details, "removed"), entries(details, "inserted")), ([b], [d]))
    equal(diff({"fetch": fetch}, {"fetch": fetch}).get("details"), None)
    # A filtered transient list is followed in this way (S-30).
    held = call("catalog", "transient.create", ids=[b, c, d])["id"]
    liked = {"kind": "assets", "in": held, "predicate": "rating == 5"}
    start = current_token()
    perform({"type": "asset.update", "id": c, "set": {"rating": 5}})
    equal(entries(diff({"fetch": liked, "token": start}, {"fetch": liked})["details"], "inserted"), [c])
    equal(refusal("catalog", "details.diff", **{"from": {"fetch": fetch}, "to": {"fetch": {"kind": "collections"}}}),
          "invalid_options")


if __name__ == "__main__":
    run(
        deleted_album_and_emptied_moment,
        unobserve_ends_only_ones_own,
        a_closed_connection_leaves_its_observation_to_its_identity,
        folder_and_containing,
        details_between_two_results,
    )
