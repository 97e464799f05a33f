#!/usr/bin/env bash
# Kills, stops and disconnects the parts of a cluster while clients change, import, edit and read: `make failover`. The
# hosts are those of `make cluster-demo`. In each round one part fails, the others continue without it, and it returns.
# The rounds are in a random order in which every kind of failure occurs equally often; the same seed gives the same order.
#
# Prints for each round how long there was no change and no read. Fails unless at the end both change-brokers have
# delivered every acknowledged change once and in the same order, the library has the assets of all acknowledged imports
# and edits, and the database shows that there was one writer at a time.
#
# usage: failover.sh [--rounds N] [--seed N] [--only FAILURE,…] [--keep] BINARIES [PYTHON]
#
#   --rounds  how many parts fail (default: 50)
#   --seed    a number (default: another one each time)
#   --only    rounds of some kinds of failures, for example catalog_killed,catalog_stopped
#   --keep    keeps the folder with the logs
#   PYTHON    a folder with the packages pyzmq, boto3 and moto, if they are not installed
# Failures are called by their names in a list.
# shellcheck disable=SC2317
set -euo pipefail

name=failover
script=$(realpath "$0")
# shellcheck source=compose/cluster/run.sh
. "$(dirname "$script")/cluster/run.sh"

failures=(
    catalog_killed catalog_stopped catalog_cut catalog_cut_from_database
    primary_killed primary_lost primary_cut primary_cut_from_etcd
    replica_lost replica_cut
    etcd_killed etcd_cut
    broker_killed broker_cut
    standby_killed standby_cut
)

# The minimum work of the clients in each part of a round: in 50 rounds 300 changes, 100 imports and 50 edits.
work=(progress 6 2 1)

# --- Failures -----------------------------------------------------------------------------------------------------------
#
# Each function reports its failure with `fails`, and returns when the part has been started or connected again.

# fails WHAT: begins the part of the measurement in which something has failed.
fails() {
    echo "round $round: $*"
    measure "mark round $round: $*"
}

# Waits until another catalog than this one writes.
await_other_writer() { wait_for 90 "another catalog than that of $1 writes" is_other_writer "$1"; }
is_other_writer() {
    local now
    now=$(writer) && [ "$now" != "$1" ]
}

# Waits until another server than this one is the primary.
await_other_primary() { wait_for 120 "another server than that of $1 is the primary" is_other_primary "$1"; }
is_other_primary() {
    local now
    now=$(primary) && [ "$now" != "$1" ]
}

