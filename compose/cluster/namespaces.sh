# shellcheck shell=bash
# Hosts that are network namespaces: used by run.sh, within a namespace of mounts and processes. FOLDER is the folder
# with the files of all hosts; `hosts` has their names.

network=10.71.0

# address HOST: prints the address of a host.
address() {
    local index
    for index in "${!hosts[@]}"; do
        if [ "${hosts[index]}" = "$1" ]; then
            echo "$network.$((index + 11))"
            return
        fi
    done
    fail "there is no host $1"
}

# Creates a namespace for each host, and a bridge between them in a namespace of its own, so that the network of the
# machine is not affected. Host names are in /etc/hosts, which is a different file within the namespaces.
create_hosts() {
    local host
    mount -t tmpfs tmpfs /run/netns
    ip netns add switch
    ip -n switch link add bridge type bridge
    ip -n switch link set bridge up
    echo "127.0.0.1 localhost" >"$FOLDER/hosts"
    mkdir "$FOLDER/logs"
    for host in "${hosts[@]}"; do
        ip netns add "$host"
        ip -n "$host" link add eth0 type veth peer name "$host" netns switch
        ip -n switch link set "$host" master bridge up
        ip -n "$host" address add "$(address "$host")/24" dev eth0
        ip -n "$host" link set lo up
        ip -n "$host" link set eth0 up
        detect_lost_hosts "$host"
        echo "$(address "$host") $host" >>"$FOLDER/hosts"
        mkdir "$FOLDER/$host"
    done
    mount --bind "$FOLDER/hosts" /etc/hosts
}

# detect_lost_hosts HOST: makes connections from a host to one that has disappeared from the network fail within 1.3 s.
# The default settings of Linux take up to a minute, and Patroni's replica waits two seconds for a lost primary.
detect_lost_hosts() {
    ip netns exec "$1" sysctl --quiet --write net.ipv4.neigh.eth0.base_reachable_time_ms=2000 \
        net.ipv4.neigh.eth0.delay_first_probe_time=1 net.ipv4.neigh.eth0.retrans_time_ms=100
}

# on HOST COMMAND…: runs a command on a host.
on() {
    local host=$1
    shift
    # shellcheck disable=SC2016
    ip netns exec "$host" unshare --uts sh -c 'hostname "$0" && exec "$@"' "$host" "$@"
}

# start HOST NAME COMMAND…: starts a program on a host in the background; its log is logs/HOST-NAME.log.
start() {
    local host=$1 name=$2
    shift 2
    # The same as `on`, but without a shell in between, so that the process id is that of the program.
    # shellcheck disable=SC2016
    ip netns exec "$host" unshare --uts sh -c 'hostname "$0" && exec "$@"' "$host" "$@" \
        </dev/null >>"$FOLDER/logs/$host-$name.log" 2>&1 &
    started=$!
    started_name="$host-$name"
    echo "$started" >"$FOLDER/$host/$name.pid"
    # The shell must not report the end of the program.
    disown
}

# signal_program HOST NAME SIGNAL: sends a signal to a program.
signal_program() { kill "-$3" "$(cat "$FOLDER/$1/$2.pid")"; }

# kill_program HOST NAME: kills a program with SIGKILL.
kill_program() {
    signal_program "$1" "$2" KILL
    expect_end
}

# Records that the end of the program that was started last is expected: `wait_for` then does not fail because of it.
expect_end() { started=$$; }

# kill_host HOST: takes a host off the network and kills its programs, as if its power had failed: the other hosts are not
# notified that connections have ended.
kill_host() {
    local numbers
    ip -n switch link set "$1" down
    # Programs start others meanwhile, and some end before they are killed.
    while numbers=$(ip netns pids "$1") && [ -n "$numbers" ]; do
        xargs kill -KILL <<<"$numbers" 2>/dev/null || true
    done
    expect_end
}

# connect_host HOST: puts a host back on the network.
connect_host() { ip -n switch link set "$1" up; }

# cut_off HOST [OTHER…]: disconnects a host from all others, as if its cable had been pulled, or from the given ones:
# packets between them are dropped, and neither end is notified.
cut_off() {
    local host=$1 other addresses=
    shift
    if [ $# -eq 0 ]; then
        ip -n switch link set "$host" down
        return
    fi
    for other in "$@"; do addresses+="$(address "$other"), "; done
    ip netns exec "$host" nft -f - <<RULES
table ip cut {
    chain arriving {
        type filter hook input priority 0; policy accept;
        ip saddr { $addresses } drop
    }
    chain leaving {
        type filter hook output priority 0; policy accept;
        ip daddr { $addresses } drop
    }
}
RULES
}

# reconnect HOST: undoes `cut_off`.
reconnect() {
    connect_host "$1"
    ip netns exec "$1" nft flush ruleset
}

# wait_for SECONDS WHAT COMMAND…: runs a command until it succeeds, unless the program that was started last ends.
wait_for() {
    local end=$((SECONDS + $1)) what=$2
    shift 2
    until "$@" >/dev/null 2>&1; do
        kill -0 "$started" 2>/dev/null || fail "$started_name has ended; see its log"
        [ "$SECONDS" -lt "$end" ] || fail "timed out before $what; see the logs"
        sleep 0.2
    done
}
