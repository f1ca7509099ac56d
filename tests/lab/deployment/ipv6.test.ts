/**
 * Machines with UEFI firmware on a network without IPv4: DHCPv6, router advertisements, TFTP or HTTP boot, HTTP, the agent, the BMC (IPMI)
 * and the deployed system, all by IPv6 addresses. Root.
 */
import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import { startIpmiSim } from '../../../demo/lab/ipmi-sim';
import { consoleEnd, openLab, until, type Lab, type LabMachine } from '../../../demo/lab/machines';
import { needs } from '../support/needs';
import { buildRamdisk } from '../support/ramdisk';
import { bootingSections, startServerProcess, type RunningServer, type Sections } from '../../../demo/lab/server';

const run = promisify(execFile);
const HOST = 'fd00:77::1';
const API = `http://[${HOST}]:6385`;
const REPORT_PORT = 8099;
/** Seconds. A boot takes a minute alone, and longer beside other work. */
const PATIENCE = 1500;

let lab: Lab;
let server: RunningServer;
const undo: (() => Promise<unknown>)[] = [];
const reportFile = (): string => join(lab.folder, 'report');

/** The usual sections, with IPv6 only. @param slaac whether machines form addresses themselves, or ask DHCPv6 */
function sections(slaac: boolean): Sections {
  const usual = bootingSections(lab);
  const addressless = Object.entries(usual['DEFAULT']!).filter(([name]) => name !== 'my_ip');
  return {
    ...usual,
    DEFAULT: { ...Object.fromEntries(addressless), my_ipv6: HOST, listen_address: '::1', enabled_boot_interfaces: 'ipxe,http-ipxe' },
    api: { host_ip: HOST },
    boot: { interface: lab.bridge, dhcp_subnet: `fd00:77::/64 range=fd00:77::1:0-fd00:77::1:ff slaac=${slaac}` },
    conductor: { ...usual['conductor']!, automated_clean: 'false' },
  };
}

beforeAll(async () => {
  needs({ 'qemu-system-x86_64': 'qemu-system-x86', ipmi_sim: 'openipmi', curl: 'curl', ip: 'iproute2' });
  await buildRamdisk();
  lab = await openLab('bloomery-ipv6');
  undo.push(() => lab.close());
  for (const command of [
    `netns exec ${lab.namespace} sysctl -qw net.ipv6.conf.${lab.bridge}.accept_dad=0`,
    `-n ${lab.namespace} addr del ${lab.address}/24 dev ${lab.bridge}`,
    `-n ${lab.namespace} addr add ${HOST}/64 dev ${lab.bridge} nodad`,
  ])
    await run('ip', command.split(' '));
  const images = join(lab.folder, 'server/state/httpboot');
  mkdirSync(images, { recursive: true });
  const script = join(__dirname, '../../../demo/lab/image.sh');
  await run('bash', [script, join(images, 'lab.raw'), `http://[${HOST}]:${REPORT_PORT}/`, 'raw'], { timeout: 300_000 });
  lab.start(process.execPath, join(__dirname, '../../../demo/lab/report-server.mjs'), HOST, String(REPORT_PORT), reportFile());
  server = await startServerProcess(join(lab.folder, 'server'), sections(false), lab.namespace);
  undo.push(() => server.stop());
}, 1_200_000);
afterAll(async () => {
  for (const step of undo.reverse()) await step();
}, 120_000);

/** A request to the API, in the namespace. */
async function call(method: string, path: string, body?: unknown): Promise<Record<string, unknown>> {
  const words = ['-sS', '-X', method, '-H', 'X-OpenStack-Ironic-API-Version: 1.109', '-H', 'content-type: application/json'];
  const sent = body === undefined ? [] : ['-d', JSON.stringify(body)];
  const text = await lab.exec('curl', ...words, ...sent, `${API}${path}`);
  return text === '' ? {} : (JSON.parse(text) as Record<string, unknown>);
}
/** @returns the last URL of the agent */
async function reach(name: string, state: string, machine: LabMachine): Promise<string | undefined> {
  let agent: string | undefined;
  let node: Record<string, unknown> | undefined;
  const describe = (): string =>
    `${name} to be ${state}: ${JSON.stringify(node)}\n--- console\n${consoleEnd(machine)}\n--- server\n${server.logEnd()}`;
  await until(PATIENCE, describe, async () => {
    node = await call('GET', `/v1/nodes/${name}?fields=provision_state,last_error,driver_internal_info`);
    agent = (node['driver_internal_info'] as { readonly agent_url?: string }).agent_url ?? agent;
    if (/failed$|^error$/.test(String(node['provision_state']))) throw new Error(describe());
    if (node['provision_state'] === state) return true;
    await delay(900);
    return false;
  });
  return agent;
}

