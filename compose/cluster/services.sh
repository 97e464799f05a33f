# shellcheck shell=bash
# The programs of the cluster: used by run.sh. Each function that starts one waits until it answers.

# --- etcd, PostgreSQL and Patroni ---------------------------------------------------------------------------------------

start_etcd_member() {
    start "$1" etcd etcd --name "$1" --data-dir "$FOLDER/$1/etcd" --log-level warn \
        --listen-peer-urls "http://$(address "$1"):2380" --initial-advertise-peer-urls "http://$1:2380" \
        --listen-client-urls "http://$(address "$1"):2379" --advertise-client-urls "http://$1:2379" \
        --initial-cluster "$(printf '%s\n' "${members[@]}" | sed 's|.*|&=http://&:2380|' | paste -sd ,)" \
        --heartbeat-interval 100 --election-timeout 1000
}

start_etcd() {
    local host
    for host in "${members[@]}"; do start_etcd_member "$host"; done
    wait_for 30 "etcd has a leader" ask_etcd endpoint health
}

# Prints the addresses of etcd, with commas between them.
etcd_addresses() { printf '%s:2379\n' "${members[@]}" | paste -sd ,; }

# ask_etcd COMMAND…: asks a member that answers.
ask_etcd() { on s3 env ETCDCTL_API=3 etcdctl --dial-timeout 1s --endpoints "$(etcd_addresses)" "$@"; }

# Starts Patroni, which starts PostgreSQL as the primary or as a replica.
start_patroni() {
    local host=$1 home="$FOLDER/$1/postgresql"
    [ -d "$home" ] || install -d -o postgres -g postgres -m 700 "$home"
    start "$host" patroni env -C "$home" HOME="$home" \
        PATRONI_NAME="$host" \
        PATRONI_ETCD3_HOSTS="$(etcd_addresses)" \
        PATRONI_RESTAPI_LISTEN="$(address "$host"):8008" \
        PATRONI_RESTAPI_CONNECT_ADDRESS="$(address "$host"):8008" \
        PATRONI_POSTGRESQL_LISTEN="127.0.0.1,$(address "$host"):5432" \
        PATRONI_POSTGRESQL_CONNECT_ADDRESS="$(address "$host"):5432" \
        PATRONI_POSTGRESQL_BIN_DIR="$postgresql_programs" \
        PATRONI_POSTGRESQL_DATA_DIR="$home/data" \
        PATRONI_POSTGRESQL_PGPASS="$home/pgpass" \
        PATRONI_SUPERUSER_USERNAME=postgres PATRONI_SUPERUSER_PASSWORD="$password" \
        PATRONI_REPLICATION_USERNAME=replicator PATRONI_REPLICATION_PASSWORD="$password" \
        SAFELIGHT_DATABASE_PASSWORD="$password" \
        setpriv --reuid=postgres --regid=postgres --init-groups patroni "$FOLDER/patroni.yaml"
}

