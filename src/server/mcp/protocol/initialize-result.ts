import { isRecord, membersOf, stringIn } from '../../../core/foreign.ts';
import type { RpcMessage } from './message.ts';
import { LATEST_SESSION_REVISION, META, SESSION_REVISIONS } from './protocol.ts';

/** What a server says of itself in its result of `initialize` or `server/discover`. */
export interface InitializeResult {
  readonly protocolVersion: string;
  readonly capabilities: Readonly<Record<string, unknown>>;
  readonly serverInfo?: Readonly<Record<string, unknown>>;
  readonly instructions?: string;
}

/**
 * Reads a server's result of `initialize`. Throws if it has no revision that the gateway knows: "If the client does not support
 * the version in the server's response, it SHOULD disconnect" (MCP 2025-11-25, "Version Negotiation").
 */
export function initializeResultOf({ result }: RpcMessage): InitializeResult {
  const { protocolVersion, ...others } = membersOf(result);
  const known = SESSION_REVISIONS.find((revision) => revision === protocolVersion);
  if (known === undefined) {
    const chosen =
      protocolVersion === undefined || protocolVersion === null
        ? 'its initialize result has no protocolVersion'
        : `it chose the protocol revision ${JSON.stringify(protocolVersion).slice(0, 64)} in initialize`;
    throw new Error(`${chosen}: expected one of ${SESSION_REVISIONS.join(', ')}`);
  }
  return { protocolVersion: known, ...descriptionIn(others) };
}

/** Returns the oldest of these revisions. Unknown revisions count as the latest known one. */
export function lowestRevision(versions: readonly string[]): string {
  return SESSION_REVISIONS.find((known) => versions.includes(known)) ?? LATEST_SESSION_REVISION;
}

/** The members of either result that describe the server, as far as they have the right type. */
export function descriptionIn(result: unknown): Omit<InitializeResult, 'protocolVersion'> {
  const { capabilities, serverInfo, instructions } = membersOf(result);
  const text = stringIn(instructions);
  return {
    capabilities: capabilitiesIn(capabilities),
    ...(isRecord(serverInfo) && { serverInfo }),
    ...(text !== undefined && { instructions: text }),
  };
}

/** The result of `initialize` for a client that requested a revision, of a server that only has `server/discover`. As JSON text. */
export function initializeResultFor(
  requested: unknown,
  { discovered, targetName }: { readonly discovered: RpcMessage; readonly targetName: string },
): string {
  const { capabilities, instructions } = descriptionIn(discovered.result);
  const serverInfo = membersOf(membersOf(discovered.result)['_meta'])[META.serverInfo];
  return JSON.stringify({
    protocolVersion: SESSION_REVISIONS.some((known) => known === requested)
      ? requested
      : LATEST_SESSION_REVISION,
    capabilities,
    serverInfo: isRecord(serverInfo) ? serverInfo : { name: targetName, version: '' },
    ...(instructions !== undefined && { instructions }),
  });
}

/** The capability of a list that a server has not announced, but may have. */
export const UNANNOUNCED: Readonly<Record<string, unknown>> = Object.freeze({});

const LISTS = ['tools', 'prompts', 'resources'];

/**
 * The capabilities of a server. One that announces no list is asked for all of them, as clients do that do not look: servers that
 * were written by hand have tools, and `{}` or null as capabilities.
 */
export function capabilitiesIn(value: unknown): InitializeResult['capabilities'] {
  const announced = membersOf(value);
  const hasList = LISTS.some((kind) => kind in announced);
  return hasList
    ? announced
    : { ...announced, ...Object.fromEntries(LISTS.map((kind) => [kind, UNANNOUNCED])) };
}
