/** Which identities of systems count for registrations. */
import { isSameSystem } from '../../../model/rules/system-identity';

const isSame = (known: object, said: object = known): boolean => isSameSystem({ system_vendor: { ...known } }, said);

it('a UUID of the system counts, else its serial number', () => {
  const uuid = '7a5ed1b4-8b6c-4b9a-9e0e-0d1c6d1c9f01';
  expect(isSame({ system_uuid: uuid })).toBe(true);
  expect(isSame({ system_uuid: uuid, serial_number: 'S1' }, { serial_number: 'S1' })).toBe(false);
  expect(isSame({ serial_number: 'CZ123' })).toBe(true);
  expect(isSame({ serial_number: 'CZ123' }, { serial_number: 'CZ124' })).toBe(false);
});

it.each([
  '',
  ' ',
  '0',
  '00000000',
  '0123456789',
  'To be filled by O.E.M.',
  'Default string',
  'System Serial Number',
  'Not Specified',
  'None',
  'N/A',
  'xxxxxxxx',
])('the serial number "%s" is none: many machines have it', (serial) => {
  expect(isSame({ serial_number: serial })).toBe(false);
  // A UUID that many boards have is none either, so that the serial number counts.
  expect(isSame({ system_uuid: '03000200-0400-0500-0006-000700080009', serial_number: serial })).toBe(false);
});
