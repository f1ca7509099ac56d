import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { HARDWARE_TYPES, INTERFACES } from '../../drivers/index';
import { INTERFACE_KINDS } from '../../model/records';
import { HARDWARE, hardwarePage } from '../support/pages/hardware-page';
import { testTitles } from '../support/pages/test-titles';

it('docs/reference/hardware.md equals the generated page', () => {
  const path = join(__dirname, '../../docs/reference/hardware.md');
  if (process.env['UPDATE_DOCS']) writeFileSync(path, hardwarePage());
  expect(readFileSync(path, 'utf8')).toBe(hardwarePage());
});

it('each row of HARDWARE has a proof, and each proof names an existing file and the beginning of a title in it', () => {
  const proofs = HARDWARE.flatMap((row) => Object.values(row.proofs));
  expect(HARDWARE.filter((row) => Object.keys(row.proofs).length === 0)).toEqual([]);
  const files = new Map(proofs.map((proof) => [fileOf(proof), [] as readonly string[]]));
  for (const file of files.keys()) {
    const path = join(__dirname, '..', file);
    if (existsSync(path)) files.set(file, testTitles(readFileSync(path, 'utf8')));
  }
  const missing = proofs.filter((proof) => {
    const words = proof.slice(`${fileOf(proof)}: `.length);
    return !files.get(fileOf(proof))!.some((title) => beginsWith(title, words));
  });
  expect(missing).toEqual([]);
});
const fileOf = (proof: string): string => /^[^:]+/.exec(proof)![0];
/** Whether the words are the beginning of the title, and do not end within a word. */
const beginsWith = (title: string, words: string): boolean => title.startsWith(words) && !/^\w/.test(title.slice(words.length));

it.each<[string, string, readonly string[]]>([
  ['nested tests', "describe('a', () => { it('b', () => {}); test('c', () => {}); });", ['a', 'b', 'c']],
  ['no other text', "// it('a')\nconst it2 = `it('b')`; call('c'); it('d', () => call('e'));", ['d']],
  ['no skipped tests', "it.skip('a'); it.todo('b'); describe.skip('c', () => it('d', () => {})); it.only('e');", ['e']],
  ['each row of a list', "it.each(['x', 'y'])('a %s', () => {});", ['a %s', 'a x', 'a y']],
  ['each row of a table', "it.each([['x', { b: 1 }, f()]] as const)('%s with %j', () => {});", ['%s with %j', 'x with {"b":1}']],
  ['each row of a constant', "const ROWS: T = [{ name: 'x', f }]; describe.each(ROWS)('$name: a', () => {});", ['$name: a', 'x: a']],
  ['no row of an unknown value', "it.each([[f(), 'x'], ['y', 'z']])('%s', () => {});", ['%s', 'y']],
  ['the rows of testMachines', "testMachines('network', [{ name: 'x' }]);", ['$name', 'x']],
])('testTitles returns %s', (_, source, titles) => {
  expect(testTitles(source)).toEqual(titles);
});

it('testMachines, of which testTitles knows the title, is a describe of each row', () => {
  expect(testTitles(readFileSync(join(__dirname, '../lab/deployment/end-to-end.ts'), 'utf8'))).toContain('$name');
});

it('HARDWARE contains exactly the interfaces that control a BMC', () => {
  const ofBmcs = (['ipmi', 'intel-ipmi', 'redfish', 'idrac'] as const).flatMap((type) =>
    INTERFACE_KINDS.flatMap((kind) =>
      HARDWARE_TYPES[type]![kind].filter((name) => Object.hasOwn(INTERFACES[kind], name))
        // Machines without a BMC have the others too.
        .filter((name) => !HARDWARE_TYPES['manual-management']![kind].includes(name))
        // Consoles of Redfish machines are those of IPMI, and makers' types have most interfaces of the standard's.
        .filter((name) => type === 'ipmi' || name !== 'ipmitool-socat')
        .filter((name) => !['intel-ipmi', 'idrac'].includes(type) || /^(?:idrac|intel)-/.test(name))
        .map((name) => `${type} ${kind} ${name}`),
    ),
  );
  const shown = HARDWARE.map(({ type, kind, name }) => `${type} ${kind} ${name}`);
  expect([...new Set(shown)].sort()).toEqual(ofBmcs.sort());
});
