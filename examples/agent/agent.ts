import { createOpenAI } from '@ai-sdk/openai';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { dynamicTool, generateText, jsonSchema, stepCountIs, type ToolSet } from 'ai';

/** Answers a question with the model and the tools behind a gateway, which is all that the agent knows. */
export async function answer(question: string, gatewayUrl: string): Promise<string> {
  const openai = createOpenAI({ baseURL: `${gatewayUrl}/v1`, apiKey: 'the gateway has the key' });
  const mcp = new Client({ name: 'example-agent', version: '1.0.0' });
  await mcp.connect(new StreamableHTTPClientTransport(new URL('/mcp', gatewayUrl)));
  try {
    const { text } = await generateText({
      model: openai.chat('gpt-5-mini'),
      system: 'You answer questions of customers about their orders, in one sentence.',
      prompt: question,
      tools: await toolsOf(mcp),
      stopWhen: stepCountIs(5),
      maxRetries: 0,
    });
    return text;
  } finally {
    await mcp.close();
  }
}

/** The tools that the gateway lists, in the form of the AI SDK. */
async function toolsOf(mcp: Client): Promise<ToolSet> {
  const { tools } = await mcp.listTools();
  return Object.fromEntries(
    tools.map(({ name, description = '', inputSchema }) => [
      name,
      dynamicTool({
        description,
        inputSchema: jsonSchema(inputSchema),
        execute: async (input) =>
          (await mcp.callTool({ name, arguments: { ...(input as Record<string, unknown>) } })).content,
      }),
    ]),
  );
}
