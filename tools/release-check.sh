#!/usr/bin/env bash
# usage: make release-check [VERSION=v0.1.0]
#
# Checks what has to be true of a commit before it gets a version tag. It changes no file that git knows. It makes all
# checks, even after one has failed, and ends with a list of those that failed and of those that it had to skip.
# docs/releasing.md says what each check is for. Tests are not part of it.
set -euo pipefail
cd "$(dirname "$0")/.."
export GOWORK=off

version=${VERSION:-}
# Each module of the repository is in one of these lists, or below one of the folders without a release. The tag of a published
# module in a folder is folder/vX.Y.Z.
published=(.)
# These are published once the root has a version to require: docs/releasing.md.
later=(gocronlock inspector middleware/internal/rpc middleware/connect middleware/echo middleware/echo4 middleware/fiber middleware/grpc msglock/watermill otellock cmd/holdfast)
unreleased='^(examples|lab|tests|tools)(/|$)'
# Vulnerabilities of dependencies that cannot be mended here. Users decide with the versions in their own go.mod.
accepted=(
	GO-2026-6603 GO-2026-6610 GO-2026-6611 GO-2026-6612 GO-2026-6617 # HTTP/2 of golang.org/x/net before v0.60.0, which needs Go 1.26
	GO-2026-6872 GO-2026-6875                           # Echo 4 has no version without them
)
database=() # of vulnerabilities: that of vuln.go.dev
# Read a licence before you add its SPDX identifier.
library=github.com/holdfast-go/holdfast # and all modules below it, whose licence is the file LICENSE of the root
licences=MIT,BSD-2-Clause,BSD-3-Clause,Apache-2.0,ISC,BSL-1.0,Unlicense

modfile=$PWD/tools/release/go.mod
prepared=bin/release # the go.mod and go.sum of the later modules at their tags
skip=77 # the exit status of a check that could not be made
passed=0
failed=()
skipped=()
scratch=$(mktemp -d)
trap cleanup EXIT

main() {
	check "the working tree is clean" clean_tree
	check "the version follows the last tag" version_follows
	check "CHANGELOG.md has the version" changelog_has_version
	check "each module is known as published or not" modules_are_known
	check "go.mod has no replace, exclude or toolchain line" no_replacements
	check "go.mod and go.sum are tidy and verified" each_published tidy_and_verified
	check "vet with the oldest Go of go.mod" each_published vet_with_oldest_go
	check "vet with this Go" each_published go vet ./...
	check "vulnerabilities" each_released vulnerabilities
	check "licences of dependencies" each_released licences_allowed
	check "the API beside that of the last tag" each_published api_compatible
	check "the other modules can be released after the root" later_modules_install
	check "bill of materials" each_published bill_of_materials
	verdict
}

# check runs a function and keeps how it ended.
check() {
	local title=$1 status=0
	shift
	printf '\n== %s\n' "$title"
	"$@" || status=$?
	case $status in
	0) echo "ok" && passed=$((passed + 1)) ;;
	"$skip") echo "SKIPPED" && skipped+=("$title") ;;
	*) echo "FAILED" && failed+=("$title") ;;
	esac
}

