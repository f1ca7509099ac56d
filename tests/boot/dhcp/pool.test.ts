import { createLeaseWriter } from '../../../boot/dhcp/leases';
import { createLeaseChanges, createPool, type LeaseChanges, type Pool } from '../../../boot/dhcp/pool';
import { reserveAddresses } from '../../../boot/dhcp/reservations';
import type { LeaseRecord } from '../../../model/records';
import { testClock } from '../../support/clock';
import { dhcpStore } from '../../support/fakes/dhcp-store';
import { numberToAddress } from '../../../wire/dhcp/dhcp';

const LEASE = 3_600_000;
const OFFER = 30_000;
const FIRST = 0x0a000064;
const address = (index: number): number => FIRST + index;
const mac = (index: number): string =>
  `52:54:00:00:${(index >> 8).toString(16).padStart(2, '0')}:${(index & 255).toString(16).padStart(2, '0')}`;
const lease = (machine: number, index: number, expires_at: number): LeaseRecord => ({
  mac: mac(machine),
  address: numberToAddress(address(index)),
  expires_at,
});
const poolOf = (
  size: number,
  leases: readonly LeaseRecord[] = [],
  now = 0,
  excluded: readonly number[] = [],
): Pool<string> & LeaseChanges => {
  const changes = createLeaseChanges();
  return { ...createPool<string>({ first: FIRST, last: FIRST + size - 1, excluded, leaseMs: LEASE }, leases, now, changes), ...changes };
};
/** Offer and request. */
function take(pool: Pool<string>, machine: number, now: number): number | undefined {
  const offered = pool.offer(mac(machine), 0, now, '')?.address;
  if (offered !== undefined) expect(pool.bind(mac(machine), offered, now)).toBe(true);
  return offered;
}

