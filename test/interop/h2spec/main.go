// The conformance checks of h2spec against one port. Prints its report and exits with 1 if a check fails.
package main

import (
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/summerwind/h2spec"
	"github.com/summerwind/h2spec/config"
)

func main() {
	port, err := strconv.Atoi(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	passed, err := h2spec.Run(&config.Config{
		Host:         "127.0.0.1",
		Port:         port,
		Path:         "/",
		// The checks that a server passes by doing nothing wait for this long; a busy machine answers later.
		Timeout:      5 * time.Second,
		MaxHeaderLen: 4000,
		Strict:       true,
		TLS:          true,
		Insecure:     true,
		JUnitReport:  os.Args[2],
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	if !passed {
		os.Exit(1)
	}
}
