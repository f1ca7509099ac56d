import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { httpBoot, httpIpxeBoot, ipxeBoot, pxeBoot } from '../../drivers/boot-interfaces/network-boot';
import { agentDeploy } from '../../drivers/agent/deploy';
import { NODE_UUID, portRecord, testTask, type TestTask } from '../support/task';

const MAC = '52:54:00:00:00:01';
const BOOT = { ipxe: ipxeBoot, pxe: pxeBoot, 'http-ipxe': httpIpxeBoot, http: httpBoot } as const;
const OPTION_FILE = `ironic-${NODE_UUID}.conf`;
const HOST_FILE = `ironic-${MAC}.conf`;
let folder: string;
beforeEach(() => (folder = mkdtempSync(join(tmpdir(), 'dnsmasq-'))));
afterEach(() => rmSync(folder, { recursive: true }));

const taskWith = (options: object = {}, mode = 'uefi', cpu = 'x86_64'): TestTask =>
  testTask({
    node: {
      properties: { cpu_arch: cpu, capabilities: `boot_mode:${mode}` },
    },
    ports: [portRecord({ address: MAC }), portRecord({ address: '52:54:00:00:00:02', pxe_enabled: false })],
    options: {
      'dhcp.dhcp_provider': 'dnsmasq',
      'conductor.deploy_kernel': __filename,
      'conductor.deploy_ramdisk': __filename,
      'dnsmasq.dhcp_optsdir': folder,
      'dnsmasq.dhcp_hostsdir': folder,
      'pxe.tftp_server': '10.0.0.1',
      ...options,
    },
  });
const read = (name: string): string => readFileSync(join(folder, name), 'utf8');
const tagOf = ({ node }: TestTask): unknown => node().driver_internal_info['dnsmasq_tag'];

