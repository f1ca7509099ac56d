/** Odd behaviours of real BMCs at their records (SDR, SEL, FRU), by name. Each row changes one thing of an otherwise correct BMC. */
import { fruBytes } from '../../../simulator/ipmi/fru';
import { fullRecord } from '../../../simulator/ipmi/sdr';
import { COMMANDS, IpmiError, type CommandCode } from '../../../wire/ipmi/constants';
import type { SendCommand } from '../../../wire/ipmi/record-access';

export const refusal = (completionCode: number): IpmiError => new IpmiError('completion', `code ${completionCode}`, { completionCode });
const silence = new IpmiError('unreachable', 'no response');

interface Asked {
  readonly code: CommandCode;
  readonly data: readonly number[];
  /** The record's ID in Get SDR and Get SEL Entry. */
  readonly id: number;
  readonly offset: number;
  /** How often this part of the record was asked for, including this time. */
  readonly times: number;
}
interface Stores {
  sel: Buffer[];
  reservation: number;
}
/** The response in place of the correct one. Throws a refusal. */
type Change = (correct: () => Buffer, asked: Asked, stores: Stores) => Buffer;
export interface OddStore {
  readonly change: Change;
  /** The sensors, SEL entries and chassis serial that are read all the same. Absent: all. */
  readonly sensors?: readonly number[];
  readonly entries?: readonly number[];
  /** The SEL is reported as incomplete. */
  readonly isWhole?: false;
}

export const ALL = [1, 2, 3, 4, 5] as const;
const selEntry = (id: number): Buffer => Buffer.from([id, 0, 2, 0, 16, 94, 95, 32, 0, 4, 1, 48, 1, 89, 44, 43]);
const same = (a: CommandCode, b: CommandCode): boolean => a[0] === b[0] && a[1] === b[1];
const next = (records: readonly Buffer[], index: number): Buffer => records[index + 1]?.subarray(0, 2) ?? Buffer.from([0xff, 0xff]);

/** A BMC with sensors and SEL entries 1 to 5 and a FRU inventory. */
export function oddStores({ change }: OddStore): { readonly ask: SendCommand; readonly asked: Asked[] } {
  const sdrs = ALL.map((number) => fullRecord(number, { number, name: `S${number}`, entity: [3, 1], sensorType: 1, unit: 1, m: 1 }));
  const fru = fruBytes('S-1');
  const stores: Stores = { sel: ALL.map(selEntry), reservation: 0 };
  const asked: Asked[] = [];
  const chain = (records: readonly Buffer[], { data, id, offset }: Asked): Buffer => {
    const index = id === 0 ? 0 : records.findIndex((candidate) => candidate.readUInt16LE(0) === id);
    const record = records[index];
    if (!record) throw refusal(0xcb);
    if (offset > 0 && data[0] !== stores.reservation) throw refusal(0xc5);
    return Buffer.concat([next(records, index), record.subarray(offset, offset + data[5]!)]);
  };
  const rows: readonly (readonly [CommandCode, (it: Asked) => Buffer])[] = [
    [COMMANDS.getDeviceId, () => Buffer.from([0x20, 1, 1, 0, 2, 0x8f, 0, 0, 0, 0, 0])],
    [COMMANDS.reserveSdrRepository, () => Buffer.from([++stores.reservation, 0])],
    [COMMANDS.reserveSel, () => Buffer.from([++stores.reservation, 0])],
    [COMMANDS.getSdr, (it) => chain(sdrs, it)],
    [COMMANDS.getSelEntry, (it) => chain(stores.sel, it)],
    [COMMANDS.getFruInventoryAreaInfo, () => Buffer.from([fru.length, 0, 0])],
    [
      COMMANDS.readFruData,
      ({ data: [, low = 0, high = 0, count = 0] }) => {
        const [from, end] = [low | (high << 8), (low | (high << 8)) + count];
        if (end > fru.length) throw refusal(0xc9);
        return Buffer.from([count, ...fru.subarray(from, end)]);
      },
    ],
  ];
  const ask: SendCommand = async (code, data) => {
    const times =
      asked.filter((candidate) => same(candidate.code, code) && candidate.data.slice(2).join() === data.slice(2).join()).length + 1;
    const it: Asked = { code, data, id: data[2]! | (data[3]! << 8), offset: data[4] ?? 0, times };
    asked.push(it);
    const row = rows.find(([candidate]) => same(candidate, code));
    if (!row) throw refusal(0xc1);
    return change(() => row[1](it), it, stores);
  };
  return { ask, asked };
}

/** Changes the responses to one command. */
const at =
  (code: CommandCode, change: Change): Change =>
  (correct, asked, stores) =>
    same(asked.code, code) ? change(correct, asked, stores) : correct();
const fails = (when: (asked: Asked) => boolean, error: IpmiError): Change => {
  return (correct, asked) => {
    if (when(asked)) throw error;
    return correct();
  };
};
/** The successor of a record is another one. */
const leads = (from: number, to: number): Change => {
  return (correct, { id }) => (id === from ? Buffer.concat([Buffer.from([to & 0xff, to >> 8]), correct().subarray(2)]) : correct());
};
const most = (bytes: number, index: number): Change => fails(({ data }) => (data[index] ?? 0) > bytes, refusal(0xca));

