import { resolve } from 'node:path';
import { SILENT_LOG } from '../../core/log.ts';
import type { CompileContext } from '../kernel/compile-context.ts';
import { withText } from '../kernel/json/json-text.ts';
import type {
  AddressProbe,
  CommandProbe,
  DefinedTool,
  ListedTools,
  MeasuredTool,
  Probe,
  TargetPins,
} from '../kernel/probe.ts';
import { hasPrefixes, type McpBackendConfig } from './backend-config.ts';
import { compileTarget } from './compile-target.ts';
import { measuredTool } from './measured-tool.ts';
import { outwardName } from './names/names.ts';
import { ToolView } from './names/tool-view.ts';
import { type EndpointConfig, endpointText } from './targets/endpoint.ts';
import { childEnvironment, findCommand, isFolder, workingFolder } from './targets/stdio/environment.ts';
import { toolNamesOf } from './tool-names.ts';
import { pinSettings } from './tool-pinning/compile.ts';
import { PinFile } from './tool-pinning/pin-file.ts';
import { ToolPins } from './tool-pinning/tool-pins.ts';
import { toolsOf } from './try-target.ts';

type TargetConfig = McpBackendConfig['targets'][number];

/** Probes of the commands and servers of a backend. */
export function probeTargets(config: McpBackendConfig): Probe[] {
  return config.targets.flatMap((target): Probe[] => {
    const { stdio: command, mcp, sse, openapi } = target;
    const both: TargetProbe = {
      pins: (context) => pinsOf(config, target, context),
      isSearched: config.toolSearch !== undefined,
      toolNames: toolNamesOf(config),
      tools: (context) => listedTools(target, hasPrefixes(config), context),
      definitions: (context) => definedTools(target, context),
      measureTools: (context) => measuredTools(target, hasPrefixes(config), context),
    };
    if (command !== undefined) return [{ ...commandProbe(target.name, command), ...both }];
    const endpoint = mcp ?? sse ?? openapi;
    return endpoint === undefined ? [] : [{ ...addressProbe(target, endpoint), ...both }];
  });
}

/** What probes of all kinds of targets have. */
type TargetProbe = Pick<
  CommandProbe,
  'pins' | 'isSearched' | 'toolNames' | 'tools' | 'definitions' | 'measureTools'
>;

async function listedTools(
  target: TargetConfig,
  isPrefixed: boolean,
  context: CompileContext,
): Promise<ListedTools> {
  const tools = await toolsOf(compileTarget(target, context), SILENT_LOG);
  const listed = tools.map(({ own }) => own);
  const view = target.tools && new ToolView(target.tools);
  view?.unmatched.listed(listed);
  const shown = listed
    .flatMap((own) => (view === undefined ? own : (view.shown(own) ?? [])))
    .map((tool) => (isPrefixed ? outwardName('tool', target.name, tool) : tool));
  return { listed, shown, unmatched: view?.unmatched.entries ?? [] };
}

async function definedTools(target: TargetConfig, context: CompileContext): Promise<readonly DefinedTool[]> {
  const view = target.tools && new ToolView(target.tools);
  const listed = await toolsOf(compileTarget(target, context), SILENT_LOG);
  return view === undefined ? listed : listed.filter(({ own }) => view.shown(own) !== undefined);
}

async function measuredTools(
  target: TargetConfig,
  isPrefixed: boolean,
  context: CompileContext,
): Promise<readonly MeasuredTool[]> {
  const view = target.tools && new ToolView(target.tools);
  const listed = await toolsOf(compileTarget(target, context), SILENT_LOG);
  return listed.flatMap(({ own, text }) => {
    const shown = view === undefined ? own : view.shown(own);
    if (shown === undefined) return [];
    const name = isPrefixed ? outwardName('tool', target.name, shown) : shown;
    return measuredTool(name, withText(view?.edit(text, own) ?? text, 'name', name)) ?? [];
  });
}

/** Reads the file of the pins. @throws Error if it cannot be read */
function pinsOf(
  { toolPinning }: McpBackendConfig,
  target: TargetConfig,
  context: CompileContext,
): TargetPins | undefined {
  const settings = pinSettings(toolPinning);
  if (settings.mode === 'off') return undefined;
  const { name } = target;
  const { limits } = context.settings;
  const path = resolve(context.folder, settings.file);
  const file = new PinFile(path, SILENT_LOG);
  file.load();
  return {
    path,
    known: file.count(name),
    async list() {
      const listed = await toolsOf(compileTarget(target, context), SILENT_LOG);
      return {
        names: listed.map(({ own }) => own),
        write() {
          const options = { target: name, file, isEnforced: false, log: SILENT_LOG, limits };
          const pins = new ToolPins({ ...options, changed: () => undefined, clean: (text) => text });
          pins.check(listed, { rpc: undefined, changes: 0 });
          const written = new PinFile(path, SILENT_LOG);
          written.load();
          if (listed.some(({ own }) => written.get(name, own) === undefined))
            throw new Error('not every tool could be pinned');
        },
      };
    },
  };
}

function commandProbe(
  name: string,
  settings: NonNullable<TargetConfig['stdio']>,
): Omit<CommandProbe, keyof TargetProbe> {
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
  };
}

function addressProbe(
  { name, policies }: TargetConfig,
  endpoint: EndpointConfig,
): Omit<AddressProbe, keyof TargetProbe> {
  const signsIn = policies?.backendAuth?.oauth !== undefined;
  return { kind: 'address', name, host: endpoint.host, signsIn, destination: destinationOf(endpoint) };
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
