import type { Config } from '../schema.ts';
import { withTls } from './backend-tls.ts';
import type { BackendPlan, LocatedProblem } from './plan.ts';
import { planPolicies } from './policies.ts';

/** The top-level `backends` by name. */
export type NamedBackends = ReadonlyMap<string, BackendPlan>;

/** Plans the section `backends`. Routes that refer to one share it. */
export function planNamedBackends({ backends }: Config, problems: LocatedProblem[]): NamedBackends {
  const named = new Map<string, BackendPlan>();
  for (const [index, { name, policies, ...config }] of backends.entries()) {
    const path = ['backends', index];
    if (named.has(name))
      problems.push({
        code: 'AGW0106',
        path: [...path, 'name'],
        message: `two backends are called \`${name}\``,
        help: 'give each of the `backends` its own `name`',
      });
    const id = `backend/${name}`;
    const own = planPolicies(policies, [...path, 'policies'], id);
    const plan = { id, name, weight: 1, config, path, isSection: false, reference: name, policies: own };
    named.set(name, withTls(plan, own));
  }
  return named;
}

/** The backend that a reference names: `name`, or `/name` as in dumps. */
export function findBackend(named: NamedBackends, reference: string): BackendPlan | undefined {
  return named.get(reference.replace(/^\//, ''));
}
