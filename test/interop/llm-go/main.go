// Command interop uses a model of the gateway at URL with an official client, and prints what came of each call as one JSON
// object.
//
//	interop openai|anthropic URL MODEL
package main

import (
	"context"
	"encoding/json"
	"errors"
	"log"
	"os"
	"time"
)

// patience bounds the whole program: what hangs is a failure.
const patience = 40 * time.Second

const key = "sk-client"

// call is one use of a client; its result goes into the report, or its error.
type call func(ctx context.Context) (any, error)

// raised is the outcome of a call that failed.
type raised struct {
	Status  int    `json:"status"`
	Type    string `json:"type"`
	Message string `json:"message"`
}

// city is the schema of the argument of the tool that is called.
var city = map[string]any{
	"type":                 "object",
	"properties":           map[string]any{"city": map[string]any{"type": "string"}},
	"required":             []string{"city"},
	"additionalProperties": false,
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		log.Fatal(err)
	}
}

func run(args []string) error {
	if len(args) != 3 {
		return errors.New("usage: interop openai|anthropic URL MODEL")
	}
	clients := map[string]func(url, model string) (map[string]call, func(error) raised){
		"openai": openaiCalls, "anthropic": anthropicCalls,
	}
	client, ok := clients[args[0]]
	if !ok {
		return errors.New("there is no client " + args[0])
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	calls, describe := client(args[1], args[2])
	report := map[string]any{}
	for name, one := range calls {
		result, err := one(ctx)
		if err != nil {
			report[name] = describe(err)
		} else {
			report[name] = result
		}
	}
	return json.NewEncoder(os.Stdout).Encode(report)
}
