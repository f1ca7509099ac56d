import { firstFrames } from '../../../wire/sockets/packet-socket';

const signal = new AbortController().signal;
it('an interface that is not there has no frame, and nobody waits for it', async () => {
  await expect(firstFrames(['no-such-one'], 0x88cc, 60_000, signal)).resolves.toEqual(new Map());
});
it('nothing is waited for after the end', async () => {
  await expect(firstFrames(['lo'], 0x88cc, 60_000, AbortSignal.abort())).resolves.toEqual(new Map());
  await expect(firstFrames(['lo'], 0x88cc, 0, signal)).resolves.toEqual(new Map());
});
