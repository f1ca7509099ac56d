/** A simulated machine's serial port: it reports the machine's phases and echoes its input. */
import type { SerialPort } from '../../wire/ipmi/bmc';

interface Serial {
  readonly port: SerialPort;
  /** Writes a line. */
  log(line: string): void;
}
export function createSerial(name: string): Serial {
  const listeners = new Set<(bytes: Buffer) => void>();
  const write = (text: string | Buffer): void => {
    for (const listener of Array.from(listeners)) listener(Buffer.from(text));
  };
  return {
    log: (line) => write(`${line}\r\n`),
    port: {
      listen: (output) => {
        listeners.add(output);
        return () => listeners.delete(output);
      },
      input: (bytes) => write(bytes.toString('latin1').replaceAll('\r', `\r\n${name}> `)),
      break: () => write('[break]\r\n'),
    },
  };
}
