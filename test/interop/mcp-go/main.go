// Command interop is an MCP client or server, made with the Go SDK mark3labs/mcp-go as its documentation shows it.
//
//	interop client URL COUNT TOOL [listen]   calls TOOL so many times at once; one JSON line per result
//	interop server                           a server on stdin and stdout, whose tools ask the client for sampling
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
)

// patience bounds every wait of this program: what hangs is a failure.
const patience = 20 * time.Second

func main() {
	var err error
	switch {
	case len(os.Args) == 2 && os.Args[1] == "server":
		err = serve()
	case len(os.Args) >= 5 && os.Args[1] == "client":
		err = call(os.Args[2], os.Args[3], os.Args[4], len(os.Args) > 5)
	default:
		err = fmt.Errorf("usage: interop server | interop client URL COUNT TOOL [listen]")
	}
	if err != nil {
		log.Fatal(err)
	}
}

// model answers sampling requests. Its time depends on the prompt: the first of several parallel calls is the slowest.
type model struct{}

func (model) CreateMessage(ctx context.Context, request mcp.CreateMessageRequest) (*mcp.CreateMessageResult, error) {
	content, _ := request.Messages[0].Content.(mcp.TextContent)
	number, wait, err := parse(content.Text)
	if err != nil {
		return nil, err
	}
	select {
	case <-time.After(wait):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return &mcp.CreateMessageResult{
		SamplingMessage: mcp.SamplingMessage{
			Role:    mcp.RoleAssistant,
			Content: mcp.TextContent{Type: "text", Text: fmt.Sprintf("answer %d", number)},
		},
		Model:      "test",
		StopReason: "endTurn",
	}, nil
}

// parse reads a prompt, as callOnce writes it.
func parse(prompt string) (number int, wait time.Duration, err error) {
	var ms int
	if _, err := fmt.Sscanf(prompt, "prompt %d after %d ms", &number, &ms); err != nil {
		return 0, 0, fmt.Errorf("unexpected prompt %q", prompt)
	}
	return number, time.Duration(ms) * time.Millisecond, nil
}

type outcome struct {
	Number  int    `json:"number"`
	Text    string `json:"text,omitempty"`
	IsError bool   `json:"isError,omitempty"`
	Problem string `json:"problem,omitempty"`
}

func call(url, times, tool string, listens bool) error {
	count, err := strconv.Atoi(times)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var options []transport.StreamableHTTPCOption
	if listens {
		options = append(options, transport.WithContinuousListening())
	}
	http, err := transport.NewStreamableHTTP(url, options...)
	if err != nil {
		return err
	}
	c := client.NewClient(http, client.WithSamplingHandler(model{}))
	defer c.Close()
	if err := c.Start(ctx); err != nil {
		return fmt.Errorf("start: %w", err)
	}
	begin := mcp.InitializeRequest{Params: mcp.InitializeParams{
		ProtocolVersion: mcp.LATEST_PROTOCOL_VERSION,
		ClientInfo:      mcp.Implementation{Name: "interop", Version: "1"},
	}}
	if _, err := c.Initialize(ctx, begin); err != nil {
		return fmt.Errorf("initialize: %w", err)
	}
	outcomes := make([]outcome, count)
	var running sync.WaitGroup
	for number := range count {
		running.Go(func() { outcomes[number] = callOnce(ctx, c, tool, number, count) })
	}
	running.Wait()
	lines := json.NewEncoder(os.Stdout)
	for _, one := range outcomes {
		if err := lines.Encode(one); err != nil {
			return err
		}
	}
	return nil
}

func callOnce(ctx context.Context, c *client.Client, tool string, number, count int) outcome {
	request := mcp.CallToolRequest{Params: mcp.CallToolParams{
		Name:      tool,
		Arguments: map[string]any{"prompt": fmt.Sprintf("prompt %d after %d ms", number, 150*(count-number))},
	}}
	result, err := c.CallTool(ctx, request)
	if err != nil {
		return outcome{Number: number, Problem: err.Error()}
	}
	return outcome{Number: number, Text: mcp.GetTextFromContent(result.Content[0]), IsError: result.IsError}
}

func serve() error {
	s := server.NewMCPServer("interop", "1")
	s.EnableSampling()
	add := func(name string, isLate bool) {
		tool := mcp.NewTool(name, mcp.WithString("prompt", mcp.Required()))
		s.AddTool(tool, func(ctx context.Context, request mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			prompt, err := request.RequireString("prompt")
			if err != nil {
				return nil, err
			}
			if _, wait, err := parse(prompt); err == nil && isLate {
				time.Sleep(wait)
			}
			return sample(ctx, prompt)
		})
	}
	add("test_sampling", false)
	// The first of several calls asks last, so its request does not go out on the stream of its own call.
	add("test_sampling_crosswise", true)
	return server.ServeStdio(s)
}

func sample(ctx context.Context, prompt string) (*mcp.CallToolResult, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	result, err := server.ServerFromContext(ctx).RequestSampling(ctx, mcp.CreateMessageRequest{
		CreateMessageParams: mcp.CreateMessageParams{
			Messages: []mcp.SamplingMessage{
				{Role: mcp.RoleUser, Content: mcp.TextContent{Type: "text", Text: prompt}},
			},
			MaxTokens: 100,
		},
	})
	if err != nil {
		return mcp.NewToolResultError(err.Error()), nil
	}
	return mcp.NewToolResultText("LLM response: " + mcp.GetTextFromContent(result.Content)), nil
}
