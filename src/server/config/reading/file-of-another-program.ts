import type { Diagnostic } from '../../../core/diagnostic.ts';
import { isRecord, membersOf, textIn } from '../../../core/foreign.ts';
import type { YamlSource } from '../../../core/yaml/source.ts';

type Members = Readonly<Record<string, unknown>>;

interface Kind {
  /** What the file is, if it is of this kind. */
  readonly what: (file: Members) => string | undefined;
  /** The key at which the message is shown: the first of these that the file has. */
  readonly keys: readonly string[];
  readonly help: (file: Members) => string;
}

/** Keys of this program's files: one with any of them is meant for it. */
const OWN = ['gateways', 'binds', 'routes', 'mcp', 'llm', 'frontendPolicies'];

const NEXT_IN_KUBERNETES =
  'agctl reads no resources of Kubernetes: write listeners as `gateways` and their routes as `routes` in one file, which the Helm chart in deploy/helm takes as `config`';

/** Files that people try, because they have them already or take agctl for a program that reads them. */
const KINDS: readonly Kind[] = [
  {
    what: (file) =>
      'model_list' in file || 'litellm_settings' in file ? 'a configuration of LiteLLM' : undefined,
    keys: ['model_list', 'litellm_settings'],
    help: () => '`agctl init --from FILE` imports its models, fallbacks, master key and MCP servers',
  },
  {
    what: (file) =>
      ('strategy' in file && Array.isArray(file['targets'])) || ('virtual_key' in file && !('config' in file))
        ? 'a configuration of Portkey'
        : undefined,
    keys: ['strategy', 'virtual_key'],
    help: () => '`agctl init --from FILE` imports its targets, strategy, retries, cache and guardrails',
  },
  {
    what: (file) => ('apiVersion' in file && 'kind' in file ? ofKubernetes(textIn(file['kind'])) : undefined),
    keys: ['kind'],
    help: (file) =>
      Object.keys(membersOf(file['data'])).length > 0
        ? 'if its `data` has a configuration of agctl, write that text to a file of its own'
        : NEXT_IN_KUBERNETES,
  },
  {
    what: (file) =>
      ('openapi' in file || 'swagger' in file) && 'info' in file ? 'an OpenAPI document' : undefined,
    keys: ['openapi', 'swagger'],
    help: () =>
      'name it in a configuration: `mcp: { targets: [{ name: api, openapi: { host: "https://…", schema: { file: FILE } } }] }`',
  },
  {
    what: (file) =>
      isRecord(file['config']) && ['image', 'envFromSecrets', 'replicas'].some((key) => key in file)
        ? 'a file of values of the Helm chart'
        : undefined,
    keys: ['image', 'envFromSecrets', 'replicas'],
    help: () => 'its configuration is the part below `config`: write that to a file of its own',
  },
  {
    what: (file) =>
      'static_resources' in file || 'dynamic_resources' in file ? 'a configuration of Envoy' : undefined,
    keys: ['static_resources', 'dynamic_resources'],
    help: () => 'write its listeners as `gateways`, its routes as `routes` and its clusters as `backends`',
  },
];

const ofKubernetes = (kind: string): string =>
  `a resource of Kubernetes${kind === '' ? '' : `, \`${kind}\``}`;

/** The one problem of a file that belongs to another program, in place of one for each of its keys. */
export function fileOfAnotherProgram(source: YamlSource): Diagnostic | undefined {
  if (source.value === undefined) return severalResources(source);
  const file = membersOf(source.value);
  if (OWN.some((key) => key in file)) return undefined;
  for (const { what, keys, help } of KINDS) {
    const found = what(file);
    if (found === undefined) continue;
    const key = keys.find((each) => each in file) ?? '';
    return problem(source, found, source.keyRange([key]), help(file));
  }
  return undefined;
}

/** A file of several resources is not one document of YAML, and one of a chart may be none at all. */
function severalResources(source: YamlSource): Diagnostic | undefined {
  const version = /^apiVersion: *\S/m.exec(source.text);
  const kind = /^kind: *["']?(\w{1,40})/m.exec(source.text);
  if (version === null || kind === null) return undefined;
  const { index } = kind;
  return problem(
    source,
    ofKubernetes(kind[1] ?? ''),
    source.range(index, index + 'kind'.length),
    NEXT_IN_KUBERNETES,
  );
}

function problem({ file }: YamlSource, what: string, range: Diagnostic['range'], help: string): Diagnostic {
  return {
    severity: 'error',
    code: 'AGW0006',
    message: `this is ${what}, not a configuration of agctl`,
    file,
    path: [],
    range,
    help,
  };
}
