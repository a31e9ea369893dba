import { LIMITS } from '../../../core/limits.ts';
import type { CompileContext } from '../../kernel/compile-context.ts';
import { createGrpcService } from '../../transport/services/grpc.ts';
import { compileService } from '../../transport/services/service-reference.ts';
import { externalProcessor } from '../envoy/external-processor.ts';
import type { ProcessingPlan } from './processing.ts';

/** The client of an external processor. A reference or address that cannot be used is reported; then undefined. */
export function connectProcessor(
  config: Parameters<typeof compileService>[0],
  context: CompileContext,
): Pick<ProcessingPlan, 'service' | 'timeout'> | undefined {
  const { maxBufferSize, limits, callMeter } = context.settings;
  const found = compileService(config, context);
  const service =
    found &&
    createGrpcService(found, externalProcessor, {
      maxBytes: maxBufferSize + LIMITS.processorAnswer,
      meter: callMeter('Policy', 'ExtProc'),
    });
  if (found === undefined || service === undefined) return undefined;
  return { service, timeout: found.connection.requestTimeout ?? limits.processorTimeout };
}
