#!/bin/sh
# Builds the images lockbench-servers (all servers, on Debian) and lockbench (this
# program alone). The Debian base is pulled where a registry can be reached, else
# made by debootstrap, which takes root; BASE=IMAGE names another one.
set -eu
cd "$(dirname "$0")/.."
BASE=${BASE:-}
suite=bookworm

if ! docker version >/dev/null 2>&1; then
	echo "no container engine answers: install Docker (on Debian: apt-get install docker.io) and start it" >&2
	exit 1
fi
if [ -z "$BASE" ]; then
	BASE=debian:$suite-slim
	if ! docker image inspect "$BASE" >/dev/null 2>&1 && ! timeout 60 docker pull -q "$BASE" 2>/dev/null; then
		BASE=lockbench-debian:$suite
		if ! docker image inspect "$BASE" >/dev/null 2>&1; then
			if ! command -v debootstrap >/dev/null 2>&1; then
				echo "no registry can be reached, and debootstrap is missing: apt-get install debootstrap" >&2
				exit 1
			fi
			work=$(mktemp -d)
			trap 'rm -rf "$work"' EXIT
			debootstrap --variant=minbase $suite "$work/base" >"$work/log" || { tail "$work/log" >&2; exit 1; }
			tar -C "$work/base" -c . | docker import - "$BASE" >/dev/null
		fi
	fi
fi
echo "base: $BASE"

context=bin/docker
rm -rf $context
mkdir -p $context/empty
[ -x bin/etcd ] || (cd tools/etcd && CGO_ENABLED=0 go build -trimpath -o ../../bin/etcd go.etcd.io/etcd/server/v3)
cp bin/etcd $context/etcd
CGO_ENABLED=0 go build -trimpath -ldflags '-s -w' -o $context/lockbench ./cmd/lockbench
docker build -q --build-arg BASE="$BASE" -t lockbench-servers -f docker/servers/Dockerfile $context
docker build -q -t lockbench -f docker/Dockerfile $context
rm -rf $context
docker image ls --format '{{.Repository}} {{.Size}}' | grep '^lockbench' | sort -u