// What Ironic 39 wrote for the same node, by `update_dhcp_opts` with `dhcp_options_for_instance` for both IP versions.
it.each([
  [
    'ipxe',
    'uefi',
    null,
    [
      'tag:TAG,tag:!ipxe,67,snponly.efi',
      'tag:TAG,tag:ipxe,67,http://10.0.0.1:8080/boot.ipxe',
      'tag:TAG,66,10.0.0.1',
      'tag:TAG,150,10.0.0.1',
      'tag:TAG,255,10.0.0.1',
      'tag:TAG,tag:!ipxe6,59,tftp://10.0.0.1/snponly.efi',
      'tag:TAG,tag:ipxe6,59,http://10.0.0.1:8080/boot.ipxe',
    ],
  ],
  [
    'ipxe',
    'bios',
    null,
    [
      'tag:TAG,tag:!ipxe,67,undionly.kpxe',
      'tag:TAG,tag:ipxe,67,http://10.0.0.1:8080/boot.ipxe',
      'tag:TAG,66,10.0.0.1',
      'tag:TAG,150,10.0.0.1',
      'tag:TAG,255,10.0.0.1',
      'tag:TAG,tag:!ipxe6,59,tftp://10.0.0.1/undionly.kpxe',
      'tag:TAG,tag:ipxe6,59,http://10.0.0.1:8080/boot.ipxe',
    ],
  ],
  [
    'pxe',
    'uefi',
    null,
    [
      'tag:TAG,67,bootx64.efi',
      'tag:TAG,66,10.0.0.1',
      'tag:TAG,150,10.0.0.1',
      'tag:TAG,255,10.0.0.1',
      'tag:TAG,59,tftp://10.0.0.1/bootx64.efi',
    ],
  ],
  [
    'pxe',
    'bios',
    null,
    [
      'tag:TAG,67,pxelinux.0',
      'tag:TAG,66,10.0.0.1',
      'tag:TAG,150,10.0.0.1',
      'tag:TAG,255,10.0.0.1',
      'tag:TAG,59,tftp://10.0.0.1/pxelinux.0',
    ],
  ],
  [
    'http-ipxe',
    'uefi',
    null,
    [
      'tag:TAG,tag:!ipxe,67,http://10.0.0.1:8080/snponly.efi',
      'tag:TAG,tag:ipxe,67,http://10.0.0.1:8080/boot.ipxe',
      'tag:TAG,60,HTTPClient',
      'tag:TAG,tag:!ipxe6,59,http://10.0.0.1:8080/snponly.efi',
      'tag:TAG,tag:ipxe6,59,http://10.0.0.1:8080/boot.ipxe',
    ],
  ],
  [
    'http-ipxe',
    'bios',
    null,
    [
      'tag:TAG,tag:!ipxe,67,http://10.0.0.1:8080/undionly.kpxe',
      'tag:TAG,tag:ipxe,67,http://10.0.0.1:8080/boot.ipxe',
      'tag:TAG,60,HTTPClient',
      'tag:TAG,tag:!ipxe6,59,http://10.0.0.1:8080/undionly.kpxe',
      'tag:TAG,tag:ipxe6,59,http://10.0.0.1:8080/boot.ipxe',
    ],
  ],
  [
    'http',
    'uefi',
    null,
    ['tag:TAG,67,http://10.0.0.1:8080/bootx64.efi', 'tag:TAG,60,HTTPClient', 'tag:TAG,59,http://10.0.0.1:8080/bootx64.efi'],
  ],
  [
    'ipxe',
    'uefi',
    'fd00::1',
    [
      'tag:TAG,tag:!ipxe,67,snponly.efi',
      'tag:TAG,tag:ipxe,67,http://10.0.0.1:8080/boot.ipxe',
      'tag:TAG,66,10.0.0.1',
      'tag:TAG,150,10.0.0.1',
      'tag:TAG,255,10.0.0.1',
      'tag:TAG,tag:!ipxe6,59,tftp://[fd00::1]/snponly.efi',
      'tag:TAG,tag:ipxe6,59,http://10.0.0.1:8080/boot.ipxe',
    ],
  ],
  [
    'ipxe',
    'bios',
    'fd00::1',
    [
      'tag:TAG,tag:!ipxe,67,undionly.kpxe',
      'tag:TAG,tag:ipxe,67,http://10.0.0.1:8080/boot.ipxe',
      'tag:TAG,66,10.0.0.1',
      'tag:TAG,150,10.0.0.1',
      'tag:TAG,255,10.0.0.1',
      'tag:TAG,tag:!ipxe6,59,tftp://[fd00::1]/undionly.kpxe',
      'tag:TAG,tag:ipxe6,59,http://10.0.0.1:8080/boot.ipxe',
    ],
  ],
  [
    'pxe',
    'uefi',
    'fd00::1',
    [
      'tag:TAG,67,bootx64.efi',
      'tag:TAG,66,10.0.0.1',
      'tag:TAG,150,10.0.0.1',
      'tag:TAG,255,10.0.0.1',
      'tag:TAG,59,tftp://[fd00::1]/bootx64.efi',
    ],
  ],
  [
    'pxe',
    'bios',
    'fd00::1',
    [
      'tag:TAG,67,pxelinux.0',
      'tag:TAG,66,10.0.0.1',
      'tag:TAG,150,10.0.0.1',
      'tag:TAG,255,10.0.0.1',
      'tag:TAG,59,tftp://[fd00::1]/pxelinux.0',
    ],
  ],
  [
    'http-ipxe',
    'uefi',
    'fd00::1',
    [
      'tag:TAG,tag:!ipxe,67,http://10.0.0.1:8080/snponly.efi',
      'tag:TAG,tag:ipxe,67,http://10.0.0.1:8080/boot.ipxe',
      'tag:TAG,60,HTTPClient',
      'tag:TAG,tag:!ipxe6,59,http://10.0.0.1:8080/snponly.efi',
      'tag:TAG,tag:ipxe6,59,http://10.0.0.1:8080/boot.ipxe',
    ],
  ],
  [
    'http-ipxe',
    'bios',
    'fd00::1',
    [
      'tag:TAG,tag:!ipxe,67,http://10.0.0.1:8080/undionly.kpxe',
      'tag:TAG,tag:ipxe,67,http://10.0.0.1:8080/boot.ipxe',
      'tag:TAG,60,HTTPClient',
      'tag:TAG,tag:!ipxe6,59,http://10.0.0.1:8080/undionly.kpxe',
      'tag:TAG,tag:ipxe6,59,http://10.0.0.1:8080/boot.ipxe',
    ],
  ],
] as const)('writes the same dnsmasq options as Ironic: %s, %s, my_ipv6 %s', async (method, mode, myIpv6, lines) => {
  const test = taskWith({ 'DEFAULT.my_ipv6': myIpv6 }, mode);
  await BOOT[method].prepareRamdisk(test.task, {});
  const tag = tagOf(test);
  expect(tag).toMatch(/^[0-9a-f-]{36}$/);
  expect(read(OPTION_FILE)).toBe(`${lines.join('\n').replaceAll('TAG', String(tag))}\n`);
  expect(read(HOST_FILE)).toBe(`${MAC},set:${String(tag)},set:ironic\n`);
  expect(readdirSync(folder).sort()).toEqual([HOST_FILE, OPTION_FILE]);
});

