import { z } from 'zod';
import { type HeaderList, isHeaderName, isHeaderValue } from '../http/header-list.ts';
import { definePolicy } from '../policy.ts';

const name = z.string().refine(isHeaderName, { error: 'expected a header name' });
const values = z.record(
  name,
  z.string().refine(isHeaderValue, { error: 'expected a header value: no control characters' }),
);

const schema = z.strictObject({
  add: values.default({}).describe('Headers to add, beside any of the same name.'),
  set: values.default({}).describe('Headers to set, in place of any of the same name.'),
  remove: z.array(name).default([]).describe('Headers to remove. Done last.'),
});

type Config = z.output<typeof schema>;

function modifier({ add, set, remove }: Config): (headers: HeaderList) => void {
  const added = Object.entries(add);
  const replaced = Object.entries(set);
  return (headers) => {
    for (const [header, value] of replaced) headers.set(header, value);
    for (const [header, value] of added) headers.append(header, value);
    for (const header of remove) headers.delete(header);
  };
}

const snapshot = ({ add, set, remove }: Config): Record<string, unknown> => ({
  add: Object.keys(add),
  set: Object.keys(set),
  remove,
});

/** Literal changes to what the backend receives. */
export const requestHeaderModifier = definePolicy({
  key: 'requestHeaderModifier',
  schema: schema.describe('Changes request headers before the backend.'),
  compile(config) {
    const modify = modifier(config);
    return {
      request(x) {
        modify(x.headers);
        x.trace?.({
          type: 'policy',
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

/** Literal changes to what the client receives, refusals included. */
export const responseHeaderModifier = definePolicy({
  key: 'responseHeaderModifier',
  schema: schema.describe('Changes response headers before the client.'),
  compile(config) {
    const modify = modifier(config);
    return {
      response(x, reply) {
        modify(reply.headers);
        x.trace?.({
          type: 'policy',
          kind: 'responseHeaderModifier',
          action: 'apply',
          reason: 'response headers changed',
          snapshot: snapshot(config),
        });
      },
    };
  },
});
