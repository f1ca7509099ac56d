/** Addresses that belong to one machine each. The pool gives it no other address, and nobody else this one. */
import { machineOf, OFFER_MS, type Binding } from './addresses';
import type { Pool } from './pool';

type Reservation<Note> = { -readonly [Key in keyof Binding<Note>]: Binding<Note>[Key] };

/** @param reserved MAC address → address; the range of the pool names them too (`PoolRange.reserved`) */
export function reserveAddresses<Note>(pool: Pool<Note>, reserved: ReadonlyMap<string, number>, leaseMs: number): Pool<Note> {
  const all = new Map<string, Reservation<Note>>();
  for (const [mac, address] of reserved) all.set(mac, { address, state: 'ended', mac, until: 0, note: undefined });
  const ofMachine = (name: string, now: number): Reservation<Note> | undefined => {
    const own = all.get(machineOf(name));
    if (own && own.until <= now) own.state = 'ended';
    return own;
  };
  return {
    ...pool,
    find: (name, now) => ofMachine(name, now) ?? pool.find(name, now),
    offer(name, requested, now, note, isPreferred) {
      const own = ofMachine(name, now);
      if (!own) return pool.offer(name, requested, now, note, isPreferred);
      own.note = note;
      if (own.state !== 'bound') Object.assign(own, { state: 'offered', until: now + OFFER_MS } as const);
      return own;
    },
    bind(name, address, now) {
      const own = ofMachine(name, now);
      if (!own) return pool.bind(name, address, now);
      if (own.address === address) Object.assign(own, { state: 'bound', until: now + leaseMs } as const);
      return own.address === address;
    },
    hasLease: (machine, now) => (ofMachine(machine, now) ? ofMachine(machine, now)!.state === 'bound' : pool.hasLease(machine, now)),
    // Anybody can send this message in the machine's name. So the machine keeps its address.
    decline: (name, address, now) => {
      const own = ofMachine(name, now);
      return own ? own.address === address : pool.decline(name, address, now);
    },
    counts(now) {
      const counts = { ...pool.counts(now) };
      for (const mac of all.keys()) counts[ofMachine(mac, now)!.state] += 1;
      return counts;
    },
  };
}
