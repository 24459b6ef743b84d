#!/usr/bin/env bash
# usage: tools/changelog-section.sh 0.1.0
#
# Prints what CHANGELOG.md says of a version, or of Unreleased, without the heading and the blank lines around it.
set -euo pipefail
cd "$(dirname "$0")/.."

# The command substitution drops the blank lines at the end.
text=$(awk -v heading="## [$1]" '/^## \[/ { found = index($0, heading) == 1; next } /^\[.*\]: / { next } found' CHANGELOG.md |
	sed '/./,$!d')
[ -z "$text" ] || printf '%s\n' "$text"
