# shellcheck shell=bash
# Runs a script on the hosts of a cluster: used by cluster-demo.sh and failover.sh, which set `name`, their name, and
# `script`, their path, and call themselves again with --inside in a namespace of processes and mounts. The kernel removes
# the hosts and their programs with it, however the script ends.

root=$(dirname "$(dirname "$script")")
cluster="$root/compose/cluster"

hosts=(etcd1 etcd2 etcd3 db1 db2 s3 catalog1 catalog2 render1 render2 render3 feed1 feed2 client)
members=(etcd1 etcd2 etcd3)
databases=(db1 db2)
catalogs=(catalog1 catalog2)
workers=(render1 render2 render3)
editors=(render1 render2)
brokers=(feed1 feed2)

say() { printf '\n\033[1m%s\033[0m\n' "$*"; }
[ -t 1 ] || say() { printf '\n== %s\n' "$*"; }

fail() {
    echo "$name: $*" >&2
    exit 1
}

# --- Outside of the namespaces ------------------------------------------------------------------------------------------

# check_requirements PROGRAM…: fails unless the programs that the cluster needs are installed, and these programs too.
check_requirements() {
    local program
    [ "$(id -u)" -eq 0 ] || fail "network namespaces need root; run it with sudo"
    for program in ip sysctl unshare setpriv etcd etcdctl patroni psql python3 "$@"; do
        command -v "$program" >/dev/null || fail "$program is missing; make $name installs what is needed"
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
        echo "$name: failed; the last lines of each log:" >&2
        tail -n 3 "$FOLDER"/logs/*.log >&2 || true
    fi
    if [ -n "$keep" ]; then
        echo "$name: the files are in $FOLDER"
    else
        rm -rf "$FOLDER"
    fi
    exit "$status"
}

# use_programs BINARIES [PYTHON]: sets the folders of the programs and of the Python packages.
use_programs() {
    BINARIES=$(realpath "$1")
    PYTHON="${2:+$(realpath "$2")}"
    export BINARIES PYTHON
    # The packages are only for the programs that need them: Patroni has its own. Settings of the user must not apply.
    unset PYTHONPATH "${!SAFELIGHT_@}"
}

# Runs the script with --inside in namespaces, and ends with its status.
run_in_namespaces() {
    local status=0
    # Socket paths have at most 107 bytes, so the folder is in /tmp and not in this one.
    FOLDER=$(mktemp -d /tmp/safelight-cluster-XXXXXX)
    chmod 711 "$FOLDER"
    mkdir -p /run/netns
    export FOLDER
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

# shellcheck source=compose/cluster/namespaces.sh
. "$cluster/namespaces.sh"
# shellcheck source=compose/cluster/services.sh
. "$cluster/services.sh"

start_cluster() {
    say "Creating ${#hosts[@]} hosts"
    create_hosts
    say "Starting etcd on three hosts, and PostgreSQL with Patroni on two"
    start_etcd
    start_database
    echo "the primary is $(primary); commits wait until the replica has them"
    say "Starting an S3 server, and two catalogs of one library"
    create_keys >"$FOLDER/logs/keys.log"
    start_object_store
    start_catalog catalog1
    start_catalog catalog2
    echo "$(writer) writes the library, the other catalog is a standby"
    say "Starting three thumbnailers, two editors and two change-brokers"
    start_services
    safelight status --wait 60
}

# Succeeds if the object store has all files.
are_files_uploaded() {
    safelight storage --json | python3 -c 'import json, sys; sys.exit(json.load(sys.stdin)["waitingCount"] != 0)'
}

# measure_with PROGRAM ARGUMENT…: starts a measuring program of this folder on the client's host. It receives commands as
# lines and answers each with the line "done".
measure_with() {
    local program=$1
    shift
    coproc measurement { as_client env PYTHONPATH="$root/Shared/python:$PYTHON" "$cluster/$program" "$@"; }
    measuring=$measurement_PID
}

# measure COMMAND: sends a command to the measuring program, and waits until it is done.
measure() {
    local answer
    echo "$*" >&"${measurement[1]}"
    IFS= read -r answer <&"${measurement[0]}" || fail "the measuring program has ended"
    [ "$answer" = "done" ] || fail "the measuring program answers $answer"
}

# finish_measuring: prints the results; succeeds if the measuring program does.
finish_measuring() {
    echo finish >&"${measurement[1]}"
    cat <&"${measurement[0]}"
    wait "$measuring"
}
