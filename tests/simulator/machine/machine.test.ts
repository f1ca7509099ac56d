import { createHash, randomBytes } from 'node:crypto';
import { gzipSync } from 'node:zlib';
import { Agent, fetch, type RequestInit } from 'undici';
import { ipxeScript } from '../../../boot/ipxe';
import { systemClock } from '../../../model/clock';
import { silentLog, type Log } from '../../../model/log';
import type { JsonObject } from '../../../model/records';
import { startFleet, type Fleet } from '../../../simulator/fleet/fleet';
import { HTTP_BOOT_URI, MEDIA } from '../../../simulator/hardware/boot-media';
import { readScript } from '../../../simulator/machine/boot-script';
import { type SimulatedMachine } from '../../../simulator/machine/machine';
import { NODE, smallIronic, type SmallIronic } from '../small-ironic';

type FleetSetup = Parameters<typeof startFleet>[0];
type Phase = ReturnType<SimulatedMachine['phase']>;
let ironic: SmallIronic;
let fleet: Fleet;
let phases: Phase[];
const waiting: { readonly phase: Phase; readonly done: () => void }[] = [];
const FAST = { firmwareMs: 1, bootMs: 1, softOffMs: 5, retryMs: 5 };
const image = randomBytes(200_000);
const sha256 = createHash('sha256').update(image).digest('hex');

const machine = (): SimulatedMachine => fleet.machines[0]!.control;
const start = async (setup: Partial<FleetSetup> = {}): Promise<void> => {
  fleet = await startFleet({
    count: 1,
    bootUrl: ironic.url,
    host: '127.0.0.1',
    log: silentLog,
    clock: systemClock,
    random: randomBytes,
    behaviour: FAST,
    onPhase: (value) => {
      phases.push(value.phase());
      for (const { phase, done } of waiting) if (phase === value.phase()) done();
    },
    ...setup,
  });
};
const until = (phase: Phase): Promise<void> =>
  new Promise((done) => (machine().phase() === phase ? done() : waiting.push({ phase, done })));
/** Sets the boot record that the boot service serves to the machine. */
const offer = (purpose: 'ramdisk' | 'disk', kernelArgs = ''): void => {
  const boot = { node_uuid: NODE, token: NODE, macs: [], method: 'ipxe', purpose, kernel_args: kernelArgs, files: {} } as const;
  const mac = machine().macs[0]!.replaceAll(':', '-');
  ironic.files.set(`/ipxe/${mac}`, ipxeScript(boot, ironic.url));
  ironic.files.set(`/boot/${NODE}/kernel`, 'kernel').set(`/boot/${NODE}/ramdisk`, 'ramdisk').set('/image', image);
};
const agentUp = async (): Promise<string> => {
  offer('ramdisk', `ipa-api-url=${ironic.url}`);
  await machine().act('on');
  await ironic.beat(1);
  return ironic.beats[0]!.callback_url;
};

interface Result {
  readonly id: string;
  readonly command_name: string;
  readonly command_status: string;
  readonly command_result: JsonObject | null;
  readonly command_error: { readonly type: string; readonly details: string } | null;
}
/** Like a server, it trusts only the certificate of the heartbeat. */
const askAgent = async (url: string, init: RequestInit = {}): Promise<{ readonly status: number; readonly body: unknown }> => {
  const dispatcher = new Agent({ connect: { ca: ironic.beats[0]!.agent_verify_ca } });
  try {
    const answer = await fetch(url, { ...init, dispatcher });
    return { status: answer.status, body: await answer.json() };
  } finally {
    await dispatcher.destroy();
  }
};
const command = async (callback: string, name: string, params: unknown = {}, wait = true): Promise<Result> => {
  const url = `${callback}/v1/commands/?wait=${wait}&agent_token=the%20token`;
  return (await askAgent(url, { method: 'POST', body: JSON.stringify({ name, params }) })).body as Result;
};
const writeImage = (callback: string, info: object, node: object = {}, configdrive?: string): Promise<Result> =>
  command(callback, 'deploy.execute_deploy_step', {
    step: {
      step: 'write_image',
      interface: 'deploy',
      args: { image_info: { id: 'image', urls: [`${ironic.url}/image`], ...info }, configdrive },
    },
    node,
    ports: [],
  });

beforeEach(async () => {
  phases = [];
  waiting.length = 0;
  ironic = await smallIronic();
  await start();
});
afterEach(async () => {
  await fleet.close();
  await ironic.close();
});

