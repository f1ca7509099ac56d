import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buildSync } from 'esbuild';
import { environmentOf, runProgram } from '../../wire/child-processes';

const folder = mkdtempSync(join(tmpdir(), 'bloomery-children-'));
afterAll(() => rmSync(folder, { recursive: true }));

describe('programs get only the variables of their rows', () => {
  const before = { ...process.env };
  beforeAll(() => Object.assign(process.env, { DATABASE_URL: 'postgresql://u:secret@h/d', OS_PASSWORD: 'secret', LANG: 'C.UTF-8' }));
  afterAll(() => (process.env = before));
  it.each(['postgres', 'ps', 'ipmitool', 'switches'] as const)('%s', async (name) => {
    const text = await new Promise<string>((done, fail) =>
      runProgram(name, '/usr/bin/env', [], { encoding: 'utf8' }, (error, stdout) => (error ? fail(error) : done(stdout))),
    );
    expect(text).not.toContain('secret');
    expect(text).toContain('PATH=');
    expect(text.includes('LANG=')).toBe(name === 'switches');
  });
  it('and those of the call', () => {
    expect(environmentOf('ipmitool', { IPMI_PASSWORD: 'x' })).toMatchObject({ IPMI_PASSWORD: 'x', LC_ALL: 'C' });
  });
});

it('keepCapabilities() leaves this process its ambient capabilities, and children none', () => {
  const script = join(folder, 'keep.js');
  const entry = join(folder, 'entry.ts');
  const [project, status] = [join(__dirname, '../..'), '/proc/self/status'];
  writeFileSync(
    entry,
    `import { readFileSync } from 'node:fs';
import { keepCapabilities, runProgram } from ${JSON.stringify(join(project, 'wire/child-processes'))};
void keepCapabilities().then(() => runProgram('ps', 'cat', ['${status}'], { encoding: 'utf8' }, (_, child) =>
  console.log(JSON.stringify([readFileSync('${status}', 'utf8'), child].map((text) => /CapEff:\\t0*([0-9a-f]*)/.exec(text)![1])))));`,
  );
  buildSync({
    bundle: true,
    platform: 'node',
    format: 'cjs',
    outfile: script,
    logLevel: 'error',
    external: ['koffi'],
    entryPoints: [entry],
  });
  symlinkSync(join(project, 'node_modules'), join(folder, 'node_modules'));
  // Only root can give ambient capabilities, as systemd does. Its user ID gives none with `noroot`. Others have none to keep.
  const isRoot = process.getuid?.() === 0;
  const as = ['setpriv', '--securebits', '+noroot', '--inh-caps=-all,+net_raw', '--ambient-caps=-all,+net_raw'];
  const [program, ...words] = [...(isRoot ? as : []), process.execPath, script];
  const text = execFileSync(program!, words, { encoding: 'utf8', cwd: '/' });
  expect(JSON.parse(text)).toEqual([isRoot ? '2000' : '', '']);
});
