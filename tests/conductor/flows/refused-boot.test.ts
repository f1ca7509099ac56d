import { refusalIn } from '../../../conductor/flows/refused-boot';

it.each([
  [
    'the firmware',
    '\x1b[2J\x1b[01;01HBdsDxe: loading Boot0001\r\nBdsDxe: failed to load Boot0001 from PciRoot(0x0): Access Denied\r\nBdsDxe: No bootable option',
    'BdsDxe: failed to load Boot0001 from PciRoot(0x0): Access Denied',
  ],
  ['the last of two', 'a: Access Denied\n\x1b[0m\x1b[30mb: Security Violation\n', 'b: Security Violation'],
  ['shim', 'Verification failed: (0x1A) Security Violation', 'Verification failed: (0x1A) Security Violation'],
  ['GRUB', 'error: bad shim signature.\r\n', 'error: bad shim signature.'],
  ['nobody', 'login: ', undefined],
])('a refusal by %s', (_, text, refusal) => {
  expect(refusalIn(text)).toBe(refusal);
});
