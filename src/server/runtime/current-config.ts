import type { Diagnostic } from '../../core/diagnostic.ts';
import type { YamlSource } from '../../core/yaml/source.ts';
import type { Config } from '../config/schema.ts';
import type { Runtime } from './runtime.ts';

/** The configuration that serves, and how it was read. */
export interface CurrentConfig {
  readonly config: Config;
  readonly runtime: Runtime;
  readonly source: YamlSource;
  readonly diagnostics: readonly Diagnostic[];
}

/** How reading the configuration again has gone so far. */
export interface ReloadState {
  /** Whether changes of the file are noticed. */
  readonly isWatching: boolean;
  /** What serves is the file as it was last read. */
  readonly isSynchronized: boolean;
  /** Since when what serves serves, in ms since 1970. */
  readonly servingSince: number;
  /** Successful reloads since the start. */
  readonly reloads: number;
  /** Why the last reload failed, and when; undefined when it did not. */
  readonly failure: { readonly at: number; readonly diagnostics: readonly Diagnostic[] } | undefined;
}
