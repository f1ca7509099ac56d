/** Hardware managers: those of the site, containers, whose step counts; boot entries of the firmware; files for instances. */
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, statSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { systemClock } from '../../model/clock';
import { filledUrl, readInjectedFiles } from '../../model/agent/inject-files';
import { silentLog } from '../../model/log';
import type { JsonObject } from '../../model/records';
import { commandsOf } from '../../ramdisk-agent/extensions';
import type { Machine } from '../../ramdisk-agent/machine';
import { containerManager } from '../../ramdisk-agent/managers/containers';
import { type HardwareManager, offeredSteps, type StepRow, type Support, winningSteps } from '../../ramdisk-agent/managers/manager';
import { injectAt } from '../../ramdisk-agent/managers/inject-files';
import { bootEntriesIn, cleanNvram, erasePstore } from '../../ramdisk-agent/managers/nvram';
import { MANAGERS_FOLDER } from '../../ramdisk-agent/managers/operators';
import { managersOf } from '../../ramdisk-agent/managers/registry';
import { parseParameters } from '../../ramdisk-agent/parameters';
import { resolved } from '../../ramdisk-agent/kexec/image-files';
import { run as runProgram, type Run } from '../../ramdisk-agent/system/run';
import { tree } from '../../ramdisk-agent/system/tree';
import { fileTree } from './support';

function machineOf(files: Readonly<Record<string, string>>, run: Run, config: JsonObject = {}): Machine {
  const root = fileTree(files);
  return {
    tree: tree(root),
    root,
    temporary: root,
    run,
    log: silentLog,
    clock: { ...systemClock, sleep: async () => {} },
    parameters: parseParameters(''),
    fetching: { trust: { insecure: false }, timeoutMs: 1000, signal: new AbortController().signal },
    retire: () => {},
    state: { node: { uuid: 'n' }, config, partitionUuids: null, api: null },
  } as unknown as Machine;
}
const row = (step: string, clean: number): StepRow => ({
  step,
  interface: 'deploy',
  priority: { clean },
  abortable: false,
  run: async () => step,
});
const manager = (name: string, support: Support, ...steps: readonly StepRow[]): HardwareManager => ({ name, version: '1', support, steps });

describe('which step counts', () => {
  it.each<[string, readonly HardwareManager[], string]>([
    ['the better support', [manager('A', 'generic', row('x', 99)), manager('B', 'service-provider', row('x', 0))], 'B'],
    ['then the higher priority', [manager('A', 'mainline', row('x', 1)), manager('B', 'mainline', row('x', 2))], 'B'],
    ['then the first name', [manager('B', 'mainline', row('x', 1)), manager('A', 'mainline', row('x', 1))], 'A'],
  ])('%s', (_, managers, winner) => {
    expect(winningSteps(managers, 'clean').get('x')?.manager.name).toBe(winner);
    const offered = offeredSteps(managers, 'clean') as Readonly<Record<string, readonly JsonObject[]>>;
    expect(Object.entries(offered).filter(([, steps]) => steps.length > 0)).toEqual([
      [winner, [{ step: 'x', priority: expect.any(Number) as number, interface: 'deploy', reboot_requested: false, abortable: false }]],
    ]);
  });
});

const DESCRIPTION = {
  protocol: 1,
  name: 'Site',
  version: '1.0',
  support: 'service-provider',
  steps: [
    {
      step: 'update_nic',
      priority: { clean: 20, service: 0 },
      reboot_requested: true,
      argsinfo: { to: { description: 'version', required: true } },
    },
    { step: 'erase_devices', priority: { clean: 30 } },
  ],
};
const FILE = `${MANAGERS_FOLDER.slice(1)}/site`;
const siteMachine = (describe: unknown, execute: unknown = { result: { ok: true } }) => {
  const asked: JsonObject[] = [];
  const machine = machineOf({ [FILE]: '' }, async (_, __, options) => {
    const question = JSON.parse(options!.input!) as JsonObject;
    asked.push(question);
    const answer = question['method'] === 'describe' ? describe : execute;
    if (answer instanceof Error) throw answer;
    return typeof answer === 'string' ? answer : JSON.stringify(answer);
  });
  return { machine, asked };
};
const clean = (machine: Machine, step: JsonObject, more: JsonObject = {}) =>
  commandsOf(machine)['clean.execute_clean_step']!.run({ step, node: { uuid: 'n' }, ports: [{ address: 'm' }], ...more }, () => {});

