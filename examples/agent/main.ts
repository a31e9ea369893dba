// Answers the question on the command line.
import { createGateway } from '@agctl/agctl';
import { answer } from './agent.ts';

const [question = 'When does my order A-17 arrive?'] = process.argv.slice(2);
const gateway = await createGateway('gateway.yaml', { listen: 'free' });
try {
  console.log(await answer(question, gateway.url));
} finally {
  await gateway.close();
}
