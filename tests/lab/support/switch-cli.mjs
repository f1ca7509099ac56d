// switch-cli.mjs FILE: the command line of a switch, which an SSH login starts, with the commands and prompts of Arista's EOS. It knows the
// commands by which networking-generic-switch moves a port between VLANs, and refuses all others. FILE gets a line for each move:
// `Ethernet1 101`, or `Ethernet1 -` for a port without a VLAN.
import { appendFileSync } from 'node:fs';

const [, , file] = process.argv;
const REFUSED = '% Invalid input';
let mode = 'exec';
let port = '';
const prompt = () => `switch${{ exec: '', config: '(config)', port: '(config-if)' }[mode]}#`;
const move = (vlan) => appendFileSync(file, `${port} ${vlan}\n`);

/** Mode, pattern of the command → what it does; it returns its output. */
const COMMANDS = [
  ['exec', /^terminal width \d+$/, () => 'Width set to 511 columns.'],
  ['exec', /^terminal length 0$/, () => 'Pagination disabled.'],
  ['exec', /^enable$/, () => ''],
  [
    'exec',
    /^configure terminal$/,
    () => {
      mode = 'config';
    },
  ],
  [
    'config port',
    /^interface (Ethernet\d+)$/,
    (name) => {
      [mode, port] = ['port', name];
    },
  ],
  ['port', /^switchport access vlan (\d+)$/, (vlan) => move(vlan)],
  ['port', /^no switchport access vlan \d+$/, () => move('-')],
  ['port', /^(?:no switchport mode trunk|switchport mode access|switchport trunk allowed vlan none)$/, () => ''],
  [
    'config port',
    /^end$/,
    () => {
      mode = 'exec';
    },
  ],
  ['exec', /^exit$/, () => process.exit(0)],
];
function obey(line) {
  if (line === '') return '';
  for (const [modes, pattern, act] of COMMANDS) {
    const match = modes.split(' ').includes(mode) && pattern.exec(line);
    if (match) return act(...match.slice(1)) ?? '';
  }
  return REFUSED;
}

// The switch itself echoes its input, when it processes it.
process.stdin.setRawMode?.(true);
process.stdin.setEncoding('utf8');
process.stdout.write(prompt());
let rest = '';
process.stdin.on('data', (text) => {
  const lines = `${rest}${text}`.split(/\r\n|\r|\n/);
  rest = lines.pop();
  for (const line of lines) {
    const said = obey(line.trim());
    process.stdout.write(`${line}\r\n${said === '' ? '' : `${said}\r\n`}${prompt()}`);
  }
});
process.stdin.on('end', () => process.exit(0));
