"""The wall clock jumps by an hour while the services run. The file CLOCK_OFFSET contains the difference of the
services' clock in seconds."""

import struct
import time

from rows import *


def jump(offset):
    # Written in place: the services have mapped the file.
    with open(os.environ["CLOCK_OFFSET"], "r+b") as opened:
        opened.write(struct.pack("l", offset))


def the_clock_jumps():
    first = import_file("1.jpg")
    changes = Subscription("changes")
    follower = Client()
    stream = follower.send("change-broker", "feed.follow", credit=1 << 24)
    streamed = []
    token = call("catalog", "changes.token")["token"]
    transient = call("catalog", "transient.create", ids=[first])["id"]
    upload = call("catalog", "upload.begin")["upload"]
    call("change-broker", "fetch.observe", fetch={"kind": "assets"}, token=token)
    cache = call("thumbnailer", "cache.open")["cache"]
    position, dates, published = token, [], []
    for number, offset in enumerate([0, 3600, 0, -3600, 3600, -3600, 0]):
        jump(offset)
        for rating in (1, 2):
            last = perform({"type": "asset.update", "id": first, "set": {"rating": rating + number % 2 * 2}})["token"]
        published += [message for topic, message in changes.messages_through(last) if topic == "changes"]
        page = call("catalog", "changes.since", token=position)
        position = page["token"]
        dates += [(offset, record["date"] / 1e6 - time.time()) for record in page["records"]]
        # No handle and no token has expired.
        equal(len(assets(**{"in": transient})), 1)
        assert call("catalog", "upload.append", [b"bytes"], upload=upload, offset=5 * number)
        assert call("thumbnailer", "cache.status", cache=cache) is not None
        assert call("catalog", "changes.since", token=token)["records"]
        held = call("change-broker", "figures")["feed"]["fetches"]["count"]
        equal(held, 1)
    # The clock of the services did jump.
    for offset, difference in dates:
        assert abs(difference - offset) < 600, (offset, difference)
    # And the order of the records is that of the transactions, in the log, live and in the stream.
    records = call("catalog", "changes.since", token=token)["records"]
    sequences = [record["sequence"] for record in records]
    equal(sequences, list(range(sequences[0], sequences[0] + len(dates))))
    # The preceding import may be published after the subscription.
    equal([message["sequence"] for message in published if message["sequence"] >= sequences[0]], sequences)
    while not streamed or streamed[-1] < sequences[-1]:
        message, _ = follower.receive("change-broker")
        assert "method" in message, f"the stream ended: {message}"
        streamed += [record["sequence"] for record in message["params"].get("records", [])]
    equal([sequence for sequence in streamed if sequence >= sequences[0]], sequences)


if __name__ == "__main__":
    run(the_clock_jumps)
