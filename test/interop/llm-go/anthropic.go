package main

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"
)

func anthropicError(err error) raised {
	var answer *anthropic.Error
	if errors.As(err, &answer) {
		return raised{Status: answer.StatusCode, Type: string(answer.Type()), Message: answer.RawJSON()}
	}
	return raised{Message: err.Error()}
}

func anthropicCalls(url, model string) (map[string]call, func(error) raised) {
	client := anthropic.NewClient(
		option.WithBaseURL(url), option.WithAuthToken(key), option.WithMaxRetries(0),
	)
	asking := func(text string) anthropic.MessageNewParams {
		return anthropic.MessageNewParams{
			Model: model, MaxTokens: 50,
			Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock(text))},
		}
	}
	failing := func(text string, options ...option.RequestOption) call {
		return func(ctx context.Context) (any, error) {
			reply, err := client.Messages.New(ctx, asking(text), options...)
			if err != nil {
				return nil, err
			}
			return reply.Content[0].Text, nil
		}
	}
	withTools := func() anthropic.MessageNewParams {
		asked := asking(`{"city": "Paris"}`)
		schema := anthropic.ToolInputSchemaParam{
			Properties: city["properties"], Required: []string{"city"},
		}
		asked.Tools = []anthropic.ToolUnionParam{{OfTool: &anthropic.ToolParam{Name: "weather", InputSchema: schema}}}
		asked.ToolChoice = anthropic.ToolChoiceUnionParam{OfAny: &anthropic.ToolChoiceAnyParam{}}
		return asked
	}
	// streamed reads a whole stream; the texts in it are counted.
	streamed := func(ctx context.Context, asked anthropic.MessageNewParams) (*anthropic.Message, int, error) {
		stream := client.Messages.NewStreaming(ctx, asked)
		whole, parts := anthropic.Message{}, 0
		for stream.Next() {
			event := stream.Current()
			if err := whole.Accumulate(event); err != nil {
				return nil, 0, err
			}
			if event.Type == "content_block_delta" {
				parts++
			}
		}
		return &whole, parts, stream.Err()
	}
	return map[string]call{
		"chat": func(ctx context.Context) (any, error) {
			asked := asking("Hello, wörld 🌍")
			asked.System = []anthropic.TextBlockParam{{Text: "Be brief."}}
			reply, err := client.Messages.New(ctx, asked)
			if err != nil {
				return nil, err
			}
			return []any{
				reply.Content[0].Text, reply.StopReason, reply.Usage.InputTokens, reply.Usage.OutputTokens,
			}, nil
		},
		"stream": func(ctx context.Context) (any, error) {
			whole, parts, err := streamed(ctx, asking("one two three"))
			if err != nil {
				return nil, err
			}
			return []any{whole.Content[0].Text, parts > 1, whole.StopReason, whole.Usage.OutputTokens}, nil
		},
		"tools": func(ctx context.Context) (any, error) {
			asked := withTools()
			reply, err := client.Messages.New(ctx, asked)
			if err != nil {
				return nil, err
			}
			called := reply.Content[0]
			asked.Messages = append(asked.Messages, reply.ToParam(),
				anthropic.NewUserMessage(anthropic.NewToolResultBlock(called.ID, "sunny", false)))
			answer, err := client.Messages.New(ctx, asked)
			if err != nil {
				return nil, err
			}
			input := strings.ReplaceAll(string(called.Input), " ", "")
			return []any{reply.StopReason, called.Name, input, answer.Content[0].Text}, nil
		},
		"tools_in_a_stream": func(ctx context.Context) (any, error) {
			whole, _, err := streamed(ctx, withTools())
			if err != nil {
				return nil, err
			}
			called := whole.Content[0]
			return []any{whole.StopReason, called.Name, strings.ReplaceAll(string(called.Input), " ", "")}, nil
		},
		"count_tokens": func(ctx context.Context) (any, error) {
			asked := anthropic.MessageCountTokensParams{Model: model, Messages: asking("Hello").Messages}
			reply, err := client.Messages.CountTokens(ctx, asked)
			if err != nil {
				return nil, err
			}
			return reply.InputTokens, nil
		},
		"refused":   failing("refused"),
		"broken":    failing("broken"),
		"busy":      failing("busy"),
		"busy_once": failing("busy once", option.WithMaxRetries(2)),
		"wrong_key": failing("Hi", option.WithAuthToken("sk-wrong")),
		"broken_stream": func(ctx context.Context) (any, error) {
			_, _, err := streamed(ctx, asking("break"))
			return "no error", err
		},
		"timeout": func(ctx context.Context) (any, error) {
			_, err := failing("wait", option.WithRequestTimeout(time.Second))(ctx)
			return errors.Is(err, context.DeadlineExceeded), nil
		},
	}, anthropicError
}
