import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { HARDWARE_TYPES, INTERFACES } from '../../drivers/index';
import type { InterfaceKind } from '../../model/records';
import { HARDWARE, hardwarePage } from '../support/hardware-page';

it('docs/hardware.md is as it is generated', () => {
  const path = join(__dirname, '../../docs/hardware.md');
  if (process.env['UPDATE_DOCS']) writeFileSync(path, hardwarePage());
  expect(readFileSync(path, 'utf8')).toBe(hardwarePage());
});

it('each row has a proof, and each proof is a test that there is', () => {
  const proofs = HARDWARE.flatMap((row) => Object.values(row.proofs));
  expect(HARDWARE.filter((row) => Object.keys(row.proofs).length === 0)).toEqual([]);
  const missing = proofs.filter((proof) => {
    const [, file, words] = /^([^:]+): (.+)$/.exec(proof)!;
    const path = join(__dirname, '..', file!);
    return !existsSync(path) || !readFileSync(path, 'utf8').includes(words!);
  });
  expect(missing).toEqual([]);
});

it('names interfaces that there are', () => {
  const unknown = HARDWARE.filter(({ type, kind, name }) => {
    const offered = HARDWARE_TYPES[type]![kind as InterfaceKind];
    return !offered.includes(name) || !Object.hasOwn(INTERFACES[kind as InterfaceKind], name);
  });
  expect(unknown).toEqual([]);
});
