// Command interop is an MCP client or server, made with the Go SDK mark3labs/mcp-go as its documentation shows it.
//
//	interop client URL COUNT TOOL [listen]   calls TOOL so many times at once; one JSON line per result
//	interop use URL REVISION                 uses the everything fixture at URL, at REVISION, and prints what it got
//	interop stdio                            a server on stdin and stdout
//	interop http                             a server on a free port of 127.0.0.1; prints its URL
package main

import (
	"context"
	"encoding/json"
	"errors"
	"log"
	"os"
	"time"
)

// patience bounds every wait of this program: what hangs is a failure.
const patience = 20 * time.Second

const watched = "test://watched-resource"

func main() {
	if err := start(os.Args[1:]); err != nil {
		log.Fatal(err)
	}
}

func start(args []string) error {
	switch {
	case len(args) == 1:
		return serve(args[0])
	case len(args) == 3 && args[0] == "use":
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		result, err := use(ctx, args[1], args[2])
		if err != nil {
			return err
		}
		return json.NewEncoder(os.Stdout).Encode(result)
	case len(args) >= 4 && args[0] == "client":
		return call(args[1], args[2], args[3], len(args) > 4)
	default:
		return errors.New("usage: interop stdio|http | interop use URL REVISION | interop client URL COUNT TOOL [listen]")
	}
}
