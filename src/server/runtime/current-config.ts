import type { Diagnostic } from '../../core/diagnostic.ts';
import type { YamlSource } from '../../core/yaml/source.ts';
import type { Config } from '../config/schema.ts';
import type { Runtime } from './runtime.ts';

/** The active configuration, with the source and diagnostics of the file that it was read from. */
export interface CurrentConfig {
  readonly config: Config;
  readonly runtime: Runtime;
  readonly source: YamlSource;
  readonly diagnostics: readonly Diagnostic[];
}

/** State of configuration reloads. */
export interface ReloadState {
  /** Whether the file is watched for changes. */
  readonly isWatching: boolean;
  /** Whether the active configuration is the file as it was last read, i.e. the last reload succeeded. */
  readonly isSynchronized: boolean;
  /** Unix time in ms at which the active configuration took effect. */
  readonly servingSince: number;
  /** Successful reloads since the start. */
  readonly reloads: number;
  /** Time (Unix ms) and diagnostics of the last reload if it failed, otherwise undefined. */
  readonly failure: { readonly at: number; readonly diagnostics: readonly Diagnostic[] } | undefined;
}
