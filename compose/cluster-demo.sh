#!/usr/bin/env bash
# Demonstrates a library on eleven hosts, which are network namespaces of this machine: `make cluster-demo`.
#
#   db1 db2             PostgreSQL, primary and replica, managed by Patroni, and a member of etcd each
#   front               the third member of etcd, HAProxy as the catalog's address, and an S3 server
#   catalog1 catalog2   a catalog each: one writes, the other stands by
#   render1 … render3   a thumbnailer each; the first two have an editor too
#   feed1 feed2         a change-broker each; the second one follows the first one
#   client              the command line, and a program that measures
#
# Hosts are connected over TCP only: Safelight with CURVE keys, PostgreSQL with passwords. Everything runs in one namespace
# of processes and mounts, with which the kernel removes the hosts and their programs, however the demo ends.
#
# usage: cluster-demo.sh [--short] [--keep] BINARIES [PYTHON]
#
#   --short   fewer changes, and the hosts that were killed do not return
#   --keep    keeps the folder with the logs
#   PYTHON    a folder with the packages pyzmq, boto3 and moto, if they are not installed
set -euo pipefail

script=$(realpath "$0")
root=$(dirname "$(dirname "$script")")
cluster="$root/compose/cluster"

hosts=(db1 db2 front catalog1 catalog2 render1 render2 render3 feed1 feed2 client)
catalogs=(catalog1 catalog2)
workers=(render1 render2 render3)
editors=(render1 render2)
brokers=(feed1 feed2)

say() { printf '\n\033[1m%s\033[0m\n' "$*"; }
[ -t 1 ] || say() { printf '\n== %s\n' "$*"; }

fail() {
    echo "cluster-demo: $*" >&2
    exit 1
}

# --- Outside of the namespaces ------------------------------------------------------------------------------------------

check_requirements() {
    local program
    [ "$(id -u)" -eq 0 ] || fail "network namespaces need root; run it with sudo"
    for program in ip unshare setpriv etcd etcdctl patroni psql haproxy python3; do
        command -v "$program" >/dev/null || fail "$program is missing; make cluster-demo installs what is needed"
    done
    for program in catalog thumbnailer editor change-broker safelight; do
        [ -x "$BINARIES/$program" ] || fail "$BINARIES has no program $program; make build builds it"
    done
    unshare --net true 2>/dev/null || fail "no network namespace can be created; containers usually do not allow it"
}

