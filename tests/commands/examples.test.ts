import type { Command } from 'commander';
import { EXAMPLES } from '../../commands/examples';
import { createProgram } from '../../commands/program';

const program = createProgram();
/** The commands by the words that select them. */
function commandsBelow(command: Command, path = ''): ReadonlyMap<string, Command> {
  const below = command.commands.flatMap((item) => [...commandsBelow(item, `${path} ${item.name()}`.trim())]);
  return new Map([[path, command], ...below]);
}
const commands = commandsBelow(program);

it('EXAMPLES has examples for every command, and for nothing else', () => {
  expect(Object.keys(EXAMPLES).sort()).toEqual([...commands.keys()].sort());
});

it.each(Object.entries(EXAMPLES).flatMap(([path, lines]) => lines.map((line) => [path, line])))(
  'the example of "%s" uses only commands and options that exist: %s',
  (path, line) => {
    const words = /(?:^|[ (])bloomery (.*)$/
      .exec(line)![1]!
      .split(/ [|>] /)[0]!
      .replace(/ -- .*/, '')
      .split(' ');
    expect(words.slice(0, path.split(' ').length).join(' ').startsWith(path)).toBe(true);
    const named = words.filter((word) => word.startsWith('--')).map((word) => word.replace(/\)$/, ''));
    const selected = [...commands].filter(([other]) => `${words.join(' ')} `.startsWith(`${other} `)).map(([, command]) => command);
    const known = ['--help', ...selected.flatMap((command) => command.options.map(({ long }) => long))];
    expect(known).toEqual(expect.arrayContaining(named));
  },
);

it('the help of a command contains its examples', () => {
  const text: string[] = [];
  commands
    .get('why')!
    .configureOutput({ writeOut: (part) => text.push(part) })
    .outputHelp();
  expect(text.join('')).toMatch(/\nExamples:\n {2}bloomery why node-1\n/);
});
