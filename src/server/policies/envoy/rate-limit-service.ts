import type { ServiceDescriptor } from '../../transport/grpc.ts';
import { field, nested } from '../../transport/protobuf-struct.ts';
import { google, type HeaderValue, sharedMessages } from './messages.ts';

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

/** `RateLimitResponse`; `overall_code` is 1 for OK and 2 for OVER_LIMIT. */
export interface RateLimitAnswer {
  readonly overall_code: number;
  readonly statuses: readonly {
    readonly current_limit?: { readonly requests_per_unit: number } | null;
    readonly limit_remaining: number;
    /** 64-bit numbers may be objects of the package `long`. */
    readonly duration_until_reset?: { readonly seconds: unknown } | null;
  }[];
  readonly response_headers_to_add: readonly HeaderValue[];
  readonly request_headers_to_add: readonly HeaderValue[];
  readonly raw_body: Buffer;
}

/** `RateLimitUnit`. */
export const UNITS: Readonly<Record<string, number>> = {
  second: 1,
  minute: 2,
  hour: 3,
  day: 4,
  month: 5,
  year: 6,
};
