package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// serve runs a server with the tools that test/interop/served.ts describes.
func serve(transport string) error {
	accept := func(context.Context, *mcp.SubscribeRequest) error { return nil }
	end := func(context.Context, *mcp.UnsubscribeRequest) error { return nil }
	server := mcp.NewServer(&mcp.Implementation{Name: "interop", Version: "1"}, &mcp.ServerOptions{
		SubscribeHandler: accept, UnsubscribeHandler: end,
	})
	server.AddResource(&mcp.Resource{URI: watched, Name: "watched"},
		func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
			contents := []*mcp.ResourceContents{{URI: watched, Text: "text of a resource"}}
			return &mcp.ReadResourceResult{Contents: contents}, nil
		})
	addTools(server)
	if transport == "stdio" {
		return server.Run(context.Background(), &mcp.StdioTransport{})
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Printf("http://%s/\n", listener.Addr())
	options := &mcp.StreamableHTTPOptions{Stateless: transport == "stateless"}
	if transport == "resumable" {
		options.EventStore = mcp.NewMemoryEventStore(nil)
	}
	return http.Serve(listener, mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, options))
}

type handler = func(context.Context, *mcp.CallToolRequest, map[string]any) *mcp.CallToolResult

func text(format string, values ...any) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: fmt.Sprintf(format, values...)}}}
}

func addTools(server *mcp.Server) {
	var cancelled struct {
		sync.Mutex
		names []any
	}
	cancelled.names = []any{}
	tools := map[string]handler{
		"test_simple_text": func(context.Context, *mcp.CallToolRequest, map[string]any) *mcp.CallToolResult {
			return text("plain text")
		},
		"test_tool_with_progress": func(ctx context.Context, call *mcp.CallToolRequest, _ map[string]any) *mcp.CallToolResult {
			for _, step := range []float64{0, 50, 100} {
				progress(ctx, call, step)
			}
			return text("done")
		},
		"test_reconnection": func(_ context.Context, call *mcp.CallToolRequest, _ map[string]any) *mcp.CallToolResult {
			call.Extra.CloseSSEStream(mcp.CloseSSEStreamArgs{RetryAfter: 10 * time.Millisecond})
			return text("fetched later")
		},
		"test_sampling":    sample,
		"test_elicitation": elicit,
		"test_trigger_resource_update": func(ctx context.Context, _ *mcp.CallToolRequest, _ map[string]any) *mcp.CallToolResult {
			if err := server.ResourceUpdated(ctx, &mcp.ResourceUpdatedNotificationParams{URI: watched}); err != nil {
				return text("%v", err)
			}
			return text("announced")
		},
		"test_wait": func(ctx context.Context, call *mcp.CallToolRequest, arguments map[string]any) *mcp.CallToolResult {
			progress(ctx, call, 1)
			select {
			case <-ctx.Done():
			case <-time.After(patience):
				return text("not cancelled")
			}
			cancelled.Lock()
			defer cancelled.Unlock()
			cancelled.names = append(cancelled.names, arguments["name"])
			return text("cancelled")
		},
		"test_cancelled": func(context.Context, *mcp.CallToolRequest, map[string]any) *mcp.CallToolResult {
			cancelled.Lock()
			defer cancelled.Unlock()
			names, _ := json.Marshal(cancelled.names)
			return text("%s", names)
		},
	}
	for name, handle := range tools {
		tool := &mcp.Tool{Name: name, InputSchema: map[string]any{"type": "object"}}
		mcp.AddTool(server, tool,
			func(ctx context.Context, call *mcp.CallToolRequest, arguments map[string]any) (*mcp.CallToolResult, any, error) {
				return handle(ctx, call, arguments), nil, nil
			})
	}
}

func progress(ctx context.Context, call *mcp.CallToolRequest, step float64) {
	token := call.Params.GetProgressToken()
	if token == nil {
		return
	}
	_ = call.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: token, Progress: step})
}

// sample asks for input in the result, as in 2026-07-28; the SDK turns it into a request to a client with a session.
func sample(_ context.Context, call *mcp.CallToolRequest, arguments map[string]any) *mcp.CallToolResult {
	if answer, ok := call.Params.InputResponses["sample"].(*mcp.CreateMessageWithToolsResult); ok {
		return text("%s", answer.Content[0].(*mcp.TextContent).Text)
	}
	prompt := &mcp.TextContent{Text: fmt.Sprint(arguments["prompt"])}
	return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{"sample": &mcp.CreateMessageParams{
		Messages: []*mcp.SamplingMessage{{Role: "user", Content: prompt}}, MaxTokens: 100,
	}}}
}

func elicit(_ context.Context, call *mcp.CallToolRequest, arguments map[string]any) *mcp.CallToolResult {
	if answer, ok := call.Params.InputResponses["elicit"].(*mcp.ElicitResult); ok {
		return text("%s %v", answer.Action, answer.Content["username"])
	}
	username := map[string]any{"username": map[string]any{"type": "string"}}
	return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{"elicit": &mcp.ElicitParams{
		Message:         fmt.Sprint(arguments["message"]),
		RequestedSchema: map[string]any{"type": "object", "properties": username},
	}}}
}