describe('power', () => {
  it('off stops the running agent', async () => {
    await agentUp();
    await machine().act('off');
    expect(machine().isOn()).toBe(false);
    expect(phases).toEqual(['firmware', 'ramdisk', 'agent', 'off']);
    const callback = ironic.beats[0]!.callback_url;
    await expect(askAgent(`${callback}/v1/status`)).rejects.toThrow();
  });
  it('actions have an effect only in matching states: on, reset, soft, off', async () => {
    await machine().act('on');
    await machine().act('on');
    await until('halted');
    await machine().act('reset');
    await until('halted');
    await machine().act('soft');
    await until('off');
    for (const action of ['reset', 'cycle', 'soft', 'off', 'diagnostic'] as const) await machine().act(action);
    expect(phases).toEqual(['firmware', 'halted', 'off', 'firmware', 'halted', 'off']);
  });
  it('soft may be ignored', async () => {
    machine().behave({ softOffMs: null });
    await machine().act('on');
    await until('halted');
    await machine().act('soft');
    expect(machine().isOn()).toBe(true);
  });
});

describe('boot', () => {
  it.each([
    ['cdrom', (url: string) => machine().hardware.set(MEDIA, { Cd: { url, writeProtected: true } })],
    ['uefi-http', (url: string) => machine().hardware.set(HTTP_BOOT_URI, url)],
  ] as const)('runs the agent of an image for %s', async (device, insert) => {
    const kernel = `menuentry "boot" {\n  linux /vmlinuz text ipa-api-url=${ironic.url} nofb --\n initrd /initrd\n}`;
    ironic.files.set('/boot.iso', Buffer.concat([randomBytes(70_000), Buffer.from(`\n${kernel}\n`), randomBytes(1000)]));
    insert(`${ironic.url}/boot.iso`);
    machine().setBoot({ device, persistent: false, mode: 'uefi' });
    await machine().act('on');
    await ironic.beat(1);
    expect(phases).toEqual(['firmware', 'ramdisk', 'agent']);
  });
  it('gives an agent from an image the token of the kernel parameters in the image', async () => {
    await ironic.close();
    ironic = await smallIronic('******');
    ironic.files.set('/boot.iso', Buffer.from(`linux /vmlinuz 'ipa-api-url=${ironic.url}' 'ipa-agent-token=of-the-image'\n`));
    machine().hardware.set(MEDIA, { Cd: { url: `${ironic.url}/boot.iso`, writeProtected: true } });
    machine().setBoot({ device: 'cdrom', persistent: false, mode: 'uefi' });
    await machine().act('on');
    await ironic.beat(1);
    expect(ironic.beats[0]).toMatchObject({ agent_token: 'of-the-image' });
  });
  it('runs another system from an image, and halts with an empty drive', async () => {
    ironic.files.set('/live.iso', randomBytes(1000));
    machine().hardware.set(MEDIA, { Cd: { url: `${ironic.url}/live.iso`, writeProtected: true } });
    machine().setBoot({ device: 'cdrom', persistent: true, mode: 'uefi' });
    await machine().act('on');
    await until('system');
    machine().hardware.set(MEDIA, {});
    await machine().act('reset');
    await until('halted');
  });
  it('clears a one-time boot device after the boot, and keeps a persistent one', async () => {
    machine().setBoot({ device: 'pxe', persistent: false, mode: 'bios' });
    await machine().act('on');
    expect(machine().boot()).toEqual({ device: 'none', persistent: false, mode: 'bios' });
    machine().setBoot({ device: 'disk', persistent: true, mode: null });
    await machine().act('reset');
    expect(machine().boot()).toEqual({ device: 'disk', persistent: true, mode: 'bios' });
  });
  it('requests a script for the second network interface too', async () => {
    const [, second] = machine().macs;
    ironic.files.set(
      `/ipxe/${second!.replaceAll(':', '-')}`,
      '#!ipxe\nkernel KERNEL a=${mac}\ninitrd RAMDISK\n'.replace(/[A-Z]+/g, `${ironic.url}/x`),
    );
    ironic.files.set('/x', 'x');
    machine().behave({ neverCalls: true });
    await machine().act('on');
    await until('ramdisk');
  });
  it('halts in the firmware setup with the boot device "bios"', async () => {
    offer('ramdisk');
    machine().setBoot({ device: 'bios', persistent: false, mode: null });
    await machine().act('on');
    await until('halted');
    expect(phases).toEqual(['firmware', 'halted']);
  });
  it('halts when the ramdisk is missing', async () => {
    offer('ramdisk');
    ironic.files.delete(`/boot/${NODE}/ramdisk`);
    await machine().act('on');
    await until('halted');
  });
  it('readScript parses kernel, ramdisk and parameters of an iPXE script', () => {
    const text =
      '#!ipxe\n:a\nkernel http://h/k  a=1 b=x=y flag BOOTIF=${mac} || goto b\ninitrd --name ramdisk http://h/r || goto b\nboot\n';
    const script = readScript(text, '52:54:00:00:00:01')!;
    expect(script.files).toEqual(['http://h/k', 'http://h/r']);
    expect(Object.fromEntries(script.parameters)).toEqual({ a: '1', b: 'x=y', flag: '', BOOTIF: '52:54:00:00:00:01' });
    expect(readScript('#!ipxe\nsanboot --no-describe\n', 'x')).toBeUndefined();
  });
});

