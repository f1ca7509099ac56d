import { isSameSecret } from '../../model/masks';

it.each([
  ['secret', 'secret', true],
  ['', '', true],
  ['secret', 'secret ', false],
  ['secret', '', false],
  ['é', 'e', false],
  ['é', 'é', true],
])('isSameSecret(%j, %j) is %s', (one, other, same) => {
  expect(isSameSecret(one, other)).toBe(same);
});
