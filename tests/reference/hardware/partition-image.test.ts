/** Compares what partition images ask for, and the partitions that they get, with Ironic's and ironic-python-agent's own functions. */
import { createHash } from 'node:crypto';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { directDeploy } from '../../../drivers/agent/direct';
import { partitionFields } from '../../../drivers/agent/partition-image';
import { planPartitions, type PlannedPartition } from '../../../model/agent/partition-plan';
import { bootOf } from '../../../model/agent/software-raid';
import { reasonOf } from '../../../model/errors';
import type { JsonObject } from '../../../model/records';
import { programs } from '../../lab/support/venv';
import { result, startFakeAgent } from '../../support/fakes/fake-agent';
import { driverOptions, testTask } from '../../support/task';
import { inIronicsPython, inPython, numbers } from '../random-cases';

const MiB = 2 ** 20;

it('divides the disk as ironic-python-agent does', async () => {
  const below = numbers(20_261_128);
  const pick = <T>(...all: readonly T[]): T => all[below(all.length)]!;
  const capabilities = () =>
    pick('', 'boot_mode:uefi', 'boot_mode:bios', 'boot_mode:bios,disk_label:gpt', 'disk_label:gpt', 'boot_mode:uefi,disk_label:msdos');
  const cases = Array.from({ length: 2000 }, () => ({
    root: 1 + below(20_000),
    swap: pick(0, below(4096)),
    ephemeral: pick(0, below(10_000)),
    configdrive: pick(0, 1, 64),
    node: {
      properties: { capabilities: capabilities() },
      instance_info: pick<JsonObject>(
        {},
        { capabilities: { disk_label: pick('gpt', 'msdos') } },
        { capabilities: { secure_boot: 'true' } },
      ),
    } as JsonObject,
  }));
  /** What parted is told of a partition: its kind of file system, and its flag. */
  const told = (mode: string, label: string): Readonly<Record<PlannedPartition['role'], readonly [string, string?]>> => ({
    esp: ['fat32', 'boot'],
    bios: ['', 'bios_grub'],
    ephemeral: [''],
    swap: ['linux-swap'],
    configdrive: [''],
    root: mode === 'bios' && label === 'msdos' ? ['', 'boot'] : [''],
  });
  const ours = cases.map(({ root, swap, ephemeral, configdrive, node }) => {
    const { bootMode, label } = bootOf(node, 'bios');
    const sizes = { root, swap, ephemeral, ephemeralFormat: 'ext4', preservesEphemeral: false } as const;
    const disk = { path: '/dev/sda', size: 2 ** 40, sectorSize: 512 };
    const { partitions } = planPartitions({ bootMode, label, sizes, configDrive: configdrive * MiB }, disk);
    const words = partitions.flatMap(({ role, number, start, size }) => {
      const [kind, flag] = told(bootMode, label)[role];
      return [
        'mkpart',
        'primary',
        kind,
        String(start / MiB),
        String((start + size) / MiB),
        ...(flag ? ['set', String(number), flag, 'on'] : []),
      ];
    });
    return { mode: bootMode, parted: ['mklabel', label, ...words] };
  });
  const agent = await programs('agent-functions', ['ironic-python-agent==13.0.0']);
  const theirs = await inPython<object>(agent, join(__dirname, 'partition-table.py'), cases, 200_000);
  expect(
    cases.flatMap((each, n) => (isDeepStrictEqual(ours[n], theirs[n]) ? [] : [{ each, ours: ours[n], theirs: theirs[n] }])).slice(0, 3),
  ).toEqual([]);
}, 900_000);

