/** Jest's globalTeardown: ends what setup.ts started. */
export { clean as default } from './setup';
