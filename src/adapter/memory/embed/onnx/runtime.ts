import { createRequire } from 'node:module';
import { AppError, messageOf } from '../../../../core/errors.ts';

/** The range of `peerDependencies`. */
const RUNTIME = 'onnxruntime-node';
const VERSIONS = `${RUNTIME}@1`;

/**
 * Its install script downloads libraries for GPUs on Linux x64, from a server that many networks do not reach, and fails
 * without them. They are not used; everything else is in the package.
 */
const INSTALL = `run \`npm install --ignore-scripts ${VERSIONS}\` where agctl is installed, with \`--global\` if it is installed globally`;

/** Why the runtime for models cannot be loaded, and how to install it; undefined if it is installed. */
export function runtimeProblem(): string | undefined {
  try {
    createRequire(import.meta.url).resolve(RUNTIME);
    return undefined;
  } catch {
    return `the package ${RUNTIME} is not installed: ${INSTALL}`;
  }
}

/** @throws AppError `bad_request` that says how to install it */
export function loadRuntime(): typeof import('onnxruntime-common') {
  const problem = runtimeProblem();
  if (problem !== undefined) throw new AppError('bad_request', { message: problem });
  try {
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- a package, not data
    return createRequire(import.meta.url)(RUNTIME) as typeof import('onnxruntime-common');
  } catch (error) {
    throw new AppError('bad_request', {
      message: `the package ${RUNTIME} cannot be loaded on ${process.platform}/${process.arch}: ${messageOf(error)}`,
    });
  }
}