verdict() {
	local module
	printf '\n== verdict\n'
	[ ${#skipped[@]} = 0 ] || printf 'skipped: %s\n' "${skipped[@]}"
	if [ ${#failed[@]} != 0 ]; then
		printf 'failed: %s\n' "${failed[@]}"
		exit 1
	fi
	echo "$passed checks passed, none failed, ${#skipped[@]} skipped"
	[ -n "$version" ] || return 0
	echo "tags to set, once you have seen to the skipped checks:"
	for module in "${published[@]}"; do
		echo "    git tag -a $(tag_of "$module") -m $version"
	done
	echo "and then, at the commit with the files below $prepared:"
	for module in "${later[@]}"; do
		echo "    git tag -a $(tag_of "$module") -m $version"
	done
}

cleanup() {
	[ ! -d "$scratch/last" ] || git worktree remove --force "$scratch/last"
	rm -rf "$scratch"
}

fail() {
	echo "$*"
	return 1
}

tool() {
	go tool -modfile="$modfile" "$@"
}

# each_published runs a command in the folder of each published module, and each_released also in those of the later ones. They return
# the status of the first that fails.
each_published() {
	each_of "${published[*]}" "$@"
}

each_released() {
	each_of "${published[*]} ${later[*]}" "$@"
}

each_of() {
	local module modules=$1
	shift
	for module in $modules; do
		(cd "$module" && "$@") || return
	done
}

tag_of() {
	if [ "$1" = . ]; then echo "$version"; else echo "$1/$version"; fi
}

needs_version() {
	[ -n "$version" ] || { echo "no VERSION was given" && return $skip; }
}

# last_tag prints the newest version tag behind HEAD that is not the version to be released, or nothing.
last_tag() {
	git tag --list 'v*' --merged HEAD --sort=-version:refname | sed "/^$version\$/d" | sed -n 1p
}

clean_tree() {
	local changes
	changes=$(git status --porcelain) || return
	[ -z "$changes" ] || fail "$changes"
}

# A tag that is already at this commit is right: a workflow runs after the tag.
version_follows() {
	needs_version || return
	[[ $version =~ ^v(0|[1-9][0-9]*)(\.(0|[1-9][0-9]*)){2}$ ]] || fail "$version is not vX.Y.Z" || return
	local module tag last
	for module in "${published[@]}"; do
		tag=$(tag_of "$module")
		! git rev-parse -q --verify "refs/tags/$tag" >/dev/null ||
			[ "$(git rev-parse "$tag^{commit}")" = "$(git rev-parse HEAD)" ] ||
			fail "$tag exists at another commit" || return
	done
	last=$(last_tag)
	[ -n "$last" ] || { echo "no version tag yet: $version is the first" && return; }
	[ "$(printf '%s\n' "$last" "$version" | sort -V | sed -n '$p')" = "$version" ] ||
		fail "$version is not greater than $last"
}

changelog_has_version() {
	needs_version || return
	grep -Eq "^## \[${version#v}\] - [0-9]{4}-[0-9]{2}-[0-9]{2}$" CHANGELOG.md ||
		fail "CHANGELOG.md has no line \"## [${version#v}] - <year>-<month>-<day>\"" || return
	[ -n "$(tools/changelog-section.sh "${version#v}")" ] || fail "the section of $version is empty" || return
	[ -z "$(tools/changelog-section.sh Unreleased)" ] || fail "there is something under [Unreleased]"
}

modules_are_known() {
	diff <(git ls-files go.mod '*/go.mod' ':!*/testdata/*' | sed -e 's,^go\.mod$,./go.mod,' -e 's,/go\.mod$,,' | grep -vE "$unreleased" | sort) \
		<(printf '%s\n' "${published[@]}" "${later[@]}" | sort) ||
		fail "the lists of published modules differ from the go.mod files of the tree"
}

no_replacements() {
	local module
	for module in "${published[@]}"; do
		! go mod edit -print "$module/go.mod" | grep -E '^(replace|exclude|toolchain)' ||
			fail "$module/go.mod must not have this: users ignore it, or it is forced on them" || return
	done
}

tidy_and_verified() {
	go mod tidy -diff && go mod verify
}

vet_with_oldest_go() {
	local oldest
	oldest=go$(go list -m -f '{{.GoVersion}}') || return
	GOTOOLCHAIN=$oldest go version || { echo "$oldest cannot be downloaded" && return $skip; }
	GOTOOLCHAIN=$oldest go vet ./...
}

# vulnerabilities looks for those that the code calls. Where vuln.go.dev cannot be reached, it takes the database from its Go module, which
# the module proxy has. Those of the standard library are printed only: the Go that builds decides them.
vulnerabilities() {
	local found=$scratch/vulnerabilities status=0
	tool govulncheck "${database[@]}" ./... >"$found" 2>&1 || status=$?
	if grep -q '^govulncheck: fetching vulnerabilities' "$found"; then
		database=$(go mod download -json golang.org/x/vulndb@latest | sed -n 's/^\t"Dir": "\(.*\)",$/\1/p')
		[ -n "$database" ] || { echo "the database of vulnerabilities cannot be reached" && return $skip; }
		database=(-db "file://$database/data/osv")
		status=0
		tool govulncheck "${database[@]}" ./... >"$found" 2>&1 || status=$?
	fi
	# 3 means that it has found something.
	[ $status = 0 ] || [ $status = 3 ] || fail "$(cat "$found")" || return
	go list -m && awk '
		/^Vulnerability #/ { id = $3 }
		/^  (Module|Standard library)/ { where = $0 }
		/^    Fixed in:/ { print id ":" where "," substr($0, 4) }' "$found" | sort -u >"$found.list"
	cat "$found.list"
	! grep -v 'Standard library' "$found.list" | grep -vFf <(printf '%s:\n' "${accepted[@]}") ||
		fail "these are to be mended, or to be accepted with a reason"
}

# go-licenses warns of each package with assembly, on two lines, and finds its licence all the same.
licences_allowed() {
	tool go-licenses check ./... --ignore "$library" --allowed_licenses="$licences" 2>"$scratch/licences" ||
		fail "$(grep -v 'contains non-Go code\|\.s$' "$scratch/licences")" || return
	echo "all of $licences"
}

api_compatible() {
	local last module changes
	last=$(last_tag)
	[ -n "$last" ] || { echo "no version tag yet: there is no API to compare with" && return $skip; }
	module=$(git rev-parse --show-prefix)
	[ -d "$scratch/last" ] || git worktree add -q --detach "$scratch/last" "$last" || return
	(cd "$scratch/last/$module" && write_api "$scratch/last.api") && write_api "$scratch/now.api" || return
	changes=$(tool apidiff -m "$scratch/last.api" "$scratch/now.api" 2> >(grep -v '^Ignoring internal' >&2)) || return
	printf 'since %s:\n%s\n' "$last" "${changes:-no change}"
	! grep -q 'ncompatible changes:' <<<"$changes" || may_break "$last"
}

# It makes all modules of the last commit as they will be, installs the command, and builds programs with the others.
later_modules_install() {
	go -C tools run ./installcheck "${version:-v0.0.1}" "$PWD/$prepared" 2>"$scratch/install" ||
		fail "$(grep -v '^go: \(downloading\|added\)' "$scratch/install")" || return
	echo "wrote what they need at their tags below $prepared"
}

write_api() {
	tool apidiff -m -w "$1" "$(go list -m)"
}

# may_break reports whether the version may have an API that is incompatible with that of a tag. While the major version
# is 0, a minor version may.
may_break() {
	needs_version || return
	local last now
	IFS=. read -ra last <<<"${1#v}"
	IFS=. read -ra now <<<"${version#v}"
	[ "${now[0]}" != "${last[0]}" ] || { [ "${now[0]}" = 0 ] && [ "${now[1]}" != "${last[1]}" ]; } ||
		fail "$version must not change the API of $1 incompatibly"
}

bill_of_materials() {
	local module file
	module=$(go list -m) || return
	file=$(git rev-parse --show-toplevel)/bin/$(basename "$module").cdx.json
	mkdir -p "$(dirname "$file")"
	tool cyclonedx-gomod mod -json -licenses -output "$file" && echo "wrote $file"
}

main