it('offers each address of the range once, and no excluded one', () => {
  const pool = poolOf(10, [], 0, [address(3), address(9)]);
  const given = Array.from({ length: 9 }, (_, machine) => take(pool, machine, 0));
  expect(given.slice(0, 8).sort()).toEqual([0, 1, 2, 4, 5, 6, 7, 8].map(address));
  expect(given[8]).toBeUndefined();
});
it('counts addresses by state', () => {
  const pool = poolOf(10, [lease(1, 1, LEASE), lease(2, 2, -1)], 0, [address(3)]);
  const none = { free: 0, offered: 0, bound: 0, ended: 0, declined: 0 };
  expect(pool.counts(0)).toEqual({ ...none, free: 7, bound: 1, ended: 1 });
  take(pool, 4, 0);
  pool.offer(mac(5), 0, 0, '');
  expect(pool.counts(0)).toEqual({ ...none, free: 5, offered: 1, bound: 2, ended: 1 });
  expect(pool.counts(LEASE + 1)).toEqual({ ...none, free: 6, ended: 3 });
});
it('offers a machine its former address while others are free, even without stored leases', () => {
  const one = take(poolOf(50), 7, 0);
  expect(take(poolOf(50), 7, 0)).toBe(one);
  const pool = poolOf(50);
  take(pool, 7, 0);
  for (let machine = 100; machine < 140; machine += 1) take(pool, machine, LEASE + 1);
  expect(take(pool, 7, 2 * LEASE)).toBe(one);
});
it('an exhausted pool reuses the address whose lease ended first', () => {
  const pool = poolOf(3);
  const [first, second] = [take(pool, 1, 0), take(pool, 2, 1000), take(pool, 3, 2000)];
  take(pool, 1, 3000);
  expect(take(pool, 4, 1000 + LEASE - 1)).toBeUndefined();
  // The leases of the second and the third machine have ended; the first was renewed.
  expect(take(pool, 4, 2000 + LEASE)).toBe(second);
  expect(pool.find(mac(2), 2000 + LEASE)).toBeUndefined();
  expect(pool.find(mac(1), 2000 + LEASE)).toMatchObject({ address: first, state: 'bound' });
});
it('an offer expires after 30 s and is not stored', () => {
  const pool = poolOf(1);
  expect(pool.offer(mac(1), 0, 0, 'a')).toMatchObject({ state: 'offered', note: 'a' });
  expect(pool.find(mac(1), OFFER - 1)).toMatchObject({ state: 'offered' });
  expect(pool.offer(mac(2), 0, OFFER, 'b')).toMatchObject({ address: address(0), mac: mac(2) });
  expect(pool.find(mac(1), OFFER)).toBeUndefined();
  expect(pool.changes()).toEqual([]);
});
it('an offer does not shorten a running lease', () => {
  const pool = poolOf(5);
  take(pool, 1, 0);
  pool.offer(mac(1), 0, 1000, 'again');
  expect(pool.find(mac(1), 2 * OFFER)).toMatchObject({ state: 'bound', until: LEASE, note: 'again' });
});
it('if no other address is left, an offer is valid for 8 s, and its machine may accept it later as long as nobody else does', () => {
  const pool = poolOf(1);
  pool.offer(mac(1), 0, 0, 'a');
  expect(pool.offer(mac(2), 0, 7999, 'b')).toBeUndefined();
  expect(pool.offer(mac(2), 0, 8000, 'b')).toMatchObject({ address: address(0), mac: mac(2) });
  expect(pool.bind(mac(3), address(0), 9000)).toBe(false);
  expect(pool.bind(mac(1), address(0), 9000)).toBe(true);
  expect(pool.find(mac(1), 9000)).toMatchObject({ state: 'bound', note: undefined });
  expect(pool.bind(mac(2), address(0), 9000)).toBe(false);
});
it('a declined address is not offered for an hour', () => {
  const pool = poolOf(2);
  take(pool, 2, 10);
  const given = take(pool, 1, 0)!;
  expect(pool.decline(mac(2), given, 10)).toBe(false);
  expect(pool.decline(mac(1), given, 10)).toBe(true);
  expect(pool.bind(mac(1), given, 20)).toBe(false);
  expect(pool.counts(3_600_009)).toMatchObject({ declined: 1, free: 0 });
  expect(pool.counts(3_600_010)).toMatchObject({ declined: 0, free: 1 });
  expect(pool.changes()).toContainEqual({ address: numberToAddress(given), lease: undefined });
});

describe('a flood', () => {
  const decline = (pool: Pool<string>, machine: string, now: number): void => {
    const offered = pool.offer(machine, 0, now, '');
    if (offered) expect(pool.decline(machine, offered.address, now)).toBe(true);
  };
  it('of one machine that declines all its offers blocks three addresses', () => {
    const pool = poolOf(100);
    for (let round = 0; round < 1000; round += 1) decline(pool, mac(1), round);
    expect(pool.counts(1000)).toMatchObject({ declined: 3, free: 97 });
  });
  it('of many machines that decline blocks a quarter of the range, and others still get those addresses when no other is left', () => {
    const pool = poolOf(100);
    for (let round = 0; round < 1000; round += 1) decline(pool, mac(round), round);
    expect(pool.counts(1000)).toMatchObject({ declined: 25, free: 75 });
    const given = Array.from({ length: 100 }, (_, machine) => take(pool, 2000 + machine, 1000));
    expect(new Set(given).size).toBe(100);
    expect(given).not.toContain(undefined);
  });
  it('of one machine with many interfaces takes four addresses, and its newest offers replace the oldest', () => {
    const pool = poolOf(100);
    for (let iaid = 0; iaid < 1000; iaid += 1) pool.offer(`${mac(1)}/${iaid}`, 0, iaid, '');
    expect(pool.counts(1000)).toMatchObject({ offered: 4 });
    expect(pool.find(`${mac(1)}/999`, 1000)).toBeDefined();
    // Those in use stay. The name without an interface is another client: its address was seen in the packet.
    const bound = [996, 997, 998, 999].map((iaid) => pool.find(`${mac(1)}/${iaid}`, 1000)!.address);
    for (const [index, address_] of bound.entries()) expect(pool.bind(`${mac(1)}/${996 + index}`, address_, 1000)).toBe(true);
    expect(pool.offer(`${mac(1)}/5`, 0, 1001, '')).toBeUndefined();
    expect(pool.bind(`${mac(1)}/5`, address(50), 1001)).toBe(false);
    expect(take(pool, 1, 1001)).toBeDefined();
  });
  it('declined addresses of one machine count for all its interfaces', () => {
    const pool = poolOf(100);
    for (let iaid = 0; iaid < 100; iaid += 1) decline(pool, `${mac(1)}/${iaid}`, iaid);
    expect(pool.counts(1000)).toMatchObject({ declined: 3 });
  });
});

