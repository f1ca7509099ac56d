import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { HARDWARE_TYPES, INTERFACES } from '../../drivers/index';
import { INTERFACE_KINDS } from '../../model/records';
import { HARDWARE, hardwarePage } from '../support/pages/hardware-page';

it('docs/reference/hardware.md equals the generated page', () => {
  const path = join(__dirname, '../../docs/reference/hardware.md');
  if (process.env['UPDATE_DOCS']) writeFileSync(path, hardwarePage());
  expect(readFileSync(path, 'utf8')).toBe(hardwarePage());
});

it('each row of HARDWARE has a proof, and each proof names an existing file and text in it', () => {
  const proofs = HARDWARE.flatMap((row) => Object.values(row.proofs));
  expect(HARDWARE.filter((row) => Object.keys(row.proofs).length === 0)).toEqual([]);
  const missing = proofs.filter((proof) => {
    const [, file, words] = /^([^:]+): (.+)$/.exec(proof)!;
    const path = join(__dirname, '..', file!);
    return !existsSync(path) || !readFileSync(path, 'utf8').includes(words!);
  });
  expect(missing).toEqual([]);
});

it('HARDWARE contains exactly the interfaces that control a BMC', () => {
  const ofBmcs = (['ipmi', 'redfish'] as const).flatMap((type) =>
    INTERFACE_KINDS.flatMap((kind) =>
      HARDWARE_TYPES[type]![kind].filter((name) => /^(ipmitool|redfish)/.test(name) && Object.hasOwn(INTERFACES[kind], name))
        // Consoles of Redfish machines are those of IPMI.
        .filter((name) => type === 'ipmi' || name !== 'ipmitool-socat')
        .map((name) => `${type} ${kind} ${name}`),
    ),
  );
  const shown = HARDWARE.map(({ type, kind, name }) => `${type} ${kind} ${name}`);
  expect([...new Set(shown)].sort()).toEqual(ofBmcs.sort());
});
