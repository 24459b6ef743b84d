package holdfast_test

import (
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

// listen prints the signals that it receives, until one of them is USR2.
func listen() {
	incoming := make(chan os.Signal, 64)
	signal.Notify(incoming, syscall.SIGHUP, syscall.SIGINT, syscall.SIGTERM, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGWINCH)
	fmt.Println("ready")
	for sig := range incoming {
		fmt.Println(sig)
		if sig == syscall.SIGUSR2 {
			return
		}
	}
}
