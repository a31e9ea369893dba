import { shellWord } from '../../../core/clients/client.ts';
import { llmClients } from '../../../core/clients/llm-clients.ts';
import { type Recipe, recipeOf, type Target } from './recipe.ts';

/** Settings of programs and libraries that call models, for the models of a route. */
export const llmRecipes = (target: Target): readonly Recipe[] => [
  curl(target),
  ...llmClients.map((client) => recipeOf(client, target)),
  ...[openAiPython, openAiNode, environment, aiSdk, anthropicPython].map((of) => of(target)),
];

/** SDKs insist on a key, whatever the gateway does with it. */
const pythonKey = ({ keyVariable }: Target): string =>
  keyVariable === undefined ? '"not-needed"' : `os.environ["${keyVariable}"]`;
const nodeKey = ({ keyVariable }: Target): string =>
  keyVariable === undefined ? "'not-needed'" : `process.env.${keyVariable}`;

function curl({ url, model, keyVariable }: Target): Recipe {
  const body = { model, messages: [{ role: 'user', content: 'Hello' }] };
  const header = keyVariable === undefined ? '' : ` \\\n  -H "authorization: Bearer $${keyVariable}"`;
  return {
    client: 'curl',
    where: 'In a terminal',
    text: `curl -sS ${shellWord(`${url}/v1/chat/completions`)}${header} \\\n  -H 'content-type: application/json' \\\n  -d ${shellWord(JSON.stringify(body))}`,
  };
}

const openAiPython = (target: Target): Recipe => ({
  client: 'OpenAI SDK, Python',
  where: 'pip install openai',
  text: `import os
from openai import OpenAI

client = OpenAI(base_url=${JSON.stringify(`${target.url}/v1`)}, api_key=${pythonKey(target)})
answer = client.chat.completions.create(
    model=${JSON.stringify(target.model)},
    messages=[{"role": "user", "content": "Hello"}],
)
print(answer.choices[0].message.content)`,
});

const openAiNode = (target: Target): Recipe => ({
  client: 'OpenAI SDK, JavaScript',
  where: 'npm install openai',
  text: `import OpenAI from 'openai';

const client = new OpenAI({ baseURL: ${JSON.stringify(`${target.url}/v1`)}, apiKey: ${nodeKey(target)} });
const answer = await client.chat.completions.create({
  model: ${JSON.stringify(target.model)},
  messages: [{ role: 'user', content: 'Hello' }],
});
console.log(answer.choices[0].message.content);`,
});

const environment = ({ url, keyVariable }: Target): Recipe => ({
  client: 'Programs with the OpenAI SDK',
  where: 'Their environment',
  text: `export OPENAI_BASE_URL=${shellWord(`${url}/v1`)}\nexport OPENAI_API_KEY=${keyVariable === undefined ? 'not-needed' : `"$${keyVariable}"`}`,
});

const aiSdk = (target: Target): Recipe => ({
  client: 'AI SDK',
  where: 'npm install ai @ai-sdk/openai',
  text: `import { createOpenAI } from '@ai-sdk/openai';
import { generateText } from 'ai';

const gateway = createOpenAI({ baseURL: ${JSON.stringify(`${target.url}/v1`)}, apiKey: ${nodeKey(target)} });
const { text } = await generateText({
  model: gateway.chat(${JSON.stringify(target.model)}),
  prompt: 'Hello',
});
console.log(text);`,
});

const anthropicPython = (target: Target): Recipe => ({
  client: 'Anthropic SDK, Python',
  where: 'pip install anthropic',
  text: `import os
from anthropic import Anthropic

client = Anthropic(base_url=${JSON.stringify(target.url)}, auth_token=${pythonKey(target)})
answer = client.messages.create(
    model=${JSON.stringify(target.model)},
    max_tokens=200,
    messages=[{"role": "user", "content": "Hello"}],
)
print(answer.content[0].text)`,
});
