// Command interop is an MCP client or server, made with the official Go SDK.
//
//	interop URL REVISION   uses the everything fixture at URL, where it negotiates at most REVISION, and prints what it got
//	interop stdio          a server on stdin and stdout
//	interop http           a server on a free port of 127.0.0.1, with sessions; prints its URL
//	interop resumable      the same with event ids, so that clients can fetch the rest of a stream
//	interop stateless      the same without sessions, for revision 2026-07-28
package main

import (
	"context"
	"encoding/json"
	"errors"
	"log"
	"os"
	"time"
)

// patience bounds the whole client, and each wait of the server: what hangs is a failure.
const patience = 20 * time.Second

const watched = "test://watched-resource"

func main() {
	if err := start(os.Args[1:]); err != nil {
		log.Fatal(err)
	}
}

func start(args []string) error {
	switch len(args) {
	case 1:
		return serve(args[0])
	case 2:
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		result, err := run(ctx, args[0], args[1])
		if err != nil {
			return err
		}
		return json.NewEncoder(os.Stdout).Encode(result)
	default:
		return errors.New("usage: interop URL REVISION | interop stdio|http|resumable|stateless")
	}
}