describe('agent', () => {
  it('posts its inventory until it is accepted, then looks its node up', async () => {
    ironic.refuse.push(404, 409, 503);
    offer('ramdisk', `ipa-api-url=${ironic.url} ipa-inspection-callback-url=${ironic.url}/v1/continue_inspection`);
    await machine().act('on');
    await ironic.beat(1);
    expect(ironic.inventories).toHaveLength(1);
    expect(ironic.inventories[0]!.inventory).toMatchObject({
      interfaces: [{ mac_address: machine().macs[0] }, { mac_address: machine().macs[1] }],
      cpu: { count: 8, architecture: 'x86_64' },
      memory: { physical_mb: 16384 },
      boot: { current_boot_mode: 'uefi', pxe_interface: machine().macs[0] },
    });
    expect(ironic.lookups).toEqual([machine().macs.join(',')]);
  });
  it('repeats the lookup while it is refused', async () => {
    ironic.refuse.push(409, 404);
    await agentUp();
    expect(ironic.lookups).toHaveLength(1);
    expect(ironic.beats[0]).toMatchObject({ agent_token: 'the token' });
  });
  it('never calls with neverCalls; with wrongToken, a refused heartbeat is logged once', async () => {
    const told: string[] = [];
    const log: Log = { ...silentLog, warn: (message, fields) => void told.push(`${message} ${JSON.stringify(fields)}`), child: () => log };
    await fleet.close();
    await start({ log });
    machine().behave({ wrongToken: true });
    await agentUp();
    await ironic.beat(3);
    expect(told).toEqual(['heartbeat refused {"answer":"400 "}']);
    expect(ironic.beats[0]!.agent_token).not.toBe('the token');
    machine().behave({ neverCalls: true, wrongToken: false });
    await machine().act('reset');
    await until('ramdisk');
    expect(ironic.beats.filter(({ agent_token: token }) => token === 'the token')).toEqual([]);
  });
  it('sends no heartbeat if the server has given the token to another agent', async () => {
    await ironic.close();
    ironic = await smallIronic('******');
    await fleet.close();
    await start();
    offer('ramdisk', `ipa-api-url=${ironic.url}`);
    await machine().act('on');
    await until('agent');
    await machine().close();
    expect(ironic.beats).toEqual([]);
  });

  it('executes commands only with the token and one at a time, and sends a heartbeat when one ends', async () => {
    machine().behave({ stepMs: 3000 });
    const callback = await agentUp();
    expect((await askAgent(`${callback}/v1/commands/?agent_token=wrong`)).status).toBe(401);
    expect(await command(callback, 'no.such')).toMatchObject({ type: 'InvalidCommandError', code: 404 });
    const steps = await command(callback, 'clean.get_clean_steps');
    expect(steps).toMatchObject({ command_name: 'get_clean_steps', command_status: 'SUCCEEDED' });
    const offered = Object.values(steps.command_result!['clean_steps'] as Record<string, { step: string; priority: number }[]>)[0]!;
    expect(offered.map(({ step, priority }) => [step, priority])).toEqual([
      ['erase_devices_metadata', 99],
      ['erase_devices_express', 0],
      ['erase_devices', 10],
      ['delete_configuration', 0],
      ['create_configuration', 0],
    ]);

    const params = { step: { step: 'erase_devices', interface: 'deploy' }, node: {}, ports: [] };
    const first = await command(callback, 'clean.execute_clean_step', params, false);
    expect(first.command_status).toBe('RUNNING');
    expect(await command(callback, 'clean.execute_clean_step', params, false)).toMatchObject({ type: 'AgentIsBusy', code: 409 });
    await ironic.beat(2);
    const url = `${callback}/v1/commands/${first.id}?agent_token=the%20token`;
    expect((await askAgent(url)).body).toMatchObject({ command_status: 'SUCCEEDED', command_result: { clean_step: params.step } });
  });

  it('writes an image, which the machine then boots from its disk until the metadata are erased', async () => {
    const callback = await agentUp();
    const drive = Buffer.from('config drive');
    const written = await writeImage(
      callback,
      { os_hash_algo: 'sha256', os_hash_value: sha256 },
      { properties: { root_device: { name: '/dev/sdb' } } },
      gzipSync(drive).toString('base64'),
    );
    expect(written).toMatchObject({ command_name: 'execute_deploy_step', command_status: 'SUCCEEDED' });
    expect(machine().content('/dev/sdb')).toEqual({ url: `${ironic.url}/image`, size: image.length, sha256, configDrive: drive });
    expect(machine().content('/dev/sda')).toBeUndefined();
    await command(callback, 'standby.power_off', {}, false);
    await until('off');
    offer('disk');
    machine().setBoot({ device: 'pxe', persistent: true, mode: null });
    await machine().act('on');
    await until('system');

    // After cleaning the machine has nothing to boot.
    offer('ramdisk', `ipa-api-url=${ironic.url}`);
    ironic.beats.length = 0;
    await machine().act('reset');
    await ironic.beat(1);
    await command(callback, 'clean.execute_clean_step', { step: { step: 'erase_devices_metadata' } });
    expect(machine().content('/dev/sdb')).toBeUndefined();
  });

  it.each<[string, object, object, string, RegExp]>([
    ['a wrong checksum', { checksum: '0'.repeat(64) }, {}, 'ImageChecksumError', /failed to verify against checksum/],
    ['an unreachable server', { urls: ['http://127.0.0.1:1/x'], checksum: sha256 }, {}, 'ImageDownloadError', /ECONNREFUSED/],
    ['a missing image', { urls: ['/none'], checksum: sha256 }, {}, 'ImageDownloadError', /status code 404/],
    ['no checksum', {}, {}, 'InvalidCommandParamsError', /checksum is not available/],
    [
      'root device hints without a matching disk',
      {},
      { properties: { root_device: { serial: 'none' } } },
      'DeviceNotFound',
      /No suitable device/,
    ],
  ])('fails write_image for %s, and leaves the disk empty', async (_, info, node, type, details) => {
    const callback = await agentUp();
    const urls = (info as { urls?: string[] }).urls?.map((url) => new URL(url, ironic.url).href);
    const { command_status: status, command_error: error } = await writeImage(callback, { ...info, ...(urls ? { urls } : {}) }, node);
    expect([status, error?.type]).toEqual(['FAILED', type]);
    expect(error?.details).toMatch(details);
    expect(machine().content('/dev/sda')).toBeUndefined();
  });
  it('fails write_image with failWriteImage', async () => {
    machine().behave({ failWriteImage: 'the disk is broken' });
    expect((await writeImage(await agentUp(), {})).command_error).toMatchObject({ details: 'the disk is broken' });
  });
  it.each([
    ['md5', 'md5'],
    ['sha512', 'sha512'],
  ])('detects the algorithm of a checksum by its length: %s', async (_, algorithm) => {
    const callback = await agentUp();
    expect(await writeImage(callback, { checksum: createHash(algorithm).update(image).digest('hex') })).toMatchObject({
      command_status: 'SUCCEEDED',
    });
    ironic.files.set('/sums', `${createHash(algorithm).update(image).digest('hex')}  image\n`);
    for (const sum of [{ checksum: `${ironic.url}/sums` }, { os_hash_algo: algorithm, os_hash_value: `${ironic.url}/sums` }])
      expect(await writeImage(callback, sum)).toMatchObject({ command_status: 'SUCCEEDED' });
  });
  it('erases no disk that skip_block_devices names, and writes no image to it', async () => {
    const callback = await agentUp();
    const wanted = { properties: { root_device: { name: '/dev/sdb' } } };
    await writeImage(callback, { checksum: sha256 }, wanted);
    const node = { properties: { skip_block_devices: [{ name: '/dev/sdb' }] } };
    await command(callback, 'clean.execute_clean_step', { step: { step: 'erase_devices_metadata' }, node });
    expect(machine().content('/dev/sdb')).toMatchObject({ sha256 });
    const both = { properties: { ...wanted.properties, ...node.properties } };
    expect(await writeImage(callback, { checksum: sha256 }, both)).toMatchObject({ command_status: 'FAILED' });
  });
});

it('startFleet creates machines with unique addresses, and the same ones each time', async () => {
  const first = fleet.machines[0]!;
  await fleet.close();
  await start({ count: 3 });
  expect(fleet.machines[0]!.macs).toEqual(first.macs);
  const macs = fleet.machines.flatMap((item) => item.macs);
  expect(new Set(macs).size).toBe(macs.length);
  expect(new Set(fleet.machines.map(({ ipmi }) => ipmi.port)).size).toBe(3);
});