it('reads instance_info as Ironic does', async () => {
  const below = numbers(20_261_129);
  const pick = <T>(...all: readonly T[]): T => all[below(all.length)]!;
  const size = () => pick<unknown>(1, 10, '10', ' 7 ', 'foo', '1.5', 2.5, 0, '', true, '-3', -3, '1_0', undefined, null);
  const given = (info: JsonObject): JsonObject => Object.fromEntries(Object.entries(info).filter(([, value]) => value !== undefined));
  const cases = Array.from({ length: 3000 }, () => ({
    info: given({
      image_source: 'http://image',
      root_gb: size(),
      swap_mb: pick<unknown>(undefined, size()),
      ephemeral_gb: pick<unknown>(undefined, size()),
      ephemeral_format: pick<unknown>(undefined, undefined, 'xfs'),
      preserve_ephemeral: pick<unknown>(undefined, undefined, true, 'yes', 'no', 'maybe', 1, 7, null),
    }),
    internal: pick<JsonObject>({}, { instance: { root_gb: 10, swap_mb: 10, ephemeral_gb: 1 } }),
  }));
  const read = ({ info, internal }: (typeof cases)[number]): { readonly read?: JsonObject; readonly error?: string } => {
    try {
      const found = partitionFields(testTask({ node: { instance_info: info, driver_internal_info: internal } }).task);
      const names = ['root_mb', 'swap_mb', 'ephemeral_mb', 'ephemeral_format', 'preserve_ephemeral'];
      return { read: Object.fromEntries(names.map((name) => [name, found[name]])) };
    } catch (error) {
      return { error: reasonOf(error) };
    }
  };
  const ironics = await inIronicsPython<{ readonly crash?: string; readonly read?: JsonObject; readonly error?: string }>(
    join(__dirname, 'instance-info.py'),
    cases,
    200_000,
  );
  const counts = { same: 0, read: 0, stricter: 0, crash: 0 };
  const differences = cases.flatMap((each, n) => {
    const [mine, theirs] = [read(each), ironics[n]!];
    if (isDeepStrictEqual(mine, theirs)) return (counts.same++, (counts.read += mine.read ? 1 : 0), []);
    // int(None): the deployment ends with a TypeError. Negative sizes fail in the agent.
    if (theirs.crash !== undefined) return (counts.crash++, []);
    if (/ is too (?:small|large)\.$/.test(mine.error ?? '')) return (counts.stricter++, []);
    return [{ each, mine, theirs }];
  });
  expect(differences.slice(0, 3)).toEqual([]);
  expect(counts.same).toBeGreaterThan(cases.length / 2);
  expect(counts.read).toBeGreaterThan(cases.length / 20);
  process.stderr.write(`partition images: ${JSON.stringify(counts)}\n`);
}, 900_000);

it('tells the agent of the image what Ironic tells it', async () => {
  const root = Buffer.alloc(8192);
  root.write('XFSB');
  const server = createServer((_, answer) => answer.end(root));
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  const agent = await startFakeAgent(() => ({ body: result('execute_deploy_step', 'RUNNING') }));
  try {
    const image = {
      image_source: `http://127.0.0.1:${(server.address() as AddressInfo).port}/root.raw`,
      image_os_hash_algo: 'sha256',
      image_os_hash_value: createHash('sha256').update(root).digest('hex'),
      image_disk_format: 'raw',
      image_type: 'partition',
      root_gb: 4,
    };
    const infos: readonly JsonObject[] = [
      {},
      { swap_mb: 512, ephemeral_gb: 2 },
      { ephemeral_gb: 1, ephemeral_format: 'xfs', preserve_ephemeral: 'yes' },
      { capabilities: { disk_label: 'gpt' } },
      { kernel: 'http://127.0.0.1/kernel', ramdisk: 'http://127.0.0.1/ramdisk' },
    ];
    const modes = ['boot_mode:bios', 'boot_mode:uefi', 'boot_mode:bios,disk_label:gpt', 'boot_mode:uefi,secure_boot:true'];
    const cases = infos.flatMap((info) => modes.map((capabilities) => ({ info: { ...image, ...info }, properties: { capabilities } })));
    const theirs = await inIronicsPython<JsonObject>(join(__dirname, 'image-info.py'), cases, 200_000);
    const ours: JsonObject[] = [];
    for (const { info, properties } of cases) {
      const { task } = testTask({
        node: {
          uuid: 'u',
          power_state: 'power on',
          driver_internal_info: { agent_url: agent.url, agent_secret_token: 's3cret' },
          instance_info: info,
          properties,
        },
        options: driverOptions({ 'agent.require_tls': false }),
      });
      await directDeploy.prepare!(task);
      await directDeploy.steps!.find(({ step }) => step === 'write_image')!.run(task, {});
      const { args } = agent.asked.at(-1)!.body!.params['step'] as { readonly args: { readonly image_info: JsonObject } };
      ours.push(args.image_info);
    }
    // Ironic names the config drive, which is none here, in another argument too.
    expect(ours).toEqual(theirs.map((told) => ({ ...told, configdrive: undefined })));
  } finally {
    await agent.close();
    server.close();
  }
}, 900_000);
