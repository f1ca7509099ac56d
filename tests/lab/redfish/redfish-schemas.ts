/** DMTF's Redfish schemas (DSP8010) with SNIA's, from the crate `nv-redfish-schema`: fetched once and kept under .cache. */
import { execFile } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { root } from '../support/venv';

const run = promisify(execFile);
const VERSION = '0.22.1';
/** Cargo fetches crates for a project only. This project is empty, and is never compiled. */
const PROJECT = `[package]
name = "schemas"
version = "0.0.0"
[lib]
path = "lib.rs"
[dependencies]
nv-redfish-schema = "=${VERSION}"
`;

/** @returns a folder with every schema as a CSDL file */
export async function redfishSchemas(): Promise<string> {
  const folder = join(root, '.cache', `redfish-schemas-${VERSION}`);
  if (existsSync(folder)) return folder;
  const work = `${folder}.new`;
  rmSync(work, { recursive: true, force: true });
  mkdirSync(work, { recursive: true });
  writeFileSync(join(work, 'Cargo.toml'), PROJECT);
  writeFileSync(join(work, 'lib.rs'), '');
  await run('cargo', ['vendor', '--versioned-dirs', 'vendor'], { cwd: work, timeout: 300_000 });
  const crate = join(work, 'vendor', `nv-redfish-schema-${VERSION}`);
  // Files in both folders come from the second: DMTF's are newer.
  for (const part of ['swordfish-csdl/csdl-schema', 'redfish-csdl/csdl'])
    cpSync(join(crate, part), join(work, 'schemas'), { recursive: true });
  renameSync(join(work, 'schemas'), folder);
  rmSync(work, { recursive: true });
  return folder;
}
