/** Mutated answers of a BMC: none breaks our side. IPMI_MUTATIONS=1000000 runs a million of them. */
import { mutate } from './mutation';

const COUNT = Number(process.env['IPMI_MUTATIONS'] ?? 100_000);

it('mutated packets and records cause no crash and no false result', async () => {
  const { packets, answered, falseAnswers } = await mutate(COUNT, 1);
  expect(packets).toBe(COUNT);
  // Packets that the mutation left unchanged are still understood.
  expect(answered).toBeGreaterThan(0);
  expect(falseAnswers).toBe(0);
}, 600_000);
