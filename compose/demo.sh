#!/usr/bin/env bash
# Demonstrates Safelight from an empty library to an edited photo: `make demo`, or `make demo PHOTOS=folder` for your
# own photos. All files are written to the folder demo.
#
# usage: demo.sh BINARIES [PHOTOS]
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
binaries=$(cd "$1" && pwd)
photos=${2:-}
demo="$root/demo"
started=$SECONDS

say() { printf '\n\033[1m%s\033[0m\n' "$*"; }
[ -t 1 ] || say() { printf '\n== %s\n' "$*"; }

# Socket paths have at most 107 bytes, so the run folder is in /tmp and not in this folder.
run=$(mktemp -d /tmp/safelight-demo-XXXXXX)
# Settings of the user must not apply: they may name another library.
unset "${!SAFELIGHT_@}"
export SAFELIGHT_RUN="$run"
# The demo begins a new library each time.
export SAFELIGHT_STATE="$run/state"
services=
watcher=
safelight() { "$binaries/safelight" "$@"; }

stop() {
    local status=$?
    trap - EXIT INT TERM
    [ -z "$watcher" ] || kill "$watcher" 2>/dev/null || true
    if [ -n "$services" ] && kill -0 "$services" 2>/dev/null; then
        kill -TERM "$services" 2>/dev/null || true
        wait "$services" 2>/dev/null || true
    fi
    rm -rf "$run"
    if [ "$status" -ne 0 ]; then
        echo "demo: failed; the end of the services' log, $demo/services.log:" >&2
        tail -n 20 "$demo/services.log" >&2 || true
    fi
    exit "$status"
}
trap stop EXIT
trap 'exit 130' INT TERM

rm -rf "$demo"
mkdir -p "$demo"

say "Starting the four services with a new library in demo/library"
"$binaries/safelight" up --library "$demo/library" >"$demo/up.log" 2>"$demo/services.log" &
services=$!
"$binaries/safelight" status --wait 60 &
probe=$!
status=0
wait -n -p first "$services" "$probe" || status=$?
if [ "$first" != "$probe" ]; then
    kill "$probe" 2>/dev/null || true
    exit 1
fi
[ "$status" -eq 0 ]

if [ -n "$photos" ]; then
    photos=$(cd "$photos" && pwd)
else
    say "Creating a dozen photos with dates, locations and all orientations in demo/photos"
    photos="$demo/photos"
    safelight sample-photos "$photos"
    head -c 4000 "$photos/01-sunrise.jpg" | tail -c 3000 >"$photos/13-broken.jpg"
    if command -v ffmpeg >/dev/null; then
        # The video fades in from black; its image is the first frame that is not black.
        ffmpeg -loglevel error -nostdin -loop 1 -framerate 25 -t 3 -i "$photos/01-sunrise.jpg" \
            -vf "crop=iw*0.8:ih*0.8:x='(iw-ow)*t/3':y=(ih-oh)/2,scale=640:360,fade=in:0:12" \
            -c:v libx264 -preset veryfast -pix_fmt yuv420p -metadata creation_time=2024-07-01T18:00:00Z \
            -metadata location=+53.5511+009.9937/ "$photos/14-video.mp4"
        # A Live Photo: a photo and a short video beside it.
        ffmpeg -loglevel error -nostdin -i "$photos/02-mountains.jpg" -vf hflip -q:v 2 "$photos/15-live.jpg"
        ffmpeg -loglevel error -nostdin -loop 1 -framerate 25 -t 2 -i "$photos/15-live.jpg" \
            -vf "crop=iw*0.9:ih*0.9:x='(iw-ow)*t/2':y=(ih-oh)/2,scale=480:360" \
            -c:v libx264 -preset veryfast -pix_fmt yuv420p "$photos/15-live.mov"
    fi
fi

say "Importing $photos"
# Status 3 means that some files are broken: they are listed, and the other files are in the library.
safelight import "$photos" || [ $? -eq 3 ]
echo
safelight fetch --sort creationDate:desc --limit 12
echo "$(safelight fetch --count) photos in the library"

say "Editing one photo while watching the change feed"
photo=$(safelight fetch --where 'mediaType == "image"' --sort originalFilename --limit 1 --ids)
[ -n "$photo" ] || { echo "demo: nothing was imported" >&2; exit 1; }
token=$(safelight status --token)
timeout 120 "$binaries/safelight" watch --since "$token" --topic "asset.$photo" --count 1 >"$demo/feed.txt" &
watcher=$!
safelight thumb "$photo" --size 1024 -o "$demo/before.jpg"
safelight edit "$photo" --exposure 0.6 --saturation 0.3 --temperature 0.2 --crop 0.1,0.1,0.8,0.8
safelight thumb "$photo" --size 1024 -o "$demo/after.jpg"
wait "$watcher"
watcher=
echo "The change feed delivered:"
cat "$demo/feed.txt"

video=$(safelight fetch --where 'mediaType == "video"' --sort originalFilename --limit 1 --ids)
if [ -n "$video" ]; then
    say "Editing a video: its second and third second, warmer, and cropped"
    safelight edit "$video" --temperature 0.5 --contrast 0.2 --crop 0.1,0.1,0.8,0.8 --operation timeRange:start=1,end=3
    safelight compare "$video" -o "$demo/video.jpg"
    safelight video "$video"
fi

say "Creating a contact sheet"
safelight sheet --sort creationDate:desc -o "$demo/sheet.jpg" || [ $? -eq 3 ]

say "Stopping the services"
kill -TERM "$services"
wait "$services"
services=

say "Results"
printf '  %s\n' "$demo/sheet.jpg" "$demo/before.jpg" "$demo/after.jpg"
[ -z "$video" ] || printf '  %s\n' "$demo/video.jpg"
echo
echo "make demo: done in $((SECONDS - started)) s, not counting the build"
