//go:build !race

package coretest

const UnderRace = false