describe('managers of the site', () => {
  it('offer steps, replace those of the agent, and are part of the version', async () => {
    const { machine } = siteMachine(DESCRIPTION);
    const offered = (await commandsOf(machine)['clean.get_clean_steps']!.run({}, () => {})) as JsonObject;
    expect(offered['hardware_manager_version']).toEqual({ BloomeryHardwareManager: '4', Site: '1.0' });
    const steps = offered['clean_steps'] as Readonly<Record<string, readonly JsonObject[]>>;
    expect(steps['Site']).toEqual([
      {
        step: 'update_nic',
        priority: 20,
        interface: 'deploy',
        reboot_requested: true,
        abortable: false,
        argsinfo: DESCRIPTION.steps[0]!.argsinfo,
      },
      { step: 'erase_devices', priority: 30, interface: 'deploy', reboot_requested: false, abortable: false },
    ]);
    expect(steps['BloomeryHardwareManager']!.map(({ step }) => step)).not.toContain('erase_devices');
  });
  it('execute a step with the node, its ports and the arguments', async () => {
    const { machine, asked } = siteMachine(DESCRIPTION);
    const version = { BloomeryHardwareManager: '4', Site: '1.0' };
    const done = await clean(machine, { step: 'update_nic', args: { to: '2' } }, { clean_version: version });
    expect(done).toMatchObject({ clean_result: { ok: true } });
    expect(asked.at(-1)).toEqual({
      protocol: 1,
      method: 'execute',
      step: 'update_nic',
      args: { to: '2' },
      node: { uuid: 'n' },
      ports: [{ address: 'm' }],
    });
    await expect(clean(machine, { step: 'update_nic' }, { clean_version: { ...version, Site: '0.9' } })).rejects.toMatchObject({
      type: 'VersionMismatch',
    });
  });
  it.each<[unknown, string]>([
    [{ error: 'the card is away' }, 'Site failed in step update_nic: the card is away'],
    [new Error('exit 3'), 'Site failed in step update_nic: exit 3'],
    ['no JSON', 'Site failed in step update_nic: '],
    ['[]', 'the answer is no JSON object'],
    [{ result: 'x'.repeat(70_000) }, 'the result has more than 65536 characters'],
  ])('a step that answers %j fails', async (answer, text) => {
    await expect(clean(siteMachine(DESCRIPTION, answer).machine, { step: 'update_nic' })).rejects.toThrow(text);
  });
  it.each<[unknown, string]>([
    [{ ...DESCRIPTION, protocol: 2 }, 'it speaks protocol 2, and this agent 1'],
    [{ ...DESCRIPTION, name: 'two words' }, 'name must be'],
    [{ ...DESCRIPTION, version: 1 }, 'version must be'],
    [{ ...DESCRIPTION, support: 'best' }, 'support must be one of none, generic, mainline, service-provider'],
    [{ ...DESCRIPTION, steps: {} }, 'steps must be a list of at most 100'],
    [{ ...DESCRIPTION, steps: [{ step: 'a b', priority: { clean: 0 } }] }, 'step must be a name'],
    [{ ...DESCRIPTION, steps: [{ step: 'a', priority: { rescue: 0 } }] }, 'priority.rescue of the step a must be'],
    [{ ...DESCRIPTION, steps: [{ step: 'a', priority: { clean: -1 } }] }, 'priority.clean of the step a must be a number from 0 to 1000'],
    [{ ...DESCRIPTION, steps: [{ step: 'a', priority: { clean: 0 }, argsinfo: { b: 1 } }] }, 'argsinfo of the step a must be'],
    [{ ...DESCRIPTION, steps: [{ step: 'a', priority: { clean: 0 }, timeout: 0 }] }, 'timeout of the step a must be'],
    [new Error('it did not end within 60 s'), 'it did not end within 60 s'],
  ])('a program that describes itself as %j stops the list of steps', async (describe, text) => {
    await expect(managersOf(siteMachine(describe).machine)).rejects.toThrow(text);
  });
  it('a manager that does not support the machine is left out', async () => {
    const found = await managersOf(siteMachine({ ...DESCRIPTION, support: 'none' }).machine);
    expect(found.map(({ name }) => name)).toEqual(['BloomeryHardwareManager']);
  });
  it('a real program gets its input, and is killed for an output without an end', async () => {
    const program = `printf '{"got": "%s"}' "$(cat)"`;
    expect(await runProgram('sh', ['-c', program], { input: 'a word' })).toBe('{"got": "a word"}');
    await expect(runProgram('sh', ['-c', 'yes'], { input: '', maxBytes: 1000 })).rejects.toThrow();
  });
});

