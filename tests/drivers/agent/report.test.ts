import { agentReport } from '../../../drivers/agent/report';
import { type Answer, type AgentRequest, type FakeAgent, result, startFakeAgent } from '../../support/fakes/fake-agent';
import { testTask } from '../../support/task';

const agents: FakeAgent[] = [];
afterEach(async () => {
  await Promise.all(agents.splice(0).map((agent) => agent.close()));
});
async function reportOf(answer: (asked: AgentRequest) => Answer) {
  const agent = await startFakeAgent(answer);
  agents.push(agent);
  const { task } = testTask({
    node: { driver_internal_info: { agent_url: agent.url, agent_secret_token: 's3cret' } },
    options: { 'agent.command_timeout': 1 },
  });
  return { report: await agentReport(task), asked: agent.asked };
}
const failed = result('execute_clean_step', 'FAILED', { command_error: { details: 'x', subject: 'disk /dev/sda\n(serial S1)' } });
const collected = result('collect_system_logs', 'SUCCEEDED', { command_result: { system_logs: 'bG9ncw==' } });

it('tells the last command of the agent, and gives its logs', async () => {
  const { report, asked } = await reportOf(({ method }) => ({
    body: method === 'POST' ? collected : { commands: [failed, collected] },
  }));
  expect(report).toEqual({
    command: { name: 'execute_clean_step', status: 'FAILED', subject: 'disk /dev/sda (serial S1)' },
    logs: Buffer.from('logs'),
  });
  expect(asked.map(({ body }) => body?.name)).toEqual([undefined, 'log.collect_system_logs']);
});
it('tells how much of a running command is done, and why there are no logs', async () => {
  const running = result('execute_deploy_step', 'RUNNING', { command_result: { progress: 43 } });
  const busy: Answer = { status: 409, body: { message: 'Agent is busy' } };
  const { report } = await reportOf(({ method }) => (method === 'POST' ? busy : { body: { commands: [running] } }));
  expect(report).toEqual({
    command: { name: 'execute_deploy_step', status: 'RUNNING', percent: 43 },
    noLogs: expect.stringMatching(/Agent is busy/) as string,
  });
});
it.each<[string, Answer, RegExp]>([
  ['does not answer', 'say nothing', /no answer within 1 s/],
  ['hangs up', 'hang up', /other side closed/],
  ['answers nonsense', { body: { commands: 7 } }, /did not answer with a list of commands/],
])('asks an agent once that %s', async (_, answer, silence) => {
  const { report, asked } = await reportOf(() => answer);
  expect(report).toEqual({ silence: expect.stringMatching(silence) as string });
  expect(asked).toHaveLength(1);
});
it('an archive that is no text is no archive', async () => {
  const { report } = await reportOf(({ method }) => ({
    body: method === 'POST' ? result('collect_system_logs', 'SUCCEEDED', { command_result: { system_logs: 7 } }) : { commands: [] },
  }));
  expect(report).toEqual({ noLogs: 'the agent sent none' });
});
