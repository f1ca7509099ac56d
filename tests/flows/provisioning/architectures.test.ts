/** Machines of two architectures at the whole server: each boots the ramdisk of its own, or learns why it does not. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { LoadedOptions } from '../../../config/options';
import type { Log } from '../../../model/log';
import { useDatabase } from '../../support/database';
import { until } from '../../support/until';
import { startWholeServer, type WholeServer } from '../../support/whole-server';

const database = useDatabase();
let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'architectures-'));
  for (const cpu of ['x86_64', 'aarch64'])
    for (const name of ['kernel', 'ramdisk']) writeFileSync(join(folder, `${name}-${cpu}`), `${name} of ${cpu}`);
});
afterAll(() => rmSync(folder, { recursive: true }));
let all: WholeServer | undefined;
const warnings: (readonly [string, object | undefined])[] = [];
afterEach(async () => {
  await all?.close();
  all = undefined;
  warnings.length = 0;
  await database.clear();
});
const log: Log = {
  debug: () => {},
  info: () => {},
  warn: (message, fields) => void warnings.push([message, fields]),
  error: () => {},
  child: () => log,
};
const byArch = (...cpus: readonly string[]): Partial<LoadedOptions> => ({
  'conductor.deploy_kernel_by_arch': Object.fromEntries(cpus.map((cpu) => [cpu, `file://${folder}/kernel-${cpu}`])),
  'conductor.deploy_ramdisk_by_arch': Object.fromEntries(cpus.map((cpu) => [cpu, `file://${folder}/ramdisk-${cpu}`])),
});
const NO_COMMON = { 'conductor.deploy_kernel': null, 'conductor.deploy_ramdisk': null };
const start = async (options: Partial<LoadedOptions>, machines = 0): Promise<WholeServer> =>
  (all = await startWholeServer(database.connection(), {
    machines,
    architectures: (index) => (index === 0 ? 'x86_64' : 'aarch64'),
    options: {
      'auto_discovery.enabled': true,
      'auto_discovery.driver': 'redfish',
      'inspector.add_ports': 'all',
      ...options,
    },
    log,
  }));
const text = async (url: string): Promise<string> => (await fetch(url)).text();
/** The content of the kernel that a script boots. */
const kernelOf = (script: string): Promise<string> => text(/^kernel (\S+)/m.exec(script)![1]!);
const MAC = '52-54-00-aa-bb-cc';
const scriptOf = ({ server }: WholeServer, buildarch: string): Promise<string> =>
  text(`${server.bootUrl!}/ipxe/${MAC}?buildarch=${buildarch}`);

it('an unknown machine boots the ramdisk of its architecture, after it has said which it is', async () => {
  const server = await start({ ...byArch('x86_64', 'aarch64'), ...NO_COMMON });
  expect(await text(`${server.server.bootUrl!}/ipxe/${MAC}`)).toContain(
    `chain --replace --autofree ${server.server.bootUrl!}/ipxe/\${mac:hexhyp}?start&buildarch=\${buildarch}`,
  );
  const scripts = await Promise.all(['i386', 'x86_64', 'arm64'].map((build) => scriptOf(server, build)));
  expect(await Promise.all(scripts.map(kernelOf))).toEqual(['kernel of x86_64', 'kernel of x86_64', 'kernel of aarch64']);
});

it('a machine whose architecture has no ramdisk is told on its console, and the log says it', async () => {
  const server = await start({ ...byArch('aarch64'), ...NO_COMMON });
  const why = 'there is no ramdisk for the architecture riscv64: [conductor]deploy_kernel_by_arch and deploy_ramdisk_by_arch';
  expect(await scriptOf(server, 'riscv64')).toBe(`#!ipxe\necho Bloomery: ${why}\nsleep 30\nexit 1\n`);
  expect(warnings).toContainEqual([
    'HTTP boot: a machine of another architecture',
    expect.objectContaining({ mac: MAC.replaceAll('-', ':'), reason: why }),
  ]);
});

it('simulated machines of both architectures are deployed', async () => {
  const server = await start(byArch('aarch64'), 2);
  const [x86, arm] = server.fleet.machines;
  const uuids = [
    await server.enrol(x86!),
    // The options for its architecture are used by its property, and without the property by what the machine says.
    await server.enrol(arm!, { properties: { cpu_arch: 'aarch64' } }),
  ];
  for (const uuid of uuids) {
    await server.provide(uuid);
    await server.call('PATCH', `/v1/nodes/${uuid}`, [{ op: 'add', path: '/instance_info', value: server.deployable() }]);
    await server.order(uuid, 'active');
  }
  for (const uuid of uuids) await server.reach(uuid, 'active');
});

it('a node without the property cpu_arch boots what its machine says', async () => {
  const server = await start(byArch('aarch64'), 2);
  const uuid = await server.enrol(server.fleet.machines[1]!);
  await server.order(uuid, 'manage');
  await server.reach(uuid, 'manageable');
  await server.order(uuid, 'inspect');
  await server.reach(uuid, 'manageable');
  expect((await server.call('GET', `/v1/nodes/${uuid}`)).body).toMatchObject({ properties: { cpu_arch: 'aarch64' } });
});

it('a machine of another architecture than its node boots nothing, and the log names the node', async () => {
  const server = await start(byArch('x86_64'), 2);
  const uuid = await server.enrol(server.fleet.machines[1]!, { properties: { cpu_arch: 'x86_64' } });
  await server.order(uuid, 'manage');
  await server.reach(uuid, 'manageable');
  await server.order(uuid, 'inspect');
  const reason = `the node ${uuid} has cpu_arch x86_64, but this machine is aarch64`;
  await until('the log to say it', () => warnings.some(([, fields]) => JSON.stringify(fields ?? {}).includes(reason)));
});
