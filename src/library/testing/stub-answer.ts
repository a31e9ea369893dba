import { z } from 'zod';
import { isRecord } from '../../core/foreign.ts';
import type { StubReply } from './chat-answers.ts';

/**
 * What a stub model answers: text, or text and calls of tools, or an error of the provider (its status is 400 to 599); `hang`
 * never answers, `break` ends the connection in the middle of the answer.
 */
export type StubAnswer =
  | string
  | StubReply
  | {
      readonly status: number;
      readonly message?: string;
      readonly headers?: Readonly<Record<string, string>>;
    }
  | 'hang'
  | 'break';

const reply = z.strictObject({
  text: z.string().optional(),
  toolCalls: z
    .array(z.strictObject({ name: z.string(), arguments: z.record(z.string(), z.unknown()) }))
    .optional(),
  usage: z.strictObject({ input: z.number(), output: z.number() }).optional(),
});

const failure = z.strictObject({
  status: z.int().min(400).max(599),
  message: z.string().optional(),
  headers: z.record(z.string(), z.string()).optional(),
});

/** Refuses what is not an answer: tests in JavaScript have no types, and a mistyped member would be an empty answer. @throws TypeError */
export function checkAnswer(answer: unknown): void {
  if (typeof answer === 'string') return;
  const { error } = (isRecord(answer) && 'status' in answer ? failure : reply).safeParse(answer);
  if (error === undefined) return;
  throw new TypeError(
    `a stub model answers a text, { text, toolCalls, usage } or { status, message, headers }\n${z.prettifyError(error)}`,
  );
}
