#!/usr/bin/env bash
# Checks a running cluster of containers: imports photos, edits one, and kills the writing catalog and the primary.
#
#   docker compose -f compose/compose.cluster.yaml up --build --wait
#   docker compose -f compose/compose.cluster.yaml --profile tools build
#   compose/cluster/check-containers.sh
#
# The project is that of COMPOSE_FILE and COMPOSE_PROJECT_NAME, if they are set. The photos stay in the library.
set -euo pipefail

export COMPOSE_FILE="${COMPOSE_FILE:-$(dirname "$(dirname "$(realpath "$0")")")/compose.cluster.yaml}"

say() { printf '\n== %s\n' "$*"; }

fail() {
    echo "check-containers: $*" >&2
    exit 1
}

safelight() { docker compose run --rm -T tools "$@"; }

# inside COMMAND…: runs a command in a running container of PostgreSQL.
inside() {
    local service=db1
    docker compose ps --status running --services | grep -qx db1 || service=db2
    docker compose exec -T "$service" "$@"
}

# query SQL: runs a query at the primary, and prints its result.
query() {
    # The variable is the container's.
    # shellcheck disable=SC2016
    inside sh -c 'exec psql --no-psqlrc --tuples-only --no-align --command="$1" "$STORE"' sh "$1"
}

# Print the container of the catalog that writes, and that of the primary of PostgreSQL.
writer() {
    service_at "$(query "SELECT host(client_addr) FROM pg_locks JOIN pg_stat_activity USING (pid)
        WHERE locktype = 'advisory' AND classid = x'5AFE'::integer AND granted")" catalog1 catalog2
}
primary() { service_at "$(query 'SELECT host(inet_server_addr())')" db1 db2; }

# service_at ADDRESS SERVICE…: prints the service that has an address.
service_at() {
    local address=$1 service
    shift
    for service in "$@"; do
        if [ "$(inside getent hosts "$service" | cut -d ' ' -f 1)" = "$address" ]; then
            echo "$service"
            return
        fi
    done
    fail "no container has the address ${address:-of the writer, of which there is none}"
}

# publish_exposure VALUE: publishes an edit of the first photo, and waits for it at the second change-broker.
publish_exposure() {
    local photo token operations='[{"operation": "exposure", "value": '$1'}]'
    photo=$(safelight fetch --sort originalFilename --limit 1 --ids)
    token=$(safelight status --token)
    echo '{"asset": "'"$photo"'", "adjustments": {"version": 1, "operations": '"$operations"'}}' |
        safelight publish --download --name "$1" -
    safelight watch --since "$token" --topic "asset.$photo" --count 1
}

# until_it_works SECONDS WHAT COMMAND…: repeats a command that is refused while there is no writer.
until_it_works() {
    local start=$SECONDS seconds=$1 what=$2
    shift 2
    until "$@"; do
        [ $((SECONDS - start)) -lt "$seconds" ] || fail "$what does not work again"
    done
    echo "$what works $((SECONDS - start)) s later"
}

say "Importing photos, and publishing an edit"
safelight status --wait 60
safelight sample-photos /work/photos
safelight import /work/photos
safelight fetch --sort creationDate:desc --limit 3
publish_exposure 0.5

# Files that are only on the writer's host would be lost with it.
say "Waiting until the S3 server has all files"
until safelight storage --json | python3 -c 'import json, sys; sys.exit(json.load(sys.stdin)["waitingCount"] != 0)'; do
    :
done

catalog=$(writer)
say "Killing $catalog, which writes"
docker compose kill "$catalog"
until_it_works 60 "changing a photo" safelight favorite 01-sunrise.jpg
[ "$(writer)" != "$catalog" ] || fail "$catalog still writes"
publish_exposure 0.3
docker compose start "$catalog"

database=$(primary)
say "Killing $database, the primary"
docker compose kill "$database"
until_it_works 90 "changing a photo" safelight favorite 01-sunrise.jpg --off
[ "$(primary)" != "$database" ] || fail "$database is still the primary"
publish_exposure 0.1
docker compose start "$database"

say "Waiting until all containers are healthy again"
docker compose up --detach --no-build --pull never --wait
safelight status --wait 60
echo "check-containers: done in $SECONDS s"