# Ends the namespaces and removes the files.
remove() {
    local status=$?
    trap - EXIT INT TERM HUP
    if [ -n "$namespaces" ]; then
        kill -KILL "$namespaces" 2>/dev/null || true
        wait "$namespaces" 2>/dev/null || true
    fi
    if [ "$status" -ne 0 ] && [ "$status" -ne 130 ]; then
        echo "cluster-demo: failed; the last lines of each log:" >&2
        tail -n 3 "$FOLDER"/logs/*.log >&2 || true
    fi
    if [ -n "$keep" ]; then
        echo "cluster-demo: the files are in $FOLDER"
    else
        rm -rf "$FOLDER"
    fi
    exit "$status"
}

run_in_namespaces() {
    local status=0
    # Socket paths have at most 107 bytes, so the folder is in /tmp and not in this one.
    FOLDER=$(mktemp -d /tmp/safelight-cluster-XXXXXX)
    chmod 711 "$FOLDER"
    mkdir -p /run/netns
    export BINARIES FOLDER SHORT
    namespaces=
    trap remove EXIT
    trap 'exit 130' INT TERM HUP
    # A shell handles signals while it waits, but not while a program in the foreground runs.
    unshare --mount --pid --fork --kill-child --mount-proc "$script" --inside &
    namespaces=$!
    wait "$namespaces" || status=$?
    namespaces=
    exit "$status"
}

# --- Inside -------------------------------------------------------------------------------------------------------------

start_cluster() {
    say "Creating ${#hosts[@]} hosts"
    create_hosts
    say "Starting etcd on three hosts, and PostgreSQL with Patroni on two"
    start_etcd
    start_database
    echo "the primary is $(primary); commits wait until the replica has them"
    say "Starting an S3 server, two catalogs of one library, and HAProxy"
    create_keys >"$FOLDER/logs/keys.log"
    start_object_store
    start_catalog catalog1
    start_catalog catalog2
    start_forwarding
    echo "$(writer) writes the library, the other catalog stands by"
    say "Starting three thumbnailers, two editors and two change-brokers"
    start_services
    safelight status --wait 60
}

use_library() {
    local photo token
    say "Importing photos"
    "$BINARIES/safelight" sample-photos "$FOLDER/client/photos"
    safelight import "$FOLDER/client/photos"
    safelight fetch --sort creationDate:desc --limit 3
    safelight sheet --sort creationDate:desc -o sheet.jpg

    say "Publishing an edit, and waiting for the change at the second change-broker"
    photo=$(first_photo)
    token=$(safelight status --token)
    publish_exposure "$photo" 0.5
    as_client timeout 60 "$BINARIES/safelight" watch --since "$token" --topic "asset.$photo" --count 1

    say "Waiting until the S3 server has all files"
    wait_for 120 "all files are uploaded" are_files_uploaded
    safelight storage
}

first_photo() { safelight fetch --sort originalFilename --limit 1 --ids; }

# publish_exposure ASSET VALUE: publishes an edit, and waits until it is applied.
publish_exposure() {
    local operations='[{"operation": "exposure", "value": '$2'}]'
    echo '{"asset": "'"$1"'", "adjustments": {"version": 1, "operations": '"$operations"'}}' >"$FOLDER/client/edit.jsonl"
    safelight publish --download edit.jsonl
}

# Succeeds if the object store has all files.
are_files_uploaded() {
    safelight storage --json | python3 -c 'import json, sys; sys.exit(json.load(sys.stdin)["waitingCount"] != 0)'
}

# Makes changes all the time while the writing catalog and the primary are killed.
survive_failures() {
    local photo old
    photo=$(first_photo)
    say "Making changes without a pause"
    coproc measurement { as_client env PYTHONPATH="$root/Shared/python:$PYTHON" "$cluster/measure_changes.py" "$photo"; }
    measure progress "$progress"

    old=$(writer)
    say "Killing the catalog of $old, which writes"
    measure mark "the writing catalog was killed"
    kill_program "$old" catalog
    measure progress "$progress"
    echo "changes go on; $(writer) writes the library; it has no file of it, and downloads those that are asked for"
    safelight export --download --output exported
    publish_exposure "$photo" 0.3
    if [ -z "$SHORT" ]; then
        start_catalog "$old"
        echo "the catalog of $old stands by"
        measure progress "$progress"
    fi

    old=$(primary)
    say "Taking $old off the network and killing it: the primary, and a member of etcd"
    measure mark "the primary's host was lost"
    kill_host "$old"
    measure progress "$progress"
    echo "changes go on; $(primary) is the primary, and $(writer) writes the library"
    if [ -z "$SHORT" ]; then
        say "Starting $old again"
        measure mark "the host of the former primary returned"
        connect_host "$old"
        start_etcd_member "$old"
        start_patroni "$old"
        wait_for 120 "$old is a synchronous replica" has_synchronous_replica
        echo "$old is a replica; commits wait for it again"
        measure progress "$progress"
    fi

    say "Results"
    local process=$measurement_PID
    echo finish >&"${measurement[1]}"
    cat <&"${measurement[0]}"
    wait "$process" || fail "the changes that were acknowledged were not all delivered"
}

# measure COMMAND: sends a command to the measuring program, and waits until it is done.
measure() {
    local answer
    echo "$*" >&"${measurement[1]}"
    IFS= read -r answer <&"${measurement[0]}" || fail "the measuring program has ended"
    [ "$answer" = "done" ] || fail "the measuring program answers $answer"
}

# --- Arguments ----------------------------------------------------------------------------------------------------------

if [ "${1:-}" = --inside ]; then
    # shellcheck source=compose/cluster/namespaces.sh
    . "$cluster/namespaces.sh"
    # shellcheck source=compose/cluster/services.sh
    . "$cluster/services.sh"
    progress=${SHORT:+20}
    progress=${progress:-100}
    start_cluster
    use_library
    survive_failures
    echo
    echo "make cluster-demo: done in $SECONDS s, not counting the build"
    exit
fi

SHORT=
keep=
while [ $# -gt 0 ]; do
    case $1 in
        --short) SHORT=1 ;;
        --keep) keep=1 ;;
        *) break ;;
    esac
    shift
done
[ $# -ge 1 ] || fail "usage: cluster-demo.sh [--short] [--keep] BINARIES [PYTHON]"
BINARIES=$(realpath "$1")
export PYTHON="${2:+$(realpath "$2")}"
# The packages are only for the programs that need them: Patroni has its own. Settings of the user do not apply.
unset PYTHONPATH "${!SAFELIGHT_@}"
check_requirements
run_in_namespaces
