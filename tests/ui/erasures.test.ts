import { certifiedDisksOf } from '../../ui/lib/erasures';

const document = (disks: readonly object[]): string => JSON.stringify({ requested: { by_user: 'alice' }, disks });
it('shows a row for each disk of each certificate', () => {
  const erased = {
    name: '/dev/sda',
    serial: 'S1',
    erased: true,
    method: 'overwriting',
    proves: 'All addresses.',
    seconds: 3,
    sample: { places: 64, zero: 60, blank: 0, changed: 4, same: 0, unreadable: 0 },
  };
  const left = { name: '/dev/sdb', serial: null, erased: false, reason: 'It is kept.' };
  const certificate = { uuid: 'u', created_at: 't', step: 'deploy.erase_devices' };
  expect(certifiedDisksOf({ erasures: [{ ...certificate, document: document([erased, left]) }] })).toEqual([
    {
      created_at: 't',
      uuid: 'u',
      step: 'deploy.erase_devices',
      disk: '/dev/sda',
      serial: 'S1',
      what: 'overwriting',
      proves: 'All addresses.',
      seconds: 3,
      sample: '64 places: 60 zero, 0 blank, 4 changed, 0 as before, 0 unreadable',
      by: 'alice',
    },
    expect.objectContaining({ disk: '/dev/sdb', what: 'left: It is kept.', sample: '', seconds: '' }),
  ]);
});
it.each([{}, { erasures: 'none' }, { erasures: [{ document: 'no JSON' }, { document: '[]' }, {}] }])('shows nothing of %j', (response) => {
  expect(certifiedDisksOf(response)).toEqual([]);
});
