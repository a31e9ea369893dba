import { tryEvaluate } from '../../expressions/cel/expression.ts';
import { toCel } from '../../expressions/cel/values.ts';
import { defineVariable } from '../../expressions/variable.ts';
import type { Expression, VariableResolver } from '../../kernel/expression.ts';
import type { RequestContext } from '../../kernel/request/request-context.ts';
import { Slot } from '../../kernel/slot.ts';
import { toStruct } from '../../transport/services/protobuf-struct.ts';

/** Upstream's names: of the attributes, and of the map whose values become metadata of the gRPC call. */
const ATTRIBUTES = 'envoy.filters.http.ext_proc';
const CALL_METADATA = 'agentgateway.dev.grpc_initial_metadata';

/** Expressions by name. */
export type Named = readonly (readonly [name: string, value: Expression])[];

/** `metadataContext`. */
export type MetadataContext = readonly (readonly [namespace: string, values: Named])[];

function evaluated(named: Named, lookup: VariableResolver): Record<string, unknown> {
  return Object.fromEntries(
    named.flatMap(([name, expression]) => {
      const value = tryEvaluate(expression, lookup);
      return value === undefined ? [] : [[name, value]];
    }),
  );
}

/** What the first message about a request or response says besides it. */
export function messageContext(
  { metadata, attributes }: { metadata: MetadataContext | undefined; attributes: Named | undefined },
  lookup: VariableResolver,
): object {
  const values = attributes === undefined ? {} : evaluated(attributes, lookup);
  return {
    ...(metadata !== undefined && {
      metadata_context: {
        filter_metadata: Object.fromEntries(
          metadata
            .filter(([namespace]) => namespace !== CALL_METADATA)
            .map(([namespace, named]) => [namespace, toStruct(evaluated(named, lookup))]),
        ),
      },
    }),
    ...(Object.keys(values).length > 0 && { attributes: { [ATTRIBUTES]: toStruct(values) } }),
  };
}

/** Metadata of the gRPC call: texts, numbers and booleans. */
export function callMetadata(
  metadata: MetadataContext | undefined,
  lookup: VariableResolver,
): (readonly [string, string])[] {
  const named = metadata?.find(([namespace]) => namespace === CALL_METADATA)?.[1] ?? [];
  return Object.entries(evaluated(named, lookup)).flatMap(([name, value]) =>
    ['string', 'number', 'boolean', 'bigint'].includes(typeof value) ? [[name, String(value)]] : [],
  );
}

/** `dynamic_metadata` of the answers for a request. */
const processorValues = new Slot<Readonly<Record<string, unknown>>>();

export const extProcVariable = defineVariable(
  'extproc',
  { type: 'map', doc: 'Values of the service of `extProc` (`dynamic_metadata`), by name.' },
  (ctx) => toCel(processorValues.get(ctx) ?? null),
);

export function addProcessorValues(ctx: RequestContext, values: Readonly<Record<string, unknown>>): void {
  processorValues.set(ctx, { ...processorValues.get(ctx), ...values });
  ctx.invalidateVariable('extproc');
}
