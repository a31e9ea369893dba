import { byForm } from '../../core/redact.ts';
import type { LoadedConfig } from '../../server/config/load.ts';
import type { GatewayPlan } from '../../server/config/plan.ts';
import type { Config } from '../../server/config/schema.ts';

/** What one check found. `fix` says what to do about it. */
export interface CheckResult {
  readonly status: 'ok' | 'warn' | 'fail' | 'skip';
  readonly message: string;
  readonly fix?: string;
}

/** What checks may look at. */
export interface CheckContext {
  readonly file: string;
  readonly loaded: LoadedConfig;
  readonly config: Config | undefined;
  readonly gateways: readonly GatewayPlan[];
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly folder: string;
  readonly options: CheckOptions;
}

export interface CheckOptions {
  /** No network: only what this machine knows. */
  readonly offline: boolean;
  /** Start the commands of stdio targets. */
  readonly start: boolean;
  /** A token to look at, as text. It is never sent anywhere. */
  readonly token: string | undefined;
  /** Registers a client at the identity provider, and removes it again where the provider allows that. */
  readonly probeRegistration: boolean;
  readonly login: { readonly client: string; readonly user: string; readonly password: string } | undefined;
}

/** A check that runs: what it will have found, and its name for people who wait. */
export interface Check {
  readonly name: string;
  readonly results: Promise<readonly CheckResult[]>;
}

/** Checks that belong together; each group is one file and one line in `groups.ts`. */
export interface CheckGroup {
  readonly name: string;
  readonly title: (context: CheckContext) => string;
  /** Starts all of them at once: one that takes long holds up no other. In the order of the report. */
  readonly run: (context: CheckContext) => readonly Check[];
}

type Found = CheckResult | readonly CheckResult[];

/** A check with what it finds, or will find. */
export const check = (name: string, found: Found | Promise<Found>): Check => ({
  name,
  results: Promise.resolve(found).then((results) =>
    Array.isArray(results) ? (results as readonly CheckResult[]) : [results as CheckResult],
  ),
});

/** Result of a group that needs a valid configuration. */
export const notKnown: CheckResult = {
  status: 'skip',
  message: 'not checked: the configuration is not valid',
};
// What is checked is named by its URL, which may hold a credential.
const result = (status: CheckResult['status'], message: string, fix?: string): CheckResult => ({
  status,
  message: byForm.text(message),
  ...(fix !== undefined && { fix: byForm.text(fix) }),
});
export const ok = (message: string): CheckResult => result('ok', message);
export const skip = (message: string): CheckResult => result('skip', message);
export const fail = (message: string, fix: string): CheckResult => result('fail', message, fix);
export const warn = (message: string, fix: string): CheckResult => result('warn', message, fix);
