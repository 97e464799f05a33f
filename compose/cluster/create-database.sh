#!/bin/sh
# Creates the database of the catalogs, and its user with the password SAFELIGHT_DATABASE_PASSWORD. Patroni runs it once,
# on the first primary, with the address of the server as the argument.
set -eu

: "${SAFELIGHT_DATABASE_PASSWORD:?set the password of the database user safelight}"
psql --no-psqlrc --quiet --set=ON_ERROR_STOP=1 --set=password="$SAFELIGHT_DATABASE_PASSWORD" --dbname="$1" <<'SQL'
CREATE ROLE safelight LOGIN PASSWORD :'password';
CREATE DATABASE safelight OWNER safelight;
SQL