/** A machine with its BMC, and its node in the state manageable. */
async function manageable(name: string, firmware: LabMachine['firmware'], bmcPort: number, fields: object): Promise<LabMachine> {
  const machine = await lab.machine({ name, firmware, memoryMiB: 768, cpus: 2, diskGiB: 5, pxe: 6 });
  const bmc = await startIpmiSim(machine, { namespace: lab.namespace, address: HOST, port: bmcPort, folder: lab.folder });
  undo.push(() => bmc.stop());
  const driverInfo = { ipmi_address: bmc.address, ipmi_port: bmc.port, ipmi_username: bmc.username, ipmi_password: bmc.password };
  const node = await call('POST', '/v1/nodes', {
    name,
    driver: 'ipmi',
    driver_info: driverInfo,
    properties: { capabilities: 'boot_mode:uefi' },
    ...fields,
  });
  await call('POST', '/v1/ports', { node_uuid: node['uuid'], address: machine.mac });
  await call('PUT', `/v1/nodes/${name}/states/provision`, { target: 'manage' });
  await reach(name, 'manageable', machine);
  return machine;
}

it(
  'a machine boots the ramdisk by UEFI HTTP boot on a network without IPv4',
  async () => {
    const name = 'http';
    const machine = await manageable(name, 'uefi-http', 6231, { boot_interface: 'http-ipxe', inspect_interface: 'agent' });
    await call('PUT', `/v1/nodes/${name}/states/provision`, { target: 'inspect' });
    // The firmware tries IPv4 first. The inspection by the ramdisk is tested with PXE, below.
    const sent = (): readonly string[] =>
      [...readFileSync(server.log, 'utf8').matchAll(/^.*"msg":"(?:HTTP boot|TFTP): sent"/gm)].map(
        ([line]) => `${/"msg":"(\S+)/.exec(line)![1]!} ${/"(?:path|file)":"([^"]*)"/.exec(line)?.[1] ?? line}`,
      );
    await until(
      PATIENCE,
      () => `the ramdisk to be sent: ${sent().join(', ')}\n${consoleEnd(machine)}`,
      () => sent().some((line) => line.endsWith('/ramdisk')),
    );
    await machine.act('off');
    const mac = machine.mac.replaceAll(':', '-');
    const paths = ['/snponly.efi', `/ipxe/${mac}?buildarch=x86_64`, '/boot/***/kernel', '/boot/***/ramdisk'];
    expect([...new Set(sent())]).toEqual(paths.map((path) => `HTTP ${path}`));
  },
  2 * PATIENCE * 1000,
);

it(
  'our server deploys a machine on a network without IPv4',
  async () => {
    const name = 'six';
    const machine = await manageable(name, 'uefi', 6230, { boot_interface: 'ipxe' });
    await call('PUT', `/v1/nodes/${name}/states/provision`, { target: 'provide' });
    await reach(name, 'available', machine);
    const sum = readFileSync(join(lab.folder, 'server/state/httpboot/lab.raw.sha256'), 'utf8').trim();
    const instance = {
      image_source: `http://[${HOST}]:8080/lab.raw`,
      image_os_hash_algo: 'sha256',
      image_os_hash_value: sum,
      image_disk_format: 'raw',
    };
    await call('PATCH', `/v1/nodes/${name}`, [{ op: 'replace', path: '/instance_info', value: instance }]);
    await call('PUT', `/v1/nodes/${name}/states/provision`, { target: 'active' });
    // The ramdisk got its address by DHCPv6: there is no other source of addresses.
    expect(await reach(name, 'active', machine)).toMatch(/^https?:\/\/\[fd00:77::1:[\da-f]{1,2}\]/);
    // The deployed system has no IPv4 and no DHCPv6 client: it forms its own address once router advertisements permit it.
    await server.stop();
    server = await startServerProcess(join(lab.folder, 'server'), sections(true), lab.namespace);
    await until(
      PATIENCE,
      () => `a report\n${consoleEnd(machine)}`,
      () => existsSync(reportFile()),
    );
    expect(readFileSync(reportFile(), 'utf8')).toMatch(/^image=raw$[^]*^firmware=uefi$/m);
    const log = readFileSync(server.log, 'utf8');
    expect(log).toContain('TFTP: sent');
    expect(log).toContain('/boot/***/ramdisk');
    expect(log).not.toContain('10.77.0.');
  },
  3 * PATIENCE * 1000,
);
