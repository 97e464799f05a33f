#!/usr/bin/env python3
"""Changes one photo repeatedly, follows the changes, and prints for how long no change and no read succeeded.

A change is repeated under its transaction id until it is acknowledged. Another thread reads, and a third one receives
the changes from the change-broker. Commands are lines of the standard input; each is answered with the line "done":

  mark NAME     begins a part of the measurement, which the result names
  progress N    waits until N more changes were acknowledged
  finish        prints the result and ends the program, which succeeds if the change-broker has delivered all
                acknowledged changes, each once and in order

usage: measure_changes.py ASSET
"""

import sys
import threading
import time

from safelight import Library, SafelightError

from measuring import Clock

PAUSE_SECONDS = 0.05
# A request whose connection has ended is repeated after this time.
ATTEMPT_SECONDS = 1


def main():
    is_done = threading.Event()
    writes, reads = Clock(), Clock()
    delivered = []

    def write():
        library = Library()
        number = 0
        while not is_done.is_set():
            number += 1
            while True:
                try:
                    with library.changing(transaction=f"measured-{number}", deadline=ATTEMPT_SECONDS) as changes:
                        changes.update(asset, caption=f"change {number}")
                    writes.succeed()
                    break
                except SafelightError as error:
                    writes.fail(error)
                    time.sleep(PAUSE_SECONDS)
            time.sleep(PAUSE_SECONDS)

    def read():
        library = Library()
        while not is_done.is_set():
            try:
                library.count()
                reads.succeed()
            except SafelightError as error:
                reads.fail(error)
            time.sleep(PAUSE_SECONDS)

    def follow(library, token):
        for change in library.changes(since=token):
            if change.origin.transaction and change.origin.transaction.startswith("measured-"):
                delivered.append(change.origin.transaction)

    library = Library(wait=30)
    asset = library.assets[sys.argv[1]]
    token = library.token
    threading.Thread(target=follow, args=[library, token], daemon=True).start()
    workers = [threading.Thread(target=write, daemon=True), threading.Thread(target=read, daemon=True)]
    for worker in workers:
        worker.start()

    for line in sys.stdin:
        command, _, argument = line.strip().partition(" ")
        if command == "mark":
            writes.mark(argument)
            reads.mark(argument)
        elif command == "progress":
            if not writes.wait_until(writes.count + int(argument), time.monotonic() + 90):
                print(f"no {argument} changes were acknowledged within 90 s; errors: {writes.errors}", file=sys.stderr)
                return 1
        elif command == "finish":
            break
        print("done", flush=True)

    is_done.set()
    workers[0].join(60)
    print(f"{writes.count} changes were acknowledged; refused attempts: {writes.errors or 'none'}")
    for part, seconds in writes.longest.items():
        print(f"{part}: no change for {seconds:.1f} s, no read for {reads.longest.get(part, 0):.1f} s")

    end = time.monotonic() + 60
    while len(delivered) < writes.count and time.monotonic() < end:
        time.sleep(PAUSE_SECONDS)
    expected = [f"measured-{number}" for number in range(1, writes.count + 1)]
    if delivered != expected:
        print("the changes that the change-broker delivered are not the acknowledged ones", file=sys.stderr)
        return 1
    print("the second change-broker delivered each of them once, in order")
    return 0


sys.exit(main())
