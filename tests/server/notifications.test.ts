import { randomBytes, randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { loadOptions } from '../../config/load';
import { systemClock } from '../../model/clock';
import type { Log } from '../../model/log';
import { silentMetrics } from '../../model/metrics';
import { announce, announceNode, LEVELS, type Level } from '../../model/notifications';
import { createNotifier } from '../../server/notifications';

const said: string[] = [];
const warnings: string[] = [];
const note = (message: string): void => void said.push(message);
const log: Log = { debug: note, info: note, error: note, warn: (message) => void warnings.push(message), child: () => log };
const open = (environment: Readonly<Record<string, string>>) =>
  createNotifier({
    options: loadOptions([], environment).options,
    host: 'here',
    log,
    clock: { ...systemClock, now: () => Date.parse('2026-03-01T10:00:00.123Z') },
    metrics: silentMetrics,
    random: randomBytes,
  });
beforeEach(() => {
  said.length = 0;
  warnings.length = 0;
});

const secrets = {
  uuid: randomUUID(),
  name: 'one',
  created_at: '2026-03-01T09:00:00.500000+00:00',
  driver_info: { redfish_password: 'hush', redfish_address: 'https://admin:hush@bmc', deep: { snmp_auth_key: 'x', token: 'hush' } },
  instance_info: { image_url: 'http://hush', configdrive: 'hush' },
  driver_internal_info: { agent_secret_token: 'hush' },
  deploy_step: { step: 's', args: { password: 'hush' } },
  traits: ['CUSTOM_B', 'CUSTOM_A'],
};

it('formats notifications as oslo.messaging does, without secrets', () => {
  const { notifier } = open({ OS_DEFAULT__NOTIFICATION_LEVEL: 'info', OS_OSLO_MESSAGING_NOTIFICATIONS__DRIVER: 'log' });
  announceNode(notifier, 'ironic-conductor', 'provision_set', 'start', secrets, { event: 'deploy' }, undefined);
  announce(notifier, 'node', 'update', 'error', secrets, undefined);
  expect(said.join()).not.toContain('hush');
  const [first, second] = said.map((line) => JSON.parse(line) as Record<string, unknown>);
  expect(first).toEqual({
    message_id: expect.stringMatching(/^[0-9a-f-]{36}$/) as unknown,
    publisher_id: 'ironic-conductor.here',
    event_type: 'baremetal.node.provision_set.start',
    priority: 'INFO',
    payload: {
      'ironic_object.name': 'NodeSetProvisionStatePayload',
      'ironic_object.namespace': 'ironic',
      'ironic_object.version': '1.18',
      'ironic_object.data': expect.objectContaining({
        uuid: secrets.uuid,
        event: 'deploy',
        created_at: '2026-03-01T09:00:00Z',
        updated_at: null,
        instance_info: { image_url: '******', configdrive: '***' },
        deploy_step: { step: 's', args: { password: '***' } },
        clean_step: {},
        traits: ['CUSTOM_A', 'CUSTOM_B'],
      }) as unknown,
    },
    timestamp: '2026-03-01 10:00:00.123000',
  });
  expect(second).toMatchObject({ publisher_id: 'ironic-api.here', priority: 'ERROR', event_type: 'baremetal.node.update.error' });
});

it('removes credentials from URLs in the notifications that it posts to the webhook', async () => {
  const posted: string[] = [];
  const server = createServer((request, response) => {
    void text(request).then((body) => {
      posted.push(body);
      response.end();
    });
  });
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  const opened = open({
    OS_DEFAULT__NOTIFICATION_LEVEL: 'info',
    OS_NOTIFICATIONS__WEBHOOK_URL: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
  });
  announce(opened.notifier, 'node', 'update', 'end', secrets, undefined);
  await opened.stop();
  await new Promise((done) => server.close(done));
  expect(posted.join()).toContain('https://bmc');
  expect(posted.join()).not.toContain('admin:hush');
});

it('redacts the properties of volume targets and sensitive inspection rules', () => {
  const { notifier } = open({ OS_DEFAULT__NOTIFICATION_LEVEL: 'info', OS_OSLO_MESSAGING_NOTIFICATIONS__DRIVER: 'log' });
  announce(notifier, 'volumetarget', 'create', 'end', { properties: { iqn: 'hush' } }, undefined);
  announce(notifier, 'inspectionrule', 'create', 'end', { sensitive: true, actions: [{ a: 'hush' }], conditions: [] }, undefined);
  expect(said).toHaveLength(2);
  expect(said.join()).not.toContain('hush');
  expect(said.join().match(/Value redacted/g)).toHaveLength(3);
});

it.each([...LEVELS])('sends notifications of the level %s and above', (lowest) => {
  const { notifier } = open({ OS_DEFAULT__NOTIFICATION_LEVEL: lowest, OS_OSLO_MESSAGING_NOTIFICATIONS__DRIVER: 'log' });
  const wanted = LEVELS.filter((level: Level) => notifier.wants(level));
  expect(wanted).toEqual(LEVELS.slice(LEVELS.indexOf(lowest)));
});
it.each<[Record<string, string>, RegExp | undefined]>([
  [{}, undefined],
  [{ OS_OSLO_MESSAGING_NOTIFICATIONS__DRIVER: 'log' }, undefined],
  [{ OS_DEFAULT__NOTIFICATION_LEVEL: 'debug' }, undefined],
  [{ OS_DEFAULT__NOTIFICATION_LEVEL: 'debug', OS_OSLO_MESSAGING_NOTIFICATIONS__DRIVER: 'noop' }, undefined],
  [
    { OS_DEFAULT__NOTIFICATION_LEVEL: 'debug', OS_OSLO_MESSAGING_NOTIFICATIONS__DRIVER: 'noop\nprometheus_exporter' },
    /driver: prometheus_exporter is not available and sends nothing: use log/,
  ],
  [
    { OS_DEFAULT__NOTIFICATION_LEVEL: 'debug', OS_OSLO_MESSAGING_NOTIFICATIONS__DRIVER: 'messagingv2' },
    /message queues are not supported.*messagingv2/,
  ],
  [{ OS_NOTIFICATIONS__WEBHOOK_URL: 'http://x' }, /no effect without \[DEFAULT\]notification_level/],
])('sends nothing with %j', (environment, warning) => {
  const { notifier } = open(environment);
  expect(LEVELS.some((level) => notifier.wants(level))).toBe(false);
  expect(warnings).toEqual(warning === undefined ? [] : [expect.stringMatching(warning)]);
});
it.each(['ftp://x', 'nonsense'])('refuses %s as webhook_url', (url) => {
  expect(() => open({ OS_DEFAULT__NOTIFICATION_LEVEL: 'info', OS_NOTIFICATIONS__WEBHOOK_URL: url })).toThrow(
    'webhook_url is not an HTTP(S) URL',
  );
});
