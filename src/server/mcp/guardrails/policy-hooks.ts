import { AppError, detailOf, ERRORS } from '../../../core/errors.ts';
import { isRecord, membersOf, parseJson, textIn } from '../../../core/foreign.ts';
import { GuardrailError } from '../../guardrails/outcome.ts';
import { writeChanged } from '../../kernel/json/changed-json.ts';
import { type ItemAnswer, type ItemCall, type PolicyHooks, policyHooks } from '../../kernel/policy-hooks.ts';
import type { RequestContext } from '../../kernel/request/request-context.ts';
import { messageGuards } from '../request-fields.ts';
import { type Guard, ProcessorChain } from './message-guards.ts';
import { checkablePhases, type Phases } from './methods.ts';
import { type GuardedMessage, type MessageVerdict, REJECTED } from './processor.ts';

/** Lets the policies of the request check its messages, before those of `mcpGuardrails`, which see what they leave. */
export function guardByPolicies(ctx: RequestContext): void {
  const guards = policyHooks.get(ctx)?.flatMap(guardOf) ?? [];
  if (guards.length === 0) return;
  const others = messageGuards.get(ctx);
  const own = others instanceof ProcessorChain ? others.guards : [];
  messageGuards.set(ctx, new ProcessorChain(ctx, [...guards, ...own]));
}

function guardOf(hooks: PolicyHooks): Guard[] {
  const { name, place, mcpCall, mcpResult } = hooks;
  if (mcpCall === undefined && mcpResult === undefined) return [];
  const phase: Phases = mcpResult === undefined ? 'request' : mcpCall === undefined ? 'response' : 'full';
  return [
    {
      name: `the policy ${name}`,
      phases: new Map([...checkablePhases(false).keys()].map((method) => [method, phase])),
      processor: {
        place,
        reason: ERRORS.policy_denied.reason,
        check: (message) => check(hooks, message),
        close: () => Promise.resolve(),
      },
    },
  ];
}

async function check(hooks: PolicyHooks, message: GuardedMessage): Promise<MessageVerdict> {
  const call = callIn(message);
  if (call === undefined) return { kind: 'pass' };
  try {
    const text = await (message.phase === 'request'
      ? changedCall(hooks, call, message)
      : changedAnswer(hooks, call, message));
    return text === message.text ? { kind: 'pass' } : { kind: 'mask', text };
  } catch (error) {
    if (error instanceof AppError && error.code !== 'policy_failed')
      return { kind: 'reject', code: REJECTED.denied, reason: error.message };
    throw new GuardrailError(detailOf(error));
  }
}

/** What is asked of a server. Undefined for what the client answers to it, which belongs to a call that was checked. */
function callIn({ method, phase, targets, params }: GuardedMessage): ItemCall | undefined {
  const { name, uri, arguments: given } = membersOf(parseJson(params));
  const item = textIn(name ?? uri);
  const [target = ''] = targets;
  if (!isItemMethod(method) || (item === '' && phase === 'request')) return undefined;
  return { method, target, name: item, arguments: { ...membersOf(given) } };
}

const isItemMethod = (method: string): method is ItemCall['method'] => checkablePhases(false).has(method);

async function changedCall(hooks: PolicyHooks, call: ItemCall, { text }: GuardedMessage): Promise<string> {
  const { method, name } = call;
  const before = JSON.stringify(call.arguments);
  let changed = text;
  await hooks.mcpCall?.(call, () => {
    if (!isRecord(call.arguments))
      throw new TypeError('`arguments` of the call were set to what is not an object');
    if (call.method !== method || call.name !== name)
      throw new TypeError('only `arguments` of a call can be changed: rules have decided about the rest');
    if (JSON.stringify(call.arguments) === before) return;
    if (method === 'resources/read') throw new TypeError('resources are read without arguments');
    const params = parseJson(text);
    changed = writeChanged(text, params, { ...membersOf(params), arguments: call.arguments });
  });
  return changed;
}

async function changedAnswer(
  hooks: PolicyHooks,
  call: ItemCall,
  { text, part }: GuardedMessage,
): Promise<string> {
  const given = { ...membersOf(parseJson(text)) };
  const before = JSON.stringify(given);
  const isError = part === 'error';
  const answer: ItemAnswer = {
    ...call,
    result: isError ? undefined : given,
    error: isError ? given : undefined,
  };
  let changed = text;
  await hooks.mcpResult?.(answer, () => {
    const [own, other] = isError ? [answer.error, answer.result] : [answer.result, answer.error];
    if (!isRecord(own) || other !== undefined)
      throw new TypeError(
        'a result cannot become an error, or the other way round: use `deny` of the context',
      );
    if (JSON.stringify(own) !== before) changed = writeChanged(text, parseJson(text), own);
  });
  return changed;
}
