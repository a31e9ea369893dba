import { type Path, pathText } from '../../core/diagnostic.ts';
import { membersOf } from '../../core/foreign.ts';
import { knownBackends } from '../../server/config/plan/backend-kinds.ts';
import { type PolicyPlan, routesOf } from '../../server/config/plan/plan.ts';
import type { AddressProbe, CommandProbe, ListedTools } from '../../server/kernel/probe.ts';
import { mcpAuthorization } from '../../server/mcp/authorization-policy.ts';
import { type NameInRule, namesInRules } from '../../server/mcp/names/names-in-rules.ts';
import { type Check, type CheckContext, type CheckResult, check, skip, warn } from './check.ts';

/** A target and its tools, or why they are not known. */
export interface ListedTarget {
  /** Path of its backend. */
  readonly backend: string;
  readonly probe: CommandProbe | AddressProbe;
  readonly tools: Promise<ListedTools | undefined>;
}

/** Tools that a name was compared with, for the fix. */
const MOST_TOOLS = 50;

/** Names in rules, `toolSearch` and bundles that no tool has: they are probably misspelled, and a `deny` rule denies nothing. */
export function checkToolNames(context: CheckContext, targets: readonly ListedTarget[]): Check[] {
  const backends = Map.groupBy(targets, ({ backend }) => backend);
  const ofSettings = [...backends.values()].map((members) => {
    const names = members[0]?.probe.toolNames ?? [];
    return compared(members, names.length, (all) =>
      names
        .filter(
          ({ matches }) => !all.some(({ target, shown }) => shown.some((tool) => matches(target, tool))),
        )
        .map(({ shown: name }) =>
          unmatched(
            name,
            all.flatMap(({ shown }) => shown),
          ),
        ),
    );
  });
  const ofRules = policiesOf(context).map(({ policy: { config, path }, backends: paths }) => {
    const names = rulesOf(config).filter(({ kind }) => kind === 'tool');
    const members = paths.flatMap((each) => backends.get(each) ?? []);
    return compared(members, names.length, (all) => {
      const tools = all.flatMap(({ listed }) => listed);
      return names
        .filter(
          ({ text, isStart }) => !tools.some((tool) => (isStart ? tool.startsWith(text) : tool === text)),
        )
        .map(({ text, index, effect }) =>
          unmatched(
            `${JSON.stringify(text)} in ${pathText([...path, 'rules', index])}`,
            tools,
            effect === 'deny' ? ', so it denies nothing' : '',
          ),
        );
    });
  });
  return [...ofSettings, ...ofRules].map((results) => check('names of tools', results));
}

interface Known extends ListedTools {
  readonly target: string;
}

async function compared(
  members: readonly ListedTarget[],
  count: number,
  compare: (all: readonly Known[]) => CheckResult[],
): Promise<CheckResult[]> {
  if (count === 0 || members.length === 0) return [];
  const lists = await Promise.all(members.map(({ tools }) => tools));
  const missing = members.filter((_each, index) => lists[index] === undefined);
  if (missing.length > 0) {
    const names = missing.map(({ probe }) => probe.name).join(', ');
    return [
      skip(
        `names of tools in rules and settings   not compared, because these did not list theirs: ${names}`,
      ),
    ];
  }
  return compare(
    lists.flatMap((list, index) =>
      list === undefined ? [] : { ...list, target: members[index]?.probe.name ?? '' },
    ),
  );
}

function unmatched(what: string, names: readonly string[], consequence = ''): CheckResult {
  const tools = [...new Set(names)];
  const more = tools.length > MOST_TOOLS ? ' and more' : '';
  return warn(
    `${what}   matches no tool${consequence}`,
    `correct or remove it; the names are ${tools.slice(0, MOST_TOOLS).join(', ') || 'none'}${more}`,
  );
}

/** Every `mcpAuthorization` once, with the paths of the backends that it applies to. */
function policiesOf({ gateways }: CheckContext): { policy: PolicyPlan; backends: string[] }[] {
  const found = new Map<string, { policy: PolicyPlan; backends: string[] }>();
  for (const { policies, backends } of gateways.flatMap(routesOf))
    for (const backend of backends) {
      const paths = knownBackends([backend]).map(({ path }: { path: Path }) => pathText(path));
      for (const policy of [...policies, ...backend.policies]) {
        if (policy.key !== mcpAuthorization.key) continue;
        const before = found.get(policy.id)?.backends ?? [];
        found.set(policy.id, { policy, backends: [...new Set([...before, ...paths])] });
      }
    }
  return [...found.values()];
}

function rulesOf(config: unknown): readonly NameInRule[] {
  const { success, data } = mcpAuthorization.schema.safeParse(membersOf(config));
  return success ? namesInRules(data.rules) : [];
}
