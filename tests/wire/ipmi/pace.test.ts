/** How long the client waits for a BMC before it sends a packet again: the estimate of RFC 6298 §2, with its constants. */
import { recordResponse, newPace } from '../../../wire/ipmi/session';

type Pace = ReturnType<typeof newPace>;

/** Answers as [milliseconds, packets sent]. */
const paceAfter = (...answers: readonly (readonly [number, number])[]): Pace => {
  const pace = newPace();
  for (const [milliseconds, packets] of answers) recordResponse(pace, milliseconds, packets);
  return pace;
};

it.each([
  ['the first answer: SRTT = R, RTTVAR = R/2, RTO = SRTT + 4 RTTVAR', [[100, 1]], { smoothed: 100, variation: 50, wait: 300 }],
  [
    'a later one: alpha = 1/8, beta = 1/4',
    [
      [100, 1],
      [180, 1],
    ],
    { smoothed: 110, variation: 57.5, wait: 340 },
  ],
  [
    'always the same',
    [
      [100, 1],
      [100, 1],
    ],
    { smoothed: 100, variation: 37.5, wait: 250 },
  ],
  [
    'an answer to one of two packets, once: most likely a loss',
    [
      [100, 1],
      [400, 2],
    ],
    { smoothed: 100, wait: 300, resent: 400 },
  ],
  [
    'twice: it takes as long, and a quarter more is waited',
    [
      [100, 1],
      [400, 2],
      [320, 2],
    ],
    { smoothed: 100, wait: 400, resent: 320 },
  ],
  [
    'measured again',
    [
      [100, 1],
      [400, 2],
      [100, 1],
    ],
    { smoothed: 100, wait: 250, resent: undefined },
  ],
] as const)('%s', (_, answers, expected) => {
  expect(paceAfter(...answers)).toMatchObject(expected);
});
