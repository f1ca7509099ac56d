/** The real oslo.config and the real Ironic's options must be as recorded in tests/reference/oslo-config. */
import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { programs } from '../lab/support/venv';
import { CASES } from './oslo-config/cases';

const FOLDER = join(__dirname, 'oslo-config');
it.each(['options', 'syntax'])(
  '%s.json is what the real one has',
  async (what) => {
    const python = join(await programs('ironic', ['ironic==39.0.0']), 'python');
    const { status, stdout, stderr } = spawnSync(python, [join(FOLDER, 'read.py'), what], {
      input: JSON.stringify(CASES),
      encoding: 'utf8',
      maxBuffer: 2 ** 26,
      timeout: 500_000,
    });
    if (status !== 0) throw new Error(stderr);
    const file = join(FOLDER, `${what}.json`);
    // RECORD_OSLO_CONFIG=1 records the results again.
    if (process.env['RECORD_OSLO_CONFIG'] !== undefined) writeFileSync(file, stdout);
    expect(JSON.parse(stdout)).toEqual(JSON.parse(readFileSync(file, 'utf8')));
  },
  600_000,
);
