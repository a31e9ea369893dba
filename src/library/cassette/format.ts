import { z } from 'zod';
import { isHeaderName, isHeaderValue } from '../../server/kernel/request/header-list.ts';

/** The version of the format that this program writes and reads. */
export const FORMAT = 1;

/** Begins the file: who has written it, and the gateways whose requests follow. */
const headSchema = z.strictObject({
  cassette: z.literal(FORMAT),
  agctl: z.string(),
  /** When the recording began. */
  time: z.iso.datetime(),
  gateways: z.array(z.strictObject({ name: z.string(), port: z.int().min(0).max(65_535) })).min(1),
});

/** A part of a form: a field has a text, a file has its name and type too. */
const formPart = z.strictObject({
  name: z.string(),
  filename: z.string().optional(),
  type: z.string().optional(),
  text: z.string().optional(),
  base64: z.base64().optional(),
});

/** What a request or response contains: exactly one of these. Without one, it is empty. */
const bodySchema = z.union([
  z.strictObject({ json: z.unknown() }).refine((body) => 'json' in body),
  z.strictObject({ text: z.string() }),
  z.strictObject({ base64: z.base64() }),
  z.strictObject({ form: z.array(formPart) }),
  /** It was not recorded, for this reason. */
  z.strictObject({ omitted: z.string() }),
]);

/** A server-sent event, and when it came: ms after the request. Its data is JSON, or another text. */
const eventSchema = z.strictObject({
  ms: z.number().min(0),
  event: z.string().optional(),
  id: z.string().optional(),
  json: z.unknown().optional(),
  text: z.string().optional(),
});

/** By lower-case name. */
const headersSchema = z.record(
  z.string().refine(isHeaderName, 'expected the name of a header').lowercase(),
  z.string().refine(isHeaderValue, 'expected the value of a header'),
);

const requestSchema = z.strictObject({
  method: z.string().refine(isHeaderName, 'expected a method'),
  /** Path and query. */
  target: z.string().startsWith('/'),
  headers: headersSchema,
  body: bodySchema.optional(),
});

const responseSchema = z.strictObject({
  /** ms from the request to the response headers. */
  ms: z.number().min(0),
  /** 0: none was sent. Others are those of the Fetch API. */
  status: z.union([z.literal(0), z.int().min(200).max(599)], 'expected 0, or 200 to 599'),
  headers: headersSchema,
  body: bodySchema.optional(),
  events: z.array(eventSchema).optional(),
  /** Who ended it before it was complete. */
  cut: z.enum(['client', 'server']).optional(),
});

/** What the gateway knew of the request: its decision, and what it cost. */
const factsSchema = z.strictObject({
  protocol: z.string().optional(),
  operation: z.string().optional(),
  reason: z.string().optional(),
  target: z.string().optional(),
  tool: z.string().optional(),
  provider: z.string().optional(),
  usedModel: z.string().optional(),
  inputTokens: z.number().optional(),
  outputTokens: z.number().optional(),
  costUsd: z.number().optional(),
});

const exchangeSchema = z.strictObject({
  /** ms from the start of the recording to the request. */
  at: z.number().min(0),
  gateway: z.string(),
  /** Label of the MCP session: requests of one session have the same one. It is not the id of the session. */
  session: z.string().optional(),
  request: requestSchema,
  response: responseSchema,
  facts: factsSchema.optional(),
});

export type Head = z.infer<typeof headSchema>;
export type Body = z.infer<typeof bodySchema>;
export type StreamEvent = z.infer<typeof eventSchema>;
export type RecordedRequest = z.infer<typeof requestSchema>;
export type RecordedResponse = z.infer<typeof responseSchema>;
export type RecordedFacts = z.infer<typeof factsSchema>;

/** One line after the first. */
export type RecordedExchange = z.infer<typeof exchangeSchema>;

/** A line that was read, with its number in the file. */
export interface Exchange extends RecordedExchange {
  readonly line: number;
}

/** A cassette that was read: exchanges in the order of their requests. */
export interface Cassette {
  /** Path, for messages. */
  readonly file: string;
  readonly head: Head;
  readonly exchanges: readonly Exchange[];
}

export const schemas = { head: headSchema, exchange: exchangeSchema } as const;
