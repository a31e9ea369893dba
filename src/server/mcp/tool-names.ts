import type { ToolName } from '../kernel/probe.ts';
import type { McpBackendConfig } from './backend-config.ts';
import { namePattern } from './names/name-pattern.ts';

/** Names and patterns of tools in `toolSearch` and `bundles`. */
export function toolNamesOf({ toolSearch, bundles }: McpBackendConfig): ToolName[] {
  const pinned = (toolSearch?.pinned ?? []).map((pattern) => ({
    shown: `toolSearch.pinned: ${pattern}`,
    matches: matching(pattern),
  }));
  const ofBundles = bundles.flatMap(({ name, tools = [], targets = ['*'], descriptions }): ToolName[] => {
    const hasTarget = namePattern(targets);
    const entry = (key: string, pattern: string): ToolName => {
      const matches = matching(pattern);
      return {
        shown: `${key} of bundle ${name}: ${pattern}`,
        matches: (target, tool) => hasTarget(target) && matches(target, tool),
      };
    };
    return [
      ...tools.map((pattern) => entry('tools', pattern)),
      ...Object.keys(descriptions).map((tool) => entry('descriptions', tool)),
    ];
  });
  return [...pinned, ...ofBundles];
}

function matching(pattern: string): ToolName['matches'] {
  const isMatch = namePattern([pattern]);
  return (_target, tool) => isMatch(tool);
}
