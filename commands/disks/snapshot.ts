/** `bloomery snapshot …`: saves disks of nodes as images, and lists, shows and deletes these (docs/snapshots.md). */
import { setTimeout as delay } from 'node:timers/promises';
import { Option, type Command } from 'commander';
import { isObject } from '../../model/json';
import { printable } from '../../model/log';
import type { JsonObject, SnapshotRecord } from '../../model/records';
import { get, post, remove } from '../endpoint';
import { print, printJson, reported } from '../output';

interface Arguments {
  readonly url?: string;
  readonly json?: boolean;
}
type Shown = Readonly<Partial<SnapshotRecord>> & Pick<SnapshotRecord, 'uuid' | 'state'>;

const PAUSE_MS = 2000;
const isSnapshot = (value: unknown): value is Shown =>
  isObject(value) && typeof value['uuid'] === 'string' && typeof value['state'] === 'string';
const accept = (body: unknown): Shown | undefined => (isSnapshot(body) ? body : undefined);
const pathOf = (uuid: string): string => `snapshots/${encodeURIComponent(uuid)}`;
const size = (bytes: number | null | undefined): string => (typeof bytes === 'number' ? `${(bytes / 2 ** 20).toFixed(0)} MiB` : '-');

/** A line for each snapshot. */
const line = ({
  uuid,
  node_name: name,
  node_uuid: node,
  state,
  progress = 0,
  size: bytes,
  description,
  last_error: error,
}: Shown): string =>
  [
    uuid,
    name ?? node ?? '-',
    state === 'saving' ? `saving (${progress} %)` : state,
    size(bytes),
    ...[error, description].filter((text) => (text ?? '') !== ''),
  ]
    .map((text) => printable(String(text)))
    .join('  ');

/** A line for each partition, with what was done with it. */
const partitionLine = ({ number, file_system: kind, blocks, left_out: leftOut, reason }: JsonObject): string =>
  [
    `  partition ${String(number)}`,
    typeof kind === 'string' ? kind : 'unknown',
    blocks === 'used' ? `used blocks, ${size(leftOut as number)} left out` : `all blocks: ${String(reason)}`,
  ]
    .map(printable)
    .join('  ');
const imageLines = ({ storage, image_id: id }: Shown): readonly string[] =>
  storage === 'glance' ? [`  image ${printable(String(id))} of Glance`] : [];
function show(snapshot: Shown, { json }: Arguments): void {
  if (json) printJson(snapshot);
  else print([line(snapshot), ...imageLines(snapshot), ...(snapshot.partitions ?? []).map(partitionLine)].join('\n'));
}

interface CreateArguments extends Arguments {
  readonly description?: string;
  readonly blocks?: string;
  readonly wait?: boolean;
}
const create = (node: string, given: CreateArguments): Promise<void> =>
  reported(async () => {
    const { url, description, blocks } = given;
    const body = { ...(description === undefined ? {} : { description }), ...(blocks === undefined ? {} : { blocks }) };
    let snapshot = await post(url, `nodes/${encodeURIComponent(node)}/snapshots`, body, accept);
    while (given.wait && snapshot.state !== 'available' && snapshot.state !== 'failed') {
      await delay(PAUSE_MS);
      snapshot = await get(url, pathOf(snapshot.uuid), accept);
    }
    show(snapshot, given);
    if (snapshot.state === 'failed') process.exitCode = 1;
  });

const list = (given: Arguments & { readonly node?: string }): Promise<void> =>
  reported(async () => {
    const path = given.node === undefined ? 'snapshots' : `nodes/${encodeURIComponent(given.node)}/snapshots`;
    const snapshots = await get(given.url, path, (body) => {
      const listed = (body as { readonly snapshots?: unknown } | undefined)?.snapshots;
      return Array.isArray(listed) && listed.every(isSnapshot) ? listed : undefined;
    });
    if (given.json) printJson(snapshots);
    else print(snapshots.length === 0 ? 'no snapshots' : snapshots.map(line).join('\n'));
  });

export function addSnapshotCommands(program: Command): void {
  const snapshot = program.command('snapshot').description('Save disks of nodes as images, and manage these.');
  const add = (name: string, about: string): Command =>
    snapshot.command(name).description(about).option('--url <url>', 'the server, as for bloomery why').option('--json', 'print JSON');
  add('create', 'Save the root disk of an active node. Its machine boots the ramdisk, and then its own system again.')
    .argument('<node>', 'UUID or name of the node')
    .option('--description <text>', 'a description of the snapshot')
    .addOption(new Option('--blocks <which>', 'the blocks that the file systems use (default), or all').choices(['used', 'all']))
    .option('--wait', 'wait until the snapshot is available; the status is 1 if it fails')
    .action(create);
  add('list', 'List snapshots.').option('--node <node>', 'only those of this node').action(list);
  add('show', 'Show a snapshot.')
    .argument('<uuid>', 'UUID of the snapshot')
    .action((uuid: string, given: Arguments) => reported(async () => show(await get(given.url, pathOf(uuid), accept), given)));
  add('delete', 'Delete a snapshot and its file.')
    .argument('<uuid>', 'UUID of the snapshot')
    .action((uuid: string, given: Arguments) =>
      reported(async () => {
        await remove(given.url, pathOf(uuid));
        print(`${uuid}: deleted`);
      }),
    );
}
