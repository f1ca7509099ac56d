/** docs/reference/makers.md: the personalities and the habits of simulated BMCs, by their tables. */
import { HABITS } from '../../../simulator/redfish/makers/habits';
import { PERSONALITIES } from '../../../simulator/redfish/makers/personalities';
import type { Habit } from '../../../simulator/redfish/protocol/habits';

const cell = (text: string): string => text.replaceAll('|', '\\|');

export function makersPage(): string {
  const habits: readonly (readonly [string, Habit])[] = Object.entries(HABITS);
  return [
    '# Makers that the simulator knows',
    '',
    "This page is for people who test against makers' BMCs without having them: which machines `bloomery simulate` imitates, and in what.",
    'It is generated from the tables of the simulator (`UPDATE_DOCS=1 npx jest tests/simulator/redfish/makers-page` writes it); do not edit it.',
    '[simulator.md](../simulator.md#makers) says how to use it.',
    '',
    'The facts come from other projects, which this page names. They were read, and not measured.',
    'A fact may be true for one firmware only.',
    '',
    '## Personalities',
    '',
    '| `--personality` | machine | system | manager | firmware of the BMC | habits |',
    '|---|---|---|---|---|---|',
    ...Object.entries(PERSONALITIES).map(
      ([name, { product, ids, firmware, habits: has }]) =>
        `| \`${name}\` | ${cell(product)} | \`${ids.system}\` | \`${ids.manager}\` | ${cell(firmware.bmc)} | ${has.map((habit) => `\`${habit}\``).join(', ')} |`,
    ),
    '',
    '## Habits',
    '',
    '| `--habits` | what the service does | where it is reported |',
    '|---|---|---|',
    ...habits.map(([name, { about, source }]) => `| \`${name}\` | ${cell(about)} | ${cell(source)} |`),
    '',
  ].join('\n');
}
