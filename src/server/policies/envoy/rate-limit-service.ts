import { elementsOf, membersOf } from '../../../core/foreign.ts';
import { LIMITS } from '../../../core/limits.ts';
import type { ServiceDescriptor } from '../../transport/services/grpc.ts';
import { field, nested } from '../../transport/services/protobuf-struct.ts';
import { google, type HeaderValue, headerIn, repeatedIn, sharedMessages } from './messages.ts';

const repeated = { rule: 'repeated' };

/** `envoy.service.ratelimit.v3.RateLimitService` (rls.proto), as far as it is used here. */
const messages = {
  ...sharedMessages,
  RateLimitRequest: {
    fields: {
      domain: field('string', 1),
      descriptors: field('RateLimitDescriptor', 2, repeated),
      hits_addend: field('uint32', 3),
    },
  },
  RateLimitDescriptor: {
    fields: {
      entries: field('Entry', 1, repeated),
      limit: field('RateLimitOverride', 2),
      hits_addend: field('google.protobuf.UInt64Value', 3),
    },
  },
  Entry: { fields: { key: field('string', 1), value: field('string', 2) } },
  RateLimitOverride: { fields: { requests_per_unit: field('uint32', 1), unit: field('int32', 2) } },
  RateLimitResponse: {
    fields: {
      overall_code: field('int32', 1),
      statuses: field('DescriptorStatus', 2, repeated),
      response_headers_to_add: field('HeaderValue', 3, repeated),
      request_headers_to_add: field('HeaderValue', 4, repeated),
      raw_body: field('bytes', 5),
    },
  },
  DescriptorStatus: {
    fields: {
      code: field('int32', 1),
      current_limit: field('RateLimit', 2),
      limit_remaining: field('uint32', 3),
      duration_until_reset: field('google.protobuf.Duration', 4),
    },
  },
  RateLimit: { fields: { requests_per_unit: field('uint32', 1), unit: field('int32', 2) } },
};

const RateLimitService = {
  methods: {
    ShouldRateLimit: { requestType: 'RateLimitRequest', responseType: 'RateLimitResponse' },
  },
};

export const rateLimitService: ServiceDescriptor = {
  name: 'envoy.service.ratelimit.v3.RateLimitService',
  descriptor: nested({
    envoy: nested({
      service: nested({ ratelimit: nested({ v3: nested({ ...messages, RateLimitService }) }) }),
    }),
    google,
  }),
};

/** `RateLimitDescriptor`. */
export interface RateLimitDescriptor {
  readonly entries: readonly { readonly key: string; readonly value: string }[];
  readonly limit?: { readonly requests_per_unit: number; readonly unit: number };
  readonly hits_addend?: { readonly value: number };
}

/** `RateLimitResponse`. */
export interface RateLimitAnswer {
  readonly isOverLimit: boolean;
  /** The limit with the fewest requests left, if the service has told one. */
  readonly lowest:
    | { readonly limit: number; readonly remaining: number; readonly resetSeconds: number }
    | undefined;
  readonly responseHeaders: readonly HeaderValue[];
  readonly requestHeaders: readonly HeaderValue[];
  readonly body: string;
}

/** Reads what the gRPC package has decoded. Throws if it has no result, or more headers than a message may have. */
export function rateLimitAnswerIn(value: unknown): RateLimitAnswer {
  const { overall_code: code, statuses, raw_body: body, ...headers } = membersOf(value);
  // OK and OVER_LIMIT.
  if (code !== 1 && code !== 2) throw new Error('the answer has no result');
  return {
    isOverLimit: code === 2,
    lowest: lowestIn(elementsOf(statuses)),
    responseHeaders: repeatedIn(headers['response_headers_to_add']).map(headerIn),
    requestHeaders: repeatedIn(headers['request_headers_to_add']).map(headerIn),
    body: Buffer.isBuffer(body) ? body.toString('utf8') : '',
  };
}

function lowestIn(statuses: readonly unknown[]): RateLimitAnswer['lowest'] {
  let lowest: RateLimitAnswer['lowest'];
  for (const status of statuses) {
    const {
      current_limit: current,
      limit_remaining: remaining,
      duration_until_reset: reset,
    } = membersOf(status);
    const { requests_per_unit: limit } = membersOf(current);
    if (typeof limit !== 'number' || typeof remaining !== 'number') continue;
    if (lowest !== undefined && lowest.remaining <= remaining) continue;
    // 64-bit numbers may be objects of the package `long`, whose text is the number.
    const seconds = Number(String(membersOf(reset)['seconds']));
    lowest = { limit, remaining, resetSeconds: Math.min(Math.max(0, seconds || 0), LIMITS.rateLimitReset) };
  }
  return lowest;
}

/** `RateLimitUnit`. */
export const UNITS: Readonly<Record<string, number>> = {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- The type of an object cannot say that it has no prototype.
  __proto__: null as never,
  second: 1,
  minute: 2,
  hour: 3,
  day: 4,
  month: 5,
  year: 6,
};
