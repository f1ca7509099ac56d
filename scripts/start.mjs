// npm start [-- OPTIONS]: the server, from a checkout.
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { build, installPackages, root } from './install.mjs';

installPackages();
build();
const server = spawn(process.execPath, [join(root, 'bin/bloomery'), 'serve', ...process.argv.slice(2)], { stdio: 'inherit' });
for (const signal of /** @type {const} */ (['SIGTERM', 'SIGINT'])) process.on(signal, () => server.kill(signal));
server.on('exit', (code) => process.exit(code ?? 1));
