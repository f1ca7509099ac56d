/** The agent's log: lines on the console. The latest are stored for `collect_system_logs` and the inspection's `logs`. */
import type { Clock } from '../model/clock';
import { type Log, printable } from '../model/log';

export interface BufferedLog extends Log {
  /** The stored lines, the oldest first. */
  text(): string;
}

interface Keeping {
  /** Lines that are stored. */
  readonly keep?: number;
  readonly earlier?: readonly string[];
  /** Called with each line. */
  readonly also?: (line: string) => void;
}
export function consoleLog(write: (line: string) => void, clock: Clock, debug: boolean, keeping: Keeping = {}): BufferedLog {
  const { keep = 4000, earlier = [], also = () => {} } = keeping;
  const lines: string[] = [...earlier];
  const make = (bound: object): BufferedLog => {
    const say = (level: string) => (message: string, fields?: object) => {
      const all = { ...bound, ...fields };
      const rest = Object.keys(all).length > 0 ? ` ${JSON.stringify(all)}` : '';
      const line = printable(`${new Date(clock.now()).toISOString()} ${level} ${message}${rest}`);
      lines.push(line);
      also(line);
      if (lines.length > keep) lines.shift();
      if (level !== 'DEBUG' || debug) write(`${line}\n`);
    };
    return {
      debug: say('DEBUG'),
      info: say('INFO'),
      warn: say('WARNING'),
      error: say('ERROR'),
      child: (fields) => make({ ...bound, ...fields }),
      text: () => `${lines.join('\n')}\n`,
    };
  };
  return make({});
}
