import { z } from 'zod';
import { durationSchema, durationText } from '../../core/duration.ts';
import { LIMITS } from '../../core/limits.ts';
import type { Redactor } from '../../core/redact.ts';
import { choice, mapping, nonEmpty } from '../../core/schema/mapping.ts';
import { tryEvaluate } from '../expressions/cel/expression.ts';
import { resolverFor } from '../expressions/variable.ts';
import { compilePatterns, type Patterns, ruleSchema } from '../guardrails/patterns.ts';
import type { CompileContext } from '../kernel/compile-context.ts';
import type { CelResult, ExpressionScope } from '../kernel/expression.ts';
import type { RequestContext } from '../kernel/request/request-context.ts';

const DAY = 24 * 3600 * 1000;

/** `frontendPolicies.accessLog.database`. */
export const recordPolicySchema = z.lazy(() =>
  mapping('The record of requests in `config.database`.', {
    payloads: choice(
      'What is kept of each request: `metadata` (time, caller, route, model, tool, status, tokens, cost, without contents); `full`, also prompts, completions, and arguments and results of tools; `none`, only sums per hour for `agctl usage`.',
      ['none', 'metadata', 'full'],
      'metadata',
    ),
    llm: z.enum(['metadata', 'full']).optional().describe("`payloads` for LLM calls only (upstream's name)."),
    add: z
      .record(nonEmpty, nonEmpty)
      .default({})
      .describe(
        'Fields to add to each record, as CEL expressions. `key`, `user` and `group` replace who the request is attributed to: the name of the API key, the subject of the token or user of the key, and the group or team of the key. `session` replaces the session of MCP.',
      ),
    redaction: z
      .strictObject({
        rules: z
          .array(ruleSchema)
          .default([
            { builtin: 'creditCard' },
            { builtin: 'apiKey' },
            { builtin: 'iban' },
            { builtin: 'ssn' },
          ])
          .describe(
            'What is replaced in every text, as in guardrails: `{ builtin: … }` or `{ pattern: … }`. Card numbers, API keys, IBANs and U.S. Social Security numbers by default.',
          ),
      })
      .prefault({})
      .describe(
        'What is replaced before anything is written. Secrets of this file, and credentials in a common notation, are always replaced.',
      ),
    retention: durationSchema
      .refine((age) => age > 0, { error: 'expected a duration of more than 0' })
      .prefault(durationText(30 * DAY))
      .describe('Age at which records and sums are deleted.'),
    failureMode: choice(
      'What happens to requests while the database fails: `allow`, they go on, and are recorded later or, if too many wait, not at all, which is logged and counted; `deny`, they are answered with status 503.',
      ['allow', 'deny'],
      'allow',
    ),
  }),
);

export type RecordConfig = z.output<typeof recordPolicySchema>;

/** Compiled `frontendPolicies.accessLog.database`. */
export interface RecordPolicy {
  readonly payloads: RecordConfig['payloads'];
  readonly retention: number;
  readonly refusesOnFailure: boolean;
  /** Whether features must keep what this dotted path names, such as `llm.prompt`, until the request is recorded. */
  reads(path: string): boolean;
  /** Whether prompts and completions, or arguments and results of tools, are kept. */
  readonly keepsLlm: boolean;
  readonly keepsMcp: boolean;
  /** Added fields without those that failed or are null. */
  added(ctx: RequestContext): Readonly<Record<string, CelResult>> | undefined;
  /** Replaces secrets in a short text that a client or server chose, such as the name of a model, and cuts it. */
  label(text: string): string;
  /** Replaces secrets in the texts, numbers and keys of a JSON value. */
  value(value: unknown): unknown;
}

interface Configured {
  readonly config: { readonly database?: unknown };
  readonly frontendPolicies: { readonly accessLog: { readonly database?: RecordConfig | undefined } };
}

/**
 * The policy of a configuration; undefined without `config.database`: then the settings are compiled for their problems
 * only. `context` is that of the settings.
 */
