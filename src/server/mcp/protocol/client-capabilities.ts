import { isRecord } from '../../../core/foreign.ts';
import type { RpcMessage } from './message.ts';
import { errorMessage, RPC } from './protocol.ts';

/** What a client announced that it supports, in `initialize` or with a request. */
export type Capabilities = Readonly<Record<string, unknown>>;

/** Requests of servers in any revision with `initialize`, and the capability that each requires. */
const REQUIRED: ReadonlyMap<string, string> = new Map([
  ['roots/list', 'roots'],
  ['sampling/createMessage', 'sampling'],
  ['elicitation/create', 'elicitation'],
  ['tasks/get', 'tasks'],
  ['tasks/result', 'tasks'],
  ['tasks/list', 'tasks'],
  ['tasks/cancel', 'tasks'],
]);

/**
 * The error for a server's request that the client has announced no support for, as JSON text; undefined if the client may
 * be sent the request. The client would answer the same: the gateway answers at once, also while the client has no stream.
 * Methods outside the protocol are sent to clients with capabilities outside the protocol, which may define them.
 */
export function refusal(message: RpcMessage, capabilities: Capabilities): string | undefined {
  const { id = 'null', method, params } = message;
  const required = REQUIRED.get(method);
  const isSupported =
    required === undefined
      ? isAnnounced(capabilities['experimental']) || isAnnounced(capabilities['extensions'])
      : isAnnounced(capabilities[required]);
  if (!isSupported) return errorMessage(id, RPC.methodNotFound, `the client does not support ${method}`);
  const part = missingPart(method, params, capabilities);
  // MCP 2025-11-25, "Elicitation", "Error Handling", gives this code for a mode that the client did not declare.
  return part && errorMessage(id, RPC.invalidParams, `the client does not support ${part}`);
}

/** The part of a capability that the parameters of a request need and the client did not announce. */
function missingPart(
  method: string,
  params: Readonly<Record<string, unknown>>,
  capabilities: Capabilities,
): string | undefined {
  if (method === 'sampling/createMessage') {
    const { sampling } = capabilities;
    const hasTools = params['tools'] !== undefined || params['toolChoice'] !== undefined;
    return hasTools && !(isRecord(sampling) && isAnnounced(sampling['tools']))
      ? 'tools in sampling/createMessage'
      : undefined;
  }
  if (method !== 'elicitation/create') return undefined;
  const { elicitation } = capabilities;
  const modes = isRecord(elicitation) ? elicitation : {};
  const mode = params['mode'] ?? 'form';
  // An empty object means the form mode, the only one before 2025-11-25.
  const isSupported =
    mode === 'form'
      ? isAnnounced(modes['form']) || !isAnnounced(modes['url'])
      : mode === 'url' && isAnnounced(modes['url']);
  return isSupported ? undefined : `elicitation/create in mode ${JSON.stringify(mode).slice(0, 64)}`;
}

/** Whether a client opens links for its user: `elicitation/create` in mode `url` (since 2025-11-25). */
export const acceptsUrls = ({ elicitation }: Capabilities): boolean =>
  isRecord(elicitation) && isAnnounced(elicitation['url']);

/** Requests that may be answered with `input_required` (2026-07-28, "Supported Requests"). */
const TAKES_INPUT = new Set(['tools/call', 'prompts/get', 'resources/read']);

export const takesInput = (method: string): boolean => TAKES_INPUT.has(method);

/** Whether a client supports something. The specification has objects here; some clients send `true`. */
const isAnnounced = (value: unknown): boolean => isRecord(value) || value === true;
