#!/usr/bin/env bash
# Shows a complete workflow of a client: creates photos, imports them, publishes ten edits, checks that each is
# accepted and applied, and saves an image of each edited photo.
#
# The results are saved in the current folder. A later run with the same library first compares the library with them.
#
#   docker compose run --rm --entrypoint bash tools /examples/ten_edits.sh
set -euo pipefail

examples=$(cd "$(dirname "$0")" && pwd)

list_library() {
    safelight fetch --json --hidden
}

# Step 1: if there are results of an earlier run, check that the library and the images are still the same.
if [ -s library.txt ]; then
    list_library | cmp - library.txt

    while read -r checksum image; do
        safelight thumb "${image%.jpg}" --size 512 --output again.jpg >/dev/null
        [ "$(sha256sum <again.jpg | cut -d' ' -f1)" = "$checksum" ]
    done <pictures.txt

    echo "the library is unchanged: $(wc -l <library.txt) assets, $(wc -l <pictures.txt) identical images"
fi

# Step 2: create and import photos.
safelight sample-photos photos >/dev/null
safelight import photos

# Step 3: write an edit for each of ten photos, one JSON object per line.
safelight fetch --json --limit 10 | python3 -c '
import json
import sys

for index, line in enumerate(sys.stdin):
    asset = json.loads(line)
    operation = {"operation": "exposure", "value": 0.1 * (index + 1)}
    edit = {"asset": asset["id"], "adjustments": {"version": 1, "operations": [operation]}}
    print(json.dumps(edit))
' >edits.jsonl

# Step 4: publish the edits, and check that each is accepted and applied.
python3 "$examples/publish_edits.py" <edits.jsonl | tee outcomes.txt
[ "$(grep -c ' accepted ' outcomes.txt)" = 10 ]
[ "$(grep -c ' applied ' outcomes.txt)" = 10 ]

# Step 5: save an image of each edited photo.
rm -f a*.jpg

python3 -c '
import json
import sys

for line in sys.stdin:
    print(json.loads(line)["asset"])
' <edits.jsonl |
    while read -r asset; do
        safelight thumb "$asset" --size 512 --output "$asset.jpg" </dev/null >/dev/null
    done

# Step 6: save the checksums of the images and the state of the library for the next run.
sha256sum a*.jpg | tee pictures.txt
[ "$(wc -l <pictures.txt)" = 10 ]
list_library >library.txt