# Sets `host` to one of the words, at random; it prints nothing, because a subshell would not use the seed.
choose() {
    local words=("$@")
    host=${words[RANDOM % $#]}
}

# other HOST HOST…: prints the host of a pair that is not the first argument.
other() {
    if [ "$1" = "$2" ]; then echo "$3"; else echo "$2"; fi
}

catalog_killed() {
    local host
    host=$(writer)
    fails "the writing catalog, $host, is killed"
    kill_program "$host" catalog
    await_other_writer "$host"
    measure "${work[@]}"
    start_catalog "$host"
}

catalog_stopped() {
    local host
    host=$(writer)
    fails "the writing catalog, $host, is stopped, and continues after another one has taken over"
    signal_program "$host" catalog STOP
    await_other_writer "$host"
    signal_program "$host" catalog CONT
    measure "${work[@]}"
}

catalog_cut() {
    local host
    host=$(writer)
    fails "the writing catalog, $host, is cut off from all others"
    cut_off "$host"
    await_other_writer "$host"
    measure "${work[@]}"
    reconnect "$host"
}

catalog_cut_from_database() {
    local host
    host=$(writer)
    fails "the writing catalog, $host, is cut off from both database servers"
    cut_off "$host" "${databases[@]}"
    await_other_writer "$host"
    measure "${work[@]}"
    reconnect "$host"
}

standby_killed() {
    local host
    host=$(other "$(writer)" "${catalogs[@]}")
    fails "the standby catalog, $host, is killed"
    kill_program "$host" catalog
    measure "${work[@]}"
    start_catalog "$host"
}

standby_cut() {
    local host
    host=$(other "$(writer)" "${catalogs[@]}")
    fails "the standby catalog, $host, is cut off from all others"
    cut_off "$host"
    measure "${work[@]}"
    reconnect "$host"
}

primary_killed() {
    local host
    host=$(primary)
    fails "the primary server of PostgreSQL, on $host, is killed"
    kill -KILL "$(head -1 "$FOLDER/$host/postgresql/data/postmaster.pid")"
    expect_end
    await_other_primary "$host"
    measure "${work[@]}"
}

primary_lost() {
    local host
    host=$(primary)
    fails "the host of the primary server, $host, is lost"
    kill_host "$host"
    await_other_primary "$host"
    measure "${work[@]}"
    connect_host "$host"
    start_patroni "$host"
}

primary_cut() {
    local host
    host=$(primary)
    fails "the host of the primary server, $host, is cut off from all others"
    cut_off "$host"
    await_other_primary "$host"
    measure "${work[@]}"
    reconnect "$host"
}

primary_cut_from_etcd() {
    local host
    host=$(primary)
    fails "the host of the primary server, $host, is cut off from etcd"
    cut_off "$host" "${members[@]}"
    await_other_primary "$host"
    measure "${work[@]}"
    reconnect "$host"
}

replica_lost() {
    local host
    host=$(other "$(primary)" "${databases[@]}")
    fails "the host of the replica, $host, is lost"
    kill_host "$host"
    measure "${work[@]}"
    connect_host "$host"
    start_patroni "$host"
}

replica_cut() {
    local host
    host=$(other "$(primary)" "${databases[@]}")
    fails "the host of the replica, $host, is cut off from all others"
    cut_off "$host"
    measure "${work[@]}"
    reconnect "$host"
}

etcd_killed() {
    local host
    choose "${members[@]}"
    fails "the member of etcd on $host is killed"
    kill_program "$host" etcd
    measure "${work[@]}"
    start_etcd_member "$host"
}

etcd_cut() {
    local host
    choose "${members[@]}"
    fails "the member of etcd on $host is cut off from all others"
    cut_off "$host"
    measure "${work[@]}"
    reconnect "$host"
}

broker_killed() {
    local host
    choose "${brokers[@]}"
    fails "the change-broker of $host is killed"
    kill_program "$host" change-broker
    measure "${work[@]}"
    start_broker "$host"
}

broker_cut() {
    local host
    choose "${brokers[@]}"
    fails "the change-broker of $host is cut off from all others"
    cut_off "$host"
    measure "${work[@]}"
    reconnect "$host"
}

# --- Rounds -------------------------------------------------------------------------------------------------------------

# Waits until all parts are running again, so that the next failure is the only one.
await_health() {
    local host
    expect_end
    wait_for 120 "there is a synchronous replica" has_synchronous_replica
    wait_for 60 "etcd has all members" ask_etcd endpoint health
    wait_for 60 "a catalog writes" writer
    for host in "${catalogs[@]}"; do wait_for 60 "the catalog of $host answers" answers "$host" catalog; done
    for host in "${brokers[@]}"; do wait_for 60 "the change-broker of $host answers" answers "$host" change-broker; done
}

# Prints the arguments in a random order.
shuffle() {
    local words=("$@") index other word
    for ((index = ${#words[@]} - 1; index > 0; index--)); do
        other=$((RANDOM % (index + 1)))
        word=${words[index]}
        words[index]=${words[other]}
        words[other]=$word
    done
    echo "${words[@]}"
}

# Lets the database record which catalog has written each change, and in which epoch.
watch_writers() {
    query "
        CREATE SCHEMA watched;
        CREATE TABLE watched.written (number bigint GENERATED ALWAYS AS IDENTITY, sequence bigint, epoch bigint,
            client inet, at timestamptz DEFAULT clock_timestamp());
        CREATE FUNCTION watched.note() RETURNS trigger LANGUAGE plpgsql AS \$\$ BEGIN
            INSERT INTO watched.written (sequence, epoch, client)
            SELECT NEW.sequence, epoch, inet_client_addr() FROM public.library;
            RETURN NULL;
        END \$\$;
        CREATE TRIGGER watched AFTER INSERT ON public.change FOR EACH ROW EXECUTE FUNCTION watched.note();" >/dev/null
}

# Fails unless the epochs and the sequences of the changes increase, and each epoch has one writer.
check_writers() {
    local found
    found=$(query "
        SELECT 'the epoch ' || epoch || ' wrote the change ' || sequence || ' after the epoch ' || before
        FROM (SELECT sequence, epoch, lag(epoch) OVER (ORDER BY sequence) AS before FROM watched.written) AS change
        WHERE epoch < before
        UNION ALL
        SELECT 'the change ' || sequence || ' was written after the change ' || before
        FROM (SELECT sequence, lag(sequence) OVER (ORDER BY number) AS before FROM watched.written) AS change
        WHERE sequence <> before + 1
        UNION ALL
        SELECT 'the epoch ' || epoch || ' had ' || count(DISTINCT client) || ' writers' FROM watched.written
        GROUP BY epoch HAVING count(DISTINCT client) > 1")
    [ -z "$found" ] || fail "there were two writers: $found"
    query "SELECT 'one writer at a time: ' || count(*) || ' changes in ' || count(DISTINCT epoch) || ' epochs, by '
        || count(DISTINCT client) || ' catalogs' FROM watched.written"
}

run_rounds() {
    local remaining=()
    for ((round = 1; round <= ROUNDS; round++)); do
        if [ ${#remaining[@]} -eq 0 ]; then
            # `shuffle` runs in this shell, because a subshell would not use the seed.
            shuffle "${failures[@]}" >"$FOLDER/order"
            read -ra remaining <"$FOLDER/order"
        fi
        "${remaining[0]}"
        remaining=("${remaining[@]:1}")
        await_health
        measure "${work[@]}"
        measure report
    done
}

if [ "${1:-}" = --inside ]; then
    RANDOM=$SEED
    [ -z "$ONLY" ] || IFS=, read -ra failures <<<"$ONLY"
    start_cluster
    say "Importing photos, and making changes, imports, edits and reads without a pause"
    "$BINARIES/safelight" sample-photos "$FOLDER/client/photos"
    safelight import "$FOLDER/client/photos"
    wait_for 120 "all files are uploaded" are_files_uploaded
    watch_writers
    measure_with check_failover.py "$FOLDER/client/photos" \
        "tcp://feed1:5574 tcp://feed1:5575" "tcp://feed2:5574 tcp://feed2:5575"
    measure "${work[@]}"
    say "$ROUNDS rounds with the seed $SEED"
    run_rounds
    say "Results"
    finish_measuring || fail "the library or a change-broker does not have everything that was acknowledged"
    check_writers
    echo
    echo "make failover: done in $SECONDS s, not counting the build"
    exit
fi

ROUNDS=50
SEED=$RANDOM
ONLY=
keep=
while [ $# -gt 0 ]; do
    case $1 in
        --rounds) ROUNDS=$2 && shift ;;
        --seed) SEED=$2 && shift ;;
        --only) ONLY=$2 && shift ;;
        --keep) keep=1 ;;
        *) break ;;
    esac
    shift
done
export ROUNDS SEED ONLY
[ $# -ge 1 ] || fail "usage: failover.sh [--rounds N] [--seed N] [--only FAILURE,…] [--keep] BINARIES [PYTHON]"
use_programs "$@"
check_requirements nft
run_in_namespaces
