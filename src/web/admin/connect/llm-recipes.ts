import { KEY, type Recipe, shellWord, type Target } from './recipe.ts';

/** Settings of programs and libraries that call models, for the models of a route. */
export const llmRecipes = (target: Target): readonly Recipe[] =>
  [curl, openAiPython, openAiNode, environment, aiSdk, claudeCode, anthropicPython, codex].map((of) =>
    of(target),
  );

/** SDKs insist on a key, whatever the gateway does with it. */
const pythonKey = ({ access }: Target): string =>
  access === 'open' ? '"not-needed"' : `os.environ["${KEY}"]`;
const nodeKey = ({ access }: Target): string => (access === 'open' ? "'not-needed'" : `process.env.${KEY}`);

function curl({ url, model, access }: Target): Recipe {
  const body = { model, messages: [{ role: 'user', content: 'Hello' }] };
  const header = access === 'open' ? '' : ` \\\n  -H "authorization: Bearer $${KEY}"`;
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

const environment = ({ url, access }: Target): Recipe => ({
  client: 'Programs with the OpenAI SDK',
  where: 'Their environment',
  text: `export OPENAI_BASE_URL=${shellWord(`${url}/v1`)}\nexport OPENAI_API_KEY=${access === 'open' ? 'not-needed' : `"$${KEY}"`}`,
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

const claudeCode = ({ url, model, access }: Target): Recipe => ({
  client: 'Claude Code',
  where: 'Its environment',
  text: `export ANTHROPIC_BASE_URL=${shellWord(url)}
export ANTHROPIC_AUTH_TOKEN=${access === 'open' ? 'not-needed' : `"$${KEY}"`}
export ANTHROPIC_MODEL=${shellWord(model)}
claude`,
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

const codex = ({ name, url, model, access }: Target): Recipe => ({
  client: 'Codex',
  where: '~/.codex/config.toml',
  text: [
    `model = ${JSON.stringify(model)}`,
    `model_provider = "${name}"`,
    '',
    `[model_providers.${name}]`,
    `name = "${name}"`,
    `base_url = ${JSON.stringify(`${url}/v1`)}`,
    'wire_api = "responses"',
    ...(access === 'open' ? [] : [`env_key = "${KEY}"`]),
  ].join('\n'),
});
