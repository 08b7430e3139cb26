#!/usr/bin/env bash
# The programs of a PostgreSQL server, for the tests, where there are none: Debian's. No server of Debian's is started:
# the tests make one of their own in a temporary folder (tests/postgres.py), and take it away at the end.
set -euo pipefail

found() {
	command -v initdb >/dev/null 2>&1 || compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null
}

if found; then
	exit 0
fi
if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null 2>&1; then
	cat >&2 <<-'TEXT'
		The tests need the programs of a PostgreSQL server (initdb, pg_ctl, postgres), 14 or later. Install them, as root:
		  Debian, Ubuntu:  apt-get install postgresql
		  Fedora:          dnf install postgresql-server
		  macOS:           brew install postgresql
		A server need not run: the tests start one of their own. Its programs may also be anywhere on the PATH.
	TEXT
	exit 1
fi
echo "setup: PostgreSQL from Debian's packages (once; a minute)"
export DEBIAN_FRONTEND=noninteractive
log="$(mktemp)"
# The first of the two brings the file that says whether the second starts a server.
{
	apt-get update &&
		apt-get install --yes --no-install-recommends postgresql-common &&
		sed -ri "s/^#?create_main_cluster.*/create_main_cluster = false/" /etc/postgresql-common/createcluster.conf &&
		apt-get install --yes --no-install-recommends postgresql
} >"$log" 2>&1 || {
	cat "$log" >&2
	echo "PostgreSQL could not be installed; what apt-get said is above." >&2
	exit 1
}
rm -f "$log"
found
