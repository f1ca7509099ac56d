/** Compares which software RAID is refused, its disks and its partitions with ironic-python-agent's own functions, on many random machines. */
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { AgentError } from '../../../model/agent/errors';
import { bootOf, inOrder, layoutOf, placeVolumes, readVolumes } from '../../../model/agent/software-raid';
import type { JsonObject } from '../../../model/records';
import { programs } from '../../lab/support/venv';
import { inPython, numbers } from '../random-cases';

const CASES = 5000;
const GiB = 2 ** 30;
const MiB = 2 ** 20;
interface Case {
  readonly disks: readonly { readonly name: string; readonly size: number; readonly serial: string }[];
  readonly asked: readonly JsonObject[];
  readonly node: JsonObject;
}
interface Planned {
  readonly error?: string;
  readonly label?: string;
  readonly mode?: string;
  readonly volumes?: readonly (readonly string[])[];
  /** Disk → starts and ends as parted takes them. */
  readonly partitions?: Readonly<Record<string, readonly (readonly [string, string])[]>>;
}

function randomCase(below: (n: number) => number): Case {
  const pick = <T>(...all: readonly T[]): T => all[below(all.length)]!;
  const sometimes = (value: () => JsonObject, outOf: number): JsonObject => (below(outOf) === 0 ? value() : {});
  const disks = Array.from({ length: 2 + below(4) }, (_, n) => ({ name: `/dev/sd${'abcdef'[n]!}`, size: 1000 * GiB, serial: `S${n}` }));
  const hint = (): JsonObject =>
    pick<JsonObject>(
      { serial: pick('S0', 'S1', 'S2', 'S3', 'S9') },
      { name: pick('/dev/sda', 's== /dev/sdc') },
      { size: pick('> 10', '> 5000') },
    );
  const hints = () => Array.from({ length: pick(1, 2, 2, 3, 4) }, hint);
  const asked = Array.from({ length: pick(1, 1, 2, 2, 2, 3) }, (_, n) => ({
    raid_level: n === 0 && below(6) > 0 ? '1' : pick('0', '1', '1+0', '5', '6', '5+0', '2'),
    size_gb: pick<number | string>('MAX', 'MAX', 100, 7, '50'),
    ...(below(12) > 0 ? { controller: 'software' } : sometimes(() => ({ controller: 'RAID.1' }), 2)),
    ...sometimes(() => ({ volume_name: pick('root', 'data', 'x') }), 2),
    ...sometimes(() => ({ is_root_volume: pick(true, false) }), 2),
    ...sometimes(() => ({ physical_disks: below(10) === 0 ? pick<unknown>('sda', ['/dev/sda', '/dev/sdb']) : hints() }), 3),
  }));
  const properties = {
    ...sometimes(() => ({ capabilities: pick('boot_mode:uefi', 'boot_mode:bios', 'boot_mode:bios,disk_label:gpt', 'disk_label:gpt') }), 2),
    ...sometimes(() => ({ skip_block_devices: [{ volume_name: 'data' }] }), 6),
  };
  const instance = sometimes(() => ({ capabilities: { secure_boot: pick('true', 'false'), disk_label: pick('gpt', 'msdos') } }), 4);
  return { disks, asked, node: { uuid: 'u', properties, instance_info: instance } };
}

function ours({ disks, asked, node }: Case): Planned {
  try {
    const volumes = inOrder(placeVolumes(readVolumes({ logical_disks: asked }, node, disks.length), disks));
    const boot = bootOf(node, 'bios');
    const involved = disks.filter(({ name }) => volumes.some((volume) => volume.disks.includes(name)));
    const partitions = involved.map(
      (disk) => [disk.name, layoutOf(volumes, disk, boot).partitions.map((each) => inParted(each, disk.size))] as const,
    );
    return {
      label: boot.label,
      mode: boot.bootMode,
      volumes: volumes.map((volume) => volume.disks),
      partitions: Object.fromEntries(partitions),
    };
  } catch (error) {
    if (error instanceof AgentError && error.type === 'SoftwareRAIDError') return { error: error.message };
    throw error;
  }
}
/** Where parted is told the first free sector or 1 MiB less than the disk, the partition begins and ends at a whole MiB. */
function inParted({ start, size }: { readonly start: number; readonly size: number }, disk: number): readonly [string, string] {
  const at = (place: number): string => (place % GiB === 0 ? `${place / GiB}GiB` : place === MiB ? '2048s' : `${place / MiB}MiB`);
  return [at(start), start + size === disk - MiB ? '-1' : at(start + size)];
}

/** Errors by what they are about: hints and disks are written as Python or JSON. */
const kindOf = ({ error }: Planned): string | undefined => error?.replace(/physical disk \{.*$/, 'physical disk');

/** Whether we refuse more: in the same words, and then ours. The real agent fails later, after it has changed disks. */
function isStricter(mine: Planned, theirs: Planned): boolean {
  if (mine.error === undefined) return false;
  if (theirs.error === undefined) return /: There is no RAID level|: Software RAID level \S+ needs at least \d disks/.test(mine.error);
  return mine.error.startsWith(`${theirs.error}; There is no RAID level`);
}

it('refuses, places and divides as ironic-python-agent does', async () => {
  const below = numbers(20_261_127);
  const cases = Array.from({ length: CASES }, () => randomCase(below));
  const agent = await programs('agent-functions', ['ironic-python-agent==13.0.0']);
  const theirs = await inPython<Planned>(agent, join(__dirname, 'software-raid.py'), cases, 500_000);
  const counts = { same: 0, accepted: 0, stricter: 0 };
  const differences = cases.flatMap((each, n) => {
    const [mine, other] = [ours(each), theirs[n]!];
    const isSame = mine.error === undefined || other.error === undefined ? isDeepStrictEqual(mine, other) : kindOf(mine) === kindOf(other);
    if (isSame) counts.same++;
    if (isSame && mine.error === undefined) counts.accepted++;
    if (isSame) return [];
    if (isStricter(mine, other)) return (counts.stricter++, []);
    return [{ case: each, mine, other }];
  });
  expect(differences.slice(0, 3)).toEqual([]);
  // Most cases are compared, and many of them are possible.
  expect(counts.same).toBeGreaterThan(CASES * 0.6);
  expect(counts.accepted).toBeGreaterThan(CASES * 0.05);
  process.stderr.write(`software RAID: ${JSON.stringify(counts)}\n`);
}, 900_000);
