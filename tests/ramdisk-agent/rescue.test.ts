import { existsSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { openForRescue } from '../../ramdisk-agent/rescue';
import { folder } from './support';

const HASH = '$5$saltsaltsaltsalt$Tu4lLWvgHKPNhmQEJOBLZKcLQUQFQxP1WGnKIBzQnm0';

it('makes a user with all rights who has the password', async () => {
  const root = folder();
  await openForRescue(root, HASH, true);
  expect(readFileSync(join(root, 'etc/passwd'), 'utf8')).toMatch(/^rescue:x:0:0:/m);
  expect(readFileSync(join(root, 'etc/shadow'), 'utf8')).toMatch(/^root:!:/m);
  expect(readFileSync(join(root, 'etc/shadow'), 'utf8').split('\n')).toContain(`rescue:${HASH}:1::::::`);
  expect(statSync(join(root, 'etc/shadow')).mode & 0o777).toBe(0o600);
  expect(existsSync(join(root, 'run/rescue'))).toBe(true);
});

it.each([
  ['a password in the clear', 's3cret', true],
  ['one that is said to be no hash', HASH, false],
  ['nothing', undefined, true],
  ['another line', `${HASH}\nroot::1::::::`, true],
  ['another field', '$5$salt$abcdefgh:0', true],
])('refuses %s, and makes nothing', async (_, password, hashed) => {
  const root = folder();
  await expect(openForRescue(root, password, hashed)).rejects.toMatchObject({ type: 'InvalidCommandParamsError' });
  expect(existsSync(join(root, 'run/rescue'))).toBe(false);
});
