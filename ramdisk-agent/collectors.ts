/** The collectors, with the names and keys of ironic-python-agent. The inspection itself implements `default` and `logs`. */
import type { JsonObject } from '../model/records';
import type { Machine } from './machine';
import { findDisks, inventoried } from './inventory/disks';
import { readDmi } from './inventory/dmi';
import { readPciDevices } from './inventory/interfaces';
import type { Tlvs } from './inventory/lldp';
import { readNuma } from './inventory/numa';
import { createSmartReader } from './inventory/smart';
import { readUsbDevices } from './inventory/usb';

/** Rejects on failure: the inspection continues and reports the error. */
type Collector = (machine: Machine, lldp: Readonly<Record<string, Tlvs>>, signal: AbortSignal) => Promise<JsonObject>;

/** Benchmarks take minutes on large machines. */
const HARDWARE_DETECT_MS = 3_600_000;

export const COLLECTORS: Readonly<Record<string, Collector>> = {
  'pci-devices': async ({ tree }) => ({ pci_devices: readPciDevices(tree) }),
  'usb-devices': async ({ tree }) => ({ usb_devices: readUsbDevices(tree) }),
  'numa-topology': async ({ tree, log }) => {
    const topology = readNuma(tree);
    if (topology === null) log.warn('The kernel reports no NUMA nodes: no numa_topology');
    return topology === null ? {} : { numa_topology: topology };
  },
  'dmi-decode': async ({ run }, _, signal) => ({
    dmi: readDmi(await run('dmidecode', ['-t', 'bios', '-t', 'processor', '-t', 'memory'], { signal })),
  }),
  // Of our agent alone.
  smart: async (machine, _, signal) => {
    const host = { tree: machine.tree, run: machine.run, dev: '/dev' };
    const read = await createSmartReader(machine.clock).read(host, findDisks(machine).map(inventoried), signal);
    if (read === undefined) machine.log.warn('There is no smartctl in this ramdisk: the collector smart adds nothing');
    return read === undefined ? {} : { smart: read };
  },
  lldp: async (_, received) => ({ lldp_raw: received }),
  // The program is part of python-hardware, which custom ramdisks may contain. Our ramdisk has neither it nor benchmarks of its own.
  'extra-hardware': async ({ run, log, parameters }, _, signal) => {
    const benchmarks = parameters.inspectionBenchmarks;
    const args = benchmarks.length > 0 ? ['--benchmark', ...benchmarks] : [];
    try {
      return { data: JSON.parse(await run('hardware-detect', args, { timeoutMs: HARDWARE_DETECT_MS, signal })) as unknown };
    } catch (error) {
      if (((error as Error).cause as { code?: unknown } | undefined)?.code !== 'ENOENT') throw error;
      log.warn('There is no hardware-detect in this ramdisk: the collector extra-hardware adds nothing');
      return {};
    }
  },
};
