/** The work that an advanced clock starts reaches the database first, and the workers after that. */
import type { RunningConductor } from '../../conductor';

/** The number of checks in a row without a round of periodic work, and the most milliseconds that a busy machine may need. */
const [TURNS, MAX_MS] = [20, 20_000];

/**
 * Waits until rounds of periodic work and the work that they started have ended. A round that waits for the test itself is not awaited for
 * ever.
 */
export async function settled(conductor: RunningConductor): Promise<void> {
  const end = Date.now() + MAX_MS;
  for (let quiet = 0; quiet < TURNS; quiet++) {
    await new Promise((resolve) => setTimeout(resolve, 5));
    await conductor.idle();
    if (conductor.rounds() > 0 && Date.now() < end) quiet = 0;
  }
}
