package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
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

// person answers every request of the server.
type person struct{}

func (person) CreateMessage(context.Context, mcp.CreateMessageRequest) (*mcp.CreateMessageResult, error) {
	return &mcp.CreateMessageResult{
		SamplingMessage: mcp.SamplingMessage{
			Role: mcp.RoleAssistant, Content: mcp.TextContent{Type: "text", Text: "sampled"},
		},
		Model: "test",
	}, nil
}

func (person) Elicit(context.Context, mcp.ElicitationRequest) (*mcp.ElicitationResult, error) {
	return &mcp.ElicitationResult{ElicitationResponse: mcp.ElicitationResponse{
		Action:  mcp.ElicitationResponseActionAccept,
		Content: map[string]any{"username": "ada", "email": "ada@a.test"},
	}}, nil
}

// told collects notifications.
type told struct {
	sync.Mutex
	steps   []float64
	updated []string
}

func (t *told) add(notification mcp.JSONRPCNotification) {
	t.Lock()
	defer t.Unlock()
	fields := notification.Params.AdditionalFields
	switch notification.Method {
	case "notifications/progress":
		if step, ok := fields["progress"].(float64); ok {
			t.steps = append(t.steps, step)
		}
	case mcp.MethodNotificationResourceUpdated:
		if uri, ok := fields["uri"].(string); ok {
			t.updated = append(t.updated, uri)
		}
	}
}

// until waits for a condition on what was told.
func (t *told) until(ctx context.Context, condition func() bool) {
	for ctx.Err() == nil {
		t.Lock()
		isTrue := condition()
		t.Unlock()
		if isTrue {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

func use(ctx context.Context, url, revision string) (*report, error) {
	isModern := mcp.IsModernProtocol(revision)
	var options []transport.StreamableHTTPCOption
	if !isModern {
		options = append(options, transport.WithContinuousListening())
	}
	http, err := transport.NewStreamableHTTP(url, options...)
	if err != nil {
		return nil, err
	}
	c := client.NewClient(http, client.WithSamplingHandler(person{}), client.WithElicitationHandler(person{}),
		client.WithProtocolVersion(revision))
	defer c.Close()
	t := &told{}
	c.OnNotification(t.add)
	if err := c.Start(ctx); err != nil {
		return nil, fmt.Errorf("start: %w", err)
	}
	begin := mcp.InitializeRequest{Params: mcp.InitializeParams{
		ProtocolVersion: revision, ClientInfo: mcp.Implementation{Name: "interop", Version: "1"},
	}}
	if _, err := c.Initialize(ctx, begin); err != nil {
		return nil, fmt.Errorf("initialize: %w", err)
	}
	r := &report{Revision: c.ProtocolVersion()}
	if err := r.read(ctx, c); err != nil {
		return nil, err
	}
	r.Call = callTool(ctx, c, "test_simple_text", nil)
	t.Lock()
	t.steps = nil
	t.Unlock()
	callTool(ctx, c, "test_tool_with_progress", nil)
	t.until(ctx, func() bool { return len(t.steps) >= 3 })
	r.Progress = slices.Clone(t.steps)
	r.Elicitation = callTool(ctx, c, "test_elicitation", map[string]any{"message": "Who?"})
	r.Sampling = callTool(ctx, c, "test_sampling", map[string]any{"prompt": "Say it"})
	if r.Updated, err = update(ctx, c, t, isModern); err != nil {
		return nil, err
	}
	r.Cancelled = cancelled(ctx, c, t)
	return r, nil
}

// read fills in what takes one request each.
func (r *report) read(ctx context.Context, c *client.Client) error {
	tools, err := c.ListTools(ctx, mcp.ListToolsRequest{})
	if err != nil {
		return fmt.Errorf("tools/list: %w", err)
	}
	r.Tools = len(tools.Tools)
	resource, err := c.ReadResource(ctx, mcp.ReadResourceRequest{
		Params: mcp.ReadResourceParams{URI: "test://static-text"},
	})
	if err != nil {
		return fmt.Errorf("resources/read: %w", err)
	}
	r.Resource = resource.Contents[0].(mcp.TextResourceContents).Text
	const name = "test_prompt_with_arguments"
	prompt, err := c.GetPrompt(ctx, mcp.GetPromptRequest{
		Params: mcp.GetPromptParams{Name: name, Arguments: map[string]string{"arg1": "a", "arg2": "b"}},
	})
	if err != nil {
		return fmt.Errorf("prompts/get: %w", err)
	}
	r.Prompt = mcp.GetTextFromContent(prompt.Messages[0].Content)
	completion, err := c.Complete(ctx, mcp.CompleteRequest{Params: mcp.CompleteParams{
		Ref:      mcp.PromptReference{Type: "ref/prompt", Name: name},
		Argument: mcp.CompleteArgument{Name: "arg1", Value: "par"},
	}})
	if err != nil {
		return fmt.Errorf("completion/complete: %w", err)
	}
	r.Completion = completion.Completion.Values
	return nil
}

// callTool returns the text of the result, or of the error.
func callTool(ctx context.Context, c *client.Client, name string, arguments map[string]any) string {
	if arguments == nil {
		// A nil map would be sent as null.
		arguments = map[string]any{}
	}
	result, err := c.CallTool(ctx, mcp.CallToolRequest{Params: mcp.CallToolParams{
		Name: name, Arguments: arguments, Meta: &mcp.Meta{ProgressToken: name},
	}})
	if err != nil {
		return err.Error()
	}
	return mcp.GetTextFromContent(result.Content[0])
}

// update subscribes to a resource, and returns the URI of the one that changed.
func update(ctx context.Context, c *client.Client, t *told, isModern bool) (string, error) {
	if isModern {
		// Nothing says when the server has acknowledged: the trigger is repeated below.
		filter := mcp.SubscriptionFilter{ResourceSubscriptions: []string{watched}}
		stop, err := c.ListenAsync(ctx, filter, func(err error) { log.Printf("listen: %v", err) })
		if err != nil {
			return "", err
		}
		defer stop()
	} else if err := c.Subscribe(ctx, mcp.SubscribeRequest{Params: mcp.SubscribeParams{URI: watched}}); err != nil {
		return "", fmt.Errorf("subscribe: %w", err)
	}
	for ctx.Err() == nil {
		callTool(ctx, c, "test_trigger_resource_update", nil)
		waiting, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
		t.until(waiting, func() bool { return len(t.updated) > 0 })
		cancel()
		if len(t.updated) > 0 {
			return t.updated[0], nil
		}
	}
	return "", ctx.Err()
}

// cancelled cancels a call once it has begun, and waits until the server says so.
func cancelled(ctx context.Context, c *client.Client, t *told) bool {
	name := fmt.Sprintf("mcp-go %d", os.Getpid())
	calling, cancel := context.WithCancel(ctx)
	t.Lock()
	t.steps = nil
	t.Unlock()
	go func() {
		t.until(ctx, func() bool { return len(t.steps) > 0 })
		cancel()
	}()
	callTool(calling, c, "test_wait", map[string]any{"name": name})
	for ctx.Err() == nil {
		var names []string
		text := callTool(ctx, c, "test_cancelled", nil)
		if err := json.Unmarshal([]byte(text), &names); err != nil {
			log.Printf("test_cancelled: %s", text)
			return false
		}
		if slices.Contains(names, name) {
			return true
		}
		time.Sleep(10 * time.Millisecond)
	}
	return false
}
