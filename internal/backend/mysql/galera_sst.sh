#!/bin/sh
# How a server that was away is brought up to date: it and the one that gives, both
# of this machine, agree by a file that the missing transactions are sent. To copy
# all data is refused.
while [ $# -gt 0 ]; do
	case "$1" in
	--role) role=$2 ;;
	--address) address=$2 ;;
	--gtid) gtid=$2 ;;
	--gtid-domain-id) domain=$2 ;;
	--parent) parent=$2 ;;
	--bypass) transactions=yes ;;
	--mysqld-args) break ;;
	esac
	shift
done
agreed=$(dirname "$0")/../agreed-${address##*:}

case "$role" in
joiner)
	rm -f "$agreed"
	echo "ready $address"
	until [ -f "$agreed" ]; do
		kill -0 "$parent" 2>/dev/null || exit 32
		sleep 0.1
	done
	cat "$agreed"
	;;
donor)
	if [ "${transactions:-}" != yes ]; then
		echo "it missed more than the others remember: lockbench does not copy all data; start the cluster anew" >&2
		exit 255
	fi
	echo continue
	echo "$gtid $domain" >"$agreed.new"
	mv "$agreed.new" "$agreed"
	echo "done $gtid"
	;;
esac
