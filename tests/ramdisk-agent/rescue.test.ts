import { existsSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { openForRescue } from '../../ramdisk-agent/rescue';
import { folder } from './support';

const HASH = '$5$saltsaltsaltsalt$Tu4lLWvgHKPNhmQEJOBLZKcLQUQFQxP1WGnKIBzQnm0';

it('openForRescue creates the user rescue with UID 0 and the password hash', async () => {
  const root = folder();
  await openForRescue(root, HASH, true);
  expect(readFileSync(join(root, 'etc/passwd'), 'utf8')).toMatch(/^rescue:x:0:0:/m);
  expect(readFileSync(join(root, 'etc/shadow'), 'utf8')).toMatch(/^root:!:/m);
  expect(readFileSync(join(root, 'etc/shadow'), 'utf8').split('\n')).toContain(`rescue:${HASH}:1::::::`);
  expect(statSync(join(root, 'etc/shadow')).mode & 0o777).toBe(0o600);
  expect(existsSync(join(root, 'run/rescue'))).toBe(true);
});

it.each([
  ['a plain-text password', 's3cret', true],
  ['a hash without the flag "hashed"', HASH, false],
  ['a missing password', undefined, true],
  ['a hash with a second line', `${HASH}\nroot::1::::::`, true],
  ['a hash with another field', '$5$salt$abcdefgh:0', true],
])('openForRescue rejects %s, and creates nothing', async (_, password, hashed) => {
  const root = folder();
  await expect(openForRescue(root, password, hashed)).rejects.toMatchObject({ type: 'InvalidCommandParamsError' });
  expect(existsSync(join(root, 'run/rescue'))).toBe(false);
});
