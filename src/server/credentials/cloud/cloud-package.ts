import { createRequire } from 'node:module';
import type { CompileContext } from '../../kernel/compile-context.ts';

/**
 * Clients of cloud providers' credential chains, with the ranges of `peerDependencies`. They are optional, because they
 * have more code than agctl, and few gateways need one of them (docs/decisions/0048).
 */
const VERSIONS = {
  '@aws-sdk/credential-providers': '3',
  '@azure/identity': '4',
  'google-auth-library': '10',
} as const;

type CloudPackage = keyof typeof VERSIONS;

const require = createRequire(import.meta.url);

/**
 * Reports the package if it is not installed. `context` is that of the parameters of the model or guardrail, and `user`
 * begins the message.
 */
export function requireInstalled(
  name: CloudPackage,
  context: CompileContext,
  user = 'without `apiKey`, this provider',
): boolean {
  try {
    require.resolve(name);
    return true;
  } catch {
    context.report({
      code: 'AGW0402',
      message: `${user} needs a package that is not installed: \`${name}\``,
      help: `run \`npm install ${name}@${VERSIONS[name]}\` where agctl is installed, with \`--global\` if it is installed globally`,
    });
    return false;
  }
}

/** Loads an installed package, at the first call that needs it: each takes 0.1 to 0.3 s of CPU time. */
export function loadPackage(name: CloudPackage): unknown {
  return require(name);
}
