/** Machines behind a proxy on the server's host. One has the token of its node, and wants the server to call another host. */
import { useAttackedServer, expectBounded } from './watchdog';

const server = useAttackedServer(undefined, '[oslo_middleware]\nenable_proxy_headers_parsing = true');
const headers = {
  'content-type': 'application/json',
  'x-openstack-ironic-api-version': '1.115',
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
