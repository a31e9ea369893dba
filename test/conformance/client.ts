import { Client, StreamableHTTPClientTransport, type Tool } from '@modelcontextprotocol/client';
import { startGateway } from './targets.ts';

// `node client.ts [--direct] URL` is the client that the scenarios for clients judge: it uses everything that the MCP server
// at URL announces, through a gateway that it starts in front of it. `--direct` leaves the gateway out. The suite says in the
// environment which scenario and revision it is.

const {
  MCP_CONFORMANCE_SCENARIO: scenario,
  MCP_CONFORMANCE_PROTOCOL_VERSION: revision,
  MCP_CONFORMANCE_CONTEXT: context = '{}',
} = process.env;

/** Calls with the arguments that a scenario asks for. */
const { toolCalls } = JSON.parse(context) as {
  toolCalls?: { name: string; arguments: Record<string, unknown> }[];
};

/** Scenarios whose servers cannot be called, or that are only about a list. */
const LISTS_ONLY = new Set(['json-schema-ref-no-deref']);

/** A value for each required argument. Scenario `json-schema-2020-12-preservation` wants to see the schema of the first tool. */
function exampleArguments({ inputSchema }: Tool, first: Tool): Record<string, unknown> {
  const examples: Record<string, unknown> = { number: 2, string: 'text', object: first.inputSchema };
  const { properties = {}, required = [] } = inputSchema;
  return Object.fromEntries(
    required.map((name) => [name, examples[String((properties[name] as { type?: unknown }).type)]]),
  );
}

async function use(client: Client): Promise<void> {
  const { tools, resources, prompts } = client.getServerCapabilities() ?? {};
  const listed = tools === undefined ? [] : (await client.listTools()).tools;
  if (LISTS_ONLY.has(scenario ?? '')) return;
  const calls =
    toolCalls ??
    listed.map((tool) => ({ name: tool.name, arguments: exampleArguments(tool, listed[0] as Tool) }));
  for (const call of calls) {
    const result = client.callTool(call);
    // The SDK rejects the results of this tool, which is there to show that clients may accept them.
    await (call.name === 'test_mrtr_no_result_type' ? result.catch(() => undefined) : result);
  }
  if (resources !== undefined)
    for (const { uri } of (await client.listResources()).resources) await client.readResource({ uri });
  if (prompts !== undefined)
    for (const { name } of (await client.listPrompts()).prompts) await client.getPrompt({ name });
}

async function run(url: string): Promise<void> {
  const client = new Client(
    { name: 'conformance-client', version: '1' },
    {
      capabilities: { elicitation: { form: { applyDefaults: true } } },
      versionNegotiation: { mode: revision === '2026-07-28' ? { pin: revision } : 'legacy' },
    },
  );
  // Scenario `elicitation-sep1034-client-defaults` expects the defaults to be filled in, `sep-2322-…` any answer.
  client.setRequestHandler('elicitation/create', () => ({ action: 'accept', content: {} }));
  await client.connect(new StreamableHTTPClientTransport(new URL(url)));
  await use(client);
  await client.close();
}

const url = process.argv.at(-1) as string;
if (process.argv.includes('--direct')) await run(url);
else {
  const gateway = await startGateway({ mcp: { host: url } });
  try {
    await run(gateway.url);
  } finally {
    await gateway.stop();
  }
}
