#!/usr/bin/env bash
# usage: make sizes
#
# Prints how large the house is: the files of core, exported names, lines of code, and words of the pages. It judges nothing.
set -euo pipefail
cd "$(dirname "$0")/.."

# lines counts the lines of Go without tests below folders, comments included, and of Lua if there is any.
lines() {
	git ls-files "$@" | grep -E '\.(go|lua)$' | grep -vE '_test\.go$|/testdata/' | tr '\n' '\0' | xargs -0 cat | wc -l
}

# words counts the words of pages.
words() {
	cat "$@" | wc -w
}

# names prints functions, types and methods per package, without Error, Unwrap and Is, and their sum.
names() {
	awk '
		$1 == "package" { package = $2; sub("github.com/holdfast-go/holdfast/", "", package) }
		/^\t(func|type|method) / && !/^\ttype [^:]*: / && !/^\tmethod \([^)]*\) (Error|Unwrap|Is)\(/ { n[package]++; all++ }
		END { for (p in n) printf "  %-28s%6d\n", p, n[p] | "sort"; close("sort"); printf "  %-28s%6d\n", "all", all }' "$@"
}

row() {
	printf '  %-28s%6d\n' "$1" "$2"
}

entries=$(git ls-files core | cut -d/ -f2 | sort -u)
echo "ls core:"
row "entries" "$(wc -l <<<"$entries")"
row "of them tests" "$(grep -c '_test\.go$' <<<"$entries")"
echo "exported functions, types and methods without Error, Unwrap, Is:"
# shellcheck disable=SC2046
names $(git ls-files 'api/*.txt')
echo "lines of Go and Lua outside of tests, with comments:"
row "core" "$(lines core)"
row "internal" "$(lines internal)"
for folder in middleware/nethttp middleware/gin middleware/echo middleware/echo4 middleware/fiber middleware/grpc middleware/connect \
	middleware/internal asynqlock cronlock gocronlock msglock sqllock otellock inspector lockdebug locktest cmd examples; do
	row "$folder" "$(lines $folder)"
done
row "tests of core and tests/" "$(git ls-files core tests | grep '_test\.go$\|^tests/.*\.go$' | tr '\n' '\0' | xargs -0 cat | wc -l)"
row "lab" "$(lines lab)"
echo "words:"
row "README.md" "$(words README.md)"
row "README.zh-CN.md" "$(words README.zh-CN.md)"
row "CHANGELOG.md" "$(words CHANGELOG.md)"
row "docs" "$(words docs/*.md)"
row "of them generated" "$(words docs/defaults.md docs/log-lines.md)"
