import type { Log } from '../core/log.ts';
import type { Redactor } from '../core/redact.ts';
import type { CurrentConfig, ReloadState } from '../server/runtime/reload/live-config.ts';
import type { Serving } from '../server/workers/serving.ts';
import type { LogLevels } from './log-levels.ts';
import type { OpenStreams } from './open-streams.ts';

/** What the admin server reads, and the few actions that it may perform. */
export interface AdminSources {
  readonly gateway: Serving;
  /** The active configuration; a reload changes it. */
  served(): CurrentConfig;
  /** State of reloading; undefined if the configuration cannot be reloaded. */
  reloadState?(): ReloadState;
  /** Folder that paths of the configuration are relative to. */
  readonly folder: string;
  /** Ports of the servers of metrics and readiness. */
  readonly signalPorts?: readonly number[];
  /** Absolute path of the configuration file; undefined if it came from standard input. */
  readonly configFile?: string;
  /** Whether pages may write the file. */
  readonly isConfigWritable?: boolean;
  readonly log: Log;
  /** Folder of the built pages, if there is one. */
  readonly webApp?: string;
  /** Stops the gateway gracefully; resolves when open requests have finished. */
  stop(): Promise<void>;
}

/** What endpoints get: the sources, and the admin server's own state. */
export interface Admin extends AdminSources {
  /** Redacts the secrets of the active configuration. */
  redactor(): Redactor;
  readonly levels: LogLevels;
  /** Open streams; each is ended when the server closes. */
  readonly streams: OpenStreams;
  /** Whether requests come over a unix socket, which only the user of this process can open. */
  readonly isUnixSocket: boolean;
  /** Number of open connections to the admin server. */
  connections(): Promise<number>;
  /** Milliseconds since 1970. */
  readonly startedAt: number;
}
