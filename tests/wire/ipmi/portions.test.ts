/** Reads from a BMC in portions and with reservations, by its completion codes. */
import { readPortions, withReservation } from '../../../wire/ipmi/record-access';
import { COMPLETION, IpmiError } from '../../../wire/ipmi/constants';

const code = (completionCode: number): IpmiError => new IpmiError('completion', `code ${completionCode}`, { completionCode });
const DATA = Buffer.from(Array.from({ length: 40 }, (_, at) => at));

/** Reads from a store that returns at most so many bytes, and refuses more with a completion code. */
async function portions(length: number, portion: number, most: number, refusal: Error) {
  const requests: [offset: number, count: number][] = [];
  const read = async (offset: number, count: number): Promise<Buffer> => {
    requests.push([offset, count]);
    if (count > most) throw refusal;
    return DATA.subarray(offset, offset + count);
  };
  return { bytes: await readPortions(length, portion, read), requests };
}
it('readPortions reads in portions', async () => {
  const { bytes, requests } = await portions(40, 16, 255, code(0xff));
  expect(bytes).toEqual(DATA);
  expect(requests).toEqual([
    [0, 16],
    [16, 16],
    [32, 8],
  ]);
});
it.each([COMPLETION.cannotReturnBytes, COMPLETION.lengthExceeded, COMPLETION.lengthInvalid, COMPLETION.outOfRange, COMPLETION.unspecified])(
  'readPortions halves the portion after completion code %i',
  async (completion) => {
    const { bytes, requests } = await portions(20, 20, 10, code(completion));
    expect(bytes).toEqual(DATA.subarray(0, 20));
    expect(requests).toEqual([
      [0, 20],
      [0, 10],
      [10, 10],
    ]);
  },
);
it('readPortions requests at least 8 bytes', async () => {
  expect((await portions(10, 10, 8, code(0xca))).requests).toEqual([
    [0, 10],
    [0, 8],
    [8, 2],
  ]);
  await expect(portions(10, 10, 7, code(0xca))).rejects.toThrow('code 202');
});
it.each([code(COMPLETION.invalidField), new IpmiError('unreachable', 'no response'), new Error('a mistake')])(
  'readPortions fails after: %s',
  async (refusal) => {
    await expect(portions(20, 20, 10, refusal)).rejects.toBe(refusal);
  },
);
it('readPortions ends at an empty portion, and drops bytes that it did not request', async () => {
  expect(await readPortions(100, 16, async (offset) => DATA.subarray(offset))).toEqual(DATA);
  expect(await readPortions(10, 8, async (offset) => DATA.subarray(offset))).toEqual(DATA.subarray(0, 10));
});

describe('withReservation', () => {
  const cancelled = code(COMPLETION.reservationInvalid);
  /** @param failures the errors of the first uses */
  async function reserved(failures: readonly Error[], reserve: (n: number) => Promise<Buffer>) {
    let reservations = 0;
    const left = [...failures];
    const used: (readonly number[])[] = [];
    const outcome = await withReservation(
      () => reserve(++reservations),
      async (reservation) => {
        used.push(reservation);
        const failure = left.shift();
        if (failure) throw failure;
        return 'read';
      },
    ).catch((error: unknown) => error);
    return { outcome, used };
  }
  const numbered = async (n: number): Promise<Buffer> => Buffer.from([n, 1]);
  it('reserves again when the reservation was cancelled', async () => {
    expect(await reserved([cancelled, cancelled], numbered)).toEqual({
      outcome: 'read',
      used: [
        [1, 1],
        [2, 1],
        [3, 1],
      ],
    });
  });
  it('reserves again at most five times', async () => {
    const five = Array.from({ length: 5 }, () => cancelled);
    expect((await reserved(five, numbered)).outcome).toBe('read');
    const { outcome, used } = await reserved([...five, cancelled], numbered);
    expect(outcome).toBe(cancelled);
    expect(used).toHaveLength(6);
  });
  it.each([code(COMPLETION.notPresent), new Error('a mistake')])('does not reserve again after: %s', async (failure) => {
    expect(await reserved([failure], numbered)).toEqual({ outcome: failure, used: [[1, 1]] });
  });
  it('uses reservation 0 where the BMC does not support reservations', async () => {
    expect((await reserved([], async () => Promise.reject(code(COMPLETION.invalidCommand)))).used).toEqual([[0, 0]]);
    expect((await reserved([], async () => Buffer.alloc(0))).used).toEqual([[0, 0]]);
    const refused = code(COMPLETION.insufficientPrivilege);
    expect(await reserved([], async () => Promise.reject(refused))).toEqual({ outcome: refused, used: [] });
  });
});