describe('containers', () => {
  const STEPS = `steps:\n  - {name: wipe_tpm, image: "r.example/tpm:1", interface: deploy, priority: 15, reboot_requested: false, abortable: true}\n`;
  const at = (config: JsonObject, steps = STEPS, has: Readonly<Record<string, string>> = { 'bin/podman': '' }) => {
    const ran: string[] = [];
    const run: Run = async (program, args) => {
      ran.push([program, ...args].join(' '));
      return '';
    };
    const files = { ...has, 'etc/ironic-python-agent.d/mysteps.yaml': steps, 'proc/mounts': '' };
    return { machine: machineOf(files, run, { agent_containers: config }), ran };
  };
  const podman = (ran: readonly string[]): readonly string[] => ran.filter((line) => /^podman (?:pull|run)/.test(line));
  it('only a ramdisk with podman has the manager', async () => {
    expect(await containerManager(at({}, STEPS, {}).machine, new Set())).toBeUndefined();
  });
  it('a step of the file runs its image without a list of the server', async () => {
    const { machine, ran } = at({ run_options: ['--rm --network=host'] });
    await clean(machine, { step: 'wipe_tpm' });
    expect(podman(ran)).toEqual(['podman pull r.example/tpm:1', 'podman run --rm --network=host r.example/tpm:1']);
  });
  it.each<[JsonObject, JsonObject, readonly string[] | string]>([
    [{}, {}, 'Container image docker://r.example/a:1 is not in [container]allowed_containers'],
    [
      { allowed_containers: ['r.example/a:1'] },
      {},
      ['podman pull docker://r.example/a:1', 'podman run --rm --network=host docker://r.example/a:1'],
    ],
    [
      { allowed_containers: ['oci://r.example/a:1'], run_options: ['--rm'] },
      { run_options: '--privileged' },
      ['podman pull docker://r.example/a:1', 'podman run --rm docker://r.example/a:1'],
    ],
    [
      { allow_arbitrary_containers: true },
      { run_options: ['--privileged -v /:/host'], pull_options: '--quiet' },
      ['podman pull --quiet docker://r.example/a:1', 'podman run --privileged -v /:/host docker://r.example/a:1'],
    ],
    [{ allow_arbitrary_containers: true }, { container_url: '--root=/x' }, 'container_url must be a non-empty string'],
  ])('with %j, arguments %j', async (config, args, expected) => {
    const { machine, ran } = at(config);
    const running = clean(machine, { step: 'generic_container_step', args: { container_url: 'docker://r.example/a:1', ...args } });
    if (typeof expected === 'string') {
      await expect(running).rejects.toThrow(expected);
      return;
    }
    await running;
    expect(podman(ran)).toEqual(expected);
  });
  it.each([
    ['steps: [1]', 'must be a mapping'],
    ['steps: [{name: a}]', "missing the required 'image' key"],
    ['steps: [{name: erase_devices, image: i}]', 'collides with an existing hardware manager method'],
    ['steps: [{name: a, image: i, priority: 1, interface: deploy, reboot_requested: false}]', "Missing required key 'abortable'"],
    ['- a', "must contain a mapping with a 'steps' key"],
    ['{', 'Could not read container steps'],
  ])('a file %j is refused', async (steps, text) => {
    await expect(managersOf(at({}, steps).machine)).rejects.toMatchObject({
      type: 'HardwareManagerConfigurationError',
      message: expect.stringContaining(text) as string,
    });
  });
});

