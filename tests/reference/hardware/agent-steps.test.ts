/** What ironic-python-agent offers, read from it, and what our agent offers: each difference is listed here with its reason. */
import { join } from 'node:path';
import type { JsonObject } from '../../../model/records';
import { COLLECTORS } from '../../../ramdisk-agent/collectors';
import { commandsOf } from '../../../ramdisk-agent/extensions';
import type { Machine } from '../../../ramdisk-agent/machine';
import { type HardwareManager, STEP_KINDS, SUPPORT, type StepKind } from '../../../ramdisk-agent/managers/manager';
import { containerManager } from '../../../ramdisk-agent/managers/containers';
import { mellanoxManager } from '../../../ramdisk-agent/managers/mellanox';
import { parseParameters, PARAMETER_NAMES } from '../../../ramdisk-agent/parameters';
import { genericManager } from '../../../ramdisk-agent/steps';
import { tree } from '../../../ramdisk-agent/system/tree';
import { programs } from '../../lab/support/venv';
import { fileTree } from '../../ramdisk-agent/support';
import { inPython } from '../random-cases';

interface TheirStep extends JsonObject {
  readonly step: string;
}
interface Theirs {
  readonly steps: Readonly<Record<StepKind, Readonly<Record<string, readonly TheirStep[]>>>>;
  readonly versions: Readonly<Record<string, string>>;
  readonly support: Readonly<Record<string, number>>;
  /** Name → whether it runs in the background. */
  readonly commands: Readonly<Record<string, boolean>>;
  readonly parameters: readonly string[];
  readonly collectors: readonly string[];
}
/** Our manager → theirs. */
const MANAGERS: Readonly<Record<string, string>> = {
  BloomeryHardwareManager: 'GenericHardwareManager',
  MellanoxDeviceHardwareManager: 'MellanoxDeviceHardwareManager',
  ContainerHardwareManager: 'ContainerHardwareManager',
};
/** What only our agent has. */
const OURS_ALONE = {
  steps: { clean: [], deploy: [], service: ['save_disk', 'snapshot'] },
  commands: ['kexec.execute', 'kexec.load'],
  collectors: ['smart'],
  // ipa-agent-token, ipa-debug and others are in both; ipa-ca-file is an option of their configuration file.
  parameters: ['BOOTIF', 'boot_method', 'ipa-ca-file', 'ipa-disk-timeout'],
} as const;
/** The inspection itself has them. */
const INSPECTED = ['default', 'logs'];

const root = fileTree({
  'sys/class/net/eth0/device/vendor': '0x15b3\n',
  'bin/podman': '',
});
const machine = { tree: tree(root), root, parameters: parseParameters(''), state: { node: {}, config: {} } } as unknown as Machine;
let theirs: Theirs;
let ours: readonly HardwareManager[];
beforeAll(async () => {
  const python = await programs('agent-functions', ['ironic-python-agent==13.0.0']);
  [theirs] = (await inPython<Theirs>(python, join(__dirname, 'agent-steps.py'), [], 300_000)) as [Theirs];
  ours = [genericManager(0), mellanoxManager(machine)!, (await containerManager(machine, new Set()))!];
}, 900_000);

it.each(STEP_KINDS)('the %s steps have the same managers, names, interfaces, priorities and arguments', (kind) => {
  for (const manager of ours) {
    const rows = manager.steps.filter(
      ({ priority, step }) => priority[kind] !== undefined && !(OURS_ALONE.steps[kind] as readonly string[]).includes(step),
    );
    const shown = rows.map((row) => ({
      step: row.step,
      interface: row.interface,
      priority: row.priority[kind],
      reboot_requested: row.rebootRequested === true,
      arguments: Object.entries((row.argsinfo ?? {}) as Record<string, JsonObject>).map(([name, { required }]) => [name, required]),
    }));
    const expected = theirs.steps[kind][MANAGERS[manager.name]!]!.map((row) => ({
      step: row.step,
      interface: row['interface'],
      priority: row['priority'],
      reboot_requested: row['reboot_requested'],
      arguments: Object.entries((row['argsinfo'] ?? {}) as Record<string, JsonObject>).map(([name, { required }]) => [name, required]),
    }));
    const byName = (a: { readonly step: string }, b: { readonly step: string }): number => a.step.localeCompare(b.step);
    expect([manager.name, shown.sort(byName)]).toEqual([manager.name, expected.sort(byName)]);
  }
});
it('steps that their conductors may abort, ours may too', () => {
  for (const kind of STEP_KINDS)
    for (const manager of ours)
      for (const row of theirs.steps[kind][MANAGERS[manager.name]!]!)
        if (row['abortable'] !== undefined)
          expect([row.step, manager.steps.find(({ step }) => step === row.step)?.abortable]).toEqual([row.step, row['abortable']]);
});
it('managers of the same name have the same version, and the levels of support are the same', () => {
  for (const { name, version } of ours.slice(1)) expect([name, version]).toEqual([name, theirs.versions[name]]);
  expect(Object.fromEntries(Object.entries(SUPPORT).map(([name, value]) => [name.toUpperCase().replace('-', '_'), value]))).toEqual(
    theirs.support,
  );
});
it('the commands are the same, and run in the background or not', () => {
  const commands = Object.entries(commandsOf(machine)).filter(([name]) => !(OURS_ALONE.commands as readonly string[]).includes(name));
  const shown = commands.map(([name, { inBackground }]) => [name, inBackground === true] as const);
  expect(Object.fromEntries(shown)).toEqual(theirs.commands);
});
it('the collectors of inspections are the same', () => {
  const names = [...Object.keys(COLLECTORS), ...INSPECTED].filter((name) => !(OURS_ALONE.collectors as readonly string[]).includes(name));
  expect(names.sort()).toEqual(theirs.collectors);
});
it('each kernel parameter of theirs is one of ours', () => {
  const known = PARAMETER_NAMES.filter((name) => !(OURS_ALONE.parameters as readonly string[]).includes(name));
  expect([...known].sort()).toEqual([...theirs.parameters].sort());
});
