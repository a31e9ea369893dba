import { messageOf } from '../../core/errors.ts';
import { SILENT_LOG } from '../../core/log.ts';
import { sharedStore } from '../../server/kernel/shared-store.ts';
import { compileRuntime } from '../../server/runtime/runtime.ts';
import { type CheckContext, type CheckGroup, type CheckResult, check, fail, ok, skip } from './check.ts';

/** Connects to the server of `config.shared` as the gateway does, and writes a key that expires. */
export const store: CheckGroup = {
  name: 'shared',
  title: () => 'shared store',
  run: (context) =>
    context.config?.config.shared === undefined ? [] : [check('the shared store', checkStore(context))],
};

async function checkStore({ config, loaded, env, folder, options }: CheckContext): Promise<CheckResult> {
  if (options.offline) return skip('not contacted (--offline)');
  if (config === undefined) return skip('not checked: the configuration is not valid');
  const { runtime } = compileRuntime({ config, source: loaded.source, log: SILENT_LOG, env, folder });
  try {
    const shared = sharedStore.get(runtime.settings);
    await shared?.open();
    await shared?.run({ lua: "return redis.call('GET', KEYS[1])" }, [shared.key('probe')], []);
    return ok('accepts the connection and a write');
  } catch (error) {
    const message = messageOf(error);
    return fail(`not available: ${message}`, fixOf(message));
  } finally {
    await runtime.close();
  }
}

/** What to do about the first word of an error of the server, or of the connection. */
function fixOf(message: string): string {
  if (/^(?:WRONGPASS|NOAUTH|ERR AUTH)/.test(message))
    return 'correct user and password in `config.shared.redis`';
  if (/^NOPERM/.test(message))
    return 'give the user `+@connection +eval +evalsha +get +set +pexpire +pttl +time`, and the keys that begin with `config.shared.prefix`';
  if (/^OOM/.test(message)) return 'give the server more memory (`maxmemory`)';
  if (/^(?:READONLY|MASTERDOWN)/.test(message))
    return 'the server is a replica: set the address of the primary in `config.shared.redis`';
  if (/^(?:MOVED|CLUSTERDOWN|CROSSSLOT)/.test(message))
    return 'Redis Cluster is not supported: use a single server';
  if (/database|DB index/.test(message)) return 'correct the number after `/` in `config.shared.redis`';
  if (/certificate|self.signed|altname|SSL|TLS/i.test(message))
    return 'set `config.shared.tls.root` to the authority of the server, and use the host name in its certificate';
  return 'is the server running, and is `config.shared.redis` correct? (`rediss:` for servers with TLS)';
}
