#!/bin/sh
# Starts a program of the cluster in a container.
#
# usage: entry.sh database | etcd
#
#   database   PostgreSQL, managed by Patroni; PATRONI_NAME is the container's name
#   etcd       a member of etcd
#
# /secrets has the passwords. /data holds the files of both.
set -eu

# Waits until a file exists, for at most a minute.
wait_for_file() {
    remaining=300
    until [ -s "$1" ]; do
        remaining=$((remaining - 1))
        [ "$remaining" -gt 0 ] || { echo "entry.sh: $1 does not exist; the container secrets creates it" >&2; exit 1; }
        sleep 0.2
    done
}

case ${1:-} in
    etcd)
        exec etcd --data-dir /data/etcd --log-level warn \
            --name "$NAME" \
            --listen-peer-urls http://0.0.0.0:2380 --initial-advertise-peer-urls "http://$NAME:2380" \
            --listen-client-urls http://0.0.0.0:2379 --advertise-client-urls "http://$NAME:2379" \
            --initial-cluster "$MEMBERS"
        ;;
    database)
        wait_for_file /secrets/superuser
        own_address=$(hostname -i | cut -d ' ' -f 1)
        export PATRONI_NAME="$NAME"
        export PATRONI_RESTAPI_LISTEN=0.0.0.0:8008 PATRONI_RESTAPI_CONNECT_ADDRESS="$own_address:8008"
        export PATRONI_POSTGRESQL_LISTEN=0.0.0.0:5432 PATRONI_POSTGRESQL_CONNECT_ADDRESS="$own_address:5432"
        export PATRONI_POSTGRESQL_DATA_DIR=/data/postgresql PATRONI_POSTGRESQL_PGPASS=/tmp/pgpass
        PATRONI_POSTGRESQL_BIN_DIR=$(printf '%s\n' /usr/lib/postgresql/*/bin | sort -V | tail -1)
        PATRONI_SUPERUSER_PASSWORD=$(cat /secrets/superuser)
        PATRONI_REPLICATION_PASSWORD=$(cat /secrets/replicator)
        SAFELIGHT_DATABASE_PASSWORD=$(cat /secrets/safelight)
        export PATRONI_POSTGRESQL_BIN_DIR PATRONI_SUPERUSER_PASSWORD PATRONI_REPLICATION_PASSWORD
        export PATRONI_SUPERUSER_USERNAME=postgres PATRONI_REPLICATION_USERNAME=replicator SAFELIGHT_DATABASE_PASSWORD
        exec patroni /cluster/patroni.yaml
        ;;
    *)
        echo "usage: entry.sh database | etcd" >&2
        exit 2
        ;;
esac
