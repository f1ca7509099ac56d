/** The deploy interface anaconda with simulated machines: the test is the installer, which fetches what the server gives it and reports. */
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { startWholeServer, type WholeServer } from '../../support/whole-server';
import { useDatabase } from '../../support/database';
import { until } from '../../support/until';

const database = useDatabase();
let whole: WholeServer;
let web: Server;
let mirror: string;
const TEMPLATE =
  'liveimg --url {{ ks_options.liveimg_url }}\n# {{ ks_options.agent_token }} {{ ks_options.heartbeat_url }}\n{{ ks_options.config_drive }}\n';
const pages: Record<string, readonly [type: string, text: string]> = {
  '/repo/': ['text/html', '<a href="images/">'],
  '/os.tar': ['application/octet-stream', 'a root file system'],
  '/own.ks': ['text/plain', `# own\n${TEMPLATE}`],
  '/lacking.ks': ['text/plain', 'liveimg --url {{ ks_options.liveimg_url }}\n'],
  '/endless.ks': ['text/plain', `{% for a in [${'1,'.repeat(99)}1] %}`.repeat(6) + 'x' + '{% endfor %}'.repeat(6)],
};
beforeAll(async () => {
  web = createServer((request, response) => {
    const page = pages[request.url ?? ''];
    if (!page) response.writeHead(404).end();
    else
      response.writeHead(200, { 'content-type': page[0], 'content-length': page[1].length }).end(request.method === 'HEAD' ? '' : page[1]);
  });
  await new Promise<void>((listening) => web.listen(0, '127.0.0.1', listening));
  mirror = `http://127.0.0.1:${(web.address() as AddressInfo).port}`;
  whole = await startWholeServer(database.connection(), {
    machines: 8,
    options: {
      'DEFAULT.enabled_deploy_interfaces': ['autodetect', 'anaconda', 'direct', 'ramdisk', 'bootc'],
      'DEFAULT.autodetect_deploy_interfaces': ['ramdisk', 'bootc', 'anaconda'],
    },
  });
});
afterAll(async () => {
  await whole.close();
  web.close();
  web.closeAllConnections();
}, 30_000);

let next = 0;
const parts = () => ({
  kernel: whole.image.url.replace('image.raw', 'kernel'),
  ramdisk: whole.image.url.replace('image.raw', 'ramdisk'),
});
const installs = (more: Readonly<Record<string, unknown>> = {}) => ({
  image_source: `${mirror}/os.tar`,
  stage2: `${mirror}/os.tar`,
  ...parts(),
  ...more,
});
async function available(instance: Readonly<Record<string, unknown>>, deploy_interface = 'anaconda') {
  const machine = whole.fleet.machines[next++]!;
  const uuid = await whole.enrol(machine, { automated_clean: false, deploy_interface, instance_info: instance });
  await whole.order(uuid, 'manage');
  await whole.reach(uuid, 'manageable');
  await whole.order(uuid, 'provide');
  await whole.reach(uuid, 'available');
  const script = async () => (await fetch(`${whole.server.bootUrl!}/ipxe/${machine.macs[0]!.replaceAll(':', '-')}`)).text();
  return { uuid, machine, script };
}
/** What the installer's command line names. */
const argumentsOf = (script: string): Readonly<Record<string, string>> =>
  Object.fromEntries([...script.matchAll(/inst\.(\w+)=(\S+)/g)].map(([, name, value]) => [name!, value!]));
const textAt = async (url: string) => (await fetch(url)).text();
/** Sends the heartbeat of the kickstart file that has this status, as its curl would. */
async function report(kickstart: string, status: string, changes: Readonly<Record<string, unknown>> = {}) {
  const line = kickstart.split('\n').find((candidate) => candidate.includes(`"agent_status": "${status}"`))!;
  const body = JSON.parse(/-d '([^']*)'/.exec(line)![1]!) as Readonly<Record<string, unknown>>;
  return fetch(/ (http\S+)$/.exec(line)![1]!, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-openstack-ironic-api-version': '1.72' },
    body: JSON.stringify({ ...body, ...changes }),
  });
}
const nodeOf = async (uuid: string) => (await whole.call('GET', `/v1/nodes/${uuid}`)).body;

