#!/usr/bin/env bash
# Demonstrates a library on fourteen hosts, which are network namespaces of this machine: `make cluster-demo`.
#
#   etcd1 … etcd3       a member of etcd each
#   db1 db2             PostgreSQL, primary and replica, managed by Patroni
#   s3                  an S3 server
#   catalog1 catalog2   a catalog each: one writes, the other is a standby; clients and services have both addresses
#   render1 … render3   a thumbnailer each; the first two have an editor too
#   feed1 feed2         a change-broker each; the second one follows the first one
#   client              the command line, and the measuring program
#
# Hosts are connected over TCP only: Safelight with CURVE keys, PostgreSQL with passwords.
#
# usage: cluster-demo.sh [--short] [--keep] BINARIES [PYTHON]
#
#   --short   fewer changes, and the hosts that were killed do not return
#   --keep    keeps the folder with the logs
#   PYTHON    a folder with the packages pyzmq, boto3 and moto, if they are not installed
set -euo pipefail

name='cluster-demo'
script=$(realpath "$0")
# shellcheck source=compose/cluster/run.sh
. "$(dirname "$script")/cluster/run.sh"

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

# Makes changes continuously while the writing catalog and the primary are killed.
survive_failures() {
    local photo old
    photo=$(first_photo)
    say "Making changes without a pause"
    measure_with measure_changes.py "$photo"
    measure progress "$progress"

    old=$(writer)
    say "Killing the catalog of $old, which writes"
    measure mark "the writing catalog was killed"
    kill_program "$old" catalog
    measure progress "$progress"
    echo "changes continue; $(writer) writes the library; it has no local files, and downloads those that are requested"
    safelight export --download --output exported
    publish_exposure "$photo" 0.3
    if [ -z "$SHORT" ]; then
        start_catalog "$old"
        echo "the catalog of $old is a standby"
        measure progress "$progress"
    fi

    old=$(primary)
    say "Taking $old off the network and killing it: the primary"
    measure mark "the primary's host was lost"
    kill_host "$old"
    measure progress "$progress"
    echo "changes continue; $(primary) is the primary, and $(writer) writes the library"
    if [ -z "$SHORT" ]; then
        say "Starting $old again"
        measure mark "the host of the former primary returned"
        connect_host "$old"
        start_patroni "$old"
        wait_for 120 "$old is a synchronous replica" has_synchronous_replica
        echo "$old is a replica; commits wait for it again"
        measure progress "$progress"
    fi

    say "Results"
    finish_measuring || fail "not all acknowledged changes were delivered"
}

if [ "${1:-}" = --inside ]; then
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
export SHORT
[ $# -ge 1 ] || fail "usage: cluster-demo.sh [--short] [--keep] BINARIES [PYTHON]"
use_programs "$@"
check_requirements
run_in_namespaces
