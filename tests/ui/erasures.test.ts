import { certificateFilesOf, certifiedDisksOf, checksOf } from '../../ui/lib/erasures';

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
      instead_of: '',
      sample: '64 places: 60 zero, 0 blank, 4 changed, 0 as before, 0 unreadable',
      by: 'alice',
    },
    expect.objectContaining({ disk: '/dev/sdb', what: 'left: It is kept.', sample: '', seconds: '' }),
  ]);
});
it.each([{}, { erasures: 'none' }, { erasures: [{ document: 'no JSON' }, { document: '[]' }, {}] }])('shows nothing of %j', (response) => {
  expect(certifiedDisksOf(response)).toEqual([]);
});

it('saves the characters that are signed, and names the command that checks them', () => {
  const certificate = { uuid: 'u', document: '{"ä": 1}\n', signature: 'AP8=', public_key: 'a key' };
  expect(certificateFilesOf(certificate).map(({ name, bytes }) => [name, Buffer.from(bytes).toString('hex')])).toEqual([
    ['u.json', Buffer.from(certificate.document).toString('hex')],
    ['u.sig', '00ff'],
    ['u.pem', Buffer.from('a key').toString('hex')],
  ]);
  expect(checksOf(certificate)[1]).toMatch(/^openssl dgst -sha256 /);
  expect(checksOf({ ...certificate, public_key: 'MCowBQYDK2VwAyEA' })[1]).toMatch(/^openssl pkeyutl /);
});