export function recordPolicy(
  { config, frontendPolicies }: Configured,
  scope: ExpressionScope,
  context: CompileContext,
): RecordPolicy | undefined {
  const given = frontendPolicies.accessLog.database;
  if (given === undefined && config.database === undefined) return undefined;
  const policy = compileRecordPolicy(given ?? recordPolicySchema.parse({}), scope, context);
  if (config.database !== undefined) return policy;
  // The reload itself says that a restart is needed.
  if (context.settings.isDatabaseAdded) return undefined;
  context.report({
    code: 'AGW0303',
    atKey: true,
    message: 'no requests are recorded, because there is no database',
    help: 'set `config.database`, for example `database: { url: sqlite://./data.db }`',
  });
  return undefined;
}

function compileRecordPolicy(
  config: RecordConfig,
  scope: ExpressionScope,
  context: CompileContext,
): RecordPolicy {
  const { payloads, add, redaction, retention, failureMode } = config;
  const fields = Object.entries(add).map(
    ([name, source]) => [name, context.at('add', name).cel(source, scope)] as const,
  );
  const patterns = compilePatterns({ action: 'mask', rules: redaction.rules }, context.at('redaction'));
  const keepsLlm = (config.llm ?? payloads) === 'full';
  const keepsMcp = payloads === 'full';
  const redacting = new Redacting(patterns, context.redactor);
  return {
    payloads,
    retention,
    refusesOnFailure: failureMode === 'deny',
    keepsLlm,
    keepsMcp,
    reads: (path) => (keepsLlm && LLM_PAYLOADS.has(path)) || (keepsMcp && MCP_PAYLOADS.has(path)),
    added(ctx) {
      if (fields.length === 0) return undefined;
      const values = fields.map(
        ([name, expression]) => [name, tryEvaluate(expression, resolverFor(ctx))] as const,
      );
      return Object.fromEntries(
        values.flatMap(([name, value]) => (value === undefined || value === null ? [] : [[name, value]])),
      );
    },
    label: (text) => redacting.label(text),
    value: (value) => redacting.value(value),
  };
}

const LLM_PAYLOADS = new Set(['llm.prompt', 'llm.completion', 'llm.toolCalls']);
const MCP_PAYLOADS = new Set(['mcp.tool.arguments', 'mcp.tool.result', 'mcp.tool.error']);

/** Labels whose redacted form is kept. */
const KNOWN_LABELS = 2_000;

/** Replaces secrets of the configuration, credentials by their notation, and what the patterns match. */
class Redacting {
  readonly #patterns: Patterns;
  readonly #redactor: () => Redactor;
  /** Most requests have the same few labels. */
  readonly #labels = new Map<string, string>();

  constructor(patterns: Patterns, redactor: () => Redactor) {
    this.#patterns = patterns;
    this.#redactor = redactor;
  }

  label(text: string): string {
    const known = this.#labels.get(text);
    if (known !== undefined) return known;
    // A secret at the cut is still recognized.
    const clean = this.text(text.slice(0, LIMITS.recordText * 2));
    const short = clean.length > LIMITS.recordText ? `${clean.slice(0, LIMITS.recordText)}…` : clean;
    // PostgreSQL stores neither NUL nor half of a surrogate pair.
    const label = short.toWellFormed().replaceAll('\0', '');
    if (this.#labels.size >= KNOWN_LABELS) this.#labels.clear();
    if (text.length <= LIMITS.recordText) this.#labels.set(text, label);
    return label;
  }

  text(text: string): string {
    const redactor = this.#redactor();
    // Patterns before other credentials by their form: a name such as `<API_KEY>` says more than `<redacted>`.
    return redactor.line(this.#patterns.mask(redactor.known(text)));
  }

  value(value: unknown): unknown {
    // Then members named like a credential: their values have no form of their own.
    return this.#redactor().value(this.#masked(value));
  }

  #masked(value: unknown): unknown {
    if (typeof value === 'string') return this.text(value);
    if (typeof value === 'number') {
      // A card number may be a number.
      const text = String(value);
      const masked = this.#patterns.mask(text);
      return masked === text ? value : masked;
    }
    if (typeof value === 'bigint') return this.text(String(value));
    if (Array.isArray(value)) return value.map((each) => this.#masked(each));
    if (value === null || typeof value !== 'object') return value;
    return Object.fromEntries(
      Object.entries(value).map(([key, each]) => [this.text(key), this.#masked(each)]),
    );
  }
}
