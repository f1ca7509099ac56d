/** The whole agent in one process: a machine made of files, an API that answers as Ironic's, commands over its real HTTPS. */
import { createHash, randomBytes, randomUUID } from 'node:crypto';
import { mkdirSync, readFileSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import { request } from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { systemClock } from '../../model/clock';
import { silentLog } from '../../model/log';
import type { JsonObject } from '../../model/records';
import { eraseEach } from '../../ramdisk-agent/erase/each';
import { runAgent } from '../../ramdisk-agent/agent';
import { routeSource } from '../../ramdisk-agent/towards';
import { tree } from '../../ramdisk-agent/system/tree';
import { createKept } from '../../ramdisk-agent/kept';
import type { Machine } from '../../ramdisk-agent/machine';
import { parseParameters } from '../../ramdisk-agent/parameters';
import { until } from '../support/until';
import { fileTree, keptNowhere } from './support';
import { NEWEST_VERSION } from '../support/newest';

const GiB = 2 ** 30;
const MAC = '52:54:00:aa:bb:cc';
const TOKEN = 'T'.repeat(43);
const image = Buffer.alloc(2 ** 20);
image[446 + 4] = 0x83;
image.writeUInt32LE(1, 446 + 8);
image.writeUInt32LE(100, 446 + 12);
image.writeUInt16LE(0xaa55, 510);

let api: Server;
let url: string;
let calls: { readonly path: string; readonly body: JsonObject }[];
let answers: Record<string, () => readonly [number, JsonObject]>;
let stop: AbortController;
let running: Promise<void>;
let ran: string[];
let freePort: number;

beforeAll(async () => {
  api = createServer((incoming, response) => {
    const parts: Buffer[] = [];
    incoming.on('data', (part: Buffer) => parts.push(part));
    incoming.on('end', () => {
      const path = incoming.url!.split('?')[0]!;
      if (path === '/image') return response.writeHead(200, { 'content-length': image.length }).end(image);
      calls.push({ path: incoming.url!, body: parts.length > 0 ? (JSON.parse(Buffer.concat(parts).toString()) as JsonObject) : {} });
      const [status, body] = answers[path]?.() ?? [404, {}];
      return response.writeHead(status).end(JSON.stringify(body));
    });
  });
  await new Promise<void>((resolve) => api.listen(0, '127.0.0.1', resolve));
  url = `http://127.0.0.1:${(api.address() as AddressInfo).port}`;
});
afterAll(async () => {
  api.closeAllConnections();
  await new Promise((resolve) => api.close(resolve));
});
beforeEach(async () => {
  const holder = createServer();
  await new Promise<void>((resolve) => holder.listen(0, '127.0.0.1', resolve));
  freePort = (holder.address() as AddressInfo).port;
  await new Promise((resolve) => holder.close(resolve));
  calls = [];
  ran = [];
  answers = {
    '/': () => [200, { default_version: { version: NEWEST_VERSION } }],
    '/v1/lookup': () => [
      200,
      {
        node: { uuid: 'the-node', driver_internal_info: {} },
        config: { heartbeat_timeout: 300, agent_token: TOKEN, tls_min_version: '1.3' },
      },
    ],
    '/v1/heartbeat/the-node': () => [202, {}],
    '/v1/continue_inspection': () => [202, { uuid: 'the-node' }],
  };
});
afterEach(async () => {
  stop.abort();
  await running.catch(() => undefined);
});

/** A machine with one interface and one disk of 5 GiB, `/dev/…/disk` being a sparse file. */
function boot(
  commandLine: string,
  more: Partial<Machine> = {},
): { readonly machine: Machine; readonly disk: string; readonly port: number } {
  const root = fileTree({
    'sys/class/net/eth0/address': `${MAC}\n`,
    'sys/class/net/eth0/carrier': '1\n',
    'sys/class/net/eth0/device': '->../../../devices/eth0',
    'proc/cpuinfo': 'processor : 0\n',
  });
  // The agent opens disks by /dev/NAME: a name that leads to our file.
  const disk = join(root, 'disk');
  writeFileSync(disk, '');
  truncateSync(disk, 5 * GiB);
  const name = `..${disk}`.replaceAll('/', '!');
  mkdirSync(join(root, 'sys/block', name, 'queue'), { recursive: true });
  writeFileSync(join(root, 'sys/block', name, 'size'), String((5 * GiB) / 512));
  symlinkSync('x', join(root, 'sys/block', name, 'device'));
  const port = freePort;
  const machine: Machine = {
    tree: tree(root),
    run: async (program, args) => {
      ran.push([program, ...args].join(' '));
      if (program === 'blkdiscard') throw new Error('not here');
      return '';
    },
    addresses: () => ({ eth0: [{ address: '127.0.0.1', family: 'IPv4' }] }),
    machine: 'x86_64',
    hostname: () => 'localhost',
    bootInterface: MAC,
    bootedFromMedium: false,
    parameters: parseParameters(
      `ipa-api-url=${url} BOOTIF=01-${MAC.replaceAll(':', '-')} ipa-listen-host=127.0.0.1 ipa-listen-port=${port} ${commandLine}`,
    ),
    frames: async () => new Map(),
    findService: async () => undefined,
    ntpTime: async () => Promise.reject(new Error('no NTP')),
    clock: { ...systemClock, sleep: (milliseconds, signal) => systemClock.sleep(milliseconds / 50, signal) },
    log: { ...silentLog, child: () => machine.log, text: () => 'the log\n' },
    kept: keptNowhere,
    fetching: { trust: { insecure: false }, timeoutMs: 20_000, signal: new AbortController().signal },
    random: randomBytes,
    newUuid: randomUUID,
    root,
    retire: () => {},
    temporary: root,
    kernelCalls: { load: async () => {}, start: async () => {} },
    state: { node: {}, config: {}, partitionUuids: null, api: null },
    ...more,
  };
  stop = new AbortController();
  running = runAgent(machine, stop.signal);
  running.catch(() => undefined);
  return { machine, disk, port };
}
async function start(disk: string): Promise<Buffer> {
  const file = await open(disk);
  const { buffer } = await file.read(Buffer.alloc(image.length), 0, image.length, 0);
  await file.close();
  return buffer;
}
/** Waits for the report of an inspection. Other requests of an agent that ends may come before. */
const report = async (): Promise<JsonObject> => {
  const find = (): (typeof calls)[number] | undefined => calls.find((call) => call.path === '/v1/continue_inspection');
  await until('the report', () => find() !== undefined);
  return find()!.body;
};
const beats = (): number => calls.filter((call) => call.path.startsWith('/v1/heartbeat')).length;
function command(port: number, name: string, params: JsonObject, wait = true): Promise<JsonObject> {
  const ca = calls.find((call) => call.path.startsWith('/v1/heartbeat'))!.body['agent_verify_ca'] as string;
  return new Promise((resolve, reject) => {
    const path = `/v1/commands/?wait=${wait}&agent_token=${TOKEN}`;
    const sent = request({ host: '127.0.0.1', port, method: 'POST', path, ca, agent: false }, (answer) => {
      const parts: Buffer[] = [];
      answer.on('data', (part: Buffer) => parts.push(part));
      answer.on('end', () => resolve(JSON.parse(Buffer.concat(parts).toString()) as JsonObject));
    });
    sent.on('error', reject);
    sent.end(JSON.stringify({ name, params }));
  });
}

it('looks itself up, and sends heartbeats with its URL, token and certificate', async () => {
  const { port } = boot('');
  await until('a heartbeat', () => beats() > 0);
  expect(calls.map((call) => call.path).slice(0, 2)).toEqual(['/', `/v1/lookup?addresses=${encodeURIComponent(MAC)}`]);
  expect(calls[2]!.body).toMatchObject({ callback_url: 'https://127.0.0.1:9999', agent_token: TOKEN, agent_version: 'bloomery-agent 1' });
  expect(await command(port, 'clean.get_clean_steps', { node: { uuid: 'the-node' }, ports: [] })).toMatchObject({
    command_status: 'SUCCEEDED',
    command_result: {
      clean_steps: {
        BloomeryHardwareManager: expect.arrayContaining([
          { step: 'erase_devices_metadata', priority: 99, interface: 'deploy', reboot_requested: false, abortable: true },
          expect.objectContaining({ step: 'erase_devices_express', priority: 0, interface: 'deploy' }),
          expect.objectContaining({ step: 'erase_devices', priority: 10, interface: 'deploy' }),
          expect.objectContaining({ step: 'delete_configuration', priority: 0, interface: 'raid', abortable: true }),
          expect.objectContaining({ step: 'create_configuration', priority: 0, interface: 'raid', abortable: true }),
        ]) as unknown,
      },
      hardware_manager_version: { BloomeryHardwareManager: '4' },
    },
  });
  stop.abort();
  await running;
});

it('an agent that starts again has the token and the certificate of the one before, which the lookup does not give', async () => {
  const kept = createKept(fileTree({}));
  const beat = (): JsonObject => calls.findLast((call) => call.path.startsWith('/v1/heartbeat'))!.body;
  boot('', { kept });
  await until('a heartbeat', () => beats() > 0);
  const first = beat();
  stop.abort();
  await running;
  const before = beats();
  const masked = { heartbeat_timeout: 300, agent_token: '******' };
  answers['/v1/lookup'] = () => [200, { node: { uuid: 'the-node', driver_internal_info: {} }, config: masked }];
  boot('', { kept });
  await until('another heartbeat', () => beats() > before);
  expect(beat()).toEqual(first);
  stop.abort();
  await running;
  // The token of another node is none of ours.
  answers['/v1/lookup'] = () => [200, { node: { uuid: 'another-node', driver_internal_info: {} }, config: masked }];
  boot('', { kept });
  await expect(running).rejects.toThrow('the agent token has already been given out');
});

it('posts its inventory before the lookup with ipa-inspection-callback-url, then looks up the returned UUID', async () => {
  boot(`ipa-inspection-callback-url=${url}/v1/continue_inspection ipa-inspection-collectors=default,logs,pci-devices`);
  await until('a heartbeat', () => beats() > 0);
  expect(calls[0]!.path).toBe('/v1/continue_inspection');
  expect(calls[0]!.body).toMatchObject({
    inventory: { interfaces: [{ name: 'eth0', mac_address: MAC }], disks: [{ size: 5 * GiB }] },
    root_disk: { size: 5 * GiB },
    boot_interface: MAC,
    configuration: { collectors: ['default', 'logs', 'pci-devices'], managers: [{ name: 'BloomeryHardwareManager' }] },
    pci_devices: [],
    logs: expect.any(String) as string,
    error: null,
  });
  expect(calls.find((call) => call.path.startsWith('/v1/lookup'))!.path).toContain('node_uuid=the-node');
});

it('only posts its inventory without ipa-api-url', async () => {
  boot(`ipa-api-url= ipa-inspection-callback-url=${url}/v1/continue_inspection`);
  await until('a request', () => calls.length > 0);
  await delay(100);
  expect(calls.map((call) => call.path)).toEqual(['/v1/continue_inspection']);
  stop.abort();
  await running;
});

it('reports an unknown collector as the error of the inspection', async () => {
  boot(`ipa-inspection-callback-url=${url}/v1/continue_inspection ipa-inspection-collectors=default,magic`);
  expect((await report())['error']).toContain('Failed to load collector magic');
});

const LLDPDU = Buffer.from('0180c200000e0200000000aa88cc060200780000', 'hex');
it.each<[string, readonly string[], JsonObject | null, JsonObject]>([
  [
    'ipa-collect-lldp=1',
    ['default'],
    [
      [3, '0078'],
      [0, ''],
    ] as never,
    {},
  ],
  [
    '',
    ['lldp'],
    null,
    {
      lldp_raw: {
        eth0: [
          [3, '0078'],
          [0, ''],
        ],
      },
    },
  ],
  ['ipa-inspection-benchmarks=cpu,disk', ['extra-hardware'], null, { data: [['cpu', 'a', 'b', 1]] }],
  ['', ['usb-devices', 'pci-devices'], null, { usb_devices: [], pci_devices: [] }],
])('collects with the parameters "%s" and the collectors %j', async (words, collectors, lldp, more) => {
  const asked: string[] = [];
  boot(`ipa-inspection-callback-url=${url}/v1/continue_inspection ipa-inspection-collectors=${collectors.join(',')} ${words}`, {
    frames: async () => new Map([['eth0', LLDPDU]]),
    run: async (program, args) => {
      asked.push([program, ...args].join(' '));
      return program === 'hardware-detect' ? '[["cpu","a","b",1]]' : '';
    },
  });
  expect(await report()).toMatchObject({ ...more, inventory: { interfaces: [{ name: 'eth0', lldp }] }, error: null });
  if (collectors.includes('extra-hardware')) expect(asked).toContain('hardware-detect --benchmark cpu disk');
});

it('reports failed collectors, and posts the data of the others', async () => {
  boot(`ipa-inspection-callback-url=${url}/v1/continue_inspection ipa-inspection-collectors=lldp,dmi-decode,extra-hardware,numa-topology`, {
    frames: async () => Promise.reject(new Error('not permitted')),
    run: async (program) =>
      Promise.reject(new Error(`${program} broke`, { cause: { code: program === 'hardware-detect' ? 'ENOENT' : 1 } })),
  });
  const body = await report();
  expect(body['error']).toBe(
    'The following errors were encountered:\n* collector lldp failed: not permitted\n* collector dmi-decode failed: dmidecode broke',
  );
  expect(body).toMatchObject({ lldp_raw: {}, inventory: { interfaces: [{ name: 'eth0' }] } });
  expect(body).not.toHaveProperty('data');
});

it('stops the LLDP agent in the firmware of i40e before it listens', async () => {
  let told = '';
  const { machine } = boot(
    `ipa-inspection-callback-url=${url}/v1/continue_inspection ipa-collect-lldp=1 ipa-hardware-initialization-delay=5`,
    {
      frames: async () => ((told = readFileSync(join(machine.root, 'sys/kernel/debug/i40e/0000:01:00.0/command'), 'utf8')), new Map()),
    },
  );
  const card = join(machine.root, 'sys/kernel/debug/i40e/0000:01:00.0');
  mkdirSync(card, { recursive: true });
  writeFileSync(join(card, 'command'), '');
  await report();
  expect(told).toBe('lldp stop');
});

it.each<[number, number]>([
  [409, 5],
  [503, 5],
  [404, 1],
])('posts its inventory again after status %s: %s requests in all', async (status, times) => {
  answers['/v1/continue_inspection'] = () => [status, {}];
  boot(`ipa-inspection-callback-url=${url}/v1/continue_inspection`);
  await until('a heartbeat', () => beats() > 0);
  expect(calls.filter((call) => call.path === '/v1/continue_inspection')).toHaveLength(times);
});

it('repeats the lookup until the server knows the machine', async () => {
  let asked = 0;
  const known = answers['/v1/lookup']!;
  answers['/v1/lookup'] = () => (++asked < 3 ? [asked === 1 ? 404 : 409, {}] : known());
  boot('');
  await until('a heartbeat', () => beats() > 0);
  expect(asked).toBe(3);
});

it('fails when the lookup does not succeed before ipa-lookup-timeout', async () => {
  answers['/v1/lookup'] = () => [404, { error_message: { faultstring: 'Not Found' } }];
  boot('ipa-lookup-timeout=0');
  await expect(running).rejects.toThrow(
    'Error getting configuration from Ironic: Error getting configuration from Ironic: Error 404: Not Found',
  );
});

it('fails if the server has given the token to another agent', async () => {
  answers['/v1/lookup'] = () => [200, { node: { uuid: 'the-node' }, config: { agent_token: '******' } }];
  boot('');
  await expect(running).rejects.toThrow('the machine has to be restarted');
  expect(beats()).toBe(0);
});

it('uses ipa-agent-token if the server masks the token', async () => {
  answers['/v1/lookup'] = () => [200, { node: { uuid: 'the-node' }, config: { agent_token: '******' } }];
  boot(`ipa-agent-token=${TOKEN}`);
  await until('a heartbeat', () => beats() > 0);
  expect(calls.at(-1)!.body).toMatchObject({ agent_token: TOKEN });
});

describe('deployment', () => {
  const info = (): JsonObject => ({
    id: 'x',
    urls: [`${url}/image`],
    disk_format: 'raw',
    os_hash_algo: 'sha256',
    os_hash_value: createHash('sha256').update(image).digest('hex'),
  });
  const step = (args: JsonObject): JsonObject => ({
    step: { step: 'write_image', interface: 'deploy', args },
    node: { uuid: 'the-node' },
    ports: [],
  });

  it('writes the image in the background, sends a heartbeat at its end, and returns the root UUID', async () => {
    const { disk, port } = boot('');
    await until('a heartbeat', () => beats() > 0);
    const started = await command(port, 'deploy.execute_deploy_step', step({ image_info: info(), configdrive: '' }), false);
    expect(started).toMatchObject({ command_name: 'execute_deploy_step', command_status: 'RUNNING' });
    const before = beats();
    await until('a heartbeat', () => beats() > before);
    expect(await command(port, 'standby.get_partition_uuids', {})).toMatchObject({ command_result: { 'root uuid': '0x00000000' } });
    expect((await start(disk)).equals(image)).toBe(true);
    expect(ran.some((candidate) => candidate.startsWith('blockdev --rereadpt'))).toBe(true);
    expect(await command(port, 'image.install_bootloader', { root_uuid: null })).toMatchObject({ command_status: 'SUCCEEDED' });
    expect(await command(port, 'standby.power_off', {})).toMatchObject({ command_status: 'SUCCEEDED' });
    expect(ran.filter((candidate) => !/^blockdev|^blkdiscard/.test(candidate))).toEqual(['sync', 'poweroff -f']);
  });

  it('writes a partition image, and installs a boot loader for it', async () => {
    const { port } = boot('');
    await until('a heartbeat', () => beats() > 0);
    const sizes = { image_type: 'partition', root_mb: 100, swap_mb: 10, ephemeral_mb: 20, preserve_ephemeral: false };
    const written = await command(port, 'deploy.execute_deploy_step', step({ image_info: { ...info(), ...sizes } }));
    expect(written).toMatchObject({ command_error: null, command_status: 'SUCCEEDED' });
    // An image without a file system: the partition's own identifier, of an MBR with a random one.
    const uuids = { 'root uuid': expect.stringMatching(/^[0-9a-f]{8}-03$/) as string, 'efi system partition uuid': null };
    expect(await command(port, 'standby.get_partition_uuids', {})).toMatchObject({ command_result: uuids });
    expect(ran.filter((candidate) => candidate.startsWith('mk')).map((candidate) => candidate.replace(/ \S+$/, ''))).toEqual([
      'mkswap -L swap1',
      'mke2fs -q -F -t ext4 -L ephemeral0',
    ]);
    // A BIOS would not start it, and this ramdisk has no GRUB.
    const installed = await command(port, 'image.install_bootloader', { root_uuid: 'x', target_boot_mode: 'bios' });
    expect(installed).toMatchObject({
      command_status: 'FAILED',
      command_error: { details: expect.stringContaining('the ramdisk has no boot loader for a BIOS') as string },
    });
    const ignoring = { root_uuid: 'x', target_boot_mode: 'bios', ignore_bootloader_failure: true };
    expect(await command(port, 'image.install_bootloader', ignoring)).toMatchObject({ command_status: 'SUCCEEDED' });
  });

  it.each<[string, JsonObject, object]>([
    ['no image', step({}), { type: 'InvalidCommandParamsError' }],
    [
      'a partition image without the size of its root partition',
      step({ image_info: { id: 'x', urls: ['http://x'], image_type: 'partition' } }),
      { type: 'InvalidCommandParamsError', details: "Image 'root_mb' must be a number of MiB from 1 to 1073741824." },
    ],
    [
      'no URL',
      step({ image_info: { id: 'x' } }),
      { type: 'InvalidCommandParamsError', details: "Image 'urls' must be a list with at least one element." },
    ],
    ['an unknown step', { ...step({}), step: { step: 'bake', interface: 'deploy' } }, { details: 'Unknown deploy step: bake' }],
    ['no step', { node: {}, ports: [] }, { details: 'Unknown deploy step: undefined' }],
    [
      'no disk that matches the hints',
      { ...step({ image_info: { id: 'x', urls: ['http://x'] } }), node: { properties: { root_device: { serial: 'none' } } } },
      { type: 'DeviceNotFound', code: 404, subject: expect.stringMatching(/^disk \/dev\/\S+ \(.*GiB\)/) as string },
    ],
  ])('execute_deploy_step fails with a reason for %s', async (_, params, error) => {
    const { port } = boot('');
    await until('a heartbeat', () => beats() > 0);
    expect(await command(port, 'deploy.execute_deploy_step', params)).toMatchObject({ command_status: 'FAILED', command_error: error });
  });

  it('execute_deploy_step refuses the version of another hardware manager', async () => {
    const { port } = boot('');
    await until('a heartbeat', () => beats() > 0);
    const params = { ...step({}), deploy_version: { GenericHardwareManager: '1.2' } };
    expect(await command(port, 'deploy.execute_deploy_step', params)).toMatchObject({ command_status: 'CLEAN_VERSION_MISMATCH' });
  });
});

it('erase_devices_metadata erases metadata as a clean step', async () => {
  const { disk, port } = boot('');
  await until('a heartbeat', () => beats() > 0);
  const params = {
    step: { step: 'erase_devices_metadata', interface: 'deploy' },
    node: { uuid: 'the-node' },
    ports: [],
    clean_version: { BloomeryHardwareManager: '4' },
  };
  expect(await command(port, 'clean.execute_clean_step', params)).toMatchObject({
    command_status: 'SUCCEEDED',
    command_result: {
      clean_result: { erased_disks: [{ method: 'metadata', skipped: null }] },
      clean_step: { step: 'erase_devices_metadata', interface: 'deploy' },
    },
  });
  expect(ran.some((candidate) => candidate.startsWith('blockdev --rereadpt'))).toBe(true);
  expect((await start(disk)).subarray(0, 1000).every((byte) => byte === 0)).toBe(true);
});

it.each(['erase_devices_metadata', 'erase_devices_express', 'erase_devices'])('%s leaves a disk that is to be kept', async (step) => {
  const { disk, port } = boot('');
  await until('a heartbeat', () => beats() > 0);
  const before = await start(disk);
  const run = (keep: readonly JsonObject[]) =>
    command(port, 'clean.execute_clean_step', {
      step: { step, interface: 'deploy' },
      node: { uuid: 'the-node', driver_internal_info: { erase_choice: { keep } } },
      ports: [],
    });
  expect(await run([{ size: '> 1' }])).toMatchObject({
    command_status: 'SUCCEEDED',
    command_result: { clean_result: { erased_disks: [{ method: null, skipped: 'kept' }] } },
  });
  expect(await run([{ size: '> 1' }, { serial: 'another' }])).toMatchObject({
    command_status: 'FAILED',
    command_error: { details: expect.stringContaining('{"serial":"another"}, which is to be kept: nothing was erased') as string },
  });
  expect((await start(disk)).equals(before)).toBe(true);
});

it('an erasure fails where a disk came meanwhile, and tells a disk that has no size', async () => {
  const { machine } = boot('');
  await until('a heartbeat', () => beats() > 0);
  const block = (name: string, size: number): void => {
    mkdirSync(join(machine.root, 'sys/block', name), { recursive: true });
    writeFileSync(join(machine.root, 'sys/block', name, 'size'), String(size));
  };
  block('sdx', 0);
  let done = 0;
  const erased = { method: 'overwrite', skipped: null, sample: null, overwrite_seconds: null } as const;
  const run = (late: string | undefined) => {
    const erase = async () => {
      done += 1;
      if (late !== undefined) block(late, 1000);
      return erased;
    };
    return eraseEach(machine, erase, 1, () => {});
  };
  expect(await run(undefined)).toMatchObject({
    erased_disks: [{ method: 'overwrite' }, { name: '/dev/sdx', method: null, skipped: 'no-size' }],
  });
  await expect(run('sdz')).rejects.toMatchObject({
    details: expect.stringContaining('"/dev/sdz": it came while others were erased') as string,
  });
  expect(done).toBe(2);
});

it.each(['erase_devices_metadata', 'erase_devices'])('%s erases nothing when one disk is shared storage', async (step) => {
  const { machine, disk, port } = boot('');
  await until('a heartbeat', () => beats() > 0);
  // A second disk, which comes last: a LUN with VMFS.
  const lun = join(machine.root, 'lun');
  writeFileSync(lun, '');
  truncateSync(lun, 5 * GiB);
  const name = `..${lun}`.replaceAll('/', '!');
  mkdirSync(join(machine.root, 'sys/block', name), { recursive: true });
  writeFileSync(join(machine.root, 'sys/block', name, 'size'), String((5 * GiB) / 512));
  const [file, first] = [await open(lun, 'r+'), await open(disk, 'r+')];
  await file.write(Buffer.from('0dd001c0', 'hex'), 0, 4, 2 ** 20);
  await first.write(Buffer.from('data'), 0, 4, 0);
  await Promise.all([file.close(), first.close()]);
  const params = { step: { step, interface: 'deploy' }, node: { uuid: 'the-node' }, ports: [] };
  expect(await command(port, 'clean.execute_clean_step', params)).toMatchObject({
    command_status: 'FAILED',
    command_error: { type: 'ProtectedDeviceError', details: expect.stringContaining('VMware VMFS volume located on device') as string },
  });
  expect((await start(disk)).toString('latin1', 0, 4)).toBe('data');
  if (step === 'erase_devices') return;
  const allowed = { ...params, node: { uuid: 'the-node', driver_info: { wipe_special_filesystems: true } } };
  expect(await command(port, 'clean.execute_clean_step', allowed)).toMatchObject({ command_status: 'SUCCEEDED' });
});

it('writes the image to the disk of the hints, for which it waits', async () => {
  const { machine, port } = boot('ipa-disk-wait-attempts=50');
  await until('a heartbeat', () => beats() > 0);
  const late = join(machine.root, 'late');
  writeFileSync(late, '');
  truncateSync(late, 5 * GiB);
  const node = { uuid: 'the-node', properties: { root_device: { serial: 'LATE' } } };
  const info = { id: 'x', urls: [`${url}/image`], disk_format: 'raw', checksum: createHash('sha256').update(image).digest('hex') };
  const params = { step: { step: 'write_image', interface: 'deploy', args: { image_info: info } }, node, ports: [] };
  await command(port, 'deploy.execute_deploy_step', params, false);
  await delay(100);
  const block = join(machine.root, 'sys/block', `..${late}`.replaceAll('/', '!'));
  mkdirSync(join(block, 'device'), { recursive: true });
  writeFileSync(join(block, 'device/serial'), 'LATE');
  writeFileSync(join(block, 'size'), String((5 * GiB) / 512));
  const before = beats();
  await until('the end', () => beats() > before);
  expect((await start(late)).equals(image)).toBe(true);
});

it('sets the clock before its first request', async () => {
  const order: string[] = [];
  answers['/'] = () => (order.push('request'), [200, { default_version: { version: NEWEST_VERSION } }]);
  boot('ipa-ntp-server=ntp.example', {
    ntpTime: async (server) => (order.push(server), 1_704_067_200_400),
    run: async (program, args) => (order.push([program, ...args].join(' ')), ''),
  });
  await until('a heartbeat', () => beats() > 0);
  expect(order.slice(0, 4)).toEqual(['ntp.example', 'date -u -s @1704067200', 'hwclock -w -u', 'request']);
});

it('goes on when the clock cannot be set', async () => {
  boot('ipa-ntp-server=ntp.example');
  await until('a heartbeat', () => beats() > 0);
  expect(ran).toEqual([]);
});

it('returns its logs and its inventory', async () => {
  const { port } = boot('');
  await until('a heartbeat', () => beats() > 0);
  expect(await command(port, 'log.collect_system_logs', {})).toMatchObject({
    command_result: { system_logs: expect.any(String) as string },
  });
  expect(await command(port, 'poll.get_hardware_info', {})).toMatchObject({ command_result: { interfaces: [{ mac_address: MAC }] } });
});

it('routeSource returns the source address of the route to a host', async () => {
  expect(await routeSource('127.0.0.1')).toBe('127.0.0.1');
  expect(await routeSource('localhost')).toMatch(/^(127\.0\.0\.1|::1)$/);
});