start_database() {
    password=$(head -c 18 /dev/urandom | base64)
    postgresql_programs=$(printf '%s\n' /usr/lib/postgresql/*/bin | sort -V | tail -1)
    sed "s|/cluster/|$FOLDER/|" "$cluster/patroni.yaml" >"$FOLDER/patroni.yaml"
    install -m 755 "$cluster/create-database.sh" "$FOLDER/create-database.sh"
    (umask 077 && echo "*:*:*:safelight:$password" >"$FOLDER/pgpass")
    start_patroni db1
    wait_for 90 "db1 is the primary and has the database" query "SELECT 1"
    start_patroni db2
    wait_for 90 "db2 is a synchronous replica" has_synchronous_replica
}

# store [ATTRIBUTES]: prints the address of the database: of the two servers, the one that accepts writes is used, or
# the one that libpq selects for other `target_session_attrs`. A lost host is detected within five seconds.
store() {
    printf '%s' "postgresql://safelight@db1,db2/safelight?passfile=$FOLDER/pgpass&target_session_attrs=${1:-read-write}" \
        "&connect_timeout=2&tcp_user_timeout=5000&keepalives_idle=2&keepalives_interval=1&keepalives_count=3"
}

# query SQL: runs a query at the primary, and prints its result.
query() { on s3 psql --no-psqlrc --tuples-only --no-align --set=ON_ERROR_STOP=1 --command="$1" "$(store)"; }

# Succeeds if commits wait for a replica, whose name Patroni stores in etcd.
has_synchronous_replica() { ask_etcd get --print-value-only /service/safelight/sync | grep -q '"sync_standby": *"db'; }

# Prints the host of the primary.
primary() { host_of "$(query "SELECT host(inet_server_addr())")"; }

# --- Safelight ----------------------------------------------------------------------------------------------------------

# Creates the key pair of the services, and one for each host that connects to the catalog. The services of all hosts
# have the same pair, so that a client needs only one server key.
create_keys() {
    local host keys="$FOLDER/keys"
    "$BINARIES/safelight" keys server --keys "$keys"
    for host in "${workers[@]}" "${brokers[@]}"; do
        "$BINARIES/safelight" keys create "$host" --keys "$keys" --output "$FOLDER/$host/key" \
            --domain requests,feed,services --purpose "services of $host"
    done
    "$BINARIES/safelight" keys create client --keys "$keys" --output "$FOLDER/client/key" \
        --domain requests,feed,edits --access owner
    for host in "${catalogs[@]}" "${workers[@]}" "${brokers[@]}"; do cp -R "$keys" "$FOLDER/$host/keys"; done
}

start_object_store() {
    start s3 s3 env PYTHONPATH="$PYTHON" python3 -m moto.server --host 0.0.0.0 --port 9000
    wait_for 30 "the S3 server answers" on s3 env PYTHONPATH="$PYTHON" python3 -c '
import boto3
access = {"aws_access_key_id": "demo", "aws_secret_access_key": "demo", "region_name": "us-east-1"}
boto3.client("s3", endpoint_url="http://s3:9000", **access).create_bucket(Bucket="photos")'
}

start_catalog() {
    start "$1" catalog env \
        SAFELIGHT_RUN="$FOLDER/$1/run" SAFELIGHT_STATE="$FOLDER/$1/state" SAFELIGHT_KEYS="$FOLDER/$1/keys" \
        SAFELIGHT_OBJECT_STORE=s3://photos/library SAFELIGHT_OBJECT_STORE_ENDPOINT=http://s3:9000 \
        AWS_ACCESS_KEY_ID=demo AWS_SECRET_ACCESS_KEY=demo \
        "$BINARIES/catalog" --library "$FOLDER/$1/library" --store "$(store)" \
        --store-replica "$(store prefer-standby)" --listen 0.0.0.0
    wait_for 60 "the catalog of $1 answers" answers "$1" catalog
}

# start_service HOST PROGRAM OPTION…: starts a service that uses the catalogs and, unless it is a change-broker itself,
# the first change-broker.
start_service() {
    local host=$1 program=$2 feed=()
    shift 2
    [ "$program" = change-broker ] || feed=(SAFELIGHT_BROKER=tcp://feed1:5574 SAFELIGHT_FEED=tcp://feed1:5575)
    start "$host" "$program" env \
        SAFELIGHT_RUN="$FOLDER/$host/run" SAFELIGHT_CACHE="$FOLDER/$host/cache" SAFELIGHT_KEYS="$FOLDER/$host/keys" \
        SAFELIGHT_CATALOG="$(list 5571 "${catalogs[@]}")" "${feed[@]}" \
        SAFELIGHT_SERVER_KEY="$FOLDER/$host/key/server.key" \
        SAFELIGHT_CLIENT_KEY="$FOLDER/$host/key/$host.key_secret" \
        "$BINARIES/$program" --listen 0.0.0.0 "$@"
}

# The first change-broker follows the catalog, the second one the first one.
start_broker() {
    local upstream=()
    [ "$1" = feed1 ] || upstream=(--upstream tcp://feed1:5574)
    start_service "$1" change-broker "${upstream[@]}"
}

start_services() {
    local host
    for host in "${brokers[@]}"; do start_broker "$host"; done
    for host in "${brokers[@]}"; do wait_for 60 "the change-broker of $host answers" answers "$host" change-broker; done
    for host in "${workers[@]}"; do start_service "$host" thumbnailer --remote-resources; done
    for host in "${editors[@]}"; do start_service "$host" editor --remote-resources; done
    for host in "${workers[@]}"; do wait_for 60 "the thumbnailer of $host answers" answers "$host" thumbnailer; done
    for host in "${editors[@]}"; do wait_for 60 "the editor of $host answers" answers "$host" editor; done
}

# answers HOST SERVICE: succeeds if the service is ready, as a client on its own host sees it.
answers() { on "$1" env SAFELIGHT_RUN="$FOLDER/$1/run" "$BINARIES/safelight" status "$2"; }

# list PORT HOST…: prints a list of addresses, with commas between them.
list() {
    local port=$1 host text=
    shift
    for host in "$@"; do text+=${text:+,}tcp://$host:$port; done
    printf '%s' "$text"
}

# as_client COMMAND…: runs a command on the client's host, with the addresses of all catalogs, thumbnailers and editors,
# and of the second change-broker.
as_client() {
    on client env -C "$FOLDER/client" \
        SAFELIGHT_CATALOG="$(list 5571 "${catalogs[@]}")" \
        SAFELIGHT_THUMBNAILER="$(list 5572 "${workers[@]}")" \
        SAFELIGHT_EDITOR="$(list 5573 "${editors[@]}")" \
        SAFELIGHT_EDITS="$(list 5576 "${editors[@]}")" \
        SAFELIGHT_BROKER=tcp://feed2:5574 \
        SAFELIGHT_FEED=tcp://feed2:5575 \
        SAFELIGHT_SERVER_KEY="$FOLDER/client/key/server.key" \
        SAFELIGHT_CLIENT_KEY="$FOLDER/client/key/client.key_secret" \
        "$@"
}

safelight() { as_client "$BINARIES/safelight" "$@"; }

# Prints the host of the catalog that writes: its session holds an advisory lock.
writer() {
    host_of "$(query "SELECT host(client_addr) FROM pg_locks JOIN pg_stat_activity USING (pid)
        WHERE locktype = 'advisory' AND classid = x'5AFE'::integer AND granted")"
}

# host_of ADDRESS: prints the host that has an address.
host_of() { [ -n "$1" ] && awk -v address="$1" '$1 == address { print $2; found = 1 } END { exit !found }' /etc/hosts; }
