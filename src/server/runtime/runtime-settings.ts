import { randomBytes } from 'node:crypto';
import { resolve } from 'node:path';
import { LIMITS, type Limits } from '../../core/limits.ts';
import type { Log } from '../../core/log.ts';
import { Audit, auditOf } from '../audit/audit.ts';
import { thisGateway } from '../audit/event.ts';
import { USUAL_AUDIT } from '../audit/settings.ts';
import { Spending, spendingOf } from '../budgets/spending.ts';
import { HeaderReads } from '../config/header-reads.ts';
import type { Config } from '../config/schema.ts';
import { GatewayDatabase } from '../database/gateway-database.ts';
import { anyBackendKinds, databaseSchemas } from '../features.ts';
import { StandingWork, standingWork } from '../kernel/admission.ts';
import type { RuntimeSettings } from '../kernel/compile-context.ts';
import { programPolicies } from '../kernel/program-policies.ts';
import { FieldRules } from '../kernel/request/field-rules.ts';
import type { RequestContext } from '../kernel/request/request-context.ts';
import { processSecret } from '../kernel/request/shared-slots.ts';
import { OWN_STATE, type SharedState } from '../kernel/shared-state.ts';
import { CountedBatches, countedBatches } from '../llm/batches/counted-batches.ts';
import { ChildSlots } from '../mcp/child-slots.ts';
import { setMcpProcess } from '../mcp/process.ts';
import { ResultPool } from '../mcp/result-limits/kept-results.ts';
import type { Metrics } from '../observe/metrics/metrics.ts';
import { openSignInService, signInService } from '../user-tokens/service.ts';

/** What the workers of a gateway share. */
export interface Sharing {
  readonly state: SharedState;
  /** `RuntimeSettings.instance`. */
  readonly instance: string;
  /** Key for session ids (32 bytes), unless one is configured. */
  readonly sessionKey: Buffer;
  /** Number of this worker, from 1 to `count`; 0 in the process that starts them. */
  readonly index: number;
  readonly count: number;
}

interface SettingsOptions {
  readonly folder: string;
  readonly log: Log;
  readonly sharing?: Sharing | undefined;
  readonly limits?: Partial<Limits>;
  readonly policies?: readonly unknown[] | undefined;
}

/** The database of `config.database`, which the gateway opens. */
export function databaseOf(
  { config }: Config,
  { folder, log, limits = {} }: Pick<SettingsOptions, 'folder' | 'log' | 'limits'>,
): GatewayDatabase | undefined {
  if (config.database === undefined) return undefined;
  return new GatewayDatabase({
    config: config.database,
    folder,
    schemas: databaseSchemas,
    log,
    limits: { ...LIMITS, ...limits },
  });
}

const FIELD_RULES = new FieldRules(anyBackendKinds.flatMap(({ protocolFields }) => protocolFields ?? []));

/** Settings of the configuration, which a reload replaces. */
function replacedSettings(loaded: Config, effective: Config) {
  const { config, frontendPolicies } = effective;
  return {
    secretNames: {
      headers: new Set(config.sensitiveHeaders.map((name) => name.toLowerCase())),
      parameters: new Set<string>(),
      values: new Set<string>(),
      guarded: new Set<RequestContext['protocol']>(),
    },
    requestValidation: {
      ...config.http,
      headerCount: frontendPolicies.http.http1MaxHeaders,
      headerReads: new HeaderReads(effective),
      fieldRules: FIELD_RULES,
    },
    maxBufferSize: frontendPolicies.http.maxBufferSize ?? LIMITS.requestBodyBytes,
    isBufferSizeSet: frontendPolicies.http.maxBufferSize !== undefined,
    isDatabaseAdded: config.database === undefined && loaded.config.database !== undefined,
    signInLacks: signInLacks(config, loaded.config),
  };
}

