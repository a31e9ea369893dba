import type { Range } from '../../core/diagnostic.ts';
import { byForm } from '../../core/redact.ts';
import type { LoadedConfig } from '../../server/config/load.ts';
import type { GatewayPlan } from '../../server/config/plan/plan.ts';
import type { Config } from '../../server/config/schema.ts';

/** The result of one check. `fix` says what to do about it. */
export interface CheckResult {
  readonly status: 'ok' | 'warn' | 'fail' | 'skip';
  readonly message: string;
  readonly fix?: string;
  /** More lines below the message, such as a comparison. */
  readonly details?: readonly string[];
  /** Where it is in the configuration, if it is about a place there. */
  readonly range?: Range;
  /** What the message says, for programs. */
  readonly figures?: Readonly<Record<string, string | number>>;
}

/** Input of all checks. */
export interface CheckContext {
  readonly file: string;
  readonly loaded: LoadedConfig;
  readonly config: Config | undefined;
  readonly gateways: readonly GatewayPlan[];
  readonly env: Readonly<Record<string, string | undefined>>;
  /** File whose variables `env` includes. */
  readonly envFile?: string | undefined;
  readonly folder: string;
  readonly options: CheckOptions;
}

export interface CheckOptions {
  /** Uses no network, only what is known on this machine. */
  readonly offline: boolean;
  /** Starts the commands of stdio targets. */
  readonly start: boolean;
  /** Reports what lists of tools cost. */
  readonly tools: boolean;
  /** The file that the tools of all targets are compared with. */
  readonly contract: ContractFile | undefined;
  /** A token to inspect, as text. It is never sent anywhere. */
  readonly token: string | undefined;
  /** Registers a client at the identity provider, and removes it again if the provider supports that. */
  readonly probeRegistration: boolean;
  readonly login: { readonly client: string; readonly user: string; readonly password: string } | undefined;
}

/** A file of tool pins. */
export interface ContractFile {
  /** Absolute path. */
  readonly path: string;
  /** As it was named. */
  readonly shown: string;
  /** Whether the tools are accepted as they are now: the file is written. */
  readonly isUpdated: boolean;
}

/** A running check: its name for progress messages, and the promise of its results. */
export interface Check {
  readonly name: string;
  readonly results: Promise<readonly CheckResult[]>;
}

/** Checks that belong together. Each group has its own file and is registered in `groups.ts`. */
export interface CheckGroup {
  readonly name: string;
  readonly title: (context: CheckContext) => string;
  /**
   * Starts all checks of the group concurrently, so that a slow one does not delay others. Returned in report order.
   */
  readonly run: (context: CheckContext) => readonly Check[];
}

type Found = CheckResult | CheckResult[];

/** A check with its results, or a promise of them. */
export const check = (name: string, found: Found | Promise<Found>): Check => ({
  name,
  results: Promise.resolve(found).then((results) => (Array.isArray(results) ? results : [results])),
});

/** Result of a group that requires a valid configuration. */
export const notKnown: CheckResult = {
  status: 'skip',
  message: 'not checked: the configuration is not valid',
};
// URLs in messages may contain a credential, which is redacted.
const result = (status: CheckResult['status'], message: string, fix?: string): CheckResult => ({
  status,
  message: byForm.text(message),
  ...(fix !== undefined && { fix: byForm.text(fix) }),
});
export const ok = (message: string): CheckResult => result('ok', message);
export const skip = (message: string): CheckResult => result('skip', message);
export const fail = (message: string, fix: string): CheckResult => result('fail', message, fix);
export const warn = (message: string, fix: string): CheckResult => result('warn', message, fix);

/** A result with its figures. Names in them may contain a credential, as messages may. */
export function withFigures(found: CheckResult, figures: NonNullable<CheckResult['figures']>): CheckResult {
  const redacted = Object.entries(figures).map(([key, value]) => [
    key,
    typeof value === 'string' ? byForm.text(value) : value,
  ]);
  return { ...found, figures: Object.fromEntries(redacted) };
}
