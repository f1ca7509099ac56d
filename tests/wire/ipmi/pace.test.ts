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
  ['the first response: SRTT = R, RTTVAR = R/2, RTO = SRTT + 4 RTTVAR', [[100, 1]], { smoothed: 100, variation: 50, wait: 300 }],
  [
    'a later response: alpha = 1/8, beta = 1/4',
    [
      [100, 1],
      [180, 1],
    ],
    { smoothed: 110, variation: 57.5, wait: 340 },
  ],
  [
    'equal responses: RTTVAR shrinks',
    [
      [100, 1],
      [100, 1],
    ],
    { smoothed: 100, variation: 37.5, wait: 250 },
  ],
  [
    'one response after a resend, which may be due to a loss: the wait stays',
    [
      [100, 1],
      [400, 2],
    ],
    { smoothed: 100, wait: 300, resent: 400 },
  ],
  [
    'two responses after a resend: the wait is the shorter time plus a quarter',
    [
      [100, 1],
      [400, 2],
      [320, 2],
    ],
    { smoothed: 100, wait: 400, resent: 320 },
  ],
  [
    'a response without a resend again: the estimate of RFC 6298 applies',
    [
      [100, 1],
      [400, 2],
      [100, 1],
    ],
    { smoothed: 100, wait: 250, resent: undefined },
  ],
] as const)('recordResponse after %s', (_, answers, expected) => {
  expect(paceAfter(...answers)).toMatchObject(expected);
});
