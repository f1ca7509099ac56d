/** What the operator reads when an agent is faulty, or is not heard of: faults of a stand-in for the agent. Those of machines are in the lab. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { answerOf, STAND_IN_FAULTS, type Stage, type StandInFault } from '../../support/agent-faults/stand-in';
import { textOf } from '../../support/agent-faults/fault';
import { startFakeAgent, type AgentRequest } from '../../support/fakes/fake-agent';
import { useDatabase } from '../../support/database';
import { until } from '../../support/until';
import { startWholeServer, type WholeServer } from '../../support/whole-server';

const database = useDatabase();
let whole: WholeServer;
let folder: string;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'agent-faults-'));
  writeFileSync(join(folder, 'image.raw'), 'image');
  whole = await startWholeServer(database.connection(), {
    machines: 0,
    options: {
      'DEFAULT.enabled_hardware_types': ['fake-hardware'],
      'DEFAULT.enabled_boot_interfaces': ['fake'],
      'DEFAULT.enabled_power_interfaces': ['fake'],
      'DEFAULT.enabled_management_interfaces': ['fake'],
      'agent.require_tls': false,
      'agent.command_timeout': 5,
      'agent.max_command_attempts': 1,
      'agent.deploy_logs_local_path': join(folder, 'logs'),
      'agent.post_deploy_get_power_state_retries': 0,
      'conductor.deploy_callback_timeout': 8,
      'conductor.file_url_allowed_paths': [folder],
      'conductor.check_provision_state_interval': 1,
    },
  });
});
afterAll(async () => {
  await whole.close();
  rmSync(folder, { recursive: true, force: true });
}, 30_000);

async function failureOf(fault: StandInFault, index: number): Promise<string> {
  const mac = `52:54:00:00:01:${index.toString(16).padStart(2, '0')}`;
  const before: AgentRequest[] = [];
  const agent = await startFakeAgent((asked) => {
    before.push(asked);
    return answerOf(fault, asked, before.slice(0, -1));
  });
  try {
    const created = await whole.call('POST', '/v1/nodes', {
      driver: 'fake-hardware',
      automated_clean: false,
      instance_info: whole.deployable({ image_source: `file://${folder}/image.raw` }),
    });
    const uuid = created.body['uuid'] as string;
    await whole.call('POST', '/v1/ports', { node_uuid: uuid, address: mac });
    await whole.order(uuid, 'manage');
    await whole.reach(uuid, 'manageable');
    await whole.order(uuid, 'provide');
    await whole.reach(uuid, 'available');
    await whole.order(uuid, 'active');
    await whole.reach(uuid, 'wait call-back');
    let token = '';
    const stage: Stage = {
      lookUp: async () => {
        const { body } = await whole.call('GET', `/v1/lookup?addresses=${mac}`);
        token = (body['config'] as { readonly agent_token: string }).agent_token;
        return token;
      },
      beat: async (more = {}) =>
        (await whole.call('POST', `/v1/heartbeat/${uuid}`, { callback_url: agent.url, agent_token: token, agent_version: '1', ...more }))
          .status,
      commanded: (name) =>
        until(`the command ${name}`, () => agent.asked.some(({ body }) => body?.name.endsWith(`.${name}`) === true), 10, 60_000),
    };
    await fault.play(stage);
    await whole.reach(uuid, 'deploy failed');
    return (await whole.call('GET', `/v1/nodes/${uuid}`)).body['last_error'] as string;
  } finally {
    await agent.close();
  }
}

// The cases wait more than they work: all run at once, and each test awaits its own.
const failures = new Map<string, Promise<unknown>>();
beforeAll(() => {
  for (const [index, fault] of STAND_IN_FAULTS.entries())
    failures.set(
      fault.name,
      failureOf(fault, index).catch((error: unknown) => error),
    );
});
it.each(STAND_IN_FAULTS)('$name: last_error says so', async (fault) => {
  const failure = await failures.get(fault.name);
  if (failure instanceof Error) throw failure;
  expect(failure).toMatch(textOf(fault));
});
