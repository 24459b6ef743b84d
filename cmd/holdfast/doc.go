// Command holdfast runs commands under distributed locks on Redis, and shows and frees locks. See docs/command.md.
package main
