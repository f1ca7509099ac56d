/** What recordings replace: by the names of properties, and by what values look like. */
import { createReplacer } from '../../../commands/probe/replace';
import { cpuMsOf } from '../../support/cpu-time';

const replacer = (bodies: readonly unknown[], more: Partial<Parameters<typeof createReplacer>[0]> = {}) => {
  const made = createReplacer({ key: Buffer.alloc(32, 7), secrets: [], accounts: [], hosts: [], ...more });
  for (const body of bodies) made.learn(body);
  return made;
};
const rewritten = (body: Readonly<Record<string, unknown>>): Record<string, unknown> =>
  replacer([body]).body(body) as Record<string, unknown>;

it.each<readonly [name: string, value: unknown, form: RegExp]>([
  ['SerialNumber', 'CN7016363A008U', /^[A-Z]{2}\d{7}[A-Z]\d{3}[A-Z]$/],
  ['SKU', 'F54P1G3', /^[A-Z]\d{2}[A-Z]\d[A-Z]\d$/],
  ['AssetTag', 'rack 7, 1234', /^[a-z]{4} \d, \d{4}$/],
  ['ExpressServiceCode', 12345678901, /^\d{9,11}$/],
  ['UUID', '4c4c4544-0035-3410-8050-c6c04f314733', /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/],
  ['NodeGUID', '88e9:a4ff:ff80:9da2', /^[0-9a-f]{4}(?::[0-9a-f]{4}){3}$/],
  ['WWN', '50:01:43:80:24:26:d4:de', /^[0-9a-f]{2}(?::[0-9a-f]{2}){7}$/],
  ['MACAddress', '00:40:A6:83:3A:52', /^02(?::[0-9A-F]{2}){5}$/],
  ['PhysicalPortMacAddress', '00620B4C284E', /^02[0-9A-F]{10}$/],
  ['Address', '10.1.2.3', /^192\.0\.2\.1$/],
  ['Address', 'fe80::e9cf:4165:f813:123c', /^2001:db8::1$/],
  ['HostName', 'web483', /^host-1\.example$/],
  ['FQDN', 'bmc.dmtf.org', /^host-\d\.example$/],
  ['InitiatorName', 'iqn.2010-04.org.ipxe:00112233', /^iqn\.2010-04\.example:1$/],
  ['UserName', 'jane.doe', /^user-1$/],
  ['Email', 'jane@corp.example', /^user-1@example\.org$/],
  ['Users.2.Password', 'hunter2', /^replaced-1$/],
  ['LicenseKey', '3NBWS-KY3X3-8XVBW-54ZVY-4ZBW2', /^replaced-1$/],
  ['SSHHostKey', 'ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAABAQDLT7F0X9D5Rb', /^replaced-1$/],
  ['Room', 'Paris 3', /^place-1$/],
  ['Image', 'http://10.0.0.5/deploy-Zx81kkQ.iso', /^http:\/\/192\.0\.2\.1\/file-1\.iso$/],
  ['Description', 'sends to https://joe:pw@syslog.corp.example:6514/x?y', /^sends to https:\/\/host-1\.example:6514\/file-1$/],
  ['Text', 'see -----BEGIN CERTIFICATE-----\nMIIFsTCC\n-----END CERTIFICATE-----', /^see replaced-1$/],
  ['Text', 'token eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl', /^token replaced-1$/],
  ['Text', 'from 10.9.8.7 by 00-11-22-33-44-55', /^from 192\.0\.2\.1 by 02(?:-[0-9a-f]{2}){5}$/],
])('%s: %p has a replacement of the same form', (name, value, form) => {
  const [, after] = Object.entries(rewritten({ [name]: value }))[0]!;
  expect(after).not.toEqual(value);
  expect(String(after)).toMatch(form);
});

it.each<readonly [string, unknown]>([
  ['FirmwareVersion', '7.10.30.11'],
  ['SubnetMask', '255.255.255.0'],
  ['Address', '0.0.0.0'],
  ['SerialNumber', 'To be filled by O.E.M.'],
  ['SerialNumber', '00000000'],
  ['MACAddress', '00:00:00:00:00:00'],
  ['MaxPasswordLength', 20],
  ['PasswordChangeRequired', true],
  ['UserName', 'root'],
  ['@odata.type', '#ComputerSystem.v1_16_0.ComputerSystem'],
  ['Members@odata.count', 4],
  ['Schema', 'https://redfish.dmtf.org/schemas/v1/Bios.json'],
  ['Model', 'PowerEdge R650'],
  ['BootSourceOverrideTarget', 'UefiTarget'],
])('%s: %p stays', (name, value) => {
  expect(rewritten({ [name]: value })).toEqual({ [name]: value });
});

it('gives the same value the same replacement in values, names, texts and links', () => {
  const serial = 'QSBP74100021';
  const body = {
    '@odata.id': `/redfish/v1/Systems/${serial.toLowerCase()}`,
    SerialNumber: serial,
    [`Disk ${serial}`]: `The system ${serial} and its drive/${serial}/1`,
  };
  const made = replacer([body]);
  const after = made.body(body) as Record<string, string>;
  const other = after['SerialNumber']!;
  expect(other).toMatch(/^[A-Z]{4}\d{8}$/);
  expect(after).toEqual({
    '@odata.id': `/redfish/v1/Systems/${other.toLowerCase()}`,
    SerialNumber: other,
    [`Disk ${other}`]: `The system ${other} and its drive/${other}/1`,
  });
  expect(made.text(`/redfish/v1/Systems/${serial}`)).toBe(`/redfish/v1/Systems/${other}`);
});

it('replaces the password and the account of the login wherever they stand, also encoded and in names', () => {
  const made = replacer([], { secrets: ['s3cr3t pass'], accounts: ['jane.doe'], hosts: ['bmc7.corp.example'] });
  const body = {
    echoed: 'you sent s3cr3t pass',
    's3cr3t pass': 1,
    encoded: `${encodeURIComponent('s3cr3t pass')} ${Buffer.from('s3cr3t pass').toString('base64')}`,
    by: 'session of jane.doe at BMC7',
  };
  expect(JSON.stringify(made.body(body))).not.toMatch(/s3cr3t|czNjcjN0|jane|bmc7/i);
});

it('a SKU that is the name of a product stays, since drivers tell machines by it', () => {
  expect(rewritten({ Model: '7Z23CTO1WW', SKU: '7Z23CTO1WW' })).toEqual({ Model: '7Z23CTO1WW', SKU: '7Z23CTO1WW' });
});

it('a serial number that a service also gives as the number of a part has a replacement', () => {
  expect(JSON.stringify(rewritten({ SerialNumber: 'PZWYR0ARHH106G', PartNumber: 'PZWYR0ARHH106G', SKU: 'PZWYR0ARHH106G' }))).not.toContain(
    'PZWYR0',
  );
});

it('finds a serial number behind characters whose small letters are longer', () => {
  const made = replacer([{ SerialNumber: 'CN7016363A008U' }]);
  expect(made.text('\u0130\u0130 drive-CN7016363A008U')).not.toContain('CN7016363A008U');
});

it('takes time in proportion to the text, however many values begin alike', async () => {
  const made = replacer([{ Members: Array.from({ length: 40_000 }, (_, index) => ({ SerialNumber: `AAAA${index}` })) }]);
  // A comparison of each place with each value would take minutes.
  expect(await cpuMsOf(() => made.text('A '.repeat(10) + 'A'.repeat(1 << 20)), 20_000)).toBeLessThan(20_000);
});
