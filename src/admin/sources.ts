import type { LineSink, Log } from '../core/log.ts';
import type { Redactor } from '../core/redact.ts';
import type { Queued } from '../server/observe/trace-stream.ts';
import type { CurrentConfig, ReloadState } from '../server/runtime/current-config.ts';
import type { Gateway } from '../server/runtime/gateway.ts';
import type { LogLevels } from './log-levels.ts';
import type { RecentRequests } from './recent-requests.ts';

/** What the admin server reads, and the little that it may do. */
export interface AdminSources {
  readonly gateway: Gateway;
  /** Asked anew each time: a reload changes it. */
  served(): CurrentConfig;
  /** How reading the configuration again goes; undefined where that is not done. */
  reloadState?(): ReloadState;
  /** Folder of the configuration file. */
  readonly folder: string;
  /** The configuration file, absolute; undefined when it came from standard input. */
  readonly configFile?: string;
  /** Pages may write it. */
  readonly isConfigWritable?: boolean;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly log: Log;
  /** Where lines go, by name. */
  readonly sinks: Readonly<Record<string, LineSink>>;
  /** Folder of the built pages, if there is one. */
  readonly webApp?: string;
  /** Stops the gateway gracefully; resolves when open requests have ended. */
  stop(): Promise<void>;
}

/** A stream that is open. `queued`: what waits for its reader, where that is bounded. */
export interface AdminStream {
  end(): void;
  queued?(): Queued;
}

/** What endpoints get: the sources, and what the admin server keeps itself. */
export interface Admin extends AdminSources {
  /** Knows the secrets of the configuration that serves. */
  redactor(): Redactor;
  readonly requests: RecentRequests;
  readonly levels: LogLevels;
  /** Streams that are open; each is ended when the server closes. */
  readonly streams: Set<AdminStream>;
  /** Open connections of its own. */
  connections(): Promise<number>;
  /** Milliseconds since 1970. */
  readonly startedAt: number;
}