describe('a reserved address', () => {
  const reservedPool = () => {
    const reserved = new Map([
      [mac(1), address(0)],
      [mac(2), address(500)],
    ]);
    const pool = createPool<string>({ first: FIRST, last: FIRST + 1, excluded: [], leaseMs: LEASE, reserved }, [], 0, createLeaseChanges());
    return reserveAddresses(pool, reserved, LEASE);
  };
  it('goes to its machine only, also one outside the range', () => {
    const pool = reservedPool();
    expect(take(pool, 5, 0)).toBe(address(1));
    expect(take(pool, 6, 0)).toBeUndefined();
    expect(pool.bind(mac(5), address(0), 0)).toBe(false);
    expect([take(pool, 1, 0), take(pool, 2, 0)]).toEqual([address(0), address(500)]);
    expect(pool.bind(mac(1), address(1), 0)).toBe(false);
    expect(pool.counts(0)).toEqual({ free: 0, offered: 0, bound: 3, ended: 0, declined: 0 });
    expect(pool.counts(LEASE)).toMatchObject({ bound: 0, ended: 3 });
  });
  it('stays with its machine after releases and declines that anybody may have sent', () => {
    const pool = reservedPool();
    take(pool, 1, 0);
    pool.release(mac(1), address(0), 1);
    expect(pool.decline(mac(1), address(0), 1)).toBe(true);
    expect(take(pool, 1, 1)).toBe(address(0));
  });
});
it('a machine that binds another address loses its first one', () => {
  const pool = poolOf(2);
  expect(pool.bind(mac(1), address(0), 0)).toBe(true);
  expect(pool.bind(mac(1), address(1), 0)).toBe(true);
  expect(pool.bind(mac(2), address(0), 0)).toBe(true);
  expect(pool.changes()).toEqual([
    { address: '10.0.0.100', lease: lease(2, 0, LEASE) },
    { address: '10.0.0.101', lease: lease(1, 1, LEASE) },
  ]);
});

describe('stored leases', () => {
  it('continue, and addresses of ended ones are used last', () => {
    const pool = poolOf(3, [lease(1, 0, 5000), lease(2, 1, -5000), lease(3, 2, -9000)]);
    expect(pool.find(mac(1), 0)).toMatchObject({ state: 'bound', until: 5000 });
    expect(take(pool, 2, 0)).toBe(address(1));
    expect(take(pool, 4, 0)).toBe(address(2));
    expect(take(pool, 5, 0)).toBeUndefined();
    expect(take(pool, 5, 5000)).toBe(address(0));
    expect(pool.changes().map(({ address: changed, lease: now }) => [changed, now?.mac])).toEqual([
      ['10.0.0.101', mac(2)],
      ['10.0.0.102', mac(4)],
      ['10.0.0.100', mac(5)],
    ]);
  });
  it('outside the range are deleted, and none runs longer than a lease time', () => {
    const pool = poolOf(2, [lease(1, 7, 5000), lease(2, 0, 100 * LEASE)]);
    expect(pool.find(mac(1), 0)).toBeUndefined();
    expect(pool.find(mac(2), LEASE - 1)).toMatchObject({ state: 'bound' });
    expect(pool.find(mac(2), LEASE)).toMatchObject({ state: 'ended' });
    expect(pool.changes()).toEqual([{ address: '10.0.0.107', lease: undefined }]);
  });
  it('of one machine are reduced to the one that ends last', () => {
    const pool = poolOf(3, [lease(1, 0, 5000), lease(1, 1, 9000)]);
    expect(pool.find(mac(1), 0)).toMatchObject({ address: address(1) });
    expect(pool.changes()).toEqual([{ address: '10.0.0.100', lease: undefined }]);
    expect(take(pool, 2, 0)).not.toBe(address(1));
  });
});

