import type { ChatRequest } from './chat.ts';
import { type MemberNames, Untranslatable } from './chat-format.ts';

/** Where parts of a request are in the client's body. Writers know only the parts, and errors name the members. */
const paths = new WeakMap<object, string>();

export function rememberPath(part: unknown, path: string): void {
  if (typeof part === 'object' && part !== null) paths.set(part, path);
}

/** Refuses a part of a conversation, a tool or another object that was read from a request, or a member of it. */
export function refusePart(part: object, why: string, member?: string): never {
  const path = paths.get(part) ?? (part as { type?: string }).type ?? 'messages';
  throw new Untranslatable(member === undefined ? path : `${path}.${member}`, why);
}

/** A member of the request that the provider's format cannot express. */
class UntranslatableMember extends Untranslatable {
  readonly member: keyof ChatRequest;

  constructor(member: keyof ChatRequest, why?: string) {
    super(member, why);
    this.member = member;
  }
}

/** Refuses the members that are set. */
export function refuseMembers(request: ChatRequest, members: readonly (keyof ChatRequest)[]): void {
  for (const member of members) if (request[member] !== undefined) refuseMember(member);
}

export function refuseMember(member: keyof ChatRequest, why?: string): never {
  throw new UntranslatableMember(member, why);
}

/** The error with the member's name in the client's format. */
export function nameMember(error: unknown, names: MemberNames = {}): unknown {
  if (!(error instanceof UntranslatableMember)) return error;
  return new Untranslatable(names[error.member] ?? error.member, error.why);
}
