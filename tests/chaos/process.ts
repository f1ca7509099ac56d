/** A server in its own process, which can be killed and suspended. */
import { startServerProcess, type RunningServer, type Sections } from '../../demo/lab/server';

/** One `bloomery serve` that is started again whenever it was ended. */
export interface Process {
  readonly url: string;
  readonly log: string;
  kill(): Promise<void>;
  start(): Promise<void>;
  signal(name: NodeJS.Signals): void;
  stop(): Promise<void>;
}
export async function startProcess(folder: string, port: number, config: Sections, roles = 'api,conductor'): Promise<Process> {
  const begin = (): Promise<RunningServer> => startServerProcess(folder, config, undefined, ['--roles', roles]);
  let server = await begin();
  return {
    url: `http://127.0.0.1:${port}`,
    log: server.log,
    kill: () => server.kill(),
    start: async () => {
      server = await begin();
    },
    signal: (name) => process.kill(server.pid, name),
    stop: async () => {
      await server.stop();
    },
  };
}
