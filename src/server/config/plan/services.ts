import type { Path } from '../../../core/diagnostic.ts';
import type { Config, RouteConfig } from '../schema.ts';
import { type LocatedProblem, type PolicyPlan, policyOf } from './plan.ts';

type Service = Config['services'][number];

const referenceTo = ({ namespace, hostname }: Service): string => `${namespace}/${hostname}`;

/** Services that others hide. */
export function repeatedServices({ services }: Config): LocatedProblem[] {
  return services.flatMap((service, index): LocatedProblem[] =>
    services.findIndex((each) => referenceTo(each) === referenceTo(service)) === index
      ? []
      : [
          {
            code: 'AGW0106',
            path: ['services', index, 'hostname'],
            message: `two services are called \`${referenceTo(service)}\``,
          },
        ],
  );
}

/** What is wrong with a backend that refers to a service. */
export function serviceProblems(
  { name, port }: NonNullable<RouteConfig['backends'][number]['service']>,
  services: Config['services'],
  policies: readonly PolicyPlan[],
  path: Path,
): LocatedProblem[] {
  const listed = (names: readonly string[]): string =>
    names.map((each) => `\`${each}\``).join(', ') || 'none';
  const problems: LocatedProblem[] = [];
  const service = services.find((each) => referenceTo(each) === name);
  if (service === undefined)
    problems.push({
      code: 'AGW0107',
      path: [...path, 'name'],
      message: `unknown service \`${name}\``,
      help: `\`services\` of this file: ${listed(services.map(referenceTo))}`,
    });
  else if (service.ports[port] === undefined)
    problems.push({
      code: 'AGW0107',
      path: [...path, 'port'],
      message: `the service \`${name}\` has no port ${port}`,
      help: `its ports: ${listed(Object.keys(service.ports))}`,
    });
  if (policyOf(policies, 'inferenceRouting') === undefined)
    problems.push({
      code: 'AGW0104',
      path,
      atKey: true,
      message: 'the endpoints of a service are not known',
      label: 'without a Kubernetes control plane, only `inferenceRouting` finds them',
      help: 'add `inferenceRouting` to `policies` of this backend, or write `host: name:port`',
    });
  return problems;
}
