import { type Outcome, outcomeOf } from '../../../core/outcome.ts';

/** A recorded request, from `/api/records`. Absent members are unknown. */
export interface ShownRecord {
  readonly id: number;
  readonly time: string;
  readonly durationMs?: number;
  readonly firstTokenMs?: number;
  readonly protocol: string;
  readonly operation: string;
  readonly path: string;
  readonly status: number;
  readonly route?: string;
  readonly error?: string;
  /** The part of the gateway that answered. */
  readonly reason?: string;
  readonly client?: string;
  readonly key?: string;
  readonly user?: string;
  readonly userAgent?: string;
  readonly session?: string;
  readonly traceId?: string;
  readonly provider?: string;
  readonly model?: string;
  readonly usedModel?: string;
  readonly target?: string;
  readonly tool?: string;
  readonly inputTokens?: number;
  readonly cachedInputTokens?: number;
  readonly outputTokens?: number;
  readonly costUsd?: string;
  /** What was asked, or else answered, on one line; only in lists with `contents=true`. */
  readonly preview?: string;
}

export interface RecordPage {
  readonly records: readonly ShownRecord[];
  /** Cursor of the next page; null at the end. */
  readonly next: string | null;
}

interface ToolCall {
  readonly name?: unknown;
  readonly arguments?: unknown;
}

/** What was said; only if payloads are recorded. */
export interface Payload {
  readonly messages?: readonly {
    readonly role?: unknown;
    readonly content?: unknown;
    readonly toolCalls?: readonly ToolCall[];
  }[];
  readonly texts?: readonly string[];
  readonly toolCalls?: readonly ToolCall[];
  readonly arguments?: unknown;
  readonly result?: unknown;
  readonly error?: unknown;
}

export type FullRecord = ShownRecord & { readonly payload?: Payload };

/** One thing that somebody said, in order. */
export interface Said {
  readonly by: string;
  readonly kind: 'client' | 'model' | 'tool' | 'problem';
  readonly text: string;
  /** What a person or a model wrote, not JSON. */
  readonly isProse?: true;
}

/** The conversation of a record: prompts, what the model said, tool calls and their results. */
export function saidIn({ payload, tool }: FullRecord): readonly Said[] {
  if (payload === undefined) return [];
  const { messages = [], texts = [], toolCalls = [], arguments: args, result, error } = payload;
  const name = tool ?? 'tool';
  return [
    ...messages.flatMap(({ role, content, toolCalls: earlier = [] }): Said[] => {
      const by = typeof role === 'string' ? role : 'client';
      const kind = by === 'assistant' || by === 'model' ? 'model' : by === 'tool' ? 'tool' : 'client';
      const text = textOf(content);
      // A message that only calls tools says nothing.
      return [
        ...(text === '' && earlier.length > 0 ? [] : [{ by, kind, text, isProse: true } as const]),
        ...earlier.map(called),
      ];
    }),
    ...texts.map((text): Said => ({ by: 'answer', kind: 'model', text, isProse: true })),
    ...toolCalls.map(called),
    ...(args === undefined ? [] : [{ by: `calls ${name}`, kind: 'client' as const, text: textOf(args) }]),
    ...(result === undefined
      ? []
      : [{ by: `${name} returns`, kind: 'tool' as const, text: resultText(result) }]),
    ...(error === undefined ? [] : [{ by: `${name} fails`, kind: 'problem' as const, text: textOf(error) }]),
  ];
}

const called = (call: ToolCall): Said => ({
  by: `calls ${textOf(call.name)}`,
  kind: 'tool',
  text: textOf(call.arguments),
});

/** The texts of content parts, in the forms of MCP and of LLM APIs; anything else as JSON. */
function textOf(value: unknown): string {
  if (typeof value === 'string') return value;
  if (Array.isArray(value) && value.length > 0 && value.every(isTextPart))
    return value.map(({ text }) => text).join('\n');
  return JSON.stringify(value, null, 2) ?? '';
}

function resultText(result: unknown): string {
  const { content } = (typeof result === 'object' && result !== null ? result : {}) as { content?: unknown };
  return textOf(Array.isArray(content) && content.every(isTextPart) ? content : result);
}

const isTextPart = (part: unknown): part is { readonly text: string } =>
  typeof part === 'object' && part !== null && typeof (part as { text?: unknown }).text === 'string';

/** Whether it failed, as on all pages. */
export const outcomeOfRecord = ({ status, error, reason }: ShownRecord): Outcome =>
  outcomeOf(status, error, reason);

/** `chat gpt-4o-mini`, `tools/call echo` */
export const titleOf = ({ operation, tool, model, path }: ShownRecord): string =>
  [operation, tool ?? model ?? path].join(' ');
