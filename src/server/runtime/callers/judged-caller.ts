import type { Judgment } from '../../../core/tool-callers.ts';
import { CelStruct, toCel } from '../../expressions/cel/expression.ts';
import { environment } from '../../expressions/connection-variables.ts';
import { combineRules, hasRules, type PossibleDecision, possibleDecision } from '../../expressions/rules.ts';
import { Unknown } from '../../expressions/unknown.ts';
import { anyPolicyKinds } from '../../features.ts';
import type { VariableResolver } from '../../kernel/expression.ts';
import { GATEWAY } from '../../kernel/gateway-name.ts';
import type { Policy } from '../../kernel/request/request-context.ts';
import { mcpAuthorization } from '../../mcp/authorization-policy.ts';

/** A caller without a request: the value of the variable that its credential sets; undefined if it has no credential. */
export interface AssumedCaller {
  readonly credential?: { readonly variable: string; readonly value: unknown };
}

/** What a caller does. */
export interface ToolUse {
  readonly action: 'call' | 'list';
  readonly target: string;
  /** Its name at the target. */
  readonly tool: string;
}

/** The policies that a request to the tool meets, and what its expressions know of the place. */
export interface ToolPlace {
  readonly listener: string;
  readonly route: string;
  /** Of the listener, which run before there is a route. */
  readonly before: readonly Policy[];
  /** Of the route, then of the backend. */
  readonly after: readonly Policy[];
  /** Whether bundles decide, and why that depends on the request. */
  readonly bundles: string | undefined;
}

/** Variables of identity: null for callers that have not shown what sets them. */
const IDENTITY: ReadonlySet<string> = new Set(['apiKey', 'basicAuth', 'jwt']);

/**
 * Judges a caller as a request would be, by the compiled rules and with their evaluator. What only a request has (body, arguments, headers,
 * address) is not known: a rule whose outcome may depend on it makes the answer depend on it.
 */
export function judge(place: ToolPlace, assumed: AssumedCaller, use: ToolUse): Judgment {
  const { before, after, bundles } = place;
  const policies = [...before, ...after];
  // A credential that nobody reads is none.
  const isRead = policies.some(({ identifies }) => identifies?.variable === assumed.credential?.variable);
  const caller = isRead ? assumed : {};
  const unknown = new Unknown();
  const item = new UnknownCall(use, unknown);
  const lookup = (isRouted: boolean): VariableResolver => variablesOf(place, caller, isRouted, item, unknown);
  let open: string | undefined;
  let last = 'no policy refuses it';
  for (const policy of policies) {
    const other = refusalOf(policy, caller);
    if (other?.isCertain === true) return { answer: 'no', because: other.why };
    open ??= other?.why;
    if (!hasRules(policy) || policy.key === mcpAuthorization.key) continue;
    const decision = possibleDecision(policy.rules, lookup(after.includes(policy)), () => unknown.wasAsked());
    const because = reasonOf(policy.key, decision);
    if (!decision.mayAllow) return { answer: 'no', because };
    if (decision.mayRefuse) open ??= because;
    last = because;
  }
  // Rules of the route and of the backend decide on items together.
  const items = after.filter(hasRules).filter(({ key }) => key === mcpAuthorization.key);
  if (items.length > 0) {
    const rules = combineRules(items.map((policy) => policy.rules));
    const decision = possibleDecision(rules, lookup(true), () => unknown.wasAsked());
    last = reasonOf(mcpAuthorization.key, decision);
    if (!decision.mayAllow) return { answer: 'no', because: last };
    if (decision.mayRefuse) open ??= last;
  }
  open ??= bundles;
  return open === undefined ? { answer: 'yes', because: last } : { answer: 'depends', because: open };
}

/** How a policy without rules may refuse a caller. */
function refusalOf(
  policy: Policy,
  { credential }: AssumedCaller,
): { readonly isCertain: boolean; readonly why: string } | undefined {
  const { key, identifies } = policy;
  const kind = anyPolicyKinds.find((each) => each.key === key);
  if (kind?.refusesBy !== undefined) return { isCertain: false, why: `${key}: ${kind.refusesBy} decides` };
  if (hasRules(policy) || kind?.restrictsClients !== true) return undefined;
  if (identifies === undefined)
    return { isCertain: false, why: `${key}: the request decides which of its settings apply` };
  const { variable, takes, isRequired } = identifies;
  if (!isRequired || credential?.variable === variable) return undefined;
  return credential === undefined
    ? { isCertain: true, why: `${key} asks for ${takes}` }
    : { isCertain: false, why: `${key} asks for ${takes}, too` };
}

function reasonOf(key: string, { mayAllow, rule }: PossibleDecision): string {
  if (rule === undefined) return mayAllow ? `${key}: every rule holds` : `${key}: no allow rule is true`;
  return `${key}, ${rule.effect}: ${rule.expression.source}`;
}

/** Variables of a request of which only the caller, the place and the item are known. */
function variablesOf(
  { listener, route, before, after }: ToolPlace,
  { credential }: AssumedCaller,
  isRouted: boolean,
  item: UnknownCall,
  unknown: Unknown,
): VariableResolver {
  return (root) => {
    if (root === 'env') return environment();
    if (root === 'proxy')
      return {
        gateway: { name: GATEWAY.name, namespace: GATEWAY.namespace },
        listener: { name: listener },
        route: { name: isRouted ? route : null },
      };
    if (root === 'mcp') return { methodName: item.method, tool: item };
    if (IDENTITY.has(root)) {
      const asking = [...before, ...after].filter(({ identifies }) => identifies?.variable === root);
      if (credential?.variable === root) return toCel(credential.value);
      // Whoever is asked for two credentials has two; otherwise a caller shows one.
      if (credential === undefined || !asking.some(({ identifies }) => identifies?.isRequired === true))
        return null;
    }
    return unknown.ask(root);
  };
}

/** The tool as rules see it: a call has arguments, which are not known, and a list has none. */
class UnknownCall extends CelStruct {
  readonly method: string;
  readonly #use: ToolUse;
  readonly #arguments: UnknownArguments | undefined;

  constructor(use: ToolUse, unknown: Unknown) {
    super();
    this.#use = use;
    this.method = use.action === 'call' ? 'tools/call' : 'tools/list';
    if (use.action === 'call') this.#arguments = new UnknownArguments(unknown);
  }

  field(name: string): unknown {
    if (name === 'name') return this.#use.tool;
    if (name === 'target') return this.#use.target;
    return name === 'arguments' ? this.#arguments : undefined;
  }

  fields(): readonly string[] {
    return this.#arguments === undefined ? ['name', 'target'] : ['name', 'target', 'arguments'];
  }
}

class UnknownArguments extends CelStruct {
  readonly #unknown: Unknown;

  constructor(unknown: Unknown) {
    super();
    this.#unknown = unknown;
  }

  field(name: string): never {
    return this.#unknown.ask(`the argument ${name}`);
  }

  fields(): never {
    return this.#unknown.ask('the arguments');
  }
}
