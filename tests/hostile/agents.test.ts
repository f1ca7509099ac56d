/** Machines behind a proxy on the server's host. One has the token of its node, and wants the server to call another host. */
import { until } from '../support/until';
import { useAttackedServer, expectBounded } from './watchdog';
import { NEWEST_VERSION } from '../support/newest';

const server = useAttackedServer(
  undefined,
  `[oslo_middleware]
enable_proxy_headers_parsing = true
[DEFAULT]
enabled_inspect_interfaces = agent
[inspector]
require_managed_boot = false
power_off = false`,
);
const headers = {
  'content-type': 'application/json',
  'x-openstack-ironic-api-version': NEWEST_VERSION,
  'x-forwarded-for': '192.0.2.7, 192.0.2.9',
};
const post = (path: string, body: object) => server.call('POST', path, { headers, body: JSON.stringify(body) });
const read = async <T>(path: string): Promise<T> => JSON.parse((await server.call('GET', path, { headers })).text) as T;

const HOSTS = [
  '192.0.2.7',
  '[::ffff:192.0.2.7]',
  '169.254.169.254',
  '0xA9FEA9FE',
  '[fe80::1%25eth0]',
  '[fd00:ec2::254]',
  '127.0.0.1:1',
  '0.0.0.0:1',
  '[::]:1',
  'localhost.example',
  'u:p@127.0.0.1:1',
  '127.0.0.1:1#@192.0.2.7',
  '192.0.2.7\\@127.0.0.1:1',
];

it('refuses heartbeats whose callback URL names another host than that of the agent', async () => {
  const { text } = await post('/v1/nodes', { driver: 'fake-hardware', driver_info: { fast_track: true } });
  const { uuid } = JSON.parse(text) as { readonly uuid: string };
  const { config } = await read<{ readonly config: { readonly agent_token: string } }>(`/v1/lookup?node_uuid=${uuid}`);
  const beat = (host: string) =>
    post(`/v1/heartbeat/${uuid}`, { callback_url: `https://${host}`, agent_token: config.agent_token, agent_version: '1' });
  const cost = await server.attack(async () => {
    for (let turn = 0; turn < 25; turn++)
      expect(new Set(await Promise.all(HOSTS.map(async (host) => (await beat(host)).status)))).toEqual(new Set([400]));
  });
  expectBounded(cost);
  const { history } = await read<{ readonly history: readonly unknown[] }>(`/v1/nodes/${uuid}/history`);
  expect(history).toHaveLength(1);
  expect((await beat('192.0.2.9:1')).status).toBe(202);
});

it('refuses heartbeats whose callback URL names an address that an inventory claimed', async () => {
  const driver_info = { fast_track: true, redfish_address: 'https://192.0.2.1' };
  const { text } = await post('/v1/nodes', { driver: 'fake-hardware', inspect_interface: 'agent', driver_info });
  const { uuid } = JSON.parse(text) as { readonly uuid: string };
  const reaches = async (state: string): Promise<void> => {
    const now = async () => (await read<{ readonly provision_state: string }>(`/v1/nodes/${uuid}`)).provision_state;
    await until(`the node is in ${state}`, async () => (await now()) === state);
  };
  const verb = (target: string) => server.call('PUT', `/v1/nodes/${uuid}/states/provision`, { headers, body: JSON.stringify({ target }) });
  await verb('manage');
  await reaches('manageable');
  await verb('inspect');
  await reaches('inspect wait');
  const claimed = { ipv4_address: '192.0.2.77', ipv6_address: '2001:db8::77' };
  const inventory = {
    interfaces: [{ name: 'eth0', mac_address: '52:54:00:00:00:77', ...claimed }],
    memory: { physical_mb: 1024 },
    cpu: { count: 1, architecture: 'x86_64' },
    disks: [],
    boot: {},
    bmc_address: '192.0.2.1',
    bmc_v6address: '2001:db8::78',
    hostname: 'agent.example',
  };
  const reported = await post('/v1/continue_inspection', { inventory });
  expect(reported.status).toBe(202);
  const { config } = JSON.parse(reported.text) as { readonly config: { readonly agent_token: string } };
  await reaches('manageable');
  expect(JSON.stringify(await read(`/v1/nodes/${uuid}/inventory`))).toContain('192.0.2.77');
  const beat = async (host: string) => {
    const callback = { callback_url: `https://${host}:1`, agent_token: config.agent_token, agent_version: '1' };
    const { status, text } = await post(`/v1/heartbeat/${uuid}`, callback);
    return status === 400 && !text.includes('The agent cannot be called') ? text : status;
  };
  for (const host of ['192.0.2.77', '[2001:db8::77]', '192.0.2.1', '[2001:db8::78]', 'agent.example'])
    expect([host, await beat(host)]).toEqual([host, 400]);
  expect(await beat('192.0.2.9')).toBe(202);
});
