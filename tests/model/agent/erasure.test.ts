import { eraseProblem, erasedDisksIn, keepProblem, keptDisks, psidsIn, psidsProblem } from '../../../model/agent/erasure';

const GIB = 2 ** 30;
it.each(['none', 'metadata', 'express', 'full'])('takes the choice %s', (word) => expect(eraseProblem(word)).toBeUndefined());
it.each(['shred', 'constructor', 'Full', '', 1, null, {}])('refuses the choice %j', (word) =>
  expect(eraseProblem(word)).toBe('must be one of none, metadata, express, full'),
);

it.each<[unknown, string | undefined]>([
  [[], undefined],
  [[{ serial: 'S1' }, { size: '> 100', rotational: true }], undefined],
  ['S1', 'must be a list of at most 64 objects with hints of disks'],
  [Array.from({ length: 65 }, () => ({ serial: 'S1' })), 'must be a list of at most 64 objects with hints of disks'],
  [[{ serial: 'x'.repeat(9000) }], 'must have at most 8192 characters'],
  [[{ serial: 'S1' }, {}], '[1] must have a hint'],
  [[null], '[0] must be an object of hint names and values'],
  [[[]], '[0] must be an object of hint names and values'],
  [[{ size: 'large' }], '[0]: Root device hint "size" is not an integer value. Current value: large'],
])('keepProblem(%j)', (keep, problem) => expect(keepProblem(keep)).toBe(problem));

it('keeps each disk that an item matches, and names the items that match none', () => {
  const disks = [
    { name: '/dev/sda', size: 100 * GIB, serial: ['S1', 'S1-long'], rotational: false },
    { name: '/dev/sdb', size: 500 * GIB, serial: ['S2'], rotational: true },
    { name: '/dev/sdc', size: 500 * GIB, serial: ['S3'], rotational: true },
  ];
  const names = (keep: readonly object[]) => {
    const { kept, unmatched } = keptDisks(disks, keep as Parameters<typeof keptDisks>[1]);
    return [kept.map(({ name }) => name), unmatched];
  };
  expect(names([{ rotational: true }])).toEqual([['/dev/sdb', '/dev/sdc'], []]);
  expect(names([{ serial: 's1-LONG' }, { name: '/dev/sdc', size: 500 }])).toEqual([['/dev/sda', '/dev/sdc'], []]);
  expect(names([{ serial: 'S1', rotational: true }])).toEqual([[], [{ serial: 'S1', rotational: true }]]);
});

const SAMPLE = { places: 64, bytes: 4096, held_data: 60, zero: 64, blank: 0, changed: 0, same: 0, unreadable: 0 };
const DISK = {
  name: '/dev/sda',
  serial: 'S1',
  wwn: null,
  model: 'M',
  size: 5 * GIB,
  method: 'overwrite',
  skipped: null,
  started_at: '2026-01-02T03:04:05.000Z',
  ended_at: '2026-01-02T04:04:05.000Z',
  seconds: 3600,
  overwrite_seconds: null,
  sample: SAMPLE,
};
it('reads the report of each disk', () => {
  const left = { ...DISK, method: null, skipped: 'kept', started_at: null, ended_at: null, seconds: null, sample: null };
  expect(erasedDisksIn({ erased_disks: [DISK, left] })).toEqual([DISK, left]);
});
it.each<[string, unknown]>([
  ['nothing', null],
  ['the result of ironic-python-agent', { '/dev/sda': null }],
  ['an empty list', { erased_disks: [] }],
  ['too many disks', { erased_disks: Array.from({ length: 1025 }, () => DISK) }],
  ['an unknown method', { erased_disks: [DISK, { ...DISK, method: 'magic' }] }],
  ['a method of the prototype', { erased_disks: [{ ...DISK, method: 'constructor' }] }],
  ['neither a method nor a reason', { erased_disks: [{ ...DISK, method: null }] }],
  ['a method and a reason', { erased_disks: [{ ...DISK, skipped: 'kept' }] }],
  ['no size', { erased_disks: [{ ...DISK, size: 'large' }] }],
])('takes %s for no report', (_, result) => expect(erasedDisksIn(result)).toBeUndefined());
it('drops what is not as it should be beside the facts, and bounds texts', () => {
  const odd = { ...DISK, model: 'x'.repeat(5000), serial: 5, started_at: 'yesterday', seconds: -1, sample: { ...SAMPLE, same: 'none' } };
  expect(erasedDisksIn({ erased_disks: [odd] })).toEqual([
    { ...DISK, model: 'x'.repeat(255), serial: null, started_at: null, seconds: null, sample: null },
  ]);
});

const PSID = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ012345';
it('reads the PSIDs of disks', () => {
  expect([...psidsIn(`S1=${PSID},S-2=${PSID.toLowerCase().toUpperCase()}`)]).toEqual([
    ['S1', PSID],
    ['S-2', PSID],
  ]);
  expect(psidsIn(undefined).size).toBe(0);
});
it.each([PSID, `S1=${PSID.toLowerCase()}`, `S1=${PSID}, S2=${PSID}`, `S1=${PSID}x`, '', 5, {}, `S1=${PSID},`.repeat(1000)])(
  'refuses the PSIDs %j',
  (value) => {
    expect(psidsProblem(value)).toContain('must be SERIAL=PSID');
    expect(psidsIn(value).size).toBe(0);
  },
);
