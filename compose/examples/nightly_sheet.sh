#!/bin/sh
# Saves a contact sheet of the photos that were added during the last day, and prints its path.
#
#   nightly_sheet.sh FOLDER
#
# Each night at one o'clock, by crontab(5):   0 1 * * *  nightly_sheet.sh /srv/sheets
# With containers:   docker compose run --rm -v /srv/sheets:/sheets --entrypoint /examples/nightly_sheet.sh tools /sheets
set -eu
folder=${1:?usage: nightly_sheet.sh FOLDER}
since=$(date -u -d '1 day ago' +%Y-%m-%dT%H:%M:%SZ)
added="addedDate >= '$since'"
count=$(safelight fetch --where "$added" --count)
if [ "$count" = 0 ]; then
    echo "nothing was added since $since"
    exit
fi
if [ "$count" -gt 400 ]; then
    echo "$count were added since $since; the sheet has the first 400" >&2
fi
mkdir -p "$folder"
sheet=$folder/$(date +%Y-%m-%d).jpg
safelight sheet --where "$added" --sort creationDate --limit 400 --columns 8 --output "$sheet"
