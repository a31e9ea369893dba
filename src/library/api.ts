import type { PolicyDefinition } from '../server/policies/modules/api.ts';
import type { GatewayConfig } from './config-types.ts';
import type { RequestFacts } from './request-facts.ts';

/** Options of `createGateway`. */
export interface GatewayOptions {
  /** Variables for which `$NAME` and `${NAME}` in the configuration stand. Those of the process by default. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** Folder that paths in the configuration are relative to: that of its file, or the working folder, by default. */
  readonly folder?: string;
  /**
   * Whether the ports of the configuration are opened. `free`: a free port of 127.0.0.1 instead of each. False: requests come
   * through `handle` and `fetch` only. Default: true.
   */
  readonly listen?: boolean | 'free';
  /** Listeners that are there from the start, for messages before `createGateway` resolves. */
  readonly on?: { readonly [Name in keyof GatewayEvents]?: (event: GatewayEvents[Name]) => void };
  /** Policies of the program, which the configuration names: `policies: { modules: [{ policy: 'team' }] }`. */
  readonly policies?: readonly PolicyDefinition[];
  /** Whether a change of the configuration file, or of a file that it names, takes effect at once. Default: false. */
  readonly watch?: boolean;
}

/** A running gateway. Several can run in one program: they share nothing. It adds no signal handler and prints nothing. */
export interface Gateway extends AsyncDisposable {
  /** Origin of its first gateway, such as `http://127.0.0.1:3000`; without ports `http://localhost`, for `fetch` only. */
  readonly url: string;
  /** The same of each gateway, by its name in the configuration. `mcp` and `llm` without `gateways` are two. */
  readonly urls: Readonly<Record<string, string>>;
  /** What is valid in the configuration, and probably not meant. */
  readonly warnings: readonly ConfigProblem[];
  /**
   * Answers a request without a connection, in the way of one that was received on a port. Its URL decides the host and the
   * path. An error of a client or server is a response with its status.
   *
   * @throws the reason of the signal of the request when it is aborted, `TypeError` for anything but a request whose body is unread,
   * `Error` once the gateway is closed
   */
  handle(request: Request, from?: RequestOrigin): Promise<Response>;
  /**
   * `handle` in the form of `fetch`, for libraries that take one: paths are relative to `url`. The gateway is that of the origin
   * in `urls`, and the first one for any other.
   *
   * @throws as `handle` does
   */
  fetch(input: string | URL | Request, init?: RequestInit): Promise<Response>;
  /**
   * Replaces the configuration by another one; without one, reads its file again, and the files that it names. Open
   * requests keep theirs. Settings of `config` other than `modelCatalog` keep their values.
   *
   * @throws ConfigError if it is not valid, and the gateway keeps the one that it has; `TypeError` for an object if the gateway
   * was created from a file
   */
  reload(config?: GatewayConfig): Promise<void>;
  /** Calls `listener` with every event of this name. Returns a function that removes it. An error of it is logged. */
  on<Name extends keyof GatewayEvents>(
    name: Name,
    listener: (event: GatewayEvents[Name]) => void,
  ): () => void;
  /**
   * Accepts no more requests, waits for the open ones up to `config.connectionTerminationDeadline` (10 s by default), and
   * ends its child processes and connections.
   */
  close(): Promise<void>;
}

/** The events of a gateway, by name. */
export interface GatewayEvents {
  /** A request has ended. */
  readonly request: RequestFacts;
  /** A message of the gateway about itself, from the level of `config.logging.level` on. */
  readonly log: LogMessage;
}

/** Where a request that a program hands over has come from. */
export interface RequestOrigin {
  /** IP address of the client, for rules, limits and logs. Without one, it is empty, and rules that need one deny. */
  readonly address?: string;
  /** Its port. */
  readonly port?: number;
  /** Name of the gateway of the configuration that answers. The first one by default. */
  readonly gateway?: string;
}

/** A message of the gateway about itself. Its secrets are redacted. */
export interface LogMessage {
  readonly time: Date;
  readonly level: 'error' | 'warn' | 'info' | 'debug' | 'trace';
  /** The part of the gateway that it is about, such as `mcp::stdio`. */
  readonly scope: string;
  readonly message: string;
  readonly fields: Readonly<Record<string, unknown>>;
}

/** A problem of a configuration. */
export interface ConfigProblem {
  readonly severity: 'error' | 'warning' | 'note';
  /** Such as `AGW0101`. */
  readonly code: string;
  /** What is wrong. */
  readonly message: string;
  /** How to fix it. */
  readonly help?: string;
  /** Keys and indexes from the root of the configuration, such as `['gateways', 'default', 'port']`. */
  readonly path: readonly (string | number)[];
  /** Its place in the file, if the configuration is one; both count from 1. */
  readonly line?: number;
  readonly column?: number;
}
