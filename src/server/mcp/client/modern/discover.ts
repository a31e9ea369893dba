import { VERSION } from '../../../../core/version.ts';
import { edit, valueAt } from '../../../kernel/json/json-text.ts';
import { publicProblem, signInOf } from '../../connection/target-failure.ts';
import { answerError, forward } from '../../federation/call.ts';
import { withoutNulls } from '../../protocol/absent-members.ts';
import { META, RPC, RpcError, resultMessage, SUPPORTED_REVISIONS } from '../../protocol/protocol.ts';
import { announcingResources, withResources } from '../../result-limits/announced.ts';
import { instructions, mergedCapabilities, withInstructions } from '../../session/initialize.ts';
import type { ModernCall } from './modern-call.ts';

/** A target at which the user has to sign in is missing; its lists say why. */
function unlessSignIn(error: unknown): undefined {
  if (signInOf(error) === undefined) throw error;
}

/**
 * Answers `server/discover`: with the answer of the only target, or with what all targets offer together. The revisions are those
 * of the gateway, which converts requests for a target that only has others.
 */
export async function discover(call: ModernCall): Promise<void> {
  const { session, message, stream, headers } = call;
  const [only] = session.connections;
  if (!session.isFederated && only !== undefined && only.isNative) {
    await forward(call, only, message, (received) => {
      const text = withInstructions(received, call.bundle?.instructions);
      const versions = valueAt(text, ['result', 'supportedVersions']);
      const own =
        versions === undefined
          ? text
          : edit(text, [{ ...versions, text: JSON.stringify(SUPPORTED_REVISIONS) }]);
      return session.keptResults === undefined ? own : announcingResources(own);
    });
    return;
  }
  const ready = session.connections.filter(({ rpc }) => rpc !== undefined);
  try {
    const results = await Promise.all(
      (session.connections.length === 1 ? session.connections : ready).map(async (connection) => {
        const opened = await connection.readySoon(headers).catch(unlessSignIn);
        return opened && { connection, ...opened };
      }),
    ).then((all) => all.filter((each) => each !== undefined));
    const [first] = results;
    const isOne = session.connections.length === 1 && first !== undefined;
    const capabilities = isOne
      ? first.result.capabilities
      : mergedCapabilities(
          results.map(({ result }) => result),
          results.length < session.connections.length,
        );
    const own = isOne ? first.result.instructions : instructions(results, session.options.prefixed);
    const text = call.bundle?.instructions ?? own;
    const serverInfo = isOne ? first.result.serverInfo : { name: 'agctl', version: VERSION };
    const result = {
      resultType: 'complete',
      supportedVersions: SUPPORTED_REVISIONS,
      capabilities: session.keptResults === undefined ? capabilities : withResources(capabilities),
      ...(text !== undefined && { instructions: text }),
      // Rules and targets may change, and the result depends on the caller.
      ttlMs: 0,
      cacheScope: 'private',
      ...(serverInfo !== undefined && { _meta: { [META.serverInfo]: serverInfo } }),
    };
    const answer = resultMessage(message.id ?? 'null', JSON.stringify(result));
    stream.end(withoutNulls(answer, 'result', result));
  } catch (error) {
    const name = only?.target.name ?? '';
    answerError(call, new RpcError(RPC.internalError, publicProblem(name, error, ' is not available:')));
  }
}
