#!/usr/bin/env python3
"""Changes, imports, edits and reads while parts of a cluster fail, and checks the results.

Each change, import and edit is repeated under its transaction id until it is acknowledged, whatever the error. Clients
have the addresses of both catalogs. Readers send requests with and without the token of the newest acknowledged change.
Two followers receive the changes of two change-brokers. Commands are lines of the standard input; each is answered with
the line "done":

  mark NAME        begins a part of the measurement, which the result names
  progress C I E   waits until C more changes, I more imports and E more edits were acknowledged
  report           prints the longest times of the part
  finish           prints the results and ends the program, which succeeds if the library has everything acknowledged

usage: check_failover.py PHOTOS BROKER BROKER

  PHOTOS  a folder of JPEGs that the library has
  BROKER  the addresses of a change-broker and of its feed, with a space between them
"""

import itertools
import os
import sys
import threading
import time

from safelight import Endpoints, Library, SafelightError, adjustments

from measuring import Clock

# A request without a reply is cancelled after this time, and repeated.
ATTEMPT_SECONDS = 1
EDIT_SECONDS = 10
READ_SECONDS = 5
# The pause between two requests of the same kind.
PAUSE_SECONDS = {"change": 0.05, "import": 0.5, "edit": 1, "read": 0.05, "retry": 0.1}
# Patroni's `ttl` of patroni.yaml, and 2 s: etcd ends the primary's lease up to half a second later, Patroni's request
# to the lost host fails after up to 1.3 s, and then the replica is promoted and a catalog connects.
LONGEST_WITHOUT_CHANGES = 19
# The maximum time of a command.
LOAD_TIMEOUT_SECONDS = 150


class Acknowledged:
    """The transactions, imports and edits that were acknowledged."""

    def __init__(self):
        self.lock = threading.Lock()
        # The sequence of each transaction.
        self.sequences = {}
        self.imported = {}
        self.edited = {}
        self.newest = 0
        self.token = None

    def add(self, transaction, outcome, token=None):
        with self.lock:
            self.sequences[transaction] = outcome.sequence
            if token and outcome.sequence > self.newest:
                self.newest, self.token = outcome.sequence, token


is_done = threading.Event()
problems = []
acknowledged = Acknowledged()


def report_problem(text):
    problems.append(text)
    print(f"PROBLEM: {text}", file=sys.stderr, flush=True)


def numbers():
    """Returns an iterator of 1, 2, 3 and so on, until the measurement ends."""
    return itertools.takewhile(lambda _: not is_done.is_set(), itertools.count(1))


def repeat(clock, function):
    """Repeats a function until it succeeds, and returns its value."""
    while True:
        try:
            value = function()
            clock.succeed()
            return value
        except SafelightError as error:
            clock.fail(error)
            time.sleep(PAUSE_SECONDS["retry"])


def change(clock, assets):
    library = Library()
    for number in numbers():
        transaction = f"change-{number}"

        def once():
            with library.changing(transaction=transaction, deadline=ATTEMPT_SECONDS) as changes:
                changes.update(assets[number % len(assets)], caption=f"change {number}")
            return changes.outcome

        outcome = repeat(clock, once)
        acknowledged.add(transaction, outcome, outcome.token)
        time.sleep(PAUSE_SECONDS["change"])


def import_photos(clock, paths):
    library = Library()
    for number in numbers():
        transaction = f"import-{number}"
        with open(paths[number % len(paths)], "rb") as file:
            photo = file.read()
        # A different comment in the JPEG makes it a different file.
        comment = f"import {number}".encode()
        photo = photo[:2] + b"\xff\xfe" + (len(comment) + 2).to_bytes(2, "big") + comment + photo[2:]

        def once():
            with library.changing(transaction=transaction, deadline=5 * ATTEMPT_SECONDS) as changes:
                asset = changes.create_asset(photo, filename=f"import-{number}.jpg")
            if asset.is_duplicate:
                report_problem(f"{transaction} was imported before")
            return changes.outcome, asset.id

        outcome, asset = repeat(clock, once)
        acknowledged.add(transaction, outcome, outcome.token)
        acknowledged.imported[transaction] = asset
        time.sleep(PAUSE_SECONDS["import"])


def edit(clock, assets):
    library = Library()
    for number in numbers():
        transaction = f"edit-{number}"
        asset = assets[number % len(assets)]
        # Each list of adjustments differs from the previous one of the asset.
        value = (number % 100 + 1) / 100

        def apply():
            return library.edit_one(
                asset, exposure=value, transaction=transaction, deadline=EDIT_SECONDS, network_access_allowed=True
            )

        def publish():
            edits = [(asset, adjustments(exposure=value))]
            status = next(iter(library.publish(
                edits, transaction=transaction, deadline=EDIT_SECONDS, network_access_allowed=True
            )))
            if status.error is not None:
                report_problem(f"{transaction} has failed: {status.error}")
            return status

        outcome = repeat(clock, apply if number % 2 else publish)
        acknowledged.add(transaction, outcome)
        acknowledged.edited[transaction] = (asset.id, outcome.sequence)
        time.sleep(PAUSE_SECONDS["edit"])


def read(clock, with_token):
    catalog = Library().catalog
    while not is_done.is_set():
        before, token = acknowledged.newest, acknowledged.token
        params = {"fetches": [{"kind": "assets"}], **({"atLeast": token} if with_token and token else {})}
        try:
            reply = catalog.request("fetch.counts", params, deadline=READ_SECONDS)
        except SafelightError as error:
            clock.fail(error)
            continue
        sequence = int(reply.result["token"].rsplit(".", 1)[1])
        if with_token and sequence < before:
            report_problem(f"a read returned the sequence {sequence}, although {before} was acknowledged before")
        clock.succeed()
        time.sleep(PAUSE_SECONDS["read"])


