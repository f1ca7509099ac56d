/** The faults of docs/agent-failures.md, which tests put in, with the texts that they check. */
import type { AgentFault } from '../agent-faults/fault';
import { AGENT_FAULTS, type MachineFault } from '../agent-faults/machine';
import { BOOT_FAULTS, QEMU_FAULTS } from '../agent-faults/qemu';
import { STAND_IN_FAULTS } from '../agent-faults/stand-in';

const cell = (text: string): string => text.replaceAll('|', '\\|');
const title = (text: string): string => text[0]!.toUpperCase() + text.slice(1);

const block = (lines: readonly string[]): readonly string[] => ['```', ...lines, '```'];

/** What follows the heading `## Tested faults`. */
export function agentFaultsPage(): string {
  const rows: readonly (readonly [fault: AgentFault & Pick<MachineFault, 'textInQemu'>, where: string])[] = [
    ...AGENT_FAULTS.map((fault) => [fault, 'the agent; QEMU'] as const),
    ...[...QEMU_FAULTS, ...BOOT_FAULTS].map((fault) => [fault, 'QEMU'] as const),
    ...STAND_IN_FAULTS.map((fault) => [fault, 'a stand-in'] as const),
  ];
  return [
    'Generated from the data of the tests; do not edit below here (`UPDATE_DOCS=1 npx jest tests/drivers/agent-faults-page` writes it).',
    '',
    '- **the agent**: our agent runs in a machine of files (`tests/flows/provisioning/agent-process-faults.test.ts`).',
    '- **QEMU**: a machine in QEMU boots the ramdisk, and the fault is put into it (`tests/lab/agent/agent-faults.test.ts`).',
    '- **a stand-in**: a program calls the server in place of the agent (`tests/flows/provisioning/agent-faults.test.ts`).',
    '- An ellipsis stands for what differs each time; a line of only an ellipsis for any number of lines.',
    '',
    '| | fault | how it is put in | where |',
    '|---|---|---|---|',
    ...rows.map(([{ name, put }, where], index) => `| ${index + 1} | ${cell(name)} | ${cell(put)} | ${where} |`),
    ...rows.flatMap(([{ name, text, textInQemu: inQemu }], index) => [
      '',
      `### ${index + 1}. ${title(name)}`,
      '',
      ...block(text),
      ...(inQemu ? ['', 'In QEMU, whose network takes connections for the machine:', '', ...block(inQemu)] : []),
    ]),
    '',
  ].join('\n');
}
