package main

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"
)

func openaiError(err error) raised {
	var answer *openai.Error
	if errors.As(err, &answer) {
		return raised{Status: answer.StatusCode, Type: answer.Code, Message: answer.Message}
	}
	return raised{Message: err.Error()}
}

func openaiCalls(url, model string) (map[string]call, func(error) raised) {
	client := openai.NewClient(
		option.WithBaseURL(url+"/v1"), option.WithAPIKey(key), option.WithMaxRetries(0),
	)
	asking := func(text string) openai.ChatCompletionNewParams {
		return openai.ChatCompletionNewParams{
			Model:    model,
			Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage(text)},
		}
	}
	ask := func(ctx context.Context, text string, options ...option.RequestOption) (any, error) {
		reply, err := client.Chat.Completions.New(ctx, asking(text), options...)
		if err != nil {
			return nil, err
		}
		return reply.Choices[0].Message.Content, nil
	}
	failing := func(text string, options ...option.RequestOption) call {
		return func(ctx context.Context) (any, error) { return ask(ctx, text, options...) }
	}
	tools := []openai.ChatCompletionToolUnionParam{
		openai.ChatCompletionFunctionTool(openai.FunctionDefinitionParam{
			Name: "weather", Description: openai.String("The weather of a city."), Parameters: city,
		}),
	}
	return map[string]call{
		"chat": func(ctx context.Context) (any, error) {
			asked := asking("Hello, wörld 🌍")
			asked.Messages = append(
				[]openai.ChatCompletionMessageParamUnion{openai.SystemMessage("Be brief.")}, asked.Messages...)
			reply, err := client.Chat.Completions.New(ctx, asked)
			if err != nil {
				return nil, err
			}
			choice := reply.Choices[0]
			return []any{
				choice.Message.Content, choice.FinishReason, reply.Usage.PromptTokens, reply.Usage.CompletionTokens,
			}, nil
		},
		"stream": func(ctx context.Context) (any, error) {
			asked := asking("one two three")
			asked.StreamOptions = openai.ChatCompletionStreamOptionsParam{IncludeUsage: openai.Bool(true)}
			stream := client.Chat.Completions.NewStreaming(ctx, asked)
			whole := openai.ChatCompletionAccumulator{}
			parts := 0
			for stream.Next() {
				part := stream.Current()
				if !whole.AddChunk(part) {
					return nil, errors.New("a part belongs to another completion")
				}
				if len(part.Choices) > 0 && part.Choices[0].Delta.Content != "" {
					parts++
				}
			}
			if err := stream.Err(); err != nil {
				return nil, err
			}
			choice := whole.Choices[0]
			return []any{choice.Message.Content, parts > 1, choice.FinishReason, whole.Usage.TotalTokens}, nil
		},
		"tools": func(ctx context.Context) (any, error) {
			asked := asking(`{"city": "Paris"}`)
			asked.Tools = tools
			asked.ToolChoice = openai.ChatCompletionToolChoiceOptionUnionParam{OfAuto: openai.String("required")}
			reply, err := client.Chat.Completions.New(ctx, asked)
			if err != nil {
				return nil, err
			}
			choice := reply.Choices[0]
			called := choice.Message.ToolCalls[0]
			asked.Messages = append(
				asked.Messages, choice.Message.ToParam(), openai.ToolMessage("sunny", called.ID))
			answer, err := client.Chat.Completions.New(ctx, asked)
			if err != nil {
				return nil, err
			}
			return []any{
				choice.FinishReason, called.Function.Name, strings.ReplaceAll(called.Function.Arguments, " ", ""),
				answer.Choices[0].Message.Content,
			}, nil
		},
		"tools_in_a_stream": func(ctx context.Context) (any, error) {
			asked := asking(`{"city": "Paris"}`)
			asked.Tools = tools
			asked.ToolChoice = openai.ChatCompletionToolChoiceOptionUnionParam{OfAuto: openai.String("required")}
			stream := client.Chat.Completions.NewStreaming(ctx, asked)
			whole := openai.ChatCompletionAccumulator{}
			finished := []string{}
			for stream.Next() {
				whole.AddChunk(stream.Current())
				if called, ok := whole.JustFinishedToolCall(); ok {
					finished = append(finished, called.Name)
				}
			}
			if err := stream.Err(); err != nil {
				return nil, err
			}
			called := whole.Choices[0].Message.ToolCalls[0].Function
			return []any{finished, called.Name, strings.ReplaceAll(called.Arguments, " ", "")}, nil
		},
		"responses": func(ctx context.Context) (any, error) {
			reply, err := client.Responses.New(ctx, responsesOf(model, "Hello"))
			if err != nil {
				return nil, err
			}
			return []any{reply.OutputText(), reply.Status, reply.Usage.InputTokens, reply.Usage.OutputTokens}, nil
		},
		"responses_stream": func(ctx context.Context) (any, error) {
			stream := client.Responses.NewStreaming(ctx, responsesOf(model, "one two three"))
			var text strings.Builder
			last := ""
			for stream.Next() {
				event := stream.Current()
				last = event.Type
				if event.Type == "response.output_text.delta" {
					text.WriteString(event.Delta)
				}
			}
			return []any{text.String(), last}, stream.Err()
		},
		"embeddings": func(ctx context.Context) (any, error) {
			input := openai.EmbeddingNewParamsInputUnion{OfArrayOfStrings: []string{"a", "b c"}}
			reply, err := client.Embeddings.New(ctx, openai.EmbeddingNewParams{Model: "echo", Input: input})
			if err != nil {
				return nil, err
			}
			return []int{len(reply.Data), len(reply.Data[0].Embedding)}, nil
		},
		"refused":   failing("refused"),
		"broken":    failing("broken"),
		"busy":      failing("busy"),
		"busy_once": failing("busy once", option.WithMaxRetries(2)),
		"wrong_key": failing("Hi", option.WithAPIKey("sk-wrong")),
		"unknown_model": func(ctx context.Context) (any, error) {
			asked := asking("Hi")
			asked.Model = "other"
			return client.Chat.Completions.New(ctx, asked)
		},
		"broken_stream": func(ctx context.Context) (any, error) {
			stream := client.Chat.Completions.NewStreaming(ctx, asking("break"))
			for stream.Next() {
			}
			return "no error", stream.Err()
		},
		"timeout": func(ctx context.Context) (any, error) {
			_, err := ask(ctx, "wait", option.WithRequestTimeout(time.Second))
			return errors.Is(err, context.DeadlineExceeded), nil
		},
		"leaving_a_stream": func(ctx context.Context) (any, error) {
			stream := client.Chat.Completions.NewStreaming(ctx, asking("wait"))
			defer stream.Close()
			for stream.Next() {
				part := stream.Current()
				if len(part.Choices) > 0 && part.Choices[0].Delta.Content != "" {
					return part.Choices[0].Delta.Content, nil
				}
			}
			return nil, stream.Err()
		},
	}, openaiError
}

func responsesOf(model, text string) responses.ResponseNewParams {
	return responses.ResponseNewParams{
		Model: model,
		Input: responses.ResponseNewParamsInputUnion{OfString: openai.String(text)},
	}
}
