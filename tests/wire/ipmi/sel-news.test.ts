/** Reading the event log of a BMC from where the last reading ended, whatever the BMC did to its log meanwhile. */
import { COMMANDS, IpmiError, type CommandCode } from '../../../wire/ipmi/constants';
import { readNewSel, type SelPosition } from '../../../wire/ipmi/records/sel';
import { refusal } from '../../support/odd-ipmi/stores';

const TIME = 0x6000_0000;
/** An entry about a sensor. @param at seconds after TIME; undefined: the BMC's clock is not set */
const entry = (id: number, sensor: number, at: number | undefined = sensor): Buffer => {
  const bytes = Buffer.from([0, 0, 2, 0, 0, 0, 0, 0x20, 0, 4, 4, sensor, 1, 2, 0xff, 0xff]);
  bytes.writeUInt16LE(id, 0);
  bytes.writeUInt32LE(at === undefined ? 5 : TIME + at, 3);
  return bytes;
};
interface Log {
  readonly entries: readonly Buffer[];
  readonly erased?: number;
  readonly overflow?: true;
  /** The BMC has no time of the latest addition. */
  readonly hasNoTimes?: true;
  /** The BMC does not know the ID of the last entry. */
  readonly hasNoLast?: true;
}
const same = (one: CommandCode, other: CommandCode): boolean => one[0] === other[0] && one[1] === other[1];
function bmcWith({ entries, erased = 0, overflow, hasNoTimes, hasNoLast }: Log) {
  const asked: string[] = [];
  const ask = async (code: CommandCode, data: readonly number[]): Promise<Buffer> => {
    if (same(code, COMMANDS.getSelInfo)) {
      asked.push('info');
      const info = Buffer.alloc(14);
      info.writeUInt16LE(entries.length, 1);
      info.writeUInt32LE(hasNoTimes ? 0xffff_ffff : (entries.at(-1)?.readUInt32LE(3) ?? 0xffff_ffff), 5);
      info.writeUInt32LE(erased, 9);
      info[13] = overflow ? 0x80 : 0;
      return info;
    }
    if (!same(code, COMMANDS.getSelEntry)) throw refusal(0xc1);
    const id = data[2]! | (data[3]! << 8);
    asked.push(`entry ${id}`);
    const index =
      id === 0 ? 0 : id === 0xffff ? (hasNoLast ? -1 : entries.length - 1) : entries.findIndex((one) => one.readUInt16LE(0) === id);
    const found = entries[index];
    if (!found) throw refusal(0xcb);
    return Buffer.concat([entries[index + 1]?.subarray(0, 2) ?? Buffer.from([0xff, 0xff]), found]);
  };
  return { ask, asked };
}
const never = (): boolean => false;
const positionIn = async (log: Log): Promise<SelPosition> => (await readNewSel(bmcWith(log).ask, undefined, never)).position;

const OLD = [entry(1, 1), entry(2, 2), entry(3, 3)];
const news = { fresh: [4], wasCleared: false };
it.each<[string, Log, Log, { readonly fresh: readonly number[]; readonly wasCleared: boolean; readonly requests?: number }]>([
  ['nothing happened: one request', { entries: OLD }, { entries: OLD }, { fresh: [], wasCleared: false, requests: 1 }],
  ['an entry was added', { entries: OLD }, { entries: [...OLD, entry(4, 4)] }, { ...news, requests: 3 }],
  ['an entry was added in the same second', { entries: OLD }, { entries: [...OLD, entry(4, 4, 3)] }, news],
  ['the first entry ever', { entries: [] }, { entries: [entry(1, 4)] }, news],
  ['the log stays empty: one request', { entries: [] }, { entries: [] }, { fresh: [], wasCleared: false, requests: 1 }],
  ['the log was cleared', { entries: OLD }, { entries: [], erased: TIME }, { fresh: [], wasCleared: true, requests: 1 }],
  [
    'the log was cleared, and has another entry of the same ID',
    { entries: OLD },
    { entries: [entry(1, 4), entry(2, 5), entry(3, 6)], erased: TIME + 4 },
    { fresh: [4, 5, 6], wasCleared: true },
  ],
  ['the BMC gave the entries other IDs', { entries: OLD }, { entries: [entry(1, 2), entry(2, 3), entry(3, 4)], erased: TIME }, news],
  [
    'all entries have given way to others',
    { entries: OLD, overflow: true },
    { entries: [entry(7, 7), entry(8, 8), entry(9, 9)], erased: TIME, overflow: true },
    { fresh: [7, 8, 9], wasCleared: false },
  ],
  [
    'the last entry was deleted: older ones are no news',
    { entries: OLD },
    { entries: [entry(1, 1), entry(2, 2), entry(4, 4)], erased: TIME },
    { fresh: [4], wasCleared: false },
  ],
  [
    'a BMC without times, and nothing happened',
    { entries: OLD, hasNoTimes: true },
    { entries: OLD, hasNoTimes: true },
    { fresh: [], wasCleared: false, requests: 2 },
  ],
  [
    'a full log of a BMC without times',
    { entries: OLD, hasNoTimes: true },
    { entries: [entry(2, 2), entry(3, 3), entry(4, 4)], hasNoTimes: true },
    news,
  ],
  [
    'a BMC whose clock is not set',
    { entries: [entry(1, 1, undefined)] },
    { entries: [entry(1, 1, undefined), entry(2, 4, undefined)] },
    news,
  ],
  ['a BMC that does not know the last ID', { entries: OLD, hasNoLast: true }, { entries: [...OLD, entry(4, 4)], hasNoLast: true }, news],
])('%s', async (_, before, now, { requests, ...expected }) => {
  const position = await positionIn(before);
  const { ask, asked } = bmcWith(now);
  const { fresh, wasCleared } = await readNewSel(ask, position, never);
  expect({ fresh: fresh.map(({ event }) => event!.sensor), wasCleared }).toEqual(expected);
  if (requests !== undefined) expect(asked).toHaveLength(requests);
});
it('what was in the log before the first reading is history', async () => {
  const { ask, asked } = bmcWith({ entries: OLD });
  expect(await readNewSel(ask, undefined, never)).toMatchObject({ fresh: [], wasCleared: false, position: { id: 3, entries: 3 } });
  expect(asked).toEqual(['info', 'entry 65535']);
});
it('a long log is read in several readings, and older entries are no news in the later ones', async () => {
  const long = Array.from({ length: 50 }, (_, index) => entry(index + 100, index, index));
  const known = await positionIn({ entries: [entry(1, 200, 40)] });
  const seen: number[] = [];
  let position = known;
  let readings = 0;
  for (; readings < 20 && position.entries !== long.length; readings++) {
    let left = 12;
    const read = await readNewSel(bmcWith({ entries: long, erased: 9 }).ask, position, () => left-- <= 0);
    seen.push(...read.fresh.map(({ event }) => event!.sensor));
    ({ position } = read);
  }
  expect(readings).toBeGreaterThan(3);
  expect(seen).toEqual([40, 41, 42, 43, 44, 45, 46, 47, 48, 49]);
});
it.each([['Get SEL Info is too short', Buffer.alloc(5)]])('%s: the reading fails', async (_, answer) => {
  await expect(readNewSel(async () => answer, undefined, never)).rejects.toBeInstanceOf(IpmiError);
});
