/** Debian's dnsmasq with the files that `dhcp_provider = dnsmasq` writes: what firmware, iPXE and deployed systems get. Root. */
import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { agentDeploy } from '../../../drivers/agent/deploy';
import { ipxeBoot } from '../../../drivers/boot-interfaces/network-boot';
import { portRecord, testTask } from '../../support/task';
import { until } from '../../../demo/lab/machines';
import { addNamespace, removeNamespace } from '../../../demo/lab/namespace';
import { needs } from '../support/needs';

const run = promisify(execFile);
const MAC = '52:54:00:ab:00:01';
let namespace: string;
let clients: string;
let folder: string;
let server: ChildProcess;
let log = '';
/** Waits until the log contains `what` after its first `before` characters. */
const logged = async (what: string, before: number): Promise<void> =>
  until(
    60,
    () => `${what} in the log of dnsmasq: ${log}`,
    () => log.slice(before).includes(what),
  );

/** What udhcpc got, as the variables of its script; undefined: no lease. */
async function lease(...words: readonly string[]): Promise<Readonly<Record<string, string>> | undefined> {
  const out = join(folder, 'lease');
  rmSync(out, { force: true });
  const script = join(folder, 'script');
  writeFileSync(script, `#!/bin/sh\n[ "$1" = bound ] && env > ${out}\nexit 0\n`, { mode: 0o755 });
  const options = ['tftp', 'bootfile'].flatMap((name) => ['-O', name]);
  const common = ['-i', 'eth0', '-f', '-n', '-q', '-R', '-t', '2', '-T', '1', '-s', script];
  const got = await run('ip', ['netns', 'exec', clients, 'busybox', 'udhcpc', ...common, ...options, ...words], { timeout: 60_000 }).then(
    () => true,
    () => false,
  );
  if (!got) return undefined;
  return Object.fromEntries(
    readFileSync(out, 'utf8')
      .split('\n')
      .map((line) => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)]),
  );
}
/** Option 175 of iPXE. */
const AS_IPXE = ['-x', '0xaf:130101'] as const;

beforeAll(async () => {
  needs({ ip: 'iproute2', busybox: 'busybox-static', dnsmasq: 'dnsmasq-base' });
  namespace = await addNamespace('bloomery-dnsmasq');
  clients = await addNamespace('bloomery-dnsmasq-c');
  folder = mkdtempSync(join(tmpdir(), 'bloomery-dnsmasq-'));
  for (const name of ['hosts', 'options']) mkdirSync(join(folder, name));
  for (const command of [
    `-n ${namespace} link add near0 type veth peer name eth0 address ${MAC} netns ${clients}`,
    `-n ${namespace} addr add 10.79.0.1/24 dev near0`,
    `-n ${namespace} link set near0 up`,
    `-n ${clients} link set eth0 up`,
  ])
    await run('ip', command.split(' '));
  const configuration = [
    'port=0',
    'interface=near0',
    'bind-interfaces',
    'no-ping',
    'log-dhcp',
    'log-facility=-',
    'user=root',
    `dhcp-range=10.79.0.100,10.79.0.200,1h`,
    'dhcp-match=set:ipxe,175',
    `dhcp-leasefile=${folder}/leases`,
    `dhcp-optsdir=${folder}/options`,
    `dhcp-hostsdir=${folder}/hosts`,
  ];
  writeFileSync(join(folder, 'dnsmasq.conf'), `${configuration.join('\n')}\n`);
  server = spawn('ip', ['netns', 'exec', namespace, 'dnsmasq', '--no-daemon', `--conf-file=${folder}/dnsmasq.conf`]);
  for (const stream of [server.stdout!, server.stderr!]) stream.on('data', (data: Buffer) => (log += data.toString()));
  await logged('started', 0);
});
afterAll(async () => {
  const ended = once(server, 'exit');
  server.kill();
  await ended;
  await removeNamespace(clients);
  await removeNamespace(namespace);
  rmSync(folder, { recursive: true });
});

it("dnsmasq gives firmware and iPXE the boot options of a node, and no lease after the deployment's clean-up", async () => {
  const test = testTask({
    node: {
      properties: { cpu_arch: 'x86_64', capabilities: 'boot_mode:uefi' },
    },
    ports: [portRecord({ address: MAC })],
    options: {
      'dhcp.dhcp_provider': 'dnsmasq',
      'conductor.deploy_kernel': __filename,
      'conductor.deploy_ramdisk': __filename,
      'dnsmasq.dhcp_optsdir': join(folder, 'options'),
      'dnsmasq.dhcp_hostsdir': join(folder, 'hosts'),
      'pxe.tftp_server': '10.79.0.7',
      'deploy.http_url': 'http://10.79.0.7:8080',
    },
  });
  const before = await lease();
  expect(before?.['ip']).toMatch(/^10\.79\.0\./);
  expect(before).not.toHaveProperty('bootfile');

  for (const round of [1, 2]) {
    const mark = log.length;
    await ipxeBoot.prepareRamdisk(test.task, {});
    await logged(`ironic-${MAC}.conf`, mark);
    await logged(`ironic-${test.node().uuid}.conf`, mark);
    const firmware = await lease('-V', 'PXEClient:Arch:00007');
    expect([round, firmware?.['boot_file'] ?? firmware?.['bootfile'], firmware?.['siaddr'], firmware?.['tftp']]).toEqual([
      round,
      'snponly.efi',
      '10.79.0.7',
      '10.79.0.7',
    ]);
    const ipxe = await lease(...AS_IPXE);
    expect(ipxe?.['boot_file'] ?? ipxe?.['bootfile']).toBe('http://10.79.0.7:8080/boot.ipxe');

    const cleaned = log.length;
    await agentDeploy.cleanUp(test.task);
    await logged(`ironic-${MAC}.conf`, cleaned);
    expect(await lease('-V', 'PXEClient:Arch:00007')).toBeUndefined();
  }
});
