import { firstFrames } from '../../../wire/sockets/packet-socket';

const signal = new AbortController().signal;
it('firstFrames returns no frame of an interface that does not exist, without a wait', async () => {
  await expect(firstFrames(['no-such-one'], 0x88cc, 60_000, signal)).resolves.toEqual(new Map());
});
it('firstFrames does not wait after an abort or with a timeout of 0', async () => {
  await expect(firstFrames(['lo'], 0x88cc, 60_000, AbortSignal.abort())).resolves.toEqual(new Map());
  await expect(firstFrames(['lo'], 0x88cc, 0, signal)).resolves.toEqual(new Map());
});
