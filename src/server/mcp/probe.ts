import { SILENT_LOG } from '../../core/log.ts';
import type { AddressProbe, CommandProbe, ListedTools, Probe } from '../kernel/probe.ts';
import type { McpBackendConfig } from './backend-config.ts';
import { outwardName } from './names/names.ts';
import { ToolView } from './names/tool-view.ts';
import { type EndpointConfig, endpointText } from './targets/endpoint.ts';
import { childEnvironment, findCommand, isFolder, workingFolder } from './targets/stdio/environment.ts';
import { stdio } from './targets/stdio/stdio.ts';
import { toolsOf } from './try-target.ts';

type TargetConfig = McpBackendConfig['targets'][number];

/** Probes of the commands and servers of a backend. */
export function probeTargets(targets: readonly TargetConfig[], isPrefixed: boolean): Probe[] {
  return targets.flatMap((target): Probe[] => {
    const { name, stdio: command, mcp, sse, openapi } = target;
    if (command !== undefined) return [commandProbe(target, command, isPrefixed)];
    const endpoint = mcp ?? sse ?? openapi;
    return endpoint === undefined ? [] : [addressProbe(name, endpoint)];
  });
}

function commandProbe(
  { name, tools }: TargetConfig,
  settings: NonNullable<TargetConfig['stdio']>,
  isPrefixed: boolean,
): CommandProbe {
  return {
    kind: 'command',
    name,
    command: settings.cmd,
    locate(env, folder) {
      const cwd = workingFolder(settings, folder);
      return {
        workingFolder: cwd,
        hasWorkingFolder: isFolder(cwd),
        path: findCommand(settings.cmd, childEnvironment(settings, env), cwd),
      };
    },
    async tools(context): Promise<ListedTools> {
      const listed = await toolsOf(stdio.compile(name, settings, context), SILENT_LOG);
      const view = tools && new ToolView(tools);
      view?.unmatched.listed(listed);
      const shown = listed
        .flatMap((own) => (view === undefined ? own : (view.shown(own) ?? [])))
        .map((tool) => (isPrefixed ? outwardName('tool', name, tool) : tool));
      return { listed, shown, unmatched: view?.unmatched.entries ?? [] };
    },
  };
}

function addressProbe(name: string, endpoint: EndpointConfig): AddressProbe {
  return { kind: 'address', name, host: endpoint.host, destination: destinationOf(endpoint) };
}

function destinationOf(endpoint: EndpointConfig): AddressProbe['destination'] {
  const { host } = endpoint;
  if (host.startsWith('unix:')) {
    const path = host.slice('unix:'.length).replace(/^\/\//, '');
    return { shown: `unix:${path}`, socket: { path } };
  }
  const text = endpointText(endpoint);
  if (!URL.canParse(text)) return undefined;
  const url = new URL(text);
  return {
    shown: url.host,
    socket: {
      host: url.hostname.replace(/^\[|\]$/g, ''),
      port: Number(url.port) || (url.protocol === 'https:' ? 443 : 80),
    },
  };
}