it('installs an image: kickstart file, heartbeats, reboot into the disk, and the kickstart file is gone', async () => {
  const { uuid, machine, script } = await available(installs());
  expect((await whole.call('GET', `/v1/nodes/${uuid}/validate`)).body).toMatchObject({ deploy: { result: true }, boot: { result: true } });
  await whole.order(uuid, 'active', { configdrive: { meta_data: { hostname: 'kick' }, user_data: '#!/bin/sh\n' } });
  await whole.reach(uuid, 'wait call-back');
  const booted = await script();
  expect(booted).toMatch(/kernel \S+\/kernel text nofb vga=normal inst\.ks=\S+\/ks\.cfg inst\.stage2=\S+ initrd=ramdisk/);
  const { ks, stage2 } = argumentsOf(booted);
  expect(await textAt(`${stage2!}/LiveOS/squashfs.img`)).toBe('a root file system');
  const kickstart = await textAt(ks!);
  expect(kickstart).toContain(`liveimg --url ${mirror}/os.tar\n`);
  expect(kickstart).not.toContain('--insecure');
  expect(kickstart).toContain("> '/var/lib/cloud/seed/config_drive/openstack/latest/user_data'");
  expect(kickstart).toContain(Buffer.from('#!/bin/sh\n').toString('base64'));
  const token = /"agent_token": "([^"]+)"/.exec(kickstart)![1]!;
  expect(await nodeOf(uuid)).toMatchObject({
    driver_internal_info: { stage2: `${mirror}/os.tar` },
    instance_info: { image_type: 'partition' },
  });

  expect((await report(kickstart, 'start', { agent_token: 'wrong' })).status).toBe(400);
  expect((await report(kickstart, 'start')).status).toBe(202);
  await until('the heartbeat is recorded', async () => JSON.stringify(await nodeOf(uuid)).includes('"agent_status":"start"'));
  expect(await nodeOf(uuid)).toMatchObject({ provision_state: 'wait call-back' });
  expect((await report(kickstart, 'end')).status).toBe(202);
  const node = await whole.reach(uuid, 'active');
  expect(node).toMatchObject({ power_state: 'power on', last_error: null });
  expect(JSON.stringify(node['driver_internal_info'])).not.toContain('stage2');
  expect(JSON.stringify(node)).not.toContain(token);
  expect(machine.control.isOn()).toBe(true);
  expect((await fetch(ks!)).status).toBe(404);
  expect(await script()).toContain('Nothing to boot');

  await whole.order(uuid, 'rebuild');
  await whole.reach(uuid, 'wait call-back');
  const again = argumentsOf(await script())['ks']!;
  expect(again).not.toBe(ks);
  const second = await textAt(again);
  expect(second).not.toContain(token);
  await report(second, 'start');
  await report(second, 'end');
  await whole.reach(uuid, 'active');
  await whole.order(uuid, 'deleted');
  await whole.reach(uuid, 'available');
  expect(machine.control.isOn()).toBe(false);
});

it('a repository is passed on, and its installer needs no second stage', async () => {
  const { uuid, script } = await available({ image_source: `${mirror}/repo/`, ...parts() });
  await whole.order(uuid, 'active');
  await whole.reach(uuid, 'wait call-back');
  const { repo, ks, stage2 } = argumentsOf(await script());
  expect([repo, stage2]).toEqual([`${mirror}/repo/`, undefined]);
  expect(await textAt(ks!)).toContain(`url --url ${mirror}/repo/\n`);
  expect(await nodeOf(uuid)).toMatchObject({
    driver_internal_info: { is_source_a_path: true },
    instance_info: { image_source: `${mirror}/repo/` },
  });
  await whole.order(uuid, 'deleted');
  await whole.reach(uuid, 'available');
  expect((await fetch(ks!)).status).toBe(404);
});

it('an error of the installer fails the deployment with its words', async () => {
  const { uuid, script } = await available(installs({ ks_template: `${mirror}/own.ks` }));
  await whole.order(uuid, 'active');
  await whole.reach(uuid, 'wait call-back');
  const { ks } = argumentsOf(await script());
  const kickstart = await textAt(ks!);
  expect(kickstart.startsWith('# own\n')).toBe(true);
  const [, token, url] = /# (\S+) (http\S+)/.exec(kickstart)!;
  const answer = await fetch(url!, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-openstack-ironic-api-version': '1.72' },
    body: JSON.stringify({ callback_url: '', agent_token: token, agent_status: 'error', agent_status_message: 'no disk was found' }),
  });
  expect(answer.status).toBe(202);
  await expect(whole.reach(uuid, 'active')).rejects.toThrow('is deploy failed, not active: no disk was found');
  expect(await nodeOf(uuid)).toMatchObject({ last_error: 'no disk was found' });
  expect((await fetch(ks!)).status).toBe(404);
});

it.each([
  [
    { ks_template: 'lacking.ks' },
    /Following required kickstart option variables are missing from the kickstart template: agent_token,heartbeat_url\./,
  ],
  [{ ks_template: 'endless.ks' }, /The kickstart template cannot be rendered: it takes more than 5 s/],
  [{ ks_template: 'nosuch.ks' }, /The kickstart template http:\S+ cannot be read/],
])('refuses a template before the machine is touched: %j', async ({ ks_template: name }, message) => {
  const { uuid, machine } = await available(installs({ ks_template: `${mirror}/${name}` }));
  const before = machine.control.isOn();
  await whole.order(uuid, 'active');
  await expect(whole.reach(uuid, 'active')).rejects.toThrow(message);
  expect(machine.control.isOn()).toBe(before);
});

it.each([
  [{}, "Missing are: ['image_source', 'kernel', 'ramdisk']"],
  [{ image_source: 'http://127.0.0.1:1/os.tar' }, "Missing are: ['kernel', 'ramdisk']"],
  [
    { image_source: 'http://127.0.0.1:1/os.tar', kernel: 'http://x/k', ramdisk: 'http://x/r' },
    "'stage2_id' is missing from the properties of the OS image",
  ],
])('names what is missing: %j', async (instance, message) => {
  const uuid = await whole.enrol(whole.fleet.machines[6]!, {
    deploy_interface: 'anaconda',
    instance_info: instance,
    name: `lacking-${message.length}`,
  });
  const { body } = await whole.call('GET', `/v1/nodes/${uuid}/validate`);
  expect(body['deploy']).toMatchObject({ result: false });
  expect((body['deploy'] as { readonly reason: string }).reason).toContain(message);
  await whole.call('DELETE', `/v1/nodes/${uuid}`);
});

it('autodetect gives an image to it, if it is the last one of the list', async () => {
  const { uuid, script } = await available(installs(), 'autodetect');
  await whole.order(uuid, 'active');
  expect(await whole.reach(uuid, 'wait call-back')).toMatchObject({ deploy_interface: 'anaconda' });
  const kickstart = await textAt(argumentsOf(await script())['ks']!);
  await report(kickstart, 'end');
  await whole.reach(uuid, 'active');
});
