package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// report has the members that test/interop/report.ts describes.
type report struct {
	Revision    string    `json:"revision"`
	Tools       int       `json:"tools"`
	Call        string    `json:"call"`
	Resource    string    `json:"resource"`
	Prompt      string    `json:"prompt"`
	Completion  []string  `json:"completion"`
	Progress    []float64 `json:"progress"`
	Elicitation string    `json:"elicitation"`
	Sampling    string    `json:"sampling"`
	Updated     string    `json:"updated"`
	Cancelled   bool      `json:"cancelled"`
}

// steps collects progress notifications.
type steps struct {
	sync.Mutex
	values []float64
	any    chan struct{}
}

func (s *steps) add(value float64) {
	s.Lock()
	defer s.Unlock()
	s.values = append(s.values, value)
	select {
	case s.any <- struct{}{}:
	default:
	}
}

func run(ctx context.Context, url, revision string) (*report, error) {
	progress := &steps{any: make(chan struct{}, 1)}
	updated := make(chan string, 8)
	client := mcp.NewClient(&mcp.Implementation{Name: "interop", Version: "1"}, &mcp.ClientOptions{
		CreateMessageHandler: func(context.Context, *mcp.CreateMessageRequest) (*mcp.CreateMessageResult, error) {
			return &mcp.CreateMessageResult{
				Model: "test", Role: "assistant", Content: &mcp.TextContent{Text: "sampled"},
			}, nil
		},
		ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			content := map[string]any{"username": "ada", "email": "ada@a.test"}
			return &mcp.ElicitResult{Action: "accept", Content: content}, nil
		},
		ResourceUpdatedHandler: func(_ context.Context, request *mcp.ResourceUpdatedNotificationRequest) {
			updated <- request.Params.URI
		},
		ProgressNotificationHandler: func(_ context.Context, request *mcp.ProgressNotificationClientRequest) {
			progress.add(request.Params.Progress)
		},
	})
	session, err := client.Connect(ctx, &mcp.StreamableClientTransport{Endpoint: url},
		&mcp.ClientSessionOptions{ProtocolVersion: revision})
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	defer session.Close()
	r := &report{Revision: session.InitializeResult().ProtocolVersion}

	tools, err := session.ListTools(ctx, nil)
	if err != nil {
		return nil, fmt.Errorf("tools/list: %w", err)
	}
	r.Tools = len(tools.Tools)
	call := func(name string, arguments map[string]any) string {
		if arguments == nil {
			// A nil map would be sent as null.
			arguments = map[string]any{}
		}
		params := &mcp.CallToolParams{Name: name, Arguments: arguments}
		params.SetProgressToken(name)
		result, err := session.CallTool(ctx, params)
		if err != nil {
			return err.Error()
		}
		return result.Content[0].(*mcp.TextContent).Text
	}
	r.Call = call("test_simple_text", nil)
	resource, err := session.ReadResource(ctx, &mcp.ReadResourceParams{URI: "test://static-text"})
	if err != nil {
		return nil, fmt.Errorf("resources/read: %w", err)
	}
	r.Resource = resource.Contents[0].Text
	const name = "test_prompt_with_arguments"
	prompt, err := session.GetPrompt(ctx, &mcp.GetPromptParams{
		Name: name, Arguments: map[string]string{"arg1": "a", "arg2": "b"},
	})
	if err != nil {
		return nil, fmt.Errorf("prompts/get: %w", err)
	}
	r.Prompt = prompt.Messages[0].Content.(*mcp.TextContent).Text
	completion, err := session.Complete(ctx, &mcp.CompleteParams{
		Ref:      &mcp.CompleteReference{Type: "ref/prompt", Name: name},
		Argument: mcp.CompleteParamsArgument{Name: "arg1", Value: "par"},
	})
	if err != nil {
		return nil, fmt.Errorf("completion/complete: %w", err)
	}
	r.Completion = completion.Completion.Values
	call("test_tool_with_progress", nil)
	// The SDK handles notifications beside responses.
	for ctx.Err() == nil && len(r.Progress) < 3 {
		time.Sleep(time.Millisecond)
		progress.Lock()
		r.Progress = progress.values
		progress.Unlock()
	}
	r.Elicitation = call("test_elicitation", map[string]any{"message": "Who?"})
	r.Sampling = call("test_sampling", map[string]any{"prompt": "Say it"})
	if err := session.Subscribe(ctx, &mcp.SubscribeParams{URI: watched}); err != nil {
		return nil, fmt.Errorf("subscribe: %w", err)
	}
	call("test_trigger_resource_update", nil)
	select {
	case r.Updated = <-updated:
	case <-ctx.Done():
		return r, nil
	}
	r.Cancelled = cancelled(ctx, session, progress, call)
	return r, nil
}

// cancelled cancels a call once it has begun, and waits until the server says so.
func cancelled(
	ctx context.Context, session *mcp.ClientSession, progress *steps, call func(string, map[string]any) string,
) bool {
	name := fmt.Sprintf("go %d", os.Getpid())
	calling, cancel := context.WithCancel(ctx)
	for len(progress.any) > 0 {
		<-progress.any
	}
	go func() {
		<-progress.any
		cancel()
	}()
	params := &mcp.CallToolParams{Name: "test_wait", Arguments: map[string]any{"name": name}}
	params.SetProgressToken("waiting")
	if result, err := session.CallTool(calling, params); err == nil {
		log.Printf("a call that was cancelled has a result: %v", result)
		return false
	}
	for ctx.Err() == nil {
		var names []string
		text := call("test_cancelled", nil)
		if err := json.Unmarshal([]byte(text), &names); err != nil {
			log.Printf("test_cancelled: %s", text)
			return false
		}
		for _, one := range names {
			if one == name {
				return true
			}
		}
		time.Sleep(10 * time.Millisecond)
	}
	return false
}
