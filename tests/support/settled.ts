/** What a turned clock has set going reaches the database first, and the workers after it. */
import type { RunningConductor } from '../../conductor';

/** Turns of the event loop in which nothing may be under way; and the longest that a busy machine may take, in milliseconds. */
const [TURNS, LONGEST_MS] = [20, 20_000];

/** Until rounds of periodic work and the work that they started have ended; a round that waits for the test itself is not waited for. */
export async function settled(conductor: RunningConductor): Promise<void> {
  const end = Date.now() + LONGEST_MS;
  for (let quiet = 0; quiet < TURNS; quiet++) {
    await new Promise((resolve) => setTimeout(resolve, 5));
    await conductor.idle();
    if (conductor.rounds() > 0 && Date.now() < end) quiet = 0;
  }
}
