package main

import "github.com/holdfast-go/holdfast/cmd/holdfast/internal/cli"

func main() { cli.Run() }
