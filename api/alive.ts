/** Which conductors are alive: asked of the database every time in one small word, and read only when the word is another. */
import type { Clock } from '../model/clock';
import type { ConductorRecord } from '../model/records';
import { isAlive } from '../model/ring';
import type { Store } from '../store/store';

export interface Alive {
  /** Differs whenever the conductors do (`Conductors.alive`). Their signs of life, `updated_at`, are not kept up. */
  readonly word: string;
  readonly conductors: readonly ConductorRecord[];
}
export type AliveConductors = () => Promise<Alive>;

export function aliveConductors(
  { conductors: table }: Store,
  clock: Clock,
  options: { readonly 'conductor.heartbeat_timeout': number },
): AliveConductors {
  const timeout = options['conductor.heartbeat_timeout'];
  let last: Alive = { word: '', conductors: [] };
  return async () => {
    const now = clock.now();
    if ((await table.alive(now - timeout * 1000)) === last.word) return last;
    const conductors = (await table.list()).filter((one) => isAlive(one, now, timeout));
    // Of what was read, which may be later than what was asked.
    last = { word: conductors.map(({ id, revision }) => `${id}:${revision}`).join(), conductors };
    return last;
  };
}