export const ODD_STORES: Readonly<Record<string, OddStore>> = {
  'no oddity': { change: (correct) => correct() },
  'an SDR whose body is refused': {
    change: at(
      COMMANDS.getSdr,
      fails(({ id, offset }) => id === 3 && offset > 0, refusal(0xff)),
    ),
    sensors: [1, 2, 4, 5],
  },
  'an SDR that is refused': {
    change: at(
      COMMANDS.getSdr,
      fails(({ id }) => id === 3, refusal(0xff)),
    ),
    sensors: [1, 2, 4, 5],
  },
  'two SDRs in a row that are refused': {
    change: at(
      COMMANDS.getSdr,
      fails(({ id }) => id === 3 || id === 4, refusal(0xc9)),
    ),
    sensors: [1, 2, 5],
  },
  'an SDR that does not exist': {
    change: at(
      COMMANDS.getSdr,
      fails(({ id }) => id === 3, refusal(0xcb)),
    ),
    sensors: [1, 2, 4, 5],
  },
  'a first SDR that is refused under the ID 0': {
    change: at(
      COMMANDS.getSdr,
      fails(({ id }) => id === 0, refusal(0xcc)),
    ),
  },
  'an SDR that is never answered': {
    change: at(
      COMMANDS.getSdr,
      fails(({ id }) => id === 3, silence),
    ),
    sensors: [1, 2, 4, 5],
  },
  'an SDR answered with one byte': {
    change: at(COMMANDS.getSdr, (correct, { id }) => (id === 3 ? correct().subarray(0, 1) : correct())),
    sensors: [1, 2, 4, 5],
  },
  'an SDR that ends too soon': {
    change: at(COMMANDS.getSdr, (correct, { id, offset }) => (id === 3 && offset > 20 ? correct().subarray(0, 2) : correct())),
    sensors: [1, 2, 4, 5],
  },
  'an SDR that is its own successor': { change: at(COMMANDS.getSdr, leads(3, 3)) },
  'SDRs in a circle': { change: at(COMMANDS.getSdr, leads(5, 1)) },
  'SDRs in a circle through the ID 0': { change: at(COMMANDS.getSdr, leads(3, 0)) },
  'every unknown SDR is the last one, and SDRs in a circle': {
    change: at(COMMANDS.getSdr, (correct, asked, stores) => {
      if (asked.id > 5) return Buffer.from([0xff, 0xff, 5, 0, 0x51, 1, 0]);
      return leads(5, 2)(correct, asked, stores);
    }),
  },
  'reservations of SDRs that are cancelled at first': {
    change: at(
      COMMANDS.getSdr,
      fails(({ times }) => times === 1, refusal(0xc5)),
    ),
  },
  'portions of 16 bytes, refused with each code': {
    change: at(
      COMMANDS.getSdr,
      fails(({ data }) => data[5]! > 16, refusal(0xff)),
    ),
  },
  'no Get Device ID': {
    change: at(
      COMMANDS.getDeviceId,
      fails(() => true, refusal(0xc1)),
    ),
  },
  'a SEL entry that is refused': {
    change: at(
      COMMANDS.getSelEntry,
      fails(({ id }) => id === 3, refusal(0xff)),
    ),
    entries: [1, 2, 4, 5],
    isWhole: false,
  },
  'a SEL entry that is its own successor': { change: at(COMMANDS.getSelEntry, leads(3, 3)), isWhole: false },
  'a SEL entry whose successor is 0': { change: at(COMMANDS.getSelEntry, leads(3, 0)), isWhole: false },
  'SEL entries in a circle': { change: at(COMMANDS.getSelEntry, leads(5, 1)), isWhole: false },
  'a SEL that wants a reservation': {
    change: at(
      COMMANDS.getSelEntry,
      fails(({ data }) => data[0] === 0, refusal(0xc5)),
    ),
  },
  'SEL reservations that are cancelled at first': {
    change: at(
      COMMANDS.getSelEntry,
      fails(({ times }) => times === 1, refusal(0xc5)),
    ),
  },
  'a SEL with at most 8 bytes at a time': { change: at(COMMANDS.getSelEntry, most(8, 5)) },
  'a SEL that grows': {
    change: at(COMMANDS.getSelEntry, (correct, { id }, stores) => {
      if (id === 5 && stores.sel.length === 5) stores.sel.push(selEntry(6));
      return correct();
    }),
    entries: [1, 2, 3, 4, 5, 6],
  },
  'a SEL that is cleared while it is read': {
    change: at(COMMANDS.getSelEntry, (correct, { id }, stores) => {
      if (id === 4) stores.sel = [];
      return correct();
    }),
    entries: [1, 2, 3],
    isWhole: false,
  },
  'a FRU device that is smaller than it says': { change: at(COMMANDS.getFruInventoryAreaInfo, () => Buffer.from([0, 8, 0])) },
  'a FRU device of at most 4 bytes at a time': { change: at(COMMANDS.readFruData, most(4, 3)) },
  'a FRU device that returns fewer bytes than it counts': {
    change: at(COMMANDS.readFruData, (correct) => correct().subarray(0, 6)),
  },
};
