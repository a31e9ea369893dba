import type { Message } from './grpc-service.ts';
import { mutation, type ProcessorCall, part, piece, type Script } from './processor.ts';
import type { RouteParts } from './routes.ts';

/** Answers as a picker does: once it has the whole request, and with bodies as they are. */
export function picking(answer: (call: ProcessorCall) => Message): Script {
  return (message, call) => {
    const name: string = message.request;
    const { body, end_of_stream: isLast } = message[name];
    if (name === 'response_headers') call.answer(part(name));
    else if (name === 'response_body') call.answer(piece(name, body, isLast));
    else if (isLast) {
      call.answer(answer(call));
      if (name === 'request_headers') return;
      const pieces: Buffer[] = call.received.flatMap(({ request_body: part }) => part?.body ?? []);
      call.answer(piece(name, Buffer.concat(pieces), true));
    }
  };
}

/** The answer of a picker that names endpoints with the header. */
export const picked = (...endpoints: readonly string[]): Message =>
  part('request_headers', {
    header_mutation: mutation({ 'x-gateway-destination-endpoint': endpoints.join(',') }),
  });

/** A route to a service whose endpoints a picker names. */
export const servedRoute = (endpointPicker: string, policies: object = {}): RouteParts => ({
  policies,
  backends: [
    {
      service: { name: 'default/my-model', port: 8000 },
      policies: {
        inferenceRouting: { endpointPicker: { host: endpointPicker }, destinationMode: 'passthrough' },
      },
    },
  ],
});

export const SERVICES = {
  services: [
    { name: 'my-model', namespace: 'default', hostname: 'my-model', vips: [], ports: { 8000: 8000 } },
  ],
};