const ENTRIES = `BootCurrent: 0003
Timeout: 0 seconds
BootOrder: 0000,0001,0003
Boot0000* UiApp\tFvVol(7cb8bdc9)/FvFile(462caa21)
Boot0001* debian\tHD(1,GPT,9a-b,0x800,0x100000)/File(\\EFI\\debian\\shimx64.efi)
Boot0003  UEFI PXEv4 (MAC:525400AABBCC)\tPciRoot(0x0)/Pci(0x2,0x0)/MAC(525400aabbcc,1)
`;
describe('the firmware', () => {
  const at = (): { readonly machine: Machine; readonly ran: readonly string[] } => {
    const ran: string[] = [];
    const machine = machineOf({}, async (program, args) => {
      ran.push([program, ...args].join(' '));
      return ENTRIES;
    });
    return { machine, ran };
  };
  it('the entries with labels and paths', () => {
    expect(bootEntriesIn(ENTRIES).map(({ number, label }) => [number, label])).toEqual([
      ['0000', 'UiApp'],
      ['0001', 'debian'],
      ['0003', 'UEFI PXEv4 (MAC:525400AABBCC)'],
    ]);
  });
  it.each<[JsonObject, readonly string[]]>([
    [{}, ['0001']],
    [{ match_patterns: ['fvfile', 'MAC\\('] }, ['0000', '0003']],
    [{ match_patterns: ['debian$'] }, []],
    [{ match_patterns: [] }, []],
  ])('arguments %j delete %j', async (args, numbers) => {
    const { machine, ran } = at();
    expect(((await cleanNvram(machine, args))['removed'] as readonly JsonObject[]).map(({ number }) => number)).toEqual(numbers);
    expect(ran.slice(1)).toEqual(numbers.map((number) => `efibootmgr --quiet --bootnum ${number} --delete-bootnum`));
  });
  it.each<[unknown]>([['x'], [[1]], [['(']], [Array.from({ length: 101 }, () => 'a')]])('match_patterns %j are refused', async (given) => {
    const { machine, ran } = at();
    await expect(cleanNvram(machine, { match_patterns: given })).rejects.toThrow('The match_patterns must be a list of strings: ');
    expect(ran).toEqual([]);
  });
  it('the crashes that the firmware keeps are erased where the kernel shows them', async () => {
    const machine = machineOf(
      { 'proc/mounts': 'pstore /sys/fs/pstore pstore rw 0 0\n', 'sys/fs/pstore/dmesg-efi-1': 'x', 'sys/fs/pstore/sub/a': 'x' },
      async () => '',
    );
    expect(await erasePstore(machine)).toEqual({ erased: ['dmesg-efi-1', 'sub'] });
    expect(existsSync(join(machine.root, 'sys/fs/pstore/dmesg-efi-1'))).toBe(false);
    expect(await erasePstore(machineOf({ 'proc/mounts': '' }, async () => ''))).toEqual({ erased: [] });
  });
});

