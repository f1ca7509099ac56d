/**
 * What the disks say of themselves, by smartctl(8) of smartmontools, which speaks with ATA, SCSI and NVMe disks. A disk that hangs costs a
 * limited time, and is not asked again before its program has ended: the kernel may keep it for hours.
 */
import type { Clock } from '../../model/clock';
import { reasonOf } from '../../model/errors';
import { isObject } from '../../model/json';
import type { InventoryDisk } from '../../model/records';
import { MAX_DISKS, type DiskHealth } from '../../model/rules/health-smart';
import type { Run } from '../system/run';
import type { Tree } from '../system/tree';

type SmartDisk = Pick<InventoryDisk, 'name' | 'model' | 'serial'>;
/** Milliseconds of one disk, and disks at a time. */
const DISK_MS = 20_000;
const WIDTH = 4;
/** Milliseconds after which no further disk is asked. */
const ALL_MS = 60_000;
/** Characters of one disk. */
const MAX_OUTPUT = 1_000_000;
const MAX_REASON = 100;
/** A disk in standby stays so. */
const ARGUMENTS = ['--json=c', '--nocheck=standby', '--info', '--health', '--attributes', '--log=ssd'];
/** By the kernel's name. smartctl finds the kind itself only below /dev, and containers have the host's elsewhere. */
const KINDS: readonly (readonly [prefix: string, kind: string])[] = [
  ['nvme', 'nvme'],
  ['sd', 'sat,auto'],
];
/** Several paths lead to one disk: the first of them. */
const pathOf = (tree: Tree, name: string): string => {
  const own = name.replace('/dev/', '');
  return own.startsWith('dm-') ? (tree.list(`/sys/block/${own}/slaves`)[0] ?? own) : own;
};

type Path = readonly string[];
function at(said: unknown, path: Path): unknown {
  return path.reduce<unknown>((value, member) => (isObject(value) ? value[member] : undefined), said);
}
const numberAt = (said: unknown, ...paths: readonly Path[]): number | null => {
  const found = paths.map((path) => at(said, path)).find((value) => Number.isFinite(value));
  return found === undefined ? null : (found as number);
};
const listAt = (said: unknown, path: Path): readonly unknown[] => {
  const found = at(said, path);
  return Array.isArray(found) ? (found as readonly unknown[]) : [];
};
/** The raw value of an ATA attribute. Makers put other numbers above the count, and smartctl's text has the count first. */
function attribute(said: unknown, ...ids: readonly number[]): number | null {
  const row = listAt(said, ['ata_smart_attributes', 'table']).find((item) => ids.includes(at(item, ['id']) as number));
  const text = at(row, ['raw', 'string']);
  const value = typeof text === 'string' ? parseInt(text, 10) : NaN;
  return Number.isNaN(value) ? null : value;
}
/** Device Statistics (ACS-4 §9.5), page 7: Percentage Used Endurance Indicator. */
function ataLifeUsed(said: unknown): number | null {
  const pages = listAt(said, ['ata_device_statistics', 'pages']);
  const page = pages.find((item) => at(item, ['number']) === 7);
  const row = listAt(page, ['table']).find((item) => at(item, ['offset']) === 8);
  return numberAt(row, ['value']);
}
const [REALLOCATED, PENDING] = [5, 197];
const plain = (text: string): string => text.replace(/[\p{Cc}\s]+/gu, ' ').trim();

/** @param output of smartctl @internal */
export function parseSmart(output: string): Omit<DiskHealth, 'name' | 'serial' | 'model'> {
  if (output.length > MAX_OUTPUT) return { unread: 'smartctl says too much' };
  let said: unknown;
  try {
    said = JSON.parse(output);
  } catch {
    return { unread: 'smartctl did not answer in JSON' };
  }
  const passed = at(said, ['smart_status', 'passed']);
  const read: Omit<DiskHealth, 'name'> = {
    passed: typeof passed === 'boolean' ? passed : null,
    critical_warning: numberAt(said, ['nvme_smart_health_information_log', 'critical_warning']),
    life_used:
      numberAt(
        said,
        ['nvme_smart_health_information_log', 'percentage_used'],
        ['scsi_percentage_used_endurance_indicator'],
        ['endurance_used', 'current_percent'],
      ) ?? ataLifeUsed(said),
    reallocated_sectors: attribute(said, REALLOCATED) ?? numberAt(said, ['scsi_grown_defect_list']),
    pending_sectors: attribute(said, PENDING),
    temperature: numberAt(said, ['temperature', 'current']),
    power_on_hours: numberAt(said, ['power_on_time', 'hours']),
  };
  if (Object.values(read).some((value) => value !== null)) return read;
  const [message] = listAt(said, ['smartctl', 'messages']);
  const text = at(message, ['string']);
  return { unread: typeof text === 'string' ? plain(text).slice(0, MAX_REASON) : 'the disk has no SMART' };
}

interface SmartHost {
  readonly tree: Tree;
  readonly run: Run;
  /** Where the host's /dev is: /dev, unless the program runs in a container. */
  readonly dev: string;
}
interface SmartReader {
  /**
   * Of those disks that can have SMART. Never rejects, except with the signal's reason.
   * @returns undefined: there is no smartctl
   */
  read(host: SmartHost, disks: readonly SmartDisk[], signal?: AbortSignal): Promise<readonly DiskHealth[] | undefined>;
}
const SILENT = { unread: 'the disk does not answer' };
export function createSmartReader(clock: Clock): SmartReader {
  /** The disks whose program still runs, by their paths. */
  const running = new Set<string>();
  const ask = async (run: Run, kind: string, path: string): Promise<ReturnType<typeof parseSmart> | 'no program'> => {
    if (running.has(path)) return SILENT;
    running.add(path);
    const asked = run('smartctl', [...ARGUMENTS, '--device', kind, path], { timeoutMs: DISK_MS, anyStatus: true })
      .then(parseSmart, (error: unknown) => {
        const isMissing = ((error as Error).cause as { readonly code?: unknown } | undefined)?.code === 'ENOENT';
        return isMissing ? ('no program' as const) : { unread: plain(reasonOf(error)).slice(0, MAX_REASON) };
      })
      .finally(() => running.delete(path));
    // The program is killed before, but the kernel may not let it end.
    const over = new AbortController();
    const late = clock.sleep(DISK_MS + 1000, over.signal).then(
      () => SILENT,
      () => SILENT,
    );
    try {
      return await Promise.race([asked, late]);
    } finally {
      over.abort();
    }
  };
  return {
    async read({ tree, run, dev }, disks, signal) {
      const now = (): number => clock.monotonic?.() ?? clock.now();
      const until = now() + ALL_MS;
      const wanted = disks
        .flatMap((disk) => {
          const path = pathOf(tree, disk.name);
          const [, kind] = KINDS.find(([prefix]) => path.startsWith(prefix)) ?? [];
          return kind === undefined ? [] : [{ disk, kind, path: `${dev}/${path}` }];
        })
        .slice(0, MAX_DISKS);
      const read: DiskHealth[] = [];
      let isMissing = false;
      let next = 0;
      const lane = async (): Promise<void> => {
        while (next < wanted.length && !isMissing) {
          signal?.throwIfAborted();
          const at = next++;
          const { disk, kind, path } = wanted[at]!;
          const { name, serial, model } = disk;
          const said = now() > until ? { unread: 'the disks before it took too long' } : await ask(run, kind, path);
          if (said === 'no program') isMissing = true;
          else read[at] = { name, serial, model, ...said };
        }
      };
      await Promise.all(Array.from({ length: WIDTH }, lane));
      return isMissing ? undefined : read;
    },
  };
}
