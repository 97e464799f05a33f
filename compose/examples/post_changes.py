"""Sends each change of the library to a URL, for example to n8n or Home Assistant.

    SECRET=… post_changes.py URL POSITION-FILE

The body is the change record as JSON, as `safelight watch --json` prints it. The header `X-Safelight-Signature` has
`sha256=` and the HMAC of the body with the secret, by which the receiver can verify the sender. A change is sent until
the receiver answers with a status below 300, and changes arrive in their order. Redirects are not followed: a change
would arrive without its body. A change may arrive twice if this program is killed meanwhile, with the same
`X-Safelight-Sequence`.
"""

import hashlib
import hmac
import http.client
import json
import os
import sys
import time
import urllib.error
import urllib.request

from safelight import Library, PersistentChangeTokenExpiredError, save_bytes

LONGEST_PAUSE = 60

url, position_file = sys.argv[1:]
secret = os.environ["SECRET"].encode()
library = Library(client="post-changes", wait=60)


class NoRedirects(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, request, file, code, message, headers, new_url):
        raise urllib.error.HTTPError(request.full_url, code, f"it redirects to {new_url}; use that URL", headers, file)


opener = urllib.request.build_opener(NoRedirects)


def post(change):
    body = json.dumps({**change, "token": change.token}).encode()
    headers = {
        "Content-Type": "application/json",
        "X-Safelight-Sequence": str(change.sequence),
        "X-Safelight-Signature": "sha256=" + hmac.new(secret, body, hashlib.sha256).hexdigest(),
    }
    pause = 0.5
    while True:
        try:
            with opener.open(urllib.request.Request(url, body, headers), timeout=30):
                return
        except (OSError, http.client.HTTPException) as error:
            print(f"change {change.sequence}: {error}; retrying in {pause} s", file=sys.stderr, flush=True)
            time.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)


# `save_bytes` replaces the position file as a whole, so that it is complete even after a power failure.
if os.path.exists(position_file):
    with open(position_file) as file:
        token = file.read().strip()
else:
    token = library.token
    save_bytes(position_file, token.encode())
print(f"sending the changes to {url}", flush=True)

try:
    for change in library.changes(since=token):
        post(change)
        save_bytes(position_file, change.token.encode())
        print(f"sent {change.sequence}", flush=True)
except PersistentChangeTokenExpiredError:
    sys.exit(
        f"the library no longer has the changes after {position_file}: it is older than the history, or the library was"
        f" restored from a backup. The receiver misses changes; remove {position_file} to start with the next one."
    )
