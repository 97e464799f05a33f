#!/usr/bin/env bash
# A client's whole round: makes photos, imports them, publishes ten edits, sees each accepted and applied, and saves a
# picture of each. What it leaves in this folder, a later run on the same library compares with first.
#
#   docker compose run --rm --entrypoint bash tools /examples/ten_edits.sh
set -euo pipefail
examples=$(cd "$(dirname "$0")" && pwd)

library() { safelight fetch --json --hidden; }

if [ -s library.txt ]; then
    library | cmp - library.txt
    while read -r sum picture; do
        safelight thumb "${picture%.jpg}" --size 512 --output again.jpg >/dev/null
        [ "$(sha256sum <again.jpg | cut -d' ' -f1)" = "$sum" ]
    done <pictures.txt
    echo "the library is as it was: $(wc -l <library.txt) assets, $(wc -l <pictures.txt) edited pictures the same"
fi

safelight sample-photos photos >/dev/null
safelight import photos
safelight fetch --json --limit 10 | python3 -c '
import json, sys
for place, line in enumerate(sys.stdin):
    edit = {"operation": "exposure", "value": 0.1 * (place + 1)}
    print(json.dumps({"asset": json.loads(line)["id"], "adjustments": {"version": 1, "operations": [edit]}}))
' >edits.jsonl

python3 "$examples/publish_edits.py" <edits.jsonl | tee outcomes.txt
[ "$(grep -c ' accepted ' outcomes.txt)" = 10 ]
[ "$(grep -c ' applied ' outcomes.txt)" = 10 ]

rm -f a*.jpg
python3 -c 'import json, sys; [print(json.loads(line)["asset"]) for line in sys.stdin]' <edits.jsonl |
    while read -r asset; do safelight thumb "$asset" --size 512 --output "$asset.jpg" </dev/null >/dev/null; done
sha256sum a*.jpg | tee pictures.txt
[ "$(wc -l <pictures.txt)" = 10 ]
library >library.txt
