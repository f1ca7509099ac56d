import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import type { NodeColumn, PortColumn } from '../../model/fields';
import type { NodeRecord, PortRecord } from '../../model/records';

/** Compiled by `npm run check`: the document's fields and the records' are the same names. */
type Same<One, Other> = [One] extends [Other]
  ? [Other] extends [One]
    ? true
    : { missing: Exclude<Other, One> }
  : { unknown: Exclude<One, Other> };
/** What the store keeps for itself. */
type Internal = 'id' | 'revision' | 'lock_fence';
const node: Same<NodeColumn, Exclude<keyof NodeRecord, Internal>> = true;
const port: Same<PortColumn, Exclude<keyof PortRecord, Internal>> = true;

it('has the fields of openapi.yaml in the records', () => {
  expect([node, port]).toEqual([true, true]);
});

it('was generated from openapi.yaml as it is', () => {
  execFileSync(process.execPath, [join(__dirname, '../../scripts/types.mjs'), '--check'], { stdio: 'inherit' });
});
