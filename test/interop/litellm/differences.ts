/** Lines of differences (`FORMAT to FORMAT: CASE | MEMBER: OURS | THEIRS`) by a pattern, with the reason for them. */
export interface Difference {
  readonly lines: RegExp;
  readonly why: string;
}

/** Where the gateway and LiteLLM send other requests. */
export const DIFFERENCES: readonly Difference[] = [
  {
    lines: /to messages: .* \| maxTokens: (4096|8192|32000) \| \d+$/,
    why: 'The API requires max_tokens. LiteLLM knows the maximum of each model, the gateway that of generations.',
  },
  {
    lines: /to messages: .*reasoning.* \| (maxTokens|reasoning(\.\w+)?): /,
    why: 'LiteLLM has budgets of 2048 and 4096 tokens, which it adds to max_tokens or lets exceed it, sends budgets for tool calls whose signed reasoning is lost (refused by the API), and sends efforts only to models that it knows.',
  },
  {
    lines: /to responses: .* \| unreadable: input$/,
    why: 'LiteLLM recognizes names of Claude models and writes Chat Completions, whatever provider was asked for.',
  },
  {
    lines: /Operator note|system message in the middle of a conversation \| turns\.1: /,
    why: 'LiteLLM marks instructions in the middle of a conversation with an explanation and not with tags, also for Chat Completions, which have such messages.',
  },
  {
    lines: /(list of text parts|assistant message with empty content) \| turns\./,
    why: 'LiteLLM replaces empty texts by an explanation, or sends them; the gateway leaves them out.',
  },
  { lines: /refusal in the history \| turns\./, why: 'LiteLLM drops refusals of the assistant.' },
  {
    lines:
      /to responses: .* \| tools\.\d\.(strict: false|parameters: \{"type":"object","properties":\{\}\}) \| undefined/,
    why: 'Functions are strict by default in Responses only. LiteLLM does not say that they are not.',
  },
  {
    lines: /\| tools\.0\.strict: true \| undefined/,
    why: 'LiteLLM drops strict for Messages, and for Chat Completions.',
  },
  {
    lines: /messages to completions: .* \| tools\.0\.parameters\.additionalProperties: false \| undefined/,
    why: 'LiteLLM removes the member from schemas that are not strict, because some servers refuse it.',
  },
  {
    lines: /\| turns\.0\.parts\.0\.name: "a\.(pdf|txt)" \| undefined/,
    why: 'LiteLLM drops the names of files.',
  },
  {
    lines:
      /(text file|text document|uploaded (file|document|image)|PDF document|PDF file in plain Base64) \| /,
    why: 'LiteLLM has text files as Base64, PDF documents as images, files that were uploaded for another API, or drops or refuses them.',
  },
  {
    lines:
      /image in a data URL \| (turns\.0\.parts\.0\.detail: undefined \| "auto"|unreadable: .*"original")/,
    why: 'LiteLLM writes the default, and passes on a value that Chat Completions do not have.',
  },
  {
    lines: /\| toolChoice: undefined \| \{"mode":"auto"\}/,
    why: 'LiteLLM sends a tool choice without tools, which OpenAI refuses.',
  },
  {
    lines: /JSON schema \| (output: .* undefined|toolChoice: .*json_tool_call|tools\.0: .*json_tool_call)/,
    why: 'For models that LiteLLM does not know, it uses a tool with the schema instead of the structured output of Messages.',
  },
  {
    lines:
      /messages to \w+: .* \| output\.(name: "answer" \| "structured_output"|strict: |schema\.required: )/,
    why: 'Messages has no names of schemas. LiteLLM makes optional properties required to be strict, or is not strict.',
  },
  {
    lines: /completions to responses: JSON schema \| output\.description: /,
    why: 'LiteLLM drops the description of a schema.',
  },
  {
    lines:
      /\| error: .*(Invalid tool choice|APIConnectionError: 'function'|Failed to parse tool call arguments|unexpected keyword argument 'max_tool_calls')/,
    why: 'LiteLLM fails on custom tools and allowed tools of Chat Completions, on arguments that are not JSON, and on members that it passes on.',
  },
  {
    lines: /only a system message \| error: .*at least one non-system message/,
    why: 'Anthropic needs a message: the gateway sends the instructions as one, LiteLLM refuses the call.',
  },
  {
    lines: /\| unreadable: max_tool_calls$/,
    why: 'LiteLLM passes the member on to Messages, which refuses it.',
  },
  {
    lines: /custom tool|turn of Codex \| (tools\.1|turns\.3)\./,
    why: 'LiteLLM calls the argument content instead of input, and writes the grammar into the description of the tool instead of its argument.',
  },
  {
    lines: /tools? in a namespace \| tools\.1\.description/,
    why: 'LiteLLM adds the description of a namespace to each tool in it, the gateway to the first.',
  },
  {
    lines: /search of the client for tools \| (tools|turns)\./,
    why: 'LiteLLM drops the search for tools with its calls, results and the tools that were found.',
  },
  {
    lines: /tool call id with punctuation \| (tools|toolChoice)/,
    why: 'For a conversation with tool calls and without tools, LiteLLM declares a tool that was never called, and lets the model call it.',
  },
  {
    lines:
      /\| (stream: true|metadata: .*|verbosity: "low"|serviceTier: "(default|priority)") \| (false|undefined|"standard_only")$/,
    why: "LiteLLM drops the member, or keeps Anthropic's name of a tier; its client for Messages sets stream itself.",
  },
  {
    lines: /\| user: /,
    why: "OpenAI's safety_identifier replaces user, which LiteLLM drops or prefers, and may have 64 characters, to which LiteLLM cuts longer ones.",
  },
  { lines: /\| parallelToolCalls: false \| undefined/, why: 'LiteLLM drops disable_parallel_tool_use.' },
  {
    lines: /messages to responses: .* \| system: ".*\\n\\n.*" \| /,
    why: 'LiteLLM joins system texts with one line break instead of an empty line.',
  },
  {
    lines: /\| turns\.\d\.parts\.\d\.text: "Error:\\n\\n/,
    why: 'LiteLLM drops is_error, so that a model of another API does not see that a tool failed.',
  },
  {
    lines: /(image in a tool result|function calls and their outputs) \| turns\.2\./,
    why: 'Both send images of tool results in a message of the user; LiteLLM has another text before it, and does so in Responses, too, whose results may have images.',
  },
  {
    lines:
      /(turn of Claude Code|in the history|reasoning[^|]*|thinking of Claude|chat server.*) \| turns\.1\.parts\.\d/,
    why: 'LiteLLM sends the text of reasoning to other providers than the one that made it, and drops signed and encrypted reasoning that came from another one.',
  },
  {
    lines: /thinking.* \| reasoning(\.\w+)?: |(Claude Code) \| reasoning/,
    why: 'LiteLLM asks for no summary of reasoning, for a medium effort if the client leaves that to the model, has no maximal effort, and does not turn reasoning off.',
  },
  {
    lines: /responses to completions: minimal reasoning \| reasoning\.effort: "low" \| "minimal"/,
    why: 'Only OpenAI knows this effort, whose models are not reached this way.',
  },
];

/** What only the gateway refuses. */
export const REFUSED: readonly Difference[] = [
  {
    lines: /\| refused: /,
    why: 'What has no equivalent is refused by the gateway. LiteLLM drops it or passes it on, where the provider may refuse it.',
  },
];
