/** Commands of `bloomery` in the process of the test: a process of its own takes half a second of processor time to start. */
import { format } from 'node:util';
import { runProgram } from '../../commands/program';

interface CommandResult {
  readonly code: number;
  readonly output: string;
  readonly errors: string;
}
const status = (): number => Number(process.exitCode ?? 0);
const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/** Runs a command that ends by itself, as the program does. @param environment undefined removes a variable */
export async function runCommand(
  words: readonly string[],
  environment: Readonly<Record<string, string | undefined>> = {},
): Promise<CommandResult> {
  let code: number | undefined;
  let output = '';
  let errors = '';
  // A process that has ended writes nothing.
  const toOutput = (text: string): boolean => {
    if (code === undefined) output += text;
    return true;
  };
  const toErrors = (text: string): boolean => {
    if (code === undefined) errors += text;
    return true;
  };
  const spies = [
    jest.spyOn(process.stdout, 'write').mockImplementation((text) => toOutput(String(text))),
    jest.spyOn(process.stderr, 'write').mockImplementation((text) => toErrors(String(text))),
    jest.spyOn(console, 'log').mockImplementation((...values) => void toOutput(`${format(...values)}\n`)),
    jest.spyOn(console, 'error').mockImplementation((...values) => void toErrors(`${format(...values)}\n`)),
    jest.spyOn(process, 'exit').mockImplementation((given) => {
      code ??= Number(given ?? status());
      throw new Error('the process has ended');
    }),
  ];
  const before = {
    variables: { ...process.env },
    listeners: SIGNALS.map((name) => new Set(process.listeners(name))),
    code: process.exitCode,
  };
  for (const [name, value] of Object.entries(environment)) {
    if (value === undefined) delete process.env[name];
    else process.env[name] = value;
  }
  process.exitCode = 0;
  try {
    await runProgram(words);
    code ??= status();
  } catch (error) {
    if (code === undefined) throw error;
  } finally {
    for (const spy of spies) spy.mockRestore();
    process.env = before.variables;
    process.exitCode = before.code;
    for (const [index, name] of SIGNALS.entries())
      for (const listener of process.listeners(name)) if (!before.listeners[index]!.has(listener)) process.removeListener(name, listener);
  }
  return { code, output, errors };
}