/** Settings of the process, which a reload keeps, with those of the configuration. */
export function runtimeSettings(
  loaded: Config,
  effective: Config,
  metrics: Metrics,
  database: GatewayDatabase | undefined,
  previous: RuntimeSettings | undefined,
  { limits = {}, sharing, log, policies, folder }: SettingsOptions,
): RuntimeSettings {
  const { config } = effective;
  const own = replacedSettings(loaded, effective);
  if (previous !== undefined) return { ...previous, ...own };
  const allLimits = { ...LIMITS, ...limits };
  const settings: RuntimeSettings = {
    slots: undefined,
    limits: allLimits,
    // The global takes 0.3 ms; loading `node:crypto` takes 10.
    instance: sharing?.instance ?? crypto.randomUUID(),
    sharedState: sharing?.state ?? OWN_STATE,
    database,
    callMeter: (kind, subtype) => metrics.calls(kind, subtype),
    counter: (name) => (labels, amount) => metrics.families[name].with(labels).inc(amount),
    ...own,
  };
  standingWork.set(settings, new StandingWork(allLimits.keyRefresh));
  programPolicies.set(settings, policies);
  countedBatches.set(settings, new CountedBatches(settings));
  const { file, retention } = config.audit ?? USUAL_AUDIT;
  auditOf.set(
    settings,
    new Audit({
      log,
      file: file === undefined ? undefined : resolve(folder, file),
      database,
      // Workers are children of the gateway.
      gateway: thisGateway((sharing?.index ?? 0) === 0 ? process.pid : process.ppid),
      // Once for all workers.
      retention: (sharing?.index ?? 0) === 0 ? retention : undefined,
      limits: allLimits,
      failed: (sink) => metrics.families.auditFailures.with([sink]).inc(),
      omitted: () => metrics.families.auditRefusalsOmitted.with([]).inc(),
    }),
  );
  const { key } = config.session;
  if (database !== undefined) {
    const spending = new Spending({
      database,
      log,
      limits: allLimits,
      sharedState: settings.sharedState,
      worker: sharing?.index ?? 0,
      failed: () => metrics.families.budgetFailures.with([]).inc(),
    });
    spendingOf.set(settings, spending);
    metrics.chargesWaiting = () => spending.ledger.waiting;
  }
  const share = (total: number): number => shareOf(total, sharing);
  let sessionKey = key === undefined ? sharing?.sessionKey : Buffer.from(key, 'hex');
  // On first use: loading `node:crypto` takes 10 ms, and `config validate` opens no session.
  const secret = (): Buffer => {
    sessionKey ??= randomBytes(32);
    return sessionKey;
  };
  processSecret.set(settings, { value: secret, isConfigured: key !== undefined });
  const { signIn } = config.mcp;
  if (signIn !== undefined && database !== undefined && key !== undefined)
    signInService.set(
      settings,
      openSignInService({ settings: signIn, database, secret, log, limits: allLimits }),
    );
  setMcpProcess(settings, {
    get sessionKey() {
      return secret();
    },
    isKeyConfigured: key !== undefined,
    sessionIdle: config.mcp.sessionTtl,
    maxSessions: Math.max(1, share(config.mcp.maxSessions)),
    children: new ChildSlots(Math.max(1, share(config.mcp.maxChildren)), allLimits),
    results: new ResultPool(share(allLimits.allKeptResultBytes), secret),
    worker: sharing?.index,
    share,
  });
  return settings;
}

/** What sign-ins of users at MCP servers need and this process lacks, and whether the file has all of it by now. */
function signInLacks(
  { database, session, mcp }: Config['config'],
  loaded: Config['config'],
): RuntimeSettings['signInLacks'] {
  const needs = [
    ['config.database', database, loaded.database],
    ['config.session.key', session.key, loaded.session.key],
    ['config.mcp.signIn', mcp.signIn, loaded.mcp.signIn],
  ] as const;
  const missing = needs.filter(([, active]) => active === undefined);
  return {
    keys: missing.map(([key]) => key),
    areAdded: missing.every(([, , written]) => written !== undefined),
  };
}

/** The shares of all workers add up to the total. */
function shareOf(total: number, sharing: Sharing | undefined): number {
  if (sharing === undefined) return total;
  const { index, count } = sharing;
  return Math.floor(total / count) + (index <= total % count ? 1 : 0);
}
