/** The event log of an IPMI BMC as observations: states that last from one reading to the next, and positions that others wrote. */
import { eventSignals, ipmiLogs } from '../../../drivers/ipmi/logs';
import { ipmiManagement } from '../../../drivers/ipmi/management';
import type { LogPosition } from '../../../drivers/interfaces';
import { COMMANDS } from '../../../wire/ipmi/constants';
import { decodeSelEntry, type SelEntry } from '../../../wire/ipmi/records/sel';
import { bmcTask } from '../bmc-task';

const WARNING = 0;
const CRITICAL = 2;
/** An event of a fan's threshold. */
const bytes = (id: number, offset: number, isOver = false, sensor = 0x30): Buffer =>
  Buffer.from([id, 0, 2, id, 0, 0, 0x60, 0x20, 0, 4, 4, sensor, isOver ? 0x81 : 0x01, offset, 0xff, 0xff]);
const entry = (...given: Parameters<typeof bytes>): SelEntry => decodeSelEntry(bytes(...given))!;
const FAN = 'Fan 0x30';

it('a deassertion ends the state that it names; the others stay', () => {
  const first = eventSignals([entry(1, WARNING), entry(2, CRITICAL)], {});
  expect(first.signals.map(({ kind, subject, states }) => [kind, subject, states])).toEqual([
    ['fan', FAN, ['warning']],
    ['fan', FAN, ['warning', 'critical']],
  ]);
  const second = eventSignals([entry(3, CRITICAL, true)], first.states);
  expect(second).toMatchObject({ signals: [{ states: ['warning'] }], states: { [FAN]: ['warning'] } });
  expect(eventSignals([entry(4, WARNING, true)], second.states)).toMatchObject({ signals: [{ states: [] }], states: {} });
});
it('the end of a state that is not known is an observation too', () => {
  expect(eventSignals([entry(1, CRITICAL, true)], {})).toMatchObject({ signals: [{ subject: FAN, states: [] }], states: {} });
});
it('keeps the states of a limited number of sensors', () => {
  const many = Array.from({ length: 200 }, (_, sensor) => entry(1, CRITICAL, false, sensor));
  const { signals, states } = eventSignals(many, {});
  expect(signals).toHaveLength(200);
  expect(Object.keys(states)).toHaveLength(64);
});

function bmcWith(log: Buffer[], more: object = {}) {
  let asked = 0;
  const { task } = bmcTask({
    node: { driver: 'ipmi', driver_info: { ipmi_address: '192.0.2.7' } },
    driver: { management: ipmiManagement },
    connections: {
      ipmi: {
        request: async (_, networkFunction, command, data) => {
          asked++;
          expect(networkFunction).toBe(COMMANDS.getSelInfo[0]);
          if (command === COMMANDS.getSelInfo[1])
            return Buffer.from([0x51, log.length, 0, 0, 0, ...(log.at(-1)?.subarray(3, 7) ?? [255, 255, 255, 255]), 0, 0, 0, 0, 2]);
          const id = data.readUInt16LE(2);
          const index = id === 0 ? 0 : id === 0xffff ? log.length - 1 : log.findIndex((one) => one.readUInt16LE(0) === id);
          return Buffer.concat([log[index + 1]?.subarray(0, 2) ?? Buffer.from([255, 255]), log[index]!]);
        },
        close: async () => {},
        ...more,
      },
    },
  });
  return { task, asked: () => asked };
}
type Positions = Readonly<Record<string, LogPosition>>;
it('goes on where the last reading ended, also after the position was in the database', async () => {
  const log: Buffer[] = [bytes(1, CRITICAL)];
  const { task } = bmcWith(log);
  const first = await ipmiLogs(task, {});
  expect(first).toMatchObject({ signals: [], wasCleared: false });
  log.push(bytes(2, CRITICAL));
  const second = await ipmiLogs(task, JSON.parse(JSON.stringify(first.positions)) as Positions);
  expect(second.signals).toMatchObject([{ source: 'log', kind: 'fan', subject: FAN, states: ['critical'] }]);
  log.push(bytes(3, WARNING));
  const third = await ipmiLogs(task, JSON.parse(JSON.stringify(second.positions)) as Positions);
  expect(third.signals).toMatchObject([{ states: ['critical', 'warning'] }]);
  log.length = 0;
  expect(await ipmiLogs(task, third.positions)).toMatchObject({
    signals: [],
    wasCleared: true,
    positions: { sel: { id: null, states: {} } },
  });
});
it.each<[string, Positions]>([
  ['of a Redfish service', { '/redfish/v1/Managers/1/LogServices/Log/Entries': { id: '1', count: 3, newestFirst: false } }],
  ['of nobody', { sel: { id: 'x' } }],
])('begins anew with the position %s', async (_, positions) => {
  const { task } = bmcWith([bytes(1, CRITICAL)]);
  expect(await ipmiLogs(task, positions)).toMatchObject({ signals: [], wasCleared: false, positions: { sel: { id: 1, entries: 1 } } });
});
it('with ipmitool as the client it asks nothing', async () => {
  const { task, asked } = bmcWith([bytes(1, CRITICAL)], { runProgram: async () => '' });
  expect(await ipmiLogs(task, {})).toEqual({ signals: [], positions: {}, wasCleared: false });
  expect(asked()).toBe(0);
});
