/** Our readers at BMCs with odd records. */
import { COMMANDS, COMPLETION, mayPass, type CommandCode } from '../../../wire/ipmi/constants';
import { decodeFru, readFruBytes } from '../../../wire/ipmi/records/fru';
import { readSdrs } from '../../../wire/ipmi/records/sdr-repository';
import { readSel } from '../../../wire/ipmi/records/sel';
import { ALL, ODD_STORES, oddStores, refusal } from '../../support/odd-ipmi/stores';

/** Enough for all records, their portions, and the IDs that are tried. */
const MAX_REQUESTS = 100;

it.each(Object.entries(ODD_STORES))('%s', async (_, row) => {
  const { ask, asked } = oddStores(row);
  const numbers = (await readSdrs(ask)).map((record) => (record.kind === 'full' ? record.number : undefined));
  expect(numbers).toEqual(row.sensors ?? ALL);
  expect(asked.splice(0).length).toBeLessThan(MAX_REQUESTS);
  const { entries, isWhole } = await readSel(ask);
  expect({ entries: entries.map(({ id }) => id), isWhole }).toEqual({ entries: row.entries ?? ALL, isWhole: row.isWhole ?? true });
  expect(asked.splice(0).length).toBeLessThan(MAX_REQUESTS);
  expect(decodeFru(await readFruBytes(ask))).toMatchObject({ chassis: { serial: 'S-1' }, product: { serial: 'S-1' }, faults: [] });
});
it('a BMC that refuses all records fails with its refusal', async () => {
  const { ask } = oddStores({
    change: () => {
      throw refusal(COMPLETION.insufficientPrivilege);
    },
  });
  for (const read of [readSdrs, readSel, readFruBytes]) await expect(read(ask)).rejects.toMatchObject({ completionCode: 0xd4 });
});
it.each<[string, CommandCode, number, boolean]>([
  ['node busy', COMMANDS.getChassisStatus, 0xc0, true],
  ['timeout', COMMANDS.getChassisStatus, 0xc3, true],
  ['no response', COMMANDS.getChassisStatus, 0xce, true],
  ['initialization', COMMANDS.getChassisStatus, 0xd2, true],
  ['wrong state', COMMANDS.chassisControl, 0xd5, false],
  ['invalid command', COMMANDS.chassisControl, 0xc1, false],
  ['SDR repository in update mode', COMMANDS.getSdr, 0xd0, true],
  ['busy FRU device', COMMANDS.readFruData, 0x81, true],
  ['SEL being erased', COMMANDS.getSelEntry, 0x81, true],
  ['no free session', COMMANDS.activateSession, 0x81, true],
  ['0x81 of another command', COMMANDS.setSessionPrivilegeLevel, 0x81, false],
  ['node busy, at a sensor', COMMANDS.getSensorReading, 0xc0, true],
  ['timeout of an absent sensor', COMMANDS.getSensorReading, 0xc3, false],
])('mayPass: %s', (_, command, completionCode, expected) => expect(mayPass({ completionCode, command })).toBe(expected));