def follow(library, token, delivered):
    for change in library.changes(since=token):
        content = [asset.id for asset in change.assets if asset.asset_content_changed]
        delivered.append((change.sequence, change.history, change.origin.transaction, content))


def check(delivered, library):
    """Checks the changes that the change-brokers have delivered, and the assets of the library."""
    end = time.monotonic() + 60
    newest = max(acknowledged.sequences.values())
    while time.monotonic() < end and any(not records or records[-1][0] < newest for records in delivered):
        time.sleep(PAUSE_SECONDS["change"])
    length = min(map(len, delivered))
    for number, records in enumerate(delivered, 1):
        if not records or records[-1][0] < newest:
            report_problem(f"the change-broker {number} has not delivered the sequence {newest}")
            return
        sequences = [record[0] for record in records]
        if sequences != list(range(sequences[0], sequences[0] + len(sequences))):
            report_problem(f"the change-broker {number} has skipped sequences, or delivered some twice")
        if len({record[1] for record in records}) != 1:
            report_problem("the library has begun another history")
        delivered_as = {}
        for sequence, _, transaction, _ in records:
            delivered_as.setdefault(transaction, []).append(sequence)
        for transaction, sequence in acknowledged.sequences.items():
            if transaction.startswith("edit-"):
                continue
            found = delivered_as.get(transaction)
            if found != [sequence]:
                report_problem(f"{transaction} was acknowledged as {sequence} and delivered as {found}")
        edits = {(asset, sequence) for sequence, _, _, content in records for asset in content}
        expected = set(acknowledged.edited.values())
        imported = set(acknowledged.imported.values())
        for asset, sequence in expected - edits:
            report_problem(f"the edit of {asset} that was acknowledged as {sequence} was not delivered")
        for asset, sequence in edits - expected:
            if asset not in imported:
                report_problem(f"{asset} was edited in {sequence}, which was not acknowledged")
    if delivered[0][:length] != delivered[1][:length]:
        report_problem("the change-brokers have delivered different changes")

    ids = list(acknowledged.imported.values())
    if len(set(ids)) != len(ids):
        report_problem("two imports have the same asset")
    found = {asset.id: asset for asset in library.assets.many(ids)}
    for transaction, asset in acknowledged.imported.items():
        if asset not in found:
            report_problem(f"the library does not have the asset {asset} of {transaction}")
    unreadable = 0
    for asset in found.values():
        try:
            asset.resource().read(network_access_allowed=True)
        except SafelightError:
            unreadable += 1
    print(f"the library has {len(found)} of {len(ids)} imported assets, {unreadable} of them without their file")
    for asset in {asset for asset, _ in acknowledged.edited.values()}:
        if not library.assets[asset].has_adjustments:
            report_problem(f"the edited asset {asset} has no adjustments")


def main():
    photos, *brokers = sys.argv[1:]
    paths = sorted(os.path.join(photos, name) for name in os.listdir(photos) if name.endswith(".jpg"))
    library = Library(wait=30)
    assets = list(library.fetch(sort="originalFilename"))
    half = len(assets) // 2
    token = library.token
    delivered = []
    for broker in brokers:
        address, feed = broker.split()
        records = []
        delivered.append(records)
        follower = Library(Endpoints(broker=address, feed=feed))
        threading.Thread(target=follow, args=[follower, token, records], daemon=True).start()

    kinds = {
        "change": (change, [assets[:half]]),
        "import": (import_photos, [paths]),
        "edit": (edit, [assets[half:]]),
        "read": (read, [False]),
        "own read": (read, [True]),
    }
    clocks = {name: Clock() for name in kinds}
    workers = [
        threading.Thread(target=function, args=[clocks[name], *arguments], daemon=True)
        for name, (function, arguments) in kinds.items()
    ]
    for worker in workers:
        worker.start()

    for line in sys.stdin:
        command, _, argument = line.strip().partition(" ")
        if command == "mark":
            for clock in clocks.values():
                clock.mark(argument)
        elif command == "progress":
            end = time.monotonic() + LOAD_TIMEOUT_SECONDS
            targets = [(clocks[name], clocks[name].count + int(count))
                       for name, count in zip(("change", "import", "edit"), argument.split())]
            for clock, count in targets:
                if not clock.wait_until(count, end):
                    print(f"too few requests in {LOAD_TIMEOUT_SECONDS} s; errors: {clock.errors}", file=sys.stderr)
                    return 1
        elif command == "report":
            times = ", ".join(f"{name} {clock.seconds():.1f} s" for name, clock in clocks.items())
            print(f"    longest without {times}", file=sys.stderr, flush=True)
        elif command == "finish":
            break
        print("done", flush=True)

    is_done.set()
    for worker in workers:
        worker.join(60)
    for name, clock in clocks.items():
        rounds = sorted(clock.longest.values())
        p99 = rounds[min(len(rounds) - 1, int(len(rounds) * 0.99))]
        print(f"{name}: {clock.count}; longest times without one: median {rounds[len(rounds) // 2]:.1f} s, "
              f"p99 {p99:.1f} s; errors: {clock.errors or 'none'}")
        if clock.internal_error:
            report_problem(f"a client received an internal error: {clock.internal_error}")
        if name == "change" and p99 > LONGEST_WITHOUT_CHANGES:
            report_problem(f"there was no change for {p99:.1f} s")
    check(delivered, Library())
    if problems:
        print(f"{len(problems)} problems, the first: {problems[0]}", file=sys.stderr)
        return 1
    print(f"both change-brokers delivered all {len(acknowledged.sequences)} acknowledged transactions once, in one order")
    return 0


sys.exit(main())
