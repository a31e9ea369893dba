import type { Path } from '../../core/diagnostic.ts';
import { jsonIn } from '../../core/foreign.ts';
import { schemaAt } from '../../server/config/schema-at.ts';
import { defineEndpoint, parameter, sendJson, sendText } from '../endpoint.ts';

/** A path of the configuration is at most this deep; deeper ones are mistakes. */
const DEEPEST = 40;

/**
 * What may be written at a place of a configuration file: `path` is a JSON array of keys and indexes, such as
 * `["gateways","default","routes",0]`. For completion in editors.
 */
export const configSchemaHint = defineEndpoint({
  path: '/api/config/schema',
  methods: ['GET'],
  handle(request, reply) {
    const path = pathOf(parameter(request, 'path') ?? '[]');
    if (path === undefined)
      return sendText(
        reply,
        400,
        'path: expected a JSON array of keys and indexes, such as ["gateways","default"]\n',
      );
    return sendJson(reply, schemaAt(path));
  },
});

function pathOf(text: string): Path | undefined {
  const path = jsonIn(text);
  return isPath(path) ? path : undefined;
}

const isPath = (value: unknown): value is Path =>
  Array.isArray(value) &&
  value.length <= DEEPEST &&
  value.every((part) => typeof part === 'string' || Number.isSafeInteger(part));
