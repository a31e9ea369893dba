package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
)

// serve runs a server with the tools that test/interop/served.ts describes, and one for several sampling calls at once.
func serve(transport string) error {
	s := server.NewMCPServer("interop", "1",
		server.WithResourceCapabilities(true, true), server.WithToolCapabilities(true), server.WithElicitation())
	s.EnableSampling()
	s.AddResource(mcp.NewResource(watched, "watched"),
		func(context.Context, mcp.ReadResourceRequest) ([]mcp.ResourceContents, error) {
			return []mcp.ResourceContents{mcp.TextResourceContents{URI: watched, Text: "text of a resource"}}, nil
		})
	addTools(s)
	if transport == "stdio" {
		return server.ServeStdio(s)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Printf("http://%s/mcp\n", listener.Addr())
	return http.Serve(listener, server.NewStreamableHTTPServer(s))
}

func addTools(s *server.MCPServer) {
	var cancelled struct {
		sync.Mutex
		names []string
	}
	cancelled.names = []string{}
	tools := map[string]server.ToolHandlerFunc{
		"test_simple_text": func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return mcp.NewToolResultText("plain text"), nil
		},
		"test_tool_with_progress": func(ctx context.Context, call mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			for _, step := range []float64{0, 50, 100} {
				progress(ctx, s, call, step)
			}
			return mcp.NewToolResultText("done"), nil
		},
		"test_sampling": sample,
		// The first of several calls asks last, so its request does not go out on the stream of its own call.
		"test_sampling_crosswise": func(ctx context.Context, call mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			if _, wait, err := parse(call.GetString("prompt", "")); err == nil {
				time.Sleep(wait)
			}
			return sample(ctx, call)
		},
		"test_elicitation": elicit,
		"test_trigger_resource_update": func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			s.SendNotificationToAllClients(mcp.MethodNotificationResourceUpdated, map[string]any{"uri": watched})
			return mcp.NewToolResultText("announced"), nil
		},
		"test_wait": func(ctx context.Context, call mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			progress(ctx, s, call, 1)
			select {
			case <-ctx.Done():
			case <-time.After(patience):
				return mcp.NewToolResultText("not cancelled"), nil
			}
			cancelled.Lock()
			defer cancelled.Unlock()
			cancelled.names = append(cancelled.names, call.GetString("name", ""))
			return mcp.NewToolResultText("cancelled"), nil
		},
		"test_cancelled": func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			cancelled.Lock()
			defer cancelled.Unlock()
			names, err := json.Marshal(cancelled.names)
			return mcp.NewToolResultText(string(names)), err
		},
	}
	for name, handle := range tools {
		s.AddTool(mcp.NewTool(name), handle)
	}
}

func progress(ctx context.Context, s *server.MCPServer, call mcp.CallToolRequest, step float64) {
	if call.Params.Meta == nil || call.Params.Meta.ProgressToken == nil {
		return
	}
	_ = s.SendNotificationToClient(ctx, "notifications/progress",
		map[string]any{"progressToken": call.Params.Meta.ProgressToken, "progress": step})
	// Notifications that are still queued when a tool returns are lost, and nothing says when they are sent.
	time.Sleep(50 * time.Millisecond)
}

func sample(ctx context.Context, call mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	params := mcp.CreateMessageParams{
		Messages: []mcp.SamplingMessage{
			{Role: mcp.RoleUser, Content: mcp.TextContent{Type: "text", Text: call.GetString("prompt", "")}},
		},
		MaxTokens: 100,
	}
	if server.IsModernRequest(ctx) {
		answer := server.SamplingResponse(call.Params.InputResponses, "sample")
		if answer == nil {
			return server.NewInputRequestBuilder("").Sample("sample", params).ToolResult(), nil
		}
		return mcp.NewToolResultText("LLM response: " + mcp.GetTextFromContent(answer.Content)), nil
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	result, err := server.ServerFromContext(ctx).RequestSampling(ctx, mcp.CreateMessageRequest{CreateMessageParams: params})
	if err != nil {
		return mcp.NewToolResultError(err.Error()), nil
	}
	return mcp.NewToolResultText("LLM response: " + mcp.GetTextFromContent(result.Content)), nil
}

// elicit asks for input in the result, as in 2026-07-28; the SDK turns it into a request to a client with a session.
func elicit(_ context.Context, call mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	if answer := server.ElicitationResponse(call.Params.InputResponses, "elicit"); answer != nil {
		content, _ := answer.Content.(map[string]any)
		return mcp.NewToolResultText(fmt.Sprintf("%s %v", answer.Action, content["username"])), nil
	}
	username := map[string]any{"username": map[string]any{"type": "string"}}
	return server.NewInputRequestBuilder("").Elicit("elicit", mcp.ElicitationParams{
		Mode:            mcp.ElicitationModeForm,
		Message:         call.GetString("message", ""),
		RequestedSchema: map[string]any{"type": "object", "properties": username},
	}).ToolResult(), nil
}
