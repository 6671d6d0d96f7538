#!/bin/sh
# Installs the lock servers that lockbench measures, where they are missing.
#
#   tools/servers.sh         redis, memcached, ZooKeeper with a Java runtime, MariaDB with Galera, etcd;
#                            on Linux strace, for slow disks
#   tools/servers.sh race    also gcc and libc6-dev, which Go's race detector needs, and
#                            servers' clocks that are to be set
#
# What is installed already is left alone, and no system service is left
# running: lockbench starts its own. As root on a system with apt-get it installs
# packages. Anywhere else it installs nothing, says which command would bring
# what is missing, and ends with status 1. etcd is built from the Go module proxy
# into bin/, without root.
set -eu

cd "$(dirname "$0")/.."

policy=/usr/sbin/policy-rc.d
made_policy=no

# shellcheck disable=SC2329 # called by the traps
clean_up() {
	if [ "$made_policy" = yes ]; then
		rm -f "$policy"
		made_policy=no
	fi
}
trap clean_up EXIT
trap 'clean_up; trap - EXIT; exit 130' INT
trap 'clean_up; trap - EXIT; exit 143' TERM HUP

# has NAME...: is one of the programs there, also where users have no PATH to?
has() {
	for name in "$@"; do
		if command -v "$name" >/dev/null 2>&1; then
			return 0
		fi
		for dir in /usr/local/sbin /usr/local/bin /usr/sbin /usr/bin /opt/homebrew/bin; do
			if [ -x "$dir/$name" ]; then
				return 0
			fi
		done
	done
	return 1
}

# Debian keeps the programs of each version in a folder of their own.
has_postgres() {
	for program in /usr/lib/postgresql/*/bin/postgres /usr/pgsql-*/bin/postgres /opt/homebrew/opt/postgresql@*/bin/postgres /usr/local/opt/postgresql@*/bin/postgres; do
		if [ -x "$program" ]; then
			return 0
		fi
	done
	has postgres
}

has_zookeeper() {
	for jar in /usr/share/java/zookeeper.jar \
		/opt/zookeeper/lib/zookeeper-[0-9]*.jar /opt/apache-zookeeper-*/lib/zookeeper-[0-9]*.jar \
		/usr/local/zookeeper/lib/zookeeper-[0-9]*.jar \
		/usr/local/opt/zookeeper/libexec/lib/zookeeper-[0-9]*.jar /opt/homebrew/opt/zookeeper/libexec/lib/zookeeper-[0-9]*.jar; do
		if [ -e "$jar" ]; then
			return 0
		fi
	done
	return 1
}

# On macOS /usr/bin/java is there without a Java behind it.
has_java() {
	{ has java && java -version >/dev/null 2>&1; } || { [ -n "${JAVA_HOME:-}" ] && [ -x "$JAVA_HOME/bin/java" ]; }
}

has_mysql() {
	has mysqld || { has mariadbd && has mariadb-install-db; }
}

# By which MariaDB servers of a galera topology agree. Debian brings it with the
# server, others may not.
has_galera() {
	for provider in /usr/lib/galera/libgalera_smm.so /usr/lib/galera-4/libgalera_smm.so \
		/usr/lib/libgalera_smm.so /usr/lib64/galera-4/libgalera_smm.so /usr/lib64/galera/libgalera_smm.so; do
		if [ -e "$provider" ]; then
			return 0
		fi
	done
	return 1
}

# A server that the user named stands for the package. The Go side judges it.
named() {
	eval "[ -n \"\${LOCKBENCH_SERVER_$1:-}\" ]"
}

# The missing packages, and the system services that they bring.
packages=
services=
need() {
	packages="$packages $1"
	services="$services $2"
}
find_missing() {
	packages=
	services=
	named REDIS || has redis-server valkey-server || need redis-server redis-server
	named MEMCACHED || has memcached || need memcached memcached
	named ZOOKEEPER || has_zookeeper || need zookeeper zookeeper
	has_java || need default-jre-headless ""
	named MYSQL || has_mysql || need mariadb-server mariadb
	named MYSQL || has_galera || [ "$(uname)" != Linux ] || need galera-4 ""
	named POSTGRES || has_postgres || need postgresql postgresql
	has pgbouncer || need pgbouncer pgbouncer
	has strace || [ "$(uname)" != Linux ] || need strace ""
	if [ "${1:-}" = race ]; then
		has gcc || need gcc ""
		[ -e /usr/include/stdlib.h ] || [ "$(uname)" != Linux ] || need libc6-dev ""
	fi
}

# forbid_services keeps packages from starting services while they are
# installed, by the means that Debian has for it. A policy that is there already
# is the administrator's, unless it is ours from a run that was killed.
forbid_services() {
	if grep -q 'made by lockbench' "$policy" 2>/dev/null; then
		made_policy=yes
		return
	fi
	if [ -e "$policy" ] || [ -L "$policy" ]; then
		return
	fi
	made_policy=yes
	printf '#!/bin/sh\n# made by lockbench for the time of an installation\nexit 101\n' >"$policy" &&
		chmod 755 "$policy"
}

install_packages() {
	echo "installing:$packages"
	# Failures are passed on by hand: within an if, -e means nothing.
	forbid_services || return 1
	export DEBIAN_FRONTEND=noninteractive
	apt-get -q update || return 1
	# shellcheck disable=SC2086 # a list of words
	apt-get -q -y install --no-install-recommends $packages || return 1
	clean_up
	# Without this they would start at the next boot. Only services that came
	# with this very installation are touched.
	if [ -d /run/systemd/system ]; then
		for service in $services; do
			systemctl disable --now "$service" >/dev/null 2>&1 || true
		done
	fi
}

status=0

case "${1:-}" in
"" | race) ;;
*)
	echo "usage: $0 [race]" >&2
	exit 2
	;;
esac

# etcd first: it needs neither root nor apt.
if named ETCD || [ -x bin/etcd ]; then
	:
elif has go; then
	echo "building etcd into bin/ (about half a minute, once)"
	mkdir -p bin
	if ! (cd tools/etcd && CGO_ENABLED=0 go build -trimpath -o ../../bin/etcd go.etcd.io/etcd/server/v3); then
		echo "etcd could not be built: see above; \`lockbench run\` shows it as missing" >&2
		status=1
	fi
else
	echo "etcd: building it needs Go 1.26 or later: https://go.dev/doc/install" >&2
	status=1
fi

find_missing "${1:-}"
if [ -n "$packages" ]; then
	if [ "$(id -u)" = 0 ] && has apt-get; then
		if ! install_packages; then
			clean_up
			echo "the installation failed: see above" >&2
			status=1
		fi
		find_missing "${1:-}"
	fi
	for package in $packages; do
		status=1
		if [ "$(uname)" = Darwin ]; then
			case $package in
			redis-server) package=redis ;;
			default-jre-headless) package=openjdk ;;
			mariadb-server) package=mariadb ;;
			esac
			echo "missing: get it by: brew install $package" >&2
		elif [ "$(id -u)" != 0 ] && has apt-get; then
			echo "missing: get it by: sudo apt-get install --no-install-recommends $package" >&2
		else
			echo "missing: get it by: apt-get install --no-install-recommends $package (or your system's package of that name)" >&2
		fi
	done
fi

if [ "$status" = 0 ]; then
	echo "all servers are here"
fi
exit "$status"
