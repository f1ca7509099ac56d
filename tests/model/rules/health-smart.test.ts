/** What disks say of themselves, as observations and as alerts. */
import { healthRules, observed, takeOpen, type Standings } from '../../../model/rules/health-rules';
import { diskHealthOf, MAX_DISKS, smartSignals, type DiskHealth } from '../../../model/rules/health-smart';
import { storable } from '../../../model/text';

const NODE = { uuid: 'n', isOn: true };
const RULES = healthRules([]);
const disk = (more: Partial<DiskHealth> = {}): DiskHealth => ({ name: '/dev/sda', serial: 'S1', passed: true, ...more });
/** Reports, one after the other, and the rules of the alerts that are open in the end. */
function openAfter(reports: readonly (readonly DiskHealth[])[]): readonly string[] {
  const standings: Standings = new Map();
  const open = new Map<string, string>();
  for (const report of reports) {
    const { signals, found } = smartSignals(report);
    const { raised, cleared } = observed(RULES, standings, NODE, signals, found);
    for (const { rule, subject, text } of raised) open.set(`${rule} ${subject}`, text);
    for (const { rule, subject } of cleared) open.delete(`${rule} ${subject}`);
  }
  return [...open.values()].sort();
}
const times = <T>(count: number, value: T): readonly T[] => Array.from({ length: count }, () => value);

it.each<[string, readonly (readonly DiskHealth[])[], readonly string[]]>([
  ['a disk that is well', times(5, [disk({ life_used: 3, reallocated_sectors: 4, pending_sectors: 0, temperature: 40 })]), []],
  ['a disk that expects to fail', [[disk({ passed: false })]], ['disk S1 may fail soon (predicted failure)']],
  ['too little spare', [[disk({ critical_warning: 1 })]], ['disk S1 may fail soon (predicted failure)']],
  ['media that cannot be written', [[disk({ critical_warning: 8 })]], ['disk S1 has failed (failed)']],
  [
    'all warnings',
    times(3, [disk({ critical_warning: 0x3f, temperature: 90 })]),
    ['disk S1 has failed (failed)', 'disk S1 is too hot, 90 celsius', 'disk S1 may fail soon (predicted failure)'],
  ],
  ['a worn disk', [[disk({ life_used: 97 })]], ['disk S1 is worn: little of its life is left, 3 percent']],
  ['a disk beyond its life', [[disk({ life_used: 180 })]], ['disk S1 is worn: little of its life is left, 0 percent']],
  ['one reading with pending sectors', [[disk({ pending_sectors: 8 })]], []],
  ['two of them', times(2, [disk({ pending_sectors: 8 })]), ['disk S1 has sectors that it cannot read, 8 pending sectors']],
  ['many replaced sectors', [[disk({ reallocated_sectors: 900 })]], ['disk S1 has replaced many of its sectors, 900 reallocated sectors']],
  ['two hot readings', times(2, [disk({ temperature: 80 })]), []],
  ['three of them', times(3, [disk({ temperature: 80 })]), ['disk S1 is too hot, 80 celsius']],
  ['well again for one reading', [[disk({ passed: false })], [disk()]], ['disk S1 may fail soon (predicted failure)']],
  ['well again for two', [[disk({ passed: false })], [disk()], [disk()]], []],
  ['not there for one reading', [[disk({ passed: false })], []], ['disk S1 may fail soon (predicted failure)']],
  ['not there for two', [[disk({ passed: false })], [], []], []],
  [
    'a disk that does not answer',
    [[disk({ passed: false })], ...times(5, [disk({ passed: null, unread: 'silent' })])],
    ['disk S1 may fail soon (predicted failure)'],
  ],
  [
    'two disks with one serial number',
    [
      [disk({ passed: false }), disk({ name: '/dev/sdb' })],
      [disk(), disk({ name: '/dev/sdb' })],
    ],
    ['disk /dev/sda may fail soon (predicted failure)'],
  ],
])('%s', (_, reports, expected) => expect(openAfter(reports)).toEqual(expected));

it.each<[string, unknown, readonly DiskHealth[]]>([
  ['no list', { name: 'x' }, []],
  ['things that are no disks', [null, 3, [], {}, { name: '' }, { name: 7 }], []],
  ['a whole disk', [disk({ temperature: 30, unread: 'no' })], [disk({ temperature: 30, unread: 'no' })]],
  [
    'values of other types, and unknown ones',
    [{ name: 'a\nb', serial: 4, temperature: 'hot', life_used: null, passed: 'yes', more: 1 }],
    [{ name: 'a b' }],
  ],
  ['long texts', [{ name: 'x'.repeat(1000) }], [{ name: 'x'.repeat(255) }]],
])('a report from outside: %s', (_, given, expected) => expect(diskHealthOf(given)).toEqual(expected));
it('an alert whose subject is cut within a character stays open when the open alerts are read again', () => {
  const report = diskHealthOf([{ name: '/dev/sda', serial: `${'x'.repeat(94)}\u{1f4a5}`, passed: false }]);
  const { signals, found } = smartSignals(report);
  const standings: Standings = new Map();
  const { raised } = observed(RULES, standings, NODE, signals, found);
  expect(raised).toHaveLength(1);
  for (let times = 0; times < 3; times++) {
    takeOpen(
      RULES,
      standings,
      raised.map((alert) => ({ ...alert, subject: storable(alert.subject) })),
    );
    expect(observed(RULES, standings, NODE, signals, found)).toEqual({ raised: [], cleared: [] });
  }
});
it('a report with too many disks is cut', () => {
  expect(diskHealthOf(Array.from({ length: MAX_DISKS + 5 }, (_, index) => ({ name: `d${index}` })))).toHaveLength(MAX_DISKS);
});
it.each<[object, string | undefined]>([
  [{ sources: ['smart'], kinds: ['drive'], above: 10, unit: 'reallocated sectors' }, undefined],
  [{ sources: ['smart'], kinds: ['fan'], states: ['failed'] }, 'the source smart has only the kinds drive, temperature'],
  [{ sources: ['smart'], states: ['input lost'] }, 'the source smart has only the states'],
  [{ above: 10, unit: 'pending sectors' }, 'the unit pending sectors needs the source smart'],
  [{ sources: ['smart'], above: 10, unit: 'rpm' }, 'the unit rpm needs the source sensor'],
])('a rule of a site: %j', (rule, reason) => {
  const read = () => healthRules([{ name: 'x', severity: 'warning', ...rule }]);
  if (reason === undefined) expect(read().at(-1)).toMatchObject({ name: 'x', clear: 2 });
  else expect(read).toThrow(reason);
});
