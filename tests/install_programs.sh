#!/usr/bin/env bash
# The programs that the tests start and that no Python package brings, where there are none: Debian's. None of them is
# left running: the tests start their own, in temporary folders and on loopback ports, and take them away at the end.
#
#   PostgreSQL   a database server       tests/postgres.py
#   Chromium     a browser               tests/browser.py
#   Glewlwyd     an identity provider    tests/oidc/glewlwyd.py
set -euo pipefail

has() {
	command -v "$1" >/dev/null 2>&1
}

has_postgres() {
	has initdb || compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null
}

has_chromium() {
	has chromedriver && { has chromium || has chromium-browser || has google-chrome; }
}

missing() {
	has_postgres || echo "postgresql"
	has_chromium || echo "chromium chromium-driver"
	has glewlwyd || echo "glewlwyd dbconfig-no-thanks"
}

packages="$(missing | tr '\n' ' ')"
if [ -z "$packages" ]; then
	exit 0
fi

as_root=()
if [ "$(id -u)" != 0 ]; then
	as_root=(sudo)
	[ -t 0 ] || as_root+=(--non-interactive)
fi
if ! has apt-get || ! "${as_root[@]}" true 2>/dev/null; then
	cat >&2 <<-TEXT
		The tests need programs that are not on this machine, and only root can install them:
		  PostgreSQL 14 or later (initdb, pg_ctl, postgres), Chromium with chromedriver, Glewlwyd 2.7.
		Missing here, by the names of Debian's packages: $packages
		None of them need run: the tests start their own.
	TEXT
	exit 1
fi

install() {
	# The file that says whether PostgreSQL's package starts a server comes with a package of its own.
	apt-get update
	case "$1" in
	*postgresql*)
		apt-get install --yes --no-install-recommends postgresql-common
		sed -ri "s/^#?create_main_cluster.*/create_main_cluster = false/" /etc/postgresql-common/createcluster.conf
		;;
	esac
	# Debian's way to say that nothing is started while packages are installed.
	local policy=/usr/sbin/policy-rc.d
	if [ ! -e "$policy" ]; then
		trap 'rm -f /usr/sbin/policy-rc.d' EXIT
		printf '#!/bin/sh\nexit 101\n' >"$policy"
		chmod +x "$policy"
	fi
	# Glewlwyd's package would set up a database for a provider of the machine's own, or fail where it may not. And where
	# an image leaves out documentation, it misses a sample that is among it.
	echo 'glewlwyd glewlwyd/config_type select No configuration' | debconf-set-selections
	# shellcheck disable=SC2086
	apt-get install --yes --no-install-recommends -o 'Dpkg::Options::=--path-include=/usr/share/doc/glewlwyd*' $1
	case "$1" in
	*glewlwyd*) update-rc.d glewlwyd disable ;; # nor when the machine starts
	esac
}

echo "setup: from Debian's packages (once; a minute or two): $packages"
log="$(mktemp)"
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive bash -c "set -euo pipefail; $(declare -f install); install '$packages'" \
	>"$log" 2>&1 || {
	cat "$log" >&2
	echo "They could not be installed; what apt-get said is above." >&2
	exit 1
}
rm -f "$log"
packages="$(missing | tr '\n' ' ')"
if [ -n "$packages" ]; then
	echo "apt-get installed them, and they are still not on the PATH: $packages" >&2
	exit 1
fi
