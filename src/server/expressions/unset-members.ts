import { foreignMember } from './cel/roots.ts';
import type { Place } from './variables.ts';

const NOT_ENDED = { 'request.endTime': 'the request has not ended' };
const NOT_CALLED = { 'backend.name': 'no backend has been called' };
const NO_BODY = {
  'request.body': 'the body has not been read',
  'request.bodyPrefix': 'the body has not been read',
};

/** Variables and members that a place has by its roots, and that are not set there, with the reason. */
export const UNSET: Readonly<Record<Place, Readonly<Record<string, string>>>> = {
  request: { ...NOT_ENDED, ...NOT_CALLED },
  authorizationReply: { ...NOT_ENDED, ...NOT_CALLED },
  providerReply: {
    ...NOT_ENDED,
    'response.body': 'the body of the answer is on its way',
    'response.bodyPrefix': 'the body of the answer is on its way',
  },
  mcpAuthorization: {
    ...NOT_ENDED,
    ...NOT_CALLED,
    'mcp.sessionId': 'it is for the log',
    'mcp.tool.result': 'the tool has not been called',
    'mcp.tool.error': 'the tool has not been called',
  },
  llmRequest: { ...NOT_ENDED, ...NOT_CALLED },
  llmResponse: NOT_ENDED,
  sampling: {
    ...NOT_ENDED,
    ...NOT_CALLED,
    ...NO_BODY,
    jwt: 'no policy has run',
    apiKey: 'no policy has run',
    extauthz: 'no policy has run',
    'proxy.route.name': 'the route is not known',
  },
  traceFilter: { ...NOT_ENDED, ...NO_BODY },
  log: {},
};

/** Why what is read at a path of an expression is never there in its place; undefined when it may be. */
export function whyUnset(place: Place, path: string): { member: string; why: string } | undefined {
  const foreign = foreignMember(path.split('.'));
  if (foreign !== undefined) return { member: foreign, why: 'this gateway never sets it' };
  const found = Object.entries(UNSET[place]).find(([member]) => `${path}.`.startsWith(`${member}.`));
  return found && { member: found[0], why: found[1] };
}