describe('files for instances', () => {
  const good = { path: '/etc/x', content: 'YQ==' };
  it.each<[unknown, unknown, string]>([
    [{}, [], 'The `inject_files` node property must be a list, got dict'],
    [[], 'x', 'The `files` argument must be a list, got str'],
    [[], [{ ...good, other: 1 }], 'unexpected fields in '],
    [[], [{ content: 'YQ==' }], 'expected a path in '],
    [[], [{ path: '/x', content: 'YQ==' }], 'in root directory requires "partition"'],
    [[], [{ path: '/etc/', content: 'YQ==' }], 'directories not supported for '],
    [[], [{ ...good, deleted: true }], 'content cannot be used with deleted in '],
    [[], [{ ...good, mode: '0644' }], 'mode must be a number in '],
    [[], [{ ...good, mode: 0o10000 }], 'at most 4095'],
    [[], [{ ...good, dirmode: 2 ** 40 }], 'at most 4095'],
    [[], [{ ...good, owner: 2 ** 32 - 1 }], 'at most 4294967294'],
    [[], [{ ...good, group: -1 }], 'group must be a number in '],
    [[], [{ path: '/etc/../../x', content: 'YQ==' }], 'the path must not have .. in '],
    [[], [{ ...good, partition: '; rm' }], 'expected a number or a device as partition in '],
  ])('%j and %j are refused', (own, given, text) => expect(() => readInjectedFiles(own, given)).toThrow(text));
  it('those of the node come first', () =>
    expect(readInjectedFiles([good], [{ ...good, path: '/etc/y' }]).map(({ path }) => path)).toEqual(['/etc/x', '/etc/y']));
  it('URLs get values of the node', () => {
    const values = { node: { uuid: 'u', extra: { a: 7 } }, ports: [{ address: 'm' }] };
    expect(filledUrl('http://h/{node[uuid]}/{node[extra][a]}/{ports[0][address]}/{{x}}', values)).toBe('http://h/u/7/m/{x}');
    expect(() => filledUrl('http://h/{node[secret]}', values)).toThrow('names node[secret], which is not there');
    expect(() => filledUrl('http://h/{node.__class__}', values)).toThrow('which is not there');
  });
  it('a FIFO of the instance is not opened, which would wait for a reader for ever', async () => {
    const machine = machineOf({ 'etc/x': 'old' }, async () => '');
    const fifo = join(machine.root, 'etc/fifo');
    execFileSync('mkfifo', [fifo]);
    for (const path of ['/etc/fifo', '/etc'])
      await expect(injectAt(machine, machine.root, { ...good, path }, true)).rejects.toThrow('no regular file');
    await injectAt(machine, machine.root, { ...good, mode: 0o600 }, true);
    expect(readFileSync(join(machine.root, 'etc/x'), 'utf8')).toBe('a');
    expect(statSync(join(machine.root, 'etc/x')).mode & 0o7777).toBe(0o600);
  });
  it('a server without the content leaves the file system as it is', async () => {
    const machine = machineOf({ 'etc/x': 'old' }, async () => '');
    for (const path of ['/etc/x', '/new/folder/y'])
      await expect(injectAt(machine, machine.root, { path, content: 'http://127.0.0.1:1/x' }, true)).rejects.toThrow('ECONNREFUSED');
    expect(readFileSync(join(machine.root, 'etc/x'), 'utf8')).toBe('old');
    expect(existsSync(join(machine.root, 'new'))).toBe(false);
  });
  it('links of the instance stay in the instance', async () => {
    const root = fileTree({ 'etc/motd': 'x', 'var/run': '->/run' });
    symlinkSync('/etc/shadow', join(root, 'etc/passwd'));
    symlinkSync('../../../../../../etc', join(root, 'up'));
    symlinkSync('loop', join(root, 'loop'));
    expect(await resolved(root, '/etc/passwd')).toBe(join(root, 'etc/shadow'));
    expect(await resolved(root, '/up/new')).toBe(join(root, 'etc/new'));
    expect(await resolved(root, '/var/run/new/file')).toBe(join(root, 'run/new/file'));
    expect(await resolved(root, '/loop/x')).toBeUndefined();
  });
});

describe('commands', () => {
  it('a flow runs commands one after the other, and checks them first', async () => {
    const { machine } = siteMachine(DESCRIPTION);
    const flow = commandsOf(machine)['flow.start_flow']!;
    await expect(flow.run({ flow: [{ 'clean.nothing': {} }] }, () => {})).rejects.toThrow('Unknown command: clean.nothing');
    await expect(flow.run({ flow: 'x' }, () => {})).rejects.toThrow('flow must be a list');
    const step = { step: { step: 'update_nic' }, node: {}, ports: [] };
    expect(await flow.run({ flow: [{ 'clean.execute_clean_step': step }, { 'standby.get_partition_uuids': {} }] }, () => {})).toBeNull();
    const bad = { step: { step: 'none' }, node: {}, ports: [] };
    await expect(flow.run({ flow: [{ 'clean.execute_clean_step': bad }] }, () => {})).rejects.toThrow(
      'clean.execute_clean_step was failed',
    );
  });
  it('a lockdown takes the interfaces down and leaves the mark for init', async () => {
    const ran: string[] = [];
    const machine = machineOf({ 'sys/class/net/eth0/address': 'm', 'sys/class/net/lo/address': '0' }, async (program, args) => {
      ran.push([program, ...args].join(' '));
      return '';
    });
    mkdirSync(join(machine.root, 'run'));
    const retired = new Promise<void>((resolve) => Object.assign(machine, { retire: resolve }));
    await commandsOf(machine)['system.lockdown']!.run({}, () => {});
    await retired;
    expect(ran).toEqual(['ip link set eth0 down']);
    expect(statSync(join(machine.root, 'run/locked-down')).isFile()).toBe(true);
  });
  it('the lookup of another is taken by agents without a server alone', async () => {
    const machine = machineOf({}, async () => '');
    await expect(commandsOf(machine)['poll.set_node_info']!.run({}, () => {})).rejects.toThrow('standalone mode');
  });
});
