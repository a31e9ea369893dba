import type { Path } from '../../../core/diagnostic.ts';
import type { Protocol } from '../traffic-schema.ts';
import type { LocatedProblem } from './plan.ts';

/** The only place that says which protocols of listeners can be served. `path` is that of the protocol. */
export function protocolProblems(protocol: Protocol, path: Path): LocatedProblem[] {
  if (protocol === 'HTTP') return [];
  return [
    {
      code: 'AGW0104',
      path,
      message: `listeners with the protocol \`${protocol}\` are not supported`,
      label: 'only `HTTP` is',
      help: 'put a server that terminates TLS or forwards TCP in front of the gateway, and write `protocol: HTTP`',
    },
  ];
}
