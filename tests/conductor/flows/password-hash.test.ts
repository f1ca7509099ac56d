import { hashPassword, shaCrypt } from '../../../conductor/flows/password-hash';

// Made by `openssl passwd -5|-6 -salt SALT PASSWORD`.
it.each<['sha256' | 'sha512', string, string, string]>([
  ['sha256', 'saltstring', 'Hello', '$5$saltstring$jfZe1.O5rA9aUKHLYLEqMjNCNYEqmZMJ.KAMmcgZPz5'],
  ['sha256', 'abcdefghijklmnop', 'x', '$5$abcdefghijklmnop$fiUnwzJyCDn7Dx53oezcP81DtfKy73q.P999JrS8fsB'],
  ['sha512', 'saltstring', 'Hello', '$6$saltstring$aQzKv7HhksN4CNT5HySRdxOEHxZvlWWP2je/lOgbrHx5iLYj3NJfVnC287n/dwkODYWL1.LZUdO9vX84fkCna/'],
  [
    'sha512',
    'ab',
    'a-password-that-is-much-longer-than-one-digest-of-sixty-four-bytes-so-that-it-wraps-around',
    '$6$ab$sIhEufUC2dsfOwdL2zS1t5wwoEyZA4.V39/dLT5HirE4znXVttOwCRe5lkA4PS1H2DFon/P7dhCr3P41RAbPr.',
  ],
  ['sha256', './0', 'päß', '$5$./0$nc3HqMDxep4gb.WI0xFtFCt4i3VD/.l6hUB804O44N4'],
])('shaCrypt() hashes as crypt(3) does: %s with the salt %s', (algorithm, salt, password, hash) => {
  expect(shaCrypt(password, salt, algorithm)).toBe(hash);
});

it('hashPassword() makes a salt', () => {
  expect(hashPassword('x', 'sha256', (bytes) => Buffer.alloc(bytes, 2))).toMatch(/^\$5\$0{16}\$[./0-9A-Za-z]{43}$/);
});
