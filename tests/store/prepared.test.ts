/** Names of prepared statements. PostgreSQL keeps each named statement as long as its connection lives. */
import { createNames, insertOf } from '../../store/sql/prepared';

it('names the same text alike, in all kinds of statements, and other texts differently', () => {
  const nameOf = createNames();
  expect(nameOf('SELECT 1')).toMatch(/^text_/);
  expect(nameOf('SELECT 1')).toBe(nameOf('SELECT 1'));
  expect(createNames()('SELECT 1')).toBe(nameOf('SELECT 1'));
  expect(nameOf('SELECT 2')).not.toBe(nameOf('SELECT 1'));
});

it('names a bounded number of texts, because requests can cause any number', () => {
  const nameOf = createNames(10);
  const first = nameOf('SELECT 1');
  const named = Array.from({ length: 1000 }, (_, index) => nameOf(`SELECT ${index} AS many`)).filter((name) => name !== undefined);
  expect(named).toHaveLength(9);
  expect(nameOf('SELECT 1')).toBe(first);
});

it('makes an INSERT with a parameter for each column', () => {
  expect(insertOf('nodes', ['uuid', 'default'], 'id')).toBe('INSERT INTO nodes ("uuid", "default") VALUES ($1, $2) RETURNING id');
});
