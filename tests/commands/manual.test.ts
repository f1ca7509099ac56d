/** The manual pages, as groff reads them. */
import { createProgram } from '../../commands/program';

async function page(name: string): Promise<string> {
  const written: string[] = [];
  const output = jest.spyOn(process.stdout, 'write').mockImplementation((text) => written.push(String(text)) > 0);
  try {
    await createProgram().parseAsync(['node', 'bloomery', 'manual', name]);
  } finally {
    output.mockRestore();
  }
  return written.join('');
}
/** Width of indented text, on a page of 80 columns. */
const COLUMNS = 64;

it.each(['bloomery.1', 'bloomery.conf.5'])('%s has no word that is longer than a line', async (name) => {
  const words = (await page(name))
    .split('\n')
    .filter((line) => !line.startsWith('.') && !line.startsWith('bloomery '))
    .flatMap((line) => line.replace(/\\f[BIR]/g, '').split(/\\:|\s+/));
  expect(words.length).toBeGreaterThan(500);
  expect(words.filter((word) => word.replace(/\\(?:e|-)/g, '-').length > COLUMNS)).toEqual([]);
});
it('bloomery.1 has a title above its examples, and a section FILES', async () => {
  const text = await page('bloomery.1');
  expect(text).toMatch(/\n\.PP\nExamples:\n\.PP\n\.EX\n(?:bloomery why .+\n)+\.EE\n/);
  expect(text).toMatch(/\n\.SH FILES\n(?:\.TP\n.+\n.+\n)+\.SH SEE ALSO\n/);
});
