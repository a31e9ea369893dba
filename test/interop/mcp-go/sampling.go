package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
)

// model answers sampling requests. Its time depends on the prompt: the first of several parallel calls is the slowest.
type model struct{}

func (model) CreateMessage(ctx context.Context, request mcp.CreateMessageRequest) (*mcp.CreateMessageResult, error) {
	number, wait, err := parse(mcp.GetTextFromContent(request.Messages[0].Content))
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
