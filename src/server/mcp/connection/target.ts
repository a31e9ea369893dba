import type { z } from 'zod';
import type { Limits } from '../../../core/limits.ts';
import type { CompileContext } from '../../kernel/compile-context.ts';
import type { TlsOptions } from '../../transport/tls/backend-tls.ts';
import type { ToolView } from '../names/tool-view.ts';
import type { RpcMessage } from '../protocol/message.ts';
import type { ToolPins } from '../tool-pinning/tool-pins.ts';
import type { CompiledCredentials, TargetCredentials } from './caller-credential.ts';
import type { ClientHeaders } from './client-headers.ts';

/** Options for sending one message. */
export interface SendOptions {
  /** The gateway's id of a request; absent for notifications and responses. */
  readonly id?: number;
  readonly method?: string;
  /** The request as the caller sent it, with the caller's id. */
  readonly message?: RpcMessage;
  /** The item that the request acts on, for the header `Mcp-Name` of revision 2026-07-28. */
  readonly name?: string | undefined;
  /** End-to-end headers of the client's request, for HTTP targets. */
  readonly headers?: ClientHeaders;
  /** Maximum time until the response headers of an HTTP target, in ms. Its own limit by default. */
  readonly headTimeout?: number | undefined;
}

/** Callbacks of a channel to its owner. */
export interface ChannelEvents {
  /** A message arrived; `inReplyTo` is set when the transport knows which request it belongs to. */
  message(text: string, inReplyTo?: number): void;
  /** A message arrived that cannot be used, for example because it is not JSON. `id`: the request that it answers, if known. */
  invalid(text: string, problem: string, id: number | undefined): void;
  /** There will be no response to a request. */
  failed(id: number, error: Error): void;
  /** Whether a request is still waiting for its response. */
  awaits(id: number): boolean;
  /** The only request that is still waiting for its response; undefined if there is none, or several. */
  onlyRequest?(): number | undefined;
  /** The server began the response stream of a request: it can no longer reject it with a status. */
  streaming?(id: number): void;
  /** The server ended the response stream of a request before the response, which will be requested later. */
  suspended(id: number): void;
  /** The server reported, on a GET for its stream, that it no longer knows the session. */
  sessionLost(): void;
  /** The channel is closed; all its requests have failed. */
  closed(error: Error): void;
}

/** An open connection to one MCP server, for one session. */
export interface Channel {
  /** Sends one message. Failures are reported through `ChannelEvents`. */
  send(text: string, options: SendOptions): void;
  /**
   * Sets the protocol revision of later messages, which HTTP names in a header. Undefined before `initialize`, which has no
   * such header.
   */
  agreed(version: string | undefined): void;
  /** Aborts the transport of a cancelled request. */
  abandon(id: number): void;
  /** Opens the stream for messages that the server sends outside a response (HTTP: GET). `headers` are the client's. */
  listen(headers: ClientHeaders): void;
  /** Stops (true) or continues (false) reading messages, because the client reads slowly. */
  pause(paused: boolean): void;
  /** The server's session id, with which another process can resume; undefined for a child process. */
  readonly sessionId: string | undefined;
  /** Whether a child process runs for this channel alone, which counts towards `config.mcp.maxChildren`. */
  readonly hasProcess?: boolean;
  /**
   * Whether a call waits for the client's input under this `requestState`, or under any without an argument (2026-07-28,
   * "Multi Round-Trip Requests").
   */
  awaitsInput?(requestState?: string): boolean;
  /** Time of the last message in either direction, in ms of `performance.now()`; of child processes only. */
  readonly lastUsed?: number | undefined;
  /**
   * Explanation for the log why a running server does not answer, without secrets. `isStarting`: the gateway continues to
   * wait for it.
   */
  diagnosis?(isStarting?: boolean): string;
  /** Lets the server keep the session when the channel is closed, because another process may continue it. */
  keepSession?(): void;
  /** The client ends the session with a request that has these headers: its end at the server carries the same credential. */
  ending?(headers: ClientHeaders): void;
  /** Ends the session at the server. Resolves when that is done or has failed. */
  close(): Promise<void>;
}

/** One entry of `targets[]`, compiled. */
export interface Target {
  readonly name: string;
  /** Whether another process can resume a session with this target. */
  readonly resumable: boolean;
  /** Whether the transport says which request a message of the server belongs to, or the server sends only responses. */
  readonly relatesMessages?: boolean;
  /** Limits of the process. */
  readonly limits: Limits;
  /** `host:port` for the access log; undefined for a child process. */
  readonly endpoint: string | undefined;
  /** What its requests carry instead of credentials of the client; undefined for a kind without `policies`. */
  readonly credentials?: TargetCredentials | undefined;
  /** Which of its tools clients see, and how; undefined if they see all of them unchanged. */
  readonly tools?: ToolView | undefined;
  /** Compares its tools with their pins; undefined without `toolPinning`. */
  readonly pins?: ToolPins | undefined;
  /**
   * Opens a channel. `sessionId` resumes an existing session. Rejects with the reason if the server cannot be started;
   * HTTP servers are first contacted by the first message.
   */
  open(events: ChannelEvents, sessionId?: string): Promise<Channel>;
  /** Milliseconds without a message after which the process of a session is stopped until its next request. */
  readonly idleTimeout?: number;
  /**
   * Starts or stops processes that wait for sessions. Called with true whenever a configuration with this target takes
   * effect, and with false once no new session will use it.
   */
  standBy?(isActive: boolean): void;
  /** Removes secrets from text of the server before it is logged. */
  clean?(text: string): string;
  close(): Promise<void>;
}

/** Compiled policies of one target. */
export interface TargetPolicies {
  readonly tls?: TlsOptions;
  readonly credentials?: CompiledCredentials;
}

/** A kind of target: its key in `targets[]`, its schema and its compiler. */
export interface TargetKind<Key extends string = string, Schema extends z.ZodType = z.ZodType> {
  readonly key: Key;
  readonly schema: Schema;
  /** Whether `targets[].policies` apply to it. */
  readonly hasPolicies?: boolean;
  compile(
    name: string,
    config: z.output<Schema>,
    context: CompileContext,
    policies: { readonly tls: TlsOptions | undefined; readonly credentials: TargetCredentials },
  ): Target;
}

/** Declares a kind of target, with the types of its key and schema. */
export function defineTarget<Key extends string, Schema extends z.ZodType>(
  kind: TargetKind<Key, Schema>,
): TargetKind<Key, Schema> {
  return kind;
}
