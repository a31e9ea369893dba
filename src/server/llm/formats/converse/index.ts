import { membersOf } from '../../../../core/foreign.ts';
import type { ProviderWireFormat } from '../format.ts';
import { isUnmarkable } from '../messages/cache-marks.ts';
import { isClaude, isNova } from './cache-points.ts';
import { eventStream } from './event-stream.ts';
import { eventReader } from './events.ts';
import { readError, readResponse, readUsage } from './response.ts';
import { writeRequest } from './write-request.ts';

/** `Converse` and `ConverseStream` of Amazon Bedrock, as a format of providers. */
export const converse = {
  key: 'converse',
  routeType: 'Converse',
  chat: {
    key: 'converse',
    path: ({ model, stream }) => `/model/${encodeURIComponent(model)}/converse${stream ? '-stream' : ''}`,
    writeRequest,
    readResponse,
    readUsage: (body) => readUsage(body['usage']),
    readError,
    framing: eventStream,
    eventReader,
  },
  /** Bedrock user guide, "Prompt caching": blocks of their own, and the models that have them. */
  cacheMarks: {
    supports: (model) => isClaude(model) || isNova(model),
    supportsTools: isClaude,
    isUnmarkable,
    isMarked: (block) => typeof block === 'object' && block !== null && 'cachePoint' in block,
    marked: (blocks) => [...blocks, { cachePoint: { type: 'default' } }],
    tools(body) {
      const config = membersOf(body.get('toolConfig'));
      return { list: config['tools'], put: (tools) => body.set('toolConfig', { ...config, tools }) };
    },
  },
} as const satisfies ProviderWireFormat;
