/** The smaller parts of the containers: the address, the script of unknown machines, the logs of ramdisks. */
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import type { NetworkInterfaceInfo } from 'node:os';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { waitForAddress } from '../../metal3/address';
import { watchLogs } from '../../metal3/log-watch';
import { contextOf, type Environment } from '../../metal3/container-context';
import { inspectorScript } from '../../metal3/scripts';
import { until } from '../support/until';

const on = (address: string, mac = '52:54:00:00:00:01'): NetworkInterfaceInfo =>
  ({ address, mac, family: address.includes(':') ? 'IPv6' : 'IPv4', internal: false }) as NetworkInterfaceInfo;
const HOST = {
  lo: [{ ...on('127.0.0.1', '00:00:00:00:00:00'), internal: true } as NetworkInterfaceInfo],
  eno1: [on('fe80::1', '52:54:00:00:00:0a')],
  br0: [on('fe80::2'), on('192.0.2.5')],
  provisioning: [on('fd00::2', '52:54:00:00:00:02')],
};

it.each<[string, Environment, object | undefined]>([
  ['IRONIC_IP as the address', { IRONIC_IP: '203.0.113.1' }, { ip: '203.0.113.1' }],
  ['the interface of an address', { PROVISIONING_IP: '192.0.2.5' }, { ip: '192.0.2.5', interface: 'br0' }],
  ['the interface of an address in another spelling', { PROVISIONING_IP: 'fd00:0:0::2' }, { ip: 'fd00:0:0::2', interface: 'provisioning' }],
  ['nothing for an address that no interface has yet', { PROVISIONING_IP: '192.0.2.6' }, undefined],
  ['the address of an interface', { PROVISIONING_INTERFACE: 'br0' }, { ip: '192.0.2.5', interface: 'br0' }],
  ['nothing for an interface with a link-local address only', { PROVISIONING_INTERFACE: 'eno1' }, undefined],
  [
    'the interface with the first MAC address that the host has',
    { PROVISIONING_MACS: '52:54:00:00:00:ff,52:54:00:00:00:01' },
    { ip: '192.0.2.5', interface: 'br0' },
  ],
  ['the interface "provisioning" by default', {}, { ip: 'fd00::2', interface: 'provisioning' }],
])('finds %s', async (_, environment, expected) => {
  let now = 0;
  const clock = { now: () => now, sleep: async (ms: number) => void (now += ms) };
  const found = waitForAddress(environment, () => HOST, new AbortController().signal, clock);
  await (expected ? expect(found).resolves.toEqual(expected) : expect(found).rejects.toThrow('IRONIC_IP_WAIT_TIMEOUT'));
});

it('waits for the address until IRONIC_IP_WAIT_TIMEOUT', async () => {
  let now = 0;
  const clock = { now: () => now, sleep: async (ms: number) => void (now += ms) };
  const never = new AbortController().signal;
  const environment = { PROVISIONING_IP: '192.0.2.5', IRONIC_IP_WAIT_TIMEOUT: '3' };
  let looks = 0;
  const later = (): NodeJS.Dict<NetworkInterfaceInfo[]> => (++looks > 2 ? HOST : {});
  expect(await waitForAddress(environment, later, never, clock)).toEqual({ ip: '192.0.2.5', interface: 'br0' });
  await expect(waitForAddress(environment, () => ({}), never, clock)).rejects.toThrow('IRONIC_IP_WAIT_TIMEOUT');
  expect(now).toBe(5000);
});

describe('inspector.ipxe', () => {
  const scriptOf = (environment: Environment, files: readonly string[] = []): string =>
    inspectorScript(
      contextOf(environment, { ip: '192.0.2.5', hasIpv6: false, exists: (path) => files.includes(path) }),
      'http://192.0.2.5:6180',
    );

  it('boots the ramdisk of the shared folder, and tries again without end', () => {
    const script = scriptOf({});
    expect(script).toContain(
      'kernel --timeout 60000 http://192.0.2.5:6180/images/ironic-python-agent.kernel ipa-inspection-callback-url=http://192.0.2.5:6385/v1/continue_inspection ipa-api-url=http://192.0.2.5:6385',
    );
    expect(script).toContain('BOOTIF=${mac} initrd=ramdisk || goto again');
    expect(script).toMatch(/goto start\n$/);
  });
  it('chooses the ramdisk by the architecture of the machine', () => {
    const images = '/shared/html/images/ironic-python-agent_aarch64';
    const script = scriptOf({ DEPLOY_KERNEL_BY_ARCH: 'x86_64:http://a/k', DEPLOY_RAMDISK_BY_ARCH: 'x86_64:http://a/r' }, [
      `${images}.kernel`,
      `${images}.initramfs`,
    ]);
    expect(script).toContain('iseq ${buildarch} x86_64 && goto x86_64 ||\niseq ${buildarch} arm64 && goto aarch64 ||');
    expect(script).toContain('echo There is no ramdisk for ${buildarch}');
    expect(script).toContain('http://192.0.2.5:6180/images/ironic-python-agent_aarch64.kernel');
    expect(script).toContain('kernel --timeout 60000 http://a/k');
  });
  it('refuses kernel parameters with line breaks, and malformed URLs by architecture', () => {
    expect(() => scriptOf({ IRONIC_KERNEL_PARAMS: 'a\nshell' })).toThrow('more than one line');
    expect(() => scriptOf({ DEPLOY_KERNEL_BY_ARCH: 'http//a' })).toThrow('is not ARCH:URL');
  });
});

it('prints the log archives of ramdisks, and then deletes them', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'bloomery-logs-'));
  try {
    mkdirSync(join(folder, 'var'));
    writeFileSync(join(folder, 'var/journal'), 'one\ntwo\u001b[31m');
    execFileSync('tar', ['-czf', join(folder, 'node_a.tar.gz'), '-C', folder, 'var']);
    rmSync(join(folder, 'var'), { recursive: true });
    writeFileSync(join(folder, 'broken.tar.gz'), 'no archive');
    writeFileSync(join(folder, 'other'), 'stays');
    const lines: string[] = [];
    const stopping = new AbortController();
    const clock = { now: () => 0, sleep: async () => new Promise<void>((done) => setImmediate(done)) };
    const watching = watchLogs(stopping.signal, (line) => void lines.push(line), folder, clock);
    await until('both archives are gone', () => readdirSync(folder).join() === 'other');
    stopping.abort();
    await watching;
    expect(lines).toEqual([
      `************ Contents of ${join(folder, 'broken.tar.gz')} ramdisk log file bundle **************`,
      'broken.tar.gz: cannot be read: incorrect header check',
      `************ Contents of ${join(folder, 'node_a.tar.gz')} ramdisk log file bundle **************`,
      'node_a.tar.gz: **** Entry: var/journal ****',
      'node_a.tar.gz: one',
      'node_a.tar.gz: two\\u001b[31m',
    ]);
  } finally {
    rmSync(folder, { recursive: true });
  }
});