it('after 20,000 random operations, no address has two machines and the stored leases are correct', () => {
  let seed = 7;
  const random = (below: number): number => {
    seed = (Math.imul(seed, 1103515245) + 12345) >>> 0;
    return (seed >>> 8) % below;
  };
  const pool = poolOf(40);
  const stored = new Map<string, LeaseRecord>();
  let now = 0;
  for (let step = 0; step < 20_000; step += 1) {
    now += random(120_000);
    const machine = mac(random(60));
    const [at] = [address(random(44) - 2)];
    const held = pool.find(machine, now);
    const action = random(12);
    if (action < 5) pool.offer(machine, at, now, '');
    else if (action < 9) pool.bind(machine, held?.address ?? at, now);
    else if (action === 9) pool.release(machine, held?.address ?? at, now);
    else if (action === 10) pool.withdraw(machine, now);
    else if (random(10) === 0) pool.decline(machine, held?.address ?? at, now);
    const changes = pool.changes();
    if (random(3) === 0) pool.retry(changes);
    else
      for (const { address: changed, lease: current } of changes)
        if (current) stored.set(changed, current);
        else stored.delete(changed);
  }
  for (const { address: changed, lease: current } of pool.changes())
    if (current) stored.set(changed, current);
    else stored.delete(changed);
  const all = Array.from({ length: 60 }, (_, index) => pool.find(mac(index), now)).filter((binding) => binding !== undefined);
  expect(new Set(all.map((binding) => binding.address)).size).toBe(all.length);
  for (const binding of all) {
    expect(binding.address - FIRST).toBeLessThan(40);
    if (binding.state === 'bound')
      expect(stored.get(numberToAddress(binding.address))).toEqual({
        mac: binding.mac,
        address: numberToAddress(binding.address),
        expires_at: binding.until,
      });
  }
  const machines = [...stored.values()].map((each) => each.mac);
  expect(new Set(machines).size).toBe(machines.length);
  expect(machines.filter((each) => !all.some((binding) => binding.mac === each))).toEqual([]);
});

describe('createLeaseWriter', () => {
  it('writes changes together, and the remaining ones on stop', async () => {
    const { store, leases } = dhcpStore({ ports: [], boots: [] });
    const pool = poolOf(10);
    const clock = testClock();
    const writer = createLeaseWriter(store, pool, clock, () => {});
    take(pool, 1, 0);
    writer.schedule();
    writer.schedule();
    while (leases.size === 0) await new Promise((done) => setImmediate(done));
    take(pool, 2, 0);
    await writer.stop();
    expect([...leases.values()].map((each) => each.mac)).toEqual([mac(1), mac(2)]);
    take(pool, 3, 0);
    writer.schedule();
    expect(clock.sleeping()).toBe(0);
  });
  it('logs a failed write and retries it', async () => {
    const { store, leases } = dhcpStore({ ports: [], boots: [] });
    const pool = poolOf(10);
    let failures = 2;
    const broken = {
      transaction: async <T>(work: Parameters<typeof store.transaction<T>>[0]) =>
        failures-- > 0 ? Promise.reject(new Error('away')) : store.transaction(work),
    };
    const warnings: string[] = [];
    const writer = createLeaseWriter(broken, pool, testClock(), (message) => void warnings.push(message));
    take(pool, 1, 0);
    writer.schedule();
    while (leases.size === 0) await new Promise((done) => setImmediate(done));
    expect(warnings).toEqual(['DHCP leases could not be written', 'DHCP leases could not be written']);
    await writer.stop();
  });
});