// The precedence is Ironic's (deploy_utils.get_ipxe_boot_file).
it.each([
  ['aarch64', 'uefi', 'by-mode.efi'],
  ['aarch64', 'bios', 'by-cpu.efi'],
  ['x86_64', 'uefi', 'snponly.efi'],
  ['constructor', 'uefi', 'snponly.efi'],
  ['', 'bios', 'undionly.kpxe'],
])('names the boot loader of cpu_arch "%s" with %s: %s', async (cpu, mode, loader) => {
  const byArch = { 'aarch64-uefi': 'by-mode.efi', aarch64: 'by-cpu.efi' };
  await ipxeBoot.prepareRamdisk(taskWith({ 'pxe.ipxe_bootfile_name_by_arch': byArch }, mode, cpu).task, {});
  expect(read(OPTION_FILE)).toContain(`,67,${loader}\n`);
});
it('keeps the tag until cleanUp, which tells dnsmasq to ignore the machine', async () => {
  const test = taskWith();
  await ipxeBoot.prepareRamdisk(test.task, {});
  const tag = tagOf(test);
  await ipxeBoot.prepareRamdisk(test.task, {});
  expect(tagOf(test)).toBe(tag);
  await agentDeploy.cleanUp(test.task);
  expect(tagOf(test)).toBeUndefined();
  expect(readdirSync(folder)).toEqual([HOST_FILE]);
  expect(read(HOST_FILE)).toBe(`${MAC},ignore\n`);
  await agentDeploy.cleanUp(test.task);
  expect(read(HOST_FILE)).toBe(`${MAC},ignore\n`);
});

it('fails with the option names and without a boot record when the directories cannot be written', async () => {
  const test = taskWith({ 'dnsmasq.dhcp_hostsdir': join(folder, 'missing') });
  await expect(ipxeBoot.prepareRamdisk(test.task, {})).rejects.toMatchObject({
    name: 'DriverOperationError',
    message: expect.stringMatching(/\[dnsmasq\]dhcp_optsdir, dhcp_hostsdir\): ENOENT/) as string,
  });
  expect(test.boots.size).toBe(0);
  expect(readdirSync(folder)).toEqual([OPTION_FILE]);
});

it('rejects a boot file URL that exceeds the length of a DHCP option', async () => {
  const test = taskWith({ 'deploy.http_url': `http://${'x'.repeat(60)}.example` });
  await expect(httpIpxeBoot.prepareRamdisk(test.task, {})).rejects.toMatchObject({
    message: 'The resulting boot file or URL length exceeds Neutron limitations. Please explore shorter file names or hostnames.',
  });
});

it.each(['none', 'builtin'] as const)('writes no files with dhcp_provider = %s', async (provider) => {
  const test = taskWith({ 'dhcp.dhcp_provider': provider });
  await ipxeBoot.prepareRamdisk(test.task, {});
  await agentDeploy.cleanUp(test.task);
  expect(readdirSync(folder)).toEqual([]);
});
