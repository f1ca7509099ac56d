import { isBehind, isPosition } from '../../model/events';

describe('positions', () => {
  it.each([
    ['1-2', true],
    ['0-0', true],
    ['9223372036854775807-9223372036854775807', true],
    ['9223372036854775808-1', false],
    ['1', false],
    ['-1-2', false],
    ['1-2 ', false],
    ['a-b', false],
    ['', false],
  ])('isPosition(%j) is %p', (text, expected) => expect(isPosition(text)).toBe(expected));
  it.each([
    ['2-1', '1-9', true],
    ['1-9', '2-1', false],
    ['1-10', '1-9', true],
    ['1-9', '1-9', false],
  ])('isBehind(%s, %s) is %p', (left, right, expected) => expect(isBehind(left, right)).toBe(expected));
});
