import type { z } from 'zod';
import type { CompileContext } from '../kernel/compile-context.ts';

/** How one message is sent. */
export interface SendOptions {
  /** The gateway's id of a request; absent for notifications and responses. */
  readonly id?: number;
  readonly method?: string;
  /** End-to-end headers of the client's request, for targets that are reached over HTTP. */
  readonly headers?: readonly string[];
}

/** What a channel tells its owner. */
export interface ChannelEvents {
  /** A message arrived; `inReplyTo` is set when the transport knows which request it belongs to. */
  message(text: string, inReplyTo?: number): void;
  /** A request will get no response. */
  failed(id: number, error: Error): void;
  /** Whether a request still has no response. */
  awaits(id: number): boolean;
  /** The server ended the response stream of a request, to be asked for the response later. */
  suspended(id: number): void;
  /** The server has forgotten the session: it said so when asked for its own stream. */
  sessionLost(): void;
  /** The channel is gone, with all that was pending on it. */
  closed(error: Error): void;
}

/** An open way to one MCP server, for one session. */
export interface Channel {
  send(text: string, options: SendOptions): void;
  /** The revision that was agreed on; sent with each later message where the transport wants it. */
  agreed(version: string): void;
  /** Gives up on a request whose client has left. */
  abandon(id: number): void;
  /** Starts to receive what the server sends on its own, where that takes a request of its own. */
  listen(headers: readonly string[]): void;
  /** The reader is slow: stop (true) or go on (false) taking in messages. */
  pause(paused: boolean): void;
  /** State that another process could continue with, or undefined when the server lives in this process. */
  readonly sessionId: string | undefined;
  /** A process of its own runs for it: it takes one of the places of `config.mcp.maxChildren`. */
  readonly hasProcess?: boolean;
  /** What the log should say of a server that runs and does not answer, without secrets. */
  diagnosis?(): string;
  close(): Promise<void>;
}

/** One entry of `targets[]`, compiled. */
export interface Target {
  readonly name: string;
  /** Whether a session with it can outlive this process. */
  readonly resumable: boolean;
  /** `host:port` for the access log. */
  readonly endpoint: string | undefined;
  /** Opens a channel; rejects with the reason in words when the server cannot be started or reached. */
  open(events: ChannelEvents, sessionId?: string): Promise<Channel>;
  /** Takes secrets out of what the server sent, before it is logged. */
  clean?(text: string): string;
  close(): Promise<void>;
}

/** A kind of target: its key in `targets[]`, its schema, its compiler. */
export interface TargetKind<Key extends string = string, Schema extends z.ZodType = z.ZodType> {
  readonly key: Key;
  readonly schema: Schema;
  compile(name: string, config: z.output<Schema>, context: CompileContext): Target;
}

export function defineTarget<Key extends string, Schema extends z.ZodType>(
  kind: TargetKind<Key, Schema>,
): TargetKind<Key, Schema> {
  return kind;
}
