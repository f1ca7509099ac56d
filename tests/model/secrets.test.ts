import { isSameSecret } from '../../model/masks';

it.each([
  ['secret', 'secret', true],
  ['', '', true],
  ['secret', 'secret ', false],
  ['secret', '', false],
  ['é', 'e', false],
  ['é', 'é', true],
])('isSameSecret(%j, %j) is %s', (left, right, same) => {
  expect(isSameSecret(left, right)).toBe(same);
});
