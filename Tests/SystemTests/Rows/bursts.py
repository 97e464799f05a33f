"""A thousand previews and descriptions, and hundreds of edits, all requested before the first answer is read (P-25):
none is refused as busy. `SAFELIGHT_SOAK` makes a thousand edits."""

import collections
import os
import time

from rows import *


# The numbers of edits of several photos, and of one photo.
SOME, ONE = (1000, 300) if os.getenv("SAFELIGHT_SOAK") else (300, 100)


def exposure(number):
    return {"version": 1, "operations": [{"operation": "exposure", "value": number / 1000}]}


def burst(method, requests):
    """Sends all requests, over two connections, then reads all answers. Another client is answered meanwhile."""
    clients, other = (Client(), Client()), Client()
    for number, params in enumerate(requests):
        clients[number % 2].send("editor", method, **params)
    answers, slowest = collections.Counter(), 0
    for client in clients:
        client.socket("editor").rcvtimeo = 120_000
        numbers = set(range(1, client.last + 1))
        while numbers:
            if len(numbers) % 100 == 0:
                asked = time.monotonic()
                other.call("editor", "health")
                slowest = max(slowest, time.monotonic() - asked)
            message, _ = client.receive("editor")
            if "method" in message:
                continue
            numbers.remove(message["id"])
            answers[message["error"]["data"]["name"] if "error" in message else "result"] += 1
        client.close()
    other.close()
    equal(answers, {"result": len(requests)})
    assert slowest < 10, f"another client waited {slowest:.1f} s"


photos = [import_file(f"{number}.jpg") for number in range(1, 11)]


def previews():
    burst("edits.preview", [
        {"asset": photos[number % 10], "adjustments": exposure(number), "maximumSide": 32} for number in range(1000)])


def descriptions():
    burst("edits.describe", [
        {"asset": photos[number % 10], "adjustments": exposure(number), "as": "convert"} for number in range(1000)])


def edits_of_some_photos():
    burst("edits.apply", [{"asset": photos[number % 10], "adjustments": exposure(number)} for number in range(SOME)])


def edits_of_one_photo():
    burst("edits.apply", [{"asset": photos[0], "adjustments": exposure(1000 + number)} for number in range(ONE)])


if __name__ == "__main__":
    run(previews, descriptions, edits_of_some_photos, edits_of_one_photo)
