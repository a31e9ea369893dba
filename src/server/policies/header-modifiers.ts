import { definePolicy } from '../kernel/policy.ts';
import { type HeaderChanges, headerChanges, headerChangesSchema } from '../kernel/request/header-changes.ts';

const snapshot = ({ add, set, remove }: HeaderChanges): Record<string, unknown> => ({
  add: Object.keys(add),
  set: Object.keys(set),
  remove,
});

/** Changes request headers to literal values before the backend receives them. */
export const requestHeaderModifier = definePolicy({
  key: 'requestHeaderModifier',
  places: ['route', 'backend'],
  schema: headerChangesSchema.describe('Changes request headers before the request is sent to the backend.'),
  trace: { kind: 'request_header_modifier', stage: 'request header modifier' },
  compile(config) {
    const change = headerChanges(config);
    return {
      request(ctx) {
        change(ctx.headers);
        ctx.observer?.policy({
          kind: 'requestHeaderModifier',
          action: 'apply',
          reason: 'request headers changed',
          snapshot: snapshot(config),
        });
        return undefined;
      },
    };
  },
});

/** Changes response headers to literal values, including those of error responses. */
export const responseHeaderModifier = definePolicy({
  key: 'responseHeaderModifier',
  places: ['route', 'backend'],
  schema: headerChangesSchema.describe('Changes response headers before the response is sent to the client.'),
  trace: {
    kind: 'response_header_modifier',
    stage: 'response header modifier',
    responseStage: 'response header modifier',
  },
  compile(config) {
    const change = headerChanges(config);
    return {
      response(ctx, reply) {
        change(reply.headers);
        ctx.observer?.policy({
          kind: 'responseHeaderModifier',
          action: 'apply',
          reason: 'response headers changed',
          snapshot: snapshot(config),
        });
      },
    };
  },
});
